"""Rules of operands that their table does not draw: infinities, NaN, integers, and what does not fit into an array."""

import builtins
import re

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from lucid.errors import ShapeError
from lucid.tensor.numpy_calls.table import CONSTANT, RULES
from tests.device import DEVICE, shares_memory
from tests.tensor.numpy_calls.samples import OPERANDS
from tests.tensor.numpy_calls.test_rules import GONE, NOT_ASKED, ROWS, evaluated, leaf_of, plain

LIMITS = {"nanpercentile", "nanquantile"}
"""At an infinity NumPy has NaN where there is a limit."""


def operands_of(call, rng):
    """Return the operands that a call names."""
    return {key: OPERANDS[key](rng) for key in sorted({*re.findall(r"\b[a-zA-Z]\b", call)} & OPERANDS.keys())}


def outcome(call, module, operands):
    """Return arrays that a call gives, or the exception that it raises."""
    try:
        return [plain(result) for result in evaluated(call, module, operands) if result is not None]
    except Exception as error:  # noqa: BLE001 - which one it is is compared
        return error


def alike(made, expected, tolerance=1e-9, *, unless_nan=False):
    """Return whether two outcomes are one: an infinity and NaN are like themselves alone, errors of one of Python's."""
    if isinstance(expected, Exception):
        kind = next(kind for kind in type(expected).__mro__ if getattr(builtins, kind.__name__, None) is kind)
        return isinstance(made, kind)
    return isinstance(made, list) and all(
        one.shape == other.shape
        and (np.isclose(one, other, tolerance, tolerance / 10, equal_nan=True) | (unless_nan & (other != other))).all()
        for one, other in zip(made, expected, strict=True)
    )


@pytest.mark.parametrize("end", [np.inf, -np.inf, np.nan] if DEVICE == "cpu" else [-np.inf, np.nan])
def test_ends(end, rng):
    """With an infinity or NaN at either end of an operand of real numbers, or inside, the values are NumPy's.

    What decomposes a matrix raises, or has LAPACK's answer; on a device a transform of an infinity is NaN throughout,
    and so are parts of complex logarithms and quotients, which `emath` has.
    The places of `interp` rise, and come round with a period.
    """
    wrong, tried = [], 0
    for name, call in ROWS:
        values = operands_of(call, rng)
        if "linalg" in call or (DEVICE != "cpu" and ("fft" in name or "scimath" in name)):
            continue
        for key in (key for key in values if key in "xyvuspqc"):
            for place in sorted({0, np.size(values[key]) // 2, np.size(values[key]) - 1}):
                array = np.array(values[key])
                array.reshape(-1)[place] = end
                if name == "interp" and key == "u" and ("period" in call or not (np.diff(array) > 0).all()):
                    continue
                given = {**values, key: array}
                expected = outcome(call, np, given)
                made = outcome(call, lnp, {k: lnp.asarray(leaf_of(v)) if k.islower() else v for k, v in given.items()})
                single = isinstance(made, list) and any(one.dtype.char in "fF" for one in made)
                tried += 1
                if not alike(made, expected, 1e-5 if single else 1e-9, unless_nan=name in LIMITS):
                    wrong.append(f"{call} with {key}.flat[{place}] = {end}: {made}, {expected}")
    assert not wrong, "\n".join(wrong)
    assert tried > 1000


@pytest.mark.parametrize(
    "call",
    [
        *[
            "np.add(x, [1.0, 2.0, 3.0])",
            "np.maximum((1, 5, 2), x)",
            "np.power(x, [[1], [2]])",
            "np.divmod(x, [1, 2, 2])[1]",
        ],
        *["np.matmul(x, [1, 2, 3])", "np.arctan2([[1.0], [2.0]], x)", "np.add(x, [1, 2, 3], dtype='f8')"],
        *["np.multiply([x[0], 2.0, x[1]], x)", "np.less(x, [2, 2, 2])"],
    ],
)
def test_lists_beside_tensors(call):
    """A list, also one with tensors, is an array to NumPy's own ufuncs on Tensors, on either side."""
    x = lucid.tensor([1.0, 2.0, 3.0], dtype=lucid.float64, requires_grad=True)
    made, wanted = eval(call, {"np": np, "x": x}), eval(call, {"np": np, "x": x.numpy(force=True)})
    np.testing.assert_allclose(made.numpy(force=True), wanted)
    assert made.requires_grad is (wanted.dtype.kind == "f")


UNLIKE = {"argsort", "divmod", "ediff1d", "max", "min", "power", "reciprocal"}
"""Of integers: which of equal ones comes first, a rest that jumps, and what PyTorch
promotes or NumPy refuses."""


def test_integers(rng):
    """Of integers NumPy's own functions have NumPy's values, to a float32's first digits, or refuse their dtype."""
    wrong, refused = [], set()
    for name, call in ROWS:
        if name in {*UNLIKE, *NOT_ASKED} or (DEVICE != "cpu" and name == "lib.scimath.log2"):
            continue  # CUDA's complex log2 of 0 has NaN for its imaginary part
        values = operands_of(call, rng)
        for key in filter(str.islower, values):
            whole = np.rint(2 * np.nan_to_num(np.real(values[key]))).astype(np.int64)
            values[key] = np.cumsum(abs(whole) + 1) if key == "u" else abs(whole) + 1 if key == "p" else whole
        expected = outcome(call, np, values)
        tensors = {key: lucid.tensor(value) if key.islower() else value for key, value in values.items()}
        made = outcome(call, np, tensors)
        if isinstance(made, TypeError | ZeroDivisionError):
            refused.add(name)
        elif not alike(made, expected, 1e-3):
            wrong.append(f"{call}: {made}, {expected}")
    assert not wrong, "\n".join(wrong)
    assert len(refused) < 40


# What else functions with an axis take, of an array `s` of three dimensions.
BESIDE = {
    "append": "s", "array_split": "2", "compress": "[True, False]", "cross": "s", "delete": "1", "diff": "1",
    "geomspace": "s + 1", "insert": "1, 5.0", "linspace": "2.0", "logspace": "2.0", "nanpercentile": "30",
    "nanquantile": "0.3", "partition": "1", "percentile": "30",
    "quantile": "[0.2, 0.7]", "repeat": "2", "roll": "1", "split": "1", "take": "[0, -1]",
    "take_along_axis": "np.zeros((1, 1, 1), int)", "linalg.cross": "s", "linalg.vecdot": "s",
}  # fmt: skip
SEQUENCES = {"concat", "concatenate", "stack"}


def test_every_axis(rng):
    """Of three dimensions each axis, counted from either end, is NumPy's, and one beyond them is NumPy's error."""
    tried, wrong = set(), []
    for name in sorted(name for name, rule in RULES.items() if "axis" in rule.names and name not in {*GONE, *WRITTEN}):
        given = "(s, s)" if name in SEQUENCES else "s"
        s = rng.uniform(0.5, 2.0, (3 if name.endswith("cross") else 2, 3, 3))  # a cross product is one of three numbers
        for size in (3, 1):
            part = s[:, :size, :size]  # only a size of 1 is squeezed
            for axis in range(-4, 4):
                call = f"np.{name}({given}{', ' if name in BESIDE else ''}{BESIDE.get(name, '')}, axis={axis})"
                expected = outcome(call, np, {"s": part.copy()})
                if isinstance(expected, TypeError):
                    continue
                made = outcome(call, lnp, {"s": lnp.asarray(leaf_of(part))})
                tried.add(name)
                if not alike(made, expected):
                    wrong.append(f"{call}: {made}, {expected}")
    assert not wrong, "\n".join(wrong)
    assert len(tried) > 70


ODD_AXES = "[0] | [0, 1] | [] | () | (0, 0) | (0, -3) | (0,) | (True,) | True | np.True_ | np.array([0]) | np.array(1)"
LOUD = {"geomspace", "linspace", "logspace", "unstack"}
"""What refuses an axis in a list, which NumPy takes."""


def test_axes_of_odd_kinds(rng):
    """What NumPy refuses as an axis is refused, and whatever is taken has NumPy's values; a bool is none anywhere.

    On a device constants, `argmax` and `all`, are CuPy's own, which takes lists.
    """
    tried, wrong = 0, []
    others = {*GONE, *WRITTEN, *(CONSTANT if DEVICE != "cpu" else ())}
    for name in sorted(name for name, rule in RULES.items() if "axis" in rule.names and name not in others):
        call = f"np.{name}({'(s, s)' if name in SEQUENCES else 's'}, {BESIDE.get(name, '')}, axis=W)".replace(
            ", ,", ","
        )
        for s, kinds in ((rng.uniform(0.5, 2.0, (3, 3, 3)), ODD_AXES), (np.array(1.5), "0 | -1 | 1 | (0,) | ()")):
            for kind in kinds.split(" | "):
                axis = eval(kind)
                expected = outcome(call, np, {"s": s.copy(), "W": axis})
                made = outcome(call, lnp, {"s": lnp.asarray(leaf_of(s)), "W": axis})
                is_loud = isinstance(made, Exception) and ("True" in kind or name in LOUD)
                is_refused = isinstance(made, Exception) and isinstance(expected, Exception)
                if not (is_refused or is_loud or (isinstance(expected, list) and alike(made, expected))):
                    wrong.append(f"{call} of {s.ndim} dimensions, W = {kind}: {made}, {expected}")
                tried += 1
    assert not wrong, "\n".join(wrong)
    assert tried > 1000


SIZES_OF_ONE = [
    "np.inner(x, np.ones((2, 1)))", "np.inner(v, np.ones(1))", "np.dot(x, np.ones(1))", "np.dot(x, np.ones((1, 2)))",
    "np.vdot(v, np.ones(1))", "np.matmul(x, np.ones((1, 2)))", "np.tensordot(x, np.ones((1, 2)), 1)",
    "np.tensordot(s, np.ones((1, 1)), 2)", "np.tensordot(x, np.ones((1, 2)), ([1], [0]))", "np.vecdot(v, np.ones(1))",
    "np.concatenate([x, np.ones((1, 1))])", "np.vstack([x, np.ones((1, 1))])", "np.hstack([x, np.ones((1, 1))])",
    "np.dstack([x, np.ones((1, 4))])", "np.stack([x, np.ones((1, 4))])", "np.append(x, np.ones((1, 1)), 0)",
    "np.linalg.multi_dot([x, np.ones((1, 2))])", "np.linalg.solve(np.eye(3), x[:1])", "np.cross(v[:3], np.ones(1))",
    "np.linalg.vecdot(x, np.ones(1))", "np.matvec(x, np.ones(1))", "np.vecmat(np.ones(1), x)", "np.convolve(x, v)",
    "np.cov(v, np.ones(1))", "np.corrcoef(v, np.ones(1))", "np.column_stack([v, np.ones(1)])",
    "np.interp(v, np.array([0.0, 1.0]), np.ones(1))", "np.bincount([0, 1], weights=v[:1])",
    "np.insert(x, 1, np.ones(3), axis=0)", "np.broadcast_to(v, (3, 1))", "np.reshape(v, (2, 1))", "x + v[:3]",
    "np.linalg.cross(s[..., :2], s[..., :2])", "np.linalg.cross(x[:, :3], x[:, :2])", "np.cross(x, x[:, :3])",
    "np.gradient(v[:2], edge_order=2)", "np.gradient(v[:1])", "np.gradient(x, axis=0, edge_order=3)",
    "np.convolve(v, v[:0])", "np.convolve(v, v, 3)", "np.convolve(v, v, 'all')", "np.convolve(x, v)",
    "np.convolve(v, x)", "np.correlate(x, v)", "np.correlate(v, x)", "np.repeat(v, -1)", "np.repeat(v, [1, -1, 1])",
]  # fmt: skip


@pytest.mark.parametrize("call", SIZES_OF_ONE)
def test_sizes_that_numpy_refuses(call, rng):
    """Where NumPy does not broadcast a size of 1, or other sizes do not fit, there is an error of its kind."""
    values = {key: OPERANDS[key](rng) for key in "xvs"}
    expected = outcome(call, np, values)
    assert isinstance(expected, ValueError | IndexError)
    assert isinstance(outcome(call, lnp, {key: lnp.asarray(leaf_of(v)) for key, v in values.items()}), ValueError)


OF_PARTS = [
    "np.polyadd(x, x[:, :1])", "np.polysub(x, x[0])", "np.polyadd(x, v[:4])", "np.polyadd(x[:1], v)",
    "np.polymul(x, x)", "np.polymul(0 * v, v)", "np.polymul(v * [0, 0, 1, 2, 0], v)", "np.polymul(v, [0, 1])",
    "np.polymul(v[:0], v)",
    "np.polyder(x)", "np.polyder(v, -1)", "np.polyint(x)", "np.polyint(v, -1)",
    *[
        f"np.{name}({array}{q}{axis})"
        for name, q in (("nanquantile", ", 0.3"), ("nanquantile", ", [0.3, 0.6]"), ("nanpercentile", ", [30, 60]"),
                        ("nanmedian", ""))
        for array in ("x[:0]", "x[:, :0]")
        for axis in ("", ", axis=0", ", axis=1, keepdims=True", ", axis=(0, 1)")
    ],
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
def test_polynomials_and_quantiles_of_odd_shapes(rng):
    """Polynomials of several dimensions, with zeros in front, and quantiles of nothing are NumPy's, or its errors."""
    for call in OF_PARTS:
        values = {key: OPERANDS[key](rng) for key in "xv"}
        expected = outcome(call, np, values)
        made = outcome(call, lnp, {key: lnp.asarray(leaf_of(v)) for key, v in values.items()})
        assert alike(made, expected), (call, made, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_extremes_begin_with_a_number(dtype, rng):
    """What extremes begin with is the extreme of no elements, and of NaN alone where NaN is left out."""
    s = rng.standard_normal((2, 3, 4)).astype(dtype)
    s[0, 1] = np.nan
    initial = (-9, 0.25, np.nan, 7) if dtype[0] == "f" else (-9, 0.25 + 1j)
    for array in (s, s[:0], s[:, :, :0]):
        for name in ("max", "min", "nanmax", "nanmin"):
            for rest in ("", ", axis=0", ", axis=2, keepdims=True", ", axis=(0, 2)"):
                call = f"np.{name}(s{rest}, initial=W)"
                for number in initial:
                    expected = outcome(call, np, {"s": array, "W": number})
                    made = outcome(call, lnp, {"s": lnp.asarray(leaf_of(array)), "W": number})
                    assert alike(made, expected), (call, number, made, expected)
                    assert made[0].dtype == expected[0].dtype
                x = lnp.asarray(lucid.tensor(array, requires_grad=True))
                assert isinstance(eval(call, {"np": lnp, "s": x, "W": 1}), lucid.Tensor)


def test_only_vectors_slide():
    """What is no vector on either side of a convolution or a correlation is refused as such, with both shapes."""
    line, square = leaf_of(np.ones(3)), leaf_of(np.ones((4, 3)))
    for function in (np.convolve, np.correlate):
        for operands in ((square, line), (line, square), (square, square)):
            with pytest.raises(ShapeError, match="expected vectors that are not empty, got shapes"):
                function(*operands)


@pytest.mark.parametrize("name", ["fftn", "ifft2", "rfftn", "irfft2"])
def test_sizes_of_axes_that_are_not_there(name, rng):
    """A transform says which axis is not there, also where it has the size that the axis has, which is none."""
    x = leaf_of(rng.standard_normal((4, 3)))
    for size in (-1, 5):
        for axis in (2, -3):
            with pytest.raises(IndexError, match=rf"range of \[-2, 1\], but got {axis}"):
                getattr(np.fft, name)(x, s=(4, size), axes=(0, axis))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_einsum_of_arrays_beside_a_tensor(at, kind, rng):
    """Both forms take arrays and lists in every place but that of one tensor, in NumPy's dtype."""
    operands = [rng.integers(-5, 5, shape).astype(kind) for shape in ((2, 3), (3, 4), (4, 2))]
    expected = np.einsum("ij,jk,kl->il", *operands)
    given = [operand if place != at else leaf_of(operand.astype(float)) for place, operand in enumerate(operands)]
    given[(at + 1) % 3] = given[(at + 1) % 3].tolist()
    for made in (
        np.einsum("ij,jk,kl->il", *given),
        np.einsum(given[0], [0, 1], given[1], [1, 2], given[2], [2, 3], [0, 3]),
        np.einsum(given[0], [0, 1], given[1], [1, 2], given[2], [2, 3]),
    ):
        assert made.dtype is lucid.float64
        np.testing.assert_allclose(plain(made), expected)


def test_counts_of_nothing():
    """Of no numbers there are no counts, or as many of zero as were asked for."""
    weights = lnp.asarray(leaf_of(np.zeros(0)))
    for least in (0, 3):
        assert lnp.bincount([], weights=weights, minlength=least).tolist() == [0.0] * least


# Calls that write `v` into an array `w` of four elements.
WRITTEN = {
    "copyto": "np.copyto(w, v, where=K)",
    **{f"copyto {kind}": f"np.copyto(w, v, '{kind}', where=K)" for kind in ("no", "safe", "unsafe")},
    "fill_diagonal": "np.fill_diagonal(np.reshape(w, (2, 2)), v)",
    "insert": "w.__setitem__(..., np.insert(w, [1], v)[:4])",
    "place": "np.place(w, K, v)",
    "put": "np.put(w, [1], v)",
    "put_along_axis": "np.put_along_axis(w, np.array([1]), v, 0)",
    "putmask": "np.putmask(w, K, v)",
}
VALUES = [
    1.5, 2, 300, True, 1j, [1.5], [2], np.float64(1.5), np.float32(2), np.array(1.5), np.array([1.5]), np.array([1]),
    np.array([1 / 3], np.float32), np.array([1j]), np.array([True]),
]  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("of", ["int64", "int8", "bool", "float32", "float64", "complex64"])
def test_what_is_written_is_cast_or_refused_as_by_numpy(name, of):
    """Whatever is written, the array keeps its dtype and its other elements every digit, or there is NumPy's error."""
    mask = np.array([False, True, False, False])
    for value in VALUES:
        array = np.array([2, -3, 5, 7]).astype(of) * (2**60 + 1 if of == "int64" else 1)
        forms = [value, lucid.tensor(value)] if isinstance(value, np.ndarray) else [value]
        tensors = [lucid.tensor(array) for _ in forms]
        expected = outcome(WRITTEN[name], np, {"w": array, "v": value, "K": mask})
        for tensor, form in zip(tensors, forms, strict=True):
            made = outcome(WRITTEN[name], np, {"w": tensor, "v": form, "K": mask})
            assert alike(made, expected), (value, made, expected)
            assert plain(tensor).dtype == array.dtype
            np.testing.assert_array_equal(plain(tensor), array)


@pytest.mark.parametrize("ends", [(0.0, 2.0), (2.0, 0.0), ([1.0, 0.0], 2.0), (2.0, [1.0, 0.0])])
def test_no_factor_leads_to_zero(ends):
    """`geomspace` refuses an end of zero, whichever it is, as NumPy does."""
    with pytest.raises(ValueError, match=r"."):
        np.geomspace(*ends)
    with pytest.raises(ValueError, match="ends other than zero"):
        np.geomspace(*[lucid.tensor(end, requires_grad=True) for end in ends])


@pytest.mark.parametrize("name", ["quantile", "percentile", "nanquantile", "nanpercentile"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_no_quantiles(name, dtype, rng):
    """Of no quantiles the result has no elements, in NumPy's shape and dtype."""
    values = rng.standard_normal((2, 3)).astype(dtype)
    for axis in (None, 0, 1):
        made = getattr(lnp, name)(leaf_of(values), [], axis=axis)
        expected = getattr(np, name)(values, [], axis=axis)
        assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
        assert made.requires_grad


def test_no_lines_to_apply_a_function_to():
    """`apply_along_axis` says that there is no line along the axis, as NumPy does."""
    with pytest.raises(ShapeError, match="any iteration dimensions are 0"):
        lnp.apply_along_axis(lnp.sum, 0, lucid.ones(2, 0, requires_grad=True))


@pytest.mark.parametrize(
    "call",
    [
        "np.linalg.cholesky(-m @ m.T)", "np.linalg.inv(m * 0)", "np.linalg.solve(m * 0, x)",
        "np.linalg.svd(m * np.nan)",
        "np.linalg.eig(m * np.nan)", "np.linalg.inv(x)", "np.linalg.det(x)", "np.linalg.det(v)", "np.linalg.slogdet(x)",
        "np.linalg.cholesky(x)", "np.linalg.eigh(x)", "np.linalg.lstsq(x, v)", "np.linalg.qr(v)", "np.linalg.pinv(v)",
        "np.linalg.matrix_power(x, 2)", "np.linalg.solve(x, x)", "np.linalg.cond(x[:0])",
    ],
)  # fmt: skip
def test_what_has_no_factors(call, rng):
    """The class of NumPy's error catches lucid's, of a matrix without factors and of a shape, which is a ShapeError."""
    values = operands_of(call, rng)
    with np.errstate(invalid="ignore"), pytest.raises(np.linalg.LinAlgError):
        eval(call, {"np": np, **values})
    with pytest.raises(np.linalg.LinAlgError) as caught:
        eval(call, {"np": lnp, **{key: lnp.asarray(leaf_of(value)) for key, value in values.items()}})
    assert isinstance(caught.value, ShapeError) == ("x" in call.replace("(m * 0, x)", "") or "v)" in call[-3:])


def test_a_copy_of_a_shape_in_any_order(rng):
    """What `reshape` copies lies in memory of its own; what it must not copy is a view, or is refused."""
    for order in "CFA":
        for turned in (False, True):
            for shape in ((3, 2), (2, 3), 6):
                values = rng.standard_normal((2, 3))
                array, x = values, lnp.asarray(leaf_of(values)) * 1
                array, x = (array.T, x.T) if turned else (array, x)
                made, expected = (f.reshape(y, shape, order, copy=True) for f, y in ((lnp, x), (np, array)))
                assert not shares_memory(made, x)
                assert made.array.strides == expected.strides
                np.testing.assert_array_equal(plain(made), expected)
                for copy in (None, False):
                    try:
                        np.reshape(array, shape, order, copy=False)
                    except ValueError:
                        if copy is None:
                            assert not shares_memory(lnp.reshape(x, shape, order), x)
                        else:
                            with pytest.raises(ValueError, match="Unable to avoid"):
                                lnp.reshape(x, shape, order, copy=False)
                    else:
                        assert shares_memory(lnp.reshape(x, shape, order, copy=copy), x)


@pytest.mark.cpu("with NumPy's own")
@pytest.mark.filterwarnings("ignore")
def test_one_observation():
    """`cov` of columns of one row is NumPy's, NaN, and another row beside is refused."""
    row = np.array([[1.0, 2.0, 4.0]])
    x = lnp.asarray(lucid.tensor(row, requires_grad=True))
    np.testing.assert_array_equal(lnp.cov(x, rowvar=False).detach().numpy(), np.cov(row, rowvar=False))
    for module, first in ((np, row), (lnp, x)):
        with pytest.raises(ValueError, match=r"."):
            module.cov(first, row, rowvar=False)


@pytest.mark.cpu("with NumPy's own")
def test_orders_of_what_is_contiguous_both_ways():
    """A vector under another shape has its elements by rows in the order "A", as in NumPy."""
    values = np.arange(6.0)
    x = lnp.asarray(lucid.tensor(values, requires_grad=True)) * 1
    for order in "AC":
        np.testing.assert_array_equal(lnp.reshape(x, (2, 3), order=order).detach().numpy(), values.reshape(2, 3))
        np.testing.assert_array_equal(lnp.ravel(x, order).detach().numpy(), values)
