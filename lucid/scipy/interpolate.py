"""`scipy.interpolate`, differentiated: see `lucid.scipy`.

The classes here have SciPy's names and parameters. An object that is made of plain arrays is SciPy's own inside, and
has its methods; it may be called with recorded places all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.numpy.border import names_of, wrapped
from lucid.scipy.rules.curves.bsplines import BSpline
from lucid.scipy.rules.curves.cubic import CubicSpline
from lucid.scipy.rules.curves.piecewise import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    PchipInterpolator,
    PPoly,
    by_scipys,
)
from lucid.scipy.rules.curves.tables import RegularGridInterpolator, interp1d

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Akima1DInterpolator", "BSpline", "CubicHermiteSpline", "CubicSpline", "PPoly", "PchipInterpolator",
    "RegularGridInterpolator", "interp1d",
]  # fmt: skip


def _returning(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of SciPy's as it is here: it takes the splines here, and those that it makes are such."""
    return by_scipys(name, wrapped(name, function))


__getattr__, __dir__ = names_of("scipy.interpolate", globals(), _returning)
