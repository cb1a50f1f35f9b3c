"""The rules of SciPy's functions, a file for each kind: `rule` says how they are written."""
