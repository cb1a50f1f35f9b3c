"""Tensors among NumPy's functions, buffers and DLPack."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError
from lucid.tensor import numpy_calls
from lucid.tensor.numpy_calls import UFUNCS


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

    def test_from_dlpack_refuses(self):
        """What does not speak DLPack, and dtypes that lucid has not, are refused."""
        with pytest.raises(TypeError, match="expected an array that has __dlpack__, got list"):
            lucid.from_dlpack([1, 2])
        with pytest.raises(DtypeError, match="uint16"):
            lucid.from_dlpack(np.zeros(2, np.uint16))

    def test_cuda_interface_is_for_cuda(self):
        """A tensor on the CPU has no `__cuda_array_interface__`, as `hasattr` sees."""
        assert not hasattr(lucid.ones(2), "__cuda_array_interface__")


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
            (lambda: np.cbrt(x), "numpy.cbrt has no op in lucid"),
            (lambda: np.frompyfunc(abs, 1, 1)(x), r"the ufunc abs \(vectorized\) has no op in lucid"),
            (lambda: np.add.reduce(x), r"numpy.add.reduce cannot be recorded"),
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
FUNCTIONS = {
    "sum": lambda t: np.sum(t, axis=1, keepdims=True),
    "sum of all": lambda t: np.sum(t),
    "mean": lambda t: np.mean(t, 0),
    "var": lambda t: np.var(t, axis=0),
    "std with ddof": lambda t: np.std(t, axis=1, ddof=1),
    "max": lambda t: np.max(t, axis=1),
    "min": lambda t: np.min(t, axis=(0, 1)),
    "prod": lambda t: np.prod(t, axis=1),
    "argmax": lambda t: np.argmax(t, axis=1),
    "argmin": lambda t: np.argmin(t),
    "any": lambda t: np.any(t > 0, axis=1),
    "all": lambda t: np.all(t > -9, axis=0),
    "count_nonzero": lambda t: np.count_nonzero(t, axis=0),
    "cumsum": lambda t: np.cumsum(t, axis=1),
    "cumsum of all": lambda t: np.cumsum(t),
    "norm": lambda t: np.linalg.norm(t),
    "norm along": lambda t: np.linalg.norm(t, axis=1),
    "reshape": lambda t: np.reshape(t, (2, 6)),
    "ravel": lambda t: np.ravel(t),
    "transpose": lambda t: np.transpose(t),
    "transpose by axes": lambda t: np.transpose(t[None], (2, 0, 1)),
    "swapaxes": lambda t: np.swapaxes(t, 0, 1),
    "moveaxis": lambda t: np.moveaxis(t, 0, 1),
    "expand_dims": lambda t: np.expand_dims(t, 1),
    "squeeze": lambda t: np.squeeze(t[None], 0),
    "flip": lambda t: np.flip(t),
    "flip along": lambda t: np.flip(t, 1),
    "roll": lambda t: np.roll(t, 2, axis=1),
    "broadcast_to": lambda t: np.broadcast_to(t, (2, 3, 4)),
    "concatenate": lambda t: np.concatenate([t, t], axis=1),
    "stack": lambda t: np.stack([t, t], 1),
    "hstack": lambda t: np.hstack([t, t]),
    "vstack": lambda t: np.vstack([t, t]),
    "concatenate a tensor": lambda t: np.concatenate(t),
    "stack a tensor": lambda t: np.stack(t, 1),
    "hstack a tensor": lambda t: np.hstack(t),
    "vstack a tensor": lambda t: np.vstack(t),
    "array_split": lambda t: np.array_split(t, 2, axis=1)[1],
    "tile": lambda t: np.tile(t, (2, 1)),
    "repeat": lambda t: np.repeat(t, 2, axis=0),
    "tril": lambda t: np.tril(t, 1),
    "triu": lambda t: np.triu(t),
    "diagonal": lambda t: np.diagonal(t, 1),
    "where": lambda t: np.where(t > 0, t, 0.0),
    "clip": lambda t: np.clip(t, -0.5, 0.5),
    "dot": lambda t: np.dot(t, np.transpose(t)),
    "tensordot": lambda t: np.tensordot(t, t, 2),
    "outer": lambda t: np.outer(t[0], t[1]),
    "einsum": lambda t: np.einsum("ij,kj->ik", t, t),
    "sort": lambda t: np.sort(t, axis=0),
    "argsort": lambda t: np.argsort(t, axis=0),
    "nan_to_num": lambda t: np.nan_to_num(t),
    "copy": lambda t: np.copy(t),
    "real": lambda t: np.real(t),
    "amax": lambda t: np.amax(t, axis=0),
    "amin": lambda t: np.amin(t, axis=1),
    "take_along_axis": lambda t: np.take_along_axis(t, np.argsort(t, axis=1), axis=1),
}

# What each of NumPy's functions cannot do without; of the others the tensor alone.
NEEDED = {
    "reshape": lambda x: (x, 16), "expand_dims": lambda x: (x, 1), "swapaxes": lambda x: (x, 0, 1),
    "moveaxis": lambda x: (x, 0, 1), "roll": lambda x: (x, 5), "array_split": lambda x: (x, 2),
    "broadcast_to": lambda x: (x, (2, 4, 4)), "tile": lambda x: (x, 2), "repeat": lambda x: (x, 2),
    "clip": lambda x: (x, -0.5, 0.5), "where": lambda x: (x > 0, x, -x), "imag": lambda x: (x * 1j,),
    "take_along_axis": lambda x: (x, np.argsort(x, 0), 0), "outer": lambda x: (x[0], x[1]),
    **dict.fromkeys(("dot", "tensordot"), lambda x: (x, x)),
    **dict.fromkeys(("concatenate", "stack", "hstack", "vstack"), lambda x: ([x, x],)),
}  # fmt: skip


class TestFunctions:
    @pytest.mark.parametrize("name", numpy_calls.FUNCTIONS)
    def test_what_is_left_out_is_numpys_own(self, name, rng):
        """Each function has NumPy's defaults: its axis, its count of degrees of freedom, its order."""
        function = functools.reduce(getattr, name.split("."), np)
        values = rng.standard_normal((4, 4)) * rng.permuted(np.arange(16) % 3 > 0).reshape(4, 4)
        arguments = NEEDED.get(name, lambda x: (x,))
        found, expected = (function(*arguments(x)) for x in (lucid.tensor(values), values))
        for one, other in zip(*(x if name == "array_split" else [x] for x in (found, expected)), strict=True):
            assert isinstance(one, lucid.Tensor)
            assert tuple(one.shape) == np.shape(other)
            np.testing.assert_allclose(one.cpu().numpy(), other, rtol=1e-12, atol=1e-15)

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_values_and_graph(self, name):
        """NumPy's function of a tensor has NumPy's values and stays on the graph."""
        act = FUNCTIONS[name]
        x = lucid.tensor(A, requires_grad=True)
        y = act(x)
        assert isinstance(y, lucid.Tensor)
        np.testing.assert_allclose(y.numpy(force=True), act(A), rtol=1e-12, atol=1e-15)
        assert y.requires_grad == y.is_floating_point()

    def test_what_says_something_about_arrays(self, tmp_path):
        """Comparisons as a whole, sizes and files take the plain values."""
        x = lucid.tensor(A, requires_grad=True)
        assert (np.shape(x), np.ndim(x), np.size(x)) == ((3, 4), 2, 12)
        assert np.allclose(x, A)
        assert np.array_equal(x, x.detach())
        np.save(tmp_path / "x.npy", x)
        np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), A)

    def test_what_has_no_counterpart(self):
        """Any other function, and a parameter that lucid's has not, is a TypeError that says what to do."""
        x = lucid.tensor(A)
        with pytest.raises(TypeError, match=r"numpy.percentile has no counterpart.*detach\(\)\.numpy\(\)"):
            np.percentile(x, 50)
        with pytest.raises(TypeError, match=r"numpy.sum: with a Tensor only a, axis, dtype, keepdims .*initial"):
            np.sum(x, initial=1.0)
        with pytest.raises(TypeError, match="at most two dimensions"):
            np.dot(lucid.zeros(2, 2, 2), lucid.zeros(2, 2))


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
