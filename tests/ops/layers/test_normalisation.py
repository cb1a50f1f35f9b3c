"""Normalisation: running statistics, third derivatives, large arrays, mistakes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.rows import LONG_ROW, ROWS_BLOCK, column_products
from lucid.ops.elementwise.power import pow
from lucid.ops.layers.batch_normalisation import batch_norm, instance_norm
from lucid.ops.layers.normalisation import group_norm, layer_norm, rms_norm
from lucid.ops.layers.norms import primitives
from lucid.ops.layers.norms.primitives import _is_exact, normalise, normalise_grad
from lucid.ops.reduction.sums import mean, sum
from tests.device import DEVICE
from tests.gradients import numbers
from tests.stress.rounding import NORMS


def by_hand(x, dim, eps=1e-5):
    """Return what has mean 0 and variance 1, made of elementary ops."""
    centred = x - mean(x, dim, keepdim=True)
    return centred * pow(mean(centred * centred, dim, keepdim=True) + eps, -0.5)


def third(op, array, weights):
    """Return a gradient of a gradient of a gradient."""
    x = lucid.tensor(array, requires_grad=True)
    out = sum(op(x) * lucid.tensor(weights) * op(x))
    for _ in range(3):
        (grad,) = lucid.autograd.grad(out, x, create_graph=True)
        out = sum(grad * grad)
    return numbers(grad)


@pytest.mark.parametrize(
    ("op", "reference"),
    [
        (lambda x: layer_norm(x, 5), lambda x: by_hand(x, 1)),
        (lambda x: rms_norm(x, 5, eps=1e-5), lambda x: x * pow(mean(x * x, 1, keepdim=True) + 1e-5, -0.5)),
        (lambda x: batch_norm(x, None, None, training=True), lambda x: by_hand(x, 0)),
    ],
)
def test_third_derivative(op, reference, rng):
    """The derivative of the second derivative is that of the same formula made of elementary ops."""
    array, weights = rng.standard_normal((4, 5)), rng.standard_normal((4, 5))
    expected = third(reference, array, weights)
    np.testing.assert_allclose(third(op, array, weights), expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("columns", [3, 1000, ROWS_BLOCK + 1])
@pytest.mark.parametrize("op", [layer_norm, rms_norm])
@pytest.mark.cpu("blocks are of NumPy arrays")
def test_many_blocks(op, dtype, columns, rng):
    """Rows in several blocks, and longer ones, are as near to float64 as few are, with all gradients."""
    rows = max(3, 2 * ROWS_BLOCK // columns + 1)
    # numbers of a row that come near to each other would be told apart by their last bits
    spread = np.linspace(-2, 2, columns) + rng.uniform(-0.5, 0.5, (rows, columns))
    inputs = [rng.permuted(spread, axis=1), rng.uniform(0.5, 1.5, columns)]
    if op is layer_norm:
        inputs.append(rng.standard_normal(columns))
    upstream = lucid.tensor(rng.standard_normal((rows, columns)), dtype=getattr(lucid, dtype))
    tensors = [lucid.tensor(a, dtype=upstream.dtype, requires_grad=True) for a in inputs]
    exact = [t.detach().to(lucid.float64).requires_grad_() for t in tensors]
    got, expected = (op(x, columns, *rest, eps=1e-5) for x, *rest in (tensors, exact))
    got.backward(upstream)
    expected.backward(upstream.to(lucid.float64))
    allowed = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5}[dtype]
    for one, other in [(got, expected), *[(t.grad, e.grad) for t, e in zip(tensors, exact, strict=True)]]:
        assert one.dtype == upstream.dtype
        reference = numbers(other)
        # sums over all rows may be small by chance, of numbers that are not
        size = max(np.abs(reference).max(), rows**0.5 if one.ndim == 1 else 0)
        np.testing.assert_allclose(numbers(one).astype(np.float64), reference, rtol=0, atol=allowed * size)


def test_a_large_mean_does_not_swallow_the_spread(rng):
    """A mean of 10,000 beside a spread of 1 costs float32 about the rounding of that mean, which is at most 2**-11.

    It costs the gradient up to twice that, as sums over long rows take the mean off at the end.
    Each sum rounds in its own way: what can be told without luck is the root of the mean square over many of them.
    """
    array = (rng.standard_normal((256, 512)) + 10000).astype(np.float32)
    upstream = (rng.standard_normal((256, 512)) + 1).astype(np.float32)

    def run(op, array, upstream):
        x = lucid.tensor(np.ascontiguousarray(array), requires_grad=True)
        out = op(x)
        out.backward(lucid.tensor(np.ascontiguousarray(upstream)))
        return numbers(out), numbers(x.grad)

    exact = run(lambda x: layer_norm(x, 512), array.astype(np.float64), upstream.astype(np.float64))
    rows = run(lambda x: layer_norm(x, 512), array, upstream)
    columns = run(lambda x: batch_norm(x, None, None, training=True), array.T, upstream.T)
    for got in (rows, [one.T for one in columns]):
        for one, expected, allowed in zip(got, exact, (2**-10, 2**-9), strict=True):
            assert np.sqrt(np.mean((one - expected) ** 2)) < allowed * np.sqrt(np.mean(expected**2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("count", [3, 1000, 10000])
@pytest.mark.parametrize("norm", NORMS)
def test_equal_numbers_are_at_their_mean(norm, count, dtype, rng):
    """Nothing is left of numbers that are all the same: the error of a rounded mean is not divided by sqrt(eps)."""
    x = lucid.full((count, 3), float(rng.uniform(1e7, 2e7)), dtype=getattr(lucid, dtype))
    assert not numbers(NORMS[norm](x)).astype(np.float64).any()


@pytest.mark.parametrize("count", [64, LONG_ROW // 2])
@pytest.mark.parametrize("op", [layer_norm, batch_norm])
def test_a_large_mean_costs_gradients_no_more_than_results(op, count, rng):
    """Of short rows, and of columns, it is taken off before anything is summed: gradients round as results do."""
    array = (rng.standard_normal((2048, count)) + 10000).astype(np.float32)
    upstream = (rng.standard_normal((2048, count)) + 1).astype(np.float32)
    if op is batch_norm:
        array, upstream = (np.ascontiguousarray(each.T) for each in (array, upstream))

    def run(dtype):
        x = lucid.tensor(array.astype(dtype), requires_grad=True)
        out = layer_norm(x, count) if op is layer_norm else batch_norm(x, None, None, training=True)
        out.backward(lucid.tensor(upstream.astype(dtype)))
        return numbers(out), numbers(x.grad)

    result, gradient = (
        np.sqrt(np.mean((one - other) ** 2) / np.mean(other**2))
        for one, other in zip(run(np.float32), run(np.float64), strict=True)
    )
    # compiled rows are off by the last digit only, whatever their mean
    assert gradient < max(1.4 * result, 2**-23)


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 5)])
def test_running_statistics(shape, rng):
    """In training they move by `momentum` towards the batch's mean and unbiased variance, in place; else they stay."""
    array = rng.standard_normal(shape)
    start_mean, start_var = rng.standard_normal(3), rng.uniform(1, 2, 3)
    running_mean, running_var = lucid.tensor(start_mean), lucid.tensor(start_var)
    x = lucid.tensor(array, requires_grad=True)
    batch_norm(x, running_mean, running_var, training=True, momentum=0.3)
    axes = (0, *range(2, len(shape)))
    np.testing.assert_allclose(numbers(running_mean), 0.7 * start_mean + 0.3 * array.mean(axes), rtol=1e-12)
    np.testing.assert_allclose(numbers(running_var), 0.7 * start_var + 0.3 * array.var(axes, ddof=1), rtol=1e-12)
    assert (running_mean._version, running_var._version) == (1, 1)
    assert not running_mean.requires_grad
    batch_norm(x, running_mean, running_var, training=False)
    assert (running_mean._version, running_var._version) == (1, 1)


def test_running_statistics_of_instances(rng):
    """They move towards the mean over the samples of each one's mean and unbiased variance."""
    array = rng.standard_normal((4, 3, 5))
    running_mean, running_var = lucid.zeros(3, dtype=lucid.float64), lucid.ones(3, dtype=lucid.float64)
    instance_norm(lucid.tensor(array), running_mean, running_var, momentum=0.1)
    np.testing.assert_allclose(numbers(running_mean), 0.1 * array.mean(2).mean(0), rtol=1e-12)
    np.testing.assert_allclose(numbers(running_var), 0.9 + 0.1 * array.var(2, ddof=1).mean(0), rtol=1e-12)


def test_nothing_moves_after_a_mistake():
    """A call that is refused leaves the running statistics alone."""
    running = lucid.zeros(3)
    with pytest.raises(ShapeError, match="more than 1 value per channel when training"):
        batch_norm(lucid.ones(1, 3), running, None, training=True)
    with pytest.raises(ShapeError, match=r"expected weight of shape \[3\]"):
        batch_norm(lucid.ones(2, 3), running, None, lucid.ones(2), training=True)
    assert running._version == 0


def test_batch_norm_mistakes():
    """Missing statistics, wrong numbers of channels and inputs without channels are refused."""
    x = lucid.ones(2, 3)
    with pytest.raises(ShapeError, match="Expected running_mean and running_var to be defined when training=False"):
        batch_norm(x, None, None)
    with pytest.raises(ShapeError, match="running_mean should contain 3 elements"):
        batch_norm(x, lucid.zeros(2), lucid.ones(3))
    with pytest.raises(ShapeError, match="at least 2 dimensions"):
        batch_norm(lucid.ones(3), None, None, training=True)
    with pytest.raises(ShapeError, match="more than 1 spatial element"):
        instance_norm(lucid.ones(2, 3, 1))
    with pytest.raises(ShapeError, match="divisible by num_groups"):
        group_norm(lucid.ones(2, 4), 3)


def test_layer_norm_mistakes():
    """Shapes that do not end in normalized_shape, and parameters of other shapes or dtypes, are refused."""
    x = lucid.ones(2, 4)
    with pytest.raises(ShapeError, match=r"Given normalized_shape=\[5\], expected input with shape \[\*, 5\]"):
        layer_norm(x, 5)
    with pytest.raises(ShapeError, match=r"input of size \[2, 4\]"):
        rms_norm(x, (3, 2, 4))
    with pytest.raises(ShapeError, match=r"expected bias of shape \[4\]"):
        layer_norm(x, 4, lucid.ones(4), lucid.ones(3))
    with pytest.raises(DtypeError, match=r"lucid\.float32, got lucid\.float64"):
        layer_norm(x, 4, lucid.ones(4, dtype=lucid.float64))
    with pytest.raises(DtypeError, match="real floating-point"):
        layer_norm(lucid.tensor([1, 2]), 2)


def test_half_inputs_take_float32_parameters(rng):
    """Half types go with float32 parameters, whose gradients are float32."""
    x = lucid.tensor(rng.standard_normal((4, 8)), dtype=lucid.float16, requires_grad=True)
    weight = lucid.tensor(rng.uniform(0.5, 1, 8), dtype=lucid.float32, requires_grad=True)
    out = layer_norm(x, 8, weight)
    assert out.dtype == lucid.float16
    out.backward(lucid.tensor(rng.standard_normal((4, 8)), dtype=lucid.float16))
    assert (x.grad.dtype, weight.grad.dtype) == (lucid.float16, lucid.float32)


def test_frozen_parameters_cost_no_gradient(rng):
    """Only what requires grad gets one: the parameters alone, or the input alone."""
    array, upstream = rng.standard_normal((4, 8)), lucid.tensor(rng.standard_normal((4, 8)))
    for wanted in range(3):
        tensors = [lucid.tensor(a) for a in (array, rng.uniform(0.5, 1, 8), rng.standard_normal(8))]
        tensors[wanted].requires_grad_()
        layer_norm(tensors[0], 8, *tensors[1:]).backward(upstream)
        assert [t.grad is not None for t in tensors] == [place == wanted for place in range(3)]


@pytest.mark.parametrize("columns", [8, LONG_ROW])
@pytest.mark.parametrize(
    "op",
    [
        lambda x, weight, bias: layer_norm(x, weight.shape, weight, bias),
        lambda x, weight, bias: group_norm(x, 2, weight, bias),
        lambda x, weight, bias: batch_norm(x, None, None, weight, bias, training=True),
    ],
    ids=["layer_norm", "group_norm", "batch_norm"],
)
def test_frozen_operands_leave_the_other_gradients(op, columns, rng):
    """A gradient is the same whichever others are wanted beside it."""
    arrays = rng.standard_normal((4, columns)), rng.uniform(0.5, 1, columns), rng.standard_normal(columns)
    upstream = lucid.tensor(rng.standard_normal((4, columns)), device=DEVICE)

    def gradients(wanted):
        tensors = [lucid.tensor(a, device=DEVICE, requires_grad=w) for a, w in zip(arrays, wanted, strict=True)]
        op(*tensors).backward(upstream)
        return [numbers(t.grad) if w else None for t, w in zip(tensors, wanted, strict=True)]

    expected = gradients((True, True, True))
    assert all(np.abs(grad).max() > 0.01 for grad in expected)
    for wanted in itertools.product((False, True), repeat=3):
        if any(wanted):
            for got, other in zip(gradients(wanted), expected, strict=True):
                if got is not None:
                    np.testing.assert_allclose(got, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("shape", [(1, 6), (1, 6, 1)])
@pytest.mark.parametrize("groups", [1, 2])
def test_one_value_for_each_weight(shape, groups):
    """Where each weight meets one value its gradient is that product, also beside the gradient of the input."""
    random = np.random.default_rng(3)
    x, weight, upstream = random.standard_normal(shape), random.standard_normal(6), random.standard_normal(shape)
    sets = x.reshape(groups, -1)
    standard = (sets - sets.mean(1, keepdims=True)) / np.sqrt(sets.var(1, keepdims=True) + 1e-5)
    x, weight = (lucid.tensor(each, device=DEVICE, requires_grad=True) for each in (x, weight))
    group_norm(x, groups, weight).backward(lucid.tensor(upstream, device=DEVICE))
    expected = standard.reshape(-1) * upstream.reshape(-1)
    np.testing.assert_allclose(weight.grad.cpu().numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("shape", [(0, 6, 3), (2, 6, 0), (0, 6)])
def test_weights_of_no_values(shape):
    """Over a batch of no values batch_norm's weight and bias get zeros, also beside the gradient of the input."""
    x, weight, bias = (lucid.ones(s, device=DEVICE, requires_grad=True) for s in (shape, (6,), (6,)))
    batch_norm(x, None, None, weight, bias, training=True).sum().backward()
    assert x.grad.shape == shape
    assert weight.grad.tolist() == bias.grad.tolist() == [0.0] * 6


@pytest.mark.parametrize(
    ("op", "shape"),
    [(batch_norm, (0, 3)), *[(op, s) for op in (batch_norm, instance_norm) for s in ((0, 3, 2), (2, 3, 0))]],
)
def test_a_batch_of_nothing_moves_no_statistics(op, shape, rng):
    """No values have no mean: the running statistics, and their versions, stay as they are."""
    start = rng.standard_normal(3), rng.uniform(1, 2, 3)
    running = [lucid.tensor(each, device=DEVICE) for each in start]
    setting = {"training": True} if op is batch_norm else {}
    assert op(lucid.ones(shape, device=DEVICE, dtype=lucid.float64), *running, **setting).shape == shape
    for tensor, expected in zip(running, start, strict=True):
        np.testing.assert_array_equal(tensor.cpu().numpy(), expected)
        assert tensor._version == 0


def test_images_of_no_channels_are_normalised():
    """Of no channels there are no statistics to keep, and what comes out is as empty, with its gradient."""
    x = lucid.ones(2, 0, 3, device=DEVICE, requires_grad=True)
    running = [lucid.ones(0, device=DEVICE) for _ in range(2)]
    batch_norm(x, *running, training=True).sum().backward()
    assert x.grad.shape == (2, 0, 3)


@pytest.mark.parametrize("shape", [(2, 3, ROWS_BLOCK // 4), (ROWS_BLOCK + 8,)], ids=["channels", "one row"])
def test_values_of_several_rows_belong_together_in_large_arrays(shape, rng):
    """More values than a block of rows has are normalised over all of the dimensions, and so are gradients."""
    array = rng.standard_normal(shape)
    x, again = (lucid.tensor(array, device=DEVICE, requires_grad=True) for _ in range(2))
    weights = lucid.tensor(rng.standard_normal(shape), device=DEVICE)
    if len(shape) == 3:
        out, expected = batch_norm(x, None, None, training=True), by_hand(again, (0, 2))
    else:
        out, expected = layer_norm(x, shape), by_hand(again, (0,))
    np.testing.assert_allclose(numbers(out), numbers(expected), rtol=1e-9, atol=1e-9)
    sum(out * weights).backward()
    sum(expected * weights).backward()
    np.testing.assert_allclose(numbers(x.grad), numbers(again.grad), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("size", [3e19, 1e30])
def test_a_mean_whose_square_is_infinite(size, rng):
    """It is taken off first: what is left has a variance, on both devices."""
    array = (size * (1 + 1e-3 * rng.standard_normal((40, 2)))).astype(np.float32)
    x = lucid.tensor(array, device=DEVICE)
    running = lucid.zeros(2, device=DEVICE), lucid.ones(2, device=DEVICE)
    got = batch_norm(x, *running, training=True)
    exact = batch_norm(lucid.tensor(array.astype(np.float64)), None, None, training=True)
    if size < 1e20:
        np.testing.assert_allclose(numbers(got), numbers(exact), rtol=1e-2, atol=1e-2)
    assert np.all(np.isfinite(numbers(got)))
    assert np.all(np.isfinite(numbers(running[0])))
    assert not np.any(np.isnan(numbers(running[1])))


@pytest.mark.parametrize("op", [rms_norm, layer_norm])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_second_derivative_of_a_row_of_zeros(dtype, op):
    """It is that of float64: padding in float16 gives no NaN."""

    def second(dtype):
        x = lucid.zeros(5, dtype=dtype, device=DEVICE, requires_grad=True)
        upstream = lucid.tensor([1.0, 2.0, -1.0, 0.5, 3.0], dtype=dtype, device=DEVICE, requires_grad=True)
        (first,) = lucid.autograd.grad(op(x, (5,), None, eps=1e-5), x, upstream, create_graph=True)
        along = lucid.tensor([0.125, 0.25, -0.25, 0.5, 1.0], dtype=dtype, device=DEVICE)
        return [numbers(g).astype(np.float64) for g in lucid.autograd.grad(first, (x, upstream), along)]

    for got, exact in zip(second(getattr(lucid, dtype)), second(lucid.float64), strict=True):
        np.testing.assert_allclose(got, exact, rtol=2e-2, atol=2.0)


@pytest.mark.parametrize(
    ("dtype", "added"), [("float16", 2**-23), ("bfloat16", 2**-23), ("float32", 2**-23), ("float64", 2**-52)]
)
def test_rms_norm_adds_the_eps_of_what_it_computes_in(dtype, added):
    """Half types are computed in float32, whose eps small numbers are divided with; nn.RMSNorm does the same."""
    size = added**0.5
    x = lucid.tensor([size, -size], dtype=getattr(lucid, dtype))
    expected = np.array([1, -1]) * 0.5**0.5
    for out in (rms_norm(x, (2,)), lucid.nn.RMSNorm(2, dtype=x.dtype)(x)):
        np.testing.assert_allclose(out.to(lucid.float64).cpu().numpy(force=True), expected, rtol=1e-2)


def test_rows_around_zero_beside_rows_far_from_it(rng):
    """Whether the rounding of a mean counts is asked of each row, and of long rows where it always may."""
    x = rng.standard_normal((2, 64)).astype(np.float32)
    x[1] = 0.1
    assert not lucid.nn.functional.layer_norm(lucid.tensor(x), (64,))[1].any()
    many = 1 << 20
    assert not _is_exact(np.full(1, 0.5, np.float32), np.full(1, many, np.float32), many)
    assert not _is_exact(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 64)


def test_rows_on_either_side_of_zero():
    """The rounding of a mean counts as much below zero as above it."""
    for value in (1e4 / 3, -1e4 / 3):
        x = lucid.tensor(np.full((1, 1000), value, np.float32))
        assert lucid.nn.functional.layer_norm(x, (1000,)).abs().max().item() < 1e-2


# the shape of the input, the dimensions that are summed over, the shape of the weights, and whether a mean is taken off
KINDS = {
    "layer": ((70, 30), (1,), (30,), True),
    "layer of long rows": ((5, 2, 1500), (2,), (1500,), True),
    "root mean square": ((70, 30), (1,), (30,), False),
    "groups": ((4, 3, 2, 40), (2, 3), (1, 3, 2, 1), True),
    "groups of long lines": ((2, 3, 2, 300), (2, 3), (1, 3, 2, 1), True),
    "instances": ((4, 3, 5, 8), (2, 3), (1, 3, 1, 1), True),
    "channels of images": ((6, 9, 4, 5), (0, 2, 3), (1, 9, 1, 1), True),
    "channels of a batch": ((40, 9), (0,), (1, 9), True),
    "one row": ((1, 30), (1,), (30,), True),
}


@pytest.mark.parametrize("block", [7, 100, 1 << 17])
@pytest.mark.parametrize("weighed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_and_lines(kind, weighed, block, rng, monkeypatch):
    """Values and each of the gradients, alone or together, are those of the formula, whatever is computed at a time."""
    monkeypatch.setattr(primitives, "BLOCK", block)
    shape, dim, broadcast, center = KINDS[kind]
    x, grad = 3 + rng.standard_normal(shape), rng.standard_normal(shape)
    weight, bias = (rng.standard_normal(broadcast), rng.standard_normal(broadcast)) if weighed else (None, None)
    settings = {"dim": dim, "eps": 0.1, "center": center, "broadcast": broadcast}
    got = normalise.cpu(x, weight, bias, **settings)
    mean = x.mean(dim, keepdims=True) if center else np.zeros_like(got[1])
    variance = ((x - mean) ** 2).mean(dim, keepdims=True)
    y = (x - mean) / np.sqrt(variance + 0.1)
    expected = y * weight + bias if weighed else y
    for one, other in zip(got, (expected, mean, variance), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    h = grad * weight if weighed else grad
    along = y * (h * y).mean(dim, keepdims=True) + (h.mean(dim, keepdims=True) if center else 0)
    over = tuple(range(len(shape) - len(broadcast))) + tuple(
        d for d, size in enumerate(broadcast, len(shape) - len(broadcast)) if size == 1 < shape[d]
    )
    wanted = [(h - along) / np.sqrt(variance + 0.1), (grad * y).sum(over), grad.sum(over)]
    for wants in itertools.product([True, False], repeat=3):
        some = normalise_grad.cpu(grad, x, weight, mean, variance, wants=wants, **settings)
        for one, other, needed in zip(some, wanted, wants, strict=True):
            if needed:
                np.testing.assert_allclose(one.reshape(other.shape), other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("columns", [3, 2000])
def test_no_rows(columns):
    """No rows are normalised, and give weight and bias gradients of zero, however long they would be."""
    settings = {"dim": (1,), "eps": 0.1, "center": True, "broadcast": (columns,)}
    none = np.zeros((0, columns))
    out, mean, variance = normalise.cpu(none, np.ones(columns), np.ones(columns), **settings)
    assert (out.shape, mean.shape, variance.shape) == ((0, columns), (0, 1), (0, 1))
    grads = normalise_grad.cpu(none, none, np.ones(columns), mean, variance, wants=(True,) * 3, **settings)
    assert [each.shape for each in grads] == [(0, columns), (columns,), (columns,)]
    assert not grads[1].any()
    assert not grads[2].any()


def test_a_repeated_gradient(rng):
    """A gradient whose elements lie in one place, as that of a sum, gives what it gives written out."""
    x, weight = rng.standard_normal((6, 300)), rng.standard_normal(300)
    settings = {"dim": (1,), "eps": 0.1, "center": True, "broadcast": (300,)}
    _, mean, variance = normalise.cpu(x, weight, None, **settings)
    repeated = np.broadcast_to(rng.standard_normal((6, 1)), x.shape)
    for grad in (repeated, repeated[:, ::-1], np.broadcast_to(np.float64(2), x.shape)):
        got = normalise_grad.cpu(grad, x, weight, mean, variance, wants=(True,) * 3, **settings)
        expected = normalise_grad.cpu(grad.copy(), x, weight, mean, variance, wants=(True,) * 3, **settings)
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 100])
def test_column_products(rows, rng):
    """Rows are weighed and added up: a thousand tenths are a hundred to a few units of the last digit."""
    x, y = rng.standard_normal((rows, 5)), rng.standard_normal((rows, 1))
    np.testing.assert_allclose(column_products(x, y), (x * y).sum(0), rtol=1e-12, atol=1e-13)
    tenths = np.full((1000 * rows, 2), np.float32(0.1))
    total = column_products(tenths, np.ones((1000 * rows, 1), np.float32))
    np.testing.assert_allclose(total, [100 * rows] * 2, rtol=1e-6)


def test_what_is_computed_at_a_time():
    """Blocks of rows, or of channels where the rows of a batch belong together, have no more elements than may be."""
    least = primitives.BLOCK // 4
    rows = primitives._blocks(np, (10, least), (1,))
    assert rows == [(slice(0, 4),), (slice(4, 8),), (slice(8, 10),)]
    channels = primitives._blocks(np, (4, 6, least // 4), (0, 2))
    assert channels == [(slice(None), slice(0, 4)), (slice(None), slice(4, 6))]
    assert primitives._blocks(np, (4, 4, least // 4), (0, 2)) == [(...,)]
