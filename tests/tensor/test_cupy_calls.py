"""CuPy's operators, ufuncs, reductions and shape functions with tensors: recorded, or refused by name.

Values are NumPy's of the same call, gradients are held against differences of what NumPy gives.
"""

from __future__ import annotations

import operator

import numpy as np
import pytest

import lucid
import lucid.numpy as lnp
from lucid.errors import DeviceError, DtypeError, GraphError, InplaceError, ShapeError
from lucid.tensor.cupy_calls import OPS
from lucid.tensor.interop import ExportError
from lucid.tensor.numpy_calls.operands import NumpyCallError
from lucid.tensor.numpy_calls.ufuncs import UFUNCS
from tests.device import two_devices

pytestmark = pytest.mark.gpu

A = np.array([[1.1, 0.7, -0.3], [0.2, 2.0, 0.9]])
X = np.array([[0.6, -1.2, 0.8], [1.45, 0.3, -0.4]])
STEP = 1e-6

OPERATORS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "eq": operator.eq, "ne": operator.ne, "divmod": divmod,
    "pow": lambda a, x: abs(a) ** x, "matmul": lambda a, x: a @ x.T,
}  # fmt: skip
REFLECTED = {"pow", "matmul"}
"""Whose call does not fit the operands the other way round."""
BITS = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "lshift": operator.lshift,
    "rshift": operator.rshift, "floordiv": operator.floordiv, "mod": operator.mod, "mul": operator.mul,
}  # fmt: skip
TWO = [
    "add", "subtract", "multiply", "divide", "true_divide", "maximum", "minimum", "fmax", "fmin", "arctan2", "hypot",
    "logaddexp", "logaddexp2", "copysign", "floor_divide", "remainder", "fmod", "nextafter", "heaviside", "equal",
    "less", "logical_and",
]  # fmt: skip
ONE = [
    "negative", "absolute", "fabs", "sign", "exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "arcsinh", "arctan", "square", "reciprocal", "cbrt", "rint", "floor", "ceil", "trunc", "degrees", "radians",
    "rad2deg", "deg2rad", "conjugate", "positive", "isnan", "isfinite", "signbit", "sinc", "i0", "angle",
    "logical_not",
]  # fmt: skip
ABOVE_ONE = [
    "sqrt", "log", "log2", "log10", "log1p", "arccosh",
]  # fmt: skip
INSIDE = [
    "arcsin", "arccos", "arctanh",
]  # fmt: skip
REDUCTIONS = [
    "sum", "prod", "mean", "std", "var", "max", "min", "amax", "amin", "argmax", "argmin", "nanmax", "nanmin",
]  # fmt: skip

INSIST = [
    "cumsum", "cumprod", "all", "any", "nansum", "median", "nonzero",
]  # fmt: skip


def row(name, *more, **keywords):
    """Return a call of a function of the module, of the tensor and what is given."""
    return lambda xp, a, x: getattr(xp, name)(x, *more, **keywords)


CALLS = {
    **{name: lambda xp, a, x, name=name: getattr(xp, name)(a, x) for name in TWO},
    **{name: row(name) for name in ONE},
    **{name: lambda xp, a, x, name=name: getattr(xp, name)(x * x + 1.1) for name in ABOVE_ONE},
    **{name: lambda xp, a, x, name=name: getattr(xp, name)(x / 2) for name in INSIDE},
    "fix": lambda xp, a, x: np.trunc(x) if xp is np else xp.fix(x),
    "power": lambda xp, a, x: xp.power(xp.abs(a), x),
    "float_power": lambda xp, a, x: xp.float_power(xp.abs(a), x),
    "ufunc with a number": lambda xp, a, x: xp.multiply(2.0, x),
    "ufunc with dtype": lambda xp, a, x: xp.add(a, x, dtype="float64"),
    "where": lambda xp, a, x: xp.where(a > 0.5, a, x),
    "where of a tensor": lambda xp, a, x: xp.where(x > 0, x, a),
    **{name: row(name) for name in REDUCTIONS},
    **{f"{name} along": row(name, axis=0) for name in REDUCTIONS},
    **{f"{name} kept": row(name, axis=1, keepdims=True) for name in REDUCTIONS},
    "sum of two axes": row("sum", (0, 1)),
    "var less one": row("var", ddof=1),
    "std less one": row("std", axis=0, ddof=1),
    "trace": row("trace"),
    "clip": row("clip", -0.5, 0.9),
    "clip below": row("clip", None, 0.9),
    "argsort": row("argsort", axis=0),
    "reshape": row("reshape", (3, -1)),
    "reshape in columns": row("reshape", (3, 2), order="F"),
    "ravel": row("ravel"),
    "transpose": row("transpose"),
    "transpose in order": row("transpose", (1, 0)),
    "swapaxes": row("swapaxes", 0, 1),
    "squeeze": lambda xp, a, x: xp.squeeze(x[:1]),
    "squeeze one": lambda xp, a, x: xp.squeeze(x[:1], 0),
    "diagonal": row("diagonal"),
    "repeat": row("repeat", 2),
    "repeat along": row("repeat", 2, 1),
    "repeat each": lambda xp, a, x: xp.repeat(x, [1, 2], 0),
    "take": lambda xp, a, x: xp.take(x, xp.asarray([0, 4])),
    "take along": lambda xp, a, x: xp.take(x, xp.asarray([0, 2]), 1),
    "dot": lambda xp, a, x: xp.dot(x, a.T),
    "count_nonzero": row("count_nonzero"),
    "NumPy's ufunc": lambda xp, a, x: np.add(a, x),
    "NumPy's function": lambda xp, a, x: np.concatenate([a, x]),
    **{f"a {name} x": lambda xp, a, x, op=op: op(a, x) for name, op in OPERATORS.items()},
    **{
        f"x {name} a": lambda xp, a, x, op=op: op(x, a)
        for name, op in OPERATORS.items()
        if name not in {"pow", "matmul"}
    },
}

REFUSED = {
    **{name: (row(name), TypeError, "cupy|Argument|Tensor") for name in INSIST},
    "stack": (lambda xp, a, x: xp.stack([a, x]), TypeError, "got Tensor"),
    "concatenate": (lambda xp, a, x: xp.concatenate([a, x]), TypeError, r"Unsupported type .*Tensor"),
    "hstack": (lambda xp, a, x: xp.hstack([a, x]), ExportError, "requires grad"),
    "matmul": (lambda xp, a, x: xp.matmul(a, x.T), TypeError, "got Tensor"),
    "kron": (lambda xp, a, x: xp.kron(a, x), TypeError, "got Tensor"),
    "moveaxis": (lambda xp, a, x: xp.moveaxis(x, 0, 1), TypeError, "got Tensor"),
    "inv": (lambda xp, a, x: xp.linalg.inv(x[:, :2]), np.linalg.LinAlgError, "only supports cupy.ndarray"),
    "fft": (lambda xp, a, x: xp.fft.fft(x), TypeError, "must be a cupy.ndarray"),
    "sort": (row("sort"), AttributeError, "copy"),
    "copy": (row("copy"), AttributeError, "copy"),
    "flip": (row("flip", 0), ValueError, "use lucid.flip"),
    "tile": (row("tile", 2), ExportError, "requires grad"),
    "real": (row("real"), ExportError, "requires grad"),
    "isclose": (lambda xp, a, x: xp.isclose(a, x), ExportError, "requires grad"),
    "percentile": (row("percentile", 30), NumpyCallError, "lucid.numpy"),
}  # fmt: skip
"""What insists on arrays, by errors of CuPy's own or of ours: `lucid.numpy` has all of these."""


@pytest.fixture
def cp():
    """CuPy."""
    return pytest.importorskip("cupy")


def results_of(result):
    """Return one result, or several, in a list."""
    return list(result) if isinstance(result, tuple | list) else [result]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_recorded(cp, name, rng):
    """A call gives Tensors with NumPy's values, and the gradient that differences of NumPy's give."""
    call = CALLS[name]
    x = lucid.tensor(X, device="cuda", requires_grad=True)
    results, expected = results_of(call(cp, cp.asarray(A), x)), results_of(call(np, A, X))
    loss, weights = 0, []
    for one, other in zip(results, expected, strict=True):
        assert type(one) is lucid.Tensor
        assert one.device.type == "cuda"
        assert tuple(one.shape) == np.shape(other)
        np.testing.assert_allclose(one.detach().cpu().numpy(), other, rtol=1e-12)
        weights.append(rng.standard_normal(np.shape(other)))
        if one.requires_grad:
            loss = loss + (one * lucid.tensor(weights[-1], device="cuda")).sum()
    if isinstance(loss, lucid.Tensor):
        loss.backward()
    direction = rng.standard_normal(X.shape)

    def moved(step):
        values = results_of(call(np, A, X + step * direction))
        return sum(np.sum(np.asarray(value, float) * weight) for value, weight in zip(values, weights, strict=True))

    slope = 0 if x.grad is None else np.sum(x.grad.cpu().numpy() * direction)
    np.testing.assert_allclose(slope, (moved(STEP) - moved(-STEP)) / (2 * STEP), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", CALLS)
def test_the_kind_does_not_depend_on_recording(cp, name):
    """A tensor that requires no grad gives Tensors, too."""
    results = results_of(CALLS[name](cp, cp.asarray(A), lucid.tensor(X, device="cuda")))
    for one, other in zip(results, results_of(CALLS[name](np, A, X)), strict=True):
        assert type(one) is lucid.Tensor
        np.testing.assert_allclose(one.cpu().numpy(), other, rtol=1e-12)


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("number", [False, True], ids=["array", "number"])
def test_operators_of_integers(cp, name, number):
    """Operators of integers, an array's on the left, give Tensors of NumPy's values."""
    a, x = np.array([5, 12, 7]), np.array([1, 2, 3])
    left = cp.asarray(a)[1] if number else cp.asarray(a)
    result = BITS[name](left, lucid.tensor(x, device="cuda"))
    assert type(result) is lucid.Tensor
    assert result.tolist() == BITS[name](a[1] if number else a, x).tolist()


IN_PLACE = [
    "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "ilshift", "irshift", "iand", "ior", "ixor",
]  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
def test_arrays_do_not_take_what_is_recorded(cp, name):
    """An array cannot hold a recorded result, and stays; without recording it is changed, as by an array."""
    change = getattr(operator, name)
    a = cp.asarray(A)
    with pytest.raises(NumpyCallError, match=r"an array of CuPy's cannot hold .* a = a \+ x, or use tensor.detach"):
        change(a, lucid.tensor(X, device="cuda", requires_grad=True))
    np.testing.assert_array_equal(a.get(), A)
    whole = name in {"ilshift", "irshift", "iand", "ior", "ixor"}
    own, other = (np.array([5, 12]), np.array([1, 2])) if whole else (abs(A), X)
    expected = change(own.copy(), other)
    array = cp.asarray(own)
    assert change(array, lucid.tensor(other, device="cuda")) is array
    np.testing.assert_allclose(array.get(), expected, rtol=1e-12)


def test_out(cp):
    """`out` is refused where the result would be recorded, and written where nothing is."""
    a = cp.asarray(A)
    x = lucid.tensor(X, device="cuda", requires_grad=True)
    for write in (lambda: cp.add(a, x, out=a), lambda: cp.add(a, x, a), lambda: cp.exp(x, a)):
        with pytest.raises(NumpyCallError, match=r"cupy\.(add|exp): an array of CuPy's cannot hold a result"):
            write()
    with pytest.raises(NumpyCallError, match="out"):
        cp.sum(x, out=cp.zeros(()))
    np.testing.assert_array_equal(a.get(), A)
    with lucid.no_grad():
        assert cp.add(a, x, out=a) is a
    np.testing.assert_allclose(a.get(), A + X)
    target = lucid.zeros(2, 3, device="cuda", dtype=lucid.float64)
    assert cp.add(a, x.detach(), target) is target
    np.testing.assert_allclose(target.cpu().numpy(), A + 2 * X)


WRITES = {
    "a ufunc": lambda cp, a, t, u: cp.add(a, 1, t),
    "out": lambda cp, a, t, u: cp.add(u, a, out=t),
    "over an operand": lambda cp, a, t, u: cp.add(t, a, t),
    "a kernel": lambda cp, a, t, u: cp.ElementwiseKernel("T a", "T c", "c = a", "test_copy")(a, t),
    "the first of two": lambda cp, a, t, u: cp.modf(a, t, u)[0],
    "the second of two": lambda cp, a, t, u: cp.divmod(u, a, out=(u, t))[1],
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_into_a_tensor_is_counted(cp, name):
    """Backward notices that a value which it needs was overwritten; what is returned is the tensor."""
    x = lucid.tensor(X, device="cuda", requires_grad=True)
    t, u = (lucid.tensor(A, device="cuda") for _ in range(2))
    y = (x * t).sum()
    assert WRITES[name](cp, cp.asarray(A + 2), t, u) is t
    assert t._version == 1
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        y.backward()
    with lucid.no_grad():
        assert WRITES[name](cp, cp.asarray(A + 2), x, u) is x
    assert x._version == 1
    with pytest.raises(NumpyCallError, match="cannot hold a result that is recorded"):
        WRITES["a ufunc"](cp, cp.asarray(A), x, u)


@pytest.mark.parametrize("number", [np.float32(1.5), np.int64(2), np.array(1.5), 1.5, 2], ids=repr)
@pytest.mark.parametrize("name", [*TWO, "float_power", "power", "where"])
def test_a_kernel_that_is_called_again(cp, name, number):
    """The result beside a number of NumPy's or Python's is the same in each call."""
    given = np.abs(X) + 1
    x = lucid.tensor(given, device="cuda", requires_grad=True)
    for _ in range(3):
        if name == "where":
            found, wanted = cp.where(cp.asarray(A) > 0.5, x, number), np.where(A > 0.5, given, number)
        else:
            found, wanted = getattr(cp, name)(x, number), getattr(np, name)(given, number)
        np.testing.assert_allclose(found.detach().cpu().numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("number", [np.float64(2.5), np.complex128(1j), np.float32(2.5), np.int8(3), 2, 2.5, 1j])
def test_the_dtype_of_a_choice_does_not_depend_on_what_ran(cp, number):
    """The second call of a process gives the dtype of the first, which is NumPy's, beside integers and bools."""
    mask, given = np.array([True, False, True]), np.array([1, 2, 3])
    m, k = (lucid.tensor(array, device="cuda") for array in (mask, given))
    calls = [lambda xp, m, k: xp.where(m, k, number), lambda xp, m, k: xp.where(m, number, k > 1)]
    calls += [lambda xp, m, k: xp.where(m, number, np.complex128(2))]
    for call in calls:
        OPS.clear()
        found = [call(cp, m, k) for _ in range(2)]
        assert found[0].dtype is found[1].dtype
        wanted = call(np, mask, given)
        np.testing.assert_array_equal(found[1].cpu().numpy(), wanted)
        if isinstance(number, np.float64 | np.complex128):
            assert found[0].cpu().numpy().dtype == wanted.dtype


@pytest.mark.parametrize("name", ["add", "power", "arctan2", "maximum"])
def test_a_dtype_beside_a_number(cp, name):
    """Numbers of Python's and NumPy's come to the device of the tensor, by either library and by lucid.numpy."""
    given = np.array([1.0, 2.0], np.float32)
    x = lucid.tensor(given, device="cuda")
    for number in (2, 2.5, np.float64(2.5), np.int64(3)):
        for dtype in ("f4", "f8"):
            for xp in (cp, np, lnp):
                for operands, values in (((x, number), (given, number)), ((number, x), (number, given))):
                    found = getattr(xp, name)(*operands, dtype=dtype)
                    found = found.cpu().numpy() if isinstance(found, lucid.Tensor) else found.get()
                    assert found.dtype == np.dtype(dtype)
                    np.testing.assert_allclose(found, getattr(np, name)(*values, dtype=dtype), rtol=1e-6)


WHOLE = {
    "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "invert", "lcm", "ldexp", "left_shift", "right_shift",
}  # fmt: skip
"""Ufuncs of integers."""


@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("module", ["numpy", "cupy"])
@pytest.mark.parametrize("name", UFUNCS)
def test_each_ufunc_of_both_libraries(cp, name, module, recorded):
    """A ufunc of NumPy's or CuPy's gives Tensors on either side of an array; a product says what it insists on.

    CuPy's ``matmul`` asks its operands for nothing, and NumPy's is CuPy's where an array of CuPy's stands first and the
    tensor offers its memory.
    """
    function = getattr(cp if module == "cupy" else np, name, None)
    if function is None:
        assert module == "cupy"
        return
    ufunc = getattr(np, name)
    a, x = (np.abs(value[:, :2]) % 0.9 + 0.05 for value in (A, X))
    if name in WHOLE:
        a, x, recorded = np.array([[5, 12], [7, 1]]), np.array([[1, 2], [3, 4]]), False
    if name == "arccosh":
        x = x + 1
    tensor, array = lucid.tensor(x, device="cuda", requires_grad=recorded), cp.asarray(a)
    sides = [((tensor,), (x,))] if ufunc.nin == 1 else [((tensor, array), (x, a)), ((array, tensor), (a, x))]
    for operands, values in sides:
        if name == "matmul" and (module == "cupy" or (operands[0] is array and not recorded)):
            with pytest.raises(TypeError, match="got Tensor"):
                function(*operands)
            continue
        if name in {"matvec", "vecmat"}:
            vector = int(name == "matvec")
            operands, values = ([x[0] if k == vector else x for k, x in enumerate(s)] for s in (operands, values))
        for one, other in zip(results_of(function(*operands)), results_of(ufunc(*values)), strict=True):
            assert type(one) is lucid.Tensor
            np.testing.assert_allclose(one.detach().cpu().numpy(), other, rtol=1e-10)
            if name != "heaviside":  # which has no slope in its first operand
                assert one.requires_grad == (recorded and other.dtype.kind == "f")


@pytest.mark.parametrize("name", REFUSED)
def test_what_insists_on_arrays_is_refused(cp, name):
    """What takes CuPy's arrays alone raises, and never leaves the graph in silence."""
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        call(cp, cp.asarray(A), lucid.tensor(X, device="cuda", requires_grad=True))


def test_kernels(cp):
    """A kernel of the user's runs on plain arrays; one that would leave the graph is refused, with what records it."""
    kernel = cp.ElementwiseKernel("T a, T b", "T c", "c = a * b", "test_product")
    a, x = cp.asarray(A), lucid.tensor(X, device="cuda", requires_grad=True)
    with pytest.raises(ExportError, match=r"kernel test_product on Tensor that requires grad: .*lucid.cuda.derivative"):
        kernel(a, x)
    for tensor, mode in ((x.detach(), lucid.enable_grad()), (x, lucid.no_grad())):
        with mode:
            result = kernel(a, tensor)
        assert type(result) is cp.ndarray
        np.testing.assert_allclose(result.get(), A * X)
    reduction = cp.ReductionKernel("T a", "T c", "a", "a + b", "c = a", "0", "test_sum")
    with pytest.raises(TypeError, match=r"Unsupported type .*Tensor"):
        reduction(x)
    np.testing.assert_allclose(reduction(x.detach()).get(), X.sum())


def test_what_was_not_there_is_named(cp):
    """Operands that lucid has no dtype or device for are refused, on either side."""
    x = lucid.tensor(X, device="cuda", requires_grad=True)
    with pytest.raises(DtypeError, match="uint16"):
        cp.asarray([1, 2, 3], np.uint16) + x
    for add in (cp.add, np.add):
        with pytest.raises((DtypeError, TypeError), match=r"dtype\('O'\)"):
            add(np.array([1, "a", None], object), x)
        with pytest.raises((DtypeError, TypeError), match="elements of NumPy's dtype"):
            add(x, cp.zeros(3, np.dtype([("a", "f4"), ("b", "f4")])))
    for call in (lambda a, b: a + b, cp.add, np.add, cp.maximum):
        with pytest.raises(DeviceError, match="same device"):
            call(cp.asarray(A), lucid.tensor(X, device="cpu", requires_grad=True))


@two_devices
def test_two_devices(cp):
    """An array of another device is refused, on either side."""
    with cp.cuda.Device(1):
        a = cp.asarray(A)
        above = a > 0
    x = lucid.tensor(X, device="cuda:0", requires_grad=True)
    for call in (lambda: a + x, lambda: x + a, lambda: cp.add(a, x), lambda: cp.where(above, a, x)):
        with pytest.raises(DeviceError, match="same device"):
            call()


class TestExports:
    """A tensor on the graph offers no interface, and all that then looks for another way is refused by name."""

    def test_hasattr(self, cp):
        x = lucid.tensor(X, device="cuda", requires_grad=True)
        assert not hasattr(x, "__cuda_array_interface__")
        assert hasattr(x.detach(), "__cuda_array_interface__")
        with pytest.raises(ExportError, match=r"requires grad: use tensor.detach\(\) first; .*lucid.cuda.derivative"):
            x.__cuda_array_interface__

    @pytest.mark.parametrize("mode", [lucid.enable_grad, lucid.no_grad])
    def test_others_refuse(self, cp, mode):
        x, s = (lucid.tensor(value, device="cuda", requires_grad=True) for value in (X, 1.0))
        from lucid.base.arrays import asarray

        ways = [
            cp.asarray, cp.array, np.asarray, cp.from_dlpack, np.from_dlpack, lucid.from_dlpack, asarray,
            *[lambda x, to=to: to([x, x]) for to in (cp.asarray, np.asarray)],
            lambda x: cp.asarray([[x], [x]]), lambda x: cp.zeros(X.shape).__setitem__(slice(None), x),
        ]  # fmt: skip
        with mode():
            for way in ways:
                for tensor in (x, s):
                    with pytest.raises((GraphError, DeviceError), match=r"requires grad|use tensor.cpu"):
                        way(tensor)


class Asked:
    """What notes for which attributes and methods CuPy asks a neighbour."""

    def __init__(self):
        self.calls = []

    __array_ufunc__ = None

    def __radd__(self, other):
        return "left to the other"

    def __cupy_override_elementwise_kernel__(self, kernel, *args, **kwargs):
        return kernel.name, len(args), kwargs

    def __cupy_override_reduction_kernel__(self, kernel, axis, dtype, out, keepdims):
        return kernel.name, axis, dtype, out, keepdims

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.calls.append((name, args, kwargs))


FORMS = {
    "sum": ((None, None, None, False), {}),
    "prod": ((None, None, None, False), {}),
    "mean": ((), {"axis": None, "dtype": None, "out": None, "keepdims": False}),
    "var": ((), {"axis": None, "dtype": None, "out": None, "ddof": 0, "keepdims": False}),
    "std": ((), {"axis": None, "dtype": None, "out": None, "ddof": 0, "keepdims": False}),
    "max": ((), {"axis": None, "out": None, "keepdims": False}),
    "min": ((), {"axis": None, "out": None, "keepdims": False}),
    "argmax": ((), {"axis": None, "dtype": None, "out": None, "keepdims": False}),
    "argsort": ((), {"axis": -1, "kind": None}),
    "ravel": (("C",), {}),
    "transpose": ((None,), {}),
    "trace": ((0, 0, 1, None, None), {}),
}


class TestWhatCupyAsks:
    """CuPy documents none of this: what it has changed is named here."""

    def test_operators(self, cp):
        said = cp.zeros(2) + Asked()
        assert said == "left to the other", "CuPy's operators no longer look for __array_ufunc__ = None on an operand"

    def test_ufuncs(self, cp):
        words = "CuPy's {} no longer ask for __cupy_override_elementwise_kernel__, or call it otherwise"
        a = cp.zeros(2)
        assert cp.add(a, Asked()) == ("cupy_add", 2, {}), words.format("ufuncs")
        assert cp.add(a, Asked(), out=a)[2] == {"out": a}, words.format("ufuncs")
        assert a.__iadd__(Asked()) == ("cupy_add", 3, {}), words.format("in-place operators")
        assert cp.where(a > 0, a, Asked()) == ("cupy_where", 3, {}), words.format("where")
        kernel = cp.ElementwiseKernel("T a", "T c", "c = a", "test_copy")
        assert kernel(Asked()) == ("test_copy", 1, {}), words.format("ElementwiseKernels")

    def test_reductions(self, cp):
        said = cp._core._routines_statistics.nanmax(Asked(), 0, None, None, False)
        assert said[0] == "cupy_nanmax", "CuPy's reductions no longer ask for __cupy_override_reduction_kernel__"

    @pytest.mark.parametrize("name", FORMS)
    def test_methods(self, cp, name):
        asked = Asked()
        getattr(cp, name)(asked)
        assert asked.calls == [(name, *FORMS[name])], f"cupy.{name} no longer calls its argument's method so"

    def test_repeat_of_either_library(self, cp):
        """Two integers are sizes, and of CuPy's function a number and an axis, which calls the method with them."""
        x = lucid.tensor(X, device="cuda", requires_grad=True)
        assert x.repeat(2, 1).tolist() == np.tile(X, (2, 1)).tolist()
        for repeat in (cp.repeat, np.repeat, lucid.numpy.repeat):
            assert repeat(x, 2, 1).tolist() == repeat(x, 2, axis=1).tolist() == X.repeat(2, 1).tolist()
            assert repeat(x, 2, 0).tolist() == X.repeat(2, 0).tolist()
        assert cp.repeat(x, 2, -1).tolist() == X.repeat(2, -1).tolist()
        for refused in (lambda: x.repeat(2), lambda: x.repeat(2, -1)):
            with pytest.raises(ShapeError, match=r"NumPy's repeat\(x, count, axis\) is in lucid.numpy"):
                refused()
