"""Benchmarks that are read from ``.npz`` files, one file each."""
