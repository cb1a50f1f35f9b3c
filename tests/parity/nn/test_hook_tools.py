"""Tools written for PyTorch's hooks do the same on lucid, with only the import changed."""

from __future__ import annotations

import types
from pathlib import Path

import numpy as np
import pytest

from tests.parity.pieces import plain

SOURCE = (Path(__file__).parent / "hook_tools.py").read_text(encoding="utf-8")


def tools(library):
    """Return the module of hook_tools.py with the import of a library."""
    assert SOURCE.count("import lucid as torch\n") == 1
    module = types.ModuleType("hook_tools")
    code = SOURCE.replace("import lucid as torch\n", f"import {library} as torch\n")
    exec(compile(code, "hook_tools.py", "exec"), vars(module))
    return module


def close(got, expected):
    """Check that two results are alike to the precision of float32."""
    assert type(got) is type(expected)
    if isinstance(got, dict):
        assert list(got) == list(expected)
        for key, entry in got.items():
            close(entry, expected[key])
    elif isinstance(got, list) and got and isinstance(got[0], dict | list):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            close(one, other)
    else:
        np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-5)


def recorded(t):
    model, x = t.make_model(), t.torch.linspace(-1.0, 1.0, 12).reshape(3, 4).requires_grad_()
    with t.ActivationRecorder(model) as recorder:
        (model(x) * t.torch.linspace(-1.0, 2.0, 6).reshape(3, 2)).sum().backward()
    return plain([recorder.activations, recorder.gradients, {"left": t.hook_count(model)}])


def clipped(t):
    model, x = t.make_model(), t.torch.linspace(-1.0, 1.0, 12).reshape(3, 4)
    clipper = t.GradientClipper(model, 0.1, lambda parameters: t.torch.optim.Adam(parameters, lr=0.01))
    for _ in range(10):
        model(x).square().mean().backward()
    gone = all(parameter.grad is None for parameter in model.parameters())
    clipper.remove()
    model(x).square().mean().backward()
    left = [parameter.grad for parameter in model.parameters()]
    return plain([clipper.norms, dict(model.state_dict()), {"gone": [float(gone)], "left": left}])


def extracted(t):
    model, x = t.make_model(), t.torch.linspace(-1.0, 1.0, 12).reshape(3, 4)
    features = t.FeatureExtractor(model, ["0", "2", "1"])(x)
    features["2"].square().sum().backward()
    return plain([features, {name: [] if p.grad is None else p.grad for name, p in model.named_parameters()}])


def monitored(t):
    model, x = t.make_model(), t.torch.linspace(-1.0, 1.0, 12).reshape(3, 4)
    old = t.make_model().state_dict()
    monitor = t.SpectralMonitor(model, bound=1.5)
    model.load_state_dict(old)
    optimizer = t.torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(10):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return plain([monitor.history, dict(model.state_dict())])


@pytest.mark.parametrize("scenario", [recorded, clipped, extracted, monitored])
def test_same_as_in_pytorch(scenario):
    """The same source with the other import gives the same names, calls and numbers."""
    close(scenario(tools("lucid")), scenario(tools("torch")))
