"""One file for each compiled dataset: written at once, read with every number checked."""
