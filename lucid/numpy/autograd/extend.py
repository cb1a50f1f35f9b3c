"""Functions with derivatives of the user's own: `primitive`, and the functions that define its derivatives.

A primitive runs on plain arrays, and may be written in anything. One of the two derivatives is enough: products from
the right are the derivatives of those from the left, and the other way round.
"""

from __future__ import annotations

import functools
import operator
from itertools import count
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import shown
from lucid.autograd.base import TensorBase
from lucid.autograd.borrowing import counter_of
from lucid.autograd.function import Function
from lucid.autograd.hooks.structure import map_leaves, paired
from lucid.autograd.modes.state import enable_grad
from lucid.autograd.products import zeros_of
from lucid.base.arrays import copied
from lucid.errors import ArgumentError, InplaceError, NotDifferentiableError
from lucid.func.trees import leaves, refilled
from lucid.numpy.autograd.crossing import as_tensor, as_tensors, conjugated, memory_of, name_of, outside, recorded
from lucid.numpy.autograd.products import make_vjp
from lucid.numpy.border import plain
from lucid.numpy.writes import is_plain
from lucid.tensor.numpy_calls.operands import is_recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "Primitive", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp", "defvjp_argnum",
    "defvjp_argnums", "primitive",
]  # fmt: skip


class Primitive:
    """A function that is not looked into: see `primitive`.

    Attributes
    ----------
    fun : callable
        The function itself.
    pull, push : callable or None
        Its derivatives, as `defvjp_argnums` and `defjvp_argnums` take them.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.pull: Callable[..., Any] | None = None
        self.push: Callable[..., Any] | None = None
        functools.update_wrapper(self, fun)

    def __repr__(self) -> str:
        return f"<primitive {name_of(self)}>"

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Return the function's result of plain arrays, recorded if an argument is."""
        kwargs = map_leaves(kwargs, lambda leaf: leaf if is_recorded(leaf) else plain_leaf(leaf))
        tensors = [leaf for leaf in leaves(args) if isinstance(leaf, TensorBase)]
        if not any(is_recorded(leaf) for leaf in tensors):
            return self.fun(*plain_tree(args), **kwargs)
        call = Call(self, args, kwargs)
        outputs = Recorded.apply(call, *tensors)
        return outside(refilled(call.form, outputs))

    def __get__(self, instance: object, owner: object = None) -> Any:
        """Return the function bound to an object, as a method of its class."""
        return self if instance is None else MethodType(self, instance)

    def pulling(
        self, argnums: tuple[int, ...], ans: object, args: tuple[Any, ...], kwargs: object
    ) -> Callable[[Any], Any]:
        """Return a function that takes the gradient of the result to those of some arguments."""
        if self.pull is not None:
            return self.pull(argnums, ans, args, kwargs)
        push = self.push
        if push is None:
            raise NotDifferentiableError(
                f"VJP of {name_of(self)} wrt argnums {argnums} not defined: give it one by defvjp"
            )
        zeros = tuple([outside(map_leaves(as_tensors(args[k]), zeros_of)) for k in argnums])

        def along(gs: object) -> Any:
            return push(argnums, gs, ans, args, kwargs)

        return make_vjp(along)(zeros)[0]


class Call:
    """One recorded call of a primitive.

    Attributes
    ----------
    form : object
        What was returned, with its leaves as tensors that are not recorded.
    """

    def __init__(self, primitive: Primitive, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.primitive, self.args, self.kwargs = primitive, args, kwargs
        self.form: Any = None
        # the plain arrays among the arguments, which somebody may change before backward
        self.borrowed = [counter_of(leaf) for leaf in leaves((args, kwargs)) if isinstance(leaf, np.ndarray)]
        self.check_borrowed()

    def check_borrowed(self) -> None:
        """Raise `InplaceError` if a plain array among the arguments was changed."""
        if any(counter[0] for counter in self.borrowed):
            raise InplaceError(
                f"{name_of(self.primitive)}: one of the arrays that it was called with has been modified by an inplace "
                "operation since, and its gradient needs it: change a copy"
            )

    def run(self) -> list[Any]:
        """Return the leaves of the function's result, in memory of their own.

        Raises
        ------
        NotDifferentiableError
            If it is recorded, by a tensor that is none of the arguments.
        """
        args = plain_tree(self.args)
        # recorded is what depends on other tensors than the arguments, which are plain here
        with enable_grad():
            result = self.primitive.fun(*args, **self.kwargs)
            depends = any(map(is_recorded, parts := leaves(result)))
        if depends:
            raise NotDifferentiableError(
                f"{name_of(self.primitive)}: the result depends on a tensor that requires grad and is no positional "
                "argument: a keyword, or a variable from outside of the function. Pass it by position, or use its "
                "detach()"
            )
        memories = {memory_of(leaf) for leaf in leaves(args) if is_plain(leaf)}
        own = [copied(leaf) if is_plain(leaf) and memory_of(leaf) in memories else leaf for leaf in parts]
        self.form = as_tensors(refilled(result, own))
        return leaves(self.form)

    def gradients(self, inputs: Sequence[Any], outputs: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
        """Return the gradients of the tensors among the arguments, given as `inputs`, with the results as `outputs`."""
        self.check_borrowed()
        following = iter([shown_inside(tensor) for tensor in inputs])
        args = map_leaves(self.args, lambda leaf: next(following) if isinstance(leaf, TensorBase) else leaf)
        argnums = tuple([k for k, arg in enumerate(self.args) if any(is_traced(leaf) for leaf in leaves(arg))])
        answer = refilled(self.form, [shown_inside(tensor) for tensor in outputs])
        received = refilled(self.form, [shown_inside(tensor) for tensor in conjugated([*grads])])
        pulled = self.primitive.pulling(argnums, answer, args, self.kwargs)(received)
        by_argument = dict(zip(argnums, pulled, strict=True))
        collected: list[Any] = []
        for k, arg in enumerate(self.args):
            gradient = by_argument.get(k)
            pairs = [(leaf, None) for leaf in leaves(arg)] if gradient is None else paired(arg, gradient)
            for leaf, grad in pairs:
                if isinstance(leaf, TensorBase):
                    collected.append(None if grad is None else conjugated(as_tensor(grad)))
        return collected


class Recorded(Function):
    """A call of a primitive on the graph."""

    @staticmethod
    def forward(ctx: Any, call: Call, *tensors: object) -> tuple[Any, ...]:
        """Return the leaves of the result."""
        outputs = tuple(call.run())
        ctx.call, ctx.count = call, len(tensors)
        ctx.save_for_backward(*tensors, *outputs)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: object) -> tuple[Any, ...]:
        """Return the gradients of the tensors that it was given."""
        saved = ctx.saved_tensors
        return (None, *ctx.call.gradients(saved[: ctx.count], saved[ctx.count :], grads))


def plain_tree(tree: object) -> Any:
    """Return a tree with arrays for tensors; those of no dimension as NumPy's scalars."""
    return map_leaves(tree, plain_leaf)


def plain_leaf(leaf: object) -> Any:
    """Return a leaf of `plain_tree`."""
    array: Any = plain(leaf)
    return array[()] if leaf is not array and type(array) is np.ndarray and not array.ndim else array


def shown_inside(tensor: object) -> Any:
    """Return a tensor for derivatives: an ndarray if it is recorded itself, else a plain array."""
    return recorded(tensor) if is_recorded(tensor) else plain_tree(tensor)


def is_traced(leaf: object) -> bool:
    """Return whether a leaf of the arguments of a call may get a gradient."""
    return isinstance(leaf, TensorBase) and leaf.edge is not None


def primitive(fun: Callable[..., Any]) -> Primitive:
    """Return a function that is not looked into, and has the derivatives that `defvjp` or `defjvp` give it.

    Parameters
    ----------
    fun : callable
        Gets plain arrays and numbers, and returns such, also in tuples, lists and dictionaries.

    Raises
    ------
    NotDifferentiableError
        When it is differentiated without a derivative, or its result depends on a tensor that requires grad and is no
        positional argument.
    InplaceError
        When an array that it was called with was changed in place before backward.

    Examples
    --------
    >>> import numpy
    >>> from lucid.numpy.autograd import grad
    >>> from lucid.numpy.autograd.extend import defvjp, primitive
    >>> @primitive
    ... def log1pexp(x):
    ...     return numpy.logaddexp(0.0, x)
    >>> defvjp(log1pexp, lambda ans, x: lambda g: g / (1.0 + numpy.exp(-x)))
    >>> float(grad(log1pexp)(0.0))
    0.5
    """
    return Primitive(fun)


def as_primitive(fun: Callable[..., Any]) -> Primitive:
    """Return a primitive as it is.

    Raises
    ------
    ArgumentError
        If it is none.
    """
    if not isinstance(fun, Primitive):
        raise ArgumentError(f"expected a function that primitive() returned, got {shown(fun)}")
    return fun


def defvjp_argnums(fun: Primitive, vjpmaker: Callable[..., Any]) -> None:
    """Give a primitive its derivative, for several arguments at once.

    Parameters
    ----------
    fun : Primitive
    vjpmaker : callable
        ``vjpmaker(argnums, ans, args, kwargs)`` returns what gives, for the gradient of the result `ans`, those of the
        arguments of the positions `argnums`, in order.
    """
    as_primitive(fun).pull = vjpmaker


def defvjp_argnum(fun: Primitive, vjpmaker: Callable[..., Any]) -> None:
    """Give a primitive its derivative, by the position of an argument.

    Parameters
    ----------
    fun : Primitive
    vjpmaker : callable
        ``vjpmaker(argnum, ans, args, kwargs)`` returns what gives the gradient of that argument for that of the result.
    """

    def pull(argnums: tuple[int, ...], *call: object) -> Callable[[Any], list[Any]]:
        vjps = [vjpmaker(argnum, *call) for argnum in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, pull)


def defvjp(
    fun: Primitive, *vjpmakers: Callable[..., Callable[[Any], Any]] | None, argnums: Iterable[int] | None = None
) -> None:
    """Give a primitive its derivative, argument by argument.

    Parameters
    ----------
    fun : Primitive
    *vjpmakers : callable or None
        For each argument ``vjpmaker(ans, *args, **kwargs)``, which returns what gives the argument's gradient for that
        of the result `ans`; None where it is zero.
    argnums : iterable of int, optional
        The positions of the arguments; the first ones by default.

    Raises
    ------
    ArgumentError
        If one is neither callable nor None.
    NotDifferentiableError
        When it is differentiated by an argument that has none.
    """
    makers = by_position("VJP", fun, vjpmakers, argnums)

    def vjpmaker(argnum: int, ans: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
        maker = defined("VJP", makers, fun, argnum)
        return (lambda _: None) if maker is None else maker(ans, *args, **kwargs)

    defvjp_argnum(fun, vjpmaker)


def defjvp_argnums(fun: Primitive, jvpmaker: Callable[..., Any]) -> None:
    """Give a primitive its derivative along vectors, for several arguments at once.

    Parameters
    ----------
    fun : Primitive
    jvpmaker : callable
        ``jvpmaker(argnums, gs, ans, args, kwargs)`` returns the derivative of the result `ans` along `gs`, one for each
        argument of the positions `argnums`. It is linear in `gs`, written in functions that are differentiated; where
        the primitive has a derivative by `defvjp` too, that one is taken.
    """
    as_primitive(fun).push = jvpmaker


def defjvp_argnum(fun: Primitive, jvpmaker: Callable[..., Any]) -> None:
    """Give a primitive its derivative along vectors, by the position of an argument.

    Parameters
    ----------
    fun : Primitive
    jvpmaker : callable
        ``jvpmaker(argnum, g, ans, args, kwargs)`` returns the derivative of the result along `g` at that argument, as
        in `defjvp_argnums`.
    """

    def push(argnums: tuple[int, ...], gs: Sequence[Any], *call: object) -> Any:
        along = [jvpmaker(argnum, g, *call) for argnum, g in zip(argnums, gs, strict=True)]
        sums = [functools.reduce(operator.add, parts) for parts in zip(*map(leaves, along), strict=True)]
        return refilled(along[0], sums)

    defjvp_argnums(fun, push)


def defjvp(fun: Primitive, *jvpfuns: Callable[..., Any] | str | None, argnums: Iterable[int] | None = None) -> None:
    """Give a primitive its derivative along vectors, argument by argument.

    Parameters
    ----------
    fun : Primitive
    *jvpfuns : callable, "same" or None
        For each argument ``jvpfun(g, ans, *args, **kwargs)``, the derivative of the result along `g` at that argument,
        as in `defjvp_argnums`; None where it is zero; "same" for a function that is linear in it, and is itself written
        in functions that are differentiated.
    argnums : iterable of int, optional
        The positions of the arguments; the first ones by default.

    Raises
    ------
    ArgumentError
        If one is none of these.

    Examples
    --------
    >>> import lucid.numpy as np
    >>> from lucid.numpy.autograd import grad
    >>> from lucid.numpy.autograd.extend import defjvp, primitive
    >>> cube = primitive(lambda x: x**3)
    >>> defjvp(cube, lambda g, ans, x: 3 * x**2 * g)
    >>> float(grad(cube)(2.0))
    12.0
    """
    makers = by_position("JVP", fun, jvpfuns, argnums, words=("same",))

    def jvpmaker(argnum: int, g: object, ans: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        maker = defined("JVP", makers, fun, argnum)
        if maker is None:
            return map_leaves(ans, lambda leaf: 0.0 * leaf)
        if maker == "same":
            return linear_part(fun, argnum, g, args, kwargs)
        return maker(g, ans, *args, **kwargs)

    defjvp_argnum(fun, jvpmaker)


def def_linear(fun: Primitive) -> None:
    """Say that a primitive is linear in each argument, and written in functions that are differentiated.

    Parameters
    ----------
    fun : Primitive
    """

    def jvpmaker(argnum: int, g: object, _: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return linear_part(fun, argnum, g, args, kwargs)

    defjvp_argnum(fun, jvpmaker)


def linear_part(fun: Primitive, argnum: int, g: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the function's own result with one argument replaced."""
    return fun.fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs)


def by_position(
    kind: str,
    fun: Callable[..., Any],
    makers: Iterable[Any],
    argnums: Iterable[int] | None,
    words: tuple[str, ...] = (),
) -> dict[int, Any]:
    """Return derivatives by the positions of arguments."""
    as_primitive(fun)
    by_argnum = dict(zip(count() if argnums is None else argnums, makers, strict=False))
    for maker in by_argnum.values():
        if not (maker is None or callable(maker) or maker in words):
            raise ArgumentError(f"Bad {kind} {maker!r} for {name_of(fun)!r}: expected a callable or None")
    return by_argnum


def defined(kind: str, makers: dict[int, Any], fun: Callable[..., Any], argnum: int) -> Any:
    """Return the derivative by one argument.

    Raises
    ------
    NotDifferentiableError
        If there is none.
    """
    if argnum not in makers:
        raise NotDifferentiableError(f"{kind} of {name_of(fun)} wrt argnum {argnum} not defined")
    return makers[argnum]
