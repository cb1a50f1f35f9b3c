"""Modules: names, tables, modes, conversions, repr, copies."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import DeviceError, DtypeError
from tests.pieces import no_collections


class Net(nn.Module):
    """Two layers, a parameter of its own and two buffers."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.scale = nn.Parameter(lucid.ones(1))
        self.register_buffer("count", lucid.zeros(1))
        self.register_buffer("scratch", lucid.zeros(1), persistent=False)

    def forward(self, x):
        return self.second(self.first(x)) * self.scale


def test_names_in_order():
    """Modules, parameters and buffers come with their dotted names in the order of registration."""
    net = Net()
    assert [name for name, _ in net.named_modules()] == ["", "first", "second", "second.0", "second.1"]
    assert [name for name, _ in net.named_parameters()] == [
        "scale", "first.weight", "first.bias", "second.0.weight", "second.0.bias",
    ]  # fmt: skip
    assert [name for name, _ in net.named_buffers()] == ["count", "scratch"]
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert [name for name, _ in net.named_parameters(prefix="net", recurse=False)] == ["net.scale"]


def test_shared_parts_come_once():
    """A module or parameter that is reached in two ways comes once, unless duplicates are asked for."""
    net = Net()
    net.again = net.first
    assert len(list(net.parameters())) == 5
    assert len(list(net.named_parameters(remove_duplicate=False))) == 7
    assert len(list(net.modules())) == 5
    assert list(net.children()) == [net.first, net.second]
    assert [name for name, _ in net.named_children()] == ["first", "second"]


def test_attributes_are_registered_by_type():
    """Parameters, buffers and modules go to their tables, also when they take the place of each other."""
    net = nn.Module()
    net.x = nn.Parameter(lucid.ones(1))
    assert list(net._parameters) == ["x"]
    net.x = None
    assert net._parameters == {"x": None}
    with pytest.raises(TypeError, match=r"nn.Parameter or None expected"):
        net.x = lucid.ones(1)
    net.x = nn.Identity()
    assert list(net._modules) == ["x"]
    assert not net._parameters
    with pytest.raises(TypeError, match=r"nn.Module or None expected"):
        net.x = 3
    del net.x
    net.x = nn.Buffer(lucid.ones(1), persistent=False)
    assert list(net._buffers) == ["x"]
    assert net._non_persistent_buffers_set == {"x"}
    with pytest.raises(TypeError, match="Tensor or None expected"):
        net.x = 3
    net.x = lucid.zeros(1)
    assert float(net.x) == 0
    del net.x
    net.x = lucid.ones(1)
    assert "x" in vars(net)


@pytest.mark.parametrize(
    ("name", "error"), [("a.b", KeyError), ("", KeyError), ("forward", KeyError), (3, TypeError)], ids=str
)
@pytest.mark.parametrize("registration", ["register_parameter", "register_buffer", "add_module"])
def test_names_that_cannot_be_registered(registration, name, error):
    """Names with dots, empty ones, ones that are taken and ones that are no strings are refused."""
    with pytest.raises(error):
        getattr(nn.Module(), registration)(name, None)


def test_before_init():
    """Assigning before `Module.__init__` says what is missing."""

    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Identity()

    with pytest.raises(AttributeError, match=r"super\(\).__init__"):
        Early()


def test_unknown_attributes_are_named():
    """An attribute that does not exist is named, with the class."""
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'missing'"):
        _ = Net().missing


def test_a_parameter_must_be_a_leaf():
    """A tensor that an op made is refused as a parameter."""
    net = nn.Module()
    parameter = nn.Parameter(lucid.ones(1))
    parameter.edge = (parameter * 2).edge
    with pytest.raises(ValueError, match="non-leaf"):
        net.register_parameter("p", parameter)


def test_paths():
    """Dotted paths give modules, parameters and buffers, and say which step is wrong."""
    net = Net()
    assert net.get_submodule("second.0") is net.second[0]
    assert net.get_submodule("") is net
    assert net.get_parameter("second.0.bias") is net.second[0].bias
    assert net.get_buffer("count") is net.count
    with pytest.raises(AttributeError, match="`third`"):
        net.get_submodule("third.0")
    with pytest.raises(AttributeError, match=r"not an nn.Module"):
        net.get_submodule("scale")
    with pytest.raises(AttributeError, match=r"not an nn.Parameter"):
        net.get_parameter("count")
    with pytest.raises(AttributeError, match="not a buffer"):
        net.get_buffer("scale")
    plain = nn.Sequential(nn.Linear(1, 1, bias=False), nn.BatchNorm1d(1, track_running_stats=False))
    with pytest.raises(AttributeError, match=r"`bias` is not an nn.Parameter but None \(in the path '0.bias'\)"):
        plain.get_parameter("0.bias")
    assert plain.get_buffer("1.running_mean") is None


def test_modes_and_apply():
    """train, eval, requires_grad_ and apply reach the whole tree, children first in apply."""
    net = Net()
    net.eval()
    assert not any(module.training for module in net.modules())
    net.train()
    assert all(module.training for module in net.modules())
    net.requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())
    seen = []
    assert net.apply(seen.append) is net
    assert seen == [net.first, net.second[0], net.second[1], net.second, net]
    with pytest.raises(ValueError, match="boolean"):
        net.train(1)


def test_modes_and_apply_are_methods_of_each_module():
    """What a submodule makes of `train` and `apply` of its own holds for it, whatever above it they are called of."""

    class Frozen(nn.Sequential):
        def train(self, mode=True):
            return super().train(False)

        def apply(self, fn):
            return self

    net, seen = nn.Sequential(nn.Identity(), nn.Sequential(Frozen(nn.Dropout()))), []
    for call in (net.train, net.eval, net.train):
        assert call() is net
        assert [module.training for module in net.modules()] == [call != net.eval] * 3 + [False] * 2
    net.apply(seen.append)
    assert seen == [net[0], net[1], net]


def test_zero_grad(rng):
    """Gradients become None, or zero in their own memory; one that requires grad, as a leaf too, no longer does."""
    net = Net()
    x = lucid.tensor(rng.standard_normal((2, 3)), dtype=lucid.float32)
    net(x).sum().backward()
    grad = net.scale.grad
    for recorded in (False, True):
        grad.requires_grad_(recorded)
        net.zero_grad(set_to_none=False)
        assert net.scale.grad is grad
        assert not grad.any()
        assert not grad.requires_grad
    net(x).square().sum().backward(create_graph=True)
    of_the_graph, values = net.scale.grad, net.scale.grad.tolist()
    net.zero_grad(set_to_none=False)
    assert of_the_graph.tolist() == values
    assert of_the_graph.grad_fn is not None
    assert not net.scale.grad.any()
    assert not net.scale.grad.requires_grad
    net.zero_grad()
    assert all(parameter.grad is None for parameter in net.parameters())


@pytest.mark.parametrize("trained", [True, False])
def test_a_copy_is_trained_or_frozen_as_its_original(trained):
    """Alone, and in its module, whose copy has parameters of its own memory."""
    net = nn.Linear(2, 3)
    net.weight.requires_grad_(trained)
    for copied in (copy.deepcopy(net.weight), copy.deepcopy(net).weight, pickle.loads(pickle.dumps(net)).weight):
        assert copied.requires_grad is trained
        assert copied.tolist() == net.weight.tolist()
        assert copied.data_ptr() != net.weight.data_ptr()


def test_conversion_keeps_parameters_and_replaces_buffers(rng):
    """After a conversion the parameters are the same objects in the new dtype, with their gradients."""
    net = Net()
    net(lucid.tensor(rng.standard_normal((2, 3)), dtype=lucid.float32)).sum().backward()
    net.register_buffer("steps", lucid.zeros(1, dtype=lucid.int64))
    before = list(net.parameters())
    values = [parameter.detach().cpu().numpy().copy() for parameter in before]
    assert net.double() is net
    assert all(a is b for a, b in zip(before, net.parameters(), strict=True))
    assert {parameter.dtype for parameter in before} == {lucid.float64}
    assert {parameter.grad.dtype for parameter in before} == {lucid.float64}
    assert all(np.array_equal(p.detach().cpu().numpy(), v) for p, v in zip(before, values, strict=True))
    assert (net.count.dtype, net.steps.dtype) == (lucid.float64, lucid.int64)
    net(lucid.tensor(rng.standard_normal((2, 3)))).sum().backward()
    for convert, dtype in ((net.half, lucid.float16), (net.bfloat16, lucid.bfloat16), (net.float, lucid.float32)):
        convert()
        assert net.scale.dtype == net.count.dtype == dtype
    net.to("cpu", lucid.float64)
    assert (net.scale.dtype, net.steps.dtype) == (lucid.float64, lucid.int64)
    net.to(lucid.zeros(1))
    assert net.scale.dtype == lucid.float32
    wave = nn.Module()
    wave.register_buffer("phase", lucid.ones(1, dtype=lucid.complex64))
    for module in (net, wave):
        with pytest.raises(DtypeError, match=r"nn\.Module\.to only accepts floating point or complex dtypes"):
            module.to(lucid.int64)
    assert wave.double().phase.dtype is lucid.complex64
    assert wave.to(lucid.complex128).phase.dtype is lucid.complex128
    # integers alone by the one conversion that is of all tensors
    assert net.type(lucid.float16) is net
    assert {tensor.dtype for tensor in (*net.parameters(), *net.buffers())} == {lucid.float16}


def test_a_failed_conversion_changes_nothing():
    """If one tensor cannot be converted, no other has been."""
    net = Net()
    calls = []

    def fail_late(tensor):
        calls.append(tensor)
        if len(calls) == 5:
            raise MemoryError
        return tensor.double()

    with pytest.raises(MemoryError):
        net._apply(fail_late)
    assert {parameter.dtype for parameter in net.parameters()} == {lucid.float32}


def test_forward_is_missing():
    """A module without forward says so."""
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()(1)


def test_copies_are_independent(rng):
    """A deep copy has parameters, buffers and shared parts of its own; pickling keeps them too."""
    net = Net()
    net.again = net.first
    x = lucid.tensor(rng.standard_normal((2, 3)), dtype=lucid.float32)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin.again is twin.first
        assert twin.first is not net.first
        assert isinstance(twin.first.weight, nn.Parameter)
        assert np.array_equal(twin(x).detach().cpu().numpy(), net(x).detach().cpu().numpy())
        with lucid.no_grad():
            twin.first.weight.zero_()
        assert net.first.weight.detach().cpu().numpy().any()


def test_dropping_the_model_frees_it():
    """The last reference frees model and graph at once, without the garbage collector, hooks or not."""
    gc.collect()
    with no_collections():
        net = Net()
        for module in net.modules():
            module.register_forward_hook(lambda module, args, output: None)
            module.register_full_backward_hook(lambda module, grad_input, grad_output: None)
            module.register_backward_hook(lambda tensor, grad: None)
        x = lucid.ones(2, 3, requires_grad=True)
        y = net(x)
        y.sum().backward(retain_graph=True)
        dead = [weakref.ref(thing) for thing in (net, net.first, net.scale, y, y.grad_fn)]
        del net, y, module
        assert not any(ref() is not None for ref in dead)


def test_parameters():
    """A parameter shares the memory of its data, shows itself as one, and must be differentiable to be trained."""
    data = lucid.ones(2)
    parameter = nn.Parameter(data)
    data += 1
    assert parameter.tolist() == [2.0, 2.0]
    shown = repr(parameter).replace(f", device={str(data.device)!r}", "")
    assert shown == "Parameter containing:\ntensor([2., 2.], requires_grad=True)"
    assert isinstance(parameter * 1, lucid.Tensor)
    assert not isinstance(parameter * 1, nn.Parameter)
    parameter.mark = "kept"
    twin = copy.deepcopy(parameter)
    assert (type(twin), twin.mark, twin.requires_grad) == (nn.Parameter, "kept", True)
    assert twin.array is not parameter.array
    with pytest.raises(DtypeError, match="floating-point"):
        nn.Parameter(lucid.ones(2, dtype=lucid.int64))
    assert not nn.Parameter(lucid.ones(2, dtype=lucid.int64), requires_grad=False).requires_grad
    with pytest.raises(DtypeError, match="expected a Tensor"):
        nn.Parameter([1.0])


def test_containers():
    """Sequential and ModuleList are lists of modules that renumber, ModuleDict is a dictionary of them."""
    layers = nn.Sequential(*(nn.Linear(1, size) for size in (1, 2, 3, 4)))
    del layers[1]
    assert [name for name, _ in layers.named_children()] == ["0", "1", "2"]
    assert [layer.out_features for layer in layers] == [1, 3, 4]
    assert [layer.out_features for layer in layers[1:]] == [3, 4]
    layers.insert(0, nn.Linear(1, 9))
    assert layers.pop(-1).out_features == 4
    assert [layer.out_features for layer in layers] == [9, 1, 3]
    layers[0] = nn.Linear(1, 7)
    assert layers[0].out_features == 7
    assert len(layers + nn.Sequential(nn.ReLU())) == 4
    assert len(layers * 2) == 6
    with pytest.raises(IndexError, match="out of range"):
        layers[3]
    with pytest.raises(TypeError, match="Module"):
        layers.append(3)
    listed = nn.ModuleList([nn.ReLU()])
    listed += [nn.Tanh()]
    assert [type(module) for module in listed] == [nn.ReLU, nn.Tanh]
    named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    assert list(named) == ["a", "b"]
    assert "a" in named
    assert isinstance(named.pop("a"), nn.ReLU)
    assert list(named.keys()) == ["b"]


def test_parameter_containers():
    """Tensors in ParameterList and ParameterDict become parameters of the module that holds them."""
    net = nn.Module()
    net.listed = nn.ParameterList([lucid.ones(1), nn.Parameter(lucid.ones(2))])
    net.listed.append(lucid.ones(3))
    net.named = nn.ParameterDict({"a": lucid.ones(4)})
    net.named["b"] = lucid.ones(5)
    assert [parameter.shape for parameter in net.parameters()] == [(1,), (2,), (3,), (4,), (5,)]
    assert list(net.state_dict()) == ["listed.0", "listed.1", "listed.2", "named.a", "named.b"]
    assert [parameter.shape for parameter in net.listed[1:]] == [(2,), (3,)]
    del net.named["a"]
    assert list(net.named) == ["b"]
    with pytest.raises(KeyError):
        net.named["forward"] = lucid.ones(1)


def test_gradient_clipping(rng):
    """Clipping scales all gradients to a common norm, or limits each element; without gradients it does nothing."""
    parameters = [nn.Parameter(lucid.zeros(3)), nn.Parameter(lucid.zeros(2, 2)), nn.Parameter(lucid.zeros(1))]
    grads = [rng.standard_normal(p.shape) * 3 for p in parameters[:2]]
    for p, g in zip(parameters, grads, strict=False):
        p.grad = lucid.tensor(g, dtype=lucid.float32)
    norm = np.sqrt(sum((g**2).sum() for g in grads))
    total = nn.utils.clip_grad_norm_(parameters, 0.5)
    assert float(total) == pytest.approx(norm, rel=1e-5)
    for p, g in zip(parameters, grads, strict=False):
        np.testing.assert_allclose(p.grad.cpu().numpy(), g * 0.5 / norm, rtol=1e-4)
    nn.utils.clip_grad_value_(parameters, 0.01)
    assert max(float(p.grad.abs().max()) for p in parameters[:2]) <= 0.01 + 1e-9
    parameters[0].grad = lucid.tensor([np.inf, 0.0, 0.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(parameters, 0.5, error_if_nonfinite=True)
    assert float(nn.utils.clip_grad_norm_([nn.Parameter(lucid.zeros(1))], 1.0)) == 0.0


def test_parameters_as_a_vector(rng):
    """Parameters become one vector and are set from one; a vector of the wrong length changes nothing."""
    net = Net()
    vector = nn.utils.parameters_to_vector(net.parameters())
    new = lucid.tensor(rng.standard_normal(vector.shape), dtype=lucid.float32)
    nn.utils.vector_to_parameters(new, net.parameters())
    assert np.array_equal(nn.utils.parameters_to_vector(net.parameters()).detach().cpu().numpy(), new.cpu().numpy())
    for dtype in (lucid.float64, lucid.float16):
        nn.utils.vector_to_parameters(new.to(dtype), net.parameters())
        assert {parameter.dtype for parameter in net.parameters()} == {lucid.float32}
    nn.utils.vector_to_parameters(new, net.parameters())
    with pytest.raises(RuntimeError, match="expected a vector of"):
        nn.utils.vector_to_parameters(new[1:], net.parameters())
    assert np.array_equal(nn.utils.parameters_to_vector(net.parameters()).detach().cpu().numpy(), new.cpu().numpy())


def test_a_copied_parameter_has_attributes_of_its_own():
    """What a user has set on a parameter is copied with it."""
    parameter = nn.Parameter(lucid.ones(1))
    parameter.notes = ["mine"]
    twin = copy.deepcopy(parameter)
    twin.notes.append("its")
    assert (parameter.notes, twin.notes) == (["mine"], ["mine", "its"])


def test_a_buffer_that_is_not_saved_stays_so():
    """Another tensor in its place is not saved either."""
    module = nn.Module()
    module.register_buffer("kept", lucid.zeros(1))
    module.register_buffer("left_out", lucid.zeros(1), persistent=False)
    module.kept = module.left_out = lucid.ones(1)
    assert list(module.state_dict()) == ["kept"]


def test_a_module_is_shown_on_one_line_or_several():
    """On one without modules inside, where its settings are on one; a line for each setting and each module else."""

    class Shown(nn.Module):
        def __init__(self, settings, *modules):
            super().__init__()
            self.settings = settings
            for place, module in enumerate(modules):
                self.register_module(f"m{place}", module)

        def extra_repr(self):
            return self.settings

    inner = "(m0): Tanh()"
    for settings, modules, lines in (
        ("", (), ["Shown()"]),
        ("a=1", (), ["Shown(a=1)"]),
        ("a=1\nb=2", (), ["Shown(", "  a=1", "  b=2", ")"]),
        ("", (nn.Tanh(),), ["Shown(", f"  {inner}", ")"]),
        ("a=1", (nn.Tanh(),), ["Shown(", "  a=1", f"  {inner}", ")"]),
        ("a=1\nb=2", (nn.Tanh(),), ["Shown(", "  a=1", "  b=2", f"  {inner}", ")"]),
    ):
        assert repr(Shown(settings, *modules)).split("\n") == lines


def test_an_index_of_no_device_is_named_as_it_was_given():
    """An index that is refused is in the message as a number, as it is in that of a tensor."""
    for place in (nn.Linear(1, 1), lucid.ones(1)):
        with pytest.raises(DeviceError, match="expected an index of 0 or more, got -1"):
            place.cuda(-1)
