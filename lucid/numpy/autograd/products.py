"""Products of derivatives with vectors, from either side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.hooks.structure import map_leaves
from lucid.base.arrays import copied
from lucid.func.trees import refilled
from lucid.numpy.autograd.crossing import derivatives, fitting, of_argument, ones_of, outside, pulled_back, run_of
from lucid.numpy.autograd.gradients import gradient_of
from lucid.numpy.border import called

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.numpy.autograd.crossing import Positions


def _vjp(function: Callable[[Any], Any], x: object, name: str = "make_vjp") -> tuple[Callable[[Any], Any], Any]:
    run = run_of(function, x, what=name)

    def vjp(g: object) -> Any:
        """Return the product of `g`, of the form of the result, with the derivative."""
        vectors = fitting(g, run.output, "vjp")
        return derivatives(refilled(run.primals, pulled_back(run, vectors, keep=True)), vectors)

    # later products need the result, which is handed out to be changed
    return vjp, map_leaves(outside(run.leave(run.output)), lambda leaf: leaf if hasattr(leaf, "edge") else copied(leaf))


def _reverse_jvp(function: Callable[[Any], Any], x: object) -> Callable[[Any], Any]:
    run = run_of(function, x, what="make_jvp_reversemode")
    push = run.transposed()

    def jvp(v: object) -> Any:
        """Return the product of the derivative with `v`, of the form of the argument."""
        vectors = fitting(v, run.primals, "jvp")
        return derivatives(refilled(run.output, push(vectors, run.recorded(vectors), False)), vectors)

    return jvp


def _jvp(function: Callable[[Any], Any], x: object) -> Callable[[Any], tuple[Any, Any]]:
    def jvp(v: object) -> tuple[Any, Any]:
        """Return the result, and the product of the derivative with `v`, of the form of the argument."""
        run = run_of(function, x, what="make_jvp")
        vectors = fitting(v, run.primals, "jvp")
        pushed = run.transposed()(vectors, run.recorded(vectors), False)
        return outside(run.leave(run.output)), derivatives(refilled(run.output, pushed), vectors)

    return jvp


def _derivative(function: Callable[[Any], Any], x: object) -> Any:
    return _jvp(function, x)(ones_of(x))[1]


def deriv(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., Any]:
    """Return a function that computes the derivative of `fun` along ones, of the form of its result.

    Parameters
    ----------
    fun : callable
        Returns arrays.
    argnum : int, or tuple or list of int

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import deriv
    >>> deriv(lambda t: np.array([1.0, 2.0]) * t**2)(3.0)
    array([ 6., 12.])
    """
    return of_argument("deriv", _derivative, fun, argnum)


def make_vjp(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., tuple[Callable[[Any], Any], Any]]:
    """Return a function that gives ``(vjp, result)``: ``vjp(g)`` is the product of `g` with the derivative.

    Parameters
    ----------
    fun : callable
        Returns arrays, also in tuples, lists and dictionaries.
    argnum : int, or tuple or list of int

    Raises
    ------
    ShapeError
        If `g` has not the form of the result.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import make_vjp
    >>> vjp, y = make_vjp(lambda x: x**2)(np.array([1.0, 2.0]))
    >>> y, vjp(np.array([1.0, 10.0]))
    (array([1., 4.]), array([ 2., 40.]))
    """
    return of_argument("make_vjp", _vjp, fun, argnum)


def make_jvp(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., Callable[[Any], tuple[Any, Any]]]:
    """Return a function that gives `jvp`: ``jvp(v)`` is the result, and the product of the derivative with `v`.

    There is no forward mode: two backward passes are run, and every op must be differentiable twice.

    Parameters
    ----------
    fun, argnum
        As in `make_vjp`.

    Raises
    ------
    ShapeError
        If `v` has not the form of the argument.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import make_jvp
    >>> make_jvp(lambda x: np.sum(x) * x)(np.array([1.0, 2.0]))(np.array([1.0, 0.0]))
    (array([3., 6.]), array([4., 2.]))
    """
    return of_argument("make_jvp", _jvp, fun, argnum)


def make_jvp_reversemode(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., Callable[[Any], Any]]:
    """Return a function that gives `jvp`: ``jvp(v)`` is the product of the derivative with `v`; `fun` runs once.

    Parameters
    ----------
    fun, argnum
        As in `make_vjp`.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import make_jvp_reversemode
    >>> make_jvp_reversemode(lambda x: np.sum(x) * x)(np.array([1.0, 2.0]))(np.array([1.0, 0.0]))
    array([4., 2.])
    """
    return of_argument("make_jvp_reversemode", _reverse_jvp, fun, argnum)


def make_hvp(fun: Callable[..., Any], argnum: Positions = 0) -> Callable[..., tuple[Callable[[Any], Any], Any]]:
    """Return a function that gives ``(hvp, gradient)``: ``hvp(v)`` is the product of the Hessian with `v`.

    Parameters
    ----------
    fun, argnum
        As in `grad`.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import make_hvp
    >>> hvp, gradient = make_hvp(lambda x: np.prod(x) * x[0])(np.array([1.0, 2.0]))
    >>> gradient, hvp(np.array([1.0, 0.0]))
    (array([4., 1.]), array([4., 2.]))
    """

    def make_hvp(fun: Callable[[Any], Any], x: object) -> tuple[Callable[[Any], Any], Any]:
        return _vjp(lambda x: gradient_of(fun, x, "make_hvp")[0], x, "make_hvp")

    return of_argument("make_hvp", make_hvp, fun, argnum)


def _half_square(x: Any) -> Any:
    return called("sum", np.sum, (x**2,), {"axis": -1}) / 2.0


def make_ggnvp(
    f: Callable[..., Any], g: Callable[[Any], Any] = _half_square, f_argnum: int = 0
) -> Callable[..., Callable[[Any], Any]]:
    """Return a function that gives the product of the generalized Gauss-Newton matrix of ``g(f(x))`` with vectors.

    Parameters
    ----------
    f : callable
        Returns an array.
    g : callable
        Of that; returns one real number. It is half the sum of squares by default.
    f_argnum : int
        The argument of `f` to differentiate by.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import make_ggnvp
    >>> make_ggnvp(lambda x: x**2)(np.array([1.0, 2.0]))(np.array([1.0, 1.0]))
    array([ 4., 16.])
    """

    def make_ggnvp(f: Callable[[Any], Any], x: object) -> Callable[[Any], Any]:
        pull, result = _vjp(f, x, "make_ggnvp")
        push = _reverse_jvp(f, x)
        hvp, _ = make_hvp(g)(result)
        return lambda v: pull(hvp(push(v)))

    return of_argument("make_ggnvp", make_ggnvp, f, f_argnum)
