"""Compiled inner loops (numba). Each releases the GIL and may be run from several threads."""
