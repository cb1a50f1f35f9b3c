"""The Python array API standard, version 2024.12, on Tensors: the namespace ``x.__array_namespace__()``.

Every name has the standard's signature and meaning, and lies on the ops of `lucid`: Tensors go in, recorded where one
requires grad, and Arrays come out, Tensors whose operators and indices are the standard's (`lucid.array_api.array`).
Tensors without dimensions promote as any other, numbers of Python's as weak operands.

- Of the standard's dtypes ``uint16``, ``uint32`` and ``uint64`` are missing, which lucid does not have.
- ``x.size`` is PyTorch's method, not a number: code for several libraries asks ``array_api_compat.size``.
- `special` is beside the standard: special functions by SciPy's names, which SciPy looks for there.

>>> import lucid
>>> x = lucid.tensor([3.0, 4.0], requires_grad=True)
>>> xp = x.__array_namespace__()
>>> xp.std(x, correction=1) * xp.sum(x)
tensor(4.9497, grad_fn=<MulBackward0>)
"""

from __future__ import annotations

import sys

from lucid.array_api import creation, data_types, elementwise, fft, linalg, manipulation, reductions, special
from lucid.array_api.array import give_arrays
from lucid.array_api.creation import *  # noqa: F403 - what each of these exports is the namespace
from lucid.array_api.data_types import *  # noqa: F403
from lucid.array_api.elementwise import *  # noqa: F403
from lucid.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot
from lucid.array_api.manipulation import *  # noqa: F403
from lucid.array_api.reductions import *  # noqa: F403
from lucid.base.dtype import bool_ as bool
from lucid.public import publish as _publish

__array_api_version__ = "2024.12"

__all__ = [
    "__array_api_version__", "bool", "fft", "linalg", "matmul", "matrix_transpose", "special", "tensordot", "vecdot",
]  # fmt: skip
__all__ += creation.__all__
__all__ += data_types.__all__
__all__ += elementwise.__all__
__all__ += manipulation.__all__
__all__ += reductions.__all__

for _module in (sys.modules[__name__], linalg, fft):
    give_arrays(_module)
    _publish(vars(_module))
