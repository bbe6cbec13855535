"""Slicing plans out of the distinct rows of many graphs, and putting them together from what is known of each graph."""
