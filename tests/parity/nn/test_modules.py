"""Modules in odd situations against PyTorch: the same names, values and kinds of errors, told as plain data."""

from __future__ import annotations

import collections
import copy

import pytest
import torch

import lucid


def told(value):
    """Return tensors as their values, modules as their `repr`, and what holds them likewise."""
    if hasattr(value, "tolist"):
        return value.tolist(), value.requires_grad, type(value).__name__
    if isinstance(value, dict):
        return {key: told(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [told(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def outcome(situation, library):
    """Return what a situation gives, or the kind of the error."""
    try:
        return told(situation(library))
    except Exception as error:  # noqa: BLE001  compared with PyTorch's
        return error


def net(t):
    """Return two layers, a parameter and buffers of one library."""
    made = t.nn.Sequential(t.nn.Linear(1, 2), t.nn.Sequential(t.nn.Linear(2, 1), t.nn.ReLU()))
    made.scale = t.nn.Parameter(t.ones(1))
    made.register_buffer("count", t.zeros(1))
    made.number = 3
    return made


def wrapper(t, module):
    """Return a module that falls back to another one."""

    class Wrapper(t.nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

    return Wrapper(module)


def also(t, base, **attributes):
    """Return a class that is a module and a `base`."""
    return type("Both", (t.nn.Module, base), attributes)


class Sized:
    """Takes an argument."""

    def __init__(self, size, name="none"):
        self.size, self.name = size, name


def after(module, act):
    """Return a module after doing something with it."""
    act(module)
    return module


def joined(t):
    a, b = t.nn.ParameterDict([("b", t.ones(1)), ("a", 3)]), t.nn.ParameterDict({"c": t.zeros(2), "a": 4})
    return dict((a | b).items()), dict((b | {"z": 1, "y": 2}).items()), list({"q": 1} | a), list(reversed(a))


def in_place(t):
    module = t.nn.BatchNorm1d(2)
    module.weight.grad = t.zeros(2, requires_grad=True)
    versions = module.weight._version, module.weight.grad._version
    module._apply(lambda each: each.add_(1))
    grown = module.weight._version - versions[0], module.weight.grad._version - versions[1]
    return module.state_dict(), module.weight.grad, grown


def gradient_kept(t):
    module = t.nn.Linear(1, 1)
    module.weight.grad = grad = t.ones(1, 1)
    return module.double().weight.grad is grad, str(grad.dtype)[-7:]


def defaults(t):
    made = t.nn.ParameterDict({"b": 1})
    return made.setdefault("a", t.ones(1)), made.setdefault("a"), made.popitem(), list(made)


def consumed(t):
    state = t.nn.Sequential(collections.OrderedDict(module=net(t), rest=t.nn.Linear(1, 1))).state_dict()
    t.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return list(state), dict(state._metadata)


SITUATIONS = {
    "wrapper": lambda t: wrapper(t, wrapper(t, t.nn.Linear(2, 3))).out_features,
    "wrapper, copied": lambda t: copy.deepcopy(wrapper(t, t.nn.Linear(2, 3))).in_features,
    "wrapper, another child": lambda t: list(
        after(wrapper(t, net(t)), lambda w: setattr(w, "x", t.nn.ReLU()))._modules
    ),
    "super init": lambda t: vars(also(t, Sized, call_super_init=True)(3, name="x"))["size"],
    "no super init": lambda t: hasattr(also(t, Sized)(), "size"),
    "no super init, argument": lambda t: also(t, Sized)(3),
    "super init of object": lambda t: also(t, object, call_super_init=True)(3),
    "argument": lambda t: t.nn.Module(3),
    "keyword": lambda t: t.nn.Module(size=3),
    "in place": in_place,
    "gradient kept": gradient_kept,
    "function of no tensor": lambda t: t.nn.Linear(1, 1)._apply(lambda each: None),
    "to, device and bool": lambda t: t.nn.Linear(1, 1).to("cpu", True),
    "to, dtype and device": lambda t: t.nn.Linear(1, 1).to(t.float64, "cpu"),
    "to, device twice": lambda t: t.nn.Linear(1, 1).to("cpu", device="cpu"),
    "to, copy": lambda t: t.nn.Linear(1, 1).to("cpu", t.float64, True, True),
    "to, tensor and bool": lambda t: str(t.nn.Linear(1, 1).to(t.ones(1, dtype=t.float64), True).weight.dtype)[-7:],
    "to empty": lambda t: [tuple(p.shape) for p in net(t).to_empty(device="cpu").parameters()],
    "to empty by position": lambda t: net(t).to_empty("cpu"),
    "set, new": lambda t: after(net(t), lambda m: m.set_submodule("1.new", t.nn.Tanh())),
    "set, in place of": lambda t: after(net(t), lambda m: m.set_submodule("1.0", t.nn.Tanh(), strict=True)),
    "set, at the top": lambda t: after(net(t), lambda m: m.set_submodule("top", t.nn.Tanh())),
    "set, strict": lambda t: net(t).set_submodule("1.new", t.nn.Tanh(), strict=True),
    "set, empty": lambda t: net(t).set_submodule("", t.nn.Tanh()),
    "set, no path": lambda t: net(t).set_submodule("2.0", t.nn.Tanh()),
    "set, an attribute": lambda t: net(t).set_submodule("number", t.nn.Tanh()),
    "set, through a parameter": lambda t: net(t).set_submodule("scale.0", t.nn.Tanh()),
    "set, no module": lambda t: net(t).set_submodule("1.0", 3),
    "consumed prefix": consumed,
    "dict, sorted": lambda t: list(t.nn.ParameterDict({"z": t.ones(1), "a": 3})),
    "dict, ordered": lambda t: list(t.nn.ParameterDict(collections.OrderedDict(z=t.ones(1), a=3))),
    "dict, pairs": lambda t: list(t.nn.ParameterDict([("z", t.ones(1)), ("a", 3)])),
    "dict, joined": joined,
    "dict, default": defaults,
    "dict, keys": lambda t: dict(t.nn.ParameterDict().fromkeys(["x", "y"], t.ones(1)).items()),
    "dict, missing": lambda t: t.nn.ParameterDict()["a"],
    "dict, deleted": lambda t: t.nn.ParameterDict().__delitem__("a"),
    "dict, empty": lambda t: t.nn.ParameterDict().popitem(),
    "dict, triple": lambda t: t.nn.ParameterDict([("a", 1, 2)]),
    "dict, number": lambda t: t.nn.ParameterDict(3),
    "dict, shown": lambda t: repr(t.nn.ParameterDict({"a": 1, "b": "x"})),
    "list, shown": lambda t: (
        repr(t.nn.ParameterList([1, t.ones(2, 3), t.ones(())])).replace("lucid.", "torch.").replace(" (GPU 0)", "")
    ),
    "list, parameter": lambda t: t.nn.ParameterList([1]).__iadd__(t.nn.Parameter(t.ones(2))),
    "list, tensor": lambda t: t.nn.ParameterList(t.ones(2)),
    "sequential, times 0": lambda t: t.nn.Sequential(t.nn.ReLU()).__imul__(0),
    "old number": lambda t: (
        after(
            t.nn.BatchNorm1d(1),
            lambda m: m.load_state_dict({**m.state_dict(), "num_batches_tracked": t.tensor([7])}),
        ).num_batches_tracked
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_situation(situation):
    """Lucid gives what PyTorch gives, or raises an error that is of PyTorch's kind too."""
    theirs, ours = (outcome(situation, library) for library in (torch, lucid))
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), ours
    else:
        assert ours == theirs
