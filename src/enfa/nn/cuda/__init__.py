"""Captured steps, and the side stream that they use."""
