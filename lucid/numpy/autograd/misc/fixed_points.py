"""Fixed points of iterations, differentiated by the equation that they solve."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import lucid.numpy as np
from lucid.func.trees import leaves, refilled
from lucid.numpy.autograd.extend import defvjp, primitive
from lucid.numpy.autograd.products import make_vjp
from lucid.numpy.border import plain

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["fixed_point"]


def _fixed_point(
    f: Callable[[Any], Callable[[Any], Any]], a: object, x0: object, distance: Callable[[Any, Any], Any], tol: float
) -> Any:
    """Return the fixed point of the function ``f(a)``, by iteration from `x0`.

    Its derivative by `a` is that of the solution of ``x = f(a)(x)``, found by an iteration of the same kind: nothing of
    the steps is kept, and the start has no influence.

    Parameters
    ----------
    f : callable
        Of the parameters; returns the function that is iterated.
    a : object
        The parameters: arrays and numbers, also in tuples, lists and dictionaries.
    x0 : object
        The start.
    distance : callable
        Of two successive points.
    tol : float
        The distance at which the iteration ends.

    Examples
    --------
    >>> from lucid.numpy.autograd import grad
    >>> from lucid.numpy.autograd.misc.fixed_points import fixed_point
    >>> def newton(a):
    ...     return lambda x: 0.5 * (x + a / x)
    >>> def root(a):
    ...     return fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-12)
    >>> round(float(root(2.0)), 6), round(float(grad(root)(2.0)), 6)
    (1.414214, 0.353553)
    """
    step = f(a)
    before, x = x0, step(x0)
    while distance(x, before) > tol:
        before, x = x, step(x)
    return x


_fixed_point.__name__ = _fixed_point.__qualname__ = "fixed_point"
fixed_point = primitive(_fixed_point)


def _of_parameters(ans: object, f: Any, a: object, _x0: Any, distance: Any, tol: float) -> Callable[[Any], Any]:
    """Return the gradient by the parameters: u = g + u f_x gives the gradient that reaches ``f(a)(x)`` in all."""

    def at_the_point(a: object) -> Any:
        return f(a)(ans)

    by_parameters, _ = make_vjp(at_the_point)(a)

    def adjoint(parameters: Any) -> Callable[[Any], Any]:
        a, x, g = parameters
        by_point, _ = make_vjp(f(a))(x)
        return lambda u: refilled(g, [p + q for p, q in zip(leaves(by_point(u)), leaves(g), strict=True)])

    def gradient(g: object) -> Any:
        # `tol` is meant for numbers of the size of the point, and the gradient is linear in g
        scale = _size(ans) / _size(g)
        scaled = refilled(g, [scale * leaf for leaf in leaves(g)])
        start = refilled(g, [0.0 * leaf for leaf in leaves(g)])
        u = fixed_point(adjoint, (a, ans, scaled), start, distance, tol)
        return by_parameters(refilled(u, [leaf / scale for leaf in leaves(u)]))

    return gradient


def _size(tree: object) -> float:
    """Return the largest absolute value in a tree; 1 if that is zero or not finite."""
    size = max([float(np.max(np.abs(plain(leaf)), initial=0)) for leaf in leaves(tree)], default=0.0)
    return size if size and isfinite(size) else 1.0


defvjp(fixed_point, None, _of_parameters, None)
