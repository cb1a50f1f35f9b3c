"""`lucid.hooks.leaks`: the hooks that hold tensors, however they do, and no others."""

from __future__ import annotations

import collections
import functools
import gc
import types
import weakref

import lucid
from lucid import hooks, nn
from lucid.hooks import leaking
from lucid.nn.modules.module import register_module_forward_hook
from lucid.optim.optimizer import register_optimizer_step_post_hook
from tests.device import DEVICE


class Recorder:
    def __init__(self, *values):
        self.values = {"kept": list(values)}

    def method(self, *_):
        pass

    def __call__(self, *_):
        pass


def closing_over(value):
    return lambda *_: value and None


def with_default(value):
    def hook(*_, kept=value):
        return None

    return hook


class Slotted:
    """Keeps a value where no dictionary is."""

    __slots__ = ("kept",)

    def __init__(self, value):
        self.kept = value

    def __call__(self, *_):
        pass


def begun(value):
    def generate():
        kept = value
        while True:
            yield kept is None

    generator = generate()
    next(generator)
    return generator.send


HOLDERS = {
    "append": lambda value: [value].append,
    "deque": lambda value: closing_over(collections.deque([value])),
    "slots": Slotted,
    "generator": begun,
    "closure": closing_over,
    "default": lambda value: lambda grad, args=None, output=value: None,
    "keyword default": with_default,
    "partial": lambda value: functools.partial(lambda *_, kept=None: None, kept=value),
    "argument of a partial": lambda value: functools.partial(lambda *_: None, value),
    "function of a partial": lambda value: functools.partial(closing_over(value), 1),
    "function of a method": lambda value: types.MethodType(closing_over(value), Recorder()),
    "method": lambda value: Recorder(value).method,
    "object": Recorder,
    "set": lambda value: closing_over({*value} if isinstance(value, tuple) else {value}),
    "frozenset": lambda value: closing_over(frozenset({value})),
    "closure of a closure": lambda value: closing_over(closing_over({"a": [(value,)]})),
}


def own():
    """Return the leaks of this file's hooks."""
    return hooks.leaks().filter(file=__file__)


def test_however_it_is_held():
    """A module's and a tensor's hook of each way, on one model: each look goes through all objects of the process."""
    model = nn.ModuleDict({how.replace(" ", "_"): nn.Linear(2, 2, device=DEVICE) for how in HOLDERS})
    held = lucid.ones(3, 5, device=DEVICE)
    with hooks.scope():
        for layer, holder in zip(model.values(), HOLDERS.values(), strict=True):
            layer.register_forward_hook(holder(held))
            layer.register_forward_hook(lambda *_: None)
            layer.weight.register_hook(holder((held, layer.weight * 2)))
        found = own()
        with_graph, without = found[: len(model)], found[len(model) :]
        assert {row.path for row in without} == {f"ModuleDict.{name} (Linear)" for name in model}
        assert {(row.kind, row.number, row.tensors, row.bytes, row.graph) for row in without} == {
            ("forward hook", 0, 1, 60, False)
        }
        assert len(with_graph) == len(without) == len(model)
        assert {(row.kind, row.path, row.tensors, row.bytes, row.graph) for row in with_graph} == {
            ("tensor hook", "leaf of shape (2, 2)", 2, 76, True)
        }
        assert all(0 <= row.age < 1000 for row in found)
        assert "holds 2 tensors of 76 bytes and a graph" in repr(with_graph[0])
        found.remove()
        assert len(own()) == 0
        alive = weakref.ref(held)
        del held, with_graph, without, found
        gc.collect()
        assert alive() is None


def test_hooks_that_others_stand_for():
    """Those with options, and those that are off, hold what they close over."""
    layer, held = nn.Identity(), lucid.ones(3, device=DEVICE)
    with hooks.scope():
        layer.register_forward_hook(closing_over(held), every_step=True)
        layer.register_forward_hook(closing_over(held), with_context=True, every_step=True)
        layer.register_forward_hook(closing_over(held)).enabled = False
        layer.register_forward_hook(closing_over(3), with_context=True)
        with hooks.counting(layer):
            assert [(row.number, row.tensors) for row in own()] == [(0, 1), (1, 1), (2, 1)]


def test_kinds_of_nodes():
    x = lucid.ones(2, requires_grad=True, device=DEVICE)
    y, held = x * 2, lucid.ones(1, device=DEVICE)
    with hooks.scope():
        x.register_post_accumulate_grad_hook(closing_over(held))
        y.register_hook(closing_over(held))
        y.grad_fn.register_hook(closing_over(held))
        y.grad_fn.register_prehook(closing_over(held))
        assert sorted(row.kind for row in own()) == [
            "node posthook", "node prehook", "post-accumulate hook", "tensor hook",
        ]  # fmt: skip


def test_arrays_that_several_tensors_share():
    """Each counts once, and each tensor does."""
    layer, held = nn.Identity(), lucid.ones(3, 5, device=DEVICE, requires_grad=True)
    with hooks.scope():
        layer.register_forward_hook(closing_over([held, held.detach(), held]))
        (row,) = own()
        assert (row.tensors, row.bytes, row.graph) == (2, 60, False)


def test_owners_of_tables():
    """A hook of an optimizer is named by its class, one of all of them, or of all modules, as in other tables.

    The tables of these are found though `gc.freeze` has set them aside, as the tests do with all that was imported.
    """
    held = lucid.ones(1, device=DEVICE)
    optimizer = lucid.optim.SGD([lucid.ones(1, device=DEVICE, requires_grad=True)])
    with hooks.scope():
        optimizer.register_step_pre_hook(closing_over(held))
        register_optimizer_step_post_hook(closing_over(held))
        register_module_forward_hook(closing_over(held))
        assert sorted((row.path, row.kind) for row in own()) == [
            ("SGD", "step pre-hook"), ("all modules", "forward hook"), ("all optimizers", "step post-hook"),
        ]  # fmt: skip


def test_modules_are_no_leak():
    """A hook that is a method of a module, or closes over one, or over the optimizer, holds no more than others do."""

    class Layer(nn.Linear):
        def hook(self, *_):
            pass

    layer = Layer(2, 2, device=DEVICE)
    optimizer = lucid.optim.SGD(layer.parameters())
    with hooks.scope():
        layer.register_forward_hook(layer.hook)
        layer.weight.register_post_accumulate_grad_hook(closing_over((optimizer, layer)))
        assert len(own()) == 0


def test_objects_that_answer_for_themselves():
    """A look at all objects of the process asks none of them: what another library keeps may warn, or raise."""

    class Shy:
        @property
        def __class__(self):
            raise FutureWarning("asked for its class")

        def __getattr__(self, name):
            raise FutureWarning(f"asked for {name}")

    model, held = nn.Identity(), lucid.ones(1, device=DEVICE)
    shy = [Shy()]
    with hooks.scope():
        model.register_forward_hook(closing_over((held, shy)))
        assert [row.tensors for row in own()] == [1]
    assert len(shy) == 1


NAMED = lucid.ones(3)


def of_this_file(*_):
    """Name a tensor of the file."""
    return NAMED


def test_what_a_file_names_is_held_by_no_hook():
    """A function's globals are those of the program, which outlive it anyway."""
    with hooks.scope("of the file"):
        nn.Identity().register_forward_hook(of_this_file)
        weight = lucid.ones(2, device=DEVICE, requires_grad=True)
        weight.register_hook(of_this_file)
        assert not [leak for leak in hooks.leaks() if "of_this_file" in leak.name]


def test_rows_switch_hooks_off():
    """A row is that of its hook, in a table as in the list of a tensor, of which it may be any."""
    model, weight = nn.Identity(), lucid.ones(2, device=DEVICE, requires_grad=True)
    fired, kept = [], lucid.ones(2)
    weight.register_hook(lambda grad: fired.append("first"))
    weight.register_hook(lambda grad, kept=kept: fired.append("second"))
    model.register_forward_hook(lambda *_, kept=kept: fired.append("forward"))
    rows = hooks.leaks().filter(file="*test_leaking*")
    assert sorted(row.kind for row in rows if row.enabled) == ["forward hook", "tensor hook"]
    rows.disable()
    model(weight).sum().backward()
    assert fired == ["first"]
    rows.enable()
    model(weight).sum().backward()
    assert sorted(fired[1:]) == ["first", "forward", "second"]


def test_a_hook_that_holds_a_program_is_looked_at_in_part(monkeypatch):
    """After as many objects as are looked at behind one hook, what comes later is not found."""
    layer = nn.Identity()
    layer.register_forward_hook(closing_over([*map(float, range(100, 200)), lucid.ones(5)]))
    for most, tensors in ((150, [1]), (50, [])):
        monkeypatch.setattr(leaking, "MOST_OBJECTS", most)
        assert [leak.tensors for leak in hooks.leaks() if leak.path == "Identity" and leak.bytes == 20] == tensors
