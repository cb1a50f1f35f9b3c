"""NumPy's and CuPy's functions on tensors: their rules, by NumPy's names, and the protocols that ask for them."""
