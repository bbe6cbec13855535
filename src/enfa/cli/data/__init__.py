"""Commands that read, write and compile data."""
