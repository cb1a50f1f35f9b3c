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
from lucid.errors import (
    ArgumentError,
    CaptureError,
    DtypeError,
    GraphError,
    HookError,
    InplaceError,
    SettingError,
    ShapeError,
)
from tests.gradients import numbers
from tests.graphs.drawing import drawn
from tests.pieces import function_of, module_of, no_collections

pytestmark = pytest.mark.gpu


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
    with no_collections():
        del layer, graphed
        assert gone() is None


def test_a_forward_of_the_modules_own(rng):
    """One that was set on the module is what the graph records, and what it computes by without the graph."""
    layer, x = nn.Linear(4, 2, bias=False).to("cuda"), drawn(rng, 3, 4)
    layer.forward = lambda x: F.linear(x, layer.weight) * 3
    expected = numbers(F.linear(x, layer.weight) * 3)
    graphed = lucid.cuda.make_graphed_callables(layer, (x,))
    for training in (True, False):
        np.testing.assert_array_equal(numbers(graphed.train(training)(x)), expected)


def test_gradients_accumulate(rng):
    """Calls with their backward one after another leave parameters the sum of their gradients."""
    layer = nn.Linear(4, 2).to("cuda")
    graphed = lucid.cuda.make_graphed_callables(layer, (drawn(rng, 3, 4),))
    total = 0
    for _ in range(3):
        x, upstream = drawn(rng, 3, 4), drawn(rng, 3, 2)
        graphed(x).backward(upstream)
        total = total + numbers(upstream).T @ numbers(x)
        np.testing.assert_allclose(numbers(layer.weight.grad), total, rtol=1e-5, atol=1e-6)


def test_changes_between_a_call_and_its_backward(rng):
    """What backward reads must not change: parameters, buffers, results; what it does not read may, and inputs may."""
    layer, x = nn.Linear(4, 2).to("cuda"), drawn(rng, 3, 4, requires_grad=True)
    graphed = lucid.cuda.make_graphed_callables(layer, (x,))
    for _ in range(2):
        out = graphed(x)
        with lucid.no_grad():
            layer.weight.mul_(2)
        with pytest.raises(InplaceError, match=r"modified by an inplace operation.*shape \(2, 4\)"):
            out.sum().backward()
    upstream = drawn(rng, 3, 2)
    out = graphed(x)
    with lucid.no_grad():
        layer.bias.mul_(2)
        before = x.clone()
        x.zero_()
        out += 1
    got = lucid.autograd.grad(out, (x, layer.weight), upstream)
    np.testing.assert_array_equal(numbers(got[0]), numbers(upstream @ layer.weight))
    np.testing.assert_array_equal(numbers(got[1]), numbers(upstream.t() @ before))
    exp = lucid.cuda.make_graphed_callables(lambda x: x.exp(), (x,))
    out = exp(x)
    out.mul_(2)
    with pytest.raises(InplaceError, match="a result"):
        out.sum().backward()
    norm = nn.BatchNorm1d(4).to("cuda").eval()
    normed = lucid.cuda.make_graphed_callables(norm, (x,))
    out = normed(x)
    norm.running_var.fill_(3)
    with pytest.raises(InplaceError, match=r"shape \(4,\)"):
        out.sum().backward()
    normed(x).sum().backward()


def test_one_backward_for_each_call(rng):
    """The values of a call are overwritten by the next one, and by its backward: a backward that comes later raises."""
    layer, x = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 2)).to("cuda"), drawn(rng, 3, 4)
    graphed = lucid.cuda.make_graphed_callables(layer, (x,))
    first, second = graphed(x), graphed(2 * x)
    with pytest.raises(CaptureError, match=r"callable 0 was called again since\. Run backward once"):
        first.sum().backward()
    second.sum().backward(retain_graph=True)
    grad = numbers(layer[0].weight.grad)
    with pytest.raises(CaptureError, match="the backward of callable 0 was run since"):
        second.sum().backward()
    np.testing.assert_array_equal(numbers(layer[0].weight.grad), grad)
    with lucid.no_grad():
        first = graphed(x)
    graphed(x).sum().backward()
    assert not first.requires_grad
    (grad,) = lucid.autograd.grad(graphed(x).sum(), layer[0].weight, create_graph=True)
    with pytest.raises(RuntimeError):
        grad.sum().backward()


def test_results_that_were_overwritten(rng):
    """The next call counts as a change of them: what has saved one for backward raises."""
    w, x = drawn(rng, 3, requires_grad=True), drawn(rng, 3)
    double = lucid.cuda.make_graphed_callables(lambda x: x * 2, (x,))
    loss = (double(x) * w).sum()
    copied = (double(x).clone() * w).sum()
    double(x)
    with pytest.raises(InplaceError, match=r"a clone\(\)"):
        loss.backward()
    copied.backward()
    np.testing.assert_array_equal(numbers(w.grad), 2 * numbers(x))
    with lucid.inference_mode():
        assert double(x).is_inference()


def test_the_order_of_several_callables(rng):
    """Backwards run in the reverse of it; what a callable ahead overwrites raises, and one made apart is on its own."""
    layers = [nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4)).to("cuda") for _ in range(3)]
    x = drawn(rng, 3, 4)
    one, two = lucid.cuda.make_graphed_callables((layers[0], layers[1]), ((x,), (x,)))
    apart = lucid.cuda.make_graphed_callables(layers[2], (x,))

    def gradients(*order):
        for layer in layers:
            layer.zero_grad()
        losses = {layer: layer(x).square().sum() for layer in (one, two, apart)}
        for layer in order:
            losses[layer].backward()
        return [numbers(p.grad) for layer in order for p in layer.parameters()]

    expected = gradients(two, one, apart)
    got = gradients(apart, two, one)
    for ours, theirs in zip(got, expected[-4:] + expected[:-4], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(CaptureError, match="the backward of callable 0 was run since"):
        gradients(one, two)
    late = two(x)
    one(x).sum().backward()
    with pytest.raises(CaptureError, match="the backward of callable 0 was run since"):
        late.sum().backward()


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
    with pytest.raises(CaptureError, match=r"replaced or moved.*make_graphed_callables again"):
        layer(x)


def test_arguments_by_keyword_are_refused(rng):
    """A graph was captured without them, and would leave them out, also beside those by position."""
    x = drawn(rng, 3)
    model = lucid.cuda.make_graphed_callables(module_of(lambda self, x, factor=1.0: x * factor), (x,))
    with pytest.raises(ArgumentError, match=r"expected positional arguments, as the samples were, got \['factor'\]"):
        model(x, factor=2.0)
    np.testing.assert_array_equal(numbers(model(x)), numbers(x))


def test_what_backward_alone_reads(rng):
    """It is kept and watched as what forward reads."""
    factor = [drawn(rng, 3)]

    Scaled = function_of(lambda ctx, x: x.clone(), lambda ctx, grad: grad * factor[0])

    x, upstream = drawn(rng, 3, requires_grad=True), drawn(rng, 3)
    run = lucid.cuda.make_graphed_callables(Scaled.apply, (x,))
    run(x).backward(upstream)
    np.testing.assert_array_equal(numbers(x.grad), numbers(upstream) * numbers(factor[0]))
    factor[0] = drawn(rng, 3)
    gc.collect()
    with pytest.raises(CaptureError, match="replaced or moved"):
        run(x)


def test_hooks_inside_are_named(rng):
    """Those of submodules ran at the capture alone."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to("cuda")
    model[0].register_forward_hook(look)
    with warnings.catch_warnings(record=True, action="always") as caught:
        lucid.cuda.make_graphed_callables(model, (drawn(rng, 2, 4),))
    (warning,) = caught
    assert "look" in str(warning.message)
    assert warning.filename == __file__


def look(module, args, output):
    """Look at an output."""


def test_a_function_keeps_what_it_closes_over(rng):
    """The tensors of a function that nobody else holds live as long as what launches its graphs."""

    def make():
        layer = nn.Linear(3, 2).to("cuda")
        return lambda x: layer(x)

    x = drawn(rng, 4, 3)
    function = make()
    expected = numbers(function(x))
    graphed = lucid.cuda.make_graphed_callables(function, (x,))
    del function
    gc.collect()
    np.testing.assert_allclose(numbers(graphed(x)), expected, rtol=1e-6)


def test_inputs_of_another_floating_dtype(rng):
    """They are converted, as what autocast gives a graph of float32; gradients come back in their dtype."""
    x = drawn(rng, 4, 3, requires_grad=True)
    layer = nn.Linear(3, 2).to("cuda")
    expected = layer(x.half().float())
    graphed = lucid.cuda.make_graphed_callables(layer, (x,))
    half = x.detach().half().requires_grad_()
    out = graphed(half)
    np.testing.assert_allclose(numbers(out), numbers(expected), rtol=1e-6)
    out.sum().backward()
    assert half.grad.dtype is lucid.float16
    np.testing.assert_allclose(
        numbers(half.grad).astype("f"), np.tile(numbers(layer.weight).sum(0), (4, 1)), rtol=2e-3, atol=1e-3
    )
    with pytest.raises(DtypeError):
        graphed(lucid.ones(4, 3, dtype=lucid.int64, device="cuda"))
    number = lucid.ones(3, dtype=lucid.int64, device="cuda")
    with pytest.raises(DtypeError):
        lucid.cuda.make_graphed_callables(lambda n: n + 1, (number,))(number + 0.5)
