"""Gradients of a tensor that is used several times, added up on a CUDA device: eight in one launch."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.engine import accumulation
from lucid.base import gpu
from lucid.cuda.launch.accumulation import total
from tests.kernels.layouts import LAYOUTS
from tests.kernels.near import EPSILON, FLOATS, assert_near, on_device, rounded
from tests.pieces import function_of

pytestmark = pytest.mark.gpu
every_dtype = pytest.mark.parametrize("dtype", FLOATS)


# ---- the kernel ----


@every_dtype
@pytest.mark.parametrize("count", range(2, 9))
def test_totals(count, dtype, rng):
    """Two to eight arrays are added in one launch, whatever their size."""
    for size in (0, 1, 31, 33, 1025):
        terms = [rounded(rng.standard_normal(size), dtype) for _ in range(count)]
        assert_near(total([on_device(t, dtype).array for t in terms], more=False), sum(terms), dtype)


@every_dtype
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, dtype, rng):
    """Each of the arrays is read where it lies."""
    array = rounded(rng.standard_normal((9, 10)), dtype)
    lying = LAYOUTS[layout](array)
    others = [rounded(rng.standard_normal(lying.shape), dtype) for _ in range(2)]
    terms = [*[on_device(other, dtype).array for other in others], LAYOUTS[layout](on_device(array, dtype).array)]
    for turn in range(3):
        assert_near(total(terms[turn:] + terms[:turn], more=False), sum(others) + lying, dtype)


@every_dtype
def test_many_dimensions(dtype, rng):
    """Arrays of more dimensions than a kernel goes through are made contiguous."""
    shape = (2, 1) * 9
    terms = [rounded(rng.standard_normal(shape), dtype) for _ in range(2)]
    spread = [gpu.cupy().broadcast_to(on_device(t, dtype).array, (2,) * 18) for t in terms]
    assert_near(total(spread, more=False), np.broadcast_to(sum(terms), (2,) * 18), dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_unrounded_sums(dtype, rng):
    """A sum of halves that goes on is float32, and takes up the next ones without having been rounded."""
    terms = [on_device(np.full(40, 1.0), dtype).array, *[on_device(np.full(40, EPSILON[dtype] / 4), dtype).array] * 14]
    begun = total(terms[:8], more=True)
    assert begun.dtype == np.float32
    gone_on = total([begun, *terms[8:12]], more=True)
    assert gone_on.dtype == np.float32
    got = total([gone_on, *terms[12:]], more=False)
    assert_near(got, np.full(40, 1 + 14 * EPSILON[dtype] / 4), dtype, slack=0.26)


def test_absent_terms_keep_the_sign_of_zero():
    """The sum of negative zeros is a negative zero, as it is of two arrays."""
    zeros = [on_device([-0.0, 0.0], "float32").array] * 2
    assert np.signbit(total(zeros, more=False).get()).tolist() == [True, False]


# ---- backward ----


def backward_of(x, grads):
    """Give a tensor these gradients, each through a use of its own."""
    lucid.autograd.backward([x.view(*x.shape) for _ in grads], grads)


@every_dtype
@pytest.mark.parametrize(("uses", "launches"), [(1, 0), (2, 1), (8, 1), (9, 2), (15, 2), (16, 3)])
@pytest.mark.parametrize("leaf", [True, False])
def test_launches(leaf, uses, launches, dtype, rng, launched):
    """The gradients of eight uses are added in one launch, those of each seven more in another, and rounded once."""
    x = on_device(rng.standard_normal((3, 5)), dtype).requires_grad_()
    numbers = [rounded(rng.standard_normal((3, 5)), dtype) for _ in range(uses)]
    grads = [on_device(n, dtype) for n in numbers]
    used = x if leaf else x.view(5, 3).view(3, 5)
    outputs = [used.view(15) for _ in grads]
    launched.clear()
    lucid.autograd.backward(outputs, [g.view(15) for g in grads])
    sums = [name for name in launched if "Total" in name]
    assert len(sums) == launches
    # a leaf copies the only gradient, which it shares with the caller
    assert len(launched) - len(sums) <= (uses == 1)
    assert_near(x.grad.array, sum(numbers), dtype, slack=0.25 if uses > 1 else 0)


def test_order_of_a_sum(rng):
    """Float32 gradients are added in the order in which they come: the bits are those of single sums."""
    x = on_device(rng.standard_normal(100), "float32").requires_grad_()
    arrays = [rng.standard_normal(100).astype("f") for _ in range(20)]
    order = []
    outputs = [x.view(100) for _ in arrays]
    for place, output in enumerate(outputs):
        output.register_hook(lambda grad, place=place: order.append(place))
    lucid.autograd.backward(outputs, [on_device(a, "float32") for a in arrays])
    expected = arrays[order[0]]
    for place in order[1:]:
        expected = expected + arrays[place]
    assert (x.grad.array.get() == expected).all()


def test_large_gradients_do_not_wait(monkeypatch, rng, launched):
    """From the bound on a sum holds two arrays only: the second makes a buffer, further ones are added to it."""
    monkeypatch.setattr(accumulation, "WAITING_BYTES", 400)
    grads = [on_device(np.full(100, float(k)), "float32") for k in range(5)]
    x = lucid.ones(100, device="cuda", requires_grad=True)
    launched.clear()
    backward_of(x, grads)
    assert launched == ["binary<float, Add, true, float, float, float>"] * 4
    assert x.grad.tolist() == [10.0] * 100


def test_all_that_waits_is_bounded(monkeypatch, rng, launched):
    """What all sums of a pass hold stays below a bound; beyond it what waits is added, and then as large arrays are."""
    monkeypatch.setattr(accumulation, "HELD_BYTES", 1200)
    held = []
    add = accumulation.Sums.add

    def noted(self, *args):
        out = add(self, *args)
        held.append((self.held, sum(g.nbytes for waiting in self.values() for g in waiting)))
        return out

    monkeypatch.setattr(accumulation.Sums, "add", noted)
    xs = [lucid.ones(100, device="cuda", requires_grad=True) for _ in range(2)]
    outputs = [x.view(100) for _ in range(5) for x in xs]
    lucid.autograd.backward(outputs, [on_device(np.full(100, float(k)), "float32") for k in range(10)])
    assert [x.grad.tolist() for x in xs] == [[20.0] * 100, [25.0] * 100]
    assert all(counted == real <= 1200 for counted, real in held)
    assert max(counted for counted, _ in held) == 1200
    assert held[-1][0] < 1200


def test_hooks_see_the_sum(rng):
    """A hook of a tensor is called once, with all that its uses contributed, and what it returns goes on."""
    numbers = [rng.standard_normal(7) for _ in range(5)]
    x = on_device(rng.standard_normal(7), "float64").requires_grad_()
    middle, seen = x.view(7), []

    def double(grad):
        seen.append(grad.array.get())
        return grad * 2

    middle.register_hook(double)
    middle.retain_grad()
    lucid.autograd.backward([middle.view(7) for _ in numbers], [on_device(n, "float64") for n in numbers])
    np.testing.assert_allclose(seen, [sum(numbers)])
    assert_near(middle.grad.array, 2 * sum(numbers), "float64")
    assert_near(x.grad.array, 2 * sum(numbers), "float64")


def test_several_outputs(rng):
    """Each output of a node of several receives the sum of its own uses; captured gradients are sums too."""
    x = on_device(rng.standard_normal((2, 6)), "float32").requires_grad_()
    first, second = x.unbind(0)
    numbers = [rounded(rng.standard_normal(6), "float32") for _ in range(7)]
    outputs = [first.view(6) for _ in range(3)] + [second.view(6) for _ in range(4)]
    grads = [on_device(n, "float32") for n in numbers]
    got = lucid.autograd.grad(outputs, [x, first, second], grads, retain_graph=True)
    sums = [sum(numbers[:3]), sum(numbers[3:])]
    for array, expected in zip(got, (np.stack(sums), *sums), strict=True):
        assert_near(array.array, expected, "float32")


def test_gradients_of_several_dtypes(rng):
    """Where contributions differ in dtype, and for complex numbers, each is added as it comes."""
    x = on_device(rng.standard_normal(6), "float32").requires_grad_()
    numbers = [rounded(rng.standard_normal(6), "float16") for _ in range(6)]

    Half = function_of(lambda ctx, x: x.clone(), lambda ctx, grad: grad.to(lucid.float16))

    middle = x.view(6)
    outputs = [middle.view(6) if k % 3 else Half.apply(middle) for k in range(6)]
    lucid.autograd.backward(outputs, [on_device(n, "float32") for n in numbers])
    assert_near(x.grad.array, sum(numbers), "float32", slack=500)
    z = lucid.tensor(numbers[0] + 1j, device="cuda", requires_grad=True)
    grads = [lucid.tensor(n - 2j, device="cuda") for n in numbers]
    backward_of(z, grads)
    np.testing.assert_allclose(z.grad.array.get(), sum(numbers) - 12j, rtol=1e-6)


def test_no_gradient_is_changed(rng):
    """What came in is what it was, and the leaf's gradient is memory of its own."""
    grads = [on_device(rng.standard_normal(5), "float32") for _ in range(9)]
    before = [g.array.get() for g in grads]
    x = on_device(rng.standard_normal(5), "float32").requires_grad_()
    for _ in range(2):
        backward_of(x, grads)
    x.grad.zero_()
    assert all((g.array.get() == b).all() for g, b in zip(grads, before, strict=True))
