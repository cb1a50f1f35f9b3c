"""Keywords beside an op's own: NumPy's names, sizes by name, tensors that get the result, and those about memory."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, DeviceError, DtypeError, GraphError, InplaceError, ShapeError
from lucid.ops.base.keywords import ALSO_OUT, NEVER_OUT, add_to_methods
from lucid.ops.base.later import LaterMethod, LaterModule
from lucid.public import written_in
from tests.device import DEVICE, shares_memory
from tests.pieces.children import python


def matrix(rng, dtype=np.float32):
    """Return two rows of three random numbers."""
    return lucid.tensor(rng.standard_normal((2, 3)).astype(dtype))


def test_numpys_names(rng):
    """`axis`, `keepdims`, `x1`, `x2`, `x` and `a` mean what NumPy means by them, of functions and of methods."""
    x = matrix(rng)
    values = x.numpy(force=True)
    for made in (
        lucid.sum(x, axis=0, keepdims=True),
        x.sum(axis=0, keepdims=True),
        lucid.sum(a=x, axis=0, keepdim=True),
    ):
        np.testing.assert_allclose(made.numpy(force=True), values.sum(axis=0, keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(lucid.argsort(x, axis=0).numpy(force=True), values.argsort(axis=0))
    np.testing.assert_array_equal(x.amax(axis=1).numpy(force=True), values.max(axis=1))
    np.testing.assert_array_equal(lucid.sub(x1=x, x2=2).numpy(force=True), values - 2)
    np.testing.assert_array_equal(lucid.neg(x=x).numpy(force=True), -values)
    np.testing.assert_array_equal(lucid.cat([x, x], axis=1).numpy(force=True), np.concatenate([values] * 2, axis=1))


def test_a_gradient_comes_through():
    """A call by NumPy's names is recorded as any other."""
    x = lucid.ones(2, 3, requires_grad=True)
    (x * x).sum(axis=1, keepdims=True).backward(lucid.full((2, 1), 3.0))
    assert x.grad.tolist() == [[6.0] * 3] * 2


def test_sizes_by_name():
    """`size` is what otherwise stands first."""
    for make in (lucid.empty, lucid.zeros, lucid.ones, lucid.rand, lucid.randn, lucid.ones(1).new_zeros):
        assert make(size=(2, 3)).shape == make(size=[2, 3], dtype=lucid.float64).shape == (2, 3)
    assert lucid.full(size=(2,), fill_value=3).tolist() == [3, 3]
    assert lucid.zeros(size=4).shape == (4,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x.sum(dim=0, axis=0), "sum: dim and axis are two names of one argument"),
        (lambda x: lucid.zeros(2, size=(2,)), r"zeros: size is given twice, as \(2,\) and as \(2,\)"),
        (lambda x: lucid.zeros(2, layout="strided"), "layout: expected lucid.strided, got str 'strided'"),
        (lambda x: x.clone(memory_format=lucid.strided), "memory_format: expected one such as lucid.channels_last"),
        (lambda x: x.is_contiguous(memory_format=lucid.preserve_format), "is_contiguous: memory_format: expected"),
        (lambda x: lucid.zeros_like(x, pin_memory=2), "pin_memory: expected a bool, got int"),
        (lambda x: lucid.reshape(x, (6,), out=x), r"reshape: out is not taken here: write out.copy_\(lucid.reshape"),
        (lambda x: lucid.real(x, out=x), r"real: out is not taken here"),
        (lambda x: lucid.exp(x, out=[1.0]), "exp: out: expected a Tensor, got float 1.0"),
        (lambda x: lucid.max(x, 1, out=x), r"max: out: expected 2 tensors, got 1"),
        (lambda x: x.exp(axis=1), "unexpected keyword argument 'axis'"),
        (lambda x: lucid.exp(x, axis=1), "unexpected keyword argument 'axis'"),
        (lambda x: lucid.relu(x, memory_format=lucid.channels_last), "unexpected keyword argument 'memory_format'"),
        (lambda x: lucid.sum(x, bogus=1), "unexpected keyword argument 'bogus'"),
    ],
)
def test_what_is_refused(rng, call, message):
    """A keyword that does not fit says which, and what would."""
    with pytest.raises(TypeError, match=message):
        call(matrix(rng))


# Of each family, a function with its arguments, and NumPy's.
WRITTEN = {
    "add": (lambda x, **k: lucid.add(x, x, alpha=2, **k), lambda x: x + 2 * x),
    "exp": (lucid.exp, np.exp),
    "sigmoid": (lucid.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "sum": (lambda x, **k: lucid.sum(x, 0, **k), lambda x: x.sum(0)),
    "mean": (lambda x, **k: lucid.mean(x, axis=1, **k), lambda x: x.mean(1)),
    "cumsum": (lambda x, **k: lucid.cumsum(x, 1, **k), lambda x: x.cumsum(1)),
    "sort": (lambda x, **k: lucid.sort(x, **k), np.sort),
    "matmul": (lambda x, **k: lucid.matmul(x, x.T, **k), lambda x: x @ x.T),
    "index_select": (lambda x, **k: lucid.index_select(x, 1, lucid.tensor([2, 0]), **k), lambda x: x[:, [2, 0]]),
    "cat": (lambda x, **k: lucid.cat([x, x], **k), lambda x: np.concatenate([x, x])),
    "tril": (lucid.tril, np.tril),
    "zeros": (lambda x, **k: lucid.zeros(2, 2, **k), lambda _: np.zeros((2, 2))),
    "arange": (lambda x, **k: lucid.arange(4, **k), lambda _: np.arange(4)),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_out_gets_the_result(rng, name):
    """The tensor itself comes back, with the values in its memory, counted as a change; also as a wider dtype."""
    call, reference = WRITTEN[name]
    x = matrix(rng)
    expected = reference(x.numpy(force=True))
    for dtype in (lucid.float32, lucid.float64):
        target = lucid.full(expected.shape[::-1], 7.0, dtype=dtype).permute(*reversed(range(expected.ndim)))
        view, empty = target.detach(), lucid.empty(0, dtype=dtype)
        places = lucid.empty(0, dtype=lucid.int64)
        several = name == "sort"
        made = call(x, out=(target, places) if several else target)
        assert (made[0] if several else made) is target
        assert not several or made.indices is places
        assert (target._version, target.dtype) == (1, dtype)
        np.testing.assert_allclose(view.numpy(force=True), expected, rtol=1e-6, atol=1e-6)
        call(x, out=(empty, places) if several else empty)
        assert (empty.shape, empty.dtype) == (expected.shape, dtype)
        np.testing.assert_array_equal(empty.numpy(force=True), target.numpy(force=True))


def test_out_may_be_an_operand(rng):
    """The result is whole before it is written."""
    x = matrix(rng)[:, :2].contiguous()
    expected = x.numpy(force=True) @ x.numpy(force=True)
    assert lucid.matmul(x, x, out=x) is x
    np.testing.assert_allclose(x.numpy(force=True), expected, rtol=1e-5, atol=1e-6)


def test_out_gives_its_dtype():
    """What is made or summed has the dtype of the tensor that it goes to; one that does not hold it is refused."""
    assert lucid.arange(3, out=lucid.empty(3, dtype=lucid.int8)).dtype == lucid.int8
    big = lucid.full((3,), 60000.0, dtype=lucid.float16)
    assert lucid.sum(big, out=lucid.empty(0)).item() == 180000
    for call in (lambda **k: lucid.zeros(2, **k), lambda **k: lucid.sum(lucid.ones(2, 2), 0, **k)):
        with pytest.raises(DtypeError, match=r"dtype lucid.float64 does not match dtype of out, lucid.float32"):
            call(dtype=lucid.float64, out=lucid.empty(2))
    whole = lucid.zeros(2, dtype=lucid.int64)
    with pytest.raises(DtypeError, match=r"exp: result type lucid.float32 can't be cast .* lucid.int64"):
        lucid.exp(lucid.ones(2), out=whole)
    assert whole.tolist() == [0, 0]
    assert whole._version == 0


def test_out_of_another_shape():
    """It is refused before anything is written, also in the second of two."""
    first, second = lucid.zeros(2), lucid.zeros(3, dtype=lucid.int64)
    with pytest.raises(ShapeError, match=r"max: out: expected shape \(2,\), or no elements, got"):
        lucid.max(lucid.ones(2, 3), 1, out=(first, second))
    assert first.tolist() == [0.0, 0.0]
    with pytest.raises(InplaceError):
        lucid.neg(lucid.ones(2), out=lucid.zeros(1).expand(2))


def test_out_is_not_recorded():
    """Where something requires grad it is refused; under no_grad it is written, and stays a leaf."""
    x, target = lucid.ones(2, requires_grad=True), lucid.zeros(2)
    marked = lucid.zeros(2, requires_grad=True)
    for call in (
        lambda: lucid.exp(x, out=target),
        lambda: lucid.stack([x.detach(), x], out=lucid.zeros(2, 2)),
        lambda: lucid.exp(target, out=marked),
        lambda: lucid.ones(2, out=target, requires_grad=True),
    ):
        with pytest.raises(GraphError, match=r"\(\): functions with out=... arguments don't support automatic diff"):
            call()
    with lucid.no_grad():
        lucid.add(x, x, out=target)
        lucid.add(x, x, out=marked)
    assert target.tolist() == marked.tolist() == [2.0, 2.0]
    assert marked.is_leaf
    assert not target.requires_grad
    assert lucid.exp(x, out=None).requires_grad


@pytest.mark.gpu
def test_out_on_another_device():
    """It is refused, where the function does not make its result there."""
    with pytest.raises(DeviceError, match="exp: out: expected a tensor on cpu"):
        lucid.exp(lucid.ones(2, device="cpu"), out=lucid.ones(2, device="cuda"))
    assert lucid.zeros(2, out=lucid.ones(2, device="cuda")).tolist() == [0.0, 0.0]


def test_every_function_of_these_families():
    """The names in the tables are those of functions, and every other name of `lucid.ops` takes the keywords."""
    assert {*dir(lucid), *dir(lucid.fft)} >= ALSO_OUT | NEVER_OUT
    for name in lucid.__all__:
        function = getattr(lucid, name)
        if (
            not name.endswith("_")
            and inspect.isfunction(function)
            and written_in(inspect.unwrap(function)).startswith("lucid.ops.")
        ):
            assert function.__doc__ == function.__wrapped__.__doc__
            assert pickle.loads(pickle.dumps(function)) is function
    assert pickle.loads(pickle.dumps(lucid.Tensor.sum)) is lucid.Tensor.sum
    assert str(inspect.signature(lucid.sum)).startswith("(input:")


# ---- memory ----


def test_formats_change_nothing(rng):
    """Values, shape and dtype are as without, and code may ask for any of them."""
    x = lucid.tensor(rng.standard_normal((2, 3, 4, 5)).astype(np.float32))
    for form in (lucid.contiguous_format, lucid.channels_last, lucid.preserve_format):
        for made in (
            x.clone(memory_format=form),
            x.contiguous(memory_format=form),
            x.to(lucid.float64, memory_format=form),
            x.double(memory_format=form),
            x.to(DEVICE, memory_format=form),
        ):
            assert made.shape == x.shape
            assert bool((made == x).all())
        assert lucid.zeros_like(x, memory_format=form, layout=lucid.strided).shape == x.shape
        assert lucid.empty(2, 3, memory_format=form).shape == (2, 3)
        assert x.new_ones(2, layout=None, pin_memory=False).tolist() == [1.0, 1.0]
    module = lucid.nn.Linear(2, 3)
    assert module.to(memory_format=lucid.channels_last) is module
    with pytest.raises(ArgumentError, match=r"memory_format: expected one such as lucid.channels_last, got str 'nhwc'"):
        module.to(memory_format="nhwc")


def test_is_contiguous_looks_at_strides():
    """A tensor whose channels run fastest is in that format, and in no other."""
    four, five = lucid.zeros(2, 3, 4, 5), lucid.zeros(2, 3, 4, 5, 6)
    last = lucid.zeros(2, 4, 5, 3).permute(0, 3, 1, 2)
    last_3d = lucid.zeros(2, 4, 5, 6, 3).permute(0, 4, 1, 2, 3)
    formats = lucid.contiguous_format, lucid.channels_last, lucid.channels_last_3d
    for x, expected in (
        (four, [True, False, False]),
        (five, [True, False, False]),
        (last, [False, True, False]),
        (last_3d, [False, False, True]),
    ):
        assert [x.is_contiguous(memory_format=form) for form in formats] == expected


def test_names_of_formats():
    """Each is written as it is found, and is itself after a copy or pickle."""
    for name in ("strided", "contiguous_format", "channels_last", "channels_last_3d", "preserve_format"):
        form = getattr(lucid, name)
        assert repr(form) == f"lucid.{name}"
        assert pickle.loads(pickle.dumps(form)) is copy.deepcopy(form) is form
        assert isinstance(form, lucid.layout if name == "strided" else lucid.memory_format)
    assert lucid.zeros(2).layout is lucid.strided


@pytest.mark.gpu
def test_pinned_memory():
    """What is made on the CPU is page-locked where that is asked for."""
    x = lucid.ones(2, device="cpu")
    for made in (
        lucid.zeros_like(x, pin_memory=True),
        x.new_ones(2, pin_memory=True),
        lucid.zeros(2, device="cpu", pin_memory=True),
    ):
        assert made.is_pinned()
    assert not lucid.zeros_like(x).is_pinned()


@pytest.mark.gpu
def test_memory_of_a_device_is_not_pinned():
    """What is made on a CUDA device is not page-locked, and that it should be is refused."""
    for make in (lucid.zeros, lucid.ones, lucid.empty, lambda size, **settings: lucid.full((size,), 1.0, **settings)):
        with pytest.raises(DeviceError, match="pin_memory: expected a tensor on the CPU"):
            make(2, device="cuda", pin_memory=True)


# ---- what tools ask a tensor ----


def test_sizes_and_places():
    """Tensors on the same memory are told from equal ones."""
    x = lucid.zeros(2, 3)
    assert x.is_same_size(lucid.ones(2, 3))
    assert not x.is_same_size(lucid.ones(3, 2))
    assert x.is_set_to(x.detach())
    assert not x.is_set_to(x[:1])
    assert not lucid.ones(2, 2).is_set_to(lucid.zeros(2, 2))
    square = lucid.zeros(2, 2)
    assert not square.is_set_to(square.t())
    assert not x.is_set_to(lucid.zeros(2, 3))
    assert [x.is_sparse, x.is_mps, x.is_meta, x.is_conj()] == [False] * 4


def test_new():
    """It takes sizes, data and nothing, in the tensor's dtype and on its device."""
    x = lucid.zeros(1, dtype=lucid.float64)
    assert x.new([1, 2]).tolist() == [1.0, 2.0]
    assert (x.new(2, 3).shape, x.new().shape, x.new(1).dtype) == ((2, 3), (0,), lucid.float64)
    assert x.new(2).device == x.device
    base = lucid.ones(2)
    assert shares_memory(base.new(base), base)


def test_a_method_whose_module_comes_later_can_be_extended():
    """A class of the user's whose method calls that of tensors is called once, the first time too."""
    code = """
import lucid
class Counted(lucid.Tensor):
    def det(self):
        return super().det() + 1
t = Counted([[2.0]])
print(t.det().item(), t.det().item())
"""
    child = python("-c", code)
    assert child.stdout == "3.0 3.0\n", child.stderr


def test_a_method_whose_module_comes_later():
    """It takes PyTorch's keywords, under the name that the class gives it, which errors of it say."""
    module = LaterModule("lucid.ops.reduction.sums")

    class Holder:
        total = module.sum
        sum = module.sum

    assert isinstance(vars(Holder)["total"], LaterMethod)
    assert Holder.total(lucid.ones(2, 3), axis=1, keepdims=True).tolist() == [[3.0], [3.0]]
    assert Holder.total.__qualname__ == "Tensor.total"
    assert not isinstance(vars(Holder)["total"], LaterMethod)
    # NumPy's form, with axis, dtype, out and keepdims, is that of methods of NumPy's names
    assert Holder.sum(lucid.ones(2, 3), 1, None, None, True).tolist() == [[3.0], [3.0]]
    with pytest.raises(TypeError):
        Holder.total(lucid.ones(2, 3), 1, None, None, True)


def test_a_method_of_the_lowest_class_is_the_one_that_gets_keywords():
    """Where a class and one above it have a method of one name, the keywords are the lower one's."""

    class Above:
        def total(self, dim):
            return ("above", dim)

    class Below(Above):
        def total(self, dim):
            return ("below", dim)

    add_to_methods(Below)
    assert Below().total(axis=3) == ("below", 3)
    assert Above().total(dim=3) == ("above", 3)


NUMPYS_FORMS = [
    ("sum", (0, None, None, True), {}),
    ("sum", ((0, 1), np.float64, None, False), {}),
    ("prod", (None, None, None, False), {}),
    ("mean", (), {"axis": 1, "dtype": None, "out": None, "keepdims": True}),
    ("max", (), {"axis": 0, "out": None, "keepdims": False}),
    ("min", (), {"axis": None, "out": None, "keepdims": False}),
    ("std", (), {"axis": 0, "ddof": 0}),
    ("var", (), {"axis": None, "dtype": None, "out": None, "ddof": 1, "keepdims": False}),
    ("argmax", (), {"axis": 1, "out": None, "keepdims": False}),
    ("argsort", (), {"axis": 0, "kind": "stable"}),
    ("clip", (-0.5, 0.5), {"out": None}),
    ("round", (1,), {"out": None}),
    ("take", ([0, 2], 1, None), {}),
    ("trace", (1, 0, 1, None, None), {}),
    ("transpose", (None,), {}),
    ("transpose", ((1, 0),), {}),
    ("ravel", ("F",), {}),
    ("ravel", ("C",), {}),
    ("reshape", ((4, 3),), {"order": "F"}),
    ("reshape", (-1,), {"order": "C"}),
    ("reshape", (2, 6), {"copy": True}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), NUMPYS_FORMS)
def test_methods_in_numpys_form(rng, name, args, kwargs):
    """A method called in a form that PyTorch's cannot take is NumPy's, as CuPy's functions call their argument's."""
    values = rng.standard_normal((3, 4))
    x = lucid.tensor(values, requires_grad=True)
    result = getattr(x, name)(*args, **kwargs)
    expected = getattr(values, name)(*args, **kwargs)
    assert type(result) is lucid.Tensor
    assert tuple(result.shape) == expected.shape
    np.testing.assert_allclose(result.detach().cpu().numpy(), expected, rtol=1e-12)
    assert result.requires_grad == (name not in {"argmax", "argsort"})


def test_pytorchs_forms_stay():
    """What both forms can take is PyTorch's: the pair of an extreme and its place, and a deviation by n - 1."""
    x = lucid.tensor([[1.0, 4.0], [3.0, 2.0]])
    assert x.max(axis=0).indices.tolist() == [1, 0]
    assert x.max(dim=0, out=None).values.tolist() == [3.0, 4.0]
    assert x.std(axis=0).tolist() == pytest.approx([2**0.5, 2**0.5])
    assert x.repeat(2, 1).shape == (4, 2)
    with pytest.raises(TypeError, match="from 1 to 3 positional arguments"):
        lucid.sum(x, None, None, None, False)
    with pytest.raises(TypeError, match="out"):
        x.sum(0, None, np.zeros(2), False)
    with pytest.raises(ArgumentError, match="order: expected one of None, 'C', 'F', 'A', got"):
        x.reshape(4, order="K")
