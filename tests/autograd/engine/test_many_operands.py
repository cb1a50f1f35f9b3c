"""What an op of many operands, or a tensor of many hooks, costs: lines that run are counted, and never by a clock."""

from __future__ import annotations

import gc
import random
import sys
import tracemalloc
from typing import TYPE_CHECKING

import pytest

import lucid
from lucid.autograd.recording.plan import MOST_OPERANDS, MOST_PLANS, DerivativePlan
from lucid.autograd.recording.primitive import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def lines(act: Callable[[], object]) -> int:
    """Return how many lines and calls of Python `act` runs; each round of a loop counts."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., object]:
        nonlocal count
        count += event in {"call", "line"}
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


class Position(int):
    """A number of an operand that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Position.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


@pytest.mark.parametrize("name", ["cat", "stack"])
def test_a_plan_is_linear(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No operand is looked for among the others: neither in Python nor by C, where no line would tell."""
    primitive = PRIMITIVES[name]
    given = primitive.positions
    monkeypatch.setattr(type(primitive), "positions", lambda self, *args: tuple(map(Position, given(*args))))
    Position.compared = 0
    few = lines(lambda: DerivativePlan(primitive, (True,) * 100))
    assert lines(lambda: DerivativePlan(primitive, (True,) * 400)) < 4.4 * few
    assert Position.compared < 3 * (100 + 400)


@pytest.mark.parametrize("op", [lucid.cat, lucid.stack])
def test_recording_is_linear(op: Callable[..., lucid.Tensor]) -> None:
    """Four times the operands are some four times the work, forward and backward."""

    def work(n: int) -> int:
        tensors = [lucid.ones(1, requires_grad=True) for _ in range(n)]
        return lines(lambda: lucid.autograd.grad(op(tensors).sum(), tensors[0]))

    work(400)  # what is compiled and imported is by now
    assert work(400) < 5 * work(100)


def test_few_plans_are_kept() -> None:
    """Neither lists that grow by one, as generation makes them, nor all patterns of operands add to what is kept."""
    draw = random.Random(0)
    leaf = lucid.ones(1, requires_grad=True)
    plain = lucid.ones(1)

    def generate(most: int) -> None:
        for n in range(1, most):
            lucid.cat([leaf] * n).sum().backward()
            y = lucid.cat([leaf, *draw.choices([leaf, plain], k=MOST_OPERANDS - 1)])
            lucid.autograd.grad(y, leaf, lucid.ones(MOST_OPERANDS))

    generate(2 * MOST_PLANS)
    for n in range(1, 4 * MOST_PLANS):
        # what is launched for a sum of so many elements is kept too, by a bound of its own
        lucid.ones(n, requires_grad=True).sum().backward()
    gc.collect()
    tracemalloc.start()
    try:
        generate(4 * MOST_PLANS)
        leaf.grad = None
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    plans = PRIMITIVES["cat"].plans
    assert len(plans) <= MOST_PLANS
    assert max(len(needed) for needed, *_ in plans) <= MOST_OPERANDS
    assert kept < MOST_PLANS * MOST_OPERANDS * 300


def test_bounds_of_plans() -> None:
    """As many plans are kept as is said, of as many operands, and of one plan as many narrowed ones."""
    primitive = PRIMITIVES["cat"]
    for count in (MOST_OPERANDS, MOST_OPERANDS + 1):
        first = primitive.plan((True,) * count)
        assert (primitive.plan((True,) * count) is first) == (count == MOST_OPERANDS)
    for count in range(1, 2 * MOST_PLANS):
        primitive.plan(tuple(bool(int(digit)) for digit in f"1{count:08b}"))
        assert len(primitive.plans) <= MOST_PLANS
    needed = (True,) * 8
    plan = primitive.plan(needed)
    for count in range(1, 2 * MOST_PLANS):
        plan.narrowed(tuple(bool(int(digit)) for digit in f"{count:08b}"))
    assert plan.narrowed.cache_info().currsize == MOST_PLANS


@pytest.mark.parametrize("newest_first", [False, True])
def test_removing_hooks_is_linear(newest_first: bool) -> None:
    """Hooks that go in the order in which they came, or the other way, are found at once."""

    def work(n: int) -> int:
        x = lucid.ones(1, requires_grad=True)
        handles = [x.register_hook(lambda grad: None) for _ in range(n)]

        def remove() -> None:
            for handle in reversed(handles) if newest_first else handles:
                handle.remove()

        return lines(remove)

    work(400)  # what is compiled and imported is by now
    assert work(400) < 5 * work(100)
