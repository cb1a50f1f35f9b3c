"""Weights of given lengths, and divided by their largest singular value: the formulas of both forms of each norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.errors import SettingError
from lucid.nn.layers.convolution import TransposedConvolution
from lucid.ops.base.dims import dim_in
from lucid.ops.creation.random import randn
from lucid.ops.reduction.norms import norm, normalize

if TYPE_CHECKING:
    from lucid.nn.module.module import Module
    from lucid.tensor import Tensor


def lengths(weight: Tensor, dim: int | None) -> Tensor:
    """Return the length of the weight for each index along `dim`, other dimensions kept as 1; of None, of all."""
    if dim is None:
        return norm(weight)
    dim = dim_in(dim, weight.ndim)
    others = [axis for axis in range(weight.ndim) if axis != dim]
    return norm(weight, 2, others, True) if others else weight.abs()


def of_length(direction: Tensor, length: Tensor, dim: int | None) -> Tensor:
    """Return ``length * direction / |direction|``."""
    return direction * (length / lengths(direction, dim))


def dim_of_outputs(module: Module) -> int:
    """Return the dimension of the weight that numbers its outputs."""
    return 1 if isinstance(module, TransposedConvolution) else 0


def check_iterations(count: int) -> None:
    """Raise a SettingError unless there is at least one."""
    if count < 1:
        raise SettingError(f"spectral_norm: expected n_power_iterations to be positive, got {count}")


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Return the weight as a matrix with a row for each index along `dim`."""
    return weight.movedim(dim, 0).reshape(weight.shape[dim], -1)


def drawn_vectors(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Return two vectors of length 1, for the rows and for the columns of the matrix."""
    u, v = (normalize(randn(size, dtype=matrix.dtype, device=matrix.device), dim=0, eps=eps) for size in matrix.shape)
    return u, v


def by_spectrum(weight: Tensor, matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Return the weight divided by ``u @ matrix @ v``; later changes of the vectors are not seen by the graph."""
    return weight / (u.clone() @ (matrix @ v.clone()))
