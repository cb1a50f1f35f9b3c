"""NumPy's ufuncs of tensors at infinities, NaN, zeros of either sign, and numbers near the ends of a dtype."""

import numpy as np
import pytest

import lucid
from lucid.tensor.numpy_calls.ufuncs import PRODUCTS, UFUNCS
from tests.device import DEVICE

# 1e30 is infinite in float16, and 1e-30 a zero.
VALUES = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, -2.0, 2.5, 3.0, -3.5, 1e-4, 1e4, -1e4, np.inf, -np.inf, np.nan,
    1e30, 1e-30, -1e30,
]  # fmt: skip
EXPONENTS = np.array([0, 1, -1, 5, -5, 200, -200, 1100, -1100], np.int32)
# of two zeros NumPy gives one that depends on the processor, lucid the first
EXTREMES = {"fmax", "fmin", "maximum", "minimum"}
NOT_OF_HALVES = {"nextafter"}
ROUNDINGS = 8


def operands_of(name, dtype):
    """Return the values, or all pairs of them: so many that NumPy uses its loops of several at a time."""
    values = np.array(VALUES, dtype)
    if getattr(np, name).nin == 1:
        return [np.tile(values, 2)]
    first, second = (each.ravel() for each in np.meshgrid(values, values))
    if name in EXTREMES:
        keep = (first != 0) | (second != 0)
        first, second = first[keep], second[keep]
    return [first, np.resize(EXPONENTS, first.shape) if name == "ldexp" else second]


def is_same(got, expected):
    """Return where two arrays are equal but for roundings, with the same signs, also of zeros."""
    if expected.dtype.kind != "f":
        return got == expected
    with np.errstate(invalid="ignore"):
        off = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        near = off <= ROUNDINGS * np.finfo(expected.dtype).eps * np.abs(expected.astype(np.float64))
    tiny = np.abs(expected) < np.finfo(expected.dtype).tiny
    same = (got == expected) | near | ((DEVICE == "cuda") & tiny)  # subnormal numbers may become zeros there
    return (np.isnan(got) & np.isnan(expected)) | (same & (np.signbit(got) == np.signbit(expected)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_values(dtype):
    """Each ufunc of floating-point numbers gives what NumPy gives of arrays: values, dtypes, signs of zeros."""
    tried = 0
    with np.errstate(all="ignore"):
        for name in sorted(UFUNCS.keys() - PRODUCTS - (NOT_OF_HALVES if dtype == "float16" else set())):
            arrays = operands_of(name, dtype)
            try:
                expected = getattr(np, name)(*arrays)
            except TypeError:  # one of whole numbers or bools
                continue
            got = getattr(np, name)(*[lucid.tensor(array, device=DEVICE) for array in arrays])
            tried += 1
            for one, other in zip(*[x if isinstance(x, tuple) else (x,) for x in (got, expected)], strict=True):
                array = one.numpy(force=True)
                assert array.dtype == other.dtype, name
                off = np.flatnonzero(~is_same(array, other))
                cases = [(tuple(each[k] for each in arrays), array[k], other[k]) for k in off[:4]]
                assert not cases, (name, cases)
    assert tried > 65


def test_scaled_beyond_a_power(rng):
    """Numbers, and their gradients, are scaled by powers of two that are no numbers of their dtype."""
    x = lucid.tensor(rng.uniform(1, 2, 5).astype(np.float32) * np.float32(2**-100), device=DEVICE, requires_grad=True)
    exponents = lucid.tensor(rng.integers(150, 200, 5), device=DEVICE)
    y = np.ldexp(x, exponents)
    np.testing.assert_array_equal(y.numpy(force=True), np.ldexp(x.numpy(force=True), exponents.numpy(force=True)))
    upstream = rng.uniform(1, 2, 5).astype(np.float32) * np.float32(2**-100)
    (grad,) = lucid.autograd.grad(y, x, lucid.tensor(upstream, device=DEVICE))
    np.testing.assert_array_equal(grad.numpy(force=True), np.ldexp(upstream, exponents.numpy(force=True)))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_of_complex_numbers(dtype):
    """Signs and powers of complex numbers with infinite parts and NaN are NumPy's, without a gradient where it ends."""
    ends = np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -2.5
    values = np.array([complex(a, b) for a in ends for b in ends], dtype)
    values = np.append(values, np.finfo(dtype).max * np.array([0.8 + 0.8j, -0.8 + 0.8j, 0.8 - 0.8j], dtype))
    calls = "np.sign(z)", "np.power(z, -1)", "z ** -1", "np.power(z, -2)", "z ** 3"
    with np.errstate(all="ignore"):
        for call in calls if DEVICE == "cpu" else calls[:1]:
            z = lucid.tensor(values, device=DEVICE, requires_grad=True)
            made = eval(call, {"np": np, "z": z})
            got, expected = made.numpy(force=True), eval(call, {"np": np, "z": values})
            few = slice(None if "sign" in call else -3)  # powers of the largest numbers are rounded by the processor
            for one, other in ((got.real, expected.real), (got.imag, expected.imag)):
                np.testing.assert_allclose(one[few], other[few], 1e-5, 0, err_msg=call)
            if "sign" in call:
                made.backward(lucid.ones_like(made))
                assert np.all(z.grad.numpy(force=True)[np.isinf(values)] == 0)
