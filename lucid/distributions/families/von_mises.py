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


def _log_bessel(x: Tensor, order: int) -> Tensor:
    """Return the logarithm of the modified Bessel function of order 0 or 1, for x of 0 or more."""
    near = x < FAR
    close = (i1 if order else i0)(where(near, x, 1.0)).log()
    far = where(near, FAR, x)
    series: Any = 1.0
    term: Any = 1.0
    for k in range(1, 16):
        term = term * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k) / far
        series = series + term
    return where(near, close, far - 0.5 * (2 * math.pi * far).log() + series.log())


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
        c = self.concentration
        return 1 - (_log_bessel(c, 1) - _log_bessel(c, 0)).exp()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            drawn = von_mises(self.concentration.expand(self._extended_shape(sample_shape)))
            return (drawn + math.pi + self.loc) % (2 * math.pi) - math.pi

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        c = self.concentration
        return c * (value - self.loc).cos() - math.log(2 * math.pi) - _log_bessel(c, 0)
