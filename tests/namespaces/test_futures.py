"""Futures are set once, wait across threads, and pass on what callbacks return or raise."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from lucid import fx, jit, nn, onnx
from lucid.errors import LucidError
from lucid.futures import Future, collect_all, wait_all
from tests.pieces import in_threads


def test_wait_ends_when_another_thread_sets_the_value():
    """What one thread sets another gets, and `done` and `value` tell before and after."""
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="nothing was set yet"):
        future.value()
    threading.Timer(0.02, future.set_result, [7]).start()
    assert future.wait() == 7
    assert future.done()
    assert future.value() == 7


@pytest.mark.parametrize("first", ["set_result", "set_exception"])
@pytest.mark.parametrize("second", ["set_result", "set_exception"])
def test_is_set_once(first, second):
    """A second value or exception is refused, and the first stays."""
    future, error = Future(), ValueError("first")
    getattr(future, first)(error)
    with pytest.raises(RuntimeError, match=f"{second}: a value or an exception was set before"):
        getattr(future, second)(KeyError("second"))
    if first == "set_result":
        assert future.wait() is error
    else:
        with pytest.raises(ValueError, match="first"):
            future.wait()


def test_an_exception_has_to_be_one():
    """A text is no exception."""
    with pytest.raises(TypeError, match="expected an exception, got str"):
        Future().set_exception("wrong")


def test_then_gets_the_future_and_passes_on_what_it_gives():
    """Callbacks run once, in order, when the value is set or at once, and a chain carries results and exceptions."""
    future, calls = Future(), []
    future.add_done_callback(lambda f: calls.append(("callback", f)))
    after = future.then(lambda f: calls.append(("then", f)) or f.wait() + 1)
    failed = after.then(lambda f: f.wait() / 0).then(lambda f: f.wait())
    assert calls == []
    future.set_result(1)
    assert calls == [("callback", future), ("then", future)]
    assert after.wait() == 2
    with pytest.raises(ZeroDivisionError):
        failed.wait()
    assert future.then(lambda f: f.wait() * 5).value() == 5


def test_all_are_waited_for():
    """A collection is done with its last part, not before; of nothing at once; exceptions are of the parts."""
    assert collect_all([]).value() == []
    parts = [Future() for _ in range(50)]
    both = collect_all(parts)
    in_threads(*[partial(part.set_result, n) for n, part in enumerate(parts[:-1])])
    assert not both.done()
    parts[-1].set_exception(ValueError("last"))
    assert both.wait() == parts
    with pytest.raises(ValueError, match="last"):
        wait_all(parts)
    assert wait_all(parts[:-1]) == list(range(49))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        *(
            (kind, f"{kind.__name__}: lucid traces no Python")
            for kind in (fx.GraphModule, fx.Graph, fx.Node, fx.Tracer)
        ),
        (jit.ScriptModule, "compiles no modules"),
    ],
)
def test_no_module_is_traced_or_compiled(kind, words):
    """Tools ask whether a module is one of these; none is, and none can be made."""
    assert not isinstance(nn.Linear(1, 1), kind)
    with pytest.raises(LucidError, match=words):
        kind(nn.Linear(1, 1), None)
    with pytest.raises(LucidError, match=r"symbolic_trace: .*hooks"):
        fx.symbolic_trace(nn.Linear(1, 1))
    with pytest.raises(LucidError, match=r"onnx\.export: .*state_dict"):
        onnx.export(nn.Linear(1, 1), None, "model.onnx")
