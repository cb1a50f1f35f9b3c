"""`lucid.hooks.trace`: every call and every backward once, in the right region, with times that fit into each other."""

from __future__ import annotations

import contextlib
import importlib
import json
import threading

import numpy as np
import pytest

import lucid
from lucid import hooks, nn
from lucid.autograd.modes.state import thread
from lucid.errors import HookError, SettingError, ShapeError
from tests.device import DEVICE
from tests.pieces import in_threads, module_of, raising

trace_module = importlib.import_module("lucid.hooks.tracing.trace")  # the name in the package is the class


def net():
    shared = nn.Linear(3, 3, device=DEVICE)
    return nn.Sequential(shared, nn.Sequential(nn.Tanh(), shared))


def test_calls_and_nodes(rng):
    model = net()
    x = lucid.tensor(rng.normal(size=(4, 3)), dtype=lucid.float32, device=DEVICE)
    with hooks.trace(model) as seen:
        model(x).sum().backward()
    forward = [(span.path, span.depth) for span in seen.spans if span.phase == "forward"]
    assert forward == [("0", 1), ("1.0", 2), ("0", 2), ("1", 1), ("", 0)]
    backward = [(span.path, span.name) for span in seen.spans if span.phase == "backward"]
    assert backward == [
        ("outside", "SumBackward0"), ("0", "LinearBackward0"), ("1.0", "TanhBackward0"), ("0", "LinearBackward0"),
    ]  # fmt: skip
    assert {path: region.calls for path, region in seen.regions.items()} == {
        "0": 2, "1.0": 1, "1": 1, "": 1, "outside": 0,
    }  # fmt: skip
    assert len(hooks.table(model)) == 0


def test_times_fit_into_each_other(rng):
    """Spans lie in those of the modules around them, and own times add up to the time of the whole."""
    model = net()
    with hooks.trace(model) as seen:
        model(lucid.ones(2, 3, device=DEVICE))
    whole = seen.spans[-1]
    assert all(whole.begin <= span.begin <= span.end <= whole.end for span in seen.spans)
    assert sum(region.own for region in seen.regions.values()) == pytest.approx(seen.regions[""].forward)
    if DEVICE == "cuda":
        assert all(span.device is not None and span.device >= 0 for span in seen.spans if span.phase == "forward")
    else:
        assert all(span.device is None for span in seen.spans)


def test_a_module_that_calls_itself():
    """Its time is that of the outermost calls, of which each is as long as all that it calls; its own adds up to it."""

    class Again(nn.Linear):
        def forward(self, input, times):
            return self(super().forward(input), times - 1) if times else input

    model = Again(2, 2, device=DEVICE)
    with hooks.trace(model) as seen:
        for times in (2, 0, 1):
            model(lucid.ones(2, device=DEVICE), times)
    spans = [span for span in seen.spans if span.phase == "forward"]
    assert [span.depth for span in spans] == [2, 1, 0, 0, 1, 0]
    whole, region = [span for span in spans if not span.depth], seen.regions[""]
    assert region.calls == 6
    assert region.forward == pytest.approx(sum(span.end - span.begin for span in whole))
    assert region.own == pytest.approx(region.forward)
    if DEVICE == "cuda":
        assert region.device == pytest.approx(sum(span.device for span in whole))

    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, input):
            return self.inner(input, 2)

    around = Around()
    with hooks.trace(around) as seen:
        around(lucid.ones(2, device=DEVICE))
    (outermost,) = [span for span in seen.spans if (span.path, span.depth) == ("inner", 1)]
    assert seen.regions["inner"].forward == pytest.approx(outermost.end - outermost.begin)


def test_bytes_that_backward_needs():
    """Each array counts once, where it was first kept; parameters do not, and nothing does without grad."""
    model = nn.Sequential(nn.Tanh(), nn.Linear(8, 2, device=DEVICE))
    x = lucid.ones(16, 8, device=DEVICE, requires_grad=True)
    with hooks.trace(model) as seen:
        model(x)
    # the output of tanh, which is the input of the layer
    assert (seen.regions["0"].kept, seen.regions["1"].kept) == (16 * 8 * 4, 0)
    with hooks.trace(model) as seen, lucid.no_grad():
        model(x)
    assert sum(region.kept for region in seen.regions.values()) == 0


class Part(nn.Module):
    """Squares the first row of what it makes."""

    def forward(self, x):
        y = x * 2
        return y[:1] * y[:1]


def test_bytes_of_views_and_of_what_was_recorded_before():
    """A view keeps all of the array that it is of; the graph of an input is not the model's."""
    x = lucid.ones(16, 8, device=DEVICE, requires_grad=True).exp()  # which keeps its output
    model = Part()
    with hooks.trace(model) as seen:
        model(x)
    assert {path: region.kept for path, region in seen.regions.items()} == {"": 16 * 8 * 4}


@pytest.mark.parametrize("freed", [False, True])
def test_bytes_of_several_calls(freed):
    """Each call counts what it has recorded itself: arrays of earlier ones may be gone, or be its input."""
    model, x = nn.Tanh(), lucid.ones(16, 8, device=DEVICE, requires_grad=True)
    with hooks.trace(model) as seen:
        for _ in range(3):
            if freed:
                model(x)
            else:
                x = model(x)
    assert seen.regions[""].kept == 3 * 16 * 8 * 4


def test_bytes_of_foreign_memory():
    """An array on memory that is no array counts as itself."""
    factor = lucid.frombuffer(bytearray(16 * 8 * 4), dtype=lucid.float32)

    model = module_of(lambda self, x: x * factor)
    with hooks.trace(model) as seen:
        model(lucid.ones(16 * 8, device="cpu", requires_grad=True))
    assert seen.regions[""].kept == 16 * 8 * 4


def test_calls_that_raise(rng):
    model = nn.Sequential(nn.Identity(), module_of(raising(ZeroDivisionError)))
    x = lucid.ones(1, device=DEVICE)
    with hooks.trace(model) as seen:
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                model(x)
        model[0](x)
    assert (seen.spans[0].path, seen.spans[0].depth) == ("0", 1)
    assert {path: region.calls for path, region in seen.regions.items()} == {"0": 3}


@pytest.mark.parametrize("caught", [False, True])
def test_calls_that_raise_what_is_handled(caught):
    """A call raises though it is the exception that was handled as it began, and does not where it catches it."""
    error = ZeroDivisionError()

    class Again(nn.Module):
        def forward(self, x):
            raise error

    class Catches(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Again()
            self.after = nn.Identity()

        def forward(self, x):
            with contextlib.suppress(ZeroDivisionError):
                self.inner(x)
            return self.after(x)

    model = Catches() if caught else Again()
    with hooks.trace(model) as seen:
        try:
            raise error
        except ZeroDivisionError:
            with contextlib.nullcontext() if caught else pytest.raises(ZeroDivisionError):
                model(lucid.ones(1, device=DEVICE))
    assert [(span.path, span.depth) for span in seen.spans if span.phase == "forward"] == (
        [("after", 1), ("", 0)] if caught else []
    )


def test_training_goes_on_after_an_error():
    """As where a batch is passed over: later calls stand in none that raised, and what they keep is counted."""
    model = nn.Sequential(nn.Tanh(), nn.Linear(3, 2, device=DEVICE))
    x = lucid.ones(4, 3, device=DEVICE, requires_grad=True)
    with hooks.trace(model) as seen:
        with pytest.raises(ShapeError):
            model(lucid.ones(4, 5, device=DEVICE))
        model(x).sum().backward()
        (x * 2).sum().backward()
    calls = [(span.path, span.depth) for span in seen.spans if span.phase == "forward"]
    assert calls == [("0", 1), ("0", 1), ("1", 1), ("", 0)]
    assert seen.regions["0"].kept == 4 * 3 * 4
    outside = [span.name for span in seen.spans if span.phase == "backward" and span.path == "outside"]
    assert outside == ["SumBackward0", "SumBackward0", "MulBackward0"]


def test_what_other_threads_call(rng):
    model = net()
    with hooks.trace(model) as seen:
        threads = [threading.Thread(target=lambda: [model(lucid.ones(1, 3, device=DEVICE)) for _ in range(50)])
                   for _ in range(2)]  # fmt: skip
        for each in threads:
            each.start()
        model(lucid.ones(1, 3, device=DEVICE))
        for each in threads:
            each.join()
    assert seen.regions[""].calls == 1


def test_files_and_tables(tmp_path):
    model = net()
    with hooks.trace(model, "1.**", backward=False) as seen:
        model(lucid.ones(2, 3, device=DEVICE)).sum().backward()
    assert {span.phase for span in seen.spans} == {"forward"}
    assert sorted(seen.regions) == ["1", "1.0"]  # the shared layer has its first path
    seen.save(tmp_path / "trace.json")
    written = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    assert [(event["name"], event["cat"], event["ph"]) for event in written] == [
        ("1.0 Tanh", "forward", "X"), ("1 Sequential", "forward", "X"),
    ]  # fmt: skip
    assert written[1]["ts"] <= written[0]["ts"]
    assert written[1]["ts"] + written[1]["dur"] >= written[0]["ts"] + written[0]["dur"]
    for event, span in zip(written, seen.spans, strict=True):
        assert (event["ts"], event["dur"]) == pytest.approx((span.begin, span.end - span.begin), abs=1e-3)
        assert event["tid"] == "forward"
    for first, last in (("1", "1.0"), ("1.0", "1")):  # those of most time first
        seen.regions[first].own += 1e6 + seen.regions[last].own
        text = str(seen)
        assert 0 < text.index(f" {first} ") < text.index(f" {last} ")
    with pytest.raises(SettingError, match="'7'"):
        hooks.trace(model, "7")


def test_ops():
    """Each op is a span in that of its module, and the bytes that it makes count there; views make none."""
    model = nn.Sequential(nn.Linear(8, 2, device=DEVICE), nn.Flatten(0))
    x = lucid.ones(16, 8, device=DEVICE)
    with hooks.trace(model, ops=True) as seen:
        y = model(x)
        y.sum().backward()
    ops = [(span.path, span.name, span.depth) for span in seen.spans if span.phase == "op"]
    assert ops == [("0", "linear", 2), ("1", "view", 2), ("outside", "sum", 0)]
    assert {path: region.made for path, region in seen.regions.items()} == {
        "0": 16 * 2 * 4, "1": 0, "": None, "outside": 4,
    }  # fmt: skip
    by_name = {span.name: span for span in seen.spans}
    assert by_name["Linear"].begin <= by_name["linear"].begin <= by_name["linear"].end <= by_name["Linear"].end
    assert all((span.device is not None) == (DEVICE == "cuda") for span in seen.spans)
    with hooks.trace(nn.ReLU(inplace=True), ops=True) as seen:
        x.clone().add_(1)
    assert (seen.regions["outside"].made, [span.name for span in seen.spans]) == (16 * 8 * 4, ["clone", "add_"])
    with hooks.trace(model, ops=True, backward=False) as seen:
        model(x.clone().requires_grad_()).sum().backward()
    assert {span.phase for span in seen.spans} == {"op", "forward"}
    assert [region.kept for region in seen.regions.values()] == [0] * len(seen.regions)


def test_norms_of_gradients():
    """Of a module's own parameters, as they are at the end of the block."""
    model = nn.Sequential(nn.Linear(3, 2, device=DEVICE), nn.Linear(2, 1, bias=False, device=DEVICE))
    with hooks.trace(model) as seen:
        model(lucid.ones(4, 3, device=DEVICE)).sum().backward()
    expected = [sum(float((p.grad**2).sum()) for p in layer.parameters()) ** 0.5 for layer in model]
    assert seen.regions["0"].grad == pytest.approx(expected[0], rel=1e-6)
    assert seen.regions["1"].grad == pytest.approx(expected[1], rel=1e-6)
    assert seen.regions[""].grad is None
    assert f"{expected[0]:.3g}" in str(seen)


def test_ranges_for_profilers(monkeypatch):
    """A range of the path around each call, which ends also where the call raises."""
    events = []
    monkeypatch.setattr(trace_module, "begin_range", events.append)
    monkeypatch.setattr(trace_module, "end_range", lambda: events.append("end"))
    model = nn.Sequential(nn.Identity(), nn.Sequential(nn.Linear(3, 2, device=DEVICE)))
    with hooks.trace(model, nvtx=True):
        model(lucid.ones(1, 3, device=DEVICE))
        with pytest.raises(ShapeError):
            model(lucid.ones(1, 4, device=DEVICE))
    calls = ["Sequential", "0", "end", "1", "1.0"]
    assert events == [*calls, "end", "end", "end", *calls, "end", "end", "end"]


def test_ranges_of_an_interrupted_call(monkeypatch):
    """No hook is told of a keyboard interrupt: ranges that are open then end with the block, the innermost first."""
    events = []
    monkeypatch.setattr(trace_module, "begin_range", events.append)
    monkeypatch.setattr(trace_module, "end_range", lambda: events.append("end"))

    model = nn.Sequential(nn.Sequential(module_of(raising(KeyboardInterrupt))))
    block = hooks.trace(model, nvtx=True)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), block:
            model(lucid.ones(1, device=DEVICE))
        assert events == ["Sequential", "0", "0.0", "end", "end", "end"]
        events.clear()


def test_a_thread_that_calls_a_module_that_runs():
    """A call on another thread ends none of this one, though it is of a module that runs here."""

    class Aside(nn.Module):
        def __init__(self):
            super().__init__()
            self.after = nn.Identity()

        def forward(self, x, times=1):
            if times:
                in_threads(lambda: self(x, 0))
            return self.after(x)

    model = Aside()
    with hooks.trace(model) as seen:
        model(lucid.ones(1, device=DEVICE))
    assert [(span.path, span.depth) for span in seen.spans] == [("after", 1), ("", 0)]


def test_threads_and_blocks_inside_of_each_other():
    """What another thread runs is not seen; two traces of one model see the same."""
    model = net()
    x = lucid.ones(1, 3, device=DEVICE)
    with hooks.trace(model) as outer, hooks.trace(model, "1.0") as inner:
        model(x).sum().backward()
    assert outer.regions["1.0"].calls == inner.regions["1.0"].calls == 1
    assert [s.name for s in outer.spans if s.phase == "backward"] == [
        s.name for s in inner.spans if s.phase == "backward"
    ]
    assert {s.path for s in inner.spans if s.phase == "backward"} == {"1.0", "outside"}
    with pytest.raises(HookError, match="open"), outer, outer:
        pass
    assert len(hooks.table(model)) == 0
    assert not thread.state.node_hooks


def test_hooks_before_a_call_are_part_of_it():
    """Pre-hooks of the user's run inside: their ops are those of the module."""
    model = nn.Sequential(nn.Identity())
    model[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    with hooks.trace(model, ops=True) as seen:
        model(lucid.ones(1, device=DEVICE))
    assert [(span.path, span.depth) for span in seen.spans if span.phase == "op"] == [("0", 2)]


def test_norms_of_complex_gradients(rng):
    """Those of the moduli, as NumPy has them."""
    model = nn.Linear(2, 2, bias=False, device=DEVICE)
    values = rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2))
    model.weight = nn.Parameter(lucid.tensor(values, device=DEVICE))
    with hooks.trace(model) as seen:
        model.weight.grad = lucid.tensor(values * 3, device=DEVICE)
        model(lucid.ones(1, 2, dtype=lucid.complex128, device=DEVICE))
    assert seen.regions[""].grad == pytest.approx(np.linalg.norm(values * 3))


def test_in_the_handling_of_another_error():
    """What is handled around a call is none of its own: it has returned, also where it returns None."""
    model = module_of(lambda self, x: None)
    with hooks.trace(model) as seen:
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            model(lucid.ones(1, device=DEVICE))
    assert seen.regions[""].calls == 1


def test_patterns_from_an_iterator():
    """They are read once, and all count."""
    model = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.ReLU())
    with hooks.trace(model, iter(["0", "2"]), backward=False) as seen:
        model(lucid.ones(1, device=DEVICE))
    assert list(seen.regions) == ["0", "2"]


def test_backward_of_a_region_is_that_of_its_spans():
    """The sum of what its ops take in backward."""
    model = net()
    with hooks.trace(model) as seen:
        model(lucid.ones(4, 3, device=DEVICE)).sum().backward()
    for path, region in seen.regions.items():
        spans = [span for span in seen.spans if (span.path, span.phase) == (path, "backward")]
        assert region.backward == pytest.approx(sum(span.end - span.begin for span in spans), rel=1e-6, abs=1e-6)
