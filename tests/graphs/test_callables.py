"""Functions and modules by graphs: values, gradients and training as without, hooks around them, what is refused."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F
from lucid import nn
from lucid.errors import ArgumentError, CaptureError, GraphError, HookError, SettingError, ShapeError
from tests.gradients import numbers

pytestmark = pytest.mark.gpu


def drawn(rng, *shape, **settings):
    """Return a CUDA tensor of random numbers."""
    return lucid.tensor(rng.standard_normal(shape).astype("f"), device="cuda", **settings)


def build(seed):
    """Return a model and its optimizer."""
    lucid.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Dropout(0.3), nn.LayerNorm(8), nn.Linear(8, 3)).to("cuda")
    return model, lucid.optim.AdamW(model.parameters(), lr=0.05)


def test_a_module_trains_as_without(rng):
    """Losses and parameters are the same, bit for bit, with dropout, hooks around the graph, and evaluation between."""
    seed = int(rng.integers(2**31))
    data = [(drawn(rng, 6, 5), lucid.tensor(rng.integers(0, 3, 6), device="cuda")) for _ in range(20)]
    found = []
    for graphed in (False, True):
        model, optimizer = build(seed)
        if graphed:
            assert lucid.cuda.make_graphed_callables(model, (data[0][0],)) is model
        seen = []
        model.register_forward_hook(lambda module, args, output, seen=seen: seen.append(output.sum().item()))
        model[4].weight.register_hook(lambda grad, seen=seen: seen.append(grad.norm().item()))
        lucid.manual_seed(seed)
        for k, (x, y) in enumerate(data):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if k % 5 == 0:
                model.eval()
                with lucid.no_grad():
                    seen.append(model(x[:2]).sum().item())
                model.train()
        found.append((seen, [numbers(p) for p in model.parameters()]))
    assert found[0][0] == found[1][0]
    for ours, theirs in zip(found[1][1], found[0][1], strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_several_callables(rng):
    """They share memory, each with its own form; gradients flow from one through the next."""
    w = drawn(rng, 5, 4, requires_grad=True)
    layer = nn.Linear(4, 2).to("cuda")

    def first(x, y):
        return {"product": x @ w, "rest": (y * 2, y.detach())}

    x, y, z = drawn(rng, 3, 5, requires_grad=True), drawn(rng, 3, requires_grad=True), drawn(rng, 3, 4)
    sample = (x.detach().requires_grad_(), y.detach().requires_grad_()), (z.requires_grad_(),)
    one, two = lucid.cuda.make_graphed_callables((first, layer), sample)
    assert two is layer
    for _ in range(3):
        x, y = drawn(rng, 3, 5, requires_grad=True), drawn(rng, 3, requires_grad=True)
        upstream, other = drawn(rng, 3, 2), drawn(rng, 3)
        out = one(x, y)
        assert not out["rest"][1].requires_grad
        np.testing.assert_array_equal(numbers(out["rest"][1]), numbers(y))
        got = two(out["product"])
        grads = lucid.autograd.grad((got, out["rest"][0]), (x, y, layer.weight), (upstream, other))
        expected = F.linear(x @ w, layer.weight, layer.bias)
        np.testing.assert_array_equal(numbers(got), numbers(expected))
        theirs = lucid.autograd.grad((expected, y * 2), (x, y, layer.weight), (upstream, other))
        for a, b in zip(grads, theirs, strict=True):
            np.testing.assert_array_equal(numbers(a), numbers(b))


def test_a_copy_is_without_graphs(rng):
    """It computes with its own parameters; a pickle says what to save instead, and nothing waits for the collector."""
    layer, x = nn.Linear(4, 2).to("cuda"), drawn(rng, 3, 4)
    graphed = lucid.cuda.make_graphed_callables(layer, (x,))
    copied = copy.deepcopy(graphed)
    with lucid.no_grad():
        copied.weight.fill_(5)
    np.testing.assert_array_equal(numbers(copied(x)), numbers(F.linear(x, copied.weight, copied.bias)))
    np.testing.assert_array_equal(numbers(graphed(x)), numbers(F.linear(x, layer.weight, layer.bias)))
    with pytest.raises(pickle.PicklingError, match="state_dict"):
        pickle.dumps(graphed)
    gone = weakref.ref(layer)
    gc.collect()
    gc.disable()
    try:
        del layer, graphed
        assert gone() is None
    finally:
        gc.enable()


def test_gradients_accumulate(rng):
    """Two calls before a backward pass are refused nothing and give the sum of both gradients of parameters."""
    layer = nn.Linear(4, 2).to("cuda")
    graphed = lucid.cuda.make_graphed_callables(layer, (drawn(rng, 3, 4),))
    total = 0
    for _ in range(3):
        x, upstream = drawn(rng, 3, 4), drawn(rng, 3, 2)
        graphed(x).backward(upstream)
        total = total + numbers(upstream).T @ numbers(x)
        np.testing.assert_allclose(numbers(layer.weight.grad), total, rtol=1e-5, atol=1e-6)


def test_bad_calls(rng):
    """Forms that differ from the samples', modules with hooks, unused inputs, second derivatives."""
    x = drawn(rng, 3, 4, requires_grad=True)
    make = lucid.cuda.make_graphed_callables
    hooked = nn.Linear(4, 2).to("cuda")
    hooked.register_forward_hook(lambda *_: None)
    for call, error, words in (
        (lambda: make(3, (x,)), ArgumentError, "expected a callable"),
        (lambda: make(lucid.exp, x), ArgumentError, "a tuple of arguments"),
        (lambda: make((lucid.exp,), (x,)), ArgumentError, "a tuple of arguments"),
        (lambda: make(lucid.exp, (x,), num_warmup_iters=0), SettingError, "at least 1"),
        (lambda: make(hooked, (x,)), HookError, "around the graph"),
        (lambda: make(lambda a: a.sum().item(), (x,)), CaptureError, "item"),
        (lambda: make(lambda a, b: a * 2, (x, x)), GraphError, "allow_unused"),
        (lambda: make(lambda a, b: a * b, (x, 2.0)), ArgumentError, "make it a CUDA tensor"),
    ):
        with pytest.raises(error, match=words):
            call()
        assert not lucid.cuda.is_current_stream_capturing()
    double = make(lambda a, b: a * b, (x, x.detach()))
    for call, error, words in (
        (lambda: double(x), ArgumentError, "expected 2 entries"),
        (lambda: double(x[:2], x[:2]), ShapeError, "input 0"),
        (lambda: double(x, x), ArgumentError, "input 1 requires grad"),
    ):
        with pytest.raises(error, match=words):
            call()
    (grad,) = lucid.autograd.grad(double(x, x.detach()).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError):
        lucid.autograd.grad(grad.sum(), x)
    one = make(lambda a, b: a * 2, (x, x), allow_unused_input=True)
    out = one(x, x.detach().requires_grad_())
    np.testing.assert_array_equal(numbers(out), 2 * numbers(x))
    layer = nn.Linear(4, 2).to("cuda")
    make(layer, (x,))
    with pytest.raises(ArgumentError, match="positional"):
        layer(input=x)
    layer.weight.data = layer.weight.data.clone()
    with pytest.raises(CaptureError, match="replaced or moved"):
        layer(x)


def test_hooks_inside_are_named(rng):
    """Those of submodules ran at the capture alone."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to("cuda")
    model[0].register_forward_hook(look)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lucid.cuda.make_graphed_callables(model, (drawn(rng, 2, 4),))
    (warning,) = caught
    assert "look" in str(warning.message)
    assert warning.filename == __file__


def look(module, args, output):
    """Look at an output."""
