"""Common rules of matrix products.

A docstring in this folder says what is particular to its product; this holds for all of them, unless it says otherwise:

- Operands are tensors of one dtype, on one device; several dtypes, and bools, raise a DtypeError, several devices a
  DeviceError. The result has their dtype.
- Shapes that do not fit raise a ShapeError that shows them, with a guess where a transposed operand would fit.
- Sums of half types are taken in float32 and rounded once.
- Operands may lie in memory as they like; what BLAS cannot read is copied.
"""
