"""Derivatives of functions of one argument, made those of functions of several."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from lucid.func.derivatives import check_function
from lucid.func.trees import chosen

if TYPE_CHECKING:
    from collections.abc import Callable

    Positions = int | tuple[int, ...] | list[int]


def of_argument(
    name: str, operator: Callable[[Callable[[Any], Any], Any], Any], function: Callable[..., Any], argnum: Positions
) -> Callable[..., Any]:
    """Return an operator on functions of one argument, public by its name, as one on an argument of several."""
    check_function(function)
    inner = getattr(function, "__name__", "[unknown name]")
    several = tuple(argnum) if isinstance(argnum, list) else argnum

    @functools.wraps(function)
    def derived(*args: object, **kwargs: object) -> Any:
        positions = chosen(args, several, name)

        @functools.wraps(function)
        def of_one(x: Any) -> Any:
            arguments = [*args]
            for position, value in zip(positions, x if isinstance(several, tuple) else (x,), strict=True):
                arguments[position] = value
            return function(*arguments, **kwargs)

        x = tuple([args[k] for k in positions]) if isinstance(several, tuple) else args[positions[0]]
        return operator(of_one, x)

    derived.__name__ = f"{name}_of_{inner}_wrt_argnum_{argnum}"
    derived.__doc__ = (
        f"    {name} of function {inner} with respect to argument number {argnum}. It takes the arguments of {inner}."
    )
    return derived
