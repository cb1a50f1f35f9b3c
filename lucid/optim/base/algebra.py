"""Chains of ufuncs and kernels from the formula of an optimizer."""

from __future__ import annotations

import inspect
import math
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from lucid.cpu.functions import Function, Unit
from lucid.errors import KernelError
from lucid.ops.base.formula.chain import chain_in_place, conditions
from lucid.ops.base.formula.functor import expressions
from lucid.ops.base.formula.trace import Node, Symbol, Traced, Tracer, behind_operands, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lucid.cuda.launch.kernels import Kernel
    from lucid.optim.base.elementwise import ElementwiseOptimizer

    Chain: TypeAlias = Callable[..., None]


class _Host:
    """The namespace of `numbers` on the host: functions of floats by the names of a `Tracer`."""

    sqrt = staticmethod(math.sqrt)
    maximum = staticmethod(max)

    def where(self, condition: object, a: float, b: float) -> float:
        """Return the choice between two numbers."""
        return a if condition else b

    def float32(self, x: float) -> float:
        """Return a number as float32 has it."""
        return float(np.float32(x))


HOST = cast("Tracer", _Host())
"""What `numbers` of an optimizer is called with by the host."""


# ---- what formulas share ----


def descent(m: Tracer, grad: Node, param: Node, weight_decay: Node, maximize: Node) -> Any:
    """Return ``±grad + weight_decay * param`` (minus: maximize), without a product of 0 and infinity."""
    grad = m.where(maximize, m.neg(grad), grad)
    return m.where(weight_decay, m.add(m.mul(param, weight_decay), grad), grad)


def moved(m: Tracer, mean: Node, new: Node, decay: Node) -> Any:
    """Return ``decay * mean + (1 - decay) * new`` as PyTorch's `lerp` has it: `new` if decay is 0."""
    way = m.sub(new, mean)
    return m.where(m.le(decay, 0.5), m.sub(new, m.mul(way, decay)), m.add(mean, m.mul(way, m.sub(1, decay))))


def scaled(m: Tracer, x: Node, factor: Node) -> Any:
    """Return ``x * factor``; the CPU leaves a product with 1 out."""
    return m.where(m.ne(factor, 1), m.mul(x, factor), x)


# ---- the step on each side ----


class Step:
    """The step of parameters with one choice of the arrays that a state may have.

    Attributes
    ----------
    function : callable
        The optimizer's formula.
    absent : tuple of str
        The parameters of it that are None.
    kernel, loop : Kernel and Function, optional
        On CUDA devices and on the CPU.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        absent: tuple[str, ...],
        kernel: Kernel | None = None,
        loop: Function | None = None,
    ) -> None:
        self.function = function
        self.absent = absent
        self.kernel = kernel
        self.loop = loop
        self._chains: dict[tuple[bool, ...], tuple[Chain, int]] = {}

    def traced(self, truths: Mapping[str, bool] | None = None) -> Traced:
        """Return the operations; with the truths of conditions on numbers those that are done then."""
        return trace(self.function, truths, **dict.fromkeys(self.absent))

    @cached_property
    def _conditions(self) -> tuple[list[str], Callable[..., tuple[bool, ...]]]:
        return conditions(self.function.__qualname__, self.traced())

    def chain(self, numbers: Mapping[str, Any]) -> tuple[Chain, int]:
        """Return ``chain(xp, *row, *temporaries, **numbers)`` of such numbers, and how many temporaries it takes."""
        texts, holds = self._conditions
        truths = holds(None, **numbers)
        known = self._chains.get(truths)
        if known is None:
            traced = self.traced(dict(zip(texts, truths, strict=True)))
            known = self._chains[truths] = chain_in_place(self.function.__qualname__, traced, traced.arrays[1:])
        return known


def state_forms(kind: type[ElementwiseOptimizer]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], str]]:
    """Yield the arrays that a state may have, the parameters of a formula that are None then, and a kernel's name."""
    slots = [(name, slot.asked_by) for name, slot in kind.slots.items() if not slot.scalar]
    parameters = inspect.getfullargspec(kind.formula).args[3:]
    optional = [name for name, asked_by in slots if asked_by]
    for chosen in product((False, True), repeat=len(optional)):
        dropped = {name for name, present in zip(optional, chosen, strict=True) if not present}
        names = tuple([name for name, _ in slots if name not in dropped])
        absent = [each for each, (name, _) in zip(parameters, slots, strict=True) if name in dropped]
        asked_for = [name for name in optional if name not in dropped]
        yield names, tuple(absent), "_".join([getattr(kind, "kernel", ""), *asked_for])


# ---- CUDA C++ ----

_KERNEL = """\
template <typename T>
__global__ void {name}(Tensors<{depth}> tensors, int rows, int chunk, const float* found, const {struct}* numbers_t,
                       {struct} numbers{flags}) {{
    typedef Real<T> A;
    if (!begins(tensors, rows, chunk, found, numbers_t, numbers)) return;
{numbers}    for_each_in_chunk<T, {depth}, 1>(tensors, rows, chunk, [&](A(&value_d)[{depth}]) {{
{body}    }});
}}
"""
_NUMBERS = """\
__global__ void {name}_numbers(Scalars<{count}> state, int rows, const float* found, const double* settings,
                               {struct}* numbers_t) {{
    typedef double A;
    LUCID_FOR(t, rows) {{
{body}    }}
}}
"""


def source_of(kind: type[ElementwiseOptimizer], plain: Sequence[str], flags: Sequence[str]) -> str:
    """Return the kernels of an optimizer: of its step with each state, and of the numbers that it takes.

    Parameters
    ----------
    kind : type
    plain, flags : sequence of str
        The formula's numbers, and those that are flags.
    """
    struct = f"{kind.kernel.capitalize()}Numbers"
    parts = [f"struct {struct} {{\n    double {', '.join(plain)};\n}};\n"]
    for names, absent, name in state_forms(kind):
        parts.append(_kernel(name, struct, Step(kind.formula, absent).traced(), flags, 2 + len(names)))
    parts.append(_numbers_kernel(kind, struct, plain))
    return "namespace lucid {\n\n" + "\n".join(parts) + "\n}  // namespace lucid\n"


def _kernel(name: str, struct: str, traced: Traced, flags: Sequence[str], depth: int) -> str:
    lines, body, results = _written(traced, {x: x if x in flags else f"numbers.{x}" for x in traced.settings})
    arrays = [f"const A {array} = value_d[{d}];" for d, array in enumerate(traced.arrays)]
    written = [f"value_d[{d}] = {text};" for d, text in enumerate(results, 1)]
    return _KERNEL.format(
        name=name,
        struct=struct,
        depth=depth,
        flags="".join([f", int {flag}" for flag in flags]),
        numbers=_indented(lines, 4),
        body=_indented([*arrays, *body, *written], 8),
    )


def _written(traced: Traced, texts_of: Mapping[str, str]) -> tuple[list[str], list[str], list[str]]:
    """Return the lines of the numbers of a step, made of settings with these texts, those of an element, and results.

    What does not differ from element to element is computed in double, as on the host, and once.
    """
    operations = [each for each in traced.operations() if not each.number]
    alone = dict.fromkeys(x for each in operations for x in each.operands if isinstance(x, Symbol) and x.number)
    lines, texts = expressions(list(alone), {x: texts_of[x.name] for x in _settings_in([*alone])}, "double", "made{}")
    known: dict[Symbol, str] = {}
    for symbol, text in zip(alone, texts, strict=True):
        known[symbol] = own = f"n{len(known)}"
        lines.append(f"const bool {own} = {text};" if symbol.mask else f"const A {own} = (A)({text});")
    return lines, *expressions(traced.results, known)


def _numbers_kernel(kind: type[ElementwiseOptimizer], struct: str, plain: Sequence[str]) -> str:
    m = Tracer()
    places: dict[Symbol, str] = {}

    def symbol(name: str, text: str) -> Symbol:
        made = Symbol(m, name, number=True)
        places[made] = text
        return made

    defaults = inspect.signature(kind.__init__).parameters
    settings: dict[str, Any] = {}
    for name in kind.ranges:
        if isinstance(defaults[name].default, tuple):
            settings[name] = tuple([symbol(f"{name}_{k}", f"settings[{len(places)}]") for k in range(2)])
        else:
            settings[name] = symbol(name, f"settings[{len(places)}]")
    # where nothing is counted, its address is null
    step: Any = symbol("step", "counted(state.scalar_kt[0][t], found)")
    others = {name: symbol(name, f"*state.scalar_kt[{k}][t]") for k, name in enumerate(kind.scalars) if k}
    made: dict[str, Any] = {**settings, **kind.numbers(m, {**settings, **others, "step": step}, step)}
    results = [made[name] for name in (*plain, *others)]
    lines, texts = expressions(results, {each: each.name for each in places}, "double", "made{}")
    used = _settings_in(results)
    read = [f"const double {each.name} = {text};" for each, text in places.items() if each in used and each is not step]
    # a step is counted, whether it is asked for or not
    counted = f"{'const double step = ' if step in used else ''}{places[step]};"
    kept = [f"keep(state.scalar_kt[{k}][t], (float)({text}), found);" for k, text in enumerate(texts[len(plain) :], 1)]
    body = [*read, counted, *lines, *kept, f"numbers_t[t] = {struct}{{{', '.join(texts[: len(plain)])}}};"]
    return _NUMBERS.format(name=kind.kernel, struct=struct, count=max(len(kind.scalars), 1), body=_indented(body, 8))


# ---- C++ for the CPU ----

_LOOP = """\
template <typename T>
__global__ void {name}(const unsigned long long* address_rd, const long long* count_r, long long rows{settings}) {{
    typedef T A;
{numbers}    for (long long r = 0; r < rows; ++r, address_rd += {depth}) {{
        const long long count = count_r[r];
{arrays}        LUCID_APART
        for (long long i = 0; i < count; ++i) {{
{body}        }}
    }}
}}
"""
_EXACT = {
    "add", "sub", "mul", "div", "neg", "square", "reciprocal", "abs", "sgn", "sign_or_nan", "sqrt", "maximum",
    "minimum", "where", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "logical_not",
}  # fmt: skip


def loops(kind: type[ElementwiseOptimizer]) -> dict[str, Function]:
    """Return by name the compiled loops of an optimizer: they give the bits of its chains of ufuncs.

    Steps with other operations than those that round alike in C and in NumPy have none.
    """
    steps = {name: Step(kind.formula, absent) for _, absent, name in state_forms(kind)}
    unit = Unit(f"optim_{kind.kernel}.cpp", lambda: _loops_of(steps))
    return {name: Function(unit, name, [("float",), ("double",)]) for name in steps}


def _loops_of(steps: Mapping[str, Step]) -> str:
    known = {name: step.traced() for name, step in steps.items()}
    parts = [_loop(name, traced) for name, traced in known.items()]
    return '#include "steps.h"\n\nnamespace lucid {\n\n' + "\n".join(parts) + "\n}  // namespace lucid\n"


def _loop(name: str, traced: Traced) -> str:
    others = {each.name for each in traced.operations()} - _EXACT
    if others:
        raise KernelError(f"{name}: NumPy alone does {', '.join(sorted(others))}")
    lines, body, results = _written(traced, {x: x for x in traced.settings})
    arrays = [f"T* const {array}_n = (T*)address_rd[{d}];" for d, array in enumerate(traced.arrays)]
    read = [f"const A {array} = {array}_n[i];" for array in traced.arrays]
    written = [f"{array}_n[i] = {text};" for array, text in zip(traced.arrays[1:], results, strict=True)]
    return _LOOP.format(
        name=name,
        settings="".join([f", double {x}" for x in traced.settings]),
        depth=len(traced.arrays),
        numbers=_indented(lines, 4),
        arrays=_indented(arrays, 8),
        body=_indented([*read, *body, *written], 12),
    )


def _settings_in(nodes: Sequence[Node]) -> set[Symbol]:
    """Return the settings that numbers are made of."""
    parts = [*nodes, *[operand for each in behind_operands(nodes) for operand in each.operands]]
    return {each for each in parts if isinstance(each, Symbol) and each.number and not each.operands}


def _indented(lines: Sequence[str], by: int) -> str:
    return "".join([f"{' ' * by}{line}\n" for line in lines])
