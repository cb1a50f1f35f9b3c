"""Loops in C++ for the CPU, from ``kernels/cpu``: compiled once on each machine, and NumPy where they are not."""
