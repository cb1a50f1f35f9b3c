"""Foundations of all families of ops: promotion, dimensions, sums of gradients, blocks of memory."""
