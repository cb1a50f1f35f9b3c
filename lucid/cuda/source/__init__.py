"""The sources of kernels: their text, and what it declares."""
