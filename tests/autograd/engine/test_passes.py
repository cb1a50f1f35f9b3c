"""A pass computes the gradients that it needs, and no others: `backward(inputs=)` and `autograd.grad`."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.recording.namespace import namespace_of
from lucid.base import gpu
from tests.device import DEVICE
from tests.gradients import flat, is_floating, numbers, random_like, tensors_of
from tests.ops.test_samples import check_close
from tests.pieces import drawn
from tests.samples import all_samples


def operands(sample):
    """Return how many operands of a row are differentiated by."""
    arrays = sample.inputs(np.random.default_rng(0))
    return sum(is_floating(np.asarray(a)) and place not in sample.constants for place, a in enumerate(arrays))


SEVERAL = [s for s in all_samples() if s.differentiable and operands(s) > 1]


def watched(monkeypatch, name):
    """Return a list that gets the shapes of the arrays of each call of an op in a backward pass."""
    calls = []
    m = namespace_of(lucid.ones(1).array)
    plain = getattr(m, name)

    def counted(*arrays, **settings):
        calls.append([a.shape for a in arrays])
        return plain(*arrays, **settings)

    monkeypatch.setattr(m, name, counted)
    return calls


@pytest.fixture
def products(monkeypatch):
    """Return the shapes of the factors of each product in a backward pass."""
    if DEVICE == "cpu":
        return watched(monkeypatch, "matmul")
    cublas, seen = gpu.part("cupy_backends.cuda.libs.cublas"), []
    multiply = cublas.gemmStridedBatchedEx

    def noted(handle, transposed_b, transposed_a, columns, rows, inner, *rest):
        seen.append([(rows, inner), (inner, columns)])
        return multiply(handle, transposed_b, transposed_a, columns, rows, inner, *rest)

    monkeypatch.setattr(cublas, "gemmStridedBatchedEx", noted)
    return seen


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("sample", [pytest.param(s, id=s.name) for s in SEVERAL])
def test_the_gradient_by_one_operand(sample, create_graph, rng):
    """By one operand alone the gradient is what it is by all of them together."""
    tensors = tensors_of(sample.inputs(rng), sample.constants)
    roots = [out for out in flat(sample.op(*tensors)) if out.requires_grad]
    upstream = [lucid.tensor(random_like(rng, numbers(root))) for root in roots]
    wanted = [tensor for tensor in tensors if tensor.requires_grad]

    def gradients(inputs):
        return lucid.autograd.grad(
            roots, inputs, upstream, retain_graph=True, create_graph=create_graph and sample.twice, allow_unused=True
        )

    for tensor, expected in zip(wanted, gradients(wanted), strict=True):
        (got,) = gradients([tensor])
        assert (got is None) == (expected is None)
        if got is not None:
            check_close(numbers(got), numbers(expected), 1e-12, "gradient")


def test_what_is_not_needed_is_not_computed(products, rng):
    """The gradient of a product by one factor takes one product, by both it takes two."""
    x, w = drawn(rng, 3, 4), drawn(rng, 4, 2)
    y = x @ w
    upstream = drawn(rng, 3, 2).detach()
    products.clear()
    lucid.autograd.grad(y, x, upstream, retain_graph=True)
    assert products == [[(3, 2), (2, 4)]]
    products.clear()
    y.backward(upstream, inputs=[w], retain_graph=True)
    assert products == [[(4, 3), (3, 2)]]
    products.clear()
    lucid.autograd.grad(y, (x, w), upstream)
    assert len(products) == 2


def test_a_rule_of_several_gradients_computes_those_that_are_needed(monkeypatch, rng):
    """What comes back of a join is one part for each operand that is asked for."""
    parts = watched(monkeypatch, "getitem")
    x, w, b = (drawn(rng, 3, 4) for _ in range(3))
    y = lucid.cat([x, w, b])
    for inputs in ([w], [x, b], [x, w, b]):
        lucid.autograd.grad(y, inputs, lucid.ones_like(y), retain_graph=True)
        assert len(parts) == len(inputs)
        parts.clear()


JOINED = {
    "mul": lambda x, w: x * w,
    "add": lambda x, w: x + w,
    "matmul": lambda x, w: x @ w,
    "cat": lambda x, w: lucid.cat([x, w]),
    "where": lambda x, w: lucid.where(x > 0, x, w),
}


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("saved", ["arrays", "packed"])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("accumulate", [False, True])
def test_posthooks_get_none_for_what_is_not_needed(name, saved, create_graph, accumulate, rng):
    """A node's posthook gets None for an input off the way to `inputs`, however its operands were saved."""
    x, w = drawn(rng, 3, 3), drawn(rng, 3, 3)
    seen = []
    hooks = lucid.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)
    if saved == "packed":
        with hooks:
            out = JOINED[name](x, w)
    else:
        out = JOINED[name](x, w)
    out.grad_fn.register_hook(lambda given, received: seen.append([g is not None for g in given[-2:]]))
    total = out.sum()
    for inputs in ([x], [w], [x, w]):
        if accumulate:
            total.backward(inputs=inputs, retain_graph=True, create_graph=create_graph)
        else:
            lucid.autograd.grad(total, inputs, retain_graph=True, create_graph=create_graph)
    assert seen == [[True, False], [False, True], [True, True]]


def test_a_posthook_may_give_what_was_not_needed(rng):
    """A gradient that a posthook puts where none was needed goes nowhere."""
    x, w = drawn(rng, 3), drawn(rng, 3)
    out = x * w
    out.grad_fn.register_hook(lambda given, received: (given[0], received[0]))
    out.sum().backward(inputs=[x])
    np.testing.assert_array_equal(numbers(x.grad), numbers(w))
    assert w.grad is None


def test_the_order_of_a_pass_begins_with_leaves_that_are_roots():
    """Each node that runs is told once, in the order of the run, a leaf that backward began with among them."""
    told, ran = [], []
    x, y = (lucid.ones((), requires_grad=True) for _ in range(2))
    out = (y * 2).exp()
    handles = [x.register_hook(lambda grad: told.append(lucid._C._current_graph_task_execution_order()))]
    handles += [t.register_hook(lambda grad, t=t: ran.append(t)) for t in (x, y, out)]
    lucid.autograd.backward([out, x])
    assert [node.name() for node in told[0]] == ["AccumulateGrad", "ExpBackward0", "MulBackward0", "AccumulateGrad"]
    assert [node.variable for node in (told[0][0], told[0][-1])] == [x, y]
    assert ran == [x, out, y]
    for handle in handles:
        handle.remove()


def test_recorded_passes_in_inference_mode_add_up():
    """Gradients that are inference tensors, and count no changes, take the share of another recorded pass."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    with lucid.inference_mode():
        x.grad = lucid.tensor([1.0, 1.0])
    for total in (4.0, 7.0):
        (x * 3).sum().backward(create_graph=True)
        assert x.grad.tolist() == [total, total]
