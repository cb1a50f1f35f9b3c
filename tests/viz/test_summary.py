"""`lucid.viz.summary`: figures worked out by hand, shared and unused modules, and a model that is left as it was."""

from __future__ import annotations

import contextlib

import pytest

import lucid
from lucid import hooks, nn, viz
from lucid.errors import ArgumentError
from tests.device import DEVICE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, device=DEVICE)
        self.norm = nn.BatchNorm2d(4, device=DEVICE)
        self.head = nn.Linear(4, 4, device=DEVICE)
        self.unused = nn.Linear(3, 3, device=DEVICE)
        self.drop = nn.Dropout(0.5)
        self.unused.requires_grad_(False)

    def forward(self, x, *, twice=True):
        x = self.drop(self.norm(self.conv(x))).mean((2, 3))
        return (self.head(self.head(x)), x) if twice else self.head(x)


def test_figures():
    model = Net()
    found = viz.summary(model, lucid.ones(2, 1, 6, 6, device=DEVICE))
    lines = {line.path: line for line in found}
    assert list(lines) == ["", "conv", "norm", "head", "unused", "drop"]
    conv, head = 2 * (2 * 4 * 4 * 4) * 9, 2 * 2 * 4 * 4
    assert lines["conv"] == ("conv", "Conv2d", 1, [(2, 4, 4, 4)], 40, 40, conv, 512)
    assert lines["head"] == ("head", "Linear", 2, [(2, 4)], 20, 20, 2 * head, 64)
    assert lines["unused"] == ("unused", "Linear", 0, [], 12, 0, 0, 0)
    assert lines[""] == ("", "Net", 1, [(2, 4), (2, 4)], 80, 68, conv + 2 * head, 64)
    assert found.to_dicts()[1]["outputs"] == [(2, 4, 4, 4)]
    text = str(found)
    assert f"80 parameters, 68 trained; {conv + 2 * head:,} operations in products" in text
    assert "head: Linear (2 calls)" in text
    assert "unused: Linear (0 calls)" in text
    assert repr(found) == "<summary of 6 modules>"


class Fails(nn.Module):
    def forward(self, x):
        raise KeyError("inside")


class Catches(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4, device=DEVICE)
        self.fails = Fails()

    def forward(self, x):
        x = self.layer(x)
        with contextlib.suppress(KeyError):
            self.fails(x)
        return self.layer(x)


def test_a_call_that_raises_inside():
    """It is no call, and takes nothing of what the calls around it have counted."""
    found = viz.summary(nn.Sequential(Catches(), nn.Linear(4, 4, device=DEVICE)), lucid.ones(2, 4, device=DEVICE))
    one = 2 * 2 * 4 * 4
    assert {line.path: (line.calls, line.flops) for line in found} == {
        "": (1, 3 * one), "0": (1, 2 * one), "0.layer": (2, 2 * one), "0.fails": (0, 0), "1": (1, one),
    }  # fmt: skip


def test_names_stand_further_in_the_deeper_they_are():
    model = nn.Sequential(nn.Identity(), nn.Sequential(nn.Sequential(nn.Tanh())))
    lines = str(viz.summary(model, lucid.ones(1, device=DEVICE))).splitlines()
    shown = [line.strip("│").split("│")[0].removeprefix(" ").rstrip() for line in lines if ":" in line]
    assert shown == ["  0: Identity", "  1: Sequential", "    0: Sequential", "      0: Tanh"]


def test_the_model_stays_as_it_was():
    """Modes, running statistics, hooks, gradients and random numbers, also after a forward that raises."""
    model = Net()
    model.head.eval()
    before = [tensor.tolist() for tensor in model.state_dict().values()]
    lucid.manual_seed(3)
    viz.summary(model, lucid.ones(2, 1, 6, 6, device=DEVICE), twice=False)
    with pytest.raises(TypeError, match="nothing"):
        viz.summary(model, lucid.ones(2, 1, 6, 6, device=DEVICE), nothing=1)
    after = lucid.rand(3).tolist()
    lucid.manual_seed(3)
    assert lucid.rand(3).tolist() == after
    assert [tensor.tolist() for tensor in model.state_dict().values()] == before
    assert [module.training for module in model.modules()] == [True, True, True, False, True, True]
    assert len(hooks.table(model)) == 0
    assert all(parameter.grad is None for parameter in model.parameters())


def test_what_is_no_module():
    with pytest.raises(ArgumentError, match="model: expected a Module, got"):
        viz.summary(lucid.ones(1))


def test_errors_that_the_model_catches():
    """The operations of a call are its own, whatever has raised inside of it; the model's own hooks stay."""

    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3, device=DEVICE)

        def forward(self, x):
            raise ValueError(str(self.layer(x).shape))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 3, device=DEVICE)
            self.fails = Fails()

        def forward(self, x):
            self.handle = self.register_forward_hook(lambda module, args, output: None)
            try:
                return self.fails(self.first(x))
            except ValueError:
                return self.first(x)

    model = Model()
    found = viz.summary(model, lucid.ones(2, 3, device=DEVICE))
    product = 2 * 2 * 3 * 3
    assert {line.path: (line.calls, line.flops) for line in found} == {
        "": (1, 3 * product),
        "first": (2, 2 * product),
        "fails": (0, 0),
        "fails.layer": (1, product),
    }
    assert len(hooks.table(model)) == 1
