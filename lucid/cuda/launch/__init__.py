"""How work gets to a CUDA device: kernels, drivers, libraries, and launches that many ops share."""
