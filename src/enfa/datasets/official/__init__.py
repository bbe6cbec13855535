"""The official raw files of benchmarks, and how they are read."""
