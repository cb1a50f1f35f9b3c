"""`lucid.hooks.explain`: what it says fires is what fires, in that order, and what it says does not fire does not."""

from __future__ import annotations

import re

import pytest

import lucid
from lucid import hooks, nn
from lucid.errors import ArgumentError
from lucid.nn.modules.module import register_module_forward_hook
from lucid.optim.optimizer import register_optimizer_step_post_hook
from tests.device import DEVICE


def named(fired, name):
    def hook(*_):
        fired.append(name)

    hook.__qualname__ = name
    return hook


def said(text):
    """Return the names of the hooks that fire, numbered in order, and of those that do not, as a text says."""
    fire = re.findall(r"^  (\d+)\. .* (\w+) \(", text, re.MULTILINE)
    assert [int(number) for number, _ in fire] == [*range(1, len(fire) + 1)]
    return [name for _, name in fire], re.findall(r"^  will not fire: .* (\w+) \(.*?\): ", text, re.MULTILINE)


def test_a_module():
    layer, fired = nn.Linear(2, 2, device=DEVICE), []
    with hooks.scope():
        layer.register_full_backward_hook(named(fired, "full"))
        layer.register_forward_hook(named(fired, "second"))
        layer.register_forward_hook(named(fired, "first"), prepend=True)
        layer.register_forward_pre_hook(named(fired, "before"), every_step=True)
        layer.register_full_backward_pre_hook(named(fired, "pre"))
        register_module_forward_hook(named(fired, "all"))
        evaluated = nn.Hook(named(fired, "evaluated"), train_update=False)
        evaluated.register(layer)
        hooks.table(layer).filter(name="second").disable()
        x = lucid.ones(1, 2, device=DEVICE, requires_grad=True)
        fire, rest = said(hooks.explain(layer))
        layer(x).sum().backward()
        assert fired == fire == ["before", "all", "first", "pre", "full"]
        assert sorted(rest) == ["evaluated", "second"]
        text = hooks.explain(layer)
        assert text.count("of all modules") == text.count("forward hook of all modules all (") == 1
        assert "trainexec" in text
        assert "switched off" in text
        assert "in each replay" in text
        layer.eval()
        with lucid.no_grad():
            fired.clear()
            fire, rest = said(hooks.explain(layer))
            layer(x)
        assert fired == fire == ["before", "evaluated", "all", "first"]
        assert sorted(rest) == ["full", "pre", "second"]
        for parameter in layer.parameters():
            parameter.requires_grad_(False)
        assert "if an input requires grad" in hooks.explain(layer)
    assert hooks.explain(layer) == "module Linear\n  no hooks"


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("train", "evaluate"), [(True, False), (False, True), (False, False)])
def test_a_hook_of_one_mode(training, train, evaluate):
    """One that does not run in the module's mode is said to be at rest, with the setting by which it is."""
    layer, fired = nn.Identity().train(training), []
    hook = nn.Hook(posthook=named(fired, "one"), train_update=train, eval_update=evaluate)
    hook.register(layer)
    text = hooks.explain(layer)
    layer(lucid.ones(1, device=DEVICE))
    assert said(text) == (fired, [] if fired else ["one"])
    assert fired == ["one"] * (train if training else evaluate)
    assert fired or ("(trainexec)" if training else "(evalexec)") in text


def test_parameters_of_inner_modules():
    """A backward hook waits for an input that requires grad only where no parameter does, also of a module inside."""
    layer = nn.Linear(2, 2, device=DEVICE)
    model, fired = nn.Sequential(layer), []
    model.register_full_backward_pre_hook(named(fired, "pre"))
    assert "if an input requires grad" not in hooks.explain(model)
    model(lucid.ones(1, 2, device=DEVICE)).sum().backward()
    assert fired == ["pre"]
    layer.requires_grad_(False)
    assert "if an input requires grad, as no parameter does" in hooks.explain(model)


def test_a_tensor():
    fired = []
    x = lucid.ones(2, device=DEVICE, requires_grad=True)
    assert hooks.explain(x).endswith("\n  no hooks")
    x.register_post_accumulate_grad_hook(named(fired, "after"))
    x.register_hook(named(fired, "grad"))
    y = x * x
    y.grad_fn.register_hook(named(fired, "node"))
    y.register_hook(named(fired, "made"))
    hooks.table(x).filter(name="after").disable()
    assert said(hooks.explain(y))[0] == ["made", "node"]
    assert "in each replay" not in hooks.explain(y)
    with y.register_hook(named(fired, "always"), every_step=True):
        assert re.search(
            r"2\. tensor hook always \(.*\), also in each replay of a captured step$", hooks.explain(y), re.MULTILINE
        )
    assert "a leaf" in hooks.explain(x)
    assert re.search(r"after \(.*: will not fire, as it is switched off", hooks.explain(x))
    y.sum().backward()
    assert fired == ["made", "node", "grad"]
    assert "none will fire: a backward pass has freed" in hooks.explain(y)
    assert "does not require grad" in hooks.explain(x.detach())


def test_nothing_else_is_explained():
    with pytest.raises(ArgumentError, match="expected a Module or a Tensor"):
        hooks.explain(3)


def test_what_is_in_a_module():
    """Hooks on modules and parameters inside fire, too, and are counted, not explained."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    model[1][0].register_forward_hook(lambda *_: None)
    model[0].weight.register_hook(lambda grad: None)
    assert hooks.explain(model).splitlines()[1:] == [
        "  no hooks",
        "  and 2 on what is in it, which hooks.table lists",
    ]
    assert "what is in it" not in hooks.explain(model[1][0])


def test_hooks_of_optimizers_are_none_of_a_module():
    """Those of all optimizers do not count as being on what is in a module."""
    layer = nn.Linear(2, 2, device=DEVICE)
    text = hooks.explain(layer)
    with hooks.scope():
        register_optimizer_step_post_hook(lambda *_: None)
        assert hooks.explain(layer) == text
