"""Convolutions: errors, blocks, half types."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.base.dtype import bfloat16
from lucid.errors import DtypeError, ShapeError
from lucid.ops.layers import strips
from lucid.ops.layers.convolution import conv1d, conv2d, conv_transpose2d
from tests.device import DEVICE


def ones(*shape, dtype=None):
    return lucid.tensor(np.ones(shape, np.float32), dtype=dtype)


WRONG = {
    "channels": (
        lambda: conv2d(ones(1, 3, 8, 8), ones(6, 2, 3, 3)),
        r"expected input with 2 channels \(weight has shape \(6, 2, 3, 3\), groups is 1\), got 3",
    ),
    "dimensions": (
        lambda: conv2d(ones(8, 8), ones(6, 2, 3, 3)),
        r"expected input of 4 dimensions .* got shape \(8, 8\)",
    ),
    "weight": (lambda: conv1d(ones(2, 8), ones(6, 2, 3, 3)), "weight of 3 dimensions"),
    "bias": (lambda: conv2d(ones(1, 3, 8, 8), ones(6, 3, 3, 3), ones(5)), r"bias of shape \(6,\), got \(5,\)"),
    "kernel": (lambda: conv2d(ones(1, 3, 2, 2), ones(6, 3, 3, 3)), r"spans \(3, 3\) elements.*only \(2, 2\)"),
    "groups": (lambda: conv2d(ones(2, 8, 8, 8), ones(6, 2, 3, 3), groups=4), "groups to be positive and to divide"),
    "no groups": (lambda: conv2d(ones(2, 8, 8, 8), ones(6, 2, 3, 3), groups=0), "groups to be positive"),
    "stride": (lambda: conv2d(ones(1, 3, 8, 8), ones(6, 3, 3, 3), stride=0), "stride to be .* at least 1, got 0"),
    "padding": (lambda: conv2d(ones(1, 3, 8, 8), ones(6, 3, 3, 3), padding=-1), "padding to be .* at least 0, got -1"),
    "tuple": (lambda: conv2d(ones(1, 3, 8, 8), ones(6, 3, 3, 3), padding=(1, 1, 1)), "tuple of 2"),
    "same": (lambda: conv2d(ones(1, 3, 8, 8), ones(6, 3, 3, 3), padding="same", stride=2), "needs stride 1"),
    "word": (lambda: conv2d(ones(1, 3, 8, 8), ones(6, 3, 3, 3), padding="full"), "'same', 'valid'"),
    "transposed channels": (lambda: conv_transpose2d(ones(2, 3, 8, 8), ones(4, 3, 3, 3)), "input with 4 channels"),
    "output padding": (
        lambda: conv_transpose2d(ones(2, 4, 8, 8), ones(4, 3, 3, 3), stride=2, output_padding=2),
        "output_padding to be smaller than stride or dilation",
    ),
    "nothing left": (lambda: conv_transpose2d(ones(2, 4, 1, 1), ones(4, 3, 1, 1), padding=1), r"size \(-1, -1\)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_shapes_that_do_not_fit(case):
    """A shape error names the op, what was expected and what was got."""
    call, message = WRONG[case]
    with pytest.raises(ShapeError, match=message):
        call()


def test_dtypes_are_not_mixed():
    """A convolution takes operands of one dtype."""
    with pytest.raises(DtypeError, match="one dtype"):
        conv2d(ones(1, 3, 8, 8), ones(6, 3, 3, 3, dtype=lucid.float64))


def test_operands_that_are_missing():
    """None is no weight, and an error names it; sizes may stand in an array of NumPy, as other settings may."""
    for op in (conv2d, conv_transpose2d):
        with pytest.raises(TypeError, match=rf"{op.__name__}: weight: expected"):
            op(ones(1, 3, 8, 8), None)
    assert conv2d(ones(1, 3, 8, 8), ones(6, 3, 3, 3), padding=np.array([1, 0])).shape == (1, 6, 8, 6)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("op", [conv2d, conv_transpose2d])
def test_blocks(op, kernel, rng, monkeypatch):
    """Values and gradients do not depend on how many images are multiplied at a time, a shorter last block included."""
    arrays = [rng.standard_normal(shape) for shape in ((5, 4, 6, 7), (4, 4, kernel, kernel), (4,))]
    upstream = None
    results = []
    one_image = 4 * kernel**2 * 6 * 7 * 8
    for budget in (1, 2 * one_image, 100 * one_image):
        monkeypatch.setattr(strips, "CPU_BLOCK", budget)
        tensors = [lucid.tensor(a).requires_grad_() for a in arrays]
        out = op(*tensors, padding=kernel // 2)
        upstream = rng.standard_normal(out.shape) if upstream is None else upstream
        results.append([out.detach(), *lucid.autograd.grad([out], tensors, [lucid.tensor(upstream)])])
    for other in results[1:]:
        for got, expected in zip(other, results[0], strict=True):
            np.testing.assert_allclose(got.numpy(force=True), expected.numpy(force=True), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16.numpy])
def test_half_types_sum_in_float32(dtype):
    """A convolution of half types is rounded once: 4608 ones add up to 4608."""
    x, w = lucid.tensor(np.ones((1, 512, 3, 3), dtype)), lucid.tensor(np.ones((1, 512, 3, 3), dtype))
    out = conv2d(x, w)
    assert out.array.dtype == dtype
    assert float(out.numpy(force=True)[0, 0, 0, 0]) == 4608


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_images_of_no_channels(count, groups, kernel, rng):
    """A sum over no channels is zero: the bias alone is left, and has a gradient, also where it is transposed."""
    size, bias = (4,) * count, rng.standard_normal(4)
    for name, weight, made in (("conv", (4, 0), 5 - kernel), ("conv_transpose", (0, 4 // groups), 3 + kernel)):
        x = lucid.ones(2, 0, *size, dtype=lucid.float64, device=DEVICE, requires_grad=True)
        w = lucid.ones(*weight, *[kernel] * count, dtype=lucid.float64, device=DEVICE, requires_grad=True)
        b = lucid.tensor(bias, device=DEVICE, requires_grad=True)
        out = getattr(lucid.nn.functional, f"{name}{count}d")(x, w, b, groups=groups)
        over_all = bias.reshape(1, 4, *[1] * count)
        np.testing.assert_array_equal(out.detach().cpu().numpy(), np.broadcast_to(over_all, (2, 4, *[made] * count)))
        upstream = rng.standard_normal(out.shape)
        grads = lucid.autograd.grad(out, (x, w, b), lucid.tensor(upstream, device=DEVICE), create_graph=True)
        assert [grad.shape for grad in grads[:2]] == [x.shape, w.shape]
        np.testing.assert_allclose(grads[2].cpu().numpy(), upstream.sum((0, *range(2, count + 2))), rtol=1e-12)
        assert [grad.shape for grad in lucid.autograd.grad(grads[0].sum() + grads[1].sum(), (x, w))] == [
            x.shape,
            w.shape,
        ]


def test_second_derivatives_add_up_in_one_order(rng):
    """The gradient of the upstream one is what comes through bias, weight and input, added in this order."""
    x, weight, bias = [
        lucid.tensor(rng.standard_normal(shape), dtype=lucid.float32, device="cpu", requires_grad=True)
        for shape in ((2, 4, 30), (8, 4, 2), (8,))
    ]
    out = conv1d(x, weight, bias)
    upstream, *seeds = [
        lucid.tensor(rng.standard_normal(like.shape), dtype=lucid.float32, device="cpu")
        for like in (out, x, weight, bias)
    ]
    upstream.requires_grad_()
    grads = lucid.autograd.grad(out, (x, weight, bias), upstream, create_graph=True)
    parts = [
        lucid.autograd.grad(grad, upstream, seed, retain_graph=True)[0] for grad, seed in zip(grads, seeds, strict=True)
    ]
    (whole,) = lucid.autograd.grad(grads, upstream, seeds)
    np.testing.assert_array_equal(whole.numpy(), (parts[2] + parts[1] + parts[0]).numpy())
