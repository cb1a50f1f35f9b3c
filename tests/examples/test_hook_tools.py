"""The tools made of hooks do their work."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

import lucid
from lucid import nn

SCRIPT = Path(__file__).parents[2] / "examples" / "hook_tools.py"


@pytest.fixture(scope="module")
def tools():
    """Return the names of examples/hook_tools.py."""
    return runpy.run_path(str(SCRIPT))


def test_what_it_prints(capsys, monkeypatch):
    """The script prints a line for each layer, leaves no hook behind, and its bound holds."""
    monkeypatch.setattr(sys, "argv", [str(SCRIPT)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert sum("returned" in line for line in lines) == 3
    assert "hooks left behind: 0" in lines
    assert "features: {'1': (3, 8), '2.0': (3, 8)}" in lines
    largest = [float(line.rpartition(" ")[2]) for line in lines if "singular" in line]
    assert len(largest) == 3
    assert max(largest) < 1.5 * 1.01


def test_recorder(tools):
    """It records what modules return, and their gradients, inside its block only; also if the block raises."""
    model = tools["make_model"]()
    x = lucid.ones(2, 4, requires_grad=True)
    with pytest.raises(KeyError), tools["ActivationRecorder"](model, nn.Tanh) as recorder:
        model(x).sum().backward()
        raise KeyError
    model(x)
    assert list(recorder.activations) == ["1", "2.1"]
    assert [len(seen) for seen in recorder.activations.values()] == [1, 1]
    assert recorder.activations["1"][0].tolist() == model[1](model[0](x)).tolist()
    assert recorder.gradients["2.1"][0].tolist() == [model[3].weight.sum(0).tolist()] * 2
    assert tools["hook_count"](model) == 0


def test_extractor(tools):
    """It gives what layers return, on the graph, runs nothing after the last of them, and leaves the model alone."""
    model, ran = tools["make_model"](), []
    model[3].register_forward_pre_hook(lambda *_: ran.append(1))
    x = lucid.ones(2, 4, requires_grad=True)
    features = tools["FeatureExtractor"](model, ["0", "2.1"])(x)
    assert not ran
    features["0"].sum().backward()
    assert x.grad is not None
    assert model(x).shape == (2, 2)
    assert tools["hook_count"](model) == 1


def test_monitor_loads_what_was_saved_without_it(tools):
    """A state dict from before the monitor loads strictly; one from after it brings the vectors along."""
    plain, watched, twin = (tools["make_model"]() for _ in range(3))
    for model in (watched, twin):
        tools["SpectralMonitor"](model)
    watched.load_state_dict(plain.state_dict())
    watched(lucid.ones(1, 4))
    twin.load_state_dict(watched.state_dict())
    assert twin[0].spectral_v.tolist() == watched[0].spectral_v.tolist()
    assert "0.spectral_v" in watched.state_dict()
