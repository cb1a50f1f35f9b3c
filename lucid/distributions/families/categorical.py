"""Choices of one of several: as an index, as a vector, and counts of them."""

from __future__ import annotations

import math
from numbers import Integral
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import no_grad
from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution
from lucid.distributions.families.trials import Binomial, Chances
from lucid.distributions.utils import lazy_property, logits_to_probs, named_tensors, probs_to_logits, value_beside
from lucid.errors import ArgumentError, SettingError
from lucid.ops.activation.softmax import log_softmax
from lucid.ops.creation.ranges import arange, eye
from lucid.ops.creation.sampling import multinomial
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import lgamma
from lucid.ops.index.gather import one_hot
from lucid.ops.reduction.norms import logsumexp
from lucid.ops.shape.broadcasting import broadcast_tensors
from lucid.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Weights(constraints.Constraint):
    event_dim = 1
    words = "of 0 and more, finite, not all 0 in a row"

    def check(self, value: Tensor) -> Tensor:
        total = value.sum(-1)
        return (value >= 0).all(-1) & (total > 0) & (total < math.inf)


class _Logits(constraints.Constraint):
    event_dim = 1
    words = "that are numbers below infinity, not all -infinity in a row"

    def check(self, value: Tensor) -> Tensor:
        return (value < math.inf).all(-1) & (value.amax(-1) > -math.inf)


class Categorical(Chances):
    """Indices of the last dimension, drawn with probabilities proportional to `probs`, or by ``softmax(logits)``.

    One of both is given; `probs` are 0 or more, and not all 0 in a row. What is kept is normalised. A draw is where the
    running sum of `probs` passes a uniform number of float64, one for each draw, row after row.

    >>> import lucid
    >>> choice = lucid.distributions.Categorical(probs=lucid.tensor([1.0, 1.0, 2.0]))
    >>> choice.log_prob(lucid.tensor(2)).item() == choice.probs.log()[2].item()
    True
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def _begin(self, validate_args: bool | None, probs: Tensor | float | None, logits: Tensor | float | None) -> None:
        name = type(self).__name__
        (param,) = named_tensors(name, self._chosen(probs, logits))
        if param.dim() < 1 or not param.shape[-1]:
            raise SettingError(f"{name}: expected at least one dimension, with events, got shape {tuple(param.shape)}")
        self._num_events = param.shape[-1]
        # looked at before they are normalised, so that a message shows what was given
        Distribution.__init__(self, param.shape[:-1], validate_args=validate_args)
        if logits is None:
            self._check("probs", param, _Weights())
            self.probs = param / param.sum(-1, keepdim=True)
        else:
            self._check("logits", param, _Logits())
            self.logits = param - logsumexp(param, -1, keepdim=True)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """Whole numbers below the number of events."""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities, finite."""
        return probs_to_logits(self.probs)

    @property
    def mean(self) -> Tensor:
        """NaN: the names of choices have no mean."""
        return self._nan()

    @property
    def mode(self) -> Tensor:
        return self._param.argmax(-1)

    @property
    def variance(self) -> Tensor:
        """NaN: the names of choices have no variance."""
        return self._nan()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            count = math.prod(shape[: len(shape) - len(self.batch_shape)])
            if not count or not rows.shape[0]:
                return self.probs.new_empty(shape).long()
            return multinomial(rows, count, True).t().reshape(shape)

    def _beside(self, value: Tensor) -> Tensor:
        # an index stays one
        return value_beside(type(self).__name__, value) if isinstance(value, Tensor) else super()._beside(value)

    def log_prob(self, value: Tensor) -> Tensor:
        def logs(value: Tensor) -> Tensor:
            index, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
            return logits.gather(-1, index[..., :1]).squeeze(-1)

        return self._density(value, logs)

    def entropy(self) -> Tensor:
        return -(where(self.logits == -math.inf, 0.0, self.logits) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events, device=self._param.device).view(-1, *(1 for _ in self.batch_shape))
        return values.expand((self._num_events, *self.batch_shape)) if expand else values


class OfCategorical(Chances):
    """The base of distributions drawn by a `Categorical`, with its parameters as their own."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _categorical: Categorical

    def _begin(self, validate_args: bool | None, probs: Tensor | float | None, logits: Tensor | float | None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical.param_shape
        Distribution.__init__(self, shape[:-1], shape[-1:], validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def _param(self) -> Tensor:
        return self._categorical._param  # noqa: SLF001 - its own  # pyright: ignore[reportPrivateUsage]

    def _one_hot(self, index: Tensor) -> Tensor:
        return one_hot(index, self.event_shape[0]).to(self._param.dtype)


class OneHotCategorical(OfCategorical):
    """Vectors of 0 with one 1, at the index that a `Categorical` of the same `probs` or `logits` draws.

    >>> import lucid
    >>> choice = lucid.distributions.OneHotCategorical(probs=lucid.tensor([1.0, 1.0, 2.0]))
    >>> choice.log_prob(lucid.tensor([0.0, 0.0, 1.0])).exp()
    tensor(0.5000)
    """

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        return self._density(value, lambda value: self._categorical.log_prob(value.argmax(-1)))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n, like = self.event_shape[0], self._param
        values = eye(n, dtype=like.dtype, device=like.device).view(n, *(1 for _ in self.batch_shape), n)
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A `OneHotCategorical` with draws that have the gradient of their probabilities.

    Bengio, Léonard, Courville: Estimating or propagating gradients through stochastic neurons (2013).

    >>> import lucid
    >>> logits = lucid.zeros(3, requires_grad=True)
    >>> draw = lucid.distributions.OneHotCategoricalStraightThrough(logits=logits).rsample()
    >>> draw[0].backward()
    >>> logits.grad
    tensor([ 0.2222, -0.1111, -0.1111])
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())


class Multinomial(OfCategorical):
    """How often each of several choices is drawn in `total_count` draws of a `Categorical`.

    The probability of counts k is ``n! / prod(k!) * prod(p**k)``; `total_count` is one whole number, and `probs` or
    `logits` are given.

    >>> import lucid
    >>> counts = lucid.distributions.Multinomial(2, probs=lucid.tensor([0.5, 0.5]))
    >>> counts.log_prob(lucid.tensor([1.0, 1.0])).exp()
    tensor(0.5000)
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, Integral):
            raise NotImplementedError(f"Multinomial: total_count: expected one whole number, got {total_count!r}")
        if total_count < 0:
            raise ArgumentError(f"Multinomial: total_count: expected a whole number from 0 on, got {total_count}")
        self.total_count = int(total_count)
        self._begin(validate_args, probs, logits)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that sum to at most `total_count`."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            drawn = shape[: len(shape) - len(self.batch_shape) - 1]
            index = self._categorical.sample((self.total_count, *drawn))
            counts = self._param.new_zeros(shape)
            places = index.movedim(0, -1)
            return counts.scatter_add(-1, places, self._param.new_ones(()).expand(places.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        def logs(value: Tensor) -> Tensor:
            # large logarithms cancel
            logits, counts = broadcast_tensors(self._wide_logits(), value.double())
            sure = (counts == 0) & (logits == -math.inf)
            powers = where(sure, 0.0, logits) * counts
            return (lgamma(counts.sum(-1) + 1) - lgamma(counts + 1).sum(-1) + powers.sum(-1)).to(value.dtype)

        return self._density(value, logs)

    def entropy(self) -> Tensor:
        n = self.total_count
        logits = self._wide_logits()
        own = n * Categorical(logits=logits, validate_args=False).entropy() - math.lgamma(n + 1)
        each = Binomial(n, probs=logits.exp(), validate_args=False)
        counts = each.enumerate_support(expand=False)[1:]
        lost = (each.log_prob(counts).exp() * lgamma(counts + 1)).sum((0, -1)) if n else 0.0
        return (own + lost).to(self._param.dtype)

    def _wide_logits(self) -> Tensor:
        """Return the logarithms of the probabilities with the digits of float64."""
        choice = self._categorical
        if choice._by_logits:  # noqa: SLF001 - its own  # pyright: ignore[reportPrivateUsage]
            return log_softmax(choice.logits.double(), -1)
        return log_softmax(choice.probs.double().clamp(min=finfo(choice.probs.dtype).tiny).log(), -1)
