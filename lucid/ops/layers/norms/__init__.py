"""Mean 0 and variance 1 over some dimensions: the primitives behind normalisation layers, on the CPU and on CUDA."""
