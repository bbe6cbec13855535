"""Convs of users' own, tried while a model is traced."""
