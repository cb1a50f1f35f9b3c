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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from lucid.autograd.recording.plan import Rule
from lucid.autograd.recording.primitive import Primitive
from lucid.cuda.launch.elementwise import FLOATS, Elementwise
from lucid.ops.base.blocks import in_blocks
from lucid.ops.base.elementwise import of_one, of_two, summed

if TYPE_CHECKING:
    from collections.abc import Callable

    # Spelled out by the number of parameters, so that a checker of types knows those of a lambda.
    Formula: TypeAlias = (
        Callable[[Any, Any], Any]
        | Callable[[Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any, Any], Any]
        | Callable[[Any, Any, Any, Any, Any, Any], Any]
    )

__all__ = ["FLOATING", "REAL", "Fused", "Slope", "declare", "elementwise", "flat"]

F = TypeVar("F", bound="Callable[..., Any]")

# What functions of real, and of floating-point numbers refuse, and what to do instead.
REAL = ("c", "it is defined on real numbers")
FLOATING = ("biuc", "convert to a floating-point dtype first")

# One for all who ask for the same, as both operands of a symmetric function do.
_kernel = functools.cache(Elementwise)


def flat(m: Any, grad: Any) -> Any:
    """Return the derivative of what is the same all over a piece: zero."""
    return m.zeros_like(grad)


@dataclass(frozen=True, slots=True)
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

    functor: str | Callable[..., Any]
    rule: Formula
    exchanged: bool = False

    def attach(self, op: Primitive, operand: str, stem: str) -> None:
        """Attach the rule and its kernel."""
        if callable(self.functor):
            op.vjp(operand, cuda=self.functor)(self.rule)
            return
        code = self.rule.__code__
        parameters = code.co_varnames[2 : code.co_argcount]
        arrays = [name for name in parameters if not name.endswith("_shape")]
        run: Any = _kernel(*_place(stem, self.functor), "T" * (1 + len(arrays)))
        if len(arrays) < len(parameters):
            run = summed(run, exchanged=self.exchanged)
        op.vjp(operand, cuda=run)(self.rule)


@dataclass(frozen=True, slots=True)
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

    functor: str
    into: Callable[..., None]
    rule: Formula

    def attach(self, op: Primitive, operand: str, stem: str) -> None:
        """Make the primitive, and the rule of `op` that calls it."""
        name, settings = f"{op.name}_grad", op.settings
        kept = self.into.__code__.co_varnames[3]
        slope = _primitive(name, self.into, ".".join(_place(stem, self.functor)), ("g", kept))

        def rule(m: Any, grad: Any, x: Any) -> Any:
            return getattr(m, name)(grad, x)

        def rule_with_settings(m: Any, grad: Any, x: Any, *values: Any) -> Any:
            return getattr(m, name)(grad, x, **dict(zip(settings, values, strict=True)))

        function = rule_with_settings if settings else rule
        slope.attach(Rule(function, ("g",), arguments=(kept, *settings)))
        slope.vjp(kept)(self.rule)
        op.attach(Rule(function, (operand,), arguments=("out" if kept == "result" else operand, *settings)))


def elementwise(
    forward: Callable[..., Any],
    kernel: str | Callable[..., Any],
    *rules: Formula | Fused | Slope,
    refused: tuple[str, str] | None = None,
    dtypes: tuple[str, ...] = FLOATS,
    out: str = "T",
    holomorphic: bool = True,
    caller: Callable[[Primitive], Any] | None = None,
) -> Callable[[F], F]:
    """Declare the elementwise op that the decorated function stands for, under the name of that function.

    The function says signature and documentation, and calls ``GRAPH.name(...)``.

    Parameters
    ----------
    forward : callable
        One of three: a ufunc that CuPy has too; ``forward(xp, x)`` or ``forward(xp, a, b)`` of whole arrays; or
        ``forward(xp, out, x, *temporaries)``, which writes to `out` by ufuncs, in blocks that stay in the cache.
        Keyword-only parameters are settings of the op.
    kernel : str or callable
        ``"file.Functor"``: the file in `kernels` and the struct there, which takes the operands and the settings. Or
        what launches something else, as for `Primitive.cuda`.
    *rules : callable, Fused or Slope
        The derivatives of the operands in turn. A callable is as for `Primitive.vjp`: its parameters say what is saved.
        No rules for what has no gradient.
    refused : (str, str), optional
        Kinds of dtypes that the op is not defined on, and what to do instead; as for `refuse`.
    dtypes, out
        Of the kernel, as for `Elementwise`. Where it takes floating-point dtypes alone, integers become such a dtype.
    holomorphic
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
        )
        return function

    return decorate


def declare(
    name: str,
    forward: Callable[..., Any],
    kernel: str | Callable[..., Any],
    *rules: Formula | Fused | Slope,
    refused: tuple[str, str] | None = None,
    dtypes: tuple[str, ...] = FLOATS,
    out: str = "T",
    holomorphic: bool = True,
    caller: Callable[[Primitive], Any] | None = None,
) -> None:
    """Declare an op by its name, as `elementwise` does: for one of several behind one public function."""
    if isinstance(forward, np.ufunc):
        count = forward.nin
    else:
        count = 1 if _in_blocks(forward) else forward.__code__.co_argcount - 1
    inputs = ("x",) if count == 1 else ("a", "b")
    op = _primitive(name, forward, kernel, inputs, dtypes=dtypes, out=out, holomorphic=holomorphic)
    stem = kernel.partition(".")[0] if isinstance(kernel, str) else ""
    for operand, rule in zip(op.inputs, rules, strict=bool(rules)):
        if isinstance(rule, Fused | Slope):
            rule.attach(op, operand, stem)
        else:
            op.vjp(operand)(rule)
    # the caller looks at the rules, so they come first
    if caller is not None:
        caller(op)
    else:
        (of_one if count == 1 else of_two)(op, at_least_float=dtypes is FLOATS, refused=refused)


def _place(stem: str, functor: str) -> list[str]:
    """Return file and name of a functor, which may say its file."""
    return functor.split(".") if "." in functor else [stem, functor]


def _in_blocks(forward: Callable[..., Any]) -> bool:
    return forward.__code__.co_varnames[1] == "out"


def _primitive(
    name: str,
    forward: Callable[..., Any],
    kernel: str | Callable[..., Any],
    inputs: tuple[str, ...],
    *,
    dtypes: tuple[str, ...] = FLOATS,
    out: str = "T",
    holomorphic: bool = True,
) -> Primitive:
    """Return the primitive with its kernel; rules and caller are still to come."""
    settings: tuple[str, ...] = ()
    cpu = None
    if isinstance(forward, np.ufunc):
        cpu, called = forward, forward.__name__

        def reference(xp: Any, *arrays: Any) -> Any:
            return getattr(xp, called)(*arrays)
    else:
        code = forward.__code__
        settings = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        scratch = code.co_argcount - 2 - len(inputs)

        def blocks(xp: Any, *arrays: Any, **given: Any) -> Any:
            return in_blocks(xp, forward, scratch, *arrays, **given)

        reference = blocks if _in_blocks(forward) else forward
    op = Primitive(reference, cpu=cpu, name=name, inputs=inputs, settings=settings, holomorphic=holomorphic)
    if callable(kernel):
        op.cuda(kernel)
        return op
    run: Any = _kernel(*kernel.split("."), "T" * len(inputs) + "S" * len(settings), dtypes=dtypes, out=out)

    def run_with_settings(*arrays: Any, **given: Any) -> Any:
        return run(*arrays, *[given[setting] for setting in settings])

    op.cuda(run_with_settings if settings else run)
    return op
