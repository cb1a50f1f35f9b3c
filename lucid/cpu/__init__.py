"""Loops in C++ for the CPU, from ``kernels/cpu``: compiled once on each machine; without a compiler NumPy's passes."""
