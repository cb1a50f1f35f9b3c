"""The extension of linear algebra of the array API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lucid.array_api.operands import checked_tensor, together
from lucid.array_api.reductions import own
from lucid.errors import ShapeError
from lucid.ops.decomposition import chains, inverses, orthogonal, pseudoinverse, spectral
from lucid.ops.linalg import products
from lucid.ops.shape import broadcasting
from lucid.tensor.numpy_calls.rules import linalg as rules
from lucid.tensor.numpy_calls.rules import shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.array_api.operands import Axes
    from lucid.base.dtype import dtype as Dtype
    from lucid.ops.decomposition.inverses import slogdet_result
    from lucid.ops.decomposition.orthogonal import qr_result
    from lucid.ops.decomposition.spectral import eigh_result, svd_result
    from lucid.tensor import Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip

Order = int | float | Literal["fro", "nuc"] | None


def pair(x1: Tensor, x2: Tensor) -> tuple[Any, Any]:
    """Return two operands that are tensors, in one dtype."""
    first, second = together((checked_tensor(x1), checked_tensor(x2)))
    return first, second


# ---- products, which the namespace has too ----


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return ``matmul`` of the array API."""
    return products.matmul(*pair(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Return ``matrix_transpose`` of the array API."""
    return shapes.matrix_transposed(checked_tensor(x))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Return ``tensordot`` of the array API."""
    return rules.tensordot(*pair(x1, x2), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return ``vecdot`` of the array API: the first operand is conjugated.

    Raises
    ------
    ShapeError
        If the sizes along the axis differ, of which one of 1 does not broadcast.
    """
    first, second = pair(x1, x2)
    if first.array.shape[axis] != second.array.shape[axis]:
        raise ShapeError(
            f"vecdot: expected two equal sizes along axis {axis}, got {first.array.shape[axis]} and "
            f"{second.array.shape[axis]}"
        )
    return rules.dot_of_vectors(first, second, axis)


# ---- products of the extension ----


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return ``cross`` of the array API: vectors of three components, other axes broadcast."""
    first, second = pair(x1, x2)
    return chains.cross(*broadcasting.broadcast_tensors(first, second), dim=axis)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return ``outer`` of the array API, of two vectors."""
    return products.outer(*pair(x1, x2))


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Return ``matrix_power`` of the array API."""
    return chains.matrix_power(x, n)


# ---- norms and diagonals ----


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Order = "fro") -> Tensor:
    """Return ``matrix_norm`` of the array API."""
    return own(rules.matrix_norm(checked_tensor(x), keepdims, ord))


def vector_norm(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Return ``vector_norm`` of the array API."""
    return own(rules.vector_norm(checked_tensor(x), axis, keepdims, ord))


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Return ``diagonal`` of the array API."""
    return shapes.matrix_diagonal(checked_tensor(x), offset)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Dtype | None = None) -> Tensor:
    """Return ``trace`` of the array API."""
    return shapes.matrix_trace(checked_tensor(x), offset, dtype)


# ---- systems and inverses ----


def det(x: Tensor, /) -> Tensor:
    """Return ``det`` of the array API."""
    return inverses.det(x)


def slogdet(x: Tensor, /) -> slogdet_result:
    """Return ``slogdet`` of the array API."""
    return inverses.slogdet(x)


def inv(x: Tensor, /) -> Tensor:
    """Return ``inv`` of the array API."""
    return inverses.inv(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return ``solve`` of the array API: a right side of one axis is a vector, any other one matrices."""
    return rules.solve(*pair(x1, x2))


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Return ``pinv`` of the array API."""
    return pseudoinverse.pinv(x, rtol=_tolerance(x, rtol))


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Return ``matrix_rank`` of the array API."""
    return pseudoinverse.matrix_rank(x, rtol=_tolerance(x, rtol))


def _tolerance(x: Tensor, rtol: float | Tensor | None) -> float | Tensor:
    """Return the bound for singular values that count as zero, as a share of the largest."""
    array = checked_tensor(x).array
    if rtol is not None or array.dtype.kind not in "fc":
        # what is no float is refused where singular values are found
        return 0.0 if rtol is None else rtol
    return max(array.shape[-2:], default=0) * float(np.finfo(array.dtype).eps)


# ---- decompositions ----


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Return ``cholesky`` of the array API."""
    return rules.cholesky(checked_tensor(x), upper)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> qr_result:
    """Return ``qr`` of the array API."""
    return orthogonal.qr(x, mode)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> svd_result:
    """Return ``svd`` of the array API."""
    return spectral.svd(x, full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """Return ``svdvals`` of the array API."""
    return spectral.svdvals(x)


def eigh(x: Tensor, /) -> eigh_result:
    """Return ``eigh`` of the array API."""
    return rules.eigh(checked_tensor(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Return ``eigvalsh`` of the array API."""
    return rules.eigvalsh(checked_tensor(x))
