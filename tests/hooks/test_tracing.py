"""`lucid.hooks.trace`: every call and every backward once, in the right region, with times that fit into each other."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import re
import threading
from html.parser import HTMLParser

import numpy as np
import pytest

import lucid
from lucid import hooks, nn
from lucid.autograd.modes.state import thread
from lucid.errors import HookError, SettingError, ShapeError
from lucid.hooks.tracing.spans import Region, table_of
from tests.device import DEVICE

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


def test_calls_that_raise(rng):
    class Fails(nn.Module):
        def forward(self, x):
            raise ZeroDivisionError

    model = nn.Sequential(nn.Identity(), Fails())
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


class Page(HTMLParser):
    """What a page consists of: texts by the element around them, and whether each that begins ends."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.attributes = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, tag):
        return [text for around, text in self.texts if around == tag]


def test_a_page(tmp_path):
    """It needs nothing beside itself, shows each span in its row, and the modules and hooks by name, escaped."""
    model = net()
    model.add_module("<b>", nn.Linear(3, 2, device=DEVICE))
    handle = model[0].register_forward_hook(lambda *_: None)
    with hooks.trace(model, ops=True) as seen:
        model(lucid.ones(2, 3, device=DEVICE)).sum().backward()
    seen.save(tmp_path / "trace.html")
    text = (tmp_path / "trace.html").read_text(encoding="utf-8")
    assert not re.search(r"<script|https?://", text)
    page = Page(text)
    assert page.of("h1") == ["Trace of Sequential"]
    assert page.of("h2") == ["Timeline", "Modules", "Hooks"]
    titles = page.of("title")
    for name in ("0 Linear", "1.0 Tanh", "1.0 tanh", "<b> Linear", "0 LinearBackward0", "Sequential", "outside sum"):
        assert any((title.startswith(f"{name}: ") and title.endswith(" us")) or DEVICE == "cuda" for title in titles), (
            name
        )
    bars = [attributes for tag, attributes in page.attributes if tag == "rect"]
    assert len(bars) == len(titles) - 1
    rows = {float(bar["y"]) for bar in bars}
    assert len(rows) == max(span.depth for span in seen.spans) + 2
    assert all(0 <= float(bar["x"]) <= float(bar["x"]) + float(bar["width"]) <= 1161 for bar in bars)
    (box,) = [attributes["viewbox"] for tag, attributes in page.attributes if tag == "svg"]
    width, height = map(float, box.split()[2:])
    assert width == 1160
    assert all(float(bar["y"]) + float(bar["height"]) <= height for bar in bars)
    cells = page.of("td")
    assert "  outside" in cells
    assert "  <b>" in cells
    assert handle.name in cells
    assert "forward hook" in cells
    handle.remove()
    del model
    gc.collect()
    seen.save(tmp_path / "later.html")
    assert "None but those of the trace." in (tmp_path / "later.html").read_text(encoding="utf-8")
    with pytest.raises(SettingError, match=r"ends in \.json or \.html, got 'trace\.txt'"):
        seen.save(tmp_path / "trace.txt")
    assert not (tmp_path / "trace.txt").exists()


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
        model(x).sum().backward()
    assert {span.phase for span in seen.spans} == {"op", "forward"}


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


def test_rows_are_in_the_order_of_time():
    """What takes the most, forward and backward together, comes first."""
    regions = [Region(path, "") for path in "abc"]
    for region, own, backward in zip(regions, (3.0, 1.0, 2.0), (0.0, 5.0, 2.0), strict=True):
        region.own, region.backward = own, backward
    assert list(table_of(regions).columns[0].cells) == ["b", "c", "a"]


def test_a_path_stands_below_the_one_it_is_in(tmp_path):
    """A page shows of each module the names below that of the row above, further to the right."""
    model = nn.Sequential(nn.Sequential(nn.ReLU()), nn.ReLU())
    with hooks.trace(model) as seen:
        model(lucid.ones(2))
    seen.save(tmp_path / "trace.html")
    text = (tmp_path / "trace.html").read_text(encoding="utf-8")
    places = [text.index(f">{path}</td>") for path in ("(the model)", "  0", "    0", "  1")]
    assert places == sorted(places)


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

    class Nothing(nn.Module):
        def forward(self, x):
            return None

    model = Nothing()
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
