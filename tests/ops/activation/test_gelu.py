"""Gelu of more elements than one block, whose slope NumPy finds beside the value."""

import numpy as np
import pytest

import lucid
from lucid.errors import LucidError
from lucid.nn import functional as F
from lucid.ops.base.blocks import BLOCK
from tests.device import DEVICE
from tests.pieces.memory import traced


def drawn(dtype, count=BLOCK * 2 + 77):
    """Return numbers of all sizes, with zeros, infinities and NaN among them."""
    random = np.random.default_rng(5)
    x = random.standard_normal(count) * 10.0 ** random.integers(-6, 3, count)
    x[:6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 6e4
    return x.astype(dtype)


def differentiated(x, upstream):
    """Return gelu, its gradient, and the gradient of that one's product with itself."""
    x = lucid.tensor(x, device=DEVICE, requires_grad=True)
    y = F.gelu(x)
    (once,) = lucid.autograd.grad(y, x, lucid.tensor(upstream, device=DEVICE), create_graph=True)
    (twice,) = lucid.autograd.grad((once * once).sum(), x)
    return [value.detach().cpu().numpy() for value in (y, once, twice)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_many_elements_are_as_few(dtype):
    """What gelu, its gradient and its second gradient are of an element does not depend on how many there are."""
    x = drawn(dtype)
    upstream = np.random.default_rng(6).standard_normal(x.size).astype(dtype)
    with np.errstate(all="ignore"):
        whole = differentiated(x, upstream)
        parts = [differentiated(x[i : i + 5000], upstream[i : i + 5000]) for i in range(0, x.size, 5000)]
    for got, *expected in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(got, np.concatenate(expected))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gradient_against_differences(dtype):
    """The gradient of many elements is the central difference of gelu in float64."""
    x = np.linspace(-6, 6, BLOCK + 100).reshape(2, -1).astype(dtype)
    upstream = np.random.default_rng(7).standard_normal(x.shape).astype(dtype)
    t = lucid.tensor(x.T.copy(), device=DEVICE, requires_grad=True)
    F.gelu(t.T).backward(lucid.tensor(upstream, device=DEVICE))
    step = 1e-5
    near = [F.gelu(lucid.tensor(x.astype(np.float64) + s)).cpu().numpy() for s in (step, -step)]
    expected = upstream * (near[0] - near[1]) / (2 * step)
    np.testing.assert_allclose(t.grad.T.cpu().numpy(), expected, rtol=1e-5, atol=5e-7)


def test_a_changed_input_is_told():
    """The input of gelu may not change before the backward, though its slope is known."""
    x = lucid.randn(BLOCK * 2, device=DEVICE).requires_grad_()
    changed = x * 1.0
    y = F.gelu(changed)
    changed.add_(1.0)
    with pytest.raises(LucidError, match="place"):
        y.sum().backward()
    assert x.grad is None


def test_backward_twice():
    """The slope is there for each backward of a retained graph, and let go with the last."""
    x = lucid.randn(BLOCK * 2, device=DEVICE).requires_grad_()
    y = F.gelu(x)
    upstream = lucid.randn(BLOCK * 2, device=DEVICE)
    (first,) = lucid.autograd.grad(y, x, upstream, retain_graph=True)
    (second,) = lucid.autograd.grad(y, x, upstream)
    np.testing.assert_array_equal(first.cpu().numpy(), second.cpu().numpy())
    with pytest.raises(RuntimeError):
        lucid.autograd.grad(y, x, upstream)


def test_the_slope_goes_with_what_is_saved():
    """After backward the graph of many elements holds no more than that of few, though a result keeps the graph."""
    x = lucid.randn(1 << 20, device="cpu").requires_grad_()
    lucid.nn.functional.gelu(x)
    with traced() as memory:
        loss = F.gelu(x).sum()
        loss.backward()
        x.grad = None
        assert loss.grad_fn is not None
    assert memory.held < 1 << 20


def test_hooks_of_saved_tensors_count():
    """What saved-tensor hooks pack is not kept beside, and the gradient is that of what they unpack."""
    x = lucid.randn(BLOCK * 2, device=DEVICE).requires_grad_()
    with lucid.autograd.graph.saved_tensors_hooks(lambda t: None, lambda _: lucid.zeros_like(x)):
        y = F.gelu(x)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.cpu().numpy(), np.full(BLOCK * 2, 0.5, np.float32))


def test_the_node_is_the_same():
    """Hooks, and who reads the graph, see one kind of node with one input, however many elements there are."""
    nodes = []
    for count in (3, BLOCK * 2):
        x = lucid.randn(count, device=DEVICE).requires_grad_()
        packed, seen = [], []
        with lucid.autograd.graph.saved_tensors_hooks(lambda t, to=packed: (to.append(t.shape), t)[1], lambda t: t):
            y = F.gelu(x)
        y.grad_fn.register_hook(lambda grads, outs, to=seen: to.append((len(grads), len(outs))))
        y.sum().backward()
        saved = y.grad_fn.name(), len(y.grad_fn.next_functions), len(packed), seen
        nodes.append(saved)
        assert packed == [x.shape]
    assert nodes == [("GeluBackward0", 1, 1, [(1, 1)])] * 2


def test_what_a_hook_unpacks_is_what_counts():
    """A hook that was registered on what was saved replaces the input, and with it the slope."""
    for count in (3, BLOCK * 2):
        x = lucid.randn(count, device=DEVICE).requires_grad_()
        y = F.gelu(x)
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t.shape, lambda shape: lucid.zeros(shape, device=DEVICE))
        y.backward(lucid.ones_like(y))
        np.testing.assert_array_equal(x.grad.cpu().numpy(), 0.5)
