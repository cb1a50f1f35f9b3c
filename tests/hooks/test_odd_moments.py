"""Tools where calls of modules raise, and models or what was kept of them are copied or used by other threads."""

from __future__ import annotations

import copy
import pickle
import sys
from functools import partial

import numpy as np
import pytest

import lucid
from lucid import hooks, nn, viz
from lucid.autograd.modes.state import thread
from lucid.public import written_in
from tests.device import DEVICE
from tests.pieces import in_threads


def ones(*shape, grad=True):
    return lucid.ones(*shape, device=DEVICE, requires_grad=grad)


class Raises(nn.Module):
    """Raises an Exception: a KeyboardInterrupt calls no hook, and is over for tools with the call around it."""

    def forward(self, x):
        _ = x @ x
        raise ValueError


class Catches(nn.Module):
    """Calls a module that raises, and goes on without it."""

    def __init__(self):
        super().__init__()
        self.bad = Raises()
        self.good = nn.Linear(2, 2)

    def forward(self, x):
        y = x @ x
        try:
            self.bad(x)
        except ValueError:
            y = y.log()
        return self.good(y)


@pytest.mark.parametrize("ops", [False, True])
def test_trace_of_a_call_that_raises(ops):
    """What comes after it belongs to the module that goes on, forward and backward, and is no deeper."""
    model = Catches().to(DEVICE)
    with hooks.trace(model, ops=ops) as seen:
        model(ones(2, 2)).sum().backward()
    spans = {(span.name, span.phase): (span.path, span.depth) for span in seen.spans}
    assert spans["LogBackward0", "backward"] == ("", 0)
    assert spans["Linear", "forward"] == ("good", 1)
    assert ("Raises", "forward") not in spans
    assert seen.regions[""].calls == seen.regions["good"].calls == 1
    if ops:
        assert spans["log", "op"] == ("", 1)
        assert spans["linear", "op"] == ("good", 2)


def test_ranges_of_a_call_that_raises(monkeypatch):
    """Each range that begins ends, in the order of the calls."""
    said = []
    module = sys.modules[written_in(hooks.trace)]
    monkeypatch.setattr(module, "begin_range", said.append)
    monkeypatch.setattr(module, "end_range", lambda: said.append("end"))
    model = Catches().to(DEVICE)
    with hooks.trace(model, nvtx=True):
        model(ones(2, 2))
    assert said == ["Catches", "bad", "end", "good", "end", "end"]


def test_guard_of_a_call_that_raises():
    model = nn.Sequential(Catches()).to(DEVICE)
    with hooks.guard(model, ops=True), pytest.raises(hooks.NotFiniteError, match=r"^log in 0 at ") as caught:
        model(ones(2, 2) * 0)
    assert caught.value.path == "0"


def test_summary_of_a_call_that_raises():
    lines = {line.path: line for line in viz.summary(Catches().to(DEVICE), ones(2, 2))}
    assert {path: (line.calls, line.flops) for path, line in lines.items()} == {
        "": (1, 48), "bad": (0, 0), "good": (1, 16),
    }  # fmt: skip


def test_calls_of_other_threads():
    """A trace sees those of the thread that has entered it, also while others call the same model."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh()).to(DEVICE)
    with hooks.trace(model, ops=True) as seen, hooks.guard(model, ops=True):
        in_threads(lambda: model(ones(1, 2)).sum().backward())
        assert not seen.spans
        model(ones(1, 2))
    assert {path: region.calls for path, region in seen.regions.items()} == {"0": 1, "1": 1, "": 1}
    assert thread.state.calls == ()


TOOLS = [
    lambda model: hooks.capture(model, what=("input", "output", "grad")),
    lambda model: hooks.capture(model, stop_at="1"),
    lambda model: hooks.edit(model, {"**": lambda output: output * 2}, grads={"**": lambda grad: grad * 2}),
    lambda model: hooks.guard(model),
    lambda model: hooks.guard(model, ops=True),
    lambda model: hooks.trace(model, ops=True),
]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_of_a_model_in_a_block(tool, copied):
    """They have the hooks of others, and none of the tool's, which no end of a block would take off."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh()).to(DEVICE)
    model[0].register_forward_hook(twice)
    with tool(model):
        other = copied(model)
    assert [row.name for row in hooks.table(other)] == [row.name for row in hooks.table(model)]
    assert len(hooks.table(other)) == 1
    assert not other[1]._active_hooks
    np.testing.assert_array_equal(other(ones(1, 2)).tolist(), model(ones(1, 2)).tolist())


def twice(module, args, output):
    return output * 2


def test_hooks_of_others_in_the_block_of_a_tool_are_copied():
    """Only what the tool itself puts on stays behind."""
    model = nn.Linear(2, 2)
    with hooks.trace(model):
        model.register_forward_hook(twice)
        other = copy.deepcopy(model)
    assert len(hooks.table(other)) == 1


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda kept: pickle.loads(pickle.dumps(kept))])
def test_captured_values_are_copied(folder, copied, tmp_path):
    """With what they were where the program has changed its tensors, and what comes later is not in the copy."""
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True)).to(DEVICE)
    with hooks.capture(model, folder=tmp_path / "kept" if folder else None) as kept:
        model(ones(1, 2))
        other = copied(kept)
        model(ones(1, 2))
    assert list(other) == list(kept)[:3]
    assert len(kept) == 6
    for key in other:
        assert other[key].tolist() == kept[key].tolist()
    np.testing.assert_allclose(other["0"].tolist(), model[0](ones(1, 2)).tolist(), rtol=1e-6)


def test_modules_that_say_they_are_equal():
    """Each counts its own calls, whatever it says of itself, and one that cannot be hashed counts them, too."""

    class Same(nn.Module):
        def __eq__(self, other):
            return type(other) is Same

        __hash__ = None

        def forward(self, x):
            return x * 2

    first, second = Same(), Same()
    calls = []

    def note(module, args, output, context):
        calls.append(context.call)

    for module in (first, second):
        module.register_forward_hook(note, with_context=True)
    for module in (first, first, second):
        module(ones(1))
    assert calls == [0, 1, 0]


class Again(nn.Module):
    """Calls itself."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x, times=3):
        x = self.inner(x)
        return self(x, times - 1) if times else x


def test_module_that_calls_itself():
    """What an inner call takes is part of the outer one, and counts once."""
    model = Again().to(DEVICE)
    lines = {line.path: line for line in viz.summary(model, ones(1, 2))}
    assert {path: (line.calls, line.flops) for path, line in lines.items()} == {"": (4, 32), "inner": (4, 32)}
    with hooks.trace(model) as seen:
        model(ones(1, 2))
    whole = [span for span in seen.spans if span.path == ""]
    assert len(whole) == seen.regions[""].calls == 4
    outer = next(span for span in whole if span.depth == 0)
    assert seen.regions[""].forward == pytest.approx(outer.end - outer.begin, rel=1e-9)  # sums of rounded times
    assert seen.regions[""].device == outer.device
    assert (outer.device is None) == (DEVICE == "cpu")


@pytest.mark.parametrize("folder", [False, True])
def test_captures_of_several_threads(folder, tmp_path):
    """Each value has its number, and its file."""
    model = nn.Identity()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with hooks.capture(model, folder=tmp_path / "kept" if folder else None) as kept:

            def work(first):
                for k in range(first, first + 30):
                    model(lucid.tensor(k, device=DEVICE))

            in_threads(*[partial(work, 30 * n) for n in range(4)])
    finally:
        sys.setswitchinterval(interval)
    assert [key.call for key in sorted(kept)] == list(range(120))
    assert sorted(kept[key].item() for key in kept) == list(range(120))


@pytest.mark.parametrize(
    "make",
    [
        lambda model: hooks.capture(model, what="grad"),
        lambda model: hooks.edit(model, grads={"": lambda grad: grad * 2}),
        lambda model: hooks.guard(model),
    ],
    ids=["capture", "edit", "guard"],
)
def test_a_block_that_ends_in_a_call_hangs_nothing_on_what_it_returns(make):
    """The hooks of that call have been looked up by then, and still run: no gradient is theirs any more."""
    model = nn.Linear(2, 2, device=DEVICE)
    block = make(model)
    block.__enter__()

    def end(*_):
        block.__exit__(None, None, None)

    model.register_forward_hook(end, prepend=True)
    y = model(ones(1, 2))
    assert len(hooks.table(y)) == 0
    y.sum().backward()
    assert model.bias.grad.tolist() == [1.0, 1.0]
