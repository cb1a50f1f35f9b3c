"""Arrays and what describes them: dtypes and promotion, devices, NumPy and CuPy behind one set of functions."""
