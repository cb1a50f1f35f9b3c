"""Which values a parameter or a draw can have: by PyTorch's names, each with `check`, which says it of each event.

`event_dim` is how many last dimensions hold one event, and `check` returns a boolean tensor of the shape before these.
`is_discrete` tells whether the values can be counted. A constraint whose bounds are tensors broadcasts them. `positive`
and others without bounds are objects, `interval` and others with bounds are classes. `cat` and `stack` hold for pieces
of a dimension one constraint each, `independent` for further dimensions of an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.backend.limits import finfo
from lucid.errors import SettingError, ShapeError
from lucid.ops.creation.filling import full
from lucid.ops.decomposition.matrix_norms import vector_norm
from lucid.ops.decomposition.spectral import eigvalsh
from lucid.ops.decomposition.triangular import cholesky_ex
from lucid.ops.reduction.closeness import isclose
from lucid.ops.shape.joining import cat as joined
from lucid.ops.shape.joining import stack as stacked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """The base of constraints: a set of values, of which `check` says whether each event is in it.

    >>> import lucid
    >>> lucid.distributions.constraints.positive.check(lucid.tensor([1.0, -1.0]))
    tensor([ True, False])
    """

    is_discrete: Any = False
    event_dim: Any = 0
    words = ""
    """What is asked for, as it follows "expected scale" in a message."""

    def check(self, value: Tensor) -> Tensor:
        """Return of each event whether it is in the set."""
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__.removeprefix('_')}({shown})"


def _constraint(value: object, name: str) -> Constraint:
    if not isinstance(value, Constraint):
        raise SettingError(f"{name}: expected a Constraint, got {type(value).__name__}")
    return value


def _shown(bound: Any) -> str:
    """Return a bound as it is written in a message."""
    number = bound.item() if getattr(bound, "shape", None) == () else bound
    return f"{number:g}" if isinstance(number, int | float) else str(number)


def _all(met: Tensor, dims: int) -> Tensor:
    """Return whether a condition holds in all of the last dimensions."""
    return met.reshape(*met.shape[: met.dim() - dims], -1).all(-1) if dims else met


# ---- those that depend on a distribution's parameters ----


class _Dependent(Constraint):
    """What only an instance knows: of a class neither the set nor, unless it says so, these two numbers are known."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _known(self, name: str) -> Any:
        value = vars(self)[f"_{name}"]
        if value is NotImplemented:
            raise NotImplementedError(f"{name}: only an instance knows it")
        return value

    @property
    def is_discrete(self) -> bool:
        return self._known("is_discrete")

    @property
    def event_dim(self) -> int:
        return self._known("event_dim")

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise SettingError("a dependent constraint knows no set: ask an instance of the distribution for its own")

    def __repr__(self) -> str:
        return "Dependent()"


class _DependentProperty(property, _Dependent):
    """A property of instances whose class has a dependent constraint in its place."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Constraint) -> bool:
    """Tell whether only an instance of the distribution knows the set.

    >>> from lucid.distributions import Uniform, constraints
    >>> constraints.is_dependent(Uniform.support), constraints.is_dependent(Uniform(0.0, 1.0).support)
    (True, False)
    """
    return isinstance(constraint, _Dependent)


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


class _Above(Constraint):
    """Base of those with a lower bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(Constraint):
    """Base of those with an upper bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(Constraint):
    """Base of those with both bounds."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    @property
    def words(self) -> str:
        return f"between {_shown(self.lower_bound)} and {_shown(self.upper_bound)}"


class _GreaterThan(_Above):
    @property
    def words(self) -> str:
        return f"above {_shown(self.lower_bound)}"

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_Above):
    @property
    def words(self) -> str:
        return f"of {_shown(self.lower_bound)} or more"

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _LessThan(_Below):
    @property
    def words(self) -> str:
        return f"below {_shown(self.upper_bound)}"

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    @property
    def words(self) -> str:
        return f"from {_shown(self.lower_bound)} to below {_shown(self.upper_bound)}"

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


def _whole(value: Tensor) -> Tensor:
    return value % 1 == 0 if value.is_floating_point() else value == value  # noqa: PLR0124 - every element


class _IntegerInterval(_Between):
    is_discrete = True

    @property
    def words(self) -> str:
        return f"of whole numbers from {_shown(self.lower_bound)} to {_shown(self.upper_bound)}"

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value >= self.lower_bound) & (value <= self.upper_bound)


class _IntegerLessThan(_Below):
    is_discrete = True

    @property
    def words(self) -> str:
        return f"of whole numbers up to {_shown(self.upper_bound)}"

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    is_discrete = True

    @property
    def words(self) -> str:
        return f"of whole numbers from {_shown(self.lower_bound)} on"

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value >= self.lower_bound)


# ---- vectors ----


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1
    words = "of one 1 in each row, and 0"

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1
    words = "of 0 and more that sum to 1 in each row"

    def check(self, value: Tensor) -> Tensor:
        # the rounding of a sum of n shares grows no faster than with the root of n
        close = max(1e-6, finfo(value.dtype).eps * (1 + value.shape[-1]) ** 0.5)
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < close)


class _Multinomial(_Below):
    is_discrete, event_dim = True, 1

    @property
    def words(self) -> str:
        return f"of counts that sum to at most {_shown(self.upper_bound)} in each row"

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


# ---- matrices ----


class _LowerTriangular(Constraint):
    event_dim = 2
    words = "that are lower triangular matrices"

    def check(self, value: Tensor) -> Tensor:
        return _all(value.tril() == value, 2)


class _LowerCholesky(_LowerTriangular):
    words = "that are lower triangular matrices with a diagonal above 0"

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    words = "that are lower triangular matrices with a diagonal above 0 and rows of length 1"

    def check(self, value: Tensor) -> Tensor:
        close = finfo(value.dtype).eps * value.shape[-1] * 10
        length = vector_norm(value.detach(), dim=-1)
        return super().check(value) & ((length - 1).abs() <= close).all(-1)


class _Square(Constraint):
    event_dim = 2
    words = "that are square matrices"

    def check(self, value: Tensor) -> Tensor:
        return full(value.shape[:-2], value.shape[-2] == value.shape[-1], device=value.device)


class _Symmetric(_Square):
    words = "that are symmetric matrices"

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return _all(isclose(value, value.mT, atol=1e-6), 2)


class _PositiveSemidefinite(_Symmetric):
    words = "that are positive semidefinite matrices"

    def check(self, value: Tensor) -> Tensor:
        met = super().check(value)
        return met & (eigvalsh(value) >= 0).all(-1) if value.shape[-2] == value.shape[-1] else met


class _PositiveDefinite(_Symmetric):
    words = "that are positive definite matrices"

    def check(self, value: Tensor) -> Tensor:
        met = super().check(value)
        return met & (cholesky_ex(value).info == 0) if value.shape[-2] == value.shape[-1] else met


# ---- of several others ----


class _IndependentConstraint(Constraint):
    """What holds of all of some dimensions before those of the base constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = _constraint(base_constraint, "independent")
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise SettingError(
                "independent: reinterpreted_batch_ndims: expected a whole number from 0 on, got "
                f"{reinterpreted_batch_ndims!r}"
            )
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    @property
    def words(self) -> str:
        return self.base_constraint.words

    def check(self, value: Tensor) -> Tensor:
        met = self.base_constraint.check(value)
        if met.dim() < self.reinterpreted_batch_ndims:
            raise ShapeError(f"expected values of at least {self.event_dim} dimensions, got {value.dim()}")
        return _all(met, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What holds of a value for each component of a mixture: that of the components' distribution."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = _constraint(base_constraint, "MixtureSameFamilyConstraint")

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim

    @property
    def words(self) -> str:
        return self.base_constraint.words

    def check(self, value: Tensor) -> Tensor:
        kept = value.dim() - self.event_dim
        if kept < 0:
            raise ShapeError(f"expected values of at least {self.event_dim} dimensions, got {value.dim()}")
        met = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return _all(met, met.dim() - kept)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Pieces(Constraint):
    """Base of `cat` and `stack`."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq = [_constraint(each, type(self).__name__.removeprefix("_").lower()) for each in cseq]
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        return any(each.is_discrete for each in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(each.event_dim for each in self.cseq)

    @property
    def words(self) -> str:
        return f"in pieces {', '.join(each.words for each in self.cseq)}"

    def _check_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise ShapeError(f"expected values with a dimension {self.dim}, got {value.dim()} dimensions")


class _Cat(_Pieces):
    """A constraint for each of some pieces, `lengths` long, of a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise SettingError(f"cat: expected a length for each of {len(self.cseq)} constraints, got {self.lengths}")

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        pieces = value.split(self.lengths, self.dim)
        return joined([each.check(piece) for each, piece in zip(self.cseq, pieces, strict=True)], self.dim)


class _Stack(_Pieces):
    """A constraint for each index of a dimension."""

    @property
    def event_dim(self) -> int:
        most = super().event_dim
        return most + 1 if self.dim + most < 0 else most

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        pieces = value.unbind(self.dim)
        return stacked([each.check(piece) for each, piece in zip(self.cseq, pieces, strict=True)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
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
cat = _Cat
stack = _Stack
