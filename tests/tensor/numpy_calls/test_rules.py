"""Every rule: NumPy's values, shapes and dtypes, and gradients by differences of what NumPy itself gives."""

import math
import warnings

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from lucid.base import gpu
from lucid.errors import InplaceError
from lucid.numpy.border import FILLED
from lucid.tensor.numpy_calls import definition as rules
from lucid.tensor.numpy_calls.table import CONSTANT, RULES
from lucid.tensor.numpy_calls.ufuncs import UFUNCS
from tests.device import DEVICE, shares_memory
from tests.tensor.numpy_calls.samples import CALLS, INTEGERS, OPERANDS, UFUNC_CALLS

STEP = 1e-6
GONE = {name for name in ("row_stack",) if not hasattr(np, name)}
"""What newer versions of NumPy have not."""
ROWS = [
    *[(name, call) for name, calls in CALLS.items() for call in calls if name not in GONE],
    *[
        (name, call)
        for name in UFUNCS
        if name not in INTEGERS.split()
        for call in UFUNC_CALLS.get(name, [f"np.{name}({'x' if getattr(np, name).nin == 1 else 'p, y'})"])
    ],
]


def test_every_parameter_of_every_rule_is_given(monkeypatch, rng):
    """Each rule is called with each parameter that it takes, by one of the calls of which the values are compared."""
    given = {}
    bind = rules.bound

    def noting(name, *args):
        arguments = bind(name, *args)
        given.setdefault(name, set()).update(arguments)
        return arguments

    monkeypatch.setattr(rules, "bound", noting)
    values = {key: draw(rng) for key, draw in OPERANDS.items()}
    operands = {**values, **{key: lnp.asarray(leaf_of(value)) for key, value in values.items() if key.islower()}}
    tensors = {key: leaf_of(value) if key.islower() else value for key, value in values.items()}
    for name, call in ROWS:
        evaluated(call, *((np, tensors) if name in CONSTANT else (lnp, operands)))
    known = {name: rule for name, rule in RULES.items() if name not in GONE}
    missing = [
        f"{name}({key}=)" for name, rule in known.items() for key in rule.names if key not in given.get(name, ())
    ]
    assert not missing, ", ".join(missing)


def evaluated(call, module, operands):
    """Return what a call gives, as a list of results."""
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        result = eval(call, {"np": module, **operands})
    return list(result) if isinstance(result, tuple | list) else [result]


def plain(value):
    """Return a result as an array of NumPy's, wherever it is."""
    value = value.detach().cpu().numpy() if isinstance(value, lucid.Tensor) else value
    return np.asarray(value.get() if gpu.is_gpu_array(value) else value)


def leaf_of(value):
    """Return a tensor that requires grad."""
    return lucid.tensor(value, requires_grad=True)


@pytest.mark.parametrize(("name", "call"), ROWS, ids=[f"{name}-{call}" for name, call in ROWS])
def test_values_and_gradients(name, call, rng):
    """A call gives what NumPy gives: values, shapes, dtypes; and the gradient of a sum of it by random weights."""
    values = {key: draw(rng) for key, draw in OPERANDS.items()}
    leaves = {key: leaf_of(value) for key, value in values.items() if key.islower()}
    operands = {**values, **{key: lnp.asarray(leaf) for key, leaf in leaves.items()}}
    results, expected = evaluated(call, lnp, operands), evaluated(call, np, values)
    assert len(results) == len(expected)
    loss, weights, single = 0, [], False
    for one, other in zip(results, expected, strict=True):
        array = plain(one)
        assert (array.shape, array.dtype) == (np.shape(other), np.asarray(other).dtype)
        single |= array.dtype.char in "fF"
        np.testing.assert_allclose(array, other, rtol=1e-5 if single else 1e-9, atol=1e-6 if single else 1e-10)
        assert isinstance(one, lucid.Tensor) == (
            isinstance(one, lucid.Tensor) and (one.requires_grad or name in FILLED)
        )
        weight = rng.standard_normal(np.shape(other)) + (
            1j * rng.standard_normal(np.shape(other)) if array.dtype.kind == "c" else 0
        )
        finite = np.isfinite(array)
        weights.append(np.where(finite, weight, 0))
        if isinstance(one, lucid.Tensor) and one.requires_grad:
            assert type(one) is lnp.ndarray
            assert gpu.is_gpu_array(one.array) == (DEVICE != "cpu")
            kept = lnp.where(finite, one, 0)
            loss = loss + lnp.real(lnp.sum(kept * np.conj(weights[-1])))
    if not isinstance(loss, lucid.Tensor):
        return
    loss.backward()
    direction = {key: rng.standard_normal(np.shape(values[key])) for key in leaves}

    def moved(step):
        near = {key: value + step * direction[key] if key in leaves else value for key, value in values.items()}
        return sum(
            np.real(np.sum(np.where(np.isfinite(other), other, 0) * np.conj(weight)))
            for other, weight in zip(evaluated(call, np, near), weights, strict=True)
        )

    slope = sum(
        np.real(np.sum(plain(leaf.grad) * direction[key])) for key, leaf in leaves.items() if leaf.grad is not None
    )
    step = 1e-2 if single else STEP
    difference, finer = ((moved(h) - moved(-h)) / (2 * h) for h in (step, step / 50))
    if not single and not np.isclose(difference, finer, rtol=1e-3, atol=1e-3):
        difference = finer  # a jump lay between
    np.testing.assert_allclose(slope, difference, rtol=1e-2 if single else 1e-5, atol=1e-2 if single else 1e-6)


# What NumPy asks no operand about, or gives functions that take NumPy's arrays; and results that are constants.
NOT_ASKED = [
    "array",
    "asarray",
    "asanyarray",
    "ascontiguousarray",
    "asfortranarray",
    "asarray_chkfinite",
    "require",
    "full",
    "apply_along_axis",
]
ASKED = [
    (name, call)
    for name, call in ROWS
    if name not in NOT_ASKED and not call.startswith(("divmod(", "np.histogram(x", "np.full_like(B"))
]


@pytest.mark.parametrize(("name", "call"), ASKED, ids=[f"{name}-{call}" for name, call in ASKED])
def test_numpys_own_functions_of_tensors(name, call, rng):
    """NumPy's own functions, called with Tensors, go by the same rules: their values, as Tensors on the graph."""
    values = {key: draw(rng) for key, draw in OPERANDS.items()}
    tensors = {key: leaf_of(value) if key.islower() else value for key, value in values.items()}
    results, expected = evaluated(call, np, tensors), evaluated(call, np, values)
    for one, other in zip(results, expected, strict=True):
        array = plain(one)
        single = array.dtype.char in "fF"
        assert array.shape == np.shape(other)
        np.testing.assert_allclose(array, other, rtol=1e-5 if single else 1e-9, atol=1e-6 if single else 1e-10)
        assert isinstance(one, lucid.Tensor)
        assert not isinstance(one, lnp.ndarray) or type(one) is np.ndarray


TYPED = sorted(name for name, rule in RULES.items() if {"dtype", "axis"} <= {*rule.names} or name.endswith("trace"))
NOT_OF_INTEGERS = {
    "concat", "concatenate", "geomspace", "linspace", "logspace", "mean", "nanmean", "nanstd", "nanvar", "stack", "std",
    "var",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted({*TYPED} - NOT_OF_INTEGERS))
def test_a_result_has_the_dtype_that_is_asked_for(name):
    """Sums and products of small integers are int64, unless a dtype says otherwise: then they wrap, as NumPy's do."""
    function = np
    for part in name.split("."):
        function = getattr(function, part)
    array = np.arange(1, 10, dtype=np.int8).reshape(3, 3)
    options = {} if name.endswith("trace") else {"axis": 0}
    made = function(lucid.tensor(array), dtype=np.int8, **options)
    assert made.dtype is lucid.int8
    np.testing.assert_array_equal(made.numpy(force=True), function(array, dtype=np.int8, **options))


def test_truth_is_bool():
    """Also of uint8, of which `lucid.all` gives uint8, as PyTorch does; products of it keep its dtype."""
    x = lucid.tensor([1, 0], dtype=lucid.uint8)
    assert [np.all(x).dtype, np.any(x).dtype] == [lucid.bool, lucid.bool]
    assert np.vecdot(x, x).dtype is np.linalg.vecdot(x, x).dtype is lucid.uint8


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
@pytest.mark.parametrize("of", ["float64", "complex128"])
def test_one_of_two_beside_nan(name, of):
    """Which one is taken is NumPy's choice, on either side of a NaN in either part, an infinity and an equal number."""
    ends = [0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    each = np.array(ends if of == "float64" else [complex(a, b) for a in ends for b in ends])
    a, b = np.repeat(each, len(each)), np.tile(each, len(each))
    made = getattr(np, name)(leaf_of(a), leaf_of(b))
    np.testing.assert_array_equal(plain(made), getattr(np, name)(a, b))


OWN = {"diag", "diff"}
"""A copy is made of what NumPy gives a view of, which says that it may change."""


def test_memory_is_shared_where_numpy_shares_it(rng):
    """Whatever is written into a result changes the operand, or does not, as in NumPy."""
    values = {key: draw(rng) for key, draw in OPERANDS.items()}
    wrong, shared = [], 0
    for name, call in ROWS:
        leaves = {key: lnp.asarray(leaf_of(value)) for key, value in values.items() if key.islower()}
        operands = {**values, **leaves}
        for one, other in zip(evaluated(call, lnp, operands), evaluated(call, np, values), strict=True):
            if not isinstance(one, lucid.Tensor) or name in OWN:
                continue
            for key, leaf in leaves.items():
                expected = np.shares_memory(other, values[key])
                shared += expected
                if shares_memory(one, leaf) != expected:
                    wrong.append(f"{call} and {key}")
    assert not wrong, ", ".join(wrong)
    assert shared > 50


COPYING = sorted(name for name, rule in RULES.items() if "copy" in rule.names)


@pytest.mark.parametrize("name", COPYING)
@pytest.mark.parametrize("copy", [False, True])
def test_a_copy_is_made_where_one_is_asked_for(name, copy, rng):
    """Whether a result lies in the memory of the operand is as in NumPy, of each function that can be told."""
    more = {"astype": (np.float64,), "reshape": (-1,)}.get(name, ())
    array = rng.standard_normal((2, 3))
    x = leaf_of(array) * 1
    made, expected = (
        evaluated("f(x, *more, copy=copy)", None, {"f": f, "x": operand, "more": more, "copy": copy})[0]
        for f, operand in ((getattr(lnp, name), lnp.asarray(x)), (getattr(np, name), array))
    )
    np.testing.assert_array_equal(plain(made), expected)
    assert shares_memory(made, x) == np.shares_memory(expected, array)


def test_numbers_in_place(rng):
    """``nan_to_num(x, copy=False)`` changes `x`, which stays recorded; a leaf is refused, and a scalar stays."""
    for dtype in (np.float64, np.complex64):
        values = rng.standard_normal((2, 3)).astype(dtype)
        values[0, 1], values[1, 0], values[1, 2] = np.nan, np.inf, -np.inf
        leaf, weights = leaf_of(values), rng.standard_normal((2, 3)).astype(dtype)
        x = lnp.asarray(leaf) * 1
        assert lnp.nan_to_num(x, copy=False, posinf=5.0) is x
        np.testing.assert_array_equal(plain(x), np.nan_to_num(values, posinf=5.0, neginf=None))
        lnp.real(lnp.sum(x * weights)).backward()
        np.testing.assert_array_equal(plain(leaf.grad), np.where(np.isfinite(values), np.conj(weights), 0))
        with pytest.raises(InplaceError, match="leaf"):
            lnp.nan_to_num(leaf, copy=False)
    x = lnp.asarray(leaf_of([np.nan, 1.0])) * 1
    scalar = x[0]
    assert lnp.nan_to_num(scalar, copy=False).item() == 0
    assert np.isnan(scalar.item())
    t = leaf_of(np.nan) * 1
    np.nan_to_num(t, copy=False)
    assert t.item() == 0


AT_INFINITY = [
    "np.average(x, 1, returned=True)", "np.average(x, weights=p, returned=True)", "np.average(x, 0, p[:, 0])",
    "np.imag(x)", "np.angle(x)", "np.angle(x, deg=True)", "np.piecewise(x, [x == 5.0], [1.0])",
    "np.interp(x, np.array([1.0]), p[0, :1])", "np.median(x, 1)", "np.median(x)", "np.nanmedian(x, 1, keepdims=True)",
    "np.percentile(x, 40, axis=1, method='nearest')", "np.quantile(x, [0.3, 0.6], method='lower')",
    "np.nanquantile(x, 0.7, axis=0, method='higher')", "np.nanmedian(np.where(x > 0, np.nan, x))",
]  # fmt: skip


@pytest.mark.parametrize("call", AT_INFINITY)
@pytest.mark.parametrize("end", [np.inf, -np.inf])
def test_infinity_is_no_nan_where_nothing_of_it_counts(call, end, rng):
    """A zero is no product with an infinite number, and of two numbers one alone counts where none lies between."""
    x = rng.standard_normal((2, 4))
    for places in ((0, 0), (0, slice(1, 3)), (slice(None), 2)):
        x[places] = end
        values = {"x": x, "p": rng.uniform(0.5, 2, (2, 4))}
        results = evaluated(call, lnp, {key: lnp.asarray(leaf_of(value)) for key, value in values.items()})
        for one, other in zip(results, evaluated(call, np, values), strict=True):
            np.testing.assert_allclose(plain(one), other, rtol=1e-12)


def test_weights_of_another_shape_need_an_axis(rng):
    """Those of as many elements as the array has are refused as all others are, along an axis too."""
    for shape in ((3, 2), (6,), (2, 1), (3,)):
        a, weights = leaf_of(rng.uniform(size=(2, 3))), rng.uniform(size=shape)
        for each in (weights, leaf_of(weights)):
            with pytest.raises(TypeError, match="expected an axis, since a and weights have two shapes"):
                np.average(a, weights=each)
            if shape != (3,):
                with pytest.raises(ValueError, match="Shape of weights must be consistent"):
                    np.average(a, 1, weights=each)


TWO_OPERANDS = sorted(name for name in UFUNCS if getattr(np, name).nin == 2 and getattr(np, name).signature is None)


@pytest.mark.parametrize("name", TWO_OPERANDS)
@pytest.mark.parametrize("number", [True, 2, 0.5, 1 - 2j])
def test_numbers_of_pythons_on_either_side(name, number):
    """A number of any kind beside a tensor of any float dtype counts as in NumPy, by value and dtype, or is refused."""
    ufunc = getattr(np, name)
    # CuPy's of arrays that need no gradient refuse complex numbers
    kinds = (np.float32, np.float64, np.complex64, np.complex128)
    if DEVICE != "cpu" and name.startswith("logical"):
        kinds = () if isinstance(number, complex) else kinds[:2]
    # NumPy's own of a Tensor promotes as PyTorch does, and orders complex numbers only where it chooses one
    functions = [getattr(lnp, name), *([ufunc] if name in {"maximum", "minimum", "fmax", "fmin"} else [])]
    for dtype in kinds:
        array = np.array([0.5, -1.5, 2.0]).astype(dtype) - (0.5j if dtype(0).dtype.kind == "c" else 0)
        leaf = leaf_of(array)
        for plain_operands, operands in (((array, number), (leaf, number)), ((number, array), (number, leaf))):
            try:
                expected = evaluated("f(*o)", np, {"f": ufunc, "o": plain_operands})
            except TypeError:
                for function in functions:
                    with pytest.raises(TypeError):
                        function(*operands)
                continue
            for function in functions:
                made = evaluated("f(*o)", lnp, {"f": function, "o": operands})
                for one, other in zip(map(plain, made), expected, strict=True):
                    assert one.dtype == other.dtype
                    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_number_is_as_exact_as_the_dtype_that_is_asked_for():
    """Beside single precision a number is not rounded to it first, nor a whole one to 32 bits, on either side."""
    tried = []
    for name in TWO_OPERANDS:
        ufunc = getattr(np, name)
        for dtype, number in ((np.float64, 0.1), (np.float64, 2**40 + 1), (np.complex128, 0.1 - 0.2j)):
            array = np.array([0.5, 3.0, 2.0], np.float32)
            for left in (True, False):
                operands = (array, number) if left else (number, array)
                try:
                    with np.errstate(all="ignore"):
                        expected = ufunc(*operands, dtype=dtype)
                except (TypeError, OverflowError):  # of integers alone, or that are in order
                    continue
                made = ufunc(*(lucid.tensor(x) if x is array else x for x in operands), dtype=dtype)
                pair = isinstance(expected, tuple)
                for one, other in zip(made if pair else [made], expected if pair else [expected], strict=True):
                    np.testing.assert_allclose(plain(one), other, rtol=1e-14)
                    assert plain(one).dtype == other.dtype
                tried.append(name)
    assert {"add", "arctan2", "divide", "multiply", "power"} <= {*tried}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(
    "mode", ["constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap"]
)
def test_pads_of_short_axes(mode, size, rng):
    """However few elements an axis has and however wide the pad is, it is NumPy's, on both sides."""
    x = rng.standard_normal((2, size))
    for width in (0, 1, 2, 5):
        for odd in ({}, {"reflect_type": "odd"}) if mode in {"reflect", "symmetric"} else ({},):
            made = lnp.pad(leaf_of(x), ((0, 0), (width, width + 1)), mode, **odd)
            np.testing.assert_allclose(plain(made), np.pad(x, ((0, 0), (width, width + 1)), mode, **odd), rtol=1e-12)


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_over_all_axes_have_their_norm(name, rng):
    """Without axes sizes and the norm count too."""
    a = rng.standard_normal((4, 6))
    for settings in ({"norm": "ortho"}, {"norm": "forward", "s": (3, 5)}):
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # NumPy's, of sizes without axes
            expected = getattr(np.fft, name)(a, **settings)
            given = getattr(np.fft, name)(lucid.tensor(a, requires_grad=True), **settings)
        np.testing.assert_allclose(given.numpy(force=True), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "nansum", "nanprod", "nanmax", "nanmin"])
def test_what_a_reduction_begins_with_takes_its_dtype(name):
    """A number that is not whole counts for integers with its whole part, and one that has none is refused."""
    function = getattr(np, name)
    for a in (np.array([-3, -1]), np.array([5, 3]), np.array([0.5, -2], np.float32)):
        for begin in (0.6, -0.6, 2.7, np.float64(2.7), True):
            result, expected = function(lucid.tensor(a), initial=begin), function(a, initial=begin)
            assert result.numpy(force=True).dtype == expected.dtype
            np.testing.assert_allclose(result.numpy(force=True), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        function(lucid.tensor([1, 2]), initial=math.nan)
