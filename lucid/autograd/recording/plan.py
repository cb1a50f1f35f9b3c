"""Derivative rules, and the plan of a node: the values that it keeps and the rules that it runs."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.namespace import CPU, CUDA, HALVES
from lucid.cuda.launch.elementwise import Elementwise
from lucid.cuda.launch.plans import can_be_noted, off_plan, with_plan
from lucid.errors import NotDifferentiableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lucid.autograd.recording.namespace import Namespace
    from lucid.autograd.recording.primitive import Primitive
    from lucid.base.arrays import Array


# How many plans are kept for one primitive, and for one plan: patterns of operands are as many as a program likes.
MOST_PLANS = 32
# Plans of more operands are made anew each time, which costs a fraction of their op.
MOST_OPERANDS = 32


class Rule:
    """One derivative formula: the gradients of some inputs, from the values that its parameters name.

    Attributes
    ----------
    function : callable
        ``function(m, grad, *arguments)``; returns the gradient of the one input that it covers, or a tuple.
    covers : tuple of str
        The inputs whose gradients it gives.
    arguments : tuple of str
        Its parameters after `m` and `grad`: an input's or an output's name, ``<input>_shape``, ``<input>_dtype``, a
        setting, or, as the last, ``needs``: one bool for each covered operand.
    cuda : callable or None
        ``cuda(grad, *arguments)``: the same gradients of raw CUDA arrays by one kernel; NotImplemented where it has
        none for these dtypes or layouts.
    planned : bool
        Whether `function` does nothing to CUDA arrays but what a launch plan notes, and may be done by one.
    """

    __slots__ = ("_by_plan", "arguments", "covers", "cuda", "function", "planned")

    def __init__(
        self,
        function: Callable[..., Any],
        covers: tuple[str, ...],
        cuda: Callable[..., Any] | None = None,
        arguments: tuple[str, ...] = (),
        *,
        planned: bool = False,
    ) -> None:
        self.function = function
        self.planned = planned
        self._by_plan: Callable[..., Any] | None = None
        self.covers = covers
        self.cuda = cuda
        self.arguments: tuple[str, ...] = arguments or function.__code__.co_varnames[2 : function.__code__.co_argcount]

    def bound(self, needs: tuple[bool, ...], *, conjugate: bool, cuda: bool) -> Callable[..., Any]:
        """Return the function of the needed gradients: `function`, with its kernel on CUDA, conjugated if complex."""
        if conjugate:
            function = conjugated(self.function)
        elif cuda and self.planned:
            function = self._by_plan = self._by_plan or by_plan(self)
        else:
            function = by_kernel(self) if cuda and self.cuda else self.function
        if "needs" not in self.arguments:
            return function

        def run(m: Namespace, grad: Array, *arguments: Any) -> Any:
            return function(m, grad, *arguments, needs)

        return run


class DerivativePlan:
    """Values kept and rules run by a node of one primitive, for one pattern of operands that require grad.

    Attributes
    ----------
    node_type : type
        The class of the node.
    plain_values, plain : tuple
        The values of a node of operands that were not broadcast, None for each shape; and all that such a node keeps if
        it saves nothing.
    saves : tuple of int
        The positions of the operands to save.
    saves_outs : tuple of int
        The outputs to save, after the operands.
    values : tuple of (str, object)
        What else is kept: ``("shape", position)``, ``("dtype", position)``, ``("setting", name)``.
    steps : tuple of (callable, callable, int or tuple)
        For each rule its function, what takes its arguments from the pool of saved arrays and values, and the operand,
        or operands, whose gradients it gives.
    direct : callable or None
        The function of the only step, where it takes the pool as it is, of an op of one or two operands, or for all.
    joint : bool
        Whether `direct` gives the gradients of all operands.
    pair : tuple or None
        Functions and takers of two steps that give the gradients of two operands in turn.
    by_launches : callable or None
        ``by_launches(arguments, {})``: what `run` gives for CUDA arrays, and its launch plan. The arguments are the
        gradient, or of a node of several outputs each of them, and the pool.
    narrowed : callable
        ``narrowed(wanted)``: the plan that takes the same pool and gives the gradients of those operands alone.
    """

    __slots__ = (
        "by_launches",
        "direct",
        "joint",
        "narrowed",
        "node_type",
        "pair",
        "plain",
        "plain_values",
        "saves",
        "saves_outs",
        "steps",
        "values",
    )

    def __init__(
        self,
        primitive: Primitive,
        needed: tuple[bool, ...],
        wanted: tuple[bool, ...] | None = None,
        *,
        conjugate: bool = False,
        cuda: bool = False,
        halves: bool = False,
    ) -> None:
        count = len(needed)
        of_all = wanted is None
        wanted = needed if wanted is None else wanted
        covered = {name: primitive.positions(name, count) for name in primitive.inputs}
        rules = [
            (rule, tuple(p for name in rule.covers for p in covered[name]))
            for rule in primitive.rules
            if any(needed[p] for name in rule.covers for p in covered[name])
        ]
        differentiable = {p for _, targets in rules for p in targets}
        missing = next((i for i in range(count) if needed[i] and i not in differentiable), None)
        if missing is not None:
            raise NotDifferentiableError(
                f"{primitive.name}: no derivative with respect to operand {missing} is known; detach() it, "
                "or run the op under lucid.no_grad()"
            )
        saved: set[int] = set()
        outs: list[int] = []
        values: list[tuple[str, Any]] = []
        sources: list[list[tuple[str, Any]]] = []
        for rule, _ in rules:
            taken: list[tuple[str, Any]] = []
            for argument in rule.arguments:
                if argument == "needs":
                    continue
                source = primitive.source(argument, count)
                kind: str = source[0]
                what: Any = source[1]
                if kind == "input":
                    saved.update(what)
                elif kind == "out":
                    outs.extend([what] if what not in outs else [])
                elif source not in values:
                    values.append(source)
                taken.append(source)
            sources.append(taken)
        values.sort(key=str)
        self.saves, self.saves_outs, self.values = tuple(sorted(saved)), tuple(outs), tuple(values)
        slot_of = {p: slot for slot, p in enumerate(self.saves)}
        self.node_type = primitive.node_type
        self.plain_values = (None,) * len(values)
        self.plain = (self, (), (), self.plain_values)

        def slot(kind: str, what: Any) -> Any:
            if kind == "input":
                slots = tuple([slot_of[p] for p in what])
                return slots if primitive.variadic else slots[0]
            if kind == "out":
                return len(saved) + outs.index(what)
            return len(saved) + len(outs) + values.index((kind, what))

        takes = [tuple(slot(kind, what) for kind, what in taken) for taken in sources]
        self.steps = tuple(
            (
                rule.bound(tuple(wanted[p] for p in targets), conjugate=conjugate, cuda=cuda),
                taker(take),
                targets[0] if len(rule.covers) == 1 and not primitive.variadic else targets,
            )
            for (rule, targets), take in zip(rules, takes, strict=True)
            if any(wanted[p] for p in targets)
        )
        self.direct = None
        self.joint = False
        self.pair = None
        self.by_launches = None
        if halves:
            self.steps = tuple([(on_halves(function), take, targets) for function, take, targets in self.steps])
        if not of_all:
            return
        if cuda and not conjugate and all(rule.planned for rule, _ in rules):
            self.by_launches = with_plan(self.launching(needed, len(primitive.outputs)))
        self.narrowed = functools.lru_cache(MOST_PLANS)(
            functools.partial(DerivativePlan, primitive, needed, conjugate=conjugate, cuda=cuda, halves=halves)
        )
        if count == 2 and [step[2] for step in self.steps] == [0, 1]:
            self.pair = (*self.steps[0][:2], *self.steps[1][:2])
        if len(takes) == 1 and takes[0] == tuple(range(len(saved) + len(outs) + len(values))):
            targets = self.steps[0][2]
            self.joint = targets == tuple(range(count))
            if self.joint or (count <= 2 and type(targets) is int):
                self.direct = self.steps[0][0]

    def values_of(self, arrays: Sequence[Any], settings: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values that a node keeps beside arrays: shapes, dtypes and settings."""
        values: list[Any] = []
        for kind, what in self.values:
            if kind == "setting":
                values.append(settings[what])
            elif kind == "shape":
                values.append(_shape_of(arrays[what]))
            elif kind == "dtype":
                values.append(getattr(arrays[what], "dtype", None))
            elif kind == "shapes":
                values.append([_shape_of(arrays[p]) for p in what])
            else:
                values.append([arrays[p].dtype for p in what])
        return tuple(values)

    def launching(self, needed: tuple[bool, ...], outputs: int) -> Callable[..., Any]:
        """Return `run` on raw CUDA arrays, in a form that a launch plan can note."""
        edges = tuple([need or None for need in needed])

        def run(*arguments: Any) -> Any:
            grad: Any = arguments[0] if outputs == 1 else list(arguments[:outputs])
            return tuple(self.run(CUDA, grad, arguments[outputs:], edges))

        return run

    def run(self, m: Namespace, grad: Array, pool: tuple[Any, ...], edges: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the gradient of each operand from the saved arrays and values in `pool`."""
        if self.direct is not None:
            result = self.direct(m, grad, *pool)
            if self.joint:
                return result
            if len(edges) == 1:
                return (result,)
            return (result, None) if edges[0] is not None else (None, result)
        if self.pair is not None:
            first, first_take, second, second_take = self.pair
            return first(m, grad, *first_take(pool)), second(m, grad, *second_take(pool))
        grads: list[Any] = [None] * len(edges)
        for function, take, targets in self.steps:
            result = function(m, grad, *take(pool))
            if isinstance(targets, int):
                grads[targets] = result
            else:
                for target, g in zip(targets, result, strict=True):
                    grads[target] = g
        return tuple(grads)


def _shape_of(array: Any) -> tuple[int, ...] | None:
    """Return the shape of an array; None for a number, as it has no gradient."""
    return getattr(array, "shape", None)


def taker(take: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], Sequence[Any]]:
    """Return the function that takes a rule's arguments from the pool; a tuple of slots gives a list."""
    if any(type(i) is tuple for i in take):
        return lambda pool: [pool[i] if type(i) is int else [pool[j] for j in i] for i in take]
    if len(take) > 1:
        return operator.itemgetter(*take)
    return operator.itemgetter(slice(take[0], take[0] + 1) if take else slice(0))


def on_halves(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule for raw arrays of half types on the CPU made of one for others."""

    @functools.wraps(rule)
    def run(m: Namespace, grad: Array, *arguments: Any) -> Any:
        return rule(HALVES if m is CPU else m, grad, *arguments)

    return run


def by_plan(rule: Rule) -> Callable[..., Any]:
    """Return a rule that runs by launch plans on raw CUDA arrays."""
    function = rule.function
    on_cuda = with_plan(functools.partial(function, CUDA))

    @functools.wraps(function)
    def run(m: Namespace, grad: Array, *arguments: Any) -> Any:
        return on_cuda((grad, *arguments), {})[0] if m is CUDA else function(m, grad, *arguments)

    return run


def by_kernel(rule: Rule) -> Callable[..., Any]:
    """Return a rule that asks its kernel first if it runs on raw CUDA arrays."""
    kernel: Any = noted(rule.cuda)

    @functools.wraps(rule.function)
    def run(m: Namespace, grad: Array, *arguments: Any) -> Any:
        if m is CUDA:
            grads = kernel(grad, *arguments)
            if grads is not NotImplemented:
                return grads
        return rule.function(m, grad, *arguments)

    return run


def kernel_or_reference(kernel: Callable[..., Any], general: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs the kernel, and the general form if that gives NotImplemented."""
    kernel = noted(kernel)

    def run(*arrays: Any, **settings: Any) -> Any:
        out = kernel(*arrays, **settings)
        return general(*arrays, **settings) if out is NotImplemented else out

    return run


def noted(kernel: Any) -> Callable[..., Any]:
    """Return the kernel, kept out of launch plans unless it is known to do nothing but launches."""
    return kernel if isinstance(kernel, Elementwise) or can_be_noted(kernel) else off_plan(kernel)


def conjugated(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule for complex arrays made of one for real arrays.

    The gradient of a holomorphic f is PyTorch's ``grad * conj(f'(z))``, which is ``conj(conj(grad) * f'(z))``: the
    formula of the real case between two conjugations.
    """

    @functools.wraps(rule)
    def run(m: Namespace, grad: Any, *arguments: Any) -> Any:
        return _conjugates(m, rule(m, _conjugates(m, grad), *arguments))

    return run


def _conjugates(m: Namespace, grads: Any) -> Any:
    """Return the conjugate of a gradient, of those of several inputs or outputs a list; None stays None."""
    if isinstance(grads, tuple | list):
        return [_conjugates(m, grad) for grad in grads]  # pyright: ignore[reportUnknownVariableType]
    return None if grads is None else m.conj(grads)
