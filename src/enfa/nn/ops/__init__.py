"""Sums over lists of rows, linears and norms, on every device."""
