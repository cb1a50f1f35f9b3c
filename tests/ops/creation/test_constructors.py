"""Tensors by the names of their types: what is size, what is data, and which tensors are of a type."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import ArgumentError, DtypeError, ShapeError
from lucid.ops.creation.constructors import TYPES

ON_CPU = {name: kind for name, kind in TYPES.items() if not kind.is_cuda}
each_type = pytest.mark.parametrize("kind", ON_CPU.values(), ids=ON_CPU)


@each_type
def test_sizes(kind):
    """Integers, of any kind, and a Size are sizes; nothing is no element."""
    for made, shape in (
        (kind(2, 3), (2, 3)),
        (kind(4), (4,)),
        (kind(np.int64(2), lucid.tensor(1, device="cpu")), (2, 1)),
        (kind(lucid.Size([3, 2])), (3, 2)),
        (kind(), (0,)),
    ):
        assert (made.shape, made.dtype, made.device.type) == (shape, kind.dtype, "cpu")
        assert type(made) is lucid.Tensor


@each_type
def test_data(kind):
    """Sequences and arrays are data, which is copied and converted as by `to`."""
    array = np.array([[0, 1], [1, 1]], np.int32)
    for data in (array, array.tolist(), tuple(map(tuple, array.tolist()))):
        made = kind(data)
        assert made.dtype == kind.dtype
        np.testing.assert_array_equal(made.to(lucid.complex128).numpy(), array)
    array[:] = 7
    np.testing.assert_array_equal(kind(range(2)).to(lucid.complex128).numpy(), [0, 1])


def test_numbers_that_do_not_fit():
    """They are converted, as those of a tensor are."""
    assert lucid.LongTensor([1.7, -1.7]).tolist() == [1, -1]
    assert lucid.BoolTensor([0.5, 0.0]).tolist() == [True, False]


def test_tensors():
    """Another tensor on the same memory, a leaf of its own that knows of changes."""
    x = lucid.ones(2, device="cpu", requires_grad=True)
    y = lucid.Tensor(x)
    assert y.is_leaf
    assert not y.requires_grad
    with lucid.no_grad():
        y[0] = 5
    assert x.tolist() == [5.0, 1.0]
    assert x._version == y._version == 1
    assert lucid.Tensor(lucid.tensor([1], device="cpu")).dtype == lucid.int64
    with pytest.raises(
        DtypeError, match=r"expected a tensor of lucid.int64, got .* convert it with .to\(lucid.int64\)"
    ):
        lucid.LongTensor(x)


@each_type
def test_a_tensor_of_another_type_is_no_data(kind):
    """It is refused, by any type but its own: on the same memory it would be read as what it is not."""
    x = lucid.ones(2, dtype=kind.dtype, device="cpu")
    for other in ON_CPU.values():
        if other is kind:
            assert other(x).dtype == kind.dtype
        else:
            with pytest.raises(DtypeError, match=f"expected a tensor of {other.dtype}, got"):
                other(x)


def test_the_default_dtype():
    """`Tensor` makes tensors of it, on the default device."""
    assert lucid.Tensor([1, 2]).dtype == lucid.float32
    lucid.set_default_dtype(lucid.float64)
    try:
        assert lucid.Tensor(1).dtype == lucid.Tensor([1]).dtype == lucid.float64
    finally:
        lucid.set_default_dtype(lucid.float32)


class Named(lucid.Tensor):
    """A class of the user's."""


def test_a_class_of_ones_own():
    """It is made the same way, and what ops make of it is a Tensor."""
    made = Named([1.0, 2.0])
    assert type(made) is Named
    assert type(made * 2) is lucid.Tensor
    assert (made * 2).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("arguments", "kind", "match"),
    [
        (
            (2.5,),
            ArgumentError,
            "expected sizes, a sequence of numbers, or a tensor, got float 2.5: lucid.tensor makes",
        ),
        (("a",), ArgumentError, "got str 'a'"),
        ((True,), ArgumentError, "got bool True"),
        ((None,), ArgumentError, "got NoneType"),
        ((2, [1]), ArgumentError, "got int 2, list"),
        ((-1,), ShapeError, "negative dimension"),
        (([[1, 2], [3]],), ShapeError, "nest evenly"),
    ],
)
def test_bad_input(arguments, kind, match):
    """What is neither size nor data is refused."""
    for make in (lucid.Tensor, lucid.FloatTensor):
        with pytest.raises(kind, match=match):
            make(*arguments)


@each_type
def test_which_tensors_are_of_a_type(kind):
    """One type is that of each tensor; `type` converts to it, by the type, its name, and PyTorch's name for it."""
    x = lucid.ones(2, device="cpu")
    made = x.type(kind)
    assert [other for other in TYPES.values() if isinstance(made, other)] == [kind]
    assert made.type() == kind.name == repr(kind).split("'")[1]
    for name in (kind.name, kind.name.replace("lucid", "torch"), kind.dtype):
        assert lucid.equal(x.type(name), made)
        assert x.type(name).dtype == kind.dtype
    assert not isinstance(2.0, kind)


@pytest.mark.gpu
def test_types_of_a_device():
    """They name the device, and a conversion moves there and back, in the graph."""
    x = lucid.ones(2, device="cpu", requires_grad=True)
    y = x.type("lucid.cuda.DoubleTensor")
    assert (y.is_cuda, y.dtype, y.type()) == (True, lucid.float64, "lucid.cuda.DoubleTensor")
    z = y.type(lucid.FloatTensor)
    assert not z.is_cuda
    z.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


ON_CUDA = {name.rpartition(".")[2]: kind for name, kind in TYPES.items() if kind.is_cuda and "Complex" not in name}


def test_types_on_cuda_devices_have_names():
    """`lucid.cuda` has every type of a tensor there that PyTorch has, and no tensor on the CPU is of one."""
    named = {name: getattr(lucid.cuda, name) for name in lucid.cuda.__all__ if name.endswith("Tensor")}
    assert named == ON_CUDA
    assert not isinstance(lucid.ones(2, device="cpu"), lucid.cuda.FloatTensor)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ON_CUDA)
def test_types_on_cuda_devices_make_tensors(name):
    """Sizes and data make tensors of the type, on the current device."""
    made = getattr(lucid.cuda, name)([1, 0])
    assert (made.type(), made.tolist()) == (f"lucid.cuda.{name}", [1, 0])
    assert isinstance(made, ON_CUDA[name])
    assert getattr(lucid.cuda, name)(2, 3).shape == (2, 3)
