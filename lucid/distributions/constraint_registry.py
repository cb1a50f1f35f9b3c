"""Registries of transforms from real numbers to a constraint.

`biject_to` gives one that has an inverse and a determinant, for densities; `transform_to` one that is good for
optimizing, and may have more numbers than it needs. Both are used as ``transform_to(constraint)(x)``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lucid.distributions import constraints, transforms
from lucid.distributions.transformations.structural import lengths_after
from lucid.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.distributions.constraints import Constraint
    from lucid.distributions.transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table of transforms by the class of a constraint, extended by `register`; called, it returns a transform.

    >>> import lucid
    >>> from lucid.distributions import constraints, transform_to
    >>> transform_to(constraints.interval(1.0, 3.0))(lucid.tensor(0.0))
    tensor(2.)
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Callable[[Any], Transform]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Let ``factory(constraint)`` make the transform of constraints of a class, or of this one's; a decorator."""
        if factory is None:
            return functools.partial(self.register, constraint)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise ArgumentError(f"register: constraint: expected a Constraint or a class of them, got {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"there is no transform to {constraint!r}: register one of its class")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Any], Any]:
    """Register a factory, called with the registry too, in both registries."""

    def add(factory: Any) -> Any:
        for registry in (biject_to, transform_to):
            for kind in kinds:
                registry.register(kind, functools.partial(factory, registry=registry))
        return factory

    return add


@_both(constraints.real)
def _real(constraint: Any, registry: Any) -> Transform:
    return transforms.identity_transform


@_both(constraints.independent)
def _independent(constraint: Any, registry: Any) -> Transform:
    base = registry(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@_both(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint: Any, registry: Any) -> Transform:
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.less_than)
def _below(constraint: Any, registry: Any) -> Transform:
    shift = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any, registry: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    squash = transforms.SigmoidTransform()
    if isinstance(low, int | float) and isinstance(high, int | float) and (low, high) == (0, 1):
        return squash
    return transforms.ComposeTransform([squash, transforms.AffineTransform(low, high - low)])


@_both(constraints.corr_cholesky)
def _corr_cholesky(constraint: Any, registry: Any) -> Transform:
    return transforms.CorrCholeskyTransform()


@_both(constraints.cat)
def _cat(constraint: Any, registry: Any) -> Transform:
    parts = [registry(each) for each in constraint.cseq]
    # the lengths are those of what comes out
    lengths = lengths_after([part.inv for part in parts], constraint.lengths, constraint.dim)
    return transforms.CatTransform(parts, constraint.dim, lengths)


@_both(constraints.stack)
def _stack(constraint: Any, registry: Any) -> Transform:
    return transforms.StackTransform([registry(each) for each in constraint.cseq], constraint.dim)


def _of(kind: Any) -> Callable[[Any], Transform]:
    """Return a factory of a transform without settings."""
    return lambda _: kind()


biject_to.register(constraints.simplex, _of(transforms.StickBreakingTransform))
transform_to.register(constraints.simplex, _of(transforms.SoftmaxTransform))
transform_to.register(constraints.lower_cholesky, _of(transforms.LowerCholeskyTransform))
transform_to.register(constraints.positive_definite, _of(transforms.PositiveDefiniteTransform))
transform_to.register(constraints.positive_semidefinite, _of(transforms.PositiveDefiniteTransform))
