"""Subgraph GNNs made cheap without changing a single output."""
