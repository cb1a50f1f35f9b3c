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
- The result is a new tensor, whatever the strides of the operands.
- What is outside of the domain gives NaN or infinity without a warning, as in PyTorch. Every derivative has its own.
- `lucid.exp(x)` is `x.exp()` too; `x.exp_()` writes the result into `x`, which must have its shape and hold its dtype;
  `numpy.exp(x)` is recorded as well.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from lucid.autograd.recording.plan import Rule
from lucid.autograd.recording.primitive import Primitive
from lucid.cuda.launch.elementwise import FLOATS, Elementwise
from lucid.ops.base.blocks import in_blocks
from lucid.ops.base.operands import of_one, of_two, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array

    # Spelled out by the number of parameters, so that a checker of types knows those of a lambda.
    Formula: TypeAlias = (
        Callable[[Any, Any], Any]
        | Callable[[Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any, Any, Any], Any]
    )

__all__ = ["FLOATING", "REAL", "Fused", "Slope", "adjoint", "declare", "elementwise", "flat", "fused"]

F = TypeVar("F", bound="Callable[..., Any]")

# What functions of real, and of floating-point numbers refuse, and what to do instead.
REAL = ("c", "it is defined on real numbers")
FLOATING = ("biuc", "convert to a floating-point dtype first")

# One for all who ask for the same, as both operands of a symmetric function do.
_kernel = functools.cache(Elementwise)


def flat(m: Namespace, grad: Array) -> Any:
    """Return the derivative of what is the same all over a piece: zero."""
    return m.zeros_like(grad)


class Fused:
    """A derivative rule that one kernel does on CUDA arrays.

    Attributes
    ----------
    functor : str or callable
        In the file of the op's own kernel, or ``"file.Functor"``; it takes the gradient and the arrays that are
        parameters of the rule. Or what launches something else, as for `Primitive.vjp`.
    rule : callable
        As for `Primitive.vjp`.
    exchanged : bool
        Whether the functor is that of the other operand: it takes the two in reverse order.
    """

    __slots__ = ("exchanged", "functor", "rule")

    def __init__(self, functor: str | Callable[..., Any], rule: Formula, exchanged: bool = False) -> None:
        self.functor = functor
        self.rule = rule
        self.exchanged = exchanged

    def attach(self, op: Primitive, operand: str, stem: str) -> None:
        """Attach the rule and its kernel."""
        if callable(self.functor):
            op.vjp(operand, cuda=self.functor)(self.rule)
            return
        code = self.rule.__code__
        parameters = code.co_varnames[2 : code.co_argcount]
        arrays = [name for name in parameters if not name.endswith("_shape")]
        run: Any = _kernel(*_file_and_name(stem, self.functor), "T" * (1 + len(arrays)))
        if len(arrays) < len(parameters):
            run = summed(run, exchanged=self.exchanged)
        op.vjp(operand, cuda=run)(self.rule)


class Slope:
    """A derivative that is a primitive of its own, ``<op>_grad(g, x)``: one pass over memory on both devices.

    It is linear in the gradient `g`, so that its derivative in `g` is itself.

    Attributes
    ----------
    functor : str
        In the file of the op's own kernel, or ``"file.Functor"``.
    into : callable
        ``into(xp, out, g, x, *temporaries, **settings)`` writes `g` times the slope at `x`; where the parameter is
        called `result`, it gets what the op gave.
    rule : callable
        The derivative in `x` or `result`, as for `Primitive.vjp`.
    """

    __slots__ = ("functor", "into", "rule")

    def __init__(self, functor: str, into: Callable[..., None], rule: Formula) -> None:
        self.functor = functor
        self.into = into
        self.rule = rule

    def attach(self, op: Primitive, operand: str, stem: str) -> None:
        """Make the primitive, and the rule of `op` that calls it."""
        name, settings = f"{op.name}_grad", op.settings
        kept = self.into.__code__.co_varnames[3]
        slope = fused(name, self.into, ".".join(_file_and_name(stem, self.functor)), ("g", kept))
        adjoint(slope)

        def rule(m: Namespace, grad: Array, x: Array) -> Any:
            return getattr(m, name)(grad, x)

        slope.vjp(kept)(self.rule)
        function = _calling(name, 1, settings) if settings else rule
        op.attach(Rule(function, (operand,), arguments=("out" if kept == "result" else operand, *settings)))


def adjoint(op: Primitive, back: str = "") -> None:
    """Attach the derivative of an op that is linear in its first input: `back` of the gradient instead of it.

    This primitive, by default the op itself, takes the op's other inputs and its settings too.
    """
    others = op.inputs[1:]
    rule = _calling(back or op.name, len(others), op.settings)
    op.attach(Rule(rule, op.inputs[:1], arguments=(*others, *op.settings)))


def _calling(name: str, count: int, settings: tuple[str, ...]) -> Callable[..., Any]:
    """Return the rule that calls a primitive with the gradient, `count` arrays and settings."""

    def rule(m: Namespace, grad: Array, *arguments: Any) -> Any:
        # the keyword `strict` would cost as much as the slices
        return getattr(m, name)(grad, *arguments[:count], **dict(zip(settings, arguments[count:])))  # noqa: B905

    return rule


def elementwise(
    forward: Callable[..., Any],
    kernel: str | Callable[..., Any],
    *rules: Formula | Fused | Slope | None,
    refused: tuple[str, str] | None = None,
    dtypes: tuple[str, ...] = FLOATS,
    out: str = "T",
    holomorphic: bool = True,
    caller: Callable[[Primitive], Any] | None = None,
    saved_as: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """Declare the elementwise op that the decorated function stands for, under the name of that function.

    The function says signature and documentation, and calls ``GRAPH.name(...)``.

    Parameters
    ----------
    forward : callable
        One of three: a ufunc that CuPy has too; ``forward(xp, x)`` or ``forward(xp, a, b)`` of whole arrays, or of
        more, by any names, which the function promotes itself; or ``forward(xp, out, x, *temporaries)``, which writes
        to `out` by ufuncs, in blocks that stay in the cache.
        Keyword-only parameters are settings of the op.
    kernel : str or callable
        ``"file.Functor"``: the file in `kernels` and the struct there, which takes the operands and the settings. Or
        what launches something else, as for `Primitive.cuda`.
    *rules : callable, Fused or Slope
        The derivatives of the operands in turn. A callable is as for `Primitive.vjp`: its parameters say what is saved.
        None for an operand without a gradient, no rules if none has one.
    refused : (str, str), optional
        Kinds of dtypes that the op is not defined on, and what to do instead; as for `refuse`.
    dtypes, out
        Of the kernel, as for `Elementwise`. Where it takes floating-point dtypes alone, integers become such a dtype.
    holomorphic, saved_as
        As for `Primitive`.
    caller : callable, optional
        What gives the op its caller, where it is neither `of_one` nor `of_two`.
    """

    def decorate(function: F) -> F:
        declare(
            function.__name__,
            forward,
            kernel,
            *rules,
            refused=refused,
            dtypes=dtypes,
            out=out,
            holomorphic=holomorphic,
            caller=caller,
            saved_as=saved_as,
        )
        return function

    return decorate


def declare(
    name: str,
    forward: Callable[..., Any],
    kernel: str | Callable[..., Any],
    *rules: Formula | Fused | Slope | None,
    refused: tuple[str, str] | None = None,
    dtypes: tuple[str, ...] = FLOATS,
    out: str = "T",
    holomorphic: bool = True,
    caller: Callable[[Primitive], Any] | None = None,
    saved_as: Mapping[str, str] | None = None,
) -> None:
    """Declare an op by its name, as `elementwise` does: for one of several behind one public function."""
    if isinstance(forward, np.ufunc):
        inputs = ("x",) if forward.nin == 1 else ("a", "b")
    else:
        inputs = ("x",) if _in_blocks(forward) else forward.__code__.co_varnames[1 : forward.__code__.co_argcount]
    op = fused(name, forward, kernel, inputs, dtypes=dtypes, out=out, holomorphic=holomorphic, saved_as=saved_as)
    stem = kernel.partition(".")[0] if isinstance(kernel, str) else ""
    for operand, rule in zip(op.inputs, rules, strict=bool(rules)):
        if isinstance(rule, Fused | Slope):
            rule.attach(op, operand, stem)
        elif rule is not None:
            op.vjp(operand)(rule)
    # the caller looks at the rules, so they come first
    if caller is not None:
        caller(op)
    elif len(inputs) <= 2:
        (of_one if len(inputs) == 1 else of_two)(op, at_least_float=dtypes is FLOATS, refused=refused)


def _file_and_name(stem: str, functor: str) -> list[str]:
    """Return file and name of a functor, which may say its file."""
    return functor.split(".") if "." in functor else [stem, functor]


def _in_blocks(forward: Callable[..., Any]) -> bool:
    return forward.__code__.co_varnames[1] == "out"


def fused(
    name: str,
    forward: Callable[..., Any],
    kernel: str | Callable[..., Any],
    inputs: tuple[str, ...],
    *,
    dtypes: tuple[str, ...] = FLOATS,
    out: str = "T",
    holomorphic: bool = True,
    saved_as: Mapping[str, str] | None = None,
) -> Primitive:
    """Return the primitive of an elementwise function and its kernel, both as for `elementwise`.

    Rules and caller are still to come; without a caller it takes operands of one shape and dtype.
    """
    settings: tuple[str, ...] = ()
    cpu = None
    if isinstance(forward, np.ufunc):
        cpu, called = forward, forward.__name__

        def reference(xp: ModuleType, *arrays: Any) -> Any:
            return getattr(xp, called)(*arrays)
    else:
        code = forward.__code__
        settings = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        scratch = code.co_argcount - 2 - len(inputs)

        def blocks(xp: ModuleType, *arrays: Any, **given: Any) -> Any:
            return in_blocks(xp, forward, scratch, *arrays, **given)

        reference = blocks if _in_blocks(forward) else forward
    op = Primitive(
        reference,
        cpu=cpu,
        name=name,
        inputs=inputs,
        settings=settings,
        holomorphic=holomorphic,
        saved_as=saved_as,
    )
    if callable(kernel):
        op.cuda(kernel)
        return op
    run: Any = _kernel(*kernel.split("."), "T" * len(inputs) + "S" * len(settings), dtypes=dtypes, out=out)

    def run_with_settings(*arrays: Any, **given: Any) -> Any:
        return run(*arrays, *[given[setting] for setting in settings])

    op.cuda(run_with_settings if settings else run)
    return op
