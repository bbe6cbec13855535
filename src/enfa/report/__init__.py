"""Pictures and tables about plans."""
