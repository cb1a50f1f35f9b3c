"""`lucid.numpy` on a CUDA device: plain arrays, which are CuPy's, and mixtures."""

from __future__ import annotations

import operator
import re
import warnings

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from lucid.base import gpu
from lucid.errors import DeviceError
from lucid.numpy.border import by_rule
from lucid.tensor.numpy_calls.operands import NumpyCallError
from tests.pieces.elsewhere import default_device
from tests.tensor.numpy_calls.samples import OPERANDS
from tests.tensor.numpy_calls.test_rules import ROWS, evaluated

pytestmark = pytest.mark.gpu

ON_HOST = {"histogram"}
"""What counts on the host, and leaves its counts there."""
SIGNED = {"linalg.eig", "linalg.eigh", "linalg.svd", "linalg.qr"}
"""Whose vectors have the sign that a library gives them."""


def on_host(value):
    """Return a result as an array of NumPy's."""
    value = value.detach().array if isinstance(value, lucid.Tensor) else value
    return value.get() if gpu.is_gpu_array(value) else np.asarray(value)


@pytest.mark.parametrize(("name", "call"), ROWS, ids=[f"{name}-{call}" for name, call in ROWS])
def test_what_is_not_recorded(name, call, rng):
    """A call of plain arrays on a device is CuPy's, or the rule where CuPy has none: NumPy's values, on the device.

    Of recorded ones say `test_rules.py` and the device suite.
    """
    values = {key: draw(rng) for key, draw in OPERANDS.items()}
    with default_device("cuda"):
        results = evaluated(call, lnp, {key: lnp.array(value) for key, value in values.items()})
    for one, other in zip(results, evaluated(call, np, values), strict=True):
        assert name in ON_HOST or gpu.is_gpu_array(one)
        one, other = (abs(x) if name in SIGNED else x for x in (on_host(one), np.asarray(other)))
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


MAKES = re.compile(r"np\.(arange|array|eye|tri|zeros)\(")
"""What a call makes itself, on the default device."""
BESIDE = [(name, call) for name, call in ROWS if not MAKES.search(call)]


@pytest.mark.parametrize(("name", "call"), BESIDE, ids=[f"{name}-{call}" for name, call in BESIDE])
def test_arrays_beside_what_is_on_the_cpu(name, call, rng):
    """NumPy's arrays beside a recorded one on the CPU stay there, whatever the default device."""
    values = {key: draw(rng) for key, draw in OPERANDS.items()}
    for key in [key for key in values if re.search(rf"\b{key}\b", call) and values[key].dtype.kind in "fc"]:
        operands = {**values, key: lucid.tensor(values[key], device="cpu", requires_grad=True)}
        found = []
        for device in ("cpu", "cuda"):
            with default_device(device):
                try:
                    found.append(evaluated(call, lnp, operands))
                except NumpyCallError:
                    found.append([])
        for one, other in zip(*found, strict=True):
            assert not gpu.is_gpu_array(other.array if isinstance(other, lucid.Tensor) else other)
            np.testing.assert_array_equal(on_host(other), on_host(one))


def test_medians_of_integers_by_the_rule(rng):
    """Integers come to float64 before the rule, which stands in where CuPy has no such median, takes their mean."""
    values = rng.integers(0, 9, (2, 3, 4))
    for array in (values, values[:, :0]):
        for axis in (1, (0, 1), -2):
            result = by_rule("median", np.median, (lnp.array(array, device="cuda"), axis), {})
            assert result.dtype == np.float64
            with np.errstate(invalid="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.testing.assert_array_equal(result.get(), np.median(array, axis))


@pytest.mark.parametrize("number", [np.float64(0.1), np.float32(0.1), np.int64(0), np.complex64(0.1)])
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
def test_numbers_of_numpys_on_the_left(rng, number, recorded):
    """NumPy makes an array without dimensions of its number, and it is a number on the device all the same."""
    values = rng.standard_normal(3)
    x = lucid.tensor(values, device="cuda", requires_grad=recorded)
    array = lnp.asarray(x) if recorded else x.array
    for operate in (operator.lt, operator.ge, operator.eq, operator.ne, operator.add, operator.sub, operator.mul):
        result, expected = operate(number, array), operate(number, values)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(on_host(result), expected, rtol=1e-6)


@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
def test_lists_come_to_the_device(rng, recorded):
    """Where NumPy makes arrays of lists they are operands on the device, too, of numbers and of its own elements."""
    values = rng.standard_normal(3)
    t = lnp.asarray(lucid.tensor(values, device="cuda", requires_grad=recorded))
    calls = [
        "np.add(t, [1.0, 2.0, 3.0])", "np.maximum(t, [t[0], 1, 5.0])", "np.greater(t, [1.0, t[1], 1.0])",
        "np.logical_and(t, [1, 0, 1])", "np.digitize(t, [0.5])", "np.isin(t, [t[0]])", "np.array_equal(t, [1.0, 2.0])",
        "np.lexsort((t, t))", "np.searchsorted([0.0, 1.0], t)", "np.where(True, t, 0)",
        "np.gradient(t, [0.0, 1.0, 3.0])", "np.gradient(t, [0, 1, 2])", "np.r_[t, 2:4]", "np.r_[0:1:3j, t]",
        "np.c_[t, 0:3]", "np.unique(t, return_inverse=True, return_counts=True)[1]",
    ]  # fmt: skip
    if recorded:  # of CuPy's own arrays the operators are CuPy's
        calls += ["t + [1.0, 2.0, 3.0]", "t @ [t[0], 2.0, 3.0]", "t ** [1.0, 2.0, 3.0]", "t > [1.0, 0.0, -1.0]"]
        calls += ["np.mgrid[0 : t[0] : 3j, 0:2]", "np.ogrid[0:2, 0 : t[0] : 3j][0]", "np.r_[t[0] : 2 : 3j, 0:3]"]
        calls += ["np.r_['0,2', t, 0:3]"]  # CuPy's takes no words
        t = t * 1
        t += [1.0, 2.0, 3.0]
        values = values + np.array([1.0, 2.0, 3.0])
    for call in calls:
        with np.errstate(invalid="ignore"):
            made, expected = eval(call, {"np": lnp, "t": t}), eval(call, {"np": np, "t": values})
        assert isinstance(made, lnp.ndarray)
        np.testing.assert_allclose(on_host(made), expected, rtol=1e-6)


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


def test_names_of_cupys_alone():
    """What CuPy has and NumPy does not is CuPy's, and the error says so; of what neither has it says nothing more."""
    lucid.ones(1, device="cuda")
    for name in ("asnumpy", "RawKernel", "get_array_module"):
        with pytest.raises(AttributeError, match=f"nor has NumPy's: use CuPy's own, cupy.{name}$"):
            getattr(lnp, name)
    with pytest.raises(AttributeError, match=r"'nothing', nor has NumPy's$"):
        _ = lnp.nothing


@pytest.mark.parametrize(
    "call",
    [
        "np.asarray(x, device=d)", "np.array(x, device=d)", "np.asanyarray(x, device=d)",
        "np.ascontiguousarray(x, device=d)", "np.array([x[0], x[1]], device=d)", "np.full((2,), x[0], device=d)",
        "np.linspace(0, x[0], 3, device=d)", "np.linspace(0, x[0], 3, retstep=True, device=d)[1]",
        "np.geomspace(1, x[0], 3, device=d)", "np.logspace(0, x[0], 3, device=d)",
    ],
)  # fmt: skip
@pytest.mark.parametrize(("start", "end"), [("cpu", "cuda"), ("cuda", "cpu"), ("cuda", "cuda")])
def test_what_is_recorded_is_made_on_the_named_device(call, start, end, rng):
    """``device=`` brings there what is made of recorded operands; their gradient lies where they lie."""
    x = lucid.tensor(rng.uniform(1, 2, 3), requires_grad=True, device=start)
    made = eval(call, {"np": lnp, "x": lnp.asarray(x), "d": end})
    assert type(made) is lnp.ndarray
    assert made.device.type == end
    lnp.sum(made).backward()
    assert x.grad.device.type == start
    beside = eval(call, {"np": lnp, "x": lnp.asarray(x), "d": None})
    assert beside.device.type == start
    np.testing.assert_array_equal(on_host(made), on_host(beside))


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_complex_extremes_beside_the_host(name, rng):
    """An array of the host's is the only operand that a refused call says to be on the CPU."""
    values = rng.standard_normal(3) + 1j
    x = lnp.asarray(lucid.tensor(values, requires_grad=True, device="cuda"))
    for operands in ((values, x), (x, values)):
        with default_device("cpu"), pytest.raises(DeviceError) as caught:
            getattr(lnp, name)(*operands)
        assert str(caught.value).count("on cpu") == 1
