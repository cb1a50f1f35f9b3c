"""Differentiable primitives, one family a file."""
