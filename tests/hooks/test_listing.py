"""`lucid.hooks.table`: every hook, where it was registered; and that rows switch hooks off and take them off."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import itertools
import weakref

import numpy as np
import pytest

import lucid
from lucid import hooks, nn
from lucid.autograd.graph import register_multi_grad_hook
from lucid.errors import ArgumentError
from lucid.nn.modules import module as module_hooks
from lucid.nn.modules.module import register_module_forward_hook
from lucid.optim import optimizer as optimizer_hooks
from lucid.optim.optimizer import register_optimizer_step_post_hook
from tests.device import DEVICE


def keep(*_):
    """Leave everything as it is."""


def net():
    return nn.Sequential(nn.Linear(2, 2, device=DEVICE), nn.Sequential(nn.Tanh()))


def test_every_kind_is_seen():
    model = net()
    optimizer = lucid.optim.SGD(model.parameters())
    y = model(lucid.ones(1, 2, device=DEVICE))
    with hooks.scope():
        model.register_forward_pre_hook(keep, with_kwargs=True)
        model[0].register_forward_hook(keep, always_call=True)
        model[0].register_full_backward_hook(keep)
        model[1][0].register_full_backward_pre_hook(keep)
        model[1].register_state_dict_hook(keep)
        model[0].weight.register_hook(keep)
        model[0].weight.register_post_accumulate_grad_hook(keep)
        y.register_hook(keep)
        y.grad_fn.register_prehook(keep)
        y.grad_fn.register_hook(keep)
        register_multi_grad_hook((model[0].bias,), keep)
        optimizer.register_step_pre_hook(keep)
        register_module_forward_hook(keep)
        register_optimizer_step_post_hook(keep)
        found = hooks.table(model, y, optimizer)
        seen = [(row.path, row.kind) for row in found]
        node = f"{y.grad_fn.name()} {y.grad_fn.sequence}"
        of_the_model = [
            ("", "forward pre-hook"), ("0", "backward hook"), ("0", "forward hook"), ("1", "state dict hook"),
            ("1.0", "backward pre-hook"), ("0.weight", "tensor hook"), ("0.weight", "post-accumulate hook"),
            ("0.bias", "tensor hook"),
        ]  # fmt: skip
        assert seen[: len(of_the_model)] == of_the_model
        of_the_graph = seen[len(of_the_model) : -3]
        assert of_the_graph[:3] == [(node, "tensor hook"), (node, "node prehook"), (node, "node posthook")]
        assert sorted(of_the_graph[3:]) == [
            ("leaf of shape (2, 2)", "post-accumulate hook"),
            ("leaf of shape (2, 2)", "tensor hook"),
            ("leaf of shape (2,)", "tensor hook"),
        ]
        assert seen[-3:] == [
            ("SGD", "step pre-hook"), ("all modules", "forward hook"),
            ("all optimizers", "step post-hook"),
        ]  # fmt: skip
        assert all(row.registered.startswith(__file__) for row in found)
        assert all(row.enabled for row in found)
        assert {row.name.partition(" ")[0] for row in found} == {"keep"}
        found.remove()
        assert len(hooks.table(model, y, optimizer)) == 0


EVERYWHERE = {
    name: (whose, register)
    for whose, namespace in (("all modules", module_hooks), ("all optimizers", optimizer_hooks))
    for name, register in vars(namespace).items()
    if name.startswith("register_")
}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_hooks_of_all_modules_and_optimizers(name):
    """Each kind is in every table, also in one of nothing else."""
    whose, register = EVERYWHERE[name]

    def hook(one, two):
        """Leave everything as it is."""

    with hooks.scope():
        register(hook)
        (row,) = hooks.table()
        assert (row.path, row.hook()) == (whose, hook)
        row.remove()
        assert len(hooks.table()) == 0


def test_rows_say_who_registered_and_in_which_order():
    model = net()
    model.register_forward_hook(functools.partial(keep, 1))
    line = inspect.currentframe().f_lineno - 1
    model.register_forward_hook(lambda *_: None, prepend=True)
    first, second = hooks.table(model)
    assert (first.number, second.number) == (0, 1)
    assert "<lambda>" in first.name
    assert second.registered == f"{__file__}:{line}"
    assert second.name.startswith(f"keep ({__file__}:")
    assert repr(second) == f"<forward hook 1 of the model: {second.name}, from {second.registered}>"
    second.enabled = False
    assert repr(second).endswith(f"from {second.registered}, off>")
    printed = str(hooks.table(model).filter(name="keep"))
    assert "forward hook" in printed
    assert "<lambda>" not in printed
    assert hooks.table(model).to_dicts()[1]["number"] == 1


PREPENDED = [
    (owner, name)
    for owner in (nn.Module, lucid.optim.Optimizer)
    for name in dir(owner)
    if name.startswith("register_") and "prepend" in inspect.signature(getattr(owner, name)).parameters
]


@pytest.mark.parametrize(("owner", "name"), PREPENDED)
def test_what_is_prepended_fires_first(owner, name):
    """Of every registration that takes `prepend`: the newest of these first, then the others as they came."""
    model, fired = nn.Linear(2, 2, device=DEVICE), []
    optimizer = lucid.optim.SGD(model.parameters())
    subject = model if owner is nn.Module else optimizer
    for number, prepend in enumerate([False, True, False, True]):
        getattr(subject, name)(lambda *_, number=number: fired.append(number), prepend=prepend)
    model(lucid.ones(1, 2, device=DEVICE, requires_grad=True)).sum().backward()
    optimizer.load_state_dict(optimizer.state_dict())
    assert fired == [3, 1, 0, 2]


def test_filters():
    model = net()
    model[0].register_forward_hook(keep)
    model[1][0].register_forward_hook(keep)
    model[1][0].register_forward_pre_hook(lambda *_: None)
    model[0].bias.register_hook(keep)
    found = hooks.table(model)
    assert [row.path for row in found.filter("1.**")] == ["1.0", "1.0"]
    assert [row.path for row in found.filter("*")] == ["0"]
    with model[1].register_forward_hook(keep):
        assert [row.path for row in hooks.table(model).filter("1.**")] == ["1", "1.0", "1.0"]
    assert [row.path for row in found.filter(kind="tensor*")] == ["0.bias"]
    assert [row.kind for row in found.filter(name="*<lambda>")] == ["forward pre-hook"]
    assert len(found.filter(file=__file__)) == 4
    assert len(found.filter(file="elsewhere")) == 0
    found.filter(kind="forward*").remove()
    assert [row.path for row in hooks.table(model)] == ["0.bias"]
    assert isinstance(found[:2], hooks.Table)


@pytest.mark.parametrize("every_step", [False, True])
def test_a_hook_that_rests_keeps_its_place(every_step):
    model, fired, x = net(), [], lucid.ones(1, 2, device=DEVICE)
    handles = [model.register_forward_hook(lambda *_, n=n: fired.append(n), every_step=every_step) for n in range(3)]
    weight = model[0].weight
    handles += [weight.register_hook(lambda grad, n=n: fired.append(n), every_step=every_step) for n in range(3, 6)]
    found = hooks.table(model)
    found[1].enabled = found[4].enabled = False
    model(x).sum().backward()
    assert fired == [0, 2, 3, 5]
    assert [row.enabled for row in hooks.table(model)] == [True, False, True, True, False, True]
    found.disable()
    found.disable()
    model(x).sum().backward()
    assert fired == [0, 2, 3, 5]
    found.enable()
    model(x).sum().backward()
    assert fired == [0, 2, 3, 5, 0, 1, 2, 3, 4, 5]
    found.disable()
    for handle in handles:
        handle.remove()
    assert len(hooks.table(model)) == 0
    assert not any(row.enabled for row in found)
    found.enable()
    found.remove()
    assert len(hooks.table(model)) == 0


def test_a_hook_that_is_registered_twice():
    """Each row is that of its own registration, also once the other is off."""
    weight = lucid.ones(2, requires_grad=True, device=DEVICE)
    fired = []

    def hook(grad):
        fired.append(1)

    weight.register_hook(hook)
    weight.register_hook(hook)
    first, second = hooks.table(weight)
    second.enabled = False
    first.remove()
    assert [row.enabled for row in hooks.table(weight)] == [False]
    second.enabled = True
    weight.sum().backward()
    assert fired == [1]


def test_copies_bring_their_hooks_along():
    model = net()
    model[0].register_forward_hook(keep)
    copied = copy.deepcopy(model)
    (row,) = hooks.table(copied).filter(file="unknown")  # nobody has registered it there
    assert row.registered == "unknown"
    row.enabled = False
    assert hooks.table(model)[0].enabled
    row.remove()
    assert len(hooks.table(copied)) == 0
    assert len(hooks.table(model)) == 1


def test_rows_keep_nothing_alive():
    model = net()
    y = model(lucid.ones(1, 2, device=DEVICE))
    held = lucid.ones(3, device=DEVICE)
    y.register_hook(functools.partial(keep, held))
    model[0].register_forward_hook(functools.partial(keep, model))
    found = hooks.table(model, y)
    alive = [weakref.ref(each) for each in (model, y.grad_fn, held)]
    del model, y, held
    gc.collect()
    assert [each() for each in alive] == [None] * 3
    assert [row.enabled for row in found] == [False] * len(found)
    found.remove()
    found.enable()


def test_other_objects_are_refused():
    with pytest.raises(ArgumentError, match="expected a Module, a Tensor or an Optimizer, got int 3"):
        hooks.table(3)


def test_a_copy_leaves_the_hook_behind_that_rests():
    """As one that does not: that of a Hook belongs to one live object."""
    layer, fired = nn.Identity(), []
    hook = nn.Hook(posthook=lambda *_: fired.append(1))
    hook.register(layer)
    hooks.table(layer).disable()
    copied = copy.deepcopy(layer)
    assert len(hooks.table(copied)) == 0
    hooks.table(layer).enable()
    layer(lucid.ones(1))
    assert fired == [1]


def test_tags():
    """A row has the words of all groups that were open; a filter by a tag leaves out what has none."""
    model = nn.Linear(2, 2, device=DEVICE)
    with hooks.HookGroup("outer"), hooks.HookGroup(), hooks.scope("inner one"):
        model.register_forward_hook(lambda *_: None)
        model.weight.register_hook(lambda _: None)
        assert [row.tags for row in hooks.table(model)] == [("outer", "inner one")] * 2
        assert len(hooks.table(model).filter(tag="inner*")) == 2
    with hooks.HookGroup("outer"):
        model.register_forward_hook(lambda *_: None)
    model.register_forward_hook(lambda *_: None)
    assert [row.tags for row in hooks.table(model)] == [("outer",), ()]
    assert len(hooks.table(model).filter(tag="outer")) == 1
    assert len(hooks.table(model).filter(tag="*")) == 2
    with pytest.raises(ArgumentError, match="tag: expected a str, got int 3"):
        hooks.HookGroup(3)


@pytest.mark.parametrize("registered", ["module", "tensor", "several", "row"])
@pytest.mark.parametrize("of", [int, np.bool_])
def test_what_is_as_good_as_a_bool_switches_a_hook(registered, of):
    """Switched on and off by 1, 0 and NumPy's booleans, a hook is in the state that they name, also in the same one."""
    layer, fired = nn.Linear(2, 2, device=DEVICE), []

    def hook(*_):
        fired.append(1)

    if registered == "module":
        handle = layer.register_forward_hook(hook)
    elif registered == "several":
        handle = register_multi_grad_hook([layer.weight, layer.bias], hook)
    else:
        handle = layer.weight.register_hook(hook)
        handle = hooks.table(layer)[0] if registered == "row" else handle
    for value in (True, True, False, False, True):
        fired.clear()
        handle.enabled = of(value)
        layer(lucid.ones(1, 2, device=DEVICE)).sum().backward()
        assert handle.enabled is value
        assert fired == [1] * value


def named_registrations():
    """Return, by name, what registers a function on a leaf or its node."""

    def node_of(x):
        return lucid.autograd.graph.get_gradient_edge(x).node

    return {
        "tensor": lambda x, hook: x.register_hook(hook),
        "accumulated": lambda x, hook: x.register_post_accumulate_grad_hook(hook),
        "prehook": lambda x, hook: node_of(x).register_prehook(hook),
        "posthook": lambda x, hook: node_of(x).register_hook(hook),
    }


@pytest.mark.parametrize("register", named_registrations().values(), ids=named_registrations())
def test_handles_of_one_function_act_on_their_own_registrations(register):
    """`enabled` and `remove` of a handle change the state of that registration, and of no other of the function."""
    for switched, taken in itertools.product(range(3), repeat=2):
        x, fired = lucid.ones(1, requires_grad=True, device=DEVICE), []

        def hook(*_, fired=fired):
            fired.append(1)

        handles = [register(x, hook) for _ in range(3)]
        handles[switched].enabled = False
        handles[taken].remove()
        states = [n not in {switched, taken} for n in range(3)]
        assert [handle.enabled for handle in handles] == states
        assert [handle.hook() is None for handle in handles] == [n == taken for n in range(3)]
        (x * 2).sum().backward()
        assert len(fired) == sum(states)
        for handle in handles:
            handle.enabled = False
        (x * 2).sum().backward()
        assert len(fired) == sum(states)
        for handle in (*handles, *handles):
            handle.remove()
        assert len(hooks.table(x)) == 0


def test_the_handle_of_a_hook_over_several_tensors():
    """Rule 4 of docs/users/hooks.md holds for it: it names its function, rests and fires again, and counts."""
    x, y = (lucid.ones(1, requires_grad=True, device=DEVICE) for _ in range(2))
    for mode, each in (("all", [1]), ("any", [1])):
        fired = []

        def hook(_, fired=fired):
            fired.append(1)

        handle = register_multi_grad_hook([x, y], hook, mode=mode)
        assert "hook (" in handle.name
        assert __file__ in handle.name
        assert handle.name in repr(handle)
        assert (handle.enabled, handle.calls, handle.time) == (True, None, None)
        with hooks.counting(x, y):
            (x * y).sum().backward()
            assert handle.calls == 2
            assert handle.time > 0
        assert handle.calls is None
        assert fired == each
        handle.enabled = False
        assert not handle.enabled
        assert ", off" in repr(handle)
        (x * y).sum().backward()
        assert fired == each
        hooks.table(x).enable()
        assert not handle.enabled  # a part of it rests
        handle.enabled = True
        (x * y).sum().backward()
        assert fired == each * 2
        handle()
        assert (handle.name, handle.enabled, handle.hook()) == ("", False, None)
        assert "removed" in repr(handle)
        handle.enabled = True
    assert "removed" in repr(register_multi_grad_hook([], keep))
