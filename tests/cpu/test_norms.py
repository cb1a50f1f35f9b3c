"""Compiled batch, group and instance norm: exact, alike in special values, and without effect of the layout."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.backends import cpu
from lucid.nn import functional as F

EPS = 1e-5
ULP = 2.0**-23
# name, shape, groups: of batch norm None, of instance norm one for each channel
CASES = {
    "batch": ((5, 3, 6, 7), None),
    "batch of large planes": ((2, 3, 40, 41), None),
    "batch of sequences": ((4, 5, 33), None),
    "batch of single pixels": ((9, 5, 1, 1), None),
    "batch of volumes": ((2, 2, 3, 4, 5), None),
    "batch of features": ((37, 70), None),
    "batch of many features": ((3, 200), None),
    "one channel": ((4, 1, 5, 5), None),
    "groups": ((3, 12, 5, 7), 4),
    "groups of large planes": ((2, 4, 30, 31), 2),
    "groups of features": ((6, 24), 3),
    "one group": ((3, 6, 4, 4), 1),
    "instances": ((3, 5, 6, 7), 5),
    "instances of one channel": ((3, 1, 9), 1),
}


def axes_of(shape, groups):
    """Return the shape in which values are normalised together, and the dimensions of them."""
    if groups is None:
        return shape, (0, *range(2, len(shape)))
    whole = (shape[0], groups, shape[1] // groups, *shape[2:])
    return whole, tuple(range(2, len(whole)))


def exact(groups, x, grad, weight, bias):
    """Return the result and the gradients in float64."""
    shape = x.shape
    whole, axes = axes_of(shape, groups)
    x, grad = x.astype("float64"), grad.astype("float64")
    per_channel = (1, shape[1], *(1,) * (len(shape) - 2))
    rest = tuple(d for d in range(len(shape)) if d != 1)

    def mean(values):
        kept = np.broadcast_to(values.reshape(whole).mean(axes, keepdims=True), whole)
        return kept.reshape(shape)

    centred = x - mean(x)
    r = 1 / np.sqrt(mean(centred * centred) + EPS)
    y, h = centred * r, grad * weight.reshape(per_channel)
    to_x = r * (h - mean(h) - y * mean(h * y))
    return y * weight.reshape(per_channel) + bias.reshape(per_channel), to_x, (grad * y).sum(rest), grad.sum(rest)


def called(groups, x, weight=None, bias=None):
    """Return the normalised tensor."""
    if groups is None:
        return F.batch_norm(x, None, None, weight, bias, training=True, eps=EPS)
    if groups == x.shape[1] and x.ndim > 2:
        return F.instance_norm(x, None, None, weight, bias, eps=EPS)
    return F.group_norm(x, groups, weight, bias, EPS)


def computed(groups, x, grad, weight, bias):
    """Return the result and the gradients as lucid computes them."""
    tensors = [lucid.from_numpy(array).requires_grad_() for array in (x, weight, bias)]
    out = called(groups, *tensors)
    out.backward(lucid.from_numpy(grad))
    return [each.numpy() for each in (out.detach(), *[tensor.grad for tensor in tensors])]


def operands(shape, offset=0.0):
    """Return an input, an upstream gradient, weight and bias."""
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal(each) for each in (shape, shape, shape[1:2], shape[1:2])]
    return [(array + offset * (number == 0)).astype("float32") for number, array in enumerate(arrays)]


def errors(ours, theirs):
    """Return the largest error of each array as a share of the largest number."""
    return [float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in zip(ours, theirs, strict=True)]


@pytest.mark.parametrize("offset", [0.0, 100.0, 1e4])
@pytest.mark.parametrize(("shape", "groups"), CASES.values(), ids=CASES)
def test_errors(compiled, shape, groups, offset):
    """No result is further from float64 than four last digits of the largest number, however far the mean is from 0."""
    arrays = operands(shape, offset)
    ours = errors(computed(groups, *arrays), exact(groups, *arrays))
    assert len(compiled) == 2
    assert max(ours) <= 4 * ULP, ours


def test_the_first_value_far_from_the_others(compiled):
    """Sums about it lose nothing."""
    x, grad, weight, bias = operands((4, 3, 9, 9))
    x[0, :, 0, 0] = 1e5
    expected = exact(None, x, grad, weight, bias)
    out, *grads = computed(None, x, grad, weight, bias)
    assert max(errors([out, *grads], expected)) <= 16 * ULP
    assert len(compiled) == 2


def test_one_number_is_0(compiled):
    """Equal numbers are at their mean exactly, and their variance is 0."""
    for groups, shape in ((None, (7, 3, 5, 5)), (None, (7, 3)), (3, (7, 6, 5)), (6, (7, 6, 5))):
        out = called(groups, lucid.from_numpy(np.full(shape, 0.1, np.float32)))
        assert not out.numpy().any()
    assert len(compiled) == 4


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("shape", "groups"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("at", [0, -1])
def test_special_values(compiled, monkeypatch, shape, groups, value, at):
    """What is normalised together with NaN or an infinity is NaN, as of NumPy's path, and nothing else."""
    x, grad, weight, bias = operands(shape)
    x.reshape(-1)[at] = value
    ours = computed(groups, x, grad, weight, bias)
    assert len(compiled) == 2
    monkeypatch.setattr(cpu, "compiled", False)
    for one, other in zip(ours, computed(groups, x, grad, weight, bias), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=64 * ULP * max(1, np.nanmax(np.abs([0, *other.flat]))))


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf])
@pytest.mark.parametrize("at", [(0, 1, 0, 0), (2, 1, 3, 1)])
def test_running_statistics(compiled, monkeypatch, value, at):
    """They follow as by NumPy's path, and mean and variance of a batch with NaN or an infinity are the same."""
    x = operands((6, 3, 4, 4), 3.0)[0]
    x[at] = value

    def statistics():
        mean, variance = lucid.zeros(3, device="cpu"), lucid.ones(3, device="cpu")
        F.batch_norm(lucid.from_numpy(x), mean, variance, training=True, momentum=0.25)
        F.instance_norm(lucid.from_numpy(x), mean, variance, momentum=0.25)
        return mean.numpy(), variance.numpy()

    ours = statistics()
    assert len(compiled) == 2
    monkeypatch.setattr(cpu, "compiled", False)
    for one, other in zip(ours, statistics(), strict=True):
        np.testing.assert_allclose(one, other, rtol=8 * ULP)


LAYOUTS = {
    "channels last": lambda x: np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1),
    "every other": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("case", ["batch", "batch of features", "groups", "instances"])
def test_layouts(compiled, case, layout):
    """Whatever the strides, the numbers are the same."""
    shape, groups = CASES[case]
    x, grad, weight, bias = operands(shape)
    expected = computed(groups, x, grad, weight, bias)
    ours = computed(groups, layout(x), layout(grad), weight, bias)
    assert len(compiled) == 4
    for one, other in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.bfloat16])
@pytest.mark.parametrize("case", ["batch", "batch of features", "groups", "instances"])
def test_half_types(compiled, case, dtype):
    """They are computed in float32 and rounded once."""
    shape, groups = CASES[case]
    x, grad, weight, bias = [lucid.from_numpy(each).to(dtype) for each in operands(shape)]
    half, whole = x.clone().requires_grad_(), x.float().requires_grad_()
    out, wide = called(groups, half, weight, bias), called(groups, whole, weight.float(), bias.float())
    assert (out == wide.to(dtype)).all()
    out.backward(grad)
    wide.backward(grad.float())
    assert len(compiled) == 4
    assert half.grad.dtype == dtype
    assert (half.grad == whole.grad.to(dtype)).all()


@pytest.mark.parametrize("case", ["batch", "batch of features", "groups", "instances"])
def test_what_is_wanted(compiled, case):
    """Each gradient is the same, whichever others are asked for; without weights there is one."""
    shape, groups = CASES[case]
    arrays = x, grad, weight, bias = operands(shape)
    whole = computed(groups, *arrays)[1:]
    for number in range(3):
        tensors = [lucid.from_numpy(each).requires_grad_(at == number) for at, each in enumerate((x, weight, bias))]
        called(groups, *tensors).backward(lucid.from_numpy(grad))
        np.testing.assert_array_equal(tensors[number].grad.numpy(), whole[number])
    ones = computed(groups, x, grad, np.ones_like(weight), np.zeros_like(bias))
    bare = lucid.from_numpy(x).requires_grad_()
    out = called(groups, bare)
    out.backward(lucid.from_numpy(grad))
    np.testing.assert_array_equal(out.detach().numpy(), ones[0])
    np.testing.assert_array_equal(bare.grad.numpy(), ones[1])
    assert len(compiled) == 12


@pytest.mark.parametrize("case", ["batch", "batch of features", "groups", "instances"])
def test_two_derivatives(compiled, case):
    """The gradient of a gradient is that of a difference of gradients."""
    shape, groups = CASES[case]
    x, grad, weight, bias = operands(shape)
    step = np.random.default_rng(9).standard_normal(shape)
    near = [exact(groups, x + sign * 1e-5 * step, grad, weight, bias)[1] for sign in (1, -1)]
    point = lucid.from_numpy(x).requires_grad_()
    out = called(groups, point, lucid.from_numpy(weight), lucid.from_numpy(bias))
    (first,) = lucid.autograd.grad(out, point, lucid.from_numpy(grad), create_graph=True)
    # the second derivative is symmetric
    (second,) = lucid.autograd.grad(first, point, lucid.from_numpy(step.astype("float32")))
    assert len(compiled) > 2
    np.testing.assert_allclose(second.numpy(), (near[0] - near[1]) / 2e-5, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("shape", [(4, 3, 5, 5), (4, 20), (2, 3, 1), (1, 3, 40)])
@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float16])
def test_evaluation(compiled, monkeypatch, shape, dtype):
    """Given statistics give the bits of NumPy's path: a product and a sum, each rounded once."""
    x = lucid.from_numpy(operands(shape)[0]).to(dtype)
    x.view(-1)[:3] = lucid.tensor([np.nan, np.inf, -0.0], dtype=dtype, device="cpu")
    mean, weight, bias = [lucid.from_numpy(each).to(dtype) for each in operands((3, shape[1]))[1:]]
    mean = mean[0]
    variance = mean * mean

    def result():
        return F.batch_norm(x, mean, variance, weight, bias).float().numpy()

    ours = result()
    assert compiled == ["rescale_planes"]
    monkeypatch.setattr(cpu, "compiled", False)
    np.testing.assert_array_equal(ours, result())


def test_what_is_compiled(compiled):
    """Other dtypes, and no elements, are NumPy's."""
    for groups, shape in ((None, (3, 4, 5)), (2, (3, 4, 5)), (4, (3, 4, 5))):
        called(groups, lucid.ones(shape, device="cpu", dtype=lucid.float64))
        called(groups, lucid.ones((0, *shape[1:]), device="cpu"))
    assert not compiled
