"""Extra state: taken after the module's own tensors and before its submodules, which it may make; undone on failure."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import StateDictError


class Keeps(nn.Module):
    """A weight, and extra state that is whatever `kept` is."""

    def __init__(self, kept=None):
        super().__init__()
        self.weight = nn.Parameter(lucid.zeros(2))
        self.kept = kept

    def get_extra_state(self):
        return self.kept

    def set_extra_state(self, state):
        self.kept = state


class Grows(nn.Module):
    """Its submodules are made from its extra state: as many layers as that says."""

    def __init__(self, depth):
        super().__init__()
        self.scale = nn.Parameter(lucid.ones(1))
        self.set_extra_state({"depth": depth})

    def get_extra_state(self):
        return {"depth": len(self.layers)}

    def set_extra_state(self, state):
        self.layers = nn.ModuleList(Keeps(state["depth"]) for _ in range(state["depth"]))


def values(module):
    return {name: value.cpu().numpy().copy() for name, value in module.state_dict().items() if "_extra" not in name}


def fails(*_):
    raise ValueError("planned")


def test_a_module_as_extra_state():
    """Extra state that is a module with extra state of its own takes the place of the old one, and is loaded itself."""
    source, target = Keeps(Keeps("inner")), Keeps(Keeps("old"))
    with lucid.no_grad():
        source.kept.weight.fill_(3)
    state = source.state_dict()
    assert list(state) == ["weight", "_extra_state", "kept.weight", "kept._extra_state"]
    state["kept._extra_state"] = "edited"
    target.load_state_dict(state)
    assert target.kept is source.kept
    assert (target.kept.kept, target.kept.weight.tolist()) == ("edited", [3.0, 3.0])


def test_submodules_made_from_extra_state():
    """A load makes the submodules from the extra state first and then loads them, theirs included."""
    source, target = nn.Sequential(Grows(3)), nn.Sequential(Grows(1))
    with lucid.no_grad():
        for index, layer in enumerate(source[0].layers):
            layer.weight.fill_(index + 1)
            layer.kept = f"layer {index}"
    result = target.load_state_dict(source.state_dict())
    assert not result.missing_keys
    assert not result.unexpected_keys
    assert [layer.kept for layer in target[0].layers] == ["layer 0", "layer 1", "layer 2"]
    assert [layer.weight.tolist() for layer in target[0].layers] == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]


@pytest.mark.parametrize("fault", ["a missing key", "another shape", "a hook before", "a hook after", "extra state"])
def test_a_failed_load_brings_modules_back(fault):
    """If a load fails after extra state has made new submodules, the old ones are back with their tensors and state."""
    last = type("Broken", (Keeps,), {"set_extra_state": fails}) if fault == "extra state" else Keeps
    source = nn.Sequential(Grows(2), nn.Linear(1, 1), Keeps("new"))
    target = nn.Sequential(Grows(1), nn.Linear(1, 1), last("old"))
    layers, layer = target[0].layers, target[0].layers[0]
    layer.kept = "mine"
    before = values(target)
    state = {name: value if "_extra" in name else value + 5 for name, value in source.state_dict().items()}
    if fault == "a missing key":
        del state["2.weight"]
    elif fault == "another shape":
        state["1.weight"] = lucid.ones(7)
    elif fault == "a hook before":
        target[2].register_load_state_dict_pre_hook(lambda m, entries, strict: fails())
    elif fault == "a hook after":
        target.register_load_state_dict_post_hook(lambda m, missing, unexpected, strict: fails())
    with pytest.raises((StateDictError, ValueError)):
        target.load_state_dict(state)
    assert target[0].layers is layers
    assert list(layers) == [layer]
    assert (layer.kept, target[2].kept) == ("mine", "old")
    after = values(target)
    assert after.keys() == before.keys()
    assert all(np.array_equal(after[name], before[name]) for name in before)


def test_extra_state_sees_the_loaded_tensors():
    """`set_extra_state` runs once the module's own tensors have their new values, parents before children."""
    order = []

    class Looks(Keeps):
        def set_extra_state(self, state):
            order.append((state, self.weight.tolist()))

    class Parent(Looks):
        def __init__(self):
            super().__init__("parent")
            self.child = Looks("child")

    module = Parent()
    state = {**module.state_dict(), "weight": lucid.ones(2), "child.weight": lucid.ones(2) * 2}
    module.load_state_dict(state)
    assert order == [("parent", [1.0, 1.0]), ("child", [2.0, 2.0])]


def test_extra_state_that_is_only_set():
    """A module that defines `set_extra_state` alone can be loaded; a failed load still brings its attributes back."""

    class OnlySet(nn.Module):
        kept = None

        def set_extra_state(self, state):
            self.kept = state

    module = nn.Sequential(OnlySet(), nn.Linear(1, 1))
    module.load_state_dict({"0._extra_state": 1}, strict=False)
    assert module[0].kept == 1
    with pytest.raises(StateDictError, match="Missing"):
        module.load_state_dict({"0._extra_state": 2})
    assert module[0].kept == 1


class Edits(Keeps):
    """Takes its extra state into the list that it has, and notes on itself that it did."""

    def get_extra_state(self):
        return list(self.kept)

    def set_extra_state(self, state):
        self.kept[:] = state
        self.loaded = True
        self.extra = nn.Parameter(lucid.ones(1))
        self.register_buffer("mean", lucid.ones(1))
        self.child = nn.Linear(1, 1)


def test_a_failed_load_takes_back_what_extra_state_added():
    """New parameters, buffers, submodules and attributes are gone, and state kept in an object is as it was."""
    module = nn.Sequential(Edits([1, 2]), nn.Linear(1, 1))
    names, held = list(module.state_dict()), module[0].kept
    with pytest.raises(StateDictError, match="Missing"):
        module.load_state_dict({"0._extra_state": [3]})
    assert list(module.state_dict()) == names
    assert (held, module[0].kept is held) == ([1, 2], True)
    assert not {"loaded", "extra", "mean", "child"} & {*vars(module[0]), *module[0]._modules}
    assert not hasattr(module[0], "loaded")
