# Written by `python -m tests.compat.stubs`.
from lucid.compat.helpers import _flatten_dense_tensors as _flatten_dense_tensors
from lucid.compat.helpers import _unflatten_dense_tensors as _unflatten_dense_tensors

__all__ = ['_flatten_dense_tensors', '_unflatten_dense_tensors']
