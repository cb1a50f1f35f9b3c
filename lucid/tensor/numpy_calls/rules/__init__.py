"""The rules of NumPy's functions on tensors, each in the file of its kind."""
