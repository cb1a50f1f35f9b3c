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
from lucid.ops.creation.ranges import arange, eye, tril_indices
from lucid.ops.decomposition.triangular import cholesky
from lucid.ops.shape.padding import pad
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


def _last(title: str, shape: Sequence[int], dims: int = 1) -> Sequence[int]:
    if len(shape) < dims:
        raise ShapeError(f"{title}: expected {dims} dimensions or more, got shape {tuple(shape)}")
    return shape


def _sums_to_end(x: Tensor) -> Tensor:
    """Return the sums of each and all after it, in the last dimension."""
    return x.flip(-1).cumsum(-1).flip(-1)


class SoftmaxTransform(Transform):
    """``y = softmax(x)`` of the last dimension: shares that determine x up to a constant.

    Examples
    --------
    >>> import lucid
    >>> lucid.distributions.SoftmaxTransform()(lucid.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    _settings, _takes_whole = (), False

    def _call(self, x: Tensor) -> Tensor:
        self.forward_shape(x.shape)
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        self.inverse_shape(y.shape)
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
    _settings, _takes_whole = (), False

    @staticmethod
    def _to_come(x: Tensor) -> Tensor:
        """Return how many pieces come after each."""
        return arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device)

    def _call(self, x: Tensor) -> Tensor:
        self.forward_shape(x.shape)
        # what is left is no difference, which would have no digits, and never nothing, so that each share has a
        # logarithm
        tiny = finfo(x.dtype).tiny
        x = x - self._to_come(x).log()
        remaining = sigmoid(-x).clamp(min=tiny).cumprod(-1)
        return (pad(sigmoid(x), (0, 1), value=1) * pad(remaining, (1, 0), value=1)).clamp(min=tiny)

    def _inverse(self, y: Tensor) -> Tensor:
        self.inverse_shape(y.shape)
        pieces, remaining = y[..., :-1], _sums_to_end(y[..., 1:]).clamp(min=finfo(y.dtype).tiny)
        return pieces.log() - remaining.log() + self._to_come(pieces).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # what a piece leaves is a factor of its own slope and of each share after it
        to_come = self._to_come(x)
        x = x - to_come.log()
        return (logsigmoid(x) + to_come * logsigmoid(-x)).sum(-1)

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
    >>> lucid.allclose((factor @ factor.mT).diagonal(), lucid.ones(3))
    True
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True
    _settings, _takes_whole = (), False

    def _call(self, x: Tensor) -> Tensor:
        n, tiny = self.forward_shape(x.shape)[-1], finfo(x.dtype).tiny
        one = eye(n, dtype=x.dtype, device=x.device)
        # each leaves 1 / cosh(x) of the length, as sqrt(1 - tanh(x)**2) without a difference
        shrinkage = 2 * (sigmoid(2 * x) * sigmoid(-2 * x)).clamp(min=tiny).sqrt()
        factors = vec_to_tril_matrix(shrinkage, diag=-1) + one.new_ones(n, n).triu()
        remaining = factors.cumprod(-1).clamp(min=tiny)
        return (vec_to_tril_matrix(x.tanh(), diag=-1) + one) * pad(remaining[..., :-1], (1, 0), value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        self.inverse_shape(y.shape)
        after = pad(_sums_to_end(y.square())[..., 1:], (0, 1)).clamp(min=finfo(y.dtype).tiny)
        return (tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(after, diag=-1).sqrt()).asinh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # what one leaves is a factor of its own slope, twice, and of those after it in its row
        n = self.forward_shape(x.shape)[-1]
        rows, columns = tril_indices(n, n, -1, device=x.device)
        return ((rows - columns + 1) * (math.log(2) - x - softplus(-2 * x))).sum(-1)

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
    _settings, _takes_whole = (), False

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(cholesky(y))
