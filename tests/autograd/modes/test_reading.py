"""What a checkpointed function reads the second time is what it read the first time; what it counts, it counts once."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd.modes import reading
from lucid.autograd.modes.state import thread
from lucid.errors import CheckpointError, LucidError
from lucid.utils.checkpoint import checkpoint, set_checkpoint_early_stop
from tests.gradients import numbers

kinds = pytest.mark.parametrize("reentrant", [False, True], ids=["recorded", "reentrant"])


class Adapted(nn.Module):
    """A layer and one of two others beside it, of which one is active; and a scale, of two buffers."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(2, 2)
        self.adapters = nn.ModuleDict({name: nn.Linear(2, 2) for name in ("one", "two")})
        self.register_buffer("scale_one", lucid.ones(2))
        self.register_buffer("scale_two", lucid.full((2,), 3.0))
        self.shift = nn.Parameter(lucid.zeros(2))
        self.active = self.scale = "one"
        self.used = True

    def forward(self, x):
        y = self.base(x)
        if self.used:
            y = y + self.adapters[self.active](x)
        y = (y * getattr(self, f"scale_{self.scale}") + self.shift).tanh()
        return y * y


def switch(m):
    m.active = "two"


def switch_buffer(m):
    m.scale = "two"


def replace_parameter(m):
    m.base.weight = nn.Parameter(lucid.full((2, 2), 9.0))


def replace_bias(m):
    m.shift = nn.Parameter(lucid.full((2,), 9.0))


def replace_module(m):
    m.base = nn.Linear(2, 2)


def replace_buffer(m):
    m.scale_one = lucid.full((2,), 9.0)


def change_in_place(m):
    with lucid.no_grad():
        m.shift.add_(9)


def leave_out(m):
    m.used = False


CHANGES = {
    switch: "reads parameter 'weight' of module Adapted.adapters.two (Linear), which the first run did not read",
    switch_buffer: "reads buffer 'scale_two' of module Adapted, which the first run did not read",
    replace_parameter: "reads parameter 'weight' of module Adapted.base (Linear), which the first run did not read",
    replace_bias: "reads parameter 'shift' of module Adapted, which the first run did not read",
    replace_module: "reads parameter 'weight' of module Adapted.base (Linear), which the first run did not read",
    replace_buffer: "reads buffer 'scale_one' of module Adapted, which the first run did not read",
    change_in_place: "reads parameter 'shift' of module Adapted at version 1, which the first run read at version 0",
    leave_out: "",
}


@pytest.mark.parametrize("frozen", [False, True], ids=["trained", "frozen"])
@pytest.mark.parametrize("early_stop", [True, False], ids=["stops", "runs on"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@kinds
def test_a_run_that_reads_something_else_is_refused(reentrant, change, early_stop, frozen):
    """Backward names what is read instead, and no gradient has been counted."""
    m = Adapted().requires_grad_(not frozen)
    x = lucid.ones(1, 2, requires_grad=True)
    with set_checkpoint_early_stop(early_stop):
        y = checkpoint(m, x, use_reentrant=reentrant)
    change(m)
    with pytest.raises(CheckpointError) as caught:
        y.sum().backward()
    text = str(caught.value)
    assert CHANGES[change] in text
    assert "checkpoint of Adapted" in text
    if change is leave_out:
        assert "does not read parameter" in text or "a different number of tensors was saved" in text
    else:
        assert "switch adapters and replace or change parameters afterwards" in text
    assert x.grad is None
    assert all(parameter.grad is None for parameter in m.parameters())
    assert thread.state.runs == ()
    assert not reading.watching


@kinds
def test_what_is_put_back_is_right(reentrant):
    """Where backward finds what the forward read, gradients are those without a checkpoint."""
    m = Adapted()
    x = lucid.ones(1, 2, requires_grad=True)
    expected = lucid.autograd.grad(m(x).sum(), [x, *m.parameters()], allow_unused=True)
    y = checkpoint(m, x, use_reentrant=reentrant)
    m.active = "two"
    m.active = "one"
    y.sum().backward()
    for tensor, grad in zip([x, *m.parameters()], expected, strict=True):
        assert (tensor.grad is None) == (grad is None)
        if grad is not None:
            np.testing.assert_array_equal(numbers(tensor.grad), numbers(grad))


@kinds
@pytest.mark.parametrize("use", ["saved", "added"])
def test_leaves_of_no_module(reentrant, use):
    """A leaf that the function finds by a name, and that stands for another one later, is refused too."""
    held = {"w": lucid.ones(2, requires_grad=True)}
    x = lucid.ones(2, requires_grad=True)

    def function(x):
        return x * held["w"] if use == "saved" else (x + held["w"]).exp()

    y = checkpoint(function, x, use_reentrant=reentrant)
    held["w"] = lucid.full((2,), 100.0, requires_grad=True)
    with pytest.raises(CheckpointError, match=r"reads a leaf of shape \(2,\), float32 on \w+.*did not read"):
        y.sum().backward()
    assert x.grad is None


@kinds
def test_leaves_under_autocast(reentrant):
    """A cast that was kept from before the checkpoint counts as a read of its leaf."""
    w, x = lucid.ones(2, 2, requires_grad=True), lucid.ones(2, 2, requires_grad=True)
    with lucid.autocast(x.device.type, dtype=lucid.bfloat16):
        before = x @ w
        y = checkpoint(lambda x: (x @ w).tanh(), x, use_reentrant=reentrant)
    (before.sum() + y.sum()).float().backward()
    assert w.grad.shape == x.grad.shape == (2, 2)


def test_a_saved_constant_that_was_changed_is_refused():
    """A tensor without gradient that both runs find and save is at the version of the first."""
    scale, x = lucid.full((2,), 2.0), lucid.ones(2, requires_grad=True)
    y = checkpoint(lambda x: x * scale, x, use_reentrant=False)
    scale.mul_(100)
    with pytest.raises(LucidError, match="modified by an inplace operation"):
        y.sum().backward()


def test_the_check_may_be_left_out():
    """``determinism_check="none"`` is for those who know better."""
    m = Adapted()
    x = lucid.ones(1, 2, requires_grad=True)
    y = checkpoint(m, x, use_reentrant=False, determinism_check="none")
    m.active = "two"
    y.sum().backward()
    assert x.grad is not None


class Counting(nn.Module):
    """Replaces a buffer of its own, and changes a parameter and another buffer, in each call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", lucid.zeros(()))
        self.weight = nn.Parameter(lucid.full((2,), 5.0))

    def forward(self, x):
        self.calls = self.calls + 1
        with lucid.no_grad():
            self.weight.clamp_(-1, 1)
        return x * self.weight


@kinds
def test_what_a_function_changes_itself_it_may_change_again(reentrant):
    """Its own buffers and parameters may be others, or of another version, when it runs again."""
    m = Counting()
    x = lucid.ones(2, requires_grad=True)
    y = checkpoint(m, x, use_reentrant=reentrant)
    if reentrant:
        y.sum().backward()
        np.testing.assert_array_equal(numbers(x.grad), 1)
    else:
        # without a checkpoint the weight is at this version, too
        y.sum().backward(retain_graph=True)
    embedding = nn.Embedding(3, 2, max_norm=0.5)
    places = lucid.tensor([0, 1, 1])
    y = checkpoint(lambda x: (embedding(places) * x).tanh(), x, use_reentrant=reentrant)
    y.sum().backward()
    assert embedding.weight.grad is not None


def layers():
    """Return layers with state that follows their calls, and inputs of theirs."""
    images, rows = (4, 3, 2, 2), (4, 3)
    return {
        "BatchNorm1d": (lambda: nn.BatchNorm1d(3), rows),
        "BatchNorm1d cumulative": (lambda: nn.BatchNorm1d(3, momentum=None), rows),
        "BatchNorm2d": (lambda: nn.BatchNorm2d(3), images),
        "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3, track_running_stats=True, affine=True), images),
        "spectral norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)), rows),
        "older spectral norm": (lambda: nn.utils.spectral_norm(nn.Linear(3, 3)), rows),
    }


@pytest.mark.parametrize("name", layers())
@pytest.mark.parametrize("how", ["recorded", "reentrant", "recorded in reentrant", "reentrant in recorded", "twice"])
def test_state_that_follows_calls_counts_once(name, how, rng):
    """Running statistics, counts and power iterations are those without a checkpoint, and so are gradients."""
    make, shape = layers()[name]
    plain = nn.Sequential(make(), nn.Tanh())
    other = copy.deepcopy(plain)

    def run(x):
        kinds = [kind == "reentrant" for kind in how.removeprefix("twice").split(" in ") if kind] or [False]
        function = other
        for reentrant in kinds:
            inner = function
            function = lambda x, inner=inner, reentrant=reentrant: checkpoint(inner, x, use_reentrant=reentrant)
        return function(x)

    for _ in range(3):
        array = rng.standard_normal(shape).astype(np.float32)
        x, z = lucid.tensor(array, requires_grad=True), lucid.tensor(array, requires_grad=True)
        plain(x).square().sum().backward()
        y = run(z).square().sum()
        if how == "twice":
            y.backward(retain_graph=True)
            for parameter in other.parameters():
                parameter.grad = None
            z.grad = None
        y.backward()
        np.testing.assert_allclose(numbers(z.grad), numbers(x.grad), rtol=1e-5, atol=1e-6)
        for parameter, wanted in zip(other.parameters(), plain.parameters(), strict=True):
            np.testing.assert_allclose(numbers(parameter.grad), numbers(wanted.grad), rtol=1e-4, atol=1e-5)
        for mine, wanted in zip(other.buffers(), plain.buffers(), strict=True):
            np.testing.assert_array_equal(numbers(mine), numbers(wanted))
        plain.zero_grad()
        other.zero_grad()
    assert not reading.recomputing()


def test_no_parameter_outlives_its_graph():
    """What a run has read is held as long as its graph, which backward frees."""
    m = nn.Linear(2, 2)
    y = checkpoint(m, lucid.ones(1, 2, requires_grad=True), use_reentrant=False)
    weight = weakref.ref(m.weight)
    y.sum().backward()
    del m, y
    gc.collect()
    assert weight() is None


@kinds
def test_leaves_that_a_function_makes_are_its_own(reentrant):
    """Each run makes others, as a hook does that computes a gradient inside."""
    weight = nn.Parameter(lucid.ones(3))

    def function(x):
        with lucid.enable_grad():
            fresh = lucid.full((3,), 2.0, requires_grad=True)
            scale = lucid.autograd.grad((fresh * fresh).sum(), fresh)[0]
        return (x * weight * scale).sum()

    x = lucid.ones(3, requires_grad=True)
    checkpoint(function, x, use_reentrant=reentrant).backward()
    assert x.grad.tolist() == weight.grad.tolist() == [4.0] * 3
