"""The Python array API standard, version 2024.12, on Tensors: what ``x.__array_namespace__()`` returns.

Every name has the standard's signature and meaning, and lies on the ops of `lucid`: results are Tensors, recorded where
an operand requires grad. Tensors without dimensions promote as any other, numbers of Python's as weak operands.

- Of the standard's dtypes ``uint16``, ``uint32`` and ``uint64`` are missing, which lucid does not have.
- ``x.size`` is PyTorch's method, not a number: code for several libraries asks ``array_api_compat.size``.
- `special` is beside the standard: special functions by SciPy's names, which SciPy looks for there.

>>> import lucid
>>> x = lucid.tensor([3.0, 4.0], requires_grad=True)
>>> xp = x.__array_namespace__()
>>> xp.linalg.vector_norm(x)
tensor(5., grad_fn=<NormBackward0>)
"""

from __future__ import annotations

from lucid.array_api import creation, data_types, elementwise, fft, linalg, manipulation, reductions, special
from lucid.array_api.creation import *
from lucid.array_api.data_types import *
from lucid.array_api.elementwise import *
from lucid.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot
from lucid.array_api.manipulation import *
from lucid.array_api.reductions import *

__array_api_version__ = "2024.12"

__all__ = [
    "__array_api_version__", "fft", "linalg", "matmul", "matrix_transpose", "special", "tensordot", "vecdot",
    *creation.__all__, *data_types.__all__, *elementwise.__all__, *manipulation.__all__, *reductions.__all__,
]  # fmt: skip
