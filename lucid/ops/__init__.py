"""Differentiable primitives: a folder for each family, a file for each kind."""
