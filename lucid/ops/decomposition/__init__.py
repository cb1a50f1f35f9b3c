"""Common rules of inverses, factorisations and norms of matrices: `lucid.linalg`, and its names in `lucid`.

- `A`, or `input`, holds matrices in its last two dimensions, and a stack of them in those before, of any shape and also
  empty. `B` holds right-hand sides. Stacks of two operands broadcast.
- Dtypes are float32, float64, complex64 and complex128, the same one for all operands. Integers and half types raise a
  DtypeError, but that autocast makes float32 of half types.
- A matrix that has no inverse, or not these factors, raises a LinAlgError that says which one of the stack. The forms
  of names that end in ``_ex`` give ``info`` instead, 0 for each matrix that is well, and raise only with
  `check_errors`. What was computed of the others means nothing.
- With `upper` a triangle is the upper one, else the lower one. The other triangle is not read.
- Without `left` an equation is ``X @ A = B`` in place of ``A @ X = B``.
- `dim`, `keepdim` and `dtype` of norms are those of reductions. Results of several parts are named tuples.
- Derivatives are formulas in the same functions, so that each has derivatives of its own. They are infinite or NaN
  where the function has none, such as at equal singular values where vectors are asked for.
- On CUDA it is cuSOLVER and cuBLAS that compute, through CuPy, and what has to be raised is waited for.
"""
