"""Common rules of Fourier transforms.

A docstring in this folder says what is particular to its transform; this holds for all of them, unless it says
otherwise:

- A transform of n numbers x is ``X[k] = sum_j x[j] exp(-2i pi j k / n)``, its inverse the same with a plus sign and
  divided by n. `norm` says who is divided: ``"backward"`` (None) the inverse, ``"forward"`` the transform, by n,
  ``"ortho"`` both, by its root; another one raises a SettingError. Of several dimensions n is the product of the sizes.
- `n`, or `s` for each dimension, is the size to which the operand is cut or filled up with zeros at the end; in `s`, -1
  leaves a dimension as it is. A size below 1 raises a ShapeError. Of transforms to real numbers it is the size of the
  result.
- `dim` is the dimension, or several, which must differ; None means all, or the last ones if `s` is given, one for each
  size.
- The result is complex64 of float32 and complex128 of float64, or real of the same width; integers and bools count as
  the default dtype, and half types raise a DtypeError.
- Transforms of real numbers keep one half of the last dimension, n // 2 + 1 numbers: the other is its conjugate. Those
  to real numbers take that half, and ignore imaginary parts of what is its own conjugate.
- The gradient is that of PyTorch, by the transform the other way round; every derivative has one.
- On CUDA cuFFT computes. A transform cannot be captured in a CUDA graph: CuPy may drop its plan before a replay.
"""
