"""Each tool in a step that is a CUDA graph does what docs/users/hooks.md says of it."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

import lucid
from lucid import hooks, nn
from lucid.errors import CaptureError

pytestmark = pytest.mark.gpu


def training():
    """Return a model, a step that trains it, and a batch."""
    lucid.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to("cuda")

    def step(x):
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    return model, step, lucid.ones(2, 3, device="cuda")


def graphed(step, x):
    return lucid.cuda.graphed_step(step, x, warmup=1)


def run(step, x, times=3):
    """Return what a graphed step gives, and of what its capture warns."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        results = [step(x * (k + 1)).item() for k in range(times)]
    return results, " ".join(str(warning.message) for warning in caught)


def test_edit_is_part_of_the_graph():
    model, step, x = training()
    with hooks.edit(model, {"1": lambda output: output * 2}, parameters={"2.weight": lambda grad: grad * 3}):
        expected = [step(x * (k + 1)).item() for k in range(3)]
        grads = [p.grad.tolist() for p in model.parameters()]
        results, said = run(graphed(step, x), x)
        assert results == pytest.approx(expected, rel=1e-6)
        assert [p.grad.tolist() for p in model.parameters()] == grads
    assert "edit" in said


def test_step_in_backward_is_part_of_the_graph():
    states = []
    for with_graph in (False, True):
        model, step, x = training()
        handles = hooks.step_in_backward(model, lambda parameters: lucid.optim.SGD(parameters, lr=0.1))
        call = graphed(step, x) if with_graph else step
        run(call, x, 5)
        states.append([p.tolist() for p in model.parameters()])
        del handles
    assert states[0] == states[1]


def test_capture_keeps_what_replays_fill():
    model, step, x = training()
    call = graphed(step, x)
    with hooks.capture(model, "1") as kept:
        _, said = run(call, x, 4)
        last = kept["1", "output", len(kept) - 1]
        with lucid.no_grad():
            expected = model[1](model[0](x * 4))
    assert last.tolist() == expected.tolist()
    assert "CaptureHook" in said


@pytest.mark.parametrize("tool", ["trace", "TimerHook", "FlopHook", "counting"])
def test_what_sees_the_capture_alone(tool):
    """Calls are counted until the graph is there: one that warms up, and one that is captured."""
    model, step, x = training()
    model[1].register_forward_hook(lambda *_: None)
    call = graphed(step, x)
    made = {"trace": lambda: hooks.trace(model), "counting": lambda: hooks.counting(model)}
    with made.get(tool, getattr(hooks, tool))() as seen:
        run(call, x, 5)
    counts = {
        "trace": lambda: seen.regions[""].calls,
        "TimerHook": lambda: seen.calls["tanh"],
        "FlopHook": lambda: seen.flops["linear"] // (2 * 2 * 3 * 4 + 2 * 2 * 4),
        "counting": lambda: seen[0].calls,
    }
    assert counts[tool]() == 2


def test_guard_refuses():
    model, step, x = training()
    with hooks.guard(model), pytest.raises(CaptureError, match="cannot be captured"):
        run(graphed(step, x), x)
    assert len(hooks.table(model)) == 0
    results, _ = run(graphed(step, x), x)
    assert len(results) == 3


def test_what_fires_nothing():
    """Hooks of a scope go with it, and the step is captured anew without them."""
    model, step, x = training()
    call = graphed(step, x)
    with hooks.scope() as inside:
        model[1].register_forward_hook(lambda module, args, output: output * 0)
        with_hook, _ = run(call, x)
        assert len(hooks.table(model)) == len(inside) == 1
        assert "forward hook" in str(hooks.explain(model[1]))
    without, said = run(call, x)
    assert "captured anew" in said
    assert with_hook[2] != without[2] == pytest.approx(step(x * 3).item(), rel=1e-6)


def test_every_tool_is_in_the_table():
    text = (Path(__file__).parents[2] / "docs" / "users" / "hooks.md").read_text(encoding="utf-8")
    rows = text.partition("| tool | in a captured step |")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", rows))
    kinds = {"Call", "Captured", "FunctionHook", "HookContext", "Leak", "NotFiniteError", "Row", "Table"}
    assert set(hooks.__all__) - kinds - named == set()
