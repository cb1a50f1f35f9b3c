"""How work gets to a CUDA device: kernels, drivers, plans, and launches that many ops share."""
