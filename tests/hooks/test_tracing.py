"""`lucid.hooks.trace`: every call and every backward once, in the right region, with times that fit into each other."""

from __future__ import annotations

import json

import pytest

import lucid
from lucid import hooks, nn
from lucid.errors import SettingError
from tests.device import DEVICE


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
    assert "Sequential" in str(seen)
    assert "1.0" in str(seen)
    with pytest.raises(SettingError, match="'7'"):
        hooks.trace(model, "7")
