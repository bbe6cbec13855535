"""What trained models are for: predictions, of one or of several together, and what these come from."""
