"""Convolutions on a CUDA device and their gradients, by columns and products, and by one kernel."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.backends import cudnn as switch
from lucid.base import gpu
from lucid.nn import functional
from lucid.ops.layers import convolution_primitives
from lucid.ops.layers.convolution_primitives import convolution, convolution_input_grad, convolution_weight_grad
from tests.kernels.near import FLOATS, assert_near, on_device, rounded

forward, input_grad, weight_grad = convolution.kernel, convolution_input_grad.kernel, convolution_weight_grad.kernel
pytestmark = pytest.mark.gpu
every_float = pytest.mark.parametrize("dtype", FLOATS)

# Shapes of input and weight, stride, padding before, padding after, dilation, groups.
CASES = {
    "images": ((2, 3, 7, 6), (4, 3, 3, 2), (2, 1), (1, 0), (1, 0), (1, 2), 1),
    "one image": ((1, 3, 5, 33), (2, 3, 2, 3), (1, 2), (0, 1), (0, 1), (1, 1), 1),
    "uneven padding": ((2, 2, 5, 4), (3, 2, 2, 4), (1, 1), (0, 1), (1, 2), (1, 1), 1),
    "groups": ((2, 4, 6, 5), (6, 2, 3, 3), (1, 2), (1, 1), (1, 1), (1, 1), 2),
    "pixels": ((3, 4, 5, 3), (6, 4, 1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 1),
    "pixels in groups": ((2, 6, 3, 5), (4, 3, 1, 1), (1, 1), (0, 0), (0, 0), (1, 1), 2),
    "strided pixels": ((2, 3, 5, 7), (4, 3, 1, 1), (2, 3), (0, 0), (0, 0), (1, 1), 1),
    "depthwise": ((2, 3, 7, 6), (3, 1, 3, 3), (2, 1), (1, 1), (1, 1), (1, 2), 3),
    "multiplied": ((3, 2, 5, 31), (6, 1, 3, 2), (1, 2), (1, 0), (1, 0), (1, 1), 2),
    "sequences": ((2, 3, 33), (4, 3, 5), (2,), (4,), (4,), (2,), 1),
    "depthwise sequences": ((2, 4, 1023), (4, 1, 3), (1,), (2,), (2,), (2,), 4),
}
every_case = pytest.mark.parametrize("case", CASES)


class Reference:
    """A convolution of float64 numbers, place by place on an input with its padding."""

    def __init__(self, case, dtype, rng):
        x_shape, w_shape, self.stride, self.before, self.after, self.dilation, self.groups = CASES[case]
        self.x, self.weight, self.bias = (
            rounded(rng.standard_normal(s), dtype) for s in (x_shape, w_shape, w_shape[:1])
        )
        each = zip(x_shape[2:], w_shape[2:], self.stride, self.before, self.after, self.dilation, strict=True)
        self.out = tuple((n + p + q - d * (k - 1) - 1) // s + 1 for n, k, s, p, q, d in each)
        self.g = rounded(rng.standard_normal((x_shape[0], w_shape[0], *self.out)), dtype)

    @property
    def settings(self):
        return {"stride": self.stride, "before": self.before, "dilation": self.dilation, "groups": self.groups}

    def places(self):
        """Yield each place of the window and the elements of the padded input that windows meet there."""
        for place in np.ndindex(*self.weight.shape[2:]):
            each = zip(place, self.out, self.stride, self.dilation, strict=True)
            yield (..., *place), (..., *[slice(p * d, p * d + s * (n - 1) + 1, s) for p, n, s, d in each])

    def padded(self):
        return np.pad(self.x, [(0, 0), (0, 0), *zip(self.before, self.after, strict=True)])

    def split(self, array, axis):
        return array.reshape(*array.shape[:axis], self.groups, -1, *array.shape[axis + 1 :])

    def forward(self):
        weight, x = self.split(self.weight, 0), self.padded()
        y = sum(np.einsum("goc,ngc...->ngo...", weight[k], self.split(x[at], 1)) for k, at in self.places())
        return y.reshape(self.g.shape) + self.bias.reshape(-1, *[1] * len(self.out))

    def input_grad(self):
        weight, dx = self.split(self.weight, 0), np.zeros(self.padded().shape)
        for k, at in self.places():
            part = np.einsum("goc,ngo...->ngc...", weight[k], self.split(self.g, 1))
            dx[at] += part.reshape(dx[at].shape)
        inside = tuple(slice(p, p + n) for p, n in zip(self.before, self.x.shape[2:], strict=True))
        return dx[..., *inside]

    def weight_grad(self):
        x, dw = self.padded(), np.zeros(self.weight.shape)
        for k, at in self.places():
            g, met = (self.split(a, 1).reshape(len(a), self.groups, -1, np.prod(self.out)) for a in (self.g, x[at]))
            dw[k] = np.einsum("ngop,ngcp->goc", g, met).reshape(dw[k].shape)
        return dw


def check(r, dtype):
    """Compare the three functions with the reference."""
    x, weight, bias, g = (on_device(a, dtype).array for a in (r.x, r.weight, r.bias, r.g))
    assert_near(forward(x, weight, bias, out=r.out, **r.settings), r.forward(), dtype)
    assert_near(input_grad(g, weight, size=r.x.shape[2:], **r.settings), r.input_grad(), dtype)
    assert_near(weight_grad(g, x, kernel=r.weight.shape[2:], **r.settings), r.weight_grad(), dtype)


@every_float
@every_case
def test_values(case, dtype, rng):
    """Output and gradients of input and weight, against sums over the places of the window."""
    check(Reference(case, dtype, rng), dtype)


@pytest.mark.parametrize("case", ["images", "groups", "sequences"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_blocks(case, dtype, rng, monkeypatch):
    """Columns are made for as many images at a time as fit, with the same results."""
    monkeypatch.setattr(convolution_primitives, "CUDA_BLOCK", 1)
    check(Reference(case, dtype, rng), dtype)


def test_memory(rng, monkeypatch):
    """The columns take no more memory than their bound."""
    x = on_device(rng.standard_normal((16, 4, 16, 16)), "float32").array
    weight = on_device(rng.standard_normal((2, 4, 5, 5)), "float32").array
    settings = {"stride": (1, 1), "before": (2, 2), "dilation": (1, 1), "groups": 1}
    image = 4 * 25 * 256 * 4
    monkeypatch.setattr(convolution_primitives, "CUDA_BLOCK", 3 * image)
    monkeypatch.setattr(switch, "enabled", False)
    y = forward(x, weight, None, out=(16, 16), **settings)
    for run in (
        lambda: forward(x, weight, None, out=(16, 16), **settings),
        lambda: input_grad(y, weight, size=(16, 16), **settings),
        lambda: weight_grad(y, x, kernel=(5, 5), **settings),
    ):
        lucid.cuda.reset_peak_memory_stats()
        before = lucid.cuda.memory_allocated()
        made = run()
        # beside the columns of three images there are the result and what belongs to output channels
        assert lucid.cuda.max_memory_allocated() - before < 3.5 * image + made.nbytes


LAYOUTS = {
    "transposed": lambda a: a.swapaxes(-1, -2),
    "reversed": lambda a: a[::-1, ::-1, ::-1, ::2],
    "repeated": lambda a: gpu.cupy().broadcast_to(a[:1, :, :1], a.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("groups", [1, 4], ids=["columns", "depthwise"])
def test_layouts(layout, groups, rng):
    """Inputs, weights and upstream gradients may lie in memory in any way: the same bits as of copies."""
    view = LAYOUTS[layout]
    x, g = (view(on_device(rng.standard_normal((2, 4, 6, 6)), "float32").array) for _ in range(2))
    weight = on_device(rng.standard_normal((3, 3, 4 // groups, 4)), "float32").array.transpose(3, 2, 0, 1)
    settings = {"stride": (1, 1), "before": (1, 1), "dilation": (1, 1), "groups": groups}
    for function, first, second, more in (
        (lambda a, b, **s: forward(a, b, None, **s), x, weight, {"out": x.shape[2:]}),
        (input_grad, g, weight, {"size": g.shape[2:]}),
        (weight_grad, g, x, {"kernel": (3, 3)}),
    ):
        wanted = function(first.copy("C"), second.copy("C"), **more, **settings)
        np.testing.assert_array_equal(function(first, second, **more, **settings).get(), wanted.get())


def test_public_ops(rng):
    """conv2d and conv_transpose1d with bias agree on both devices, with their first and second derivatives."""
    shapes = ((2, 3, 6, 5), (4, 3, 3, 2), (4,)), ((2, 3, 6), (3, 2, 3), (2,))
    ops = (functional.conv2d, {"stride": 2, "padding": 1}), (functional.conv_transpose1d, {"stride": 2})
    for arrays, (op, settings) in zip(shapes, ops, strict=True):
        numbers = [rng.standard_normal(shape) for shape in arrays]
        results = []
        for device in ("cpu", "cuda"):
            tensors = [lucid.tensor(a, device=device).requires_grad_() for a in numbers]
            out = op(*tensors, **settings)
            first = lucid.autograd.grad([(out * out * out).sum()], tensors, create_graph=True)
            second = lucid.autograd.grad([sum((f * f).sum() for f in first)], tensors)
            results.append([out, *first, *second])
        for got, wanted in zip(results[1], results[0], strict=True):
            assert_near(got.array, wanted.detach().numpy(), "float64")


def test_no_images():
    """Arrays without elements launch nothing."""
    x = lucid.tensor(np.zeros((0, 3, 4, 4), np.float32), device="cuda").requires_grad_()
    weight = lucid.tensor(np.ones((2, 3, 3, 3), np.float32), device="cuda").requires_grad_()
    out = functional.conv2d(x, weight)
    assert out.shape == (0, 2, 2, 2)
    out.sum().backward()
    np.testing.assert_array_equal(weight.grad.cpu().numpy(), 0)


def test_integers_have_no_kernel(rng):
    """They go through the array library."""
    x, weight = rng.integers(-5, 5, (2, 3, 5)), rng.integers(-5, 5, (4, 3, 2))
    results = [functional.conv1d(lucid.tensor(x, device=d), lucid.tensor(weight, device=d)) for d in ("cpu", "cuda")]
    np.testing.assert_array_equal(results[1].cpu().numpy(), results[0].numpy())
