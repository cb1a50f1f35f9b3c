"""Distributions of draws of one of several components."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.autograd.modes.state import no_grad
from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution
from lucid.distributions.families.categorical import Categorical
from lucid.distributions.families.composed import checked_distribution
from lucid.distributions.utils import reading
from lucid.errors import ArgumentError, ShapeError
from lucid.ops.activation.softmax import log_softmax
from lucid.ops.base.dims import common_shape
from lucid.ops.reduction.norms import logsumexp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.distributions.constraints import Constraint
    from lucid.tensor import Tensor

# components have their own parts under an underscore
# pyright: reportPrivateUsage=false


class MixtureSameFamily(Distribution):
    """Draws of one of several components, chosen by `mixture_distribution`, a `Categorical`.

    The components are the last batch dimension of `component_distribution`. The density is the sum of
    ``weight * density`` over them.

    >>> import lucid
    >>> from lucid.distributions import Categorical, MixtureSameFamily, Normal
    >>> mixture = MixtureSameFamily(Categorical(lucid.ones(2)), Normal(lucid.tensor([-1.0, 1.0]), 1.0))
    >>> mixture.mean, mixture.variance
    (tensor(0.), tensor(2.))
    """

    arg_constraints = {}
    has_rsample = False
    mixture_distribution: Categorical = reading(
        "_mixture_distribution", "The distribution of the index of the component."
    )
    component_distribution: Distribution = reading("_component_distribution", "The components.")

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(
                "MixtureSameFamily: mixture_distribution: expected a Categorical, got "
                f"{type(mixture_distribution).__name__}"
            )
        parts = checked_distribution(component_distribution, "MixtureSameFamily: component_distribution")
        weights, batch = mixture_distribution, tuple(parts.batch_shape)
        count = weights.param_shape[-1]
        if not batch or batch[-1] != count:
            raise ShapeError(f"MixtureSameFamily: expected {count} components in the last batch dimension, got {batch}")
        chosen = tuple(weights.batch_shape)
        if any(a != b and 1 not in {a, b} for a, b in zip(chosen[::-1], batch[-2::-1], strict=False)):
            raise ShapeError(
                f"MixtureSameFamily: expected batch shapes that broadcast, got {chosen} of the mixture and "
                f"{batch[:-1]} of the components"
            )
        shape = common_shape(chosen, batch[:-1])
        if shape != batch[:-1]:
            parts = parts.expand((*shape, count))
        self._component_distribution, self._mixture_distribution = parts, weights
        self._event_ndims = len(parts.event_shape)
        super().__init__(shape, parts.event_shape, validate_args)

    @constraints.dependent_property
    def support(self) -> Constraint:
        """That of the components."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _beside(self, value: Tensor) -> Tensor:
        return self._component_distribution._beside(value)  # noqa: SLF001 - a distribution of its own

    def _pad(self, x: Tensor) -> Tensor:
        """Return a value once for all components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _weights(self) -> Tensor:
        probs = self._mixture_distribution.probs
        return probs.reshape(*probs.shape, *(1 for _ in range(self._event_ndims)))

    def _averaged(self, value: Tensor) -> Tensor:
        return (self._weights() * value).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._averaged(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        apart = self._component_distribution.mean - self._pad(self.mean)
        return self._averaged(self._component_distribution.variance) + self._averaged(apart.square())

    def cdf(self, value: Tensor) -> Tensor:
        if self._event_ndims:
            raise self._none("cdf", ": its components draw vectors")
        value = self._beside(value)
        return (self._component_distribution.cdf(self._pad(value)) * self._mixture_distribution.probs).sum(-1)

    def _above(self, value: Tensor) -> Tensor:
        each = self._component_distribution._above(self._pad(value))  # noqa: SLF001 - one of its own kind
        return (each * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        logs = self._component_distribution.log_prob(self._pad(value))
        return logsumexp(logs + log_softmax(self._mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            drawn = self._component_distribution.sample(sample_shape)
            index = self._mixture_distribution.expand(self.batch_shape).sample(sample_shape)
            place = index.reshape(*index.shape, 1, *(1 for _ in range(self._event_ndims)))
            place = place.expand(*index.shape, 1, *self.event_shape)
            return drawn.gather(-1 - self._event_ndims, place).squeeze(-1 - self._event_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution!r},\n  {self._component_distribution!r})"
