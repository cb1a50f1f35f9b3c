"""Values that programs seldom meet: subnormal, infinite and half-precise numbers, zeros alone, arrays of no element."""

import warnings

import numpy as np
import pytest

import lucid
import lucid.numpy as lnp
from tests.device import DEVICE

BESIDE = """
np.trapezoid(x, y) | np.trapezoid(y, x) | np.average(x, weights=y) | np.average(y, weights=x) | np.linspace(x, y, 3)
np.geomspace(np.abs(x) + 1, np.abs(y) + 1, 3) | np.geomspace(1, np.abs(x) + 1, 3) | np.logspace(x, 1, 3)
np.logspace(0, 1, 3, base=np.abs(x) + 1) | np.logspace(y, 1, 3, base=np.abs(x) + 1) | np.emath.power(x, y)
np.logspace(0, 1, 3, base=np.abs(x) + 1, axis=-1) | np.emath.power(y, x) | np.emath.logn(np.abs(y) + 2, x)
np.linalg.solve(np.diag(x), y) | np.linalg.lstsq(np.diag(x), y)[0]
np.histogram([0, 1, 2], [0, 1, 3], weights=x)[0] | np.histogram([0, 1, 2], 2, density=True, weights=x)[0]
np.ediff1d(x, to_begin=y) | np.interp([0.5], [0, 1, 2], x) | np.cov(x, aweights=np.abs(y)) | np.power(x, y)
np.concatenate([x, y], dtype="f4") | np.stack([x, y], dtype="D") | np.hstack([x, y], dtype="i4") | np.where(y, x, 2)
np.full_like(y, x[0]) | np.full_like(x, y[0]) | np.insert(x, 0, y) | np.select([x.real > 0], [x], y) | np.polyval(y, x)
np.dot(x, y) | np.convolve(x, y) | np.kron(x, y) | np.hypot(x.real, y.real) | y / x | y ** x
"""


IN_SINGLE = {"np.average(y, weights=x)", "np.linalg.solve(np.diag(x), y)", "np.linalg.lstsq(np.diag(x), y)[0]"}


def calls(text):
    """Return the calls of a text, one by one."""
    return [call.strip() for line in text.strip().splitlines() for call in line.split("|")]


def outcome(call, **names):
    """Return the result of a call as an array of NumPy's, or the class of what it raises."""
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            result = eval(call, names)
    except (TypeError, ValueError, ArithmeticError, IndexError) as error:
        return error
    result = result.detach().cpu().numpy() if isinstance(result, lucid.Tensor) else result
    return np.asarray(result.get() if hasattr(result, "get") else result)


def assert_numpys(call, tolerance, here, there):
    """Compare a call on both sides: value, shape and dtype, or that both refuse."""
    got, wanted = outcome(call, np=lnp, **here), outcome(call, np=np, **there)
    if isinstance(wanted, Exception) or isinstance(got, Exception):
        assert isinstance(got, Exception) is isinstance(wanted, Exception), (call, got, wanted)
        return
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), (call, got, wanted)
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=call)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_each_dtype_beside_what_is_recorded(dtype, rng):
    """Integers, bools and halves beside a recorded operand promote as NumPy's do, are refused where it refuses them.

    Of 16 bits without a sign, which are taken as single precision, three functions stay in that. Differences of
    integers without a sign have one here, so that they are given in order.
    """
    for other in ("?", "b", "B", "h", "q", "e", "f", "d", "F", "H", "I", "Q"):
        values = rng.uniform(1, 2, 3).astype(dtype)
        numbers = [1, 2, 3] if other in "HIQ" else [1, 3, 2]
        beside = np.array(numbers).astype(other)
        tolerance = 1e-2 if "e" in (other, np.dtype(dtype).char) or other in "?bB" else 1e-5
        for call in calls(BESIDE):
            if other == "H" and call in IN_SINGLE and dtype != "float64":
                continue
            if other in "HIQ" and call == "np.full_like(y, x[0])":
                continue
            x, y = lnp.asarray(lucid.tensor(values, requires_grad=True)), lucid.tensor(numbers).array.astype(other)
            assert_numpys(call, tolerance, {"x": x, "y": y}, {"x": values, "y": beside})


RARE = {
    "np.sign(x)": [5e-324, 5e-324j, 1e-310 - 1e-310j, 1e-320 - 5e-324j, 0j, 3 - 4j],
    "np.log2(x)": [0j, 1, complex(np.inf, 0), complex(-np.inf, 0), complex(0, np.inf), -1],
    "np.maximum.accumulate(x)": [1 + 2j, 3, 2j, 3 + 1j, complex(np.nan, 1), 5],
    "np.minimum.accumulate(x.reshape(2, 3), 1)": [1 + 2j, 3, 2j, 3, 3 - 1j, 5],
    "np.nanmax(x)": [complex(np.nan, 1), complex(np.nan, 2)],
    "np.cov(x.reshape(0, 2))": np.zeros(0, complex),
    "np.einsum('ij->ji', x.reshape(2, 3), dtype='F')": np.arange(6) * 1j,
    "np.einsum(x.reshape(3, 3), [0, 0], [0], dtype='f4')": np.arange(9.0),
    "np.einsum('ii', x.reshape(3, 3), dtype='f4')": np.arange(9.0),
    "np.round(x, 1)": np.array([0.15, 0.25, 1.05, 7000, 60000, -0.04], "e"),
    "np.round(x, 5)": np.array([0.15, 2], "e"),
    "np.round(x, -1)": np.array([15, 25, 1234, 60000], "e"),
    "np.nextafter(x, np.float16(-np.inf))": np.array([1, 0, -0.0, 65504, np.inf, -np.inf, np.nan, 6e-8], "e"),
    "np.nanstd(x, ddof=0.5)": np.array([1, 2, 4], "e"),
    "np.i0(x)": [np.inf, -np.inf, 0, 2],
    "np.trim_zeros(x, 'b')": np.zeros(3),
    "np.trim_zeros(x.reshape(2, 2), 'f')": np.zeros(4),
    "np.diff(x.reshape(()), 0)": np.ones(1),
    "np.vander(x, 0)": np.ones(2),
    "np.vander(x.reshape(2, 1))": np.ones(2),
    "np.linalg.cond(x.reshape(2, 0))": np.zeros(0),
    "np.ones_like(x, dtype='f4')": np.ones(2),
    "np.full_like(x, x[0], dtype='f4')": np.ones(2),
    "np.unstack(x, axis=[0])[1]": np.ones(2),
    "np.linspace(x, 2, 3, axis=[1])": np.ones(2),
    "np.average(x, weights=x - 1)": np.ones(2),
    "np.cov(x, aweights=[0, 0])": np.ones(2),
    "np.concatenate([x, x], dtype='f4')": np.ones(2) * 1j,
    "np.stack([x, x], dtype='i4')": np.ones(2),
    "np.ediff1d(x, to_end=1j)": np.ones(2),
    "np.var(x, ddof=2)": np.array([1.0, 3.0]),
    "np.var(x, ddof=3)": np.array([1.0, 3.0]),
    "np.std(x.reshape(2, 2), 1, ddof=4, keepdims=True)": np.arange(4.0),
    "np.nanvar(x, ddof=5)": np.array([1.0, 3.0, np.nan]),
    "np.take(x, [-9, -1, 0, 7], mode='clip')": np.arange(5.0),
    "np.take(x, [-9, -1, 0, 7], mode='wrap')": np.arange(5.0),
    "np.take(x.reshape(2, 3), [[-3], [2]], 1, mode='clip')": np.arange(6.0),
    "np.choose([3, -1, 1], [x, x * 2], mode='clip')": np.arange(3.0),
    "np.choose([3, -1, 1], [x, x * 2], mode='wrap')": np.arange(3.0),
    "np.linalg.solve(x.reshape(1, 1), np.ones(1))": np.ones(1, "e"),
    "np.linalg.tensorsolve(x.reshape(1, 1), x.astype('d'))": np.ones(1, "e"),
    "np.linalg.lstsq(x.reshape(1, 1), np.ones(1))": np.ones(1, "e"),
    **dict.fromkeys(
        [f"np.{name}(x)" for name in ("nanmean", "nanvar", "nanstd")], np.resize([0.1, 0.3], 70000).astype("e")
    ),
    "np.nanstd(x, ddof=0.5, axis=0, dtype='f4')": np.resize([0.1, 0.3], 70000).astype("e"),
    **{f"np.bincount(np.array([0, 2, 2], '{kind}'), weights=x)": np.arange(3.0) for kind in ("u1", "u4", "u8")},
    "np.bincount(np.array([False, True]), weights=x)": np.arange(2.0),
    "np.add.reduce(x, axis=1, initial=None)": np.zeros((2, 0)),
    "np.nansum(x, 0, initial=None)": np.zeros((2, 0)),
    "np.multiply.reduce(x, initial=None)": np.zeros(0),
    "np.prod(x, initial=None)": np.array([2.0, 3.0]),
    "np.linalg.outer(x.reshape(2, 2), x)": np.arange(4.0),
    "np.linalg.outer(x, 2)": np.arange(4.0),
    "np.take_along_axis(x, np.ones(2, bool), 0)": np.arange(2.0),
    "np.dot(x, 2**63)": np.arange(2.0),
    "np.piecewise(x.reshape(()), [x[0] > 0], [lambda v: v * 2])": np.ones(1),
}


@pytest.mark.parametrize("call", RARE)
def test_rare_values(call):
    """The value, shape and dtype are NumPy's, or both sides refuse."""
    values = np.array(RARE[call])
    x = lnp.asarray(lucid.tensor(values, requires_grad=True))
    assert_numpys(call, {2: 2e-3, 4: 1e-6}.get(values.dtype.itemsize, 1e-12), {"x": x}, {"x": values})


@pytest.mark.parametrize("dtype", ["u2", "u4", "u8"])
@pytest.mark.parametrize(
    "call",
    [
        *[
            "np.full_like(u, x[0])",
            "np.insert(u, 0, x)",
            "np.pad(u, 1, constant_values=x[0])",
            "np.sum(u, initial=x[0])",
        ],
        *["np.piecewise(u, [u > 1], [x[0], 0])", "np.ediff1d(u, to_end=x)", "np.max(u, initial=x[0])"],
    ],
)
def test_results_of_a_dtype_that_is_not_held(call, dtype):
    """What would have the dtype of an array of unsigned integers, rounded to these, is refused."""
    x = lnp.asarray(lucid.tensor([1.5, 2.5], requires_grad=True))
    with pytest.raises(TypeError, match=r"would have the dtype of the first operand.*: use astype"):
        eval(call, {"np": lnp, "x": x, "u": np.array([1, 2], dtype)})


def test_powers_of_complex_numbers_near_the_largest():
    """``np.power`` multiplies as NumPy's does, where another order of the products is infinite, or no number.

    A device has its own products, of which none but numbers that stay small are compared.
    """
    values = np.array([2 - 1j, 0.5j, 1e200 + 1e200j, 1e154j, 1e160 + 1e100j])[: None if DEVICE == "cpu" else 2]
    for exponent in (2, 3, -2, 0.5, 7):
        assert_numpys(f"np.power(x, {exponent})", 1e-12, {"x": lucid.tensor(values, requires_grad=True)}, {"x": values})
    assert_numpys("x ** 3", 1e-12, {"x": lnp.asarray(lucid.tensor(values, requires_grad=True))}, {"x": values})


def test_gradients_of_what_was_new(rng):
    """Running extremes of complex numbers, bases of `logspace`, and `nextafter` of halves have the right gradient."""
    z = lucid.tensor([1 + 2j, 3, 2j, 5], requires_grad=True)
    lnp.sum(lnp.maximum.accumulate(lnp.asarray(z)).real * np.array([1, 2, 4, 8])).backward()
    np.testing.assert_array_equal(z.grad.cpu().numpy(), [1, 6, 0, 8])
    base = lucid.tensor(rng.uniform(1, 2, 3), requires_grad=True)
    assert lucid.autograd.gradcheck(lambda b: lucid.tensor(0.0) + lnp.logspace(0, 2, 4, base=b), (base,))
    h = lucid.tensor(np.array([1, 2], "e"), requires_grad=True)
    lnp.nextafter(h, np.float16(2)).sum().backward()
    np.testing.assert_array_equal(h.grad.cpu().numpy(), [1, 0])


def test_numbers_of_numpys_on_any_device():
    """A number of NumPy's of any dtype stands beside what is recorded on any device, on either side."""
    for dtype in ("e", "f", "d", "F"):
        values = np.array([1, 2, 4], dtype)
        for number in (np.float32(2), np.float16(2), np.int8(3), np.bool_(True), np.float64(2), np.uint8(2)):
            x = lnp.asarray(lucid.tensor(values, requires_grad=True))
            for call in ("n * x", "x * n", "np.add(n, x)", "x ** n", "np.where(x.real > 1, x, n)", "x / n"):
                assert_numpys(call, 2e-3, {"x": x, "n": number}, {"x": values, "n": number})


def test_what_numpy_reads_itself_says_what_to_use():
    """`numpy.polynomial` reads arrays: the error names what is recorded in its place."""
    x = lnp.asarray(lucid.tensor([1.0, 2.0], requires_grad=True))
    for call in (lnp.polynomial.Polynomial, lambda c: lnp.polynomial.polynomial.polyval(2.0, c)):
        with pytest.raises(lucid.errors.LucidError, match=r"numpy\.polynomial there are lucid\.numpy\.polyval"):
            call(x)


def test_cross_products_of_two_components(rng):
    """A missing third component is 0; of two such vectors comes the third component alone, whatever NumPy's version."""
    a, b = rng.standard_normal((2, 4, 3))
    for first, second in ((2, 3), (3, 2), (2, 2)):
        x, y = (np.where(np.arange(3) < size, each, 0.0) for each, size in ((a, first), (b, second)))
        wanted = np.cross(x, y) if 3 in (first, second) else np.cross(x, y)[:, 2]
        recorded = lnp.asarray(lucid.tensor(a[:, :first], requires_grad=True))
        got = lnp.cross(recorded, lucid.tensor(b[:, :second]))
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got.detach().cpu().numpy(), wanted, rtol=1e-12)
