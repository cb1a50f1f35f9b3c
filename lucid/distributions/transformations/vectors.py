"""Transforms of vectors and matrices to shares, triangles and correlations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.transformations.base import Transform
from lucid.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from lucid.errors import ShapeError
from lucid.ops.activation.sigmoid import logsigmoid, sigmoid, softplus
from lucid.ops.activation.softmax import softmax
from lucid.ops.creation.ranges import arange, eye
from lucid.ops.decomposition.triangular import cholesky
from lucid.ops.shape.padding import pad
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = [
    "CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "SoftmaxTransform",
    "StickBreakingTransform",
]  # fmt: skip


def _last(title: str, shape: Sequence[int], dims: int = 1) -> Sequence[int]:
    if len(shape) < dims:
        raise ShapeError(f"{title}: expected {dims} dimensions or more, got shape {tuple(shape)}")
    return shape


class SoftmaxTransform(Transform):
    """``y = softmax(x)`` of the last dimension: shares that determine x up to a constant.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributions.SoftmaxTransform()(lucid.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return _last("SoftmaxTransform", shape)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        return _last("SoftmaxTransform", shape)


class StickBreakingTransform(Transform):
    """n numbers to n + 1 shares: each breaks a part, ``sigmoid(x - log(pieces still to come))``, off the rest.

    >>> import lucid
    >>> lucid.distributions.StickBreakingTransform()(lucid.zeros(2))
    tensor([0.3333, 0.3333, 0.3333])
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True
    _settings = ()

    @staticmethod
    def _to_come(x: Tensor) -> Tensor:
        """Return the logarithms of how many pieces come after each."""
        return arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        # never all of what is left, so that each share has a logarithm
        limits = finfo(x.dtype)
        part = sigmoid(x - self._to_come(x)).clamp(limits.tiny, 1 - limits.eps)
        remaining = (1 - part).cumprod(-1)
        return pad(part, (0, 1), value=1) * pad(remaining, (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = y[..., :-1]
        remaining = (1 - pieces.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return pieces.log() - remaining.log() + self._to_come(pieces)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._to_come(x)
        return (logsigmoid(-x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        _last("StickBreakingTransform", shape)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        _last("StickBreakingTransform", shape)
        return Size((*shape[:-1], shape[-1] - 1))


class CorrCholeskyTransform(Transform):
    """Vectors of n * (n - 1) / 2 numbers to the Cholesky factors of n x n correlation matrices.

    The tangents of the numbers, row by row, are partial correlations: each takes its share of what its row's length,
    which is 1, has left. Lewandowski, Kurowicka, Joe: Generating random correlation matrices (2009).

    >>> import lucid
    >>> factor = lucid.distributions.CorrCholeskyTransform()(lucid.tensor([0.5, -0.5, 1.0]))
    >>> (factor @ factor.mT).diagonal()
    tensor([1., 1., 1.])
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        x = x.tanh()
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(-1 + eps, 1 - eps), diag=-1)
        remaining = (1 - r.square()).sqrt().cumprod(-1)
        return (r + eye(r.shape[-1], dtype=r.dtype, device=r.device)) * pad(remaining[..., :-1], (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        self.inverse_shape(y.shape)
        remaining = pad(1 - y.square().cumsum(-1)[..., :-1], (1, 0), value=1)
        return (tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(remaining, diag=-1).sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        remaining = tril_matrix_to_vec(1 - y.square().cumsum(-1), diag=-2)
        return 0.5 * remaining.log().sum(-1) - 2 * (x + softplus(-2 * x) - math.log(2)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        count = _last("CorrCholeskyTransform", shape)[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ShapeError(f"CorrCholeskyTransform: expected n * (n - 1) / 2 numbers, got {count}")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        _last("CorrCholeskyTransform", shape, 2)
        if shape[-2] != shape[-1]:
            raise ShapeError(f"CorrCholeskyTransform: expected square matrices, got shape {tuple(shape)}")
        n = shape[-1]
        return Size((*shape[:-2], n * (n - 1) // 2))


class LowerCholeskyTransform(Transform):
    """Square matrices to lower triangles with a positive diagonal, the exponential of theirs.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributions.LowerCholeskyTransform()(lucid.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Square matrices to positive definite ones; their Cholesky factors are those of `LowerCholeskyTransform`.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributions.PositiveDefiniteTransform()(lucid.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite
    _settings = ()

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(cholesky(y))
