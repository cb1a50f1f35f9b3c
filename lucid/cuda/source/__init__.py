"""The sources of kernels: their text, and its declarations."""
