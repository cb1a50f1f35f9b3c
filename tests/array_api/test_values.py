"""Values, dtypes, shapes and gradients of the array API's functions: of NumPy's functions, and differences of them."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import array_api as xp
from lucid.array_api.data_types import KINDS
from tests.array_api.rows import ELSEWHERE, FLAT, OVER, ROWS, SIGNS_FREE
from tests.array_api.test_names import STANDARD

NAMES = [f"{name}-{place}" for place, (name, _, _) in enumerate(ROWS)]


def function_of(module, name):
    """Return a function by its name below a namespace."""
    for part in name.split("."):
        module = getattr(module, part)
    return module


def in_lucid(value, *, requires_grad=False):
    """Return an argument of NumPy's as one of the namespace's."""
    if isinstance(value, list) and isinstance(value[0], np.ndarray):
        return [in_lucid(each, requires_grad=requires_grad) for each in value]
    if isinstance(value, np.ndarray):
        return lucid.tensor(value, requires_grad=requires_grad and value.dtype.kind in "fc")
    return value


def options_of(options, make):
    """Return keywords, with dtypes and arrays of a namespace."""
    made = {key: in_lucid(value) if make else value for key, value in options.items()}
    if "dtype" in made and made["dtype"] is not None:
        made["dtype"] = getattr(xp if make else np, made["dtype"])
    return made


def called(name, args, options, *, requires_grad=False):
    """Return the namespace's result and its operands."""
    args = [in_lucid(each, requires_grad=requires_grad) for each in args]
    if name == "astype":
        args[1] = getattr(lucid, args[1])
    return function_of(xp, name)(*args, **options_of(options, make=True)), args


def reference(name, args, options):
    """Return NumPy's result."""
    if name.endswith("fftfreq"):
        options = {key: value for key, value in options.items() if key != "dtype"}
    return function_of(np, name)(*args, **options_of(options, make=False))


def parts_of(name, result):
    """Return the arrays of a result that are compared."""
    parts = list(result) if isinstance(result, list | tuple) else [result]
    return [parts[k] for k in SIGNS_FREE.get(name, range(len(parts)))]


def test_every_function_has_a_row():
    """Each name of the standard is called in `ROWS`, or has a test of its own."""
    names = {name for name in STANDARD if not name.startswith(("array.", "__array_namespace_info__."))}
    assert names == {name for name, _, _ in ROWS} | ELSEWHERE


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_values_are_numpys(row):
    """NumPy implements the standard: values, shapes and dtypes are its own."""
    name, args, options = row
    made, _ = called(name, args, options)
    wanted = reference(name, args, options)
    assert isinstance(made, list | tuple) == isinstance(wanted, list | tuple)
    assert len(parts_of(name, made)) == len(parts_of(name, wanted))
    for one, other in zip(parts_of(name, made), parts_of(name, wanted), strict=True):
        assert isinstance(one, lucid.Tensor)
        assert tuple(one.shape) == np.shape(other)
        assert one.array.dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one.numpy(force=True), other, rtol=1e-10, atol=1e-12)


def number_of(parts, weights):
    """Return one real number of all results."""
    return sum(float(np.sum(np.real(np.asarray(part) * weight))) for part, weight in zip(parts, weights, strict=True))


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_gradients_are_differences(row, rng):
    """What can carry a gradient is recorded, in each operand of floats, and has the one of NumPy's function."""
    name, args, options = row
    operands = [each for arg in args for each in (arg if isinstance(arg, list) else [arg])]
    floats = [each for each in operands if isinstance(each, np.ndarray) and each.dtype.kind == "f"]
    if name in FLAT or not floats or any(np.iscomplexobj(each) for each in operands):
        made, _ = called(name, args, options, requires_grad=True)
        for part in parts_of(name, made):
            assert name not in FLAT or part.array.dtype.kind in "fc" or not part.requires_grad
        return
    made, given = called(name, args, options, requires_grad=True)
    parts = [part for part in parts_of(name, made) if part.dtype.is_floating_point or part.dtype.is_complex]
    assert parts
    assert all(part.requires_grad for part in parts)
    places = [k for k, part in enumerate(parts_of(name, made)) if any(part is each for each in parts)]
    weights = [np.asarray(rng.uniform(0.5, 1.5, tuple(part.shape))) for part in parts]
    total = sum((part * lucid.tensor(weight)).sum() for part, weight in zip(parts, weights, strict=True))
    (total.real if total.dtype.is_complex else total).backward()
    leaves = [each for arg in given for each in (arg if isinstance(arg, list) else [arg])]
    leaves = [each for each in leaves if isinstance(each, lucid.Tensor) and each.requires_grad]
    for leaf, array in zip(leaves, floats, strict=True):
        slope = np.zeros(array.shape)
        step = 1e-2 if name == "astype" and args[1] == "float32" else 1e-6
        for place in np.ndindex(array.shape):
            sides = []
            for sign in (1, -1):
                kept, array[place] = array[place], array[place] + sign * step
                results = parts_of(name, reference(name, args, options))
                sides.append(number_of([results[k] for k in places], weights))
                array[place] = kept
            slope[place] = (sides[0] - sides[1]) / (2 * step)
        grad = np.zeros(array.shape) if leaf.grad is None else leaf.grad.numpy(force=True)
        np.testing.assert_allclose(grad, slope, rtol=2e-5, atol=2e-6)


def test_operands_without_dimensions_promote():
    """A tensor of no dimension counts as any other; numbers of Python's are weak."""
    narrow, wide = lucid.ones(3, dtype=lucid.float32), lucid.tensor(2.0, dtype=lucid.float64)
    assert xp.add(narrow, wide).dtype is lucid.float64
    assert xp.concat([narrow, wide.reshape(1)]).dtype is lucid.float64
    assert xp.stack([narrow, narrow.double()]).dtype is lucid.float64
    assert xp.where(narrow > 0, narrow, wide).dtype is lucid.float64
    assert xp.add(narrow, 2.0).dtype is lucid.float32
    assert xp.result_type(narrow, wide) is lucid.float64
    assert xp.result_type(narrow, 2.0) is lucid.float32
    assert xp.result_type(lucid.int32, lucid.ones((), dtype=lucid.int8)) is lucid.int32
    assert (narrow + wide).dtype is lucid.float32  # an operator is PyTorch's


@pytest.mark.parametrize("number", [True, 1, 1.0, 1j])
def test_numbers_are_weak(number):
    """A number of Python's changes no dtype of its kind or a higher one, and leads from a lower one to its own kind."""
    kinds = ["bool", "integral", "real floating", "complex floating"]
    own = [bool, int, float, complex].index(type(number))
    for name in (name for names in KINDS.values() for name in names):
        dtype = getattr(lucid, name)
        rank = next(k for k, kind in enumerate(kinds) if xp.isdtype(dtype, kind))
        made = xp.result_type(dtype, number)
        assert made is dtype if rank >= own else xp.isdtype(made, kinds[own])
        assert xp.result_type(number, lucid.ones(2, dtype=dtype)) is made


@pytest.mark.parametrize("rows", range(4))
def test_eye(rows):
    """A diagonal lies where NumPy has it, for each offset, also one beyond the matrix."""
    for columns in range(5):
        for k in range(-6, 7):
            np.testing.assert_array_equal(xp.eye(rows, columns, k=k).numpy(force=True), np.eye(rows, columns, k))


def test_dtypes():
    """Kinds, limits and casts are the standard's; limits have a dtype that is one."""
    for kind, names in KINDS.items():
        for name in names:
            dtype = getattr(lucid, name)
            assert xp.isdtype(dtype, kind)
            assert xp.isdtype(dtype, ("bool", "numeric"))
            assert xp.isdtype(dtype, "integral") == ("integer" in kind)
            assert xp.can_cast(dtype, dtype)
    assert xp.isdtype(lucid.float32, (lucid.int8, lucid.float32))
    assert not xp.isdtype(lucid.float32, lucid.float64)
    with pytest.raises(ValueError, match=r"expected one of bool, signed integer, .*, got 'float'"):
        xp.isdtype(lucid.float32, "float")
    limits, own = xp.finfo(lucid.ones(1, dtype=lucid.complex64)), np.finfo(np.float32)
    assert (limits.bits, limits.eps, limits.max, limits.dtype) == (32, own.eps, own.max, lucid.float32)
    assert xp.iinfo(lucid.int8) == (8, 127, -128, lucid.int8)
    assert xp.can_cast(lucid.int8, lucid.int16)
    assert not xp.can_cast(lucid.float64, lucid.float32)
    with pytest.raises(TypeError, match="would lose the imaginary parts: use real"):
        xp.astype(lucid.ones(1, dtype=lucid.complex64), lucid.float32)
    with pytest.raises(ValueError, match="at least one array or dtype"):
        xp.result_type(1.0)


def test_infinities():
    """Where PyTorch's values are not the standard's, the namespace has the standard's."""
    inf, nan = np.inf, np.nan
    x = lucid.tensor([inf, -inf, 1.0, -1.0, 7.0], dtype=lucid.float64, requires_grad=True)
    y = lucid.tensor([2.0, 2.0, -inf, inf, 2.0], dtype=lucid.float64)
    np.testing.assert_array_equal(xp.floor_divide(x, y).numpy(force=True), [inf, -inf, -0.0, -0.0, 3.0])
    np.testing.assert_array_equal(xp.sign(lucid.tensor([nan, -2.0])).numpy(force=True), [nan, -1.0])
    z = lucid.tensor([complex(inf, 3), complex(-inf, nan), complex(inf, inf), 1j], dtype=lucid.complex128)
    made = xp.tanh(z).numpy(force=True)
    np.testing.assert_array_equal(made[:3], [1, -1, 1])
    np.testing.assert_allclose(made[3], np.tanh(1j))
    np.testing.assert_array_equal(
        xp.expm1(lucid.tensor([complex(-inf, nan), complex(inf, 0)])).numpy(force=True), [-1, inf]
    )
    lost = lucid.tensor([complex(inf, nan), complex(nan, -inf)])
    for name in ("log", "log1p", "log2", "log10"):
        made = getattr(xp, name)(lost).numpy(force=True)
        assert (np.isposinf(made.real) & np.isnan(made.imag)).all()
    at = xp.acosh(lucid.tensor(complex(0, nan))).numpy(force=True)
    assert np.isnan(at.real)
    assert at.imag == pytest.approx(np.pi / 2)


def test_lists_of_tensors_stay_on_the_graph():
    """`asarray` of nested lists of tensors and numbers is recorded."""
    x = lucid.tensor(2.0, dtype=lucid.float64, requires_grad=True)
    made = xp.asarray([[x, 1.0], [x * x, 3.0]])
    assert made.dtype is lucid.float64
    made.sum().backward()
    assert float(x.grad) == 5.0
    filled = xp.full((2, 2), x.detach().requires_grad_())
    assert filled.requires_grad


def test_results_may_be_changed_in_place():
    """What `unstack` gives is written into, as code for NumPy does."""
    first, _ = xp.unstack(lucid.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True) * 1.0)
    first[0] = 7.0
    assert first.tolist() == [7.0, 2.0]


OVER_AXES = [row for row in ROWS if (row[0] in OVER or row[0].endswith("_norm")) and row[1][0].dtype.kind == "f"]


@pytest.mark.parametrize("row", OVER_AXES, ids=str)
def test_a_reduction_may_be_changed_in_place(row):
    """What is written into a result, as code for NumPy does, changes nothing of the gradient of what was made of it."""
    name, args, options = row
    grads = []
    for change in (False, True):
        made, (x, *_) = called(name, args, options, requires_grad=True)
        if not made.requires_grad:
            return
        total = (made * 2.0).sum()
        if change:
            made[...] = 0.0
        grads += lucid.autograd.grad(total, [x])
    np.testing.assert_array_equal(*[grad.numpy(force=True) for grad in grads])


@pytest.mark.parametrize("name", ["empty", "ones", "zeros"])
def test_what_is_made(name):
    """A shape is a number or a tuple, the dtype float32 by default."""
    made = getattr(xp, name)(3)
    assert (tuple(made.shape), made.dtype) == ((3,), lucid.float32)
    assert tuple(getattr(xp, name)((2, 3), dtype=lucid.int8).shape) == (2, 3)
    like = xp.empty_like(made, dtype=lucid.int64)
    assert (tuple(like.shape), like.dtype) == ((3,), lucid.int64)


def test_broadcast_arrays():
    """Arrays come in a list, in their own dtypes."""
    made = xp.broadcast_arrays(lucid.ones(3), lucid.ones((2, 1), dtype=lucid.int8))
    assert isinstance(made, list)
    assert [(tuple(each.shape), each.dtype) for each in made] == [((2, 3), lucid.float32), ((2, 3), lucid.int8)]


def test_distinct_elements(rng):
    """Equal elements are one, each NaN is its own, and the gradient of each goes to the first of its kind."""
    array = np.array([[0.5, 0.2, 0.5], [np.nan, 0.2, np.nan]])
    x = lucid.tensor(array, requires_grad=True)
    made, wanted = xp.unique_all(x), np.unique_all(array)
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(one.numpy(force=True), other)
    weights = rng.uniform(0.5, 1.5, 4)
    (made.values * lucid.tensor(weights)).sum().backward()
    assert x.grad.tolist() == [[weights[1], weights[0], 0], [weights[2], 0, weights[3]]]


def test_qr(rng):
    """The factors multiply to the matrix, and so do their gradients."""
    x = lucid.tensor(rng.uniform(0.2, 0.9, (3, 3)) + np.eye(3), requires_grad=True)
    found = xp.linalg.qr(x)
    made = xp.matmul(found.Q, found.R)
    np.testing.assert_allclose(made.numpy(force=True), x.numpy(force=True), atol=1e-12)
    weights = lucid.tensor(rng.uniform(0.5, 1.5, (3, 3)))
    (made * weights).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(force=True), weights.numpy(force=True), atol=1e-10)
    assert tuple(xp.linalg.qr(x[:, :2], mode="complete").Q.shape) == (3, 3)


REFUSED = {
    "abs": (lambda: xp.abs(np.ones(2)), TypeError, "expected a Tensor, got"),
    "add": (lambda: xp.add(1.0, 2.0), TypeError, "expected a Tensor, got"),
    "cumulative_sum": (lambda: xp.cumulative_sum(lucid.ones((2, 2))), ValueError, "expected one for an array of 2"),
    "nonzero": (lambda: xp.nonzero(lucid.tensor(1.0)), ValueError, "at least one dimension"),
    "vecdot": (lambda: xp.vecdot(lucid.ones(1), lucid.ones(2)), ValueError, "expected two equal sizes"),
    "reshape": (lambda: xp.reshape(lucid.ones((2, 3)).mT, (6,), copy=False), RuntimeError, "view size"),
    "asarray": (lambda: xp.asarray([1.0], copy=False), ValueError, "copy is False"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    """What the standard does not know is refused, with what was expected."""
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("name", [name for name in xp.linalg.__all__ if name not in {"outer", "matmul", "tensordot"}])
def test_matrices_of_integers(name):
    """They give what NumPy gives, or are refused by their dtype."""
    values = np.array([[2, 1], [1, 3]])
    try:
        found = getattr(xp.linalg, name)(lucid.tensor(values))
    except lucid.errors.DtypeError as error:
        assert "expected" in str(error)  # noqa: PT017 - either of both
    except TypeError:
        assert name in {"cross", "matrix_power", "solve", "vecdot"}
    else:
        np.testing.assert_allclose(found.cpu().numpy(), getattr(np.linalg, name)(values))
