"""Checks of derivatives against finite differences, under HIPS/autograd's names."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.differences import inner, like, numbers, random
from lucid.func.trees import leaves, refilled, structure
from lucid.numpy.autograd.crossing import as_tensors, name_of, of_argument, outside
from lucid.numpy.autograd.products import make_jvp, make_vjp
from lucid.tensor.numpy_calls.ufuncs import is_complex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lucid.numpy.autograd.crossing import Positions

__all__ = ["check_equivalent", "check_grads", "check_jvp", "check_vjp", "combo_check", "scalar_close"]

TOL = RTOL = 1e-6
STEP = 1e-6


def scalar_close(a: float, b: float) -> bool:
    """Return whether two numbers are equal but for rounding: to 1e-6, or a millionth of their sum.

    Examples
    --------
    >>> from lucid.numpy.autograd.test_util import scalar_close
    >>> scalar_close(1.0, 1.0 + 1e-9)
    True
    """
    return bool(abs(a - b) < TOL or abs(a - b) < RTOL * abs(a + b))


def check_grads(
    fun: Callable[..., Any], argnum: Positions = 0, modes: Iterable[str] | None = None, order: int = 2
) -> Callable[..., None]:
    """Return a function that compares derivatives of `fun` with finite differences, along random directions.

    Parameters
    ----------
    fun : callable
        Returns arrays and numbers, also in tuples, lists and dictionaries.
    argnum : int, or tuple or list of int
        The argument to differentiate by.
    modes : iterable of str, optional
        "fwd" for `make_jvp`, "rev" for `make_vjp`; both by default.
    order : int
        Up to which order derivatives are checked.

    Raises
    ------
    AssertionError
        If one differs; the message names the function, or the derivative of it.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd.test_util import check_grads
    >>> check_grads(np.sin)(np.array([0.5, 1.0]))
    """
    wanted = ("fwd", "rev") if modes is None else tuple(modes)
    if not {*wanted} <= {"fwd", "rev"}:
        raise AssertionError(f"check_grads: expected modes 'fwd' and 'rev', got {modes!r}")

    def check_grads(fun: Callable[[Any], Any], x: object) -> None:
        _check(fun, x, wanted, order)

    return of_argument("check_grads", check_grads, fun, argnum)


def _check(fun: Callable[[Any], Any], x: object, modes: tuple[str, ...], order: int) -> None:
    def jvp(pair: Any) -> Any:
        return make_jvp(fun)(pair[0])(pair[1])[1]

    def vjp(pair: Any) -> Any:
        return make_vjp(fun)(pair[0])[0](pair[1])

    jvp.__name__, vjp.__name__ = f"jvp_{name_of(fun)}", f"vjp_{name_of(fun)}"
    rng = np.random.default_rng(0)
    if "fwd" in modes:
        check_jvp(fun, x)
        if order > 1:
            _check(jvp, (x, drawn(rng, x)), modes, order - 1)
    if "rev" in modes:
        check_vjp(fun, x)
        if order > 1:
            _check(vjp, (x, drawn(rng, fun(x))), modes, order - 1)


def check_vjp(f: Callable[[Any], Any], x: object) -> None:
    """Compare the product of a random vector with the derivative of a function of one argument, from the left.

    Parameters
    ----------
    f : callable
    x : object
        Its argument.

    Raises
    ------
    AssertionError
        If it differs from finite differences.
    """
    rng = np.random.default_rng(1)
    vjp, y = make_vjp(f)(x)
    along, upstream = drawn(rng, x), drawn(rng, y)
    pulled = vjp(upstream)
    _same_form(pulled, x)
    # both pairings are linear: without conjugates
    exact = paired_sum(along, pulled)
    numeric = paired_sum(upstream, slope(f, x, along))
    if not scalar_close(numeric, exact):
        raise AssertionError(
            f"Derivative (VJP) check of {name_of(f)} failed with arg {x}:\nanalytic: {exact}\nnumeric:  {numeric}"
        )


def check_jvp(f: Callable[[Any], Any], x: object) -> None:
    """Compare the derivative of a function of one argument along a random vector.

    Parameters
    ----------
    f : callable
    x : object
        Its argument.

    Raises
    ------
    AssertionError
        If it differs from finite differences.
    """
    along = drawn(np.random.default_rng(2), x)
    check_equivalent(make_jvp(f)(x)(along)[1], slope(f, x, along))


def check_equivalent(x: object, y: object) -> None:
    """Compare two trees of arrays and numbers: their structure and shapes, and the values along a random direction.

    Parameters
    ----------
    x, y : object

    Raises
    ------
    AssertionError
        If they differ.
    """
    _same_form(x, y)
    v = drawn(np.random.default_rng(3), x)
    if not scalar_close(paired_sum(x, v), paired_sum(y, v)):
        raise AssertionError(f"Value mismatch:\nx: {x}\ny: {y}")


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """Return a function of lists of arguments that checks the derivatives of `fun` for all combinations of them.

    Parameters
    ----------
    fun : callable
    *args, **kwargs
        As `check_grads` takes them.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd.test_util import combo_check
    >>> combo_check(np.sum, (0,))([np.ones((2, 3))], axis=[0, 1], keepdims=[True, False])
    """

    def check(*choices: Any, **named: Any) -> None:
        for arguments in product(*choices):
            for settings in product(*named.values()):
                check_grads(fun, *args, **kwargs)(*arguments, **dict(zip(named, settings, strict=True)))

    return check


# ---- trees of arrays as vectors ----


def drawn(rng: np.random.Generator, tree: object) -> Any:
    """Return a tree of the form of another with standard normal numbers."""
    tensors = leaves(as_tensors(tree))
    return refilled(tree, [outside(wrap(like(random(rng, leaf.array), leaf.array))) for leaf in tensors])


def wide(tree: object) -> list[Any]:
    """Return the leaves of a tree on the host, in double precision."""
    return [numbers(leaf.array) for leaf in leaves(as_tensors(tree))]


def slope(f: Callable[[Any], Any], x: object, along: object) -> Any:
    """Return the derivative of a function along a vector, by central differences."""

    def at(step: float) -> Any:
        moved = [a + step * b for a, b in zip(wide(x), wide(along), strict=True)]
        arrays = [like(a, leaf.array) for a, leaf in zip(moved, leaves(as_tensors(x)), strict=True)]
        return f(refilled(x, [outside(wrap(array)) for array in arrays]))

    plus, minus = at(STEP / 2), at(-STEP / 2)
    quotients = [(a - b) / STEP for a, b in zip(wide(plus), wide(minus), strict=True)]
    return refilled(plus, [outside(wrap(q)) for q in quotients])


def paired_sum(a: object, b: object) -> float:
    """Return the real part of the sum of products of all elements."""
    return sum(inner(p, q.conj()) for p, q in zip(wide(a), wide(b), strict=True))


def form(tree: object) -> list[Any]:
    """Return the properties that must be equal in two trees: structure, shapes, and whether each leaf is complex."""
    tensors: Sequence[Any] = leaves(as_tensors(tree))
    return [structure(tree), *[(leaf.array.shape, is_complex(leaf)) for leaf in tensors]]


def _same_form(x: object, y: object) -> None:
    if form(x) != form(y):
        raise AssertionError(f"Mismatch of the form:\nx: {form(x)}\ny: {form(y)}")
