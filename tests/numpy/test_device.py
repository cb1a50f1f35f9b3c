"""Every rule on a CUDA device: NumPy's values, and the gradients that the CPU gives, of which others tests are sure."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from lucid.backend import gpu
from tests.tensor.numpy_calls.samples import OPERANDS
from tests.tensor.numpy_calls.test_rules import ROWS, evaluated

pytestmark = pytest.mark.gpu

THERE = [(name, call) for name, call in ROWS if name != "row_stack" or hasattr(np, name)]
"""NumPy 2.5 has no `row_stack` any more."""
UNSET = {"empty_like"}
"""Whose values are not set."""
ON_HOST = {"histogram"}
"""What counts on the host, and leaves its counts there."""
SIGNED = {"linalg.eig", "linalg.eigh", "linalg.svd", "linalg.qr"}
"""Whose vectors have the sign that a library gives them."""
OTHERS = ("np.eye", "np.tri(", "lambda r")
"""In calls of NumPy that mean an array on the host, or PyTorch's method."""
ASK_NOBODY = {"array", "asarray", "asanyarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "full"}
"""NumPy's functions that leave no call to its operands."""
FIRST = {
    name: call for name, call in reversed(THERE) if name not in ASK_NOBODY and not any(word in call for word in OTHERS)
}


def on_host(value):
    """Return a result as an array of NumPy's."""
    value = value.detach().array if isinstance(value, lucid.Tensor) else value
    return value.get() if gpu.is_gpu_array(value) else np.asarray(value)


def compare(name, results, expected):
    """Compare results with NumPy's: values and shapes."""
    assert len(results) == len(expected)
    if name in UNSET:
        return
    for one, other in zip(map(on_host, results), map(on_host, expected), strict=True):
        assert one.shape == other.shape
        one, other = (abs(one), abs(other)) if name in SIGNED else (one, other)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.fixture
def call_on(rng):
    """Return what evaluates a call on a device: it returns results, and gradients of a weighted sum of them."""
    values = {key: draw(rng) for key, draw in OPERANDS.items()}

    def evaluate(call, module, device, *, recorded=True):
        before = lucid.get_default_device()
        lucid.set_default_device(device)
        try:
            tensors = {
                key: lucid.tensor(value, requires_grad=recorded and key.islower()) for key, value in values.items()
            }
            operands = {key: tensor if tensor.requires_grad else tensor.array for key, tensor in tensors.items()}
            if module is lnp:
                operands = {key: lnp.asarray(value) for key, value in operands.items()}
            results = evaluated(call, module, operands)
            weights = np.random.default_rng(7)
            loss = 0
            for one in results:
                if isinstance(one, lucid.Tensor) and one.requires_grad:
                    finite = lucid.where(lucid.isfinite(one), one, 0)
                    loss = loss + (lucid.tensor(weights.standard_normal(tuple(one.shape))) * finite).sum()
            if isinstance(loss, lucid.Tensor):
                (loss.real if np.dtype(loss.array.dtype).kind == "c" else loss).backward()
            return results, {key: tensor.grad for key, tensor in tensors.items() if tensor.requires_grad}
        finally:
            lucid.set_default_device(before)

    return values, evaluate


def compare_gradients(found, expected):
    """Compare the gradients of leaves, of which some have none."""
    for key, gradient in expected.items():
        assert (found[key] is None) == (gradient is None)
        if gradient is not None:
            assert gpu.is_gpu_array(found[key].array)
            np.testing.assert_allclose(on_host(found[key]), on_host(gradient), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "call"), THERE, ids=[f"{name}-{call}" for name, call in THERE])
def test_lucid_numpy(name, call, call_on):
    """A call of `lucid.numpy` gives on a device what NumPy gives, recorded or plain, and the gradient of the CPU."""
    values, evaluate = call_on
    expected = evaluated(call, np, values)
    results, gradients = evaluate(call, lnp, "cuda")
    compare(name, results, expected)
    if name not in SIGNED:
        compare_gradients(gradients, evaluate(call, lnp, "cpu")[1])
    plain, _ = evaluate(call, lnp, "cuda", recorded=False)
    compare(name, plain, expected)
    assert name in ON_HOST or all(gpu.is_gpu_array(getattr(one, "array", one)) for one in results)
    assert name in ON_HOST or all(gpu.is_gpu_array(one) for one in plain)


@pytest.mark.parametrize("name", FIRST)
def test_numpys_own_functions(name, call_on):
    """NumPy's own function of Tensors on a device gives what it gives of Tensors on the CPU."""
    _, evaluate = call_on
    expected, wanted = evaluate(FIRST[name], np, "cpu")
    results, gradients = evaluate(FIRST[name], np, "cuda")
    compare(name, results, expected)
    compare_gradients(gradients, wanted)


class TestMixtures:
    """Arrays of CuPy's, Tensors, recorded arrays, numbers and lists in one call."""

    def test_functions_and_operators(self, rng):
        cp = pytest.importorskip("cupy")
        values = rng.standard_normal((2, 3))
        x = lnp.asarray(lucid.tensor(values, device="cuda", requires_grad=True))
        a, t = cp.asarray(values), lucid.tensor(values, device="cuda")
        for y in (lnp.stack([a, x, t]), lnp.concatenate([x, a]), lnp.array([[x[0, 0], 1.0], [2, a[0, 0].item()]])):
            assert type(y) is lnp.ndarray
            assert y.array.device.id == 0
        for y in (a * x, x * a, a - x, lnp.add(a, x), cp.add(a, x), np.add(a, x), a @ x.T, cp.where(a > 0, a, x)):
            assert type(y) is lnp.ndarray
        for y in (a < x, x < a, cp.less(a, x), cp.isnan(x), cp.argmax(x)):
            assert type(y) is cp.ndarray
        np.testing.assert_allclose(on_host(a * x + lnp.exp(a)), values * values + np.exp(values))
        for y in (lnp.sin(a), lnp.sum(a, axis=0), lnp.sin(t), lnp.vecdot(a, t), lnp.sum(a, initial=1.0)):
            assert type(y) is cp.ndarray

    def test_indexing(self, rng):
        cp = pytest.importorskip("cupy")
        values = rng.standard_normal((4, 5))
        x = lnp.asarray(lucid.tensor(values, device="cuda", requires_grad=True))
        for key in (
            np.s_[::-1], np.s_[1, ::-2], np.s_[..., None, 0], [0, 2], np.s_[[0, 1], 1:], np.s_[0, :, None],
            np.array([3, -1]), np.array([True, False, True, False]), np.s_[:, [0, 4], None],
        ):  # fmt: skip
            expected = values[key]
            on_device = cp.asarray(key) if isinstance(key, np.ndarray) else key
            for place in (key, on_device):
                part = x[place]
                assert type(part) is lnp.ndarray
                np.testing.assert_array_equal(on_host(part), expected)
        lnp.sum(x[cp.asarray([0, 0, 1])]).backward()
        leaf = lucid.tensor(values, device="cuda", requires_grad=True)
        (y := lnp.asarray(leaf) * 1)[cp.asarray([0, 2]), 1] = cp.asarray([5.0, 6.0])
        lnp.sum(y).backward()
        expected = np.ones((4, 5))
        expected[[0, 2], 1] = 0
        np.testing.assert_array_equal(leaf.grad.cpu().numpy(), expected)

    def test_creation(self):
        cp = pytest.importorskip("cupy")
        for array in (
            lnp.zeros((2, 3), device="cuda"), lnp.arange(3, device="cuda"), lnp.array([1.0, 2.0], device="cuda"),
            lnp.linspace(0, 1, 5, device="cuda:0"), lnp.full((2,), 7, device="cuda"), lnp.eye(3, device="cuda"),
            lnp.zeros_like(lnp.ones(3, device="cuda")),
        ):  # fmt: skip
            assert type(array) is cp.ndarray
        assert type(lnp.ones(2, device="cpu")) is np.ndarray
