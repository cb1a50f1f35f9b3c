"""Blocks of function hooks at odd moments: inside of hooks, in any order, in several threads, after errors."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading

import pytest

import lucid
from lucid import hooks
from lucid.autograd.function import Function
from lucid.autograd.modes.state import thread
from lucid.errors import SettingError, ShapeError
from tests.device import DEVICE
from tests.hooks.functions.test_every_op import Seen
from tests.pieces import function_of, raising


def ones(*shape, grad=True):
    return lucid.ones(*shape, device=DEVICE, requires_grad=grad)


@pytest.fixture(autouse=True)
def nothing_stays():
    """No test leaves a block open on its thread, or an op that would run."""
    yield
    state = thread.state
    assert not state.open_hooks
    assert not state.open_node_hooks
    assert state.function_hooks is state.open_hooks
    assert state.node_hooks is state.open_node_hooks
    assert state.call is None
    assert not state.hooks_wait


def test_blocks_end_in_any_order():
    """Each end takes off what its block put on, and brings nothing back."""
    first, second = Seen(), Seen()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    ones(2).exp()
    second.__exit__(None, None, None)
    ones(2).sin()
    assert (first.names(), second.names()) == ([], ["exp"])


def test_block_of_a_generator():
    inner, outer = Seen(), Seen()

    def steps():
        with inner:
            yield

    going = steps()
    with outer:
        next(going)
        ones(2).exp()
    ones(2).sin()
    going.close()
    ones(2).cos()
    assert (inner.names(), outer.names()) == (["exp", "sin"], ["exp"])


@pytest.mark.parametrize("moment", ["before", "after"])
def test_block_ends_inside_of_its_hook(moment):
    """The op that runs is the last that it hears of; its own names are no one else's."""

    class Once(Seen):
        undo = None

        def leave(self):
            self.__exit__(None, None, None)

        def before(self, call):
            super().before(call)
            if moment == "before":
                self.leave()

        def after(self, call, output):
            super().after(call, output)
            if moment == "after":
                self.leave()

    once = Once()
    once.__enter__()
    ones(2).exp()
    ones(2).sin()
    assert once.names() == ["exp"]


def test_block_begins_inside_of_a_hook():
    """It sees the next op, and not this one."""
    inner = Seen()

    class Opens(hooks.FunctionHook):
        opened = False

        def before(self, call):
            if not self.opened:
                self.opened = True
                inner.__enter__()

    with Opens():
        ones(2).exp()
        ones(2).sin()
    ones(2).cos()
    inner.__exit__(None, None, None)
    assert inner.names() == ["sin", "cos"]


def test_hooks_that_are_equal():
    """A hook is told from others by identity, whatever its class says."""

    @dataclasses.dataclass
    class Named(hooks.FunctionHook):
        name: str
        seen: list[str] = dataclasses.field(default_factory=list)

        def before(self, call):
            self.seen.append(call.name)

    first, second = Named("a"), Named("a")
    assert first == second
    with first, second:
        ones(2).exp()
    assert first.seen == second.seen == ["exp"]


def test_constructor_that_calls_no_other():
    class Own(hooks.FunctionHook):
        def __init__(self, names):
            self.names = names

        def before(self, call):
            self.names.append(call.name)

    names = []
    with Own(names):
        ones(2).exp()
    assert names == ["exp"]


def test_phases_that_there_are_not():
    class Wrong(Seen):
        phases = ("forwards",)

    wrong = Wrong()
    with pytest.raises(SettingError, match=r"Wrong.phases: expected some of \['backward', 'forward'\], got \('for"):
        wrong.__enter__()

    class Word(Seen):
        phases = "backward"

    with Word() as seen:
        (ones(2) * 2).sum().backward()
    assert seen.names() == []
    assert seen.names("backward")[0] == "SumBackward0"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failed_that_raises(error):
    """The others hear of the end all the same, by the error that comes out, which knows the first one."""

    class Raises(hooks.FunctionHook):
        def failed(self, call, reason):
            raise error("in failed")

    with Seen() as outer, Raises(), Seen() as inner, pytest.raises(error, match="in failed") as caught:
        ones(2) + ones(3)
    assert not outer.open
    assert not inner.open
    assert [type(reason) for _, reason in inner.calls] == [ShapeError]
    assert [type(reason) for _, reason in outer.calls] == [error]
    assert type(caught.value.__context__) is ShapeError
    assert "function hook number 1 of the forward of add" in caught.value.__notes__[0]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_interrupt_in_a_hook(moment):
    Interrupts = type("Interrupts", (hooks.FunctionHook,), {moment: raising(KeyboardInterrupt)})
    with Seen() as seen:
        with pytest.raises(KeyboardInterrupt), Interrupts():
            ones(2).exp()
        ones(2).sin()
    assert seen.names() == ["exp", "sin"]
    assert type(seen.calls[0][1]) is KeyboardInterrupt
    assert not seen.open


TOOLS = [hooks.TimerHook, hooks.MemoryHook, hooks.FlopHook]


@pytest.mark.parametrize("kind", [*TOOLS, hooks.PrintHook])
def test_one_hook_in_two_threads(kind, capsys):
    """What it keeps of an op that runs is not taken for that of an op of another thread."""
    tool = kind()
    begun, go_on = threading.Event(), threading.Event()

    class Waits(Function):
        @staticmethod
        def forward(ctx, x):
            begun.set()
            assert go_on.wait(60)
            return x @ x

    def work():
        with tool:
            Waits.apply(ones(2, 2))

    other = threading.Thread(target=work)
    other.start()
    assert begun.wait(60)
    try:
        with tool:
            ones(2, 2) @ ones(2, 2)
    finally:
        go_on.set()
        other.join()
    if kind is hooks.PrintHook:
        lines = capsys.readouterr().out.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["forward matmul", "  forward matmul", "forward Waits"]
    else:
        assert tool.calls["matmul"] == 2
    if kind is hooks.TimerHook:
        assert min(tool.host.values()) > 0


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda hook: pickle.loads(pickle.dumps(hook))])
def test_copies(kind, copied):
    """A copy has the counts so far, in no block, and goes on for itself; also one made inside of the block."""
    tool = kind()
    with tool:
        y = ones(2, 3) @ ones(3, 4)
        other = copied(tool)
        y.sum().backward()
    with other:
        ones(2, 3) @ ones(3, 4)
    assert (tool.calls["matmul"], tool.calls["MatmulBackward0"]) == (1, 1)
    assert (other.calls["matmul"], other.calls["MatmulBackward0"]) == (2, 0)
    assert str(other)


def test_operands_by_keyword():
    """They stand in their positions, as others do."""
    Scaled = function_of(lambda ctx, x, y, factor=1: x * y * factor, None, name="Scaled")

    a, b = ones(2, 3, grad=False), ones(3, 4, grad=False)
    target = ones(2, 4, grad=False)
    with Seen() as seen:
        target.addmm_(mat2=b, mat1=a, beta=2)
        lucid.isin(test_elements=b, elements=a, invert=True)
        Scaled.apply(a, y=a)
        Scaled.apply(y=a, x=a, factor=2)
    calls = {call.name: call for call, _ in seen.calls}
    assert [x is y for x, y in zip(calls["addmm_"].inputs, (target, a, b), strict=True)] == [True, True, True]
    assert calls["addmm_"].settings == {"beta": 2}
    assert [x is y for x, y in zip(calls["isin"].inputs, (a, b), strict=True)] == [True, True]
    assert calls["isin"].settings == {"invert": True}
    scaled = [call.inputs for call, _ in seen.calls if call.name == "Scaled"]
    assert [[x is a for x in inputs] for inputs in scaled] == [[True, True], [True, True, False]]


def test_call_around():
    """An op that a Function runs knows of the Function's call."""
    seen = Seen()

    Twice = function_of(lambda ctx, x: x * 2, lambda ctx, grad: grad * 2, name="Twice")

    with seen:
        Twice.apply(ones(2)).sum().backward()
    around = {(call.name, call.around and call.around.name): call.inner for call, _ in seen.calls}
    assert around == {
        ("mul", "Twice"): False, ("Twice", None): True, ("sum", None): False, ("SumBackward0", None): False,
        ("mul", "TwiceBackward"): False, ("TwiceBackward", None): True, ("AccumulateGrad", None): False,
    }  # fmt: skip
