"""Tensor: its properties, conversions and place in Python."""

from __future__ import annotations

import copy
import inspect
import itertools
import pickle
import re
import warnings
import weakref

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, GraphError, IndexOutOfRangeError, ShapeError
from tests.device import DEVICE


class TestAttributes:
    def test_what_a_tensor_is(self, rng):
        """Shape, sizes, dtype, device and bytes are those of the array."""
        array = rng.standard_normal((2, 3)).astype(np.float32)
        x = lucid.tensor(array)
        assert x.shape == x.size() == (2, 3)
        assert (x.size(-1), x.ndim, x.dim(), x.ndimension()) == (3, 2, 2, 2)
        assert (x.numel(), x.nelement(), x.itemsize, x.element_size(), x.nbytes) == (6, 6, 4, 4, 24)
        assert x.dtype is lucid.float32
        assert x.device == lucid.get_default_device()
        assert (x.is_cuda, x.get_device()) == ((False, -1) if DEVICE == "cpu" else (True, 0))
        assert (x.is_floating_point(), x.is_complex(), x.is_signed()) == (
            True, False, True,
        )  # fmt: skip

    def test_size_of_a_missing_dimension(self):
        """A dimension that is not there is named, with those that are."""
        with pytest.raises(IndexOutOfRangeError, match=r"range of \[-2, 1\], but got 2"):
            lucid.zeros(2, 3).size(2)

    def test_memory(self):
        """Strides and offsets count elements; a view shares its base's memory."""
        x = lucid.arange(12).reshape(3, 4)
        view = x[1:, 1]
        assert (x.stride(), x.stride(0), view.stride()) == ((4, 1), 4, (4,))
        assert (x.is_contiguous(), view.is_contiguous(), view.contiguous().is_contiguous()) == (True, False, True)
        assert (x.storage_offset(), view.storage_offset()) == (0, 5)
        assert view.data_ptr() == x.data_ptr() + 5 * 8

    def test_strides_of_new_dimensions(self):
        """A step along a new dimension of size 1 goes over what lies in the next one, as in PyTorch."""
        x = lucid.zeros(2, 3)
        assert [x.unsqueeze(dim).stride() for dim in range(3)] == [(6, 3, 1), (3, 3, 1), (3, 1, 1)]
        assert [x.t().unsqueeze(dim).stride() for dim in range(3)] == [(3, 1, 3), (1, 6, 3), (1, 3, 1)]
        assert lucid.zeros(()).unsqueeze(0).stride() == (1,)
        assert x.unsqueeze(1).expand(2, 4, 3).stride() == (3, 0, 1)
        assert lucid.zeros(0, 3).unsqueeze(1).stride() == (3, 3, 1)

    def test_transposed_properties(self, rng):
        """T reverses all dimensions, mT the last two; H and mH conjugate too."""
        z = rng.standard_normal((2, 3, 4)) + 1j * rng.standard_normal((2, 3, 4))
        x = lucid.tensor(z)
        np.testing.assert_array_equal(x.T.cpu().numpy(), z.T)
        np.testing.assert_array_equal(x.mT.cpu().numpy(), z.swapaxes(1, 2))
        np.testing.assert_array_equal(x.mH.cpu().numpy(), z.swapaxes(1, 2).conj())
        np.testing.assert_array_equal(x[0].H.cpu().numpy(), z[0].conj().T)
        assert x[0, 0, 0].H.item() == z[0, 0, 0].conj()
        for part in (x, x[0, 0]):
            with pytest.raises(RuntimeError, match=r"tensor.H is only supported on matrices .* got shape"):
                part.H
        np.testing.assert_array_equal(x.real.cpu().numpy(), z.real)
        np.testing.assert_array_equal(x.imag.cpu().numpy(), z.imag)

    def test_slots_and_no_getattr(self):
        """What lucid keeps lies in slots, so that reading one costs a pointer; a misspelled attribute says so."""
        x = lucid.zeros(1, requires_grad=True)
        (x * 2).backward()
        assert vars(x) == {}
        assert "__getattr__" not in vars(lucid.Tensor)
        with pytest.raises(AttributeError, match="shpae"):
            x.shpae

    @pytest.mark.parametrize("name", [n for n in dir(lucid.Tensor) if not n.startswith("_")])
    def test_every_public_attribute_says_what_it_is(self, name):
        """What a user finds on a tensor has a docstring."""
        if name in {"array", "edge", "version", "origin", "stored_grad", "accumulator"}:
            return
        text = inspect.getdoc(getattr(lucid.Tensor, name))
        assert text
        assert text.splitlines()[0].strip()


class TestRequiresGrad:
    def test_marks_a_leaf(self):
        """A leaf is marked and unmarked; its results follow."""
        x = lucid.ones(2)
        assert x.requires_grad_() is x
        assert (x * 2).requires_grad
        x.requires_grad = False
        assert not (x * 2).requires_grad

    def test_integers_cannot(self):
        """Only floating and complex tensors have gradients."""
        x = lucid.tensor([1, 2])
        with pytest.raises(DtypeError, match="floating-point or complex"):
            x.requires_grad = True
        assert not x.requires_grad

    def test_a_result_keeps_it(self):
        """Switching it off for a result is an error that names the node; switching it on changes nothing."""
        y = lucid.ones(2, requires_grad=True) * 2
        y.requires_grad_()
        with pytest.raises(GraphError, match=r"MulBackward0.*detach"):
            y.requires_grad_(False)
        assert y.requires_grad

    def test_grad_fn_and_is_leaf(self):
        """A leaf shows no node, a result the node that made it."""
        x = lucid.ones(2, requires_grad=True)
        y = x * 2
        assert (x.grad_fn, x.is_leaf, x.output_nr) == (None, True, 0)
        assert (y.grad_fn.name(), y.is_leaf) == ("MulBackward0", False)
        a, b = x.reshape(2, 1).split(1)
        assert (a.output_nr, b.output_nr) == (0, 1)

    def test_inference_tensors_stay_out(self):
        """What inference mode made never enters a graph, and says so."""
        with lucid.inference_mode():
            x = lucid.ones(2) * 1.0
        assert x.is_inference()
        with pytest.raises(GraphError, match="inference tensor"):
            x.requires_grad = True
        with pytest.raises(GraphError, match="inference"):
            x._version

    def test_an_inference_tensor_is_asked_to_require_grad(self):
        """It cannot be, outside of the mode, also where it requires grad already; that it no longer does is allowed."""
        with lucid.inference_mode():
            x = lucid.ones(2, requires_grad=True)
            x.requires_grad_()
        with pytest.raises(GraphError, match="inference tensor"):
            x.requires_grad_()
        assert x.requires_grad
        assert not x.requires_grad_(False).requires_grad

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
    def test_a_copy_made_in_inference_mode_is_an_inference_tensor(self, copied):
        """Copies are what any tensor is that is made in their mode, whatever the original."""
        x = lucid.ones(2, requires_grad=True)
        with lucid.inference_mode():
            y = copied(x)
        assert y.is_inference()
        assert y.requires_grad
        with pytest.raises(GraphError, match="inference tensor"):
            lucid.ones(2, requires_grad=True) * y
        with lucid.inference_mode(False):
            assert not copied(y).is_inference()


class TestGrad:
    def test_reading_it_from_a_result_warns(self):
        """A result has no gradient unless it was asked to keep it: reading warns, and points at the caller."""
        y = lucid.ones(2, requires_grad=True) * 2
        with pytest.warns(UserWarning, match=r"not a leaf.*retain_grad") as seen:
            assert y.grad is None
        assert seen[0].filename == __file__
        y.retain_grad()
        with warnings.catch_warnings(action="error"):
            assert y.grad is None
            assert y.retains_grad

    def test_assignment_is_checked(self):
        """A gradient has the shape, dtype and device of its tensor; a failed assignment changes nothing."""
        x = lucid.ones(2, requires_grad=True)
        good = lucid.tensor([1.0, 2.0])
        x.grad = good
        assert x.grad is good
        for bad, kind, match in [
            (lucid.ones(3), ShapeError, r"shape \(2,\), got \(3,\)"),
            (lucid.ones(2, dtype=lucid.float64), DtypeError, "expected lucid.float32, got lucid.float64"),
            ([1.0, 2.0], TypeError, "expected a Tensor or None, got list"),
            (x, RuntimeError, "own gradient"),
        ]:
            with pytest.raises(kind, match=match):
                x.grad = bad
            assert x.grad is good
        del x.grad
        assert x.grad is None

    def test_backward_of_several_elements_needs_a_gradient(self, rng):
        """The error names the shape; with the gradient it runs."""
        x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
        upstream = rng.standard_normal(3)
        with pytest.raises(GraphError, match=r"shape \(3,\)"):
            (x * 2).backward()
        (x * 2).backward(gradient=lucid.tensor(upstream))
        np.testing.assert_allclose(x.grad.cpu().numpy(), 2 * upstream)


class TestData:
    def test_reading_gives_an_uncounted_alias(self):
        """Changes through `.data` are seen in the values and not counted."""
        x = lucid.ones(2, requires_grad=True)
        x.data.mul_(3)
        assert x.tolist() == [3.0, 3.0]
        assert x._version == 0
        assert not x.data.requires_grad

    def test_setting_swaps_the_elements(self, rng):
        """Shape and dtype may change; graph and hooks stay, and the hooks accept gradients of the new form."""
        x = lucid.ones(2, requires_grad=True)
        seen = []
        x.register_hook(lambda grad: seen.append(grad) or grad * 2)
        x.data = lucid.tensor(rng.standard_normal((3, 2)))
        assert (x.shape, x.dtype, x.is_leaf, x.requires_grad) == ((3, 2), lucid.float64, True, True)
        upstream = rng.standard_normal((3, 2))
        (x * 1.0).backward(lucid.tensor(upstream))
        np.testing.assert_array_equal(x.grad.cpu().numpy(), 2 * upstream)
        assert len(seen) == 1

    def test_setting_is_checked(self):
        """No tensor, and integers where a gradient is wanted, are refused; nothing is changed."""
        x = lucid.ones(2, requires_grad=True)
        with pytest.raises(TypeError, match="expected a Tensor, got list"):
            x.data = [1.0]
        with pytest.raises(DtypeError, match="floating point or complex"):
            x.data = lucid.tensor([1, 2])
        assert x.tolist() == [1.0, 1.0]
        for dtype in (lucid.float16, lucid.bfloat16, lucid.float64, lucid.complex64, lucid.complex128):
            x.data = lucid.ones(2, dtype=dtype)
            assert (x.dtype, x.requires_grad) == (dtype, True)


class TestDetach:
    def test_shares_memory_and_version(self):
        """A detached tensor is in no graph, on the same memory, and a change of it is noticed by backward."""
        x = lucid.ones(2, requires_grad=True)
        y = x * 2
        z = y * y
        alias = y.detach()
        assert not alias.requires_grad
        alias.fill_(0)
        assert (y._version, y.tolist()) == (1, [0.0, 0.0])
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()

    def test_in_place(self):
        """detach_ makes a leaf; a view refuses, since its base would stay."""
        x = lucid.ones(2, requires_grad=True)
        y = x * 2
        view = y[:1]
        with pytest.raises(RuntimeError, match="detach"):
            view.detach_()
        assert y.detach_() is y
        assert (y.is_leaf, y.requires_grad) == (True, False)
        with pytest.raises(RuntimeError, match="a view cannot be detached in place"):
            y[:1].detach_()


class TestConversion:
    @pytest.mark.parametrize(
        ("method", "dtype"),
        [
            ("half", "float16"), ("bfloat16", "bfloat16"), ("float", "float32"), ("double", "float64"),
            ("char", "int8"), ("byte", "uint8"), ("short", "int16"), ("int", "int32"), ("long", "int64"),
            ("bool", "bool"), ("cfloat", "complex64"), ("cdouble", "complex128"),
        ],
    )  # fmt: skip
    def test_casts(self, method, dtype):
        """Each shorthand gives its dtype, and the tensor itself if it has it."""
        x = lucid.tensor([0.0, 1.0, 2.0])
        y = getattr(x, method)()
        assert str(y.dtype) == f"lucid.{dtype}"
        assert getattr(y, method)() is y

    def test_to(self, rng):
        """All forms of `to`; the result is on the graph, and is the tensor itself where nothing changes."""
        x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
        assert x.to(DEVICE) is x.to(lucid.float64) is x.to(x) is x.to(device=DEVICE, dtype=float) is x
        copied = x.to(x, copy=True)
        assert copied is not x
        assert copied.data_ptr() != x.data_ptr()
        # by position the flags are non_blocking, then copy
        for target in ((lucid.float64,), (DEVICE,), (DEVICE, lucid.float64), (x,)):
            assert x.to(*target, True, False) is x
            assert x.to(*target, False, True) is not x
        for y in (x.to(lucid.float32), x.to(DEVICE, lucid.float32), x.to(lucid.ones(1)), x.to(dtype=np.float32)):
            assert y.dtype is lucid.float32
        y.backward(lucid.ones(3) * 0.5)
        assert x.grad.dtype is lucid.float64
        assert x.grad.tolist() == [0.5] * 3
        assert x.type_as(lucid.tensor([1])).dtype is lucid.int64
        for name in ("LongTensor", "lucid.LongTensor", "torch.LongTensor"):
            assert x.type(name).dtype is lucid.int64
        assert (x.type(), x.type(lucid.half).dtype) == (
            "lucid.DoubleTensor" if DEVICE == "cpu" else "lucid.cuda.DoubleTensor",
            lucid.float16,
        )

    def test_to_refuses(self):
        """A misspelled argument, a device that does not exist, and too many arguments raise."""
        x = lucid.ones(1)
        with pytest.raises(TypeError, match=r"to: expected to\(dtype\)"):
            x.to(devcie="cpu")
        with pytest.raises(RuntimeError, match="'gpu'"):
            x.to("gpu")
        with pytest.raises(TypeError, match="to: expected"):
            x.to("cpu", lucid.float32, True, True, 1)

    @pytest.mark.skipif(lucid.cuda.is_available(), reason="says what happens without a CUDA device")
    def test_cuda_without_a_device(self):
        """Without a CUDA device `cuda()` says what is missing."""
        with pytest.raises(lucid.errors.CudaUnavailableError, match="CUDA"):
            lucid.ones(1).cuda()

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64", "uint8", "bool"])
    def test_numbers_and_lists(self, dtype):
        """Elements come out as Python numbers of the kind of the dtype, bfloat16 too."""
        x = lucid.tensor([[1, 0]], dtype=dtype)
        kind = {"int64": int, "uint8": int, "bool": bool}.get(dtype, float)
        assert x.tolist() == [[kind(1), kind(0)]]
        assert {type(v) for v in x.tolist()[0]} == {kind}
        assert type(x[0, 0].item()) is kind
        assert lucid.tensor(1, dtype=dtype).tolist() == 1

    def test_tensors_in_lists_are_numbers(self):
        """Each of one element stands for its number, whatever its dimensions; another one is refused by its shape."""
        x = lucid.tensor([[lucid.ones(1), 2.0], [lucid.tensor(3), lucid.full((1, 1), 4.0, requires_grad=True)]])
        assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
        for shape in ((2,), (0,), (1, 2)):
            with pytest.raises(ShapeError, match=re.escape(f"stands for one number, got one of shape {shape}")):
                lucid.tensor([lucid.ones(shape), 2.0])

    def test_item_needs_one_element(self):
        """The error names the count."""
        with pytest.raises(ShapeError, match="2 elements"):
            lucid.ones(2).item()

    def test_new(self):
        """new_* take dtype and device from the tensor unless given."""
        x = lucid.ones(1, dtype=lucid.float64)
        assert x.new_zeros(2, 3).tolist() == [[0.0] * 3] * 2
        assert x.new_ones((2,)).dtype is lucid.float64
        assert x.new_full((2,), 7, dtype=lucid.int64).tolist() == [7, 7]
        assert x.new_empty(2, 2).shape == (2, 2)
        made = x.new_tensor([1, 2], requires_grad=True)
        assert (made.dtype, made.requires_grad, made.is_leaf) == (lucid.float64, True, True)
        for data in (lucid.zeros(2, dtype=lucid.float64), np.zeros(2), lucid.zeros(2, dtype=lucid.float64)[:]):
            x.new_tensor(data).fill_(7)
            assert data.tolist() == [0, 0]


class TestPython:
    def test_truth(self):
        """A tensor of one element is true or false; any other raises and says what to do."""
        assert lucid.tensor([[2.0]])
        assert not lucid.tensor(0)
        with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
            bool(lucid.ones(2))
        with pytest.raises(RuntimeError, match="no values is ambiguous"):
            bool(lucid.zeros(0))

    def test_numbers(self):
        """A tensor of one element stands in for a number where Python wants one."""
        assert (float(lucid.tensor([1.5])), int(lucid.tensor(-1.7)), complex(lucid.tensor(2j))) == (1.5, -1, 2j)
        for dtype in (lucid.int64, lucid.int8, lucid.uint8, lucid.bool):
            assert [10, 20, 30][lucid.tensor([1], dtype=dtype)] == 20
        with pytest.raises(TypeError, match="only integer tensors"):
            [1, 2][lucid.tensor(1.0)]
        with pytest.raises(TypeError, match="complex"):
            float(lucid.tensor(1j))

    def test_sequences(self, rng):
        """len, iteration and `in` go along the first dimension, on the graph; without dimensions they raise."""
        x = lucid.tensor(rng.standard_normal((3, 2)), requires_grad=True)
        assert len(x) == 3
        first, *_ = x
        first.sum().backward()
        assert x.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
        assert 3 in lucid.tensor([1, 2, 3])
        assert lucid.tensor(4) not in lucid.tensor([1, 2, 3])
        for dtype in (lucid.bfloat16, lucid.float16, lucid.float32):
            assert 0.1 in lucid.tensor([0.5, 0.1], dtype=dtype)
        with pytest.raises(RuntimeError, match="cannot be broadcast"):
            lucid.tensor([1, 2, 3]) in lucid.tensor([1, 2])
        for act in (len, iter):
            with pytest.raises(TypeError, match="0-d tensor"):
                act(lucid.tensor(1.0))
        with pytest.raises(TypeError, match="str"):
            "a" in x

    def test_equality_and_hash(self):
        """== compares elements, but a tensor is a key by identity; other objects are unequal."""
        x, y = lucid.ones(2), lucid.ones(2)
        assert (x == y).tolist() == [True, True]
        assert len({x, y, x}) == 2
        assert (x == None) is False  # noqa: E711
        assert (x != "a") is True
        assert weakref.ref(x)() is x

    def test_foreign_operands_have_their_turn(self):
        """An operator whose other side is unknown asks that side, and raises a TypeError if it does not know either."""

        class Foreign:
            def __radd__(self, other):
                return "mine"

            __rsub__ = __rpow__ = __rmatmul__ = __rand__ = __gt__ = __radd__

        x = lucid.ones(2)
        assert x + Foreign() == x - Foreign() == x ** Foreign() == x @ Foreign() == (x < Foreign()) == "mine"
        for act in (lambda: x + object(), lambda: object() - x, lambda: x < object(), lambda: x + "a"):
            with pytest.raises(TypeError):
                act()

    def test_reflected_operators(self, rng):
        """Numbers and arrays on the left give what the function gives with the operands in that order."""
        a = rng.uniform(1, 2, 3)
        x = lucid.tensor(a)
        np.testing.assert_allclose((2 - x).cpu().numpy(), 2 - a)
        np.testing.assert_allclose((2 / x).cpu().numpy(), 2 / a)
        np.testing.assert_allclose((2**x).cpu().numpy(), 2**a)
        np.testing.assert_allclose((5 // x).cpu().numpy(), 5 // a)
        np.testing.assert_allclose((5 % x).cpu().numpy(), 5 % a)
        np.testing.assert_allclose((a - x).cpu().numpy(), 0 * a)
        np.testing.assert_allclose((a @ x).cpu().numpy(), a @ a)
        bits = lucid.tensor([1, 2, 4])
        assert ((6 & bits).tolist(), (1 | bits).tolist(), (1 ^ bits).tolist()) == ([0, 2, 4], [1, 3, 5], [0, 3, 5])
        assert ((1 << bits).tolist(), (64 >> bits).tolist(), (~bits).tolist()) == (
            [2, 4, 16],
            [32, 16, 4],
            [-2, -3, -5],
        )
        assert +x is x


class TestCopies:
    def test_deepcopy(self, rng):
        """A leaf is copied with its gradient and without its hooks; the copies of one tensor are one."""
        x = lucid.tensor(rng.standard_normal(2), requires_grad=True)
        (x * x).backward(lucid.tensor(rng.standard_normal(2)))
        x.register_hook(lambda grad: grad * 100)
        first, second = copy.deepcopy([x, x])
        assert first is second
        assert first.data_ptr() != x.data_ptr()
        assert first.tolist() == x.tolist()
        assert first.grad.tolist() == x.grad.tolist()
        assert first.grad.data_ptr() != x.grad.data_ptr()
        first.grad = None
        (first * 1.0).sum().backward()
        assert first.grad.tolist() == [1.0, 1.0]

    def test_only_leaves(self):
        """A result has a graph that cannot be copied with it."""
        y = lucid.ones(2, requires_grad=True) * 2
        with pytest.raises(RuntimeError, match=r"graph leaves.*deepcopy"):
            copy.deepcopy(y)
        with pytest.raises(RuntimeError, match=r"graph leaves.*pickling"):
            pickle.dumps(y)

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64"])
    def test_pickle(self, dtype):
        """Elements, dtype and requires_grad come back."""
        x = lucid.tensor([1, 0], dtype=dtype)
        if x.is_floating_point():
            x.requires_grad_()
        y = pickle.loads(pickle.dumps(x))
        assert (y.dtype, y.tolist(), y.requires_grad) == (x.dtype, x.tolist(), x.requires_grad)
        assert y.is_leaf

    def test_shallow_copy_shares_memory(self):
        """copy.copy gives another tensor on the same memory."""
        x = lucid.ones(2)
        y = copy.copy(x)
        assert y is not x
        assert y.data_ptr() == x.data_ptr()


@pytest.mark.parametrize(
    "change", [lambda y: y.mul_(3), lambda y: y[1:].mul_(3), lambda y: y.__setitem__(0, 2.0), lambda y: y[[0, 2]]]
)
def test_no_reference_cycles(change, rng):
    """A tensor and its graph are freed with the last reference, without the garbage collector, whatever was changed."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    y = x * 2
    change(y)
    node = weakref.ref(y.grad_fn)
    tensor = weakref.ref(y)
    del y
    assert tensor() is None
    assert node() is None


def test_data_assigned_before_backward():
    """What a pass recorded keeps its values: the gradient is that of the loss which was computed."""
    weight = lucid.tensor([3.0, 4.0], requires_grad=True)
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    loss = x @ weight
    weight.data = lucid.tensor([7.0, 7.0])
    (loss + x @ weight).backward()
    assert x.grad.tolist() == [10.0, 11.0]
    assert weight.grad.tolist() == [2.0, 4.0]


@pytest.mark.gpu
def test_second_derivatives_through_moves_between_devices(rng):
    """A gradient comes back to the device that its tensor is on, and one of it goes where this one came from."""
    places = ["cpu", *(f"cuda:{index}" for index in range(lucid.cuda.device_count()))]
    for own, other in itertools.permutations(places, 2):
        x = lucid.tensor(rng.uniform(0.5, 2, 3), device=own, requires_grad=True)
        weights = lucid.tensor(rng.standard_normal(3), device=other)
        (grad,) = lucid.autograd.grad((x.to(other) ** 3 * weights).sum(), x, create_graph=True)
        (second,) = lucid.autograd.grad(grad.sum(), x, create_graph=True)
        (third,) = lucid.autograd.grad(second.sum(), x)
        assert {each.device for each in (grad, second, third)} == {x.device}
        np.testing.assert_allclose(second.detach().cpu().numpy(), 6 * (x.detach().cpu() * weights.cpu()).numpy())
        np.testing.assert_allclose(third.cpu().numpy(), 6 * weights.cpu().numpy())
