"""Tools of distributions: parameters of one shape, probabilities and logits, triangles as vectors."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import enable_grad
from lucid.base.limits import finfo
from lucid.errors import ArgumentError, ShapeError
from lucid.ops.activation.sigmoid import sigmoid
from lucid.ops.activation.softmax import softmax
from lucid.ops.creation.data import tensor
from lucid.ops.creation.random import randn
from lucid.ops.creation.ranges import tril_indices
from lucid.ops.elementwise.selection import where
from lucid.ops.shape.broadcasting import broadcast_tensors
from lucid.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060


def named_tensors(title: str, named: dict[str, Any]) -> list[Tensor]:
    """Return parameters as tensors of one shape; numbers get dtype and device of the tensors among them."""
    like = next((value for value in named.values() if isinstance(value, Tensor)), None)
    tensors: list[Tensor] = []
    for name, value in named.items():
        if isinstance(value, Tensor):
            tensors.append(value)
        elif isinstance(value, int | float):
            number = float(value)
            made = tensor(number) if like is None else tensor(number, dtype=like.dtype, device=like.device)
            tensors.append(made)
        else:
            raise ArgumentError(f"{title}: {name}: expected a tensor or a number, got {type(value).__name__}")
    # one that has the shape is kept itself, and with it its `grad`
    return [
        own if own.shape == wide.shape else wide for own, wide in zip(tensors, broadcast_tensors(*tensors), strict=True)
    ]


def broadcast_all(*values: Tensor | float) -> tuple[Tensor, ...]:
    """Return tensors and numbers as tensors of one shape; numbers get dtype and device of the first tensor.

    >>> import lucid
    >>> from lucid.distributions.utils import broadcast_all
    >>> broadcast_all(1.0, lucid.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    return tuple(named_tensors("broadcast_all", {f"values[{i}]": value for i, value in enumerate(values)}))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return ``softmax(logits)`` of the last dimension, or ``sigmoid(logits)``.

    >>> import lucid
    >>> lucid.distributions.utils.logits_to_probs(lucid.zeros(2))
    tensor([0.5000, 0.5000])
    """
    return sigmoid(logits) if is_binary else softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities moved so far from 0 and 1 as the dtype can tell.

    >>> import lucid
    >>> lucid.distributions.utils.clamp_probs(lucid.tensor([0.0, 0.5])).log().isfinite().all()
    tensor(True)
    """
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the logarithms of probabilities, or of odds; of the smallest numbers in place of 0.

    >>> import lucid
    >>> lucid.distributions.utils.probs_to_logits(lucid.tensor([0.5, 0.75]), is_binary=True)
    tensor([0.0000, 1.0986])
    """
    tiny = finfo(probs.dtype).tiny
    log = probs.clamp(min=tiny).log()
    if not is_binary:
        return log
    sure = probs >= 1
    return log - where(sure, math.log(tiny), (-where(sure, 0.5, probs)).log1p())


class lazy_property(functools.cached_property[Any]):
    """A value that is computed, with gradients, when it is first asked for, and kept by the instance."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            return super().__get__(instance, owner)


def _triangle(size: int, diag: int, like: Tensor) -> Any:
    return tril_indices(size, size, diag, device=like.device)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements of a lower triangle, row by row, as vectors.

    >>> import lucid
    >>> lucid.distributions.utils.tril_matrix_to_vec(lucid.tensor([[1.0, 0.0], [2.0, 3.0]]))
    tensor([1., 2., 3.])
    """
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ShapeError(f"tril_matrix_to_vec: expected diag from {-size} to {size - 1}, got {diag}")
    rows, columns = _triangle(size, diag, mat)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return matrices with the elements of vectors in the lower triangle, row by row, and 0 elsewhere.

    >>> import lucid
    >>> lucid.distributions.utils.vec_to_tril_matrix(lucid.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    count = vec.shape[-1]
    # of no elements the largest, as a triangle below the diagonal has none in a matrix of one row
    size = next((n for n in range(count + abs(diag) + 1, -1, -1) if _held(n, diag) == count), -1)
    if size < 0:
        raise ShapeError(f"vec_to_tril_matrix: expected as many elements as a triangle has, got {count}")
    rows, columns = _triangle(size, diag, vec)
    flat = vec.new_zeros((*vec.shape[:-1], size * size))
    place = (rows * size + columns).expand(vec.shape)
    return flat.scatter(-1, place, vec).reshape(*vec.shape[:-1], size, size)


def _held(size: int, diag: int) -> int:
    """Return how many elements a triangle holds."""
    return sum(min(max(row + 1 + diag, 0), size) for row in range(size))


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:  # pyright: ignore[reportUnusedFunction]
    """Return the sum over the last dimensions, `dim` of them."""
    return value.sum(tuple(range(-dim, 0))) if dim else value


def _standard_normal(shape: Sequence[int], dtype: Dtype, device: Device) -> Tensor:  # pyright: ignore[reportUnusedFunction]
    """Return standard normal numbers."""
    return randn(*shape, dtype=dtype, device=device)


sum_rightmost, standard_normal = _sum_rightmost, _standard_normal
