"""Passes inside of passes: hooks that run backward, whose hooks run backward, and so on."""

from __future__ import annotations

import contextvars
import subprocess
import sys
from contextlib import ExitStack

import numpy as np
import pytest

import lucid
from lucid.autograd.engine import nesting
from lucid.autograd.graph import current_graph_task_id, current_node, queue_callback, saved_tensors_hooks
from lucid.autograd.modes.state import thread
from lucid.errors import LucidError

# PyTorch gets this far, and Python's recursion limit is 1,000
DEPTH = 2000
WORD = contextvars.ContextVar("word", default="outside")


@pytest.fixture(autouse=True)
def warned(monkeypatch):
    """Let the process have been told that passes run on other threads."""
    monkeypatch.setattr(nesting, "warned", True)


def nested(depth, act):
    """Run backward in a hook of backward, `depth` times, and return what ``act(level)`` gives in each hook."""
    x = lucid.ones(1, requires_grad=True)
    results = []

    def level(left):
        with lucid.enable_grad():
            y = x * 2

        def hook(grad):
            results.append(act(depth - left))
            if left:
                level(left - 1)

        y.register_hook(hook)
        y.backward()

    level(depth)
    return x, results


def the_next_pass_runs():
    """Fail unless modes are as before, no pass is left, and the next one runs."""
    assert lucid.is_grad_enabled()
    assert thread.state.passes == []
    x, _ = nested(3, lambda level: None)
    assert x.grad.item() == 2 * 4


def test_passes_nest_to_any_depth():
    """2,000 passes inside of each other run, each adds its gradient, and afterwards no pass is left."""
    x, results = nested(DEPTH, lambda level: current_graph_task_id())
    assert x.grad.item() == 2 * (DEPTH + 1)
    assert len(set(results)) == DEPTH + 1
    assert current_graph_task_id() == -1
    assert thread.state.passes == []


def test_a_deep_pass_is_on_no_other_footing():
    """However deep, a pass sees the modes, saved-tensor hooks, context variables and limits of the first."""
    WORD.set("inside")
    packed = []

    def act(level):
        with lucid.enable_grad():
            y = lucid.ones(1, requires_grad=True)
            y.mul(y)  # saves its operands
        here = (
            lucid.is_grad_enabled(),
            WORD.get(),
            sys.getrecursionlimit(),
            len(packed),
            current_node().name(),
            thread.state,
        )
        packed.clear()
        return here

    limit = sys.getrecursionlimit()
    with saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        _, results = nested(400, act)
    # x * 2 saves nothing, the product both factors
    assert set(results) == {(False, "inside", limit, 2, "MulBackward0", thread.state)}


@pytest.mark.gpu
def test_a_deep_pass_has_the_device_and_the_stream_of_the_first():
    """However deep, a pass runs on the current device and streams of the thread that began, on each device its own."""
    devices = range(lucid.cuda.device_count())
    streams = [lucid.cuda.Stream(device) for device in devices]

    def act(level):
        return lucid.cuda.current_device(), *[lucid.cuda.current_stream(device) for device in devices]

    with ExitStack() as stack:
        for stream in streams:
            stack.enter_context(lucid.cuda.stream(stream))
        _, results = nested(400, act)
    assert set(results) == {(devices[-1], *streams)}
    assert lucid.cuda.current_stream() not in streams


@pytest.mark.parametrize("depth", [5, 50])
def test_hooks_have_half_of_a_stack_to_themselves(depth):
    """What a hook calls may go deep at every level of passes."""
    frames = 0.3 * sys.getrecursionlimit()

    def descend(left, act):
        return descend(left - 1, act) if left else act()

    x = lucid.ones(1, requires_grad=True)

    def level(left):
        with lucid.enable_grad():
            y = x * 2
        y.register_hook(lambda grad: descend(int(frames), lambda: level(left - 1)) if left else None)
        y.backward()

    level(depth)
    assert x.grad.item() == 2 * (depth + 1)


def test_an_error_deep_inside_comes_out_as_it_is():
    """An error keeps its type through all passes, the modes are as before, and the next pass runs."""

    class Wanted(Exception):
        pass

    def act(level):
        if level == 400:
            raise Wanted(level)

    with pytest.raises(Wanted, match="400"):
        nested(800, act)
    the_next_pass_runs()


def test_callbacks_come_at_the_end_of_their_own_pass():
    """What a deep hook queues is called before the passes around it go on, innermost first."""
    ended = []
    nested(400, lambda level: queue_callback(lambda: ended.append(level)))
    np.testing.assert_array_equal(ended, range(400, -1, -1))


def test_a_callback_may_queue_others():
    """They are called in the same pass, after those queued before them."""
    x = lucid.ones(1, requires_grad=True)
    called = []

    def queue(name, *following):
        def call():
            called.append(name)
            for each in following:
                queue(*each)

        queue_callback(call)

    def hook(grad):
        queue("a", ("b", ("d",)))
        queue("c")

    x.register_hook(hook)
    (x * 2).backward()
    assert called == ["a", "c", "b", "d"]
    assert x.grad.item() == 2


@pytest.mark.parametrize("most", [100, 300, 1000])
def test_passes_without_end(most, monkeypatch):
    """Endless nesting ends in an error that says how deep it went, and the next pass works."""
    monkeypatch.setattr(nesting, "MOST_PASSES", most)
    x = lucid.ones(1, requires_grad=True)

    def again(grad):
        with lucid.enable_grad():
            y = x * 2
        y.register_hook(again)
        y.backward()

    y = x * 2
    y.register_hook(again)
    with pytest.raises(RecursionError, match=r"[\d,]+ passes run inside of each other") as caught:
        y.backward()
    depth = int(str(caught.value).split()[1].replace(",", ""))
    assert most <= depth < most + 200  # looked at where a new stack begins
    assert isinstance(caught.value, LucidError)
    assert lucid.is_grad_enabled()
    assert thread.state.passes == []
    (x * 3).backward()
    assert x.grad.item() == 3.0


def test_the_current_node_after_the_end_of_an_inner_pass():
    """What an inner pass calls at its end finds the outer pass's node, as after a pass that raised; outside is none."""
    x, w = lucid.ones(1, requires_grad=True), lucid.ones(1, requires_grad=True)
    seen = []

    def note():
        seen.append(None if current_node() is None else current_node().name())

    def fail(grad):
        note()
        raise ValueError("inside")

    y, inner, failing = x.exp(), w * 2, w.sin()
    inner.register_hook(lambda grad: queue_callback(note))
    failing.register_hook(fail)

    def hook(grad):
        queue_callback(note)
        inner.backward()
        with pytest.raises(ValueError, match="inside"):
            failing.backward()
        note()

    y.register_hook(hook)
    y.backward()
    assert seen == ["ExpBackward0", "SinBackward0", "ExpBackward0", None]
    y = x.exp()
    y.register_hook(fail)
    with pytest.raises(ValueError, match="inside"):
        y.backward()
    assert seen[-1] == "ExpBackward0"
    assert current_node() is None


def test_the_first_change_of_thread_warns(monkeypatch):
    """Once in a process the user hears of locks and thread-local data, and of what to do."""
    monkeypatch.setattr(nesting, "warned", False)
    nested(20, lambda level: None)
    assert not nesting.warned
    with pytest.warns(UserWarning, match="passes run inside of each other") as caught:
        nested(400, lambda level: None)
    (text,) = [str(each.message) for each in caught]
    for word in ("lock", "RLock", "threading.local", "contextvars", "stack_size", "setrecursionlimit"):
        assert word in text
    nested(400, lambda level: None)  # warnings are errors


def test_a_warning_that_is_an_error_leaves_the_modes_as_they_were(monkeypatch):
    """Where warnings are errors the pass fails as by any error, and the next one goes on."""
    monkeypatch.setattr(nesting, "warned", False)
    with pytest.raises(UserWarning, match="another thread"):
        nested(400, lambda level: None)
    the_next_pass_runs()


LARGER_STACK = """
import sys, threading, lucid
sys.setrecursionlimit(200_000)
threading.stack_size(2**29)
local, lock, seen = threading.local(), threading.RLock(), set()
x = lucid.ones(1, requires_grad=True)

def level(left):
    with lucid.enable_grad():
        y = x * 2
    def hook(grad):
        seen.add(local.name)
        with lock:
            if left:
                level(left - 1)
    y.register_hook(hook)
    y.backward()

def work():
    local.name = "mine"
    level(300)

thread = threading.Thread(target=work)
thread.start()
thread.join()
print(seen, x.grad.item())
"""


def test_the_remedy_of_the_warning():
    """On a thread of a larger stack all passes run there, with a lock held and the thread's own data, unwarned."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", LARGER_STACK], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["{'mine'}", "602.0"]
