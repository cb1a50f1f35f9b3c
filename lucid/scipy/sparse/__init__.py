"""Sparse matrices, differentiated: ``from lucid.scipy import sparse``.

Where elements stand is constant, what they are may require grad: ``A @ x``, ``x @ A``, sums, conversions, slices,
stacks and `linalg.spsolve` are recorded, to any order, without a dense matrix in between. ``docs/users/numpy.md`` lists
them.

>>> import lucid
>>> from lucid.scipy import sparse
>>> values = lucid.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> A = sparse.csr_matrix((values, ([0, 0, 1], [0, 2, 1])), shape=(2, 3))
>>> (A @ lucid.tensor([1.0, 10.0, 100.0])).sum().backward()
>>> values.grad
tensor([  1., 100.,  10.])
"""

from __future__ import annotations

from functools import partial
from typing import Any

from lucid.scipy.sparse import linalg
from lucid.scipy.sparse.base import is_sparray, issparse
from lucid.scipy.sparse.functions import STACKS, called, diags, diags_array, kind_of_scipys, stacking
from lucid.scipy.sparse.matrices import coo_array, coo_matrix, csc_array, csc_matrix, csr_array, csr_matrix
from lucid.scipy.sparse.pattern import library

__all__ = [
    "coo_array", "coo_matrix", "csc_array", "csc_matrix", "csr_array", "csr_matrix", "diags", "diags_array", "issparse",
    "linalg",
]  # fmt: skip


def isspmatrix(x: object) -> bool:
    """Return whether `x` is a sparse matrix, and not an array in the sense of SciPy's ``csr_array``."""
    return issparse(x) and not is_sparray(x)


def _is_format(x: Any, format: str) -> bool:
    return isspmatrix(x) and x.format == format


def __getattr__(name: str) -> Any:
    try:
        value = getattr(library(None), name)
    except AttributeError:
        raise AttributeError(f"module 'lucid.scipy.sparse' has no attribute {name!r}, nor has SciPy's") from None
    if name in STACKS:
        value = stacking(name)
    elif name.startswith("isspmatrix_"):
        value = partial(_is_format, format=name.removeprefix("isspmatrix_"))
    elif isinstance(value, type):
        value = kind_of_scipys(value)
    elif callable(value):
        value = called(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(library(None))})
