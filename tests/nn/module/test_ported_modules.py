"""Modules as code for PyTorch writes them: wrappers, second base classes, paths, conversions, old checkpoints."""

from __future__ import annotations

import collections
import copy
import pickle

import pytest

import lucid
from lucid import nn
from lucid.errors import DtypeError
from tests.device import DEVICE


class Wrapper(nn.Module):
    """Hands what it does not have on to the module that it wraps, as tools for per-sample gradients do."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)

    def forward(self, x):
        return self.module(x)


class AddedWrapper(Wrapper):
    """A wrapper that adds its module by the method."""

    def __init__(self, module):
        nn.Module.__init__(self)
        self.add_module("module", module)


@pytest.mark.parametrize("kind", [Wrapper, AddedWrapper])
def test_a_wrapper_that_falls_back_to_its_module(kind, rng):
    """Such a wrapper can be made, nested, called with hooks, converted and copied, and what it adds is its own."""
    wrapper = kind(kind(nn.Linear(2, 3)))
    assert wrapper.out_features == 3
    assert [name for name, _ in wrapper.named_parameters()] == ["module.module.weight", "module.module.bias"]
    wrapper.extra = nn.Linear(1, 1)
    wrapper.register_buffer("weight", lucid.zeros(1))
    wrapper.bias = nn.Parameter(lucid.ones(5))
    assert (list(wrapper._modules), wrapper.weight.shape, wrapper.bias.shape) == (["module", "extra"], (1,), (5,))
    seen = []
    wrapper.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append(grad_output[0].tolist()))
    upstream = rng.standard_normal((1, 3))
    wrapper.double()(lucid.ones(1, 2, dtype=lucid.float64, requires_grad=True)).backward(lucid.tensor(upstream))
    assert seen == [upstream.tolist()]
    for twin in (copy.deepcopy(kind(nn.Linear(2, 3))), pickle.loads(pickle.dumps(kind(nn.Linear(2, 3))))):
        assert twin.in_features == 2
    with pytest.raises(AttributeError, match="nowhere"):
        _ = wrapper.nowhere


def test_names_of_the_class():
    """A name that the class has for something else is refused; a property of the class decides what it gives."""

    class Named(nn.Module):
        down = None

        @property
        def up(self):
            return self._modules["up"]

    module = Named()
    for name in ("down", "forward"):
        with pytest.raises(KeyError, match="already exists"):
            setattr(module, name, nn.Identity())
        with pytest.raises(KeyError, match="already exists"):
            module.register_buffer(name, lucid.ones(1))
    module.up = nn.Tanh()
    assert isinstance(module.up, nn.Tanh)
    assert list(module._modules) == ["up"]


def test_call_super_init():
    """With `call_super_init` the constructor hands its arguments on to the next class, once the tables are there."""

    class Mixin:
        def __init__(self, size, name="none"):
            self.size, self.name, self.layer = size, name, nn.Linear(size, 1)

    class Both(nn.Module, Mixin):
        call_super_init = True

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    both = Both(3, name="mine")
    assert (both.size, both.name, list(both._modules)) == (3, "mine", ["layer"])

    class Plain(nn.Module, Mixin):
        pass

    assert not hasattr(Plain(), "size")
    for args, kwargs in (((3,), {}), ((), {"size": 3})):
        with pytest.raises(TypeError, match="takes no arguments"):
            Plain(*args, **kwargs)
    with pytest.raises(TypeError):
        nn.Module(3)


def test_apply_in_place():
    """A function that changes tensors in place changes parameters, gradients and buffers, and counts as a change."""
    module = nn.BatchNorm1d(2)
    module.weight.grad = lucid.zeros(2, requires_grad=True)
    grad = module.weight.grad
    squares = (module.weight * module.weight).sum(), (grad * grad).sum()
    versions = module.weight._version, grad._version
    seen = []
    module._apply(lambda t: seen.append((type(t), lucid.is_grad_enabled())) or t.add_(1))
    assert seen[:3] == [(nn.Parameter, False), (nn.Parameter, False), (lucid.Tensor, False)]
    assert {entry[1] for entry in seen[3:]} == {True}
    assert (module.weight.tolist(), module.bias.tolist(), module.running_mean.tolist()) == ([2, 2], [1, 1], [1, 1])
    assert module.weight.grad is grad
    assert (grad.tolist(), grad.is_leaf, grad.requires_grad) == ([1, 1], True, True)
    assert (module.weight._version, grad._version) == (versions[0] + 1, versions[1] + 1)
    for square in squares:
        with pytest.raises(RuntimeError, match="version"):
            square.backward()


def test_apply_changes_each_tensor_once():
    """Parameters and buffers that are reached in two ways are given to the function once and stay shared."""
    module = nn.Module()
    module.a, module.b = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    module.b.weight = module.a.weight
    module.register_buffer("c", lucid.ones(1))
    module.register_buffer("d", module.c)
    with lucid.no_grad():
        module.a.weight.fill_(1)
    module._apply(lambda t: t.mul_(2))
    module._apply(lambda t: t * 2)
    assert (module.a.weight.tolist(), module.c.tolist()) == ([[4.0]], [4.0])
    assert module.a.weight is module.b.weight
    assert module.c is module.d


def test_a_gradient_stays_the_same_tensor():
    """A conversion leaves `.grad` the same object, in the new dtype."""
    module = nn.Linear(1, 1)
    module(lucid.ones(1, 1)).sum().backward()
    grad = module.weight.grad
    module.double()
    assert module.weight.grad is grad
    assert grad.dtype == lucid.float64


def test_a_bad_function_changes_nothing():
    """What returns no tensor, or integers for what requires grad, is refused before anything is changed."""
    module = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    module[0].requires_grad_(False)
    for convert in (lambda: module._apply(lambda t: None), lambda: module.type(lucid.int64)):
        with pytest.raises(TypeError):
            convert()
    assert {parameter.dtype for parameter in module.parameters()} == {lucid.float32}
    assert module.requires_grad_(False).type(lucid.int64)[0].weight.dtype == lucid.int64


BAD_TARGETS = {
    "a device and a bool": (("cpu", True), {}),
    "a dtype and a device": ((lucid.float64, "cpu"), {}),
    "two dtypes": ((lucid.float64, lucid.float64), {}),
    "a dtype twice": ((lucid.float64,), {"dtype": lucid.float64}),
    "a device twice": (("cpu",), {"device": "cpu"}),
    "a dtype, then a device by name": ((lucid.float64,), {"device": "cpu"}),
    "a tensor and a device": ((lucid.ones(1), "cpu"), {}),
    "a copy by position": (("cpu", lucid.float64, True, True), {}),
    "a copy by name": (("cpu",), {"copy": True}),
    "a number as switch": (("cpu", lucid.float64, 1), {}),
}


@pytest.mark.parametrize(("args", "kwargs"), BAD_TARGETS.values(), ids=BAD_TARGETS)
def test_targets_that_to_does_not_take(args, kwargs):
    """A call of `to` in none of its forms is refused, where it was read as another one, and nothing is changed."""
    module = nn.Linear(1, 1)
    with pytest.raises(DtypeError, match=r"Module\.to"):
        module.to(*args, **kwargs)
    assert module.weight.dtype == lucid.float32


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((DEVICE, lucid.float64), {}), ((DEVICE, lucid.float64, True), {}), ((lucid.float64, True), {}),
        ((None, lucid.float64), {}), ((DEVICE,), {"dtype": lucid.float64, "non_blocking": True}),
        ((lucid.ones(1, dtype=lucid.float64), False), {}), ((), {"dtype": lucid.float64}),
    ],
)  # fmt: skip
def test_targets_that_to_takes(args, kwargs):
    """Each form of `to` converts."""
    assert nn.Linear(1, 1).to(*args, **kwargs).weight.dtype == lucid.float64


def test_to_empty():
    """Tensors get new memory of their shape and dtype, the parameters stay the same objects."""
    module = nn.Sequential(nn.BatchNorm1d(3))
    weight, count = module[0].weight, module[0].num_batches_tracked
    memory = weight.array
    assert module.to_empty(device=DEVICE) is module
    assert module[0].weight is weight
    assert weight.array is not memory
    assert (weight.shape, weight.dtype, weight.requires_grad, weight.device.type) == ((3,), lucid.float32, True, DEVICE)
    assert (module[0].num_batches_tracked is count, module[0].num_batches_tracked.dtype) == (False, lucid.int64)
    memory = weight.array
    module.to_empty(device=None, recurse=False)
    assert weight.array is memory
    assert module.to_empty(device=None)[0].weight.device.type == DEVICE
    with pytest.raises(TypeError):
        module.to_empty("cpu")
    with pytest.raises(RuntimeError):
        module.to_empty(device="nowhere")


def test_set_submodule():
    """A module is put at a path, new or in place of another; what cannot be is refused and nothing is changed."""
    net = nn.Sequential(nn.Sequential(nn.Linear(1, 1), nn.ReLU()), nn.ModuleDict({"a": nn.ReLU()}))
    net.number = 3
    net.set_submodule("0.1", nn.Tanh())
    net.set_submodule("1.a", nn.Sigmoid(), strict=True)
    net.set_submodule("0.new", nn.Identity())
    net.set_submodule("top", nn.Identity())
    shown = repr(net)
    assert [name for name, _ in net.named_modules()][1:] == ["0", "0.0", "0.1", "0.new", "1", "1.a", "top"]
    assert (type(net[0][1]), type(net[1]["a"])) == (nn.Tanh, nn.Sigmoid)
    for path, module, strict, kind in (
        ("", nn.ReLU(), False, ValueError),
        ("0.1", 3, False, ValueError),
        ("0.1", None, False, ValueError),
        ("0.nowhere", nn.ReLU(), True, AttributeError),
        ("nowhere.0", nn.ReLU(), False, AttributeError),
        ("number", nn.ReLU(), False, AttributeError),
        ("number.0", nn.ReLU(), False, AttributeError),
        ("0.0.weight", nn.ReLU(), False, AttributeError),
    ):
        with pytest.raises(kind):
            net.set_submodule(path, module, strict)
    assert repr(net) == shown


def test_consume_prefix():
    """A prefix goes from keys and versions that have it, in place; the others keep theirs, and stand before."""
    consume = nn.modules.utils.consume_prefix_in_state_dict_if_present
    state = nn.Sequential(
        collections.OrderedDict(module=nn.Sequential(nn.Linear(2, 3)), rest=nn.Linear(1, 1))
    ).state_dict()
    assert consume(state, "module.") is None
    assert list(state) == ["rest.weight", "rest.bias", "0.weight", "0.bias"]
    assert set(state._metadata) == {"", "0", "rest"}
    plain = {"module.a": 1, "module.module.b": 2, "module": 3, "modules.c": 4}
    consume(plain, "module.")
    assert plain == {"module": 3, "modules.c": 4, "a": 1, "module.b": 2}


def test_state_dict_by_position():
    """Old code passes destination, prefix and keep_vars by position: it works, with a warning."""
    module, made = nn.Linear(1, 1), {}
    with pytest.warns(FutureWarning, match="by name"):
        assert module.state_dict(made, "x.", True) is made
    assert made["x.weight"] is module.weight
    with pytest.raises(TypeError):
        module.state_dict(made, "x.", True, 1)


def test_numbers_of_old_checkpoints():
    """A number that a checkpoint holds as one element loads into a tensor without dimensions, not the reverse."""
    module = nn.BatchNorm1d(2)
    module.load_state_dict({**module.state_dict(), "num_batches_tracked": lucid.tensor([7])})
    assert (module.num_batches_tracked.tolist(), module.num_batches_tracked.shape) == (7, ())
    module = nn.Module()
    module.factor = nn.Parameter(lucid.tensor(1.0))
    module.load_state_dict({"factor": lucid.tensor([2.0])}, assign=True)
    assert (module.factor.tolist(), module.factor.shape) == (2.0, ())
    with pytest.raises(RuntimeError, match="size mismatch"):
        module.load_state_dict({"factor": lucid.ones(2)})
    with pytest.raises(RuntimeError, match="size mismatch"):
        nn.Linear(1, 1).load_state_dict({"weight": lucid.ones(1, 1), "bias": lucid.tensor(1.0)})
