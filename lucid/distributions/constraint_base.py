"""The base of constraints, constraints that depend on a distribution's parameters, and those composed of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.distributions.utils import count_of, reading
from lucid.errors import SettingError, ShapeError
from lucid.ops.shape.broadcasting import broadcast_tensors
from lucid.ops.shape.joining import cat, stack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.tensor import Tensor

# what has an underscore is public, as in PyTorch, by another name or for `isinstance`
# pyright: reportUnusedClass=false


class Constraint:
    """The base of constraints: a set of values, with `check` to test each event for membership.

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


def all_of(met: Tensor, dims: int) -> Tensor:
    """Return whether a condition holds in all of the last dimensions."""
    return met.all(tuple(range(-dims, 0))) if dims else met


def of_pieces(
    terms: Sequence[Tensor],
    events: Sequence[int],
    dim: int,
    event_dim: int,
    reduced: Callable[[Tensor, int], Tensor],
    joined: Callable[[Sequence[Tensor], int], Tensor],
) -> Tensor:
    """Return the sum, or whether all hold, over the pieces along a dimension that make up each event.

    Parameters
    ----------
    terms : sequence of Tensor
        Of each piece, without the dimensions of its events.
    events : sequence of int
        How many these are.
    dim : int
        That of the pieces, counted from the end.
    event_dim : int
        How many dimensions an event of all pieces has.
    reduced : callable
        Gives the sum, or whether all hold, over some last dimensions.
    joined : callable
        Puts together pieces that are events of their own.
    """
    within = dim + event_dim >= 0
    inner = max(events) if within else event_dim
    wide = [reduced(term, inner - own) for term, own in zip(terms, events, strict=True)]
    return reduced(stack(broadcast_tensors(*wide), -1), 1) if within else joined(wide, dim + event_dim)


def from_end(dim: int, dims: int) -> int:
    """Return a dimension counted from the end."""
    return dim - dims if dim >= 0 else dim


# ---- those that depend on a distribution's parameters ----


class _Dependent(Constraint):
    """A constraint known for an instance only: of a class neither the set nor, unless given, these two numbers are."""

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
    """A property of instances, with a dependent constraint in its place on the class."""

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


# ---- of several others ----


class _OfBase(Constraint):
    """The base of constraints that ask the same as `base_constraint`, of values of another shape."""

    base_constraint: Constraint
    is_discrete = reading("base_constraint.is_discrete")
    event_dim = reading("base_constraint.event_dim")
    words = reading("base_constraint.words")

    def _check_dim(self, value: Tensor, dims: int) -> None:
        if dims < 0:
            raise ShapeError(f"expected values of at least {self.event_dim} dimensions, got {value.dim()}")


class _IndependentConstraint(_OfBase):
    """A constraint on some dimensions together, before those of the base constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = _constraint(base_constraint, "independent")
        name = "independent: reinterpreted_batch_ndims"
        self.reinterpreted_batch_ndims = count_of(name, reinterpreted_batch_ndims)

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        met = self.base_constraint.check(value)
        self._check_dim(value, met.dim() - self.reinterpreted_batch_ndims)
        return all_of(met, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_OfBase):
    """The constraint on a value for all components of a mixture: that of the components' distribution."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = _constraint(base_constraint, "MixtureSameFamilyConstraint")

    def check(self, value: Tensor) -> Tensor:
        kept = value.dim() - self.event_dim
        self._check_dim(value, kept)
        met = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return all_of(met, met.dim() - kept)

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

    def _all(self, value: Tensor, pieces: Sequence[Tensor], joined: Any) -> Tensor:
        """Return of each event whether all of its pieces are in their sets."""
        met = [each.check(piece) for each, piece in zip(self.cseq, pieces, strict=True)]
        events = [each.event_dim for each in self.cseq]
        return of_pieces(met, events, from_end(self.dim, value.dim()), self.event_dim, all_of, joined)


class _Cat(_Pieces):
    """A constraint for each of some pieces, `lengths` long, of a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise SettingError(f"cat: expected a length for each of {len(self.cseq)} constraints, got {self.lengths}")

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        return self._all(value, value.split(self.lengths, self.dim), cat)


class _Stack(_Pieces):
    """A constraint for each index of a dimension."""

    @property
    def event_dim(self) -> int:
        # counted from the start it is one of the batch
        return super().event_dim + (self.dim < 0)

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        return self._all(value, value.unbind(self.dim), stack)
