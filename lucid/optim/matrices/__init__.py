"""Optimizers that look at a parameter as a matrix."""
