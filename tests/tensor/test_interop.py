"""Tensors among NumPy's functions, buffers and DLPack."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError
from lucid.tensor.numpy_calls.ufuncs import UFUNCS


@pytest.mark.cpu("what NumPy and tensors share is the host's memory")
class TestMemory:
    def test_numpy_shares(self, rng):
        """`numpy` and `asarray` give the tensor's own memory, in both directions."""
        array = rng.standard_normal(3)
        x = lucid.from_numpy(array)
        assert x.numpy() is array
        x.mul_(2)
        assert np.shares_memory(np.asarray(x), array)
        array[0] = 7
        assert x[0].item() == 7

    def test_copies_where_asked(self, rng):
        """NumPy's copy and dtype arguments are honoured."""
        x = lucid.tensor(rng.standard_normal(3).astype(np.float32))
        assert not np.shares_memory(np.array(x), x.numpy())
        assert np.asarray(x, dtype=np.float64).dtype == np.float64
        with pytest.raises(ValueError, match="copy is needed"):
            np.asarray(x, dtype=np.float64, copy=False)
        same = x.numpy().dtype
        assert np.shares_memory(np.asarray(x, dtype=same), x.numpy())
        assert np.shares_memory(np.asarray(x, copy=False), x.numpy())
        assert not np.shares_memory(np.array(x), x.numpy())
        assert not np.shares_memory(np.array(x, dtype=same, copy=True), x.numpy())

    def test_what_records_is_not_given_away(self):
        """Memory of a tensor on the graph leaves only by detach; the error says so. `force` detaches."""
        x = lucid.ones(2, requires_grad=True)
        for give in (lambda: x.numpy(), lambda: np.asarray(x), lambda: np.from_dlpack(x), lambda: (x * 2).numpy()):
            with pytest.raises(RuntimeError, match=r"requires grad: use tensor.detach\(\)"):
                give()
        assert np.asarray(x.detach()).tolist() == x.numpy(force=True).tolist() == [1.0, 1.0]
        with pytest.raises(BufferError):
            np.from_dlpack(x)

    def test_bfloat16(self):
        """bfloat16 reaches NumPy in the dtype of ml_dtypes; by DLPack NumPy takes none, in its own words."""
        x = lucid.tensor([1.0, 2.5], dtype=lucid.bfloat16)
        assert x.numpy().dtype.name == "bfloat16"
        # before NumPy 2.5 it is a RuntimeError
        with pytest.raises((BufferError, RuntimeError), match="Unsupported dtype in DLTensor"):
            np.from_dlpack(x)

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64", "complex64"])
    def test_dlpack(self, dtype, rng):
        """DLPack shares memory in both directions, with strides."""
        x = lucid.tensor(rng.integers(0, 5, (2, 3)), dtype=dtype).t()
        array = np.from_dlpack(x)
        assert array.tolist() == x.tolist()
        assert np.shares_memory(array, x.numpy())
        assert x.__dlpack_device__() == (1, 0)
        back = lucid.from_dlpack(x)
        assert back.data_ptr() == x.data_ptr()
        assert (back.dtype, back.stride(), back.tolist()) == (x.dtype, x.stride(), x.tolist())

    def test_from_dlpack_copies_if_told_to(self):
        """With `copy` the memory is another one, without it or with False the array's own."""
        array = np.arange(6.0).reshape(2, 3).T
        for copy in (True, False, None):
            taken = lucid.from_dlpack(array, copy=copy)
            assert np.shares_memory(taken.numpy(), array) == (not copy)
            assert taken.tolist() == array.tolist()

    def test_from_dlpack_refuses(self):
        """What does not speak DLPack, and dtypes that lucid has not, are refused."""
        with pytest.raises(TypeError, match="expected an array that has __dlpack__, got list"):
            lucid.from_dlpack([1, 2])
        with pytest.raises(DtypeError, match="uint16"):
            lucid.from_dlpack(np.zeros(2, np.uint16))

    def test_cuda_interface_is_for_cuda(self):
        """A tensor on the CPU has no `__cuda_array_interface__`, as `hasattr` sees."""
        assert not hasattr(lucid.ones(2, device="cpu"), "__cuda_array_interface__")
        with pytest.raises(AttributeError, match=r"on the CPU .* move it with .cuda\(\)"):
            lucid.ones(2, device="cpu").__cuda_array_interface__


UNARY = [
    "negative", "absolute", "sign", "exp", "exp2", "expm1", "log", "log2",
    "log10", "log1p", "sqrt", "square", "reciprocal", "sin", "cos", "tan",
    "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arctanh",
    "floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite", "conjugate",
]  # fmt: skip
BINARY = [
    "add", "subtract", "multiply", "divide", "power", "floor_divide", "remainder", "fmod",
    "maximum", "minimum", "arctan2", "logaddexp", "equal", "not_equal", "less", "less_equal",
    "greater", "greater_equal", "matmul",
]  # fmt: skip
# Ufuncs that are tried on integers: those of bits, and one whose results are floating-point all the same.
WHOLE = {
    "bitwise_and", "bitwise_or", "bitwise_xor", "float_power", "gcd", "invert", "lcm", "left_shift", "logical_and",
    "logical_not", "logical_or", "logical_xor", "right_shift",
}  # fmt: skip
# Which operand of theirs is a matrix.
MATRICES = {"matvec": 0, "vecmat": 1}


class TestUfuncs:
    @pytest.mark.parametrize("name", UNARY)
    def test_of_one(self, name, rng):
        """A ufunc of a tensor is a tensor with NumPy's values, on the graph where it has a derivative."""
        array = rng.uniform(0.2, 0.8, 4)
        x = lucid.tensor(array, requires_grad=True)
        y = getattr(np, name)(x)
        assert isinstance(y, lucid.Tensor)
        np.testing.assert_allclose(y.numpy(force=True), getattr(np, name)(array), rtol=1e-12)
        assert y.requires_grad == y.is_floating_point()

    @pytest.mark.parametrize("name", BINARY)
    @pytest.mark.parametrize("side", ["tensors", "left", "right"])
    def test_of_two(self, name, side, rng):
        """Also with an array on either side."""
        a, b = rng.uniform(1, 2, 4), rng.uniform(1, 2, 4)
        x, y = lucid.tensor(a, requires_grad=True), lucid.tensor(b)
        left, right = {"tensors": (x, y), "left": (x, b), "right": (b, x)}[side]
        out = getattr(np, name)(left, right)
        assert isinstance(out, lucid.Tensor)
        first, second = (b, a) if side == "right" else (a, b)
        np.testing.assert_allclose(out.numpy(force=True), getattr(np, name)(first, second), rtol=1e-12)

    @pytest.mark.parametrize("name", sorted(UFUNCS.keys() - {*UNARY, *BINARY}))
    def test_of_other_kinds(self, name, rng):
        """Those of bits and whole numbers, and all others, have NumPy's values, and its kind of them."""
        ufunc, arrays = getattr(np, name), list(rng.integers(1, 6, (getattr(np, name).nin, 5)))
        if name in MATRICES:
            arrays[MATRICES[name]] = rng.integers(1, 6, (5, 5))
        if name not in WHOLE:
            arrays[0] = arrays[0] + 0.5
            arrays[1:] = arrays[1:] if name == "ldexp" else [array - 3.5 for array in arrays[1:]]
        got, expected = ufunc(*map(lucid.tensor, arrays)), ufunc(*arrays)
        for out, values in zip(*[x if isinstance(x, tuple) else (x,) for x in (got, expected)], strict=True):
            assert out.is_floating_point() == (values.dtype.kind == "f")
            np.testing.assert_allclose(out.numpy(force=True), values, rtol=1e-12)

    @pytest.mark.cpu("a NumPy array meets no tensor of another device")
    @pytest.mark.parametrize("act", [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow])
    def test_operators_with_arrays(self, act, rng):
        """An array or a NumPy number beside a tensor joins the graph, on either side."""
        a, b = rng.uniform(1, 2, 3), rng.uniform(1, 2, 3)
        x = lucid.tensor(a, requires_grad=True)
        upstream = rng.standard_normal(3)
        for value, expected in [
            (act(x, b), act(a, b)),
            (act(b, x), act(b, a)),
            (act(x, np.float64(1.5)), act(a, 1.5)),
            (act(np.float64(1.5), x), act(1.5, a)),
        ]:
            assert isinstance(value, lucid.Tensor)
            np.testing.assert_allclose(value.numpy(force=True), expected, rtol=1e-12)
            x.grad = None
            value.backward(lucid.tensor(upstream))
            assert np.any(x.grad.numpy())

    def test_numpy_numbers_are_weak(self):
        """NumPy's float64 is Python's float, and does not widen a tensor."""
        x = lucid.ones(2)
        assert (x * np.float64(2)).dtype is (np.float64(2) * x).dtype is (x + np.sqrt(2.0)).dtype is lucid.float32

    def test_what_cannot_be_recorded(self):
        """Ufuncs without an op, their methods, and writing into an array raise and say what to do."""
        x = lucid.ones(2, requires_grad=True)
        array = np.zeros(2)
        for act, match in [
            (lambda: np.spacing(x), "numpy.spacing has no op in lucid"),
            (lambda: np.frompyfunc(abs, 1, 1)(x), r"the ufunc abs \(vectorized\) has no op in lucid"),
            (lambda: np.hypot.reduce(x, where=np.array([True, False])), r"numpy.hypot.reduce cannot be recorded"),
            (lambda: np.multiply.at(x, [0], 2.0), r"numpy.multiply.at cannot be recorded"),
            (lambda: np.add.at(array, [0], x), r"numpy.add.at cannot be recorded"),
            (lambda: np.add(array, x, out=array), "out cannot be used"),
            (lambda: np.exp(x, where=np.array([True, False])), "where cannot be used"),
            (lambda: operator.iadd(array, x), "out cannot be used"),
        ]:
            with pytest.raises(TypeError, match=match):
                act()
        assert array.tolist() == [0.0, 0.0]

    def test_unknown_operands(self):
        """What neither NumPy nor lucid knows is a TypeError."""
        with pytest.raises(TypeError):
            np.add(lucid.ones(2), object())


A = np.random.default_rng(3).standard_normal((3, 4))


class TestFunctions:
    def test_what_says_something_about_arrays(self, tmp_path):
        """Comparisons as a whole, sizes and files take the plain values."""
        x = lucid.tensor(A, requires_grad=True)
        assert (np.shape(x), np.ndim(x), np.size(x)) == ((3, 4), 2, 12)
        assert np.allclose(x, A)
        assert np.array_equal(x, x.detach())
        np.save(tmp_path / "x.npy", x)
        np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), A)

    def test_what_has_no_counterpart(self):
        """Any other function, and a parameter that its rule has not, is a TypeError that says what to do."""
        x = lucid.tensor(A)
        with pytest.raises(TypeError, match=r"numpy.roots has no counterpart.*detach\(\)\.numpy\(\)"):
            np.roots(x)
        with pytest.raises(TypeError, match=r"numpy.sum: with a Tensor only a, axis, dtype, keepdims, initial .*where"):
            np.sum(x, where=A > 0)
        with pytest.raises(TypeError, match=r"numpy.sum: with a Tensor only .*out"):
            np.sum(x, out=np.zeros(()))
        with pytest.raises(ValueError, match=r"numpy.dot: shapes not aligned: an axis of size 4 meets one of size 3"):
            np.dot(x, x)


def test_numpy_of_a_tensor_that_requires_grad_without_grad_mode():
    """Where nothing is recorded NumPy may have the elements; where ops are recorded it is refused."""
    x = lucid.tensor([1.0, 2.0], device="cpu", requires_grad=True)
    y = x * 2
    for mode in (lucid.no_grad(), lucid.inference_mode(), lucid.set_grad_enabled(False)):
        with mode:
            assert x.numpy().tolist() == np.asarray(x).tolist() == [1.0, 2.0]
            assert y.numpy().tolist() == [2.0, 4.0]
            with pytest.raises(BufferError, match="requires grad"):
                x.__dlpack__()
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with pytest.raises(RuntimeError, match="requires grad"), lucid.no_grad(), lucid.enable_grad():
        np.asarray(y)
    assert np.shares_memory(x.detach().numpy(), x.numpy(force=True))
