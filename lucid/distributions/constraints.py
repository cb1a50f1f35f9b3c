"""Sets of values of parameters and draws, by PyTorch's names, each with a `check` that tests every event.

`event_dim` is how many last dimensions hold one event, and `check` returns a boolean tensor of the shape before these.
`is_discrete` tells whether the values can be counted. A constraint whose bounds are tensors broadcasts them. `positive`
and others without bounds are objects, `interval` and others with bounds are classes. `cat` and `stack` hold for pieces
of a dimension one constraint each, `independent` for further dimensions of an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.base.limits import finfo
from lucid.distributions import constraint_base as base
from lucid.distributions.constraint_base import Constraint, MixtureSameFamilyConstraint, all_of, is_dependent
from lucid.errors import ShapeError
from lucid.ops.creation.filling import full
from lucid.ops.decomposition.matrix_norms import vector_norm
from lucid.ops.decomposition.spectral import eigvalsh
from lucid.ops.decomposition.triangular import cholesky_ex
from lucid.ops.reduction.closeness import isclose
from lucid.public import publish as _publish

# what has an underscore is public, as in PyTorch, by another name or for `isinstance`
# pyright: reportUnusedClass=false, reportPrivateUsage=false

if TYPE_CHECKING:
    from lucid.tensor import Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


def _shown(bound: Any) -> str:
    """Return a bound as it is written in a message."""
    number = bound.item() if getattr(bound, "shape", None) == () else bound
    return f"{number:g}" if isinstance(number, int | float) else str(number)


# ---- numbers ----


class _Boolean(Constraint):
    is_discrete = True
    words = "of 0 and 1"

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Real(Constraint):
    words = "that are numbers"

    def check(self, value: Tensor) -> Tensor:
        return value == value  # noqa: PLR0124 - NaN alone differs from itself


class _Bounded(Constraint):
    """Base of those with bounds, that are named in the words."""

    wording: str

    @property
    def words(self) -> str:
        bounds = {name: getattr(self, name, None) for name in ("lower_bound", "upper_bound")}
        return self.wording.format(**{name: _shown(bound) for name, bound in bounds.items()})


class _Above(_Bounded):
    """Base of those with a lower bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(_Bounded):
    """Base of those with an upper bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    """Base of those with both bounds."""

    wording = "between {lower_bound} and {upper_bound}"

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _GreaterThan(_Above):
    wording = "above {lower_bound}"

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_Above):
    wording = "of {lower_bound} or more"

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _LessThan(_Below):
    wording = "below {upper_bound}"

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    wording = "from {lower_bound} to below {upper_bound}"

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


def _whole(value: Tensor) -> Tensor:
    return value % 1 == 0 if value.is_floating_point() else value == value  # noqa: PLR0124 - every element


class _IntegerInterval(_Between):
    is_discrete = True
    wording = "of whole numbers from {lower_bound} to {upper_bound}"

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value >= self.lower_bound) & (value <= self.upper_bound)


class _IntegerLessThan(_Below):
    is_discrete = True
    wording = "of whole numbers up to {upper_bound}"

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    is_discrete = True
    wording = "of whole numbers from {lower_bound} on"

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value >= self.lower_bound)


# ---- vectors ----


class _Event(Constraint):
    """Base of those of vectors and matrices."""

    def check(self, value: Tensor) -> Tensor:
        if value.dim() < self.event_dim:
            raise ShapeError(f"expected values of at least {self.event_dim} dimensions, got {value.dim()}")
        return self._met(value)

    def _met(self, value: Tensor) -> Tensor:
        raise NotImplementedError


def _floating(value: Tensor) -> Tensor:
    """Return whole numbers as float64, others as they are."""
    return value if value.is_floating_point() else value.double()


class _OneHot(_Event):
    is_discrete, event_dim = True, 1
    words = "of one 1 in each row, and 0"

    def _met(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Simplex(_Event):
    event_dim = 1
    words = "of 0 and more that sum to 1 in each row"

    def _met(self, value: Tensor) -> Tensor:
        value = _floating(value)
        # the rounding of a sum of n shares grows no faster than with the root of n
        close = max(1e-6, finfo(value.dtype).eps * (1 + value.shape[-1]) ** 0.5)
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < close)


class _Multinomial(_Event, _Below):
    is_discrete, event_dim = True, 1
    wording = "of counts that sum to at most {upper_bound} in each row"

    def _met(self, value: Tensor) -> Tensor:
        return (_whole(value) & (value >= 0)).all(-1) & (value.sum(-1) <= self.upper_bound)


# ---- matrices ----


class _LowerTriangular(_Event):
    event_dim = 2
    words = "that are lower triangular matrices"

    def _met(self, value: Tensor) -> Tensor:
        return all_of(value.tril() == value, 2)


class _LowerCholesky(_LowerTriangular):
    words = "that are lower triangular matrices with a diagonal above 0"

    def _met(self, value: Tensor) -> Tensor:
        return super()._met(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    words = "that are lower triangular matrices with a diagonal above 0 and rows of length 1"

    def _met(self, value: Tensor) -> Tensor:
        value = _floating(value)
        close = finfo(value.dtype).eps * value.shape[-1] * 10
        length = vector_norm(value.detach(), dim=-1)
        return super()._met(value) & ((length - 1).abs() <= close).all(-1)


class _Square(_Event):
    event_dim = 2
    words = "that are square matrices"

    def _met(self, value: Tensor) -> Tensor:
        return full(value.shape[:-2], value.shape[-2] == value.shape[-1], device=value.device)


class _Symmetric(_Square):
    words = "that are symmetric matrices"

    def _met(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super()._met(value)
        return all_of(isclose(value, value.mT, atol=1e-6), 2)


class _PositiveSemidefinite(_Symmetric):
    words = "that are positive semidefinite matrices"

    def _met(self, value: Tensor) -> Tensor:
        value = _floating(value)
        met = super()._met(value)
        return met & (eigvalsh(value) >= 0).all(-1) if value.shape[-2] == value.shape[-1] else met


class _PositiveDefinite(_Symmetric):
    words = "that are positive definite matrices"

    def _met(self, value: Tensor) -> Tensor:
        value = _floating(value)
        met = super()._met(value)
        finite = all_of(value.isfinite(), 2)
        return met & finite & (cholesky_ex(value).info == 0) if value.shape[-2] == value.shape[-1] else met


dependent = base._Dependent()
dependent_property = base._DependentProperty
independent = base._IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = base._Cat
stack = base._Stack

_publish(globals())
