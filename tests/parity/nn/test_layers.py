"""Layers, losses and initialisation: PyTorch's signatures, names, shapes, values, gradients and state dicts."""

from __future__ import annotations

import inspect
import math
import warnings

import numpy as np
import pytest
import torch

import lucid
from tests.layers import LAYERS, LOSSES, OF_TWO, TARGETS, input_of
from tests.nn.layers.forms import form, written
from tests.parity.pieces import agree, close

INPLACE = {
    **dict.fromkeys(
        ["ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "SiLU", "Mish", "Hardtanh", "Hardsigmoid", "Hardswish"],
        (),
    ),
    **dict.fromkeys(["Dropout", "AlphaDropout", "FeatureAlphaDropout", "Dropout1d"], (0.0,)),
    "RReLU": (0.2, 0.2),
    "Threshold": (0.1, 2.0),
}


# Slopes that PyTorch has in float32 alone.
SLOPE_IN_FLOAT32 = {"Hardsigmoid": 1e-7}


def same_state(theirs, ours, tolerance=1e-10):
    """Check keys, shapes and values of two state dicts."""
    assert list(theirs) == list(ours)
    for name, value in theirs.items():
        assert tuple(value.shape) == ours[name].shape
        np.testing.assert_allclose(ours[name].numpy(force=True), value.numpy(), rtol=tolerance, atol=tolerance)


def pair(make, rng):
    """Return PyTorch's layer and lucid's in float64 with the same random parameters, loaded through a state dict."""
    theirs, ours = make(torch.nn).double(), make(lucid.nn).double()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.tensor(rng.standard_normal(tuple(parameter.shape))))
    ours.load_state_dict({name: lucid.tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    return theirs, ours


@pytest.mark.parametrize("name", list(LAYERS))
def test_repr_and_state(name):
    """The layer shows itself as PyTorch's does, its state dict has the same form, and both are what is written down."""
    theirs = form(name, torch.nn)
    assert form(name, lucid.nn) == theirs
    assert written()[name] == theirs


# CrossMapLRN2d: what PyTorch computes is not its formula, and its gradient not that of what it computes
@pytest.mark.parametrize("name", [name for name in LAYERS if name not in {"nested", "CrossMapLRN2d"}])
def test_values_and_gradients(name, rng):
    """Outputs, gradients of input and parameters, and buffers agree in training and evaluation."""
    theirs, ours = pair(LAYERS[name], rng)
    embedding = name.startswith("Embedding")
    for mode in (True, False):
        theirs.train(mode)
        ours.train(mode)
        values = input_of(name, rng)
        x, u = torch.tensor(values), lucid.tensor(values)
        if not embedding:
            x.requires_grad_()
            u.requires_grad_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            y, v = (m(t, OF_TWO[name](t)) if name in OF_TWO else m(t) for m, t in ((theirs, x), (ours, u)))
        np.testing.assert_allclose(v.numpy(force=True), y.numpy(force=True), rtol=1e-9, atol=1e-9)
        upstream = rng.standard_normal(tuple(y.shape))
        if not y.requires_grad:
            assert not v.requires_grad
            continue
        y.backward(torch.tensor(upstream))
        v.backward(lucid.tensor(upstream))
        if not embedding:
            error = SLOPE_IN_FLOAT32.get(name, 1e-8)
            np.testing.assert_allclose(u.grad.numpy(force=True), x.grad.numpy(), rtol=error, atol=1e-8)
        close([q.grad for q in ours.parameters()], [p.grad for p in theirs.parameters()], 1e-8, 1e-8)
        same_state(theirs.state_dict(), ours.state_dict(), 1e-9)


@pytest.mark.parametrize("name", INPLACE)
def test_in_place_layers(name, rng):
    """With `inplace=True` the input itself is changed and returned, and gradients are the same."""
    theirs, ours = (getattr(lib.nn, name)(*INPLACE[name], inplace=True) for lib in (torch, lucid))
    assert repr(ours) == repr(theirs)
    values, upstream = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    x, u = torch.tensor(values, requires_grad=True), lucid.tensor(values, requires_grad=True)
    source = u * 1
    out = ours(source)
    assert out is source
    theirs(x * 1).backward(torch.tensor(upstream))
    out.backward(lucid.tensor(upstream))
    error = SLOPE_IN_FLOAT32.get(name, 1e-9)
    np.testing.assert_allclose(u.grad.numpy(force=True), x.grad.numpy(), rtol=error, atol=1e-9)


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("reduction", [None, "mean", "sum", "none"])
def test_losses(name, reduction, rng):
    """Losses and their gradients agree, with weights as buffers."""
    kind, settings = LOSSES[name]
    if reduction is not None:
        settings = {**settings, "reduction": reduction}
    shapes = {k: rng.random(v) for k, v in settings.items() if isinstance(v, tuple)}
    modules = [
        getattr(lib.nn, name)(**{**settings, **{k: lib.tensor(v) for k, v in shapes.items()}}) for lib in (torch, lucid)
    ]
    values = rng.standard_normal((5, 3))
    if name in {"BCELoss", "KLDivLoss", "PoissonNLLLoss"}:
        values = 1 / (1 + np.exp(-values))
    rest = TARGETS[kind](rng)
    x, u = torch.tensor(values, requires_grad=True), lucid.tensor(values, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        y, v = modules[0](x, *map(torch.tensor, rest)), modules[1](u, *map(lucid.tensor, rest))
    np.testing.assert_allclose(v.numpy(force=True), y.numpy(force=True), rtol=1e-9)
    upstream = rng.standard_normal(tuple(y.shape))
    y.backward(torch.tensor(upstream))
    v.backward(lucid.tensor(upstream))
    np.testing.assert_allclose(u.grad.numpy(force=True), x.grad.numpy(), rtol=1e-9, atol=1e-12)
    same_state(modules[0].state_dict(), modules[1].state_dict())
    assert repr(modules[1]) == repr(modules[0])


def public_classes():
    """Return the names of the layers that both libraries export."""
    return sorted(
        name
        for name in lucid.nn.__all__
        if isinstance(getattr(lucid.nn, name), type)
        and issubclass(getattr(lucid.nn, name), lucid.nn.Module)
        and hasattr(torch.nn, name)
        # PyTorch's LSTM and its like take `*args`: tests/parity/nn/test_recurrent.py
        and name not in {"GRU", "LSTM", "Module", "RNN", "Sequential"}
    )


@pytest.mark.parametrize("name", public_classes())
def test_signatures(name):
    """Constructors have PyTorch's parameters, in its order and with its defaults."""

    def form(cls):
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        # PyTorch keeps two old names of Hardtanh's bounds, which only warn
        return [
            (p.name, getattr(p.default, "__name__", p.default), p.kind)
            for p in parameters
            if p.name not in {"min_value", "max_value"}
        ]

    assert form(getattr(lucid.nn, name)) == form(getattr(torch.nn, name))


@pytest.mark.parametrize(
    ("name", "shape"),
    [("Linear", (400, 300)), ("Conv2d", (60, 40, 7)), ("ConvTranspose1d", (60, 40, 7)), ("Embedding", (300, 400))],
)
def test_initialisation(name, shape):
    """Layers draw their first parameters from PyTorch's distributions: same bounds, same spread."""
    torch.manual_seed(0)
    lucid.manual_seed(0)
    theirs, ours = getattr(torch.nn, name)(*shape), getattr(lucid.nn, name)(*shape)
    for p, q in zip(theirs.parameters(), ours.parameters(), strict=True):
        a, b = p.numpy(force=True).ravel(), q.numpy(force=True).ravel()
        assert abs(a.std() - b.std()) < 6 * a.std() / math.sqrt(2 * a.size)
        assert abs(b.mean()) < 6 * a.std() / math.sqrt(a.size)
        if name != "Embedding":
            bound = 1 / math.sqrt(np.prod(theirs.weight.shape[1:]))
            assert bound * (1 - 20 / a.size) - 1e-3 < np.abs(b).max() <= bound


INITIALISERS = {
    "uniform_": ((-1.0, 3.0), {}),
    "normal_": ((1.0, 2.0), {}),
    "trunc_normal_": ((), {"mean": 0.5, "std": 2.0, "a": -1.0, "b": 3.0}),
    "xavier_uniform_": ((2.0,), {}),
    "xavier_normal_": ((), {"gain": 0.5}),
    "kaiming_uniform_": ((), {"a": 0.2, "mode": "fan_out"}),
    "kaiming_normal_": ((), {"nonlinearity": "relu"}),
}


@pytest.mark.parametrize("name", list(INITIALISERS))
def test_initialisers(name):
    """Each initialiser fills in place, unrecorded, from PyTorch's distribution (two-sample Kolmogorov-Smirnov)."""
    args, settings = INITIALISERS[name]
    torch.manual_seed(1)
    lucid.manual_seed(1)
    theirs, ours = torch.empty(150, 80, 3), lucid.nn.Parameter(lucid.zeros(150, 80, 3))
    getattr(torch.nn.init, name)(theirs, *args, **settings)
    assert getattr(lucid.nn.init, name)(ours, *args, **settings) is ours
    assert ours.is_leaf
    a, b = np.sort(theirs.numpy().ravel()), np.sort(ours.numpy(force=True).ravel())
    grid = np.concatenate([a, b])
    distance = np.abs(np.searchsorted(a, grid, "right") - np.searchsorted(b, grid, "right")).max() / a.size
    assert distance < 2.2 * math.sqrt(2 / a.size)


def test_initialisers_without_chance():
    """Constants, eye and dirac agree exactly; sparse and orthogonal have their defining properties."""
    for name, args, shape in (
        ("constant_", (3.5,), (2, 3)), ("ones_", (), (2, 3)), ("zeros_", (), (2, 3)), ("eye_", (), (3, 5)),
        ("dirac_", (), (4, 2, 3)), ("dirac_", (2,), (4, 2, 3, 3)),
    ):  # fmt: skip
        theirs, ours = torch.ones(shape), lucid.ones(*shape)
        getattr(torch.nn.init, name)(theirs, *args)
        getattr(lucid.nn.init, name)(ours, *args)
        np.testing.assert_array_equal(ours.numpy(force=True), theirs.numpy())
    sparse = lucid.nn.init.sparse_(lucid.ones(10, 4), 0.25)
    assert ((sparse.numpy(force=True) == 0).sum(0) == 3).all()
    for shape in ((6, 4), (4, 6), (4, 2, 3)):
        filled = lucid.nn.init.orthogonal_(lucid.zeros(*shape, dtype=lucid.float64), gain=2.0)
        q = filled.numpy(force=True).reshape(shape[0], -1)
        small = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
        np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-6)


@pytest.mark.parametrize(
    ("nonlinearity", "param"), [("linear", None), ("conv2d", None), ("tanh", None), ("relu", None), ("selu", None),
                                ("leaky_relu", None), ("leaky_relu", 0.3)]
)  # fmt: skip
def test_gains(nonlinearity, param):
    """Gains are PyTorch's."""
    theirs = torch.nn.init.calculate_gain(nonlinearity, param)
    assert lucid.nn.init.calculate_gain(nonlinearity, param) == pytest.approx(theirs)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, math.inf])
def test_clipping(norm_type, rng):
    """Total norm and clipped gradients agree for every order of the norm."""
    grads = [rng.standard_normal(shape) for shape in ((3, 4), (5,), ())]

    def clipped(lib):
        parameters = [lib.nn.Parameter(lib.zeros(g.shape, dtype=lib.float64)) for g in grads]
        for p, g in zip(parameters, grads, strict=True):
            p.grad = lib.tensor(g, dtype=lib.float64)
        total = lib.nn.utils.clip_grad_norm_(parameters, 0.7, norm_type)
        return [total, *(p.grad for p in parameters)]

    agree(clipped, 1e-9)


def test_state_dicts_go_both_ways(rng):
    """A state dict made here loads strictly into PyTorch's network, and gives the same outputs there."""

    def network(nn):
        return nn.Sequential(
            nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 8), nn.LayerNorm(8)
        )

    ours, theirs = network(lucid.nn).double(), network(torch.nn).double()
    values = rng.standard_normal((4, 1, 6, 6))
    ours(lucid.tensor(values))
    theirs.load_state_dict({name: torch.tensor(value.numpy(force=True)) for name, value in ours.state_dict().items()})
    with torch.no_grad():
        expected = theirs.eval()(torch.tensor(values)).numpy()
    np.testing.assert_allclose(ours.eval()(lucid.tensor(values)).numpy(force=True), expected, rtol=1e-9, atol=1e-9)
