"""The dtypes of results are NumPy's where numbers, lists and constants of its own stand beside operands."""

import warnings

import numpy as np
import pytest

import lucid
import lucid.numpy as lnp
from lucid.errors import DtypeError, ShapeError
from tests.tensor.numpy_calls.test_odd_operands import operands_of, outcome
from tests.tensor.numpy_calls.test_rules import ROWS, leaf_of, plain

METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip
NUMBERS = """
np.dot(x, 2) | np.dot(2.0, x) | np.inner(x, 2) | np.outer(2, x) | np.kron(x, True) | np.convolve(x, 2)
np.vdot(x[0], 2) | np.correlate(x, [2, 1]) | np.tensordot(2, x, 0) | np.diff(x, prepend=0) | np.diff(x, append=2.5)
np.polyadd(x, 1) | np.polymul(2, x) | np.polysub(x, 2.0) | np.polyval(x, 2) | np.add.outer(2, x)
np.maximum.outer(x, 2.5) if x.dtype.kind == "f" else x | np.geomspace(1, np.abs(x) + 1, 3) | x * 2 | np.maximum(x, 2)
np.where(x == 0, x, 2.5) | np.append(x, 2) | np.select([x == 0], [x], 2.5) | np.r_[x, 1] | np.r_[2.5, x]
np.choose([0, 1, 0], [x, 2]) | np.einsum("i,->i", x, 2) | np.einsum(2.0, [], x, [0], [0])
np.einsum("i,i->", x, [1, 2, 3]) | np.einsum("i,->i", x, np.float64(2))
"""
WITH_CONSTANTS = """
np.polyder(x) | np.polyder(x, 0) | np.polyint(x) | np.polyint(x, 2, [1, 2]) | np.vander(x) | np.vander(x, 2, True)
np.sort_complex(x) | np.ediff1d(x, to_begin=[1, 2]) | np.ediff1d(x, 3) | np.cov(x, aweights=[0.1, 2, 3])
np.gradient(x, [0, 1, 3]) | np.gradient(x, np.array([0.0, 1, 3])) | np.gradient(x, 2) | np.gradient(x, np.float64(2))
np.histogram([0, 1, 3], 3, weights=x)[0] | np.histogram([0, 1, 3], 3, weights=x, density=True)[0]
np.trapezoid(x, dx=np.array([0.5, 2])) | np.trapezoid(x, dx=np.float32(2)) | np.trapezoid(x, dx=2)
np.pad(x, 1, constant_values=np.array(2.5)) | np.pad(x, 2, "linear_ramp", end_values=np.float64(3))
np.emath.sqrt(x) | np.emath.sqrt(-x) | np.emath.log(x - 1.5) | np.emath.log10(-x)
np.emath.arccos(x) | np.emath.arcsin(x / 4) | np.emath.power(-x, 2) | np.emath.power(-2, x)
np.emath.logn(2, x) | np.emath.logn(x + 1, 2.5) | np.emath.logn(x + 1, -x)
np.cov(x, fweights=[1, 2, 3]) | x[range(2)] | np.cov(x, bias=True) | np.cov(x, bias=True, ddof=0)
np.cov(x, bias=True, ddof=1) | np.cov(x, bias=False, ddof=2) | np.cov(x, ddof=0)
"""
OF_REAL_NUMBERS = """
np.quantile(x, [0.2, 0.4]) | np.quantile(x, 0.3) | np.quantile(x, [0, 1]) | np.quantile(x, np.float32(0.3))
np.percentile(x, [25, 75]) | np.percentile(x, 30) | np.percentile(x, np.float32(30)) | np.nanquantile(x, [0.3, 0.6])
np.interp(x, [0, 1, 5], [2, 3, 1]) | np.interp(2, x, x) | np.interp(x, x, [1j, 2, 3]) | np.interp([1.5], [1, 2], x[:2])
np.interp(x, [0, 1, 5], [2, 3j, 1], left=1j, right=2.5) | np.interp(x, [0, 1, 5], [2, 3, 1], period=4)
np.nextafter(x, 2) | np.nextafter(x, np.float16(0)) | np.float_power(x, 2) | np.float_power(0.5, x)
np.nanpercentile(x, [30, 60]) | np.nanpercentile(x, 30) | np.bincount([0, 1, 1], x) | np.median(x)
"""


def calls(text):
    """Return the calls of a text, one by one."""
    return [call.strip() for line in text.strip().splitlines() for call in line.split("|")]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_what_stands_beside_operands_promotes_as_numpys(dtype, rng):
    """Values, shapes and dtypes are NumPy's: of Python's numbers, of lists, and of what functions compute with."""
    values = rng.uniform(1, 2, 3).astype(dtype)
    real = dtype != "complex64"
    tolerance = {"float16": 4e-3, "float64": 1e-12}.get(dtype, 1e-6)
    for call in calls(NUMBERS) + calls(WITH_CONSTANTS) + (calls(OF_REAL_NUMBERS) if real else []):
        x = lnp.asarray(lucid.tensor(values, requires_grad=True))
        got, wanted = eval(call, {"np": lnp, "x": x}), np.asarray(eval(call, {"np": np, "x": values}))
        assert isinstance(got, lucid.Tensor), call
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), call
        np.testing.assert_allclose(got.detach().cpu().numpy(), wanted, rtol=tolerance, atol=tolerance, err_msg=call)


@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
def test_each_method_of_quantiles_has_numpys_dtype(name, rng):
    """Methods that choose an element keep its dtype; others compute in that of the places, unless these are numbers."""
    for dtype in ("float16", "float32"):
        values = rng.uniform(1, 2, 5).astype(dtype)
        for method in METHODS:
            for place in (0.3, 1, [0.3, 0.7], [0, 1], np.float32(0.3), np.float64(0.3), np.array([0.3], "f4")):
                q = np.multiply(place, 100) if name.endswith("percentile") and type(place) is not float else place
                x = lnp.asarray(lucid.tensor(values, requires_grad=True))
                got, wanted = (
                    f(a, q, method=method) for f, a in ((getattr(lnp, name), x), (getattr(np, name), values))
                )
                assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), (dtype, method, place)
                np.testing.assert_allclose(got.detach().cpu().numpy(), wanted, rtol=4e-3, err_msg=method)


DEVIATIONS = [
    f"np.{name}(x, dtype={dtype!r}{rest})"
    for name in ("std", "var", "nanstd", "nanvar")
    for dtype in ("f4", "f8", "F", "D")
    for rest in ("", ", axis=0", ", axis=1, keepdims=True, ddof=1")
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_the_dtype_of_a_deviation_is_that_of_its_sums(dtype, rng):
    """Numbers keep their dtype until the mean is subtracted: no digits of theirs and no imaginary parts are lost."""
    values = (1000 + rng.uniform(0, 1, (4, 3)) + (1j * rng.uniform(5, 6, (4, 3)) if dtype[0] == "c" else 0)).astype(
        dtype
    )
    if dtype == "float16":
        values = rng.uniform(0, 1, (4, 3)).astype(dtype)
    for call in DEVIATIONS:
        x = lnp.asarray(lucid.tensor(values, requires_grad=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got, wanted = eval(call, {"np": lnp, "x": x}), np.asarray(eval(call, {"np": np, "x": values}))
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), call
        np.testing.assert_allclose(got.detach().cpu().numpy(), wanted, rtol=1e-3, err_msg=call)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_each_rule_has_numpys_dtype_of_less_precise_operands(dtype, rng):
    """Each call of each rule has NumPy's dtype and shape, of arrays of less precision beside the calls' own numbers."""
    wrong, tried = [], 0
    for _, call in ROWS:
        values = operands_of(call, rng)
        for key, value in values.items():
            if key.islower() and key != "c" and np.asarray(value).dtype.kind in "fc":
                values[key] = np.asarray(value).astype(dtype if np.asarray(value).dtype.kind == "f" else np.complex64)
        if call.startswith(("np.nanpercentile", "np.nanquantile")):
            # of a row of NaN alone, if it is the first, NumPy's result has another dtype
            values = {key: np.where(np.isnan(x), x.dtype.type(0.5), x) for key, x in values.items()}
        expected = outcome(call, np, values)
        leaves = {key: lnp.asarray(leaf_of(value)) if key.islower() else value for key, value in values.items()}
        made = outcome(call, lnp, leaves)
        if isinstance(made, Exception) or (isinstance(expected, Exception) and dtype == "float16" and "linalg" in call):
            continue
        tried += 1
        if isinstance(expected, Exception) or [(x.dtype, x.shape) for x in made] != [
            (x.dtype, x.shape) for x in expected
        ]:
            wrong.append(f"{call}: {made}, {expected}")
    assert not wrong, "\n".join(wrong)
    assert tried > 350


def test_a_ufuncs_dtype_drops_no_imaginary_part():
    """``np.abs(x, dtype=)`` of complex numbers is their absolute value; ufuncs that would drop a part are refused."""
    x = lucid.tensor([3 + 4j, 1j], dtype=lucid.complex64, requires_grad=True)
    assert np.allclose(lnp.abs(x, dtype="f4").tolist(), [5.0, 1.0])
    for ufunc in (lnp.exp, lnp.sin, lnp.negative, lnp.conjugate):
        with pytest.raises(DtypeError, match="Cannot cast ufunc"):
            ufunc(x, dtype="f4")


def test_places_and_counts_are_real(rng):
    """`interp` of complex places, and `bincount` of complex weights, are refused, as NumPy refuses them."""
    z = lucid.tensor(rng.standard_normal(3) + 1j, requires_grad=True)
    for call in (lambda: lnp.interp(z, [0, 1], [1, 2]), lambda: lnp.interp([0], z, [1, 2, 3])):
        with pytest.raises(DtypeError, match="expected real places"):
            call()
    with pytest.raises(DtypeError, match="expected real weights"):
        lnp.bincount([0, 1, 2], z)


def test_einsum_casts_safely():
    """``np.einsum(dtype=)`` takes NumPy's names of dtypes, and refuses one that does not hold the operands."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    assert lnp.einsum("i,i->", x, x, dtype="f8").dtype == np.float64
    for dtype in ("f2", "i8"):
        with pytest.raises(DtypeError, match="by the rule 'safe'"):
            lnp.einsum("i,i->", x, x, dtype=dtype)


def test_products_of_too_few_dimensions_are_refused():
    """`vecdot`, `matvec` and `vecmat` say which operand has too few dimensions, as NumPy does."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    refused = (lnp.vecdot, x, 2.0, 1), (lnp.vecdot, 1j, x, 0), (lnp.matvec, x, x, 0), (lnp.vecmat, x, x, 1)
    for function, a, b, operand in refused:
        with pytest.raises(ShapeError, match=f"operand {operand} does not have enough dimensions"):
            function(a, b)


def test_an_empty_axis_is_not_padded_by_its_elements():
    """`pad` of an empty axis in a mode that repeats elements raises; of odd reflections it did not end."""
    x = lucid.zeros(0, 2, requires_grad=True)
    for mode in ("symmetric", "reflect"):
        with pytest.raises(ValueError, match="empty"):
            lnp.pad(x, 2, mode, reflect_type="odd")


LISTS_BESIDE = """
np.r_[x, [1.0, 2.0]] | np.c_[x, [1.0, 2.0, 3.0]] | np.r_[x, 2.5] | np.r_["0,2", x, [1, 2, 3]] | np.r_[x, [x[0], 2.5]]
np.choose([0, 1, 0], [x, [1.0, 2.0, 3.0]]) | np.choose([0, 1, 0], [x, 2.5]) | np.choose([0, 1, 0], ([x[0], 2, 3], x))
np.select([x > 1], [x], [1.0, 2.0, 3.0]) | np.select([x > 1, x < 0], [x, [1, 2, 3]]) | np.select([x > 1], [x], 2.5)
np.sum(x, initial=v[0]) | np.prod(x, initial=v[0]) | np.max(x, initial=v[0]) | np.min(x, initial=v[0])
np.nansum(x, initial=v[0]) | np.nanprod(x, initial=v[0]) | np.nanmax(x, initial=v[0]) | np.sum(i, initial=v[0])
np.sum(x, dtype="f8", initial=v[0])
"""


@pytest.mark.parametrize("call", calls(LISTS_BESIDE))
def test_a_list_is_an_array_and_an_initial_value_is_cast(call, rng):
    """Beside single precision a list counts as float64, a number as none, and `initial` comes to the result's dtype."""
    values = {"x": rng.uniform(1, 2, 3).astype(np.float32), "v": rng.uniform(1, 2, 1), "i": np.array([1, 2])}
    recorded = {key: lnp.asarray(leaf_of(value)) * 1 if key != "i" else value for key, value in values.items()}
    (made,), (expected,) = outcome(call, lnp, recorded), outcome(call, np, values)
    assert made.dtype == expected.dtype
    np.testing.assert_allclose(made, expected, rtol=1e-6)


COMPLEX_TO_REAL = """
a.__setitem__(0, c[0]) | a.__setitem__(..., c) | a.fill(c[0]) | c.astype(float) | np.asarray(c, dtype=float)
np.full(2, c[0], dtype=float) | np.sum(c, dtype=float) | np.sum(a, initial=c[0]) | np.full_like(a, c[0])
np.pad(a, 1, constant_values=c[0]) | np.piecewise(a, [a > 1], [c[0], 0]) | np.put(a, [0], c) | np.insert(a, 0, c[0])
"""


@pytest.mark.parametrize("call", calls(COMPLEX_TO_REAL))
def test_what_drops_an_imaginary_part_warns(call):
    """A complex value that is written into a real array, or cast to one, loses a part and its gradient: NumPy warns."""
    c, a = np.array([1 + 1j, 2.0]), np.array([1.0, 2.0])
    operands = {"c": lnp.asarray(leaf_of(c)) * 1, "a": lnp.asarray(leaf_of(a)) * 1}
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        made = eval(call, {"np": lnp, **operands})
    with pytest.warns(np.exceptions.ComplexWarning):
        expected = eval(call, {"np": np, "c": c, "a": a})
    np.testing.assert_array_equal(plain(operands["a"]), a)
    assert expected is None or plain(made).tolist() == expected.tolist()


def test_a_cast_to_bools_does_not_warn():
    """Whether a complex number is zero loses nothing."""
    c = lnp.asarray(leaf_of(np.array([1j, 0]))) * 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = c.astype(bool)
    np.testing.assert_array_equal(plain(made), [True, False])


IN_PLACE = [
    "x -= N.array([100000001.0])", "x -= N.array([100000001])", "np.add.at(x, [0], N.array([-100000001.0]))",
    "x *= N.float64(1e-40); x *= N.float64(1e40)", "x /= N.array([1e40])", "x //= N.array([0.1])",
    "x %= N.array([0.1])", "np.subtract.at(x, [0, 0], N.array([99999999.0, 1.0]))", "x += 1", "x += N.float32(1)",
    "x **= N.array([0.5])",
]  # fmt: skip


@pytest.mark.cpu("with arrays of NumPy's beside")
@pytest.mark.parametrize("statement", IN_PLACE)
def test_a_change_in_place_is_computed_in_the_wider_dtype(statement):
    """NumPy computes in the dtype to which both are promoted, and rounds what it writes."""
    for value in (1e8, 0.3, 2.0):
        plain = np.array([value], np.float32)
        leaf = lucid.tensor(plain, requires_grad=True)
        recorded = lnp.asarray(leaf) * 1
        for module, x in ((np, plain), (lnp, recorded)):
            with np.errstate(all="ignore"):
                exec(statement, {"np": module, "N": np, "x": x})
        assert recorded.dtype == np.float32
        np.testing.assert_allclose(recorded.detach().numpy(), plain, rtol=1e-6)


@pytest.mark.cpu("with arrays of NumPy's beside")
def test_a_change_in_place_by_a_wider_operand_keeps_gradients(rng):
    """By both operands, as that of the operator has them."""
    values, other, weights = rng.uniform(0.5, 2, 3).astype("f4"), rng.uniform(0.5, 2, 3), rng.standard_normal(3)
    for change, slopes in {
        "x *= y": (other, values), "x /= y": (1 / other, -values / other**2), "x -= y": (np.ones(3), -np.ones(3)),
        "np.add.at(x, [0, 1, 2], y)": (np.ones(3), np.ones(3)),
    }.items():  # fmt: skip
        first, second = lucid.tensor(values, requires_grad=True), lucid.tensor(other, requires_grad=True)
        x = lnp.asarray(first) * 1
        exec(change, {"np": lnp, "x": x, "y": lnp.asarray(second)})
        lnp.sum(x * weights).backward()
        for leaf, slope in zip((first, second), slopes, strict=True):
            np.testing.assert_allclose(leaf.grad.numpy(), slope * weights, rtol=1e-5)


@pytest.mark.cpu("with arrays of NumPy's beside")
def test_a_result_that_does_not_fit_is_not_written():
    """An operand with more dimensions is refused in place, also of size 1, in its dtype and in a wider one."""
    for other in (np.ones((1, 2), np.float32), np.ones((1, 2)), np.ones((3, 1)), np.ones(3), np.ones((1, 1, 1), int)):
        x = lnp.asarray(lucid.tensor([1.0, 2.0], requires_grad=True)) * 1
        with pytest.raises(ValueError, match="shape"):
            x += other
        assert x.detach().tolist() == [1, 2]
