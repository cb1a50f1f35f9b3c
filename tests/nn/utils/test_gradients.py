"""The norm of all gradients on any device: several dtypes, and how its order is written."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.errors import ArgumentError, InplaceError, SettingError, ShapeError
from tests.device import DEVICE


@pytest.mark.parametrize("order", [0.5, 1, 2, 3, float("inf")])
def test_norm_of_several_dtypes(order, rng):
    """It has the dtype to which those of the tensors promote, so that no half swallows what others hold."""
    arrays = rng.standard_normal(4).astype(np.float16), 1e6 * rng.uniform(1, 2, 3).astype(np.float32)
    given = [lucid.tensor(each, device=DEVICE) for each in arrays]
    expected = np.linalg.norm(np.concatenate([each.astype(np.float64) for each in arrays]), order)
    for tensors in (given, given[::-1]):
        total = nn.utils.get_total_norm(tensors, order)
        assert total.dtype == lucid.float32
        np.testing.assert_allclose(total.item(), expected, rtol=1e-5)


def test_clipping_of_several_dtypes(rng):
    """A float32 gradient that is too large for float16 is scaled beside one of float16, not zeroed."""
    arrays = rng.standard_normal(4), 1e6 * rng.uniform(1, 2, 3)
    weights = [
        nn.Parameter(lucid.zeros(len(each), dtype=dtype, device=DEVICE))
        for each, dtype in zip(arrays, (lucid.float16, lucid.float32), strict=True)
    ]
    for weight, each in zip(weights, arrays, strict=True):
        weight.grad = lucid.tensor(each, dtype=weight.dtype, device=DEVICE)
    nn.utils.clip_grad_norm_(weights, 1.0)
    size = np.linalg.norm(np.concatenate(arrays))
    np.testing.assert_allclose(weights[1].grad.cpu().numpy(), arrays[1] / size, rtol=1e-5)


def test_the_order_as_a_word(rng):
    """The order "inf" is infinity, and no other word is an order."""
    array = rng.standard_normal(5)
    weight = nn.Parameter(lucid.zeros(5, dtype=lucid.float64, device=DEVICE))
    weight.grad = lucid.tensor(array, device=DEVICE)
    largest = np.abs(array).max()
    assert nn.utils.get_total_norm([weight.grad], "inf").item() == largest
    with pytest.raises(ArgumentError, match="norm_type: expected a number or 'inf', got str 'fro'"):
        nn.utils.clip_grad_norm_([weight], 1.0, "fro")
    np.testing.assert_array_equal(weight.grad.cpu().numpy(), array)
    nn.utils.clip_grad_norm_([weight], 0.5, norm_type="inf")
    np.testing.assert_allclose(weight.grad.cpu().numpy(), array * min(1.0, 0.5 / largest), rtol=1e-5)


PLACES = [("cpu", "cuda:0"), ("cuda:0", "cpu"), ("cuda:0", "cuda:1")]


def spread(rng, here, there):
    """Return parameters on two devices, with gradients that lie beside them, and these in NumPy."""
    if lucid.cuda.device_count() < 2 and "cuda:1" in (here, there):
        pytest.skip("needs two CUDA devices")
    arrays = [rng.standard_normal(size).astype(np.float32) for size in (3, 4, 5, 6)]
    weights = [nn.Parameter(lucid.zeros(len(a), device=d)) for a, d in zip(arrays, (here, there) * 2, strict=True)]
    for weight, array in zip(weights, arrays, strict=True):
        weight.grad = lucid.tensor(array, device=weight.device)
    return weights, arrays


@pytest.mark.gpu
@pytest.mark.parametrize("order", [2.0, 1.0, "inf", 3.0])
@pytest.mark.parametrize(("here", "there"), PLACES)
def test_norm_over_devices(order, here, there, rng):
    """It is that of all together, on the device of the first, by which each is scaled where it lies."""
    weights, arrays = spread(rng, here, there)
    expected = np.linalg.norm(np.concatenate(arrays), float(order))
    total = nn.utils.clip_grad_norm_(weights, 0.5, order)
    assert total.device == weights[0].device
    np.testing.assert_allclose(total.item(), expected, rtol=1e-5)
    np.testing.assert_allclose(nn.utils.get_total_norm([w.grad for w in weights], order).item(), 0.5, rtol=1e-4)
    for weight, array in zip(weights, arrays, strict=True):
        assert weight.grad.device == weight.device
        np.testing.assert_allclose(weight.grad.cpu().numpy(), array * (0.5 / expected), rtol=1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize(("here", "there"), PLACES)
def test_norms_that_are_counted_over_devices(here, there, rng):
    """Of order 0 the norm of norms is how many tensors have one, wherever they lie, as in PyTorch."""
    weights, _ = spread(rng, here, there)
    weights[1].grad.zero_()
    assert nn.utils.get_total_norm([weight.grad for weight in weights], 0.0).item() == 3


@pytest.mark.gpu
@pytest.mark.parametrize(("here", "there"), PLACES)
def test_a_vector_elsewhere_leaves_parameters_where_they_are(here, there, rng):
    """They get its elements beside their gradients, on which a step goes on."""
    weights, _ = spread(rng, here, there)
    optimizer = lucid.optim.Adam(weights)
    optimizer.step()
    vector = rng.standard_normal(18).astype(np.float32)
    nn.utils.vector_to_parameters(lucid.tensor(vector, device=there), weights)
    assert [str(weight.device) for weight in weights] == [here, there] * 2
    np.testing.assert_array_equal(np.concatenate([weight.detach().cpu().numpy() for weight in weights]), vector)
    optimizer.step()


def test_a_millionth_keeps_small_norms_from_dividing():
    """As in PyTorch a gradient is scaled by ``max_norm / (norm + 1e-6)``, and never made longer."""
    weight = nn.Parameter(lucid.zeros(1, dtype=lucid.float64, device=DEVICE))
    for size, most, expected in ((1e-6, 1e-6, 5e-7), (3e-6, 1e-6, 0.75e-6), (1e-6, 1.0, 1e-6), (0.0, 1e-6, 0.0)):
        weight.grad = lucid.full((1,), size, dtype=lucid.float64, device=DEVICE)
        nn.utils.clip_grad_norm_(weight, most)
        np.testing.assert_allclose(weight.grad.item(), expected, rtol=1e-9)


def test_values_are_clipped_on_both_sides():
    """What is between the bounds stays, they too."""
    weight = nn.Parameter(lucid.zeros(5, device=DEVICE))
    weight.grad = lucid.tensor([-5.0, -2.0, 0.5, 2.0, 5.0], device=DEVICE)
    nn.utils.clip_grad_value_(weight, 2.0)
    assert weight.grad.tolist() == [-2.0, -2.0, 0.5, 2.0, 2.0]


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("order", [1.0, 2.0, "inf"])
def test_a_norm_that_is_no_number_is_refused_on_request(value, order):
    """Infinity as much as NaN; the gradients are as they were, and without the request the norm comes out."""
    x = nn.Parameter(lucid.zeros(2, device=DEVICE))
    x.grad = lucid.tensor([3.0, value], device=DEVICE)
    before = x.grad.tolist()
    for call in (
        lambda: nn.utils.clip_grad_norm_(x, 1.0, order, error_if_nonfinite=True),
        lambda: nn.utils.get_total_norm(x.grad, order, error_if_nonfinite=True),
    ):
        with pytest.raises(RuntimeError, match="is non-finite"):
            call()
        np.testing.assert_array_equal(x.grad.tolist(), before)
    assert not np.isfinite(nn.utils.get_total_norm(x.grad, order).item())


@pytest.mark.parametrize("size", [2, 4])
def test_a_vector_of_another_size(size):
    """A vector has as many elements as the parameters, no fewer and no more; otherwise none is changed."""
    weight = lucid.zeros(3)
    with pytest.raises(ShapeError, match=f"expected a vector of 3 elements, .* got {size}"):
        nn.utils.vector_to_parameters(lucid.ones(size), [weight])
    assert weight.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_factor_keeps_its_digits_beside_halves(dtype, rng):
    """Gradients of a half type are multiplied by the factor in float32, whatever their strides, as in PyTorch."""
    made = lucid.tensor(rng.standard_normal((40, 30)), dtype=getattr(lucid, dtype), device=DEVICE)
    wide = lucid.zeros(3, device=DEVICE, requires_grad=True)  # with which the norm is one of float32
    for grad in (made.clone(), made.clone().T):
        p = lucid.zeros(*grad.shape, dtype=grad.dtype, device=DEVICE, requires_grad=True)
        p.grad, wide.grad = grad, lucid.ones(3, device=DEVICE)
        before = grad.float()
        norm = nn.utils.clip_grad_norm_([p, wide], 10.0)
        assert norm.dtype == lucid.float32
        expected = before * lucid.clamp(10.0 / (norm + 1e-6), max=1.0)
        assert lucid.equal(p.grad, expected.to(p.dtype))


@pytest.mark.parametrize("bound", [-1.0, -1e-300, float("nan")])
def test_what_limits_nothing_is_refused(bound):
    """A bound below 0 or NaN is an error of each function, and no gradient changes."""
    weight = nn.Parameter(lucid.zeros(2, device=DEVICE))
    weight.grad = lucid.full((2,), 3.0, device=DEVICE)
    for clip in (
        lambda: nn.utils.clip_grad_norm_(weight, bound),
        lambda: nn.utils.clip_grad_value_(weight, bound),
        lambda: nn.utils.clip_grads_with_norm_(weight, bound, lucid.tensor(4.0, device=DEVICE)),
    ):
        with pytest.raises(SettingError, match="expected a number of at least 0"):
            clip()
    assert weight.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
def test_norms_with_gradients_of_no_elements(order):
    """They have a part in no norm, and no largest element: that norm is refused, and no gradient changes."""
    weights = [nn.Parameter(lucid.zeros(size, device=DEVICE)) for size in (3, 0)]
    for weight in weights:
        weight.grad = lucid.ones_like(weight)
    if order == math.inf:
        with pytest.raises(RuntimeError, match="non-zero size"):
            nn.utils.clip_grad_norm_(weights, 0.5, order)
        assert weights[0].grad.tolist() == [1.0] * 3
    else:
        total = nn.utils.clip_grad_norm_(weights, 0.5, order)
        assert total.item() == pytest.approx(3 ** (1 / order))


def gradients(kind, array):
    """Return a gradient of some kind, on the CPU, and what else shows a change of it."""
    whole = lucid.tensor(array, device="cpu")
    if kind == "view":
        return whole[1:], whole
    if kind == "transposed":
        return whole.t().contiguous().t(), None
    if kind == "recorded":
        return (whole.requires_grad_() * 1.0), None
    return whole, None


@pytest.mark.parametrize("kind", ["plain", "view", "transposed", "recorded", "half"])
def test_many_gradients_of_the_cpu(kind, rng):
    """Whatever a gradient is, it is multiplied once, in its memory, and its version says so."""
    dtype = np.float16 if kind == "half" else np.float32
    arrays = [10 * rng.standard_normal((3, 4)).astype(dtype) for _ in range(4)]
    made = [gradients(kind if place % 2 else "plain", array.copy()) for place, array in enumerate(arrays)]
    weights = [nn.Parameter(lucid.zeros_like(grad)) for grad, _ in made]
    for weight, (grad, _) in zip(weights, made, strict=True):
        weight.grad = grad
    before = [weight.grad.detach().numpy().astype(np.float64) for weight in weights]
    versions = [weight.grad._version for weight in weights]
    nn.utils.clip_grad_norm_(weights, 2.0)
    factor = 2.0 / np.linalg.norm(np.concatenate([each.ravel() for each in before]))
    for weight, (grad, base), one, version in zip(weights, made, before, versions, strict=True):
        np.testing.assert_allclose(weight.grad.detach().numpy(), one * factor, rtol=2e-3 if kind == "half" else 1e-5)
        assert weight.grad._version == version + 1
        if base is not None:
            np.testing.assert_array_equal(base[1:].numpy(), weight.grad.numpy())


def test_clipping_keeps_what_was_saved(rng):
    """A gradient of the CPU that a recorded op has saved is kept as it was, where changes are allowed, or refused."""
    array = rng.standard_normal(3)
    for allowed in (True, False):
        weight, factor = nn.Parameter(lucid.zeros(3, dtype=lucid.float64)), lucid.ones(3).double().requires_grad_()
        weight.grad = lucid.tensor(array)
        with lucid.autograd.graph.allow_mutation_on_saved_tensors() if allowed else contextlib.nullcontext():
            product = factor * weight.grad
            nn.utils.clip_grad_norm_([weight], 1e-3)
            if allowed:
                product.sum().backward()
                np.testing.assert_array_equal(factor.grad.cpu().numpy(), array)
            else:
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    product.sum().backward()


@pytest.mark.parametrize("clip", [nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_])
def test_a_gradient_that_a_hook_was_given(clip):
    """Clipping it changes what goes on from the hook, and nothing else on its memory."""
    weight = nn.Parameter(lucid.zeros(3, device=DEVICE))
    first, second = (lucid.ones(3, device=DEVICE, requires_grad=True) for _ in range(2))
    factors = first * 1.0, second * 1.0

    def hook(grad):
        weight.grad = grad
        clip([weight], 1e-3)

    factors[1].register_hook(hook)
    (sum(factors) * 3.0).sum().backward()
    np.testing.assert_array_equal(first.grad.cpu().numpy(), 3.0)
    np.testing.assert_array_equal(second.grad.cpu().numpy(), weight.grad.cpu().numpy())
    assert weight.grad.max().item() < 1.001e-3


def test_clipping_in_inference_mode():
    """Gradients that are inference tensors are scaled there, as by an op."""
    with lucid.inference_mode():
        weight = nn.Parameter(lucid.zeros(2, device=DEVICE))
        weight.grad = lucid.tensor([3.0, 4.0], device=DEVICE)
        nn.utils.clip_grad_norm_([weight], 1.0)
        np.testing.assert_allclose(weight.grad.cpu().numpy(), [0.6, 0.8], rtol=1e-5)


def test_a_total_norm_with_dimensions():
    """It is refused before a gradient is changed."""
    weight = nn.Parameter(lucid.zeros(2, device=DEVICE))
    weight.grad = lucid.tensor([3.0, 4.0], device=DEVICE)
    with pytest.raises(ShapeError, match=r"total_norm: expected a tensor of no dimension, got shape \(2,\)"):
        nn.utils.clip_grads_with_norm_([weight], 1.0, lucid.ones(2, device=DEVICE))
    assert weight.grad.tolist() == [3.0, 4.0]


def test_a_read_only_gradient():
    """Its memory is NumPy's, and may not be written: it is refused as by an op in place, and not changed."""
    array = np.array([3.0, 4.0], np.float32)
    array.flags.writeable = False
    weight = nn.Parameter(lucid.zeros(2, device="cpu"))
    weight.grad = lucid.from_numpy(array)
    with pytest.raises(InplaceError, match="read-only"):
        nn.utils.clip_grad_norm_([weight], 1.0)
    assert array.tolist() == [3.0, 4.0]


def test_a_norm_overflows_silently():
    """As all arithmetic of tensors: squares that no float32 holds make it infinite, without NumPy's warning."""
    weight = nn.Parameter(lucid.zeros(2, device=DEVICE))
    weight.grad = lucid.full((2,), 1e30, device=DEVICE)
    assert math.isinf(nn.utils.clip_grad_norm_([weight], 1.0).item())
