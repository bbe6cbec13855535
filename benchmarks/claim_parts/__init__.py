"""What README and docs claim, and where it was measured."""
