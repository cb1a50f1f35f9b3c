"""The hooks of functions that count: time, memory, arithmetic; and the one that prints."""

from __future__ import annotations

import io

import pytest

import lucid
from lucid import hooks
from lucid.autograd.function import Function
from lucid.errors import ShapeError
from lucid.hooks.functions import timer as timer_module
from lucid.nn import functional as F
from tests.device import DEVICE


def ones(*shape, grad=True):
    return lucid.ones(*shape, device=DEVICE, requires_grad=grad)


CLOCK = [0]  # nanoseconds


def clock():
    """Return the nanoseconds of a clock that goes on by a microsecond whenever somebody looks."""
    CLOCK[0] += 1000
    return CLOCK[0]


class Sleeps(Function):
    @staticmethod
    def forward(ctx, x):
        CLOCK[0] += 20_000_000
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad


class Calls(Sleeps):
    @staticmethod
    def forward(ctx, x):
        return Sleeps.apply(x)


def test_timer(monkeypatch):
    """Each op counts; a Function counts its own time alone, and so does the op in it."""
    x = ones(3)
    monkeypatch.setattr(timer_module, "perf_counter_ns", clock)
    with hooks.TimerHook() as timer:
        Sleeps.apply(x).sum().backward()
        with pytest.raises(ShapeError):
            x + ones(4)
    assert timer.calls == {"Sleeps": 1, "mul": 1, "sum": 1, "add": 1, "SumBackward0": 1, "SleepsBackward": 1,
                           "AccumulateGrad": 1}  # fmt: skip
    # a microsecond for each op, and two more for what lies between the looks of the Function and of the op in it
    assert timer.host == {"Sleeps": 20_002, **{name: 1 for name in timer.calls if name != "Sleeps"}}
    if DEVICE == "cuda":
        assert set(timer.device) == set(timer.calls)
    else:
        assert not timer.device
    with hooks.TimerHook() as deep, lucid.no_grad():
        Calls.apply(x)
    # as above, with a microsecond more for each look that lies between
    assert deep.host == {"Calls": 2, "Sleeps": 20_002, "mul": 1}
    lines = str(timer).splitlines()
    assert [part.strip() for part in lines[3].strip("│").split("│")][:2] == ["Sleeps", "1"]


def test_memory():
    """What is new counts with all its bytes; views, what is changed in place, and what an op gives back do not."""
    x = ones(10, 10)
    with hooks.MemoryHook() as memory:
        y = x.sin()
        y.view(100)
        y.add_(1)
        y.split(5)
        F.dropout(y, 0.5, training=False)
        with pytest.raises(ShapeError):
            y + ones(3)
        y.sum().backward()
    assert {name: count for name, count in memory.made.items() if count} == {
        "sin": 400, "sum": 4, "SinBackward0": 400, "SumBackward0": 400,
    }  # fmt: skip
    assert memory.calls["add_"] == memory.calls["view"] == 1
    assert "add" not in memory.calls
    assert (memory.held["sin"] > 0) == (DEVICE == "cuda")
    assert "made bytes" in str(memory)


# Twice the products of each op, forward, and of the gradients that are asked for: worked out by hand.
COUNTED = [
    (lambda: ones(2, 3) @ ones(3, 4), 48, 96),
    (lambda: ones(5, 2, 3) @ ones(3, 4, grad=False), 240, 240),
    (lambda: ones(3) @ ones(3), 6, 12),
    (lambda: lucid.addmm(ones(2, 4), ones(2, 3), ones(3, 4)), 48, 96),
    (lambda: F.linear(ones(7, 3), ones(4, 3), ones(4)), 168, 336),
    (lambda: lucid.einsum("bij,bkj->bik", ones(2, 3, 4), ones(2, 5, 4)), 240, 480),
    (lambda: F.conv2d(ones(2, 4, 8, 8), ones(6, 2, 3, 3), ones(6), groups=2), 2 * 2 * 6 * 36 * 18, 4 * 2 * 6 * 36 * 18),
    (lambda: F.conv_transpose2d(ones(2, 4, 8, 8), ones(4, 6, 3, 3)), 2 * 512 * 54, 4 * 512 * 54),
    (lambda: F.scaled_dot_product_attention(ones(2, 3, 4, 5), ones(2, 3, 6, 5), ones(2, 3, 6, 7)), 3456, 8640),
]


@pytest.mark.parametrize(("function", "forward", "backward"), COUNTED)
def test_flops(function, forward, backward):
    with hooks.FlopHook() as counted:
        y = function()
    assert counted.total == forward
    with counted:
        y.sum().backward()
    assert counted.total == forward + backward
    assert sum(counted.flops.values()) == counted.total
    assert "flops" in str(counted)


def test_flops_of_a_forward_outside():
    """What nobody has counted forward is not counted backward, and nothing is kept of a graph that is gone."""
    y = ones(2, 3) @ ones(3, 4)
    with hooks.FlopHook() as counted:
        y.sum().backward()
        ones(2, 3) @ ones(3, 4)
    assert counted.flops == {"matmul": 48}
    assert not counted._nodes


def test_printer():
    """Inner ops stand before the one around them, further in; the errors stand there, too."""
    file = io.StringIO()
    with hooks.PrintHook(file):
        Sleeps.apply(ones(2))
        with pytest.raises(ShapeError):
            ones(2, grad=False).add_(ones(3))
        ones(2, grad=False).sum(0)
    one = f"shape (2,), float32 on {lucid.ones(1, device=DEVICE).device}"
    lines = file.getvalue().splitlines()
    assert lines.pop().startswith(f"forward sum: {one}, dim=(0,), keepdim=False")
    assert lines == [
        f"  forward mul: {one}, 2 -> {one}",
        f"forward Sleeps: {one} -> {one}",
        f"forward add_: {one}, {one.replace('2', '3', 1)} raises ShapeError",
    ]
