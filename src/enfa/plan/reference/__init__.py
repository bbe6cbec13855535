"""The full plan, in which every pair is a row of its own: what all other plans are compared with."""
