"""Layers: convolutions, pooling, normalisation, attention and embedding.

This holds for all of them; convolution, pooling and normalisation have pages of their own in this folder:

- Operands lie on one device, or a DeviceError says where each is. A shape or setting that does not fit raises a
  ShapeError, a dtype a DtypeError, with what was expected and what was got.
- The result has the dtype of the input. Half types are computed in float32, and rounded once.
- Every derivative has its own.
"""
