"""Models of ego nets: one file each."""
