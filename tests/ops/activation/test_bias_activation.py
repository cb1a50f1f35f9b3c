"""An activation after a bias: like the two ops, rounded once, and what it keeps and refuses."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DeviceError, DtypeError, InplaceError, LucidError, ShapeError
from lucid.nn import functional as F
from lucid.ops.activation.bias_activation import ACTIVATIONS
from lucid.ops.base.blocks import BLOCK
from tests.gradients import numbers, random_like
from tests.sample_rows.activation import OF_SUM

EPSILON = {"float16": 2**-10, "bfloat16": 2**-7}
every_activation = pytest.mark.parametrize("name", ACTIVATIONS)


def in_two_steps(x, bias, name):
    """Return the activation of the sum by the ops of which the fused one is made."""
    if name == "gelu_tanh":
        return F.gelu(x + bias, approximate="tanh")
    return getattr(F, name)(x + bias)


def results(op, x, bias, upstream, name):
    """Return value and gradients as arrays, for tensors that are made to require grad."""
    x, bias = x.detach().requires_grad_(), bias.detach().requires_grad_()
    out = op(x, bias, name)
    return [numbers(t) for t in (out, *lucid.autograd.grad(out, [x, bias], [upstream]))]


def test_every_activation_has_a_row():
    """The table of samples has a row for each name that is accepted."""
    assert {*OF_SUM} == {*ACTIVATIONS}


@every_activation
@pytest.mark.parametrize("shape", [(3000, 7), (3, BLOCK + 5), (9, 4, 512), (BLOCK + 3,), (BLOCK + 3, 1)], ids=str)
def test_many_blocks(shape, name, rng):
    """In float32 it is what the two ops give, whatever part of a row, or how many rows, a block holds."""
    x = lucid.tensor(rng.uniform(-6, 6, shape).astype(np.float32))
    bias = lucid.tensor(rng.uniform(-2, 2, shape[-1]).astype(np.float32))
    upstream = lucid.tensor(random_like(rng, numbers(x)))
    for got, expected in zip(
        results(F.bias_activation, x, bias, upstream, name), results(in_two_steps, x, bias, upstream, name), strict=True
    ):
        assert (got.shape, got.dtype) == (expected.shape, np.float32)
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", EPSILON)
@every_activation
def test_half_types_are_rounded_once(name, dtype, rng):
    """The error of value and slope is half a unit in the last place, where two ops make more of it."""
    kind = getattr(lucid, dtype)
    shape = (BLOCK // 8, 16)  # two blocks
    x, bias = (lucid.tensor(rng.uniform(-3, 3, s), dtype=kind) for s in (shape, shape[1:]))
    upstream = lucid.ones(shape, dtype=kind) * 0.75
    exact = [numbers(t).astype(np.float64) for t in (x, bias, upstream)]
    total, factor = exact[0] + exact[1], exact[2]
    step = 1e-6
    reference = OF_SUM[name][0]
    slope = factor * (reference(total + step) - reference(total - step)) / (2 * step)
    off_the_kink = np.abs(total) > 1e-3

    def units(got, expected):
        """Return the largest error in units in the last place of numbers that are not small."""
        large = off_the_kink & (np.abs(expected) > 2**-6)
        unit = 2.0 ** np.floor(np.log2(np.abs(expected[large]))) * EPSILON[dtype]
        return (np.abs(got.astype(np.float64)[large] - expected[large]) / unit).max()

    once = results(F.bias_activation, x, bias, upstream, name)
    assert once[0].dtype == once[1].dtype == once[2].dtype == kind.numpy
    for got, expected in zip(once[:2], (reference(total), slope), strict=True):
        assert units(got, expected) < 0.501 + 1e-5 / EPSILON[dtype]
    if name != "relu":  # which does not round
        assert units(results(in_two_steps, x, bias, upstream, name)[0], reference(total)) > 0.6


@every_activation
def test_only_the_operands_are_kept(name, rng):
    """The node keeps the input and the bias themselves, and no sum of them."""
    x, bias = lucid.tensor(rng.standard_normal((5, 3)), requires_grad=True), lucid.ones(3, dtype=lucid.float64)
    out = F.bias_activation(x, bias, name)
    node = out.grad_fn
    assert len(node.kept[1]) == 2
    assert node._saved_input.data_ptr() == x.data_ptr()
    assert node._saved_bias.data_ptr() == bias.data_ptr()
    assert node._saved_activation == name
    bias.add_(1.0)
    with pytest.raises(InplaceError):
        out.backward(lucid.tensor(rng.standard_normal((5, 3))))


@every_activation
def test_gradients_that_are_not_asked_for(name, rng):
    """Of two operands only one may require grad; its gradient is what it is if both do."""
    arrays = rng.standard_normal((5, 3)), rng.standard_normal(3)
    upstream = lucid.tensor(rng.standard_normal((5, 3)))
    x, bias = (lucid.tensor(a) for a in arrays)
    expected = results(F.bias_activation, x, bias, upstream, name)[1:]
    for place in range(2):
        operands = [x.detach(), bias.detach()]
        operands[place].requires_grad_()
        F.bias_activation(*operands, name).backward(upstream)
        np.testing.assert_array_equal(numbers(operands[place].grad), expected[place])
        assert operands[1 - place].grad is None


def test_slope_of_relu_at_its_kink(rng):
    """At zero it is zero, and an infinite gradient is stopped below zero."""
    x, bias = lucid.tensor([[1.0, 2.0, -3.0]], requires_grad=True), lucid.tensor([-1.0, -1.0, 1.0])
    F.bias_activation(x, bias, "relu").backward(lucid.tensor([[5.0, np.inf, np.inf]]))
    np.testing.assert_array_equal(numbers(x.grad), [[0, np.inf, 0]])


X, BIAS = (lambda **how: lucid.ones(2, 3, **how)), (lambda **how: lucid.ones(3, **how))
WRONG = {
    "bias of another size": (lambda: (X(), lucid.ones(2)), ShapeError, r"shape \[3\].*\[2, 3\], got shape \[2\]"),
    "bias of one": (lambda: (X(), lucid.ones(1)), ShapeError, r"got shape \[1\]"),
    "bias of two dimensions": (lambda: (X(), lucid.ones(1, 3)), ShapeError, r"got shape \[1, 3\]"),
    "bias of no dimension": (lambda: (X(), lucid.ones(())), ShapeError, r"got shape \[\]"),
    "input of no dimension": (lambda: (lucid.ones(()), lucid.ones(1)), ShapeError, "at least 1 dimension"),
    "wider bias": (lambda: (X(), BIAS(dtype=lucid.float64)), DtypeError, r"float32, got lucid\.float64; bias\.to"),
    "float32 beside a half type": (lambda: (X(dtype=lucid.float16), BIAS()), DtypeError, r"lucid\.float16, got"),
    "bias of integers": (lambda: (X(), BIAS(dtype=lucid.int64)), DtypeError, r"got lucid\.int64"),
    "integers": (lambda: (X(dtype=lucid.int32), BIAS()), DtypeError, "floating-point dtype first"),
    "bools": (lambda: (X(dtype=lucid.bool), BIAS()), DtypeError, "floating-point dtype first"),
    "complex numbers": (lambda: (X(dtype=lucid.complex64), BIAS()), DtypeError, "floating-point dtype first"),
    "no bias": (lambda: (X(), None), TypeError, "expected a Tensor"),
}


@pytest.mark.parametrize("case", WRONG)
def test_operands_that_do_not_fit(case):
    """They are refused with what was expected and what was got."""
    build, error, message = WRONG[case]
    with pytest.raises(error, match=message) as caught:
        F.bias_activation(*build(), "gelu")
    assert isinstance(caught.value, LucidError)


@pytest.mark.gpu
def test_two_devices():
    """Operands on two devices are refused."""
    with pytest.raises(DeviceError, match="same device"):
        F.bias_activation(X(device="cuda"), BIAS(device="cpu"), "gelu")


@pytest.mark.parametrize("name", ["softmax", "GELU", "", None, F.gelu, ["relu"]])
def test_unknown_activations(name):
    """The message names those that there are."""
    with pytest.raises(ValueError, match="'relu', 'gelu', 'gelu_tanh', 'silu', 'tanh', 'sigmoid', got"):
        F.bias_activation(X(), BIAS(), name)
