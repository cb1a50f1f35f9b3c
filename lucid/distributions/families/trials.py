"""Counts of trials that succeed or do not, and of events: Bernoulli and distributions derived from it, and Poisson."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import no_grad
from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution, ExponentialFamily
from lucid.distributions.implicit import log_gamma_density
from lucid.distributions.utils import lazy_property, log_chances, logits_to_probs, probs_to_logits
from lucid.errors import SettingError
from lucid.ops.activation.sigmoid import logsigmoid, sigmoid, softplus
from lucid.ops.base.promotion import promote_to_tensors
from lucid.ops.creation.ranges import arange
from lucid.ops.creation.rejection import binomial, poisson, standard_gamma
from lucid.ops.creation.sampling import bernoulli
from lucid.ops.elementwise.exponential import xlog1py, xlogy
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import lgamma
from lucid.ops.loss.probability_loss import binary_cross_entropy_with_logits
from lucid.ops.shape.broadcasting import broadcast_tensors
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor


class Chances(Distribution):
    """The base of distributions given by probabilities or their logarithms."""

    _begin: Any
    _by_logits: bool

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._begin(validate_args, probs, logits)

    def _chosen(self, probs: Tensor | float | None, logits: Tensor | float | None) -> dict[str, Any]:
        """Return the one of both that is given by its name; raise if it is not one."""
        if (probs is None) == (logits is None):
            raise SettingError(f"{type(self).__name__}: expected either probs or logits, got both or neither")
        self._by_logits = probs is None
        return {"logits": logits} if probs is None else {"probs": probs}

    @property
    def _param(self) -> Tensor:
        return vars(self)["logits" if "logits" in vars(self) and "probs" not in vars(self) else "probs"]

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return Size(self._param.shape)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)


def _times_log(count: Tensor | float, logit: Tensor) -> Tensor:
    """Return a count times ``log(sigmoid(logit))``, 0 of nothing that is impossible."""
    return count * logsigmoid(where((count == 0) & (logit == -math.inf), 0.0, logit))


def log_ways(n: Tensor, k: Tensor) -> Tensor:
    """Return the logarithm of the number of ways to choose k of n."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


class Odds(Chances):
    """The base of distributions that are given `probs` or `logits`; the other follows when it is asked for."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _begin(
        self, validate_args: bool | None, probs: Tensor | float | None, logits: Tensor | float | None, **others: Any
    ) -> None:
        self._set(validate_args, **others, **self._chosen(probs, logits))

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of success in one trial."""
        return logits_to_probs(self.logits, is_binary=True)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithm of the odds of success in one trial, finite."""
        return probs_to_logits(self.probs, is_binary=True)

    @property
    def _failed(self) -> Tensor:
        """The probability of failure, with its own digits near 0."""
        return sigmoid(-self.logits) if self._by_logits else 1 - self.probs

    def _log_chance(self, wins: Any, losses: Any, wide: bool = False) -> Tensor:
        """Return ``wins * log(p) + losses * log(1 - p)``, by float64 if `wide`."""
        if self._by_logits:
            logits = self.logits.double() if wide else self.logits
            return _times_log(wins, logits) + _times_log(losses, -logits)
        # not by the logits, which have no slope at the ends
        won, lost = log_chances(self.probs, wide)
        return wins * won + losses * lost

    def _counted(self, most: int, expand: bool) -> Tensor:
        """Return the whole numbers up to one, for each element of the batch or once."""
        like = self._param
        values = arange(1 + most, dtype=like.dtype, device=like.device).view(-1, *(1 for _ in self.batch_shape))
        return values.expand((1 + most, *self.batch_shape)) if expand else values


class Bernoulli(Odds, ExponentialFamily):
    """1 with probability `probs`, otherwise 0; or with ``sigmoid(logits)``, one of both is given.

    >>> import lucid
    >>> lucid.distributions.Bernoulli(probs=lucid.tensor([0.25, 0.5])).log_prob(lucid.tensor(1.0))
    tensor([-1.3863, -0.6931])
    """

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def _finite_logits(self) -> Tensor:
        """Return the logits, with the largest numbers in place of infinite ones, as 0 times these is 0."""
        most = finfo(self.logits.dtype).max
        return self.logits.clamp(-most, most) if self._by_logits else self.logits

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return where(self.probs == 0.5, float("nan"), (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * self._failed

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        def logs(value: Tensor) -> Tensor:
            if not self._by_logits:
                return self._log_chance(value, 1 - value)
            logits, wanted = broadcast_tensors(*promote_to_tensors(self._finite_logits(), value))
            return -binary_cross_entropy_with_logits(logits, wanted, reduction="none")

        return self._density(value, logs)

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self._finite_logits(), self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._counted(1, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return softplus(natural_params[0])


class Binomial(Odds):
    """How many of `total_count` trials succeed, each with probability `probs`, or ``sigmoid(logits)``; one is given.

    The probability of k is ``n! / (k! * (n - k)!) * p**k * (1 - p)**(n - k)``.

    >>> import lucid
    >>> lucid.distributions.Binomial(2, probs=lucid.tensor(0.5)).log_prob(lucid.tensor(1.0)).exp()
    tensor(0.5000)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    total_count: Tensor

    def __init__(
        self,
        total_count: Tensor | float = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._begin(validate_args, probs, logits, total_count=total_count)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        """Whole numbers from 0 to `total_count`."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * self._failed

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        def logs(value: Tensor) -> Tensor:
            # large logarithms cancel
            n, k = self.total_count.double(), value.double()
            return (log_ways(n, k) + self._log_chance(k, n - k, wide=True)).to(value.dtype)

        return self._density(value, logs)

    def entropy(self) -> Tensor:
        logs = self.log_prob(self.enumerate_support(expand=False))
        return -(logs.exp() * where(logs == -math.inf, 0.0, logs)).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        counts = self.total_count
        most = int(counts.max().item()) if counts.numel() else 0
        if not (counts == most).all().item():
            raise NotImplementedError("Binomial: values are enumerated of one total_count for all the batch")
        return self._counted(most, expand)


class Geometric(Odds):
    """How many trials fail before the first that succeeds: k with probability ``(1 - p)**k * p``.

    `probs`, above 0 and at most 1, or `logits` are given.

    >>> import lucid
    >>> lucid.distributions.Geometric(probs=lucid.tensor(0.5)).log_prob(lucid.tensor(2.0)).exp()
    tensor(0.1250)
    """

    support = constraints.nonnegative_integer

    def _begin(
        self, validate_args: bool | None, probs: Tensor | float | None, logits: Tensor | float | None, **others: Any
    ) -> None:
        super()._begin(validate_args, probs, logits, **others)
        if "probs" in vars(self):
            self._check("probs", self.probs, constraints.greater_than(0.0))

    @property
    def mean(self) -> Tensor:
        return self._failed / self.probs

    @property
    def mode(self) -> Tensor:
        return self.probs * 0

    @property
    def variance(self) -> Tensor:
        return self._failed / self.probs / self.probs

    @property
    def stddev(self) -> Tensor:
        return self._failed.sqrt() / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            # of a rate of failure q the count is above k with probability q**k
            return (self._exponential(sample_shape, self.logits) / -logsigmoid(-self.logits)).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        return self._density(value, lambda value: self._log_chance(1.0, value))

    def _log_chance(self, wins: Any, losses: Any, wide: bool = False) -> Tensor:
        if self._by_logits:
            return super()._log_chance(wins, losses, wide)
        return xlogy(wins, self.probs) + xlog1py(losses, -self.probs)

    def entropy(self) -> Tensor:
        return -self._log_chance(self.probs, self._failed) / self.probs


class NegativeBinomial(Odds):
    """How many trials succeed, each with probability `probs`, before `total_count` have failed.

    The probability of k is ``gamma(n + k) / (k! * gamma(n)) * (1 - p)**n * p**k``, with n of 0 or more, which need not
    be whole; `probs`, from 0 to below 1, or `logits` are given.

    >>> import lucid
    >>> lucid.distributions.NegativeBinomial(2.0, probs=lucid.tensor(0.5)).log_prob(lucid.tensor(1.0)).exp()
    tensor(0.2500)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    total_count: Tensor

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._begin(validate_args, probs, logits, total_count=total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @property
    def stddev(self) -> Tensor:
        return self.mean.sqrt() / (-self.logits).sigmoid().sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            rate = standard_gamma(self.total_count.to(self.logits.dtype).expand(shape)) * self.logits.exp()
            return poisson(where(self.total_count > 0, rate, 0.0))

    def log_prob(self, value: Tensor) -> Tensor:
        def logs(value: Tensor) -> Tensor:
            # large logarithms cancel
            n, k = self.total_count.double(), value.double()
            none = n + k == 0
            ways = lgamma(where(none, 1.0, n + k)) - lgamma(1 + k) - lgamma(where(none, 1.0, n))
            return (ways + self._log_chance(k, n, wide=True)).to(value.dtype)

        return self._density(value, logs)


class Poisson(ExponentialFamily):
    """The number of events if `rate` of them, 0 or more, are expected: k with ``rate**k * exp(-rate) / k!``.

    >>> import lucid
    >>> lucid.distributions.Poisson(lucid.tensor(2.0)).log_prob(lucid.tensor([0.0, 1.0]))
    tensor([-2.0000, -1.3069])
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    rate: Tensor

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        # that of a gamma variate, at the rate
        return self._density(value, lambda value: log_gamma_density(value + 1, self.rate))

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return natural_params[0].exp()
