"""`scipy.interpolate`, differentiated: see `lucid.scipy`.

The classes here have SciPy's names and parameters. An object that is made of plain arrays is SciPy's own inside, and
has its methods; it may be called with recorded places all the same.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lucid.numpy.border import names_of, wrapped
from lucid.scipy.rules.curves.bsplines import BSpline, spline_of
from lucid.scipy.rules.curves.cubic import CubicSpline
from lucid.scipy.rules.curves.piecewise import Akima1DInterpolator, CubicHermiteSpline, PchipInterpolator, PPoly
from lucid.scipy.rules.curves.tables import RegularGridInterpolator, interp1d
from lucid.scipy.rules.rule import host_library

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Akima1DInterpolator",
    "BSpline",
    "CubicHermiteSpline",
    "CubicSpline",
    "PPoly",
    "PchipInterpolator",
    "RegularGridInterpolator",
    "interp1d",
]


def _returning(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of SciPy's as it is here: a spline that it makes of plain arrays takes recorded places too."""
    call = wrapped(name, function)

    @functools.wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        if type(result) is host_library("interpolate").BSpline:
            return spline_of(result.t, result.c, result.k, result.extrapolate, result.axis)
        return result

    return made


__getattr__, __dir__ = names_of("scipy.interpolate", globals(), _returning, "scipy")
