"""Tensors from data, of given values, and random ones."""
