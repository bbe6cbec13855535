"""Plans: which rows a model computes, and how each table of rows follows from the ones before."""
