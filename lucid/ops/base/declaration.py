"""Common rules of elementwise ops, and their declaration.

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
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lucid.autograd.recording.plan import Rule
from lucid.autograd.recording.primitive import Primitive
from lucid.cuda.launch.elementwise import FLOATS, Elementwise
from lucid.ops.base.blocks import in_blocks
from lucid.ops.base.formula.formulas import APPLIED, Formula, module_of
from lucid.ops.base.formula.trace import FORMULAS, OPERATIONS, settings_of
from lucid.ops.base.operands import of_one, of_two, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.ops.base.formula.formulas import Function


F = TypeVar("F", bound="Callable[..., Any]")

# What functions of real, and of floating-point numbers refuse, and what to do instead.
REAL = ("c", "it is defined on real numbers")
FLOATING = ("biuc", "convert to a floating-point dtype first")

# One for all who ask for the same.
_kernel = functools.cache(Elementwise)


def flat(m: Namespace, grad: Array) -> Any:
    """Return the derivative of a piecewise constant function: zero."""
    return m.zeros_like(grad)


def of_formula(
    formula: Function | Formula, name: str, *, stem: str = "", dtypes: tuple[str, ...] = FLOATS, out: str = "T"
) -> Elementwise:
    """Return the kernel of a formula, or of a rule's work on each element, by the name of its functor.

    Its operands are the arrays, then the settings. What a module declares is compiled together: by default the module
    in which the formula stands.
    """
    if not isinstance(formula, Formula):
        formula = Formula(formula)
    operands = "T" * len(formula.arrays) + "S" * len(formula.settings)
    return Elementwise(stem or formula.stem, name, operands, dtypes=dtypes, out=out, text=formula.functor)


def _title(name: str) -> str:
    """Return the name of the functor of a primitive."""
    return name.title().replace("_", "")


class Fused:
    """A derivative rule done by one kernel on CUDA arrays: the rule's formula for each element.

    Attributes
    ----------
    rule : callable
        As for `Primitive.vjp`.
    kernel : str or callable, optional
        Where the kernel of the rule is written by hand: ``"file.Functor"``, which takes the gradient and the arrays
        that are parameters of the rule. Or what launches something else, as for `Primitive.vjp`.
    """

    __slots__ = ("kernel", "rule")

    def __init__(self, rule: Function, kernel: str | Callable[..., Any] | None = None) -> None:
        self.rule = rule
        self.kernel = kernel

    def attach(self, op: Primitive, operand: str, stem: str = "") -> None:
        """Attach the rule and its kernel."""
        run: Any = self.kernel
        if not callable(run):
            code = self.rule.__code__
            parameters = code.co_varnames[2 : code.co_argcount]
            arrays = [name for name in parameters if not name.endswith("_shape")]
            if run is None:
                name = f"{_title(op.name)}Grad" + (operand.capitalize() if len(op.inputs) > 1 else "")
                run = of_formula(self.rule, name, stem=stem)
            else:
                run = _kernel(*run.split("."), "T" * (1 + len(arrays)))
            if len(arrays) < len(parameters):
                run = summed(run)
        op.vjp(operand, cuda=run)(self.rule)


class Slope:
    """A derivative that is a primitive of its own, ``<op>_grad(g, x)``: one pass over memory on both devices.

    It is linear in the gradient `g`, so that its derivative in `g` is itself.

    Attributes
    ----------
    formula : callable or Formula
        `g` times the slope at `x`, as a formula of these and of the op's settings; where the parameter is called
        `result`, it gets what the op gave.
    rule : callable
        The derivative in `x` or `result`, as for `Primitive.vjp`.
    """

    __slots__ = ("formula", "rule")

    def __init__(self, formula: Function | Formula, rule: Function) -> None:
        self.formula = formula if isinstance(formula, Formula) else Formula(formula)
        self.rule = rule

    def attach(self, op: Primitive, operand: str, stem: str) -> None:
        """Make the primitive, and the rule of `op` that calls it."""
        name, settings = f"{op.name}_grad", op.settings
        kept = self.formula.arrays[1]
        slope = fused(name, self.formula, stem=stem)
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
    forward: Function | Formula, *rules: Function | Fused | Slope | None, **details: Any
) -> Callable[[F], F]:
    """Declare the elementwise op that the decorated function stands for, under the name of that function.

    The function says signature and documentation, and calls ``GRAPH.name(...)``. All parameters are as for `declare`.
    """

    def decorate(function: F) -> F:
        declare(function.__name__, forward, *rules, stem=module_of(function), **details)
        return function

    return decorate


def declare(
    name: str,
    forward: Function | Formula,
    *rules: Function | Fused | Slope | None,
    refused: tuple[str, str] | None = None,
    dtypes: tuple[str, ...] = FLOATS,
    caller: Callable[[Primitive], Any] | None = None,
    **details: Any,
) -> None:
    """Declare an elementwise op by its name, as `elementwise` does; for one of several behind one public function.

    Parameters
    ----------
    name : str
    forward, *rules
        As for `fused`.
    refused : (str, str), optional
        Kinds of dtypes that the op is not defined on, and what to do instead; as for `refuse`.
    dtypes : tuple of str
        Of the kernel, as for `Elementwise`. Where it takes floating-point dtypes alone, integers become such a dtype.
    caller : callable, optional
        What gives the op its caller, where it is neither `of_one` nor `of_two`.
    **details
        The other parameters of `fused`.
    """
    op = fused(name, forward, *rules, dtypes=dtypes, **details)
    # the caller looks at the rules, so they come first
    if caller is not None:
        caller(op)
    elif len(op.inputs) <= 2:
        (of_one if len(op.inputs) == 1 else of_two)(op, at_least_float=dtypes is FLOATS, refused=refused)


def _as_formula(name: str, forward: Function | Formula, kernel: Any) -> Callable[..., Any] | Formula:
    """Return the formula of an op, if it is declared by one, or is an operation by its name."""
    if isinstance(forward, Formula):
        return forward
    if not isinstance(forward, np.ufunc) and forward.__code__.co_varnames[0] == "m":
        return Formula(forward)
    if kernel is not None or name not in OPERATIONS:
        return forward
    if len(_inputs_of(forward)) == 1:
        return Formula(lambda m, x: getattr(m, name)(x), forward)
    return Formula(lambda m, a, b: getattr(m, name)(a, b), forward)


def _inputs_of(forward: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the operands of a ufunc or of a function of arrays."""
    if isinstance(forward, np.ufunc):
        return ("x",) if forward.nin == 1 else ("a", "b")
    return ("x",) if _in_blocks(forward) else forward.__code__.co_varnames[1 : forward.__code__.co_argcount]


def _in_blocks(forward: Callable[..., Any]) -> bool:
    return forward.__code__.co_varnames[1] == "out"


def fused(
    name: str,
    forward: Function | Formula,
    *rules: Function | Fused | Slope | None,
    kernel: str | Callable[..., Any] | None = None,
    stem: str = "",
    dtypes: tuple[str, ...] = FLOATS,
    out: str = "T",
    holomorphic: bool = True,
    saved_as: Mapping[str, str] | None = None,
) -> Primitive:
    """Return the primitive of an elementwise function, with its kernel and rules.

    Without the caller that `declare` gives it takes operands of one shape and dtype.

    Parameters
    ----------
    name : str
    forward : callable or Formula
        One of four: a formula ``forward(m, x)``, or a `Formula`; a ufunc that CuPy has too; ``forward(xp, x)`` or
        ``forward(xp, a, b)`` of whole arrays, or of more, by any names, which the function promotes itself; or
        ``forward(xp, out, x, *temporaries)``, which writes to `out` by ufuncs, in blocks that stay in the cache.
        Keyword-only parameters are settings of the op.
    *rules : callable, Fused or Slope
        The derivatives of the operands in turn. A callable is as for `Primitive.vjp`: its parameters say what is saved.
        None for an operand without a gradient, no rules if none has one, or if they are attached later.
    kernel : str or callable, optional
        Where neither the formula gives it, nor the op's name in `OPERATIONS`: ``"file.Functor"``, the file in `kernels`
        and the struct there, which takes the operands and the settings. Or what launches something else, as for
        `Primitive.cuda`.
    stem, dtypes, out
        Of the kernel, as for `Elementwise`.
    holomorphic, saved_as
        As for `Primitive`.
    """
    declared = _as_formula(name, forward, kernel)
    formula: Any = None
    numpy: Any = declared
    if isinstance(declared, Formula):
        formula, numpy, inputs, settings = declared, declared.numpy, declared.arrays, declared.settings
        if name not in OPERATIONS:
            FORMULAS[name] = formula.function
    else:
        inputs, settings = _inputs_of(declared), () if isinstance(declared, np.ufunc) else settings_of(declared)
    run: Any = kernel
    if isinstance(kernel, str):
        run = _kernel(*kernel.split("."), "T" * len(inputs) + "S" * len(settings), dtypes=dtypes, out=out)
    elif kernel is None:
        if formula is None:
            raise TypeError(f"{name}: expected a formula, or the name of a kernel, got {declared!r}")
        run = of_formula(formula, _title(name), stem=stem, dtypes=dtypes, out=out)

    def run_with_settings(*arrays: Any, **values: Any) -> Any:
        return run(*arrays, *[values[setting] for setting in settings])

    op = Primitive(
        _reference_of(numpy, formula, len(inputs)),
        cpu=numpy if isinstance(numpy, np.ufunc) else None,
        name=name,
        inputs=inputs,
        settings=settings,
        holomorphic=holomorphic,
        saved_as=saved_as,
    )
    op.cuda(run_with_settings if settings and not callable(kernel) else run)
    for operand, rule in zip(op.inputs, rules, strict=bool(rules)):
        if isinstance(rule, Fused | Slope):
            rule.attach(op, operand, stem)
        elif rule is not None:
            op.vjp(operand)(rule)
    return op


def _reference_of(numpy: Any, formula: Any, count: int) -> Callable[..., Any]:
    """Return the function that computes an op of `count` operands on NumPy's or CuPy's arrays."""
    if isinstance(numpy, np.ufunc):
        called = numpy.__name__

        def named(xp: ModuleType, *arrays: Any) -> Any:
            return getattr(xp, called)(*arrays)

        return named
    if numpy is not None and not _in_blocks(numpy):
        return numpy
    if formula is not None:
        APPLIED.append(formula)
        return formula.apply
    whole: Any = numpy
    scratch = whole.__code__.co_argcount - 2 - count

    def blocks(xp: ModuleType, *arrays: Any, **values: Any) -> Any:
        return in_blocks(xp, whole, scratch, *arrays, **values)

    return blocks
