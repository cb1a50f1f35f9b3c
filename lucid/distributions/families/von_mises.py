"""Von Mises' distribution of angles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.state import no_grad
from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution
from lucid.ops.creation.rejection import von_mises
from lucid.ops.elementwise.selection import where
from lucid.ops.elementwise.special import i0, i1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = ["VonMises"]

# From here on Hankel's asymptotic series of Bessel functions is exact to the last place.
FAR = 30.0


def _terms(x: Tensor, order: int) -> list[Tensor]:
    """Return the terms after 1 of the series of ``I(x) * exp(-x) * sqrt(2 * pi * x)``."""
    terms: list[Any] = [1.0]
    for k in range(1, 16):
        terms.append(terms[-1] * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k) / x)
    return terms[1:]


def _log_bessel(x: Tensor) -> Tensor:
    """Return the logarithm of ``i0(x) * exp(-x)`` for x of 0 or more, also of those with an infinite i0."""
    wide = x.double()
    near = wide < FAR
    low = where(near, wide, 1.0)
    far = where(near, FAR, wide)
    series: Any = sum(_terms(far, 0))
    return where(near, i0(low).log() - low, series.log1p() - 0.5 * (2 * math.pi * far).log()).to(x.dtype)


def _lack(x: Tensor) -> Tensor:
    """Return ``1 - i1(x) / i0(x)`` for x of 0 or more; of a large x by the differences of the terms."""
    wide = x.double()
    near = wide < FAR
    low = where(near, wide, 1.0)
    first, second = (_terms(where(near, FAR, wide), order) for order in (0, 1))
    gap: Any = sum(a - b for a, b in zip(first, second, strict=True))
    whole: Any = 1 + sum(first)
    return where(near, 1 - i1(low) / i0(low), gap / whole).to(x.dtype)


class VonMises(Distribution):
    """Angles from -pi to pi around `loc` with the density ``exp(c * cos(x - loc)) / (2 * pi * i0(c))``.

    c, the `concentration`, is above 0. The mean and the variance are those on the circle.

    >>> import lucid
    >>> lucid.distributions.VonMises(lucid.tensor(0.0), 1.0).log_prob(lucid.tensor(0.0))
    tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, concentration=concentration)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return _lack(self.concentration)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            drawn = von_mises(self.concentration.expand(self._extended_shape(sample_shape)))
            return (drawn + math.pi + self.loc) % (2 * math.pi) - math.pi

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        c = self.concentration
        # 1 - cos, also of small angles
        fall = 2 * (0.5 * (value - self.loc)).sin().square()
        return -c * fall - math.log(2 * math.pi) - _log_bessel(c)
