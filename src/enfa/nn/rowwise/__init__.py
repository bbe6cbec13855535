"""Rows as values: what acts on each row by itself passes, and everything else is refused."""

from enfa.nn.rowwise.rows import Rows

__all__ = ["Rows"]
