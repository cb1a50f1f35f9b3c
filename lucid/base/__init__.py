"""Arrays and their description: dtypes and promotion, devices, NumPy and CuPy behind one set of functions."""
