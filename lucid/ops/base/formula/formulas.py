"""Elementwise formulas, with the chains and functors that are made of them when they are first needed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lucid.ops.base.blocks import in_blocks
from lucid.ops.base.formula.chain import chain
from lucid.ops.base.formula.functor import functor
from lucid.ops.base.formula.loop import Loop
from lucid.ops.base.formula.trace import settings_of, trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from lucid.base.arrays import Array

    # Spelled out by the number of parameters, so that a checker of types knows those of a lambda.
    Function: TypeAlias = (
        Callable[[Any, Any], Any]
        | Callable[[Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any, Any, Any], Any]
        | Callable[..., Any]
    )


APPLIED: list[Formula] = []
"""The formulas of primitives, each with a loop on the CPU."""


def module_of(function: Callable[..., Any]) -> str:
    """Return the name of the file that is made of a module: ``elementwise_power`` of lucid.ops.elementwise.power."""
    return function.__module__.removeprefix("lucid.ops.").replace(".", "_")


class Formula:
    """An elementwise function, the source of both its chain on NumPy and its functor on CUDA.

    Attributes
    ----------
    function : callable
        ``function(m, x, *, alpha)`` of arrays and, by keyword alone, settings, in operators, and by the names of
        primitives: ``m.where(x > 0, x, alpha * m.exp(x))``. A derivative rule is one; the shapes to which it sums are
        no arrays.
    numpy : callable, optional
        What NumPy does instead, where that is quicker by hand: a chain, or anything that `elementwise` takes.
    **known : object
        Parameters of the function that are what they are: a formula for each of two ways is one function.
    arrays, settings : tuple of str
        The names of the other parameters.
    stem : str
        What is compiled together with it is called.
    """

    def __init__(self, function: Function, numpy: Callable[..., Any] | None = None, **known: Any) -> None:
        self.function = function
        self.numpy = numpy
        self.known = known
        self.stem = module_of(function)
        code = function.__code__
        named = code.co_varnames[1 : code.co_argcount]
        self.arrays = tuple([name for name in named if name not in known and not name.endswith("_shape")])
        self.settings = tuple([name for name in settings_of(function) if name not in known])

    @cached_property
    def chain(self) -> tuple[Callable[..., None], int]:
        """``chain(xp, out, *arrays, *temporaries, **settings)``, and how many temporaries it takes."""
        if self.numpy is not None:
            return self.numpy, self.numpy.__code__.co_argcount - 2 - len(self.arrays)
        return chain(self.function.__qualname__, trace(self.function, **self.known))

    @cached_property
    def loop(self) -> Loop:
        """The loop in C++ for the CPU."""
        return Loop(self.stem, lambda: trace(self.function, **self.known))

    def apply(self, xp: ModuleType, *arrays: Array, **settings: Any) -> Array:
        """Return the result for arrays of NumPy's or CuPy's, as `in_blocks` does."""
        run = self.loop.of(arrays) if xp is np else None
        return in_blocks(xp, *(self.chain if run is None else (run, 0)), *arrays, **settings)

    def functor(self, name: str) -> str:
        """Return the functor under a name, in CUDA C++."""
        return functor(name, trace(self.function, **self.known))
