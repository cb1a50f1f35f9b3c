"""Formulas of elements, written once: from each follow the chain of ufuncs on NumPy and the functor in CUDA C++."""
