"""What holds for every elementwise op, and how one is declared.

The docstring of an elementwise op says what is particular to it: the formula, dtypes that it takes or gives against the
rules below, parameters beyond its operands, its errors, and an example. This holds for all of them:

- An operand is a tensor, an array of NumPy or CuPy, or a number; one of them is no number. Tensors lie on one device,
  or a DeviceError says where each is.
- Two operands broadcast against each other, as in NumPy; a ShapeError names the shapes that do not fit. The result has
  the broadcast shape, and each gradient is summed to the shape of its operand.
- The result has the promoted dtype of the operands, by PyTorch's rules: a number, and a tensor of no dimension, counts
  for its kind only. Where the function is one of real numbers, integers and bools become the default floating-point
  dtype first. A dtype that an op is not defined on raises a DtypeError that says what to do.
- The result is a new tensor, whatever the strides of the operands; of float16 and bfloat16 it is rounded once.
- What is outside of the domain gives NaN or infinity without a warning, as in PyTorch. Every derivative has its own.
- `lucid.exp(x)` is `x.exp()` too; `x.exp_()` writes the result into `x`, which must have its shape and hold its dtype;
  `numpy.exp(x)` is recorded as well.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from lucid.autograd.primitive import Primitive
from lucid.cuda.elementwise import FLOATS, Elementwise
from lucid.ops.elementwise import of_one, of_two, summed

if TYPE_CHECKING:
    from collections.abc import Callable

    # Spelled out by the number of parameters, so that a checker of types knows those of a lambda.
    Rule: TypeAlias = (
        Callable[[Any, Any], Any]
        | Callable[[Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any, Any, Any], Any]
    )

__all__ = ["REAL", "Fused", "elementwise"]

F = TypeVar("F", bound="Callable[..., Any]")

# What functions of real numbers refuse.
REAL = ("c", "it is defined on real numbers")


@dataclass(frozen=True, slots=True)
class Fused:
    """A derivative rule that one kernel does on CUDA arrays.

    Attributes
    ----------
    functor : str
        In the file of the op's own kernel; it takes the gradient and the arrays that are parameters of the rule.
    rule : callable
        As for `Primitive.vjp`.
    exchanged : bool
        Whether the functor is that of the other operand: it takes the two in reverse order.
    """

    functor: str
    rule: Rule
    exchanged: bool = False


# one for both operands of a symmetric function
_kernel = functools.cache(Elementwise)


def elementwise(
    forward: Callable[..., Any],
    kernel: str,
    *rules: Rule | Fused,
    refused: tuple[str, str] | None = None,
    dtypes: tuple[str, ...] = FLOATS,
    out: str = "T",
    caller: Callable[[Primitive], Any] | None = None,
) -> Callable[[F], F]:
    """Declare the elementwise op that the decorated function stands for, under the name of that function.

    The function says signature and documentation, and calls ``GRAPH.name(...)``.

    Parameters
    ----------
    forward : callable
        A ufunc that CuPy has too, or ``forward(xp, x)`` or ``forward(xp, a, b)`` of arrays.
    kernel : str
        ``"file.Functor"``: the file in `kernels` and the struct there.
    *rules : callable or Fused
        The derivatives of the operands in turn, as for `Primitive.vjp`: their parameters say what is saved. None of
        them for what has no gradient.
    refused : (str, str), optional
        Kinds of dtypes that the op is not defined on, and what to do instead; as for `refuse`.
    dtypes, out
        Of the kernel, as for `Elementwise`. Where it takes floating-point dtypes alone, integers become such a dtype.
    caller : callable, optional
        What gives the op another caller than `of_one` or `of_two`.
    """
    ufunc = forward if isinstance(forward, np.ufunc) else None
    count = forward.nin if isinstance(forward, np.ufunc) else forward.__code__.co_argcount - 1

    def on(xp: Any, *arrays: Any) -> Any:
        return forward(xp, *arrays) if ufunc is None else getattr(xp, ufunc.__name__)(*arrays)

    def of_x(xp: Any, x: Any) -> Any:
        return on(xp, x)

    def of_a_and_b(xp: Any, a: Any, b: Any) -> Any:
        return on(xp, a, b)

    def declare(function: F) -> F:
        reference = of_x if count == 1 else of_a_and_b
        reference.__name__ = function.__name__
        op = Primitive(reference, cpu=ufunc or functools.partial(forward, np))
        stem, functor = kernel.split(".")
        op.cuda(_kernel(stem, functor, "T" * count, dtypes=dtypes, out=out))
        for operand, rule in zip(op.inputs, rules, strict=bool(rules)):
            _attach(op, stem, operand, rule)
        # the caller looks at the rules, so they come first
        if caller is not None:
            caller(op)
        else:
            (of_one if count == 1 else of_two)(op, at_least_float=dtypes is FLOATS, refused=refused)
        return function

    return declare


def _attach(op: Primitive, stem: str, operand: str, given: Rule | Fused) -> None:
    """Attach the rule of one operand, with its kernel."""
    if not isinstance(given, Fused):
        op.vjp(operand)(given)
        return
    code = given.rule.__code__
    parameters = code.co_varnames[2 : code.co_argcount]
    arrays = [name for name in parameters if not name.endswith("_shape")]
    run: Any = _kernel(stem, given.functor, "T" * (1 + len(arrays)))
    if len(arrays) < len(parameters):
        run = summed(run, exchanged=given.exchanged)
    op.vjp(operand, cuda=run)(given.rule)
