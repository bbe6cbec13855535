"""What benchmarks/convs.py is made of."""
