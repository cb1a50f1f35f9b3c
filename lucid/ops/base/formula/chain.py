"""A formula on NumPy: a chain of ufuncs with reused outputs, for `lucid.ops.base.blocks.in_blocks`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.ops.base.blocks import choose, drop_where, keep_where, repeated
from lucid.ops.base.formula.trace import OPERATIONS, Node, Symbol, Traced, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

    from lucid.base.arrays import Array


def _expm1_below(xp: ModuleType, out: Array, x: Array, spare: Array) -> None:
    """Write ``exp(x) - 1`` of numbers up to 0 to `out`; it may be `x`."""
    if out.dtype == np.float64:
        xp.expm1(x, out=out)
        return
    # 2 tanh(x/2) / (1 - tanh(x/2)), which loses no digits below zero and takes a quarter of the time
    xp.multiply(x, 0.5, out=out)
    xp.tanh(out, out=out)
    xp.subtract(1, out, out=spare)
    xp.divide(out, spare, out=out)
    xp.multiply(out, 2, out=out)


def _log1p_within(xp: ModuleType, out: Array, x: Array, sum: Array, rest: Array) -> None:
    """Write ``log(1 + x)`` of numbers from 0 to 1 to `out`; it may be `x`."""
    # log(s) + (x - (s - 1)) / s with s = 1 + x as rounded: exact, and a quarter of the time of NumPy's log1p
    xp.add(x, 1, out=sum)
    xp.subtract(sum, 1, out=rest)
    xp.subtract(x, rest, out=rest)
    xp.divide(rest, sum, out=rest)
    xp.log(sum, out=out)
    xp.add(out, rest, out=out)


def _sgn(xp: ModuleType, out: Array, x: Array) -> None:
    """Write the sign to `out`, -1, 0 or 1, and 0 of NaN; `out` may be `x`."""
    below = x < 0
    xp.greater(x, 0, out=out)
    xp.subtract(out, below, out=out)


# Operations that are more than a ufunc, and how many temporaries they need.
_LONGER: dict[str, tuple[Callable[..., None], int]] = {
    "expm1_below": (_expm1_below, 1),
    "log1p_within": (_log1p_within, 2),
    "sgn": (_sgn, 0),
}
_NAMES = {
    "inf": math.inf,
    "nan": math.nan,
    "repeated": repeated,
    "keep_where": keep_where,
    "drop_where": drop_where,
    "choose": choose,
    **{name: function for name, (function, _) in _LONGER.items()},
}


class _Writer:
    """Writer of a formula's chain, line by line, with the array of each result and the arrays that are free.

    Parameters
    ----------
    traced : Traced
    targets : sequence of str
        The arguments in whose arrays the results come to lie, of each its own. Without any the result lies anywhere.
    """

    def __init__(self, traced: Traced, targets: Sequence[str] = ()) -> None:
        self.lines: list[str] = []
        self.rooms: list[str] = []
        self._free: list[str] = []
        self._texts: dict[Symbol, str] = {}
        self._masks = 0
        self._targets = targets
        # of each target its result, which is written there where that is free by then
        self._places: dict[Node, str] = {}
        for target, result in zip(targets, traced.results, strict=bool(targets)):
            self._places.setdefault(result, target)
        operations = [each for each in traced.operations() if not each.number]
        if targets and operations:
            # several results want an order that says when an argument is free: that in which the formula is written
            operations = operations[0].m.in_order(operations)
        self._last: dict[Node, Symbol | None] = {}
        for each in operations:
            self._last |= dict.fromkeys(each.operands, each)
        self._last |= dict.fromkeys(traced.results)
        for each in operations:
            self._write(each)
        for target, result in zip(targets, map(self.text, traced.results), strict=bool(targets)):
            if result != target:
                self.lines.append(f"xp.copyto({target}, {result})")

    def text(self, node: Node) -> str:
        """Return an expression for a result, an argument or a number."""
        if isinstance(node, Symbol) and node.operands and not node.number:
            return self._texts[node]
        return text(node)

    def _room(self, of: Symbol | None = None) -> str:
        """Return an array to write to: that of the target of a result, if it is free."""
        place = None if of is None else self._places.get(of)
        if place in self._free:
            self._free.remove(place)
            return place
        # a result would be in the way of another one
        free = [each for each in self._free if place is None or each not in self._targets]
        if free:
            self._free.remove(free[-1])
            return free[-1]
        self.rooms.append(f"room{len(self.rooms) + 1}")
        return self.rooms[-1]

    def _ends(self, x: Node, each: Symbol) -> bool:
        """Return whether an operand's array is free behind an operation."""
        if not isinstance(x, Symbol) or x.number or x.mask or self._last[x] is not each:
            return False
        return bool(x.operands) or x.name in self._targets

    def _write(self, each: Symbol) -> None:
        # rooms of what nobody needs after this; the first operand's is taken first
        ended = [self.text(x) for x in reversed(dict.fromkeys(each.operands)) if self._ends(x, each)]
        ufunc = OPERATIONS[each.name].numpy
        texts = [self.text(operand) for operand in each.operands]
        if each.mask:
            self._masks += 1
            self._texts[each] = f"mask{self._masks}"
            self.lines.append(f"mask{self._masks} = xp.{ufunc}({', '.join(texts)})")
            self._free += ended
        elif ufunc == "where":
            self._choose(each, texts, ended)
        elif ufunc in _LONGER:
            self._free += ended
            out, *spares = [self._room(each), *[self._room() for _ in range(_LONGER[ufunc][1])]]
            self.lines.append(f"{ufunc}(xp, {', '.join([out, *texts, *spares])})")
            self._free += spares
            self._texts[each] = out
        elif not ufunc:
            raise NotImplementedError(f"{each.name} has no ufunc in OPERATIONS: name it there, or write the chain")
        else:
            if ufunc in ("maximum", "minimum"):
                # of equal numbers NumPy gives the second
                texts = self._with_numbers(each.operands, texts)[::-1]
            self._free += ended
            self._texts[each] = out = self._room(each)
            self.lines.append(f"xp.{ufunc}({', '.join(texts)}, out={out})")

    def _choose(self, each: Symbol, texts: list[str], ended: list[str]) -> None:
        mask, *values = texts
        one, other = [isinstance(operand, Symbol) and not operand.number for operand in each.operands[1:]]
        zero = [repr(operand) in ("0", "0.0") for operand in each.operands[1:]]
        if each.rare or self._targets:
            # arguments of a chain in place may differ in dtype, which bits must not
            if values[1] in ended:
                out = values[1]
                ended.remove(out)
            else:
                out = self._room(each)
                self.lines.append(f"xp.copyto({out}, {values[1]})")
            self.lines.append(f"xp.copyto({out}, {values[0]}, where={mask})")
        elif (zero[0] and other) or (zero[1] and one):
            out = self._room(each)
            self.lines.append(f"{'drop' if zero[0] else 'keep'}_where(xp, {out}, {values[zero[0]]}, {mask})")
        else:
            values = self._with_numbers(each.operands[1:], values)
            out, spare = self._room(each), values[0] if values[0] in ended and values[0] != values[1] else self._room()
            self.lines.append(f"choose(xp, {out}, {', '.join(values)}, {mask}, {spare})")
            if spare not in ended:
                self._free.append(spare)
        self._free += ended
        self._texts[each] = out

    def _with_numbers(self, operands: tuple[Node, ...], texts: list[str]) -> list[str]:
        """Return the operands with a block of each number; the blocks of a chain in place are too long for it."""
        return [
            value if self._targets or (isinstance(x, Symbol) and not x.number) else f"repeated(xp, {value}, out)"
            for x, value in zip(operands, texts, strict=True)
        ]


def _made(name: str, arguments: Sequence[str], settings: Iterable[str], lines: list[str]) -> Callable[..., Any]:
    """Return a function of an array module, arrays and settings, from the lines of its body."""
    keywords = f", *, {', '.join(settings)}" if settings else ""
    head = f"def chain({', '.join(['xp', *arguments])}{keywords}):"
    # NumPy names it in its warnings, and lucid silences those of its own modules
    names: dict[str, Any] = {**_NAMES, "__name__": __name__}
    exec(compile("\n    ".join([head, *lines]), f"<formula of {name}>", "exec"), names)  # noqa: S102 - the text is ours
    return names["chain"]


def chain(name: str, traced: Traced) -> tuple[Callable[..., None], int]:
    """Return ``chain(xp, out, *arrays, *temporaries, **settings)``, and the number of its temporaries.

    Half types are given to it in float32, as `in_blocks` does.
    """
    written = _Writer(traced)
    result = written.text(traced.results[0])
    lines, rooms = written.lines, written.rooms
    if result in rooms:
        # the room in which the result comes to lie is the output
        lines = [re.sub(rf"\b{result}\b", "out", line) for line in lines]
        rooms.remove(result)
    else:
        lines = [*lines, f"xp.copyto(out, {result})"]
    return _made(name, ["out", *traced.arrays, *rooms], traced.settings, lines), len(rooms)


def chain_in_place(name: str, traced: Traced, targets: Sequence[str]) -> tuple[Callable[..., None], int]:
    """Return ``chain(xp, *arrays, *temporaries, **settings)``, and the number of its temporaries.

    It writes the results over the arrays that are the targets, and leaves the others as they are. No result may be
    an argument that another result is written over.
    """
    written = _Writer(traced, targets)
    arguments = [*traced.arrays, *written.rooms]
    return _made(name, arguments, traced.settings, written.lines or ["pass"]), len(written.rooms)


def conditions(name: str, traced: Traced) -> tuple[list[str], Callable[..., tuple[bool, ...]]]:
    """Return the texts of the conditions on settings alone, and ``holds(xp, **settings)``, the truth of each."""
    texts = list(map(text, traced.conditions()))
    return texts, _made(name, [], traced.settings, [f"return ({''.join([f'{each}, ' for each in texts])})"])
