"""DLPack: bfloat16 both ways, memory that is to be read only, and what other libraries do not bear."""

from __future__ import annotations

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

import lucid
from lucid.base.foreign import dlpack
from lucid.errors import DeviceError, DtypeError, LucidError
from tests.device import DEVICE


class Lender:
    """Lends memory by DLPack alone."""

    def __init__(self, tensor, device=None):
        self.tensor = tensor
        self.device = device

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device or self.tensor.__dlpack_device__()


@pytest.mark.parametrize("shape", [(), (0, 3), (3,), (2, 3)])
def test_bfloat16_goes_out_and_comes_back(shape, rng):
    """It is the same memory, of the same dtype."""
    x = lucid.tensor(rng.standard_normal(shape)).bfloat16()
    back = lucid.from_dlpack(Lender(x))
    assert back.dtype is lucid.bfloat16
    assert back.tolist() == x.tolist()
    assert back.data_ptr() == x.data_ptr()
    x.fill_(3)
    assert back.tolist() == x.tolist()


def test_bfloat16_of_any_strides(rng):
    """Steps between elements are kept."""
    x = lucid.tensor(rng.standard_normal((4, 6))).bfloat16()
    for view in (x.t(), x[::2, 1::3], x[1]):
        back = lucid.from_dlpack(Lender(view))
        assert back.stride() == view.stride()
        assert back.tolist() == view.tolist()


@pytest.mark.cpu("what NumPy exports")
def test_every_dtype(rng):
    """Each of lucid's dtypes goes out and comes back."""
    for name in lucid.base.dtype.DTYPES:
        x = lucid.tensor(rng.integers(0, 2, 3)).to(getattr(lucid, name))
        back = lucid.from_dlpack(Lender(x))
        assert back.dtype is x.dtype
        assert back.tolist() == x.tolist()


@pytest.mark.cpu("what NumPy exports")
def test_other_dtypes():
    """Others are refused by DLPack's number of their kind; NumPy's own arrays need no DLPack, and have NumPy's name."""
    with pytest.raises(DtypeError, match="DLPack's kind 1 of 16 bits and 1 lanes"):
        lucid.from_dlpack(Lender(np.zeros(2, np.uint16)))
    with pytest.raises(DtypeError, match=r"NumPy's dtype dtype\('uint16'\)"):
        lucid.from_dlpack(np.zeros(2, np.uint16))
    assert lucid.from_dlpack(np.ones(2, ml_dtypes.bfloat16)).dtype is lucid.bfloat16


@pytest.mark.cpu("what NumPy exports")
def test_elements_of_several_lanes():
    """Vectors as elements are refused: a tensor has none, and one of their lanes is not the memory."""

    class Vectors(Lender):
        def __dlpack__(self, **options):
            capsule = super().__dlpack__(**options)
            dlpack._look_in(capsule)[0].lanes = 2
            return capsule

    with pytest.raises(DtypeError, match="DLPack's kind 2 of 32 bits and 2 lanes"):
        lucid.from_dlpack(Vectors(np.zeros(2, np.float32)))


def test_other_devices():
    """Memory that is neither the CPU's nor CUDA's is refused by its number."""
    with pytest.raises(DeviceError, match="kind of device 10: copy the array to the CPU first"):
        lucid.from_dlpack(Lender(lucid.zeros(2), (10, 0)))


@pytest.mark.cpu("memory of NumPy's")
def test_memory_lives_as_long_as_it_is_used():
    """What was lent is held by the tensor, and let go with it."""
    x = lucid.ones(3).bfloat16()
    gone = weakref.ref(x.array)
    back = lucid.from_dlpack(Lender(x))
    del x
    gc.collect()
    assert gone() is None or back.tolist() == [1, 1, 1]
    assert back.tolist() == [1, 1, 1]


@pytest.mark.cpu("a flag of NumPy's")
def test_read_only_memory_stays_so():
    """What is lent to be read cannot be written to."""
    array = np.ones(3)
    array.flags.writeable = False
    with pytest.raises(LucidError, match="read-only"):
        lucid.from_dlpack(Lender(array)).add_(1)


@pytest.mark.gpu
def test_read_only_cuda_memory_is_copied():
    """CuPy has no such flag."""

    class Guarded(Lender):
        def __dlpack__(self, **options):
            capsule = super().__dlpack__(**{**options, "max_version": (1, 0)})
            place = dlpack._pointer(capsule, b"dltensor_versioned")
            dlpack._Versioned.from_address(place).flags |= 1
            return capsule

    x = lucid.zeros(3, device="cuda")
    lucid.from_dlpack(Guarded(x)).add_(1)
    assert x.tolist() == [0, 0, 0]
    with pytest.raises(LucidError, match="read only"):
        lucid.asarray(Guarded(x), copy=False)


@pytest.mark.gpu
def test_bfloat16_of_a_device_for_the_cpu():
    """A consumer that asks for a copy on the CPU gets one."""
    x = lucid.tensor([1.0, 2.0], device="cuda").bfloat16()

    class Asked(Lender):
        def __dlpack__(self, **options):
            return super().__dlpack__(**{**options, "stream": None, "dl_device": (1, 0)})

    back = lucid.from_dlpack(Asked(x, (1, 0)))
    assert back.device.type == "cpu"
    assert back.dtype is lucid.bfloat16
    assert back.tolist() == [1, 2]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [lucid.float32, lucid.bfloat16])
def test_memory_of_a_device_for_the_cpu_is_a_copy(dtype):
    """Without a copy it is refused, by the BufferError of the standard."""
    x = lucid.ones(3, dtype=dtype, device="cuda")
    with pytest.raises(dlpack.CopyNeededError, match=r"a copy is needed .* on cuda:0 to the CPU") as raised:
        x.__dlpack__(dl_device=(1, 0), copy=False)
    assert isinstance(raised.value, BufferError)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(7, 0), copy=False)
    for copy in (None, True):
        assert x.__dlpack__(dl_device=(1, 0), copy=copy) is not None


def backwards(array):
    """Return a tensor on an array that lies backwards in memory."""
    if DEVICE == "cpu":
        return lucid.as_tensor(array)
    whole = lucid.tensor(
        np.ascontiguousarray(array[tuple(slice(None, None, -1 if s < 0 else 1) for s in array.strides)])
    )
    return lucid.as_tensor(whole.array[tuple(slice(None, None, -1 if s < 0 else 1) for s in array.strides)])


def test_backwards_is_refused_or_copied():
    """Elements that lie backwards in memory end processes of other libraries."""
    x = backwards(np.arange(6.0).reshape(2, 3)[:, ::-1])
    with pytest.raises(dlpack.StepsError, match=r"lie backwards in memory .*contiguous\(\)") as raised:
        x.__dlpack__()
    assert isinstance(raised.value, BufferError)
    assert lucid.from_dlpack(Lender(x.contiguous())).tolist() == x.tolist()


@pytest.mark.cpu("NumPy asks for copies")
def test_backwards_is_copied_if_a_copy_is_asked_for():
    """What asks for a copy gets one, with its elements in order."""
    x = backwards(np.arange(3.0)[::-1])
    assert np.from_dlpack(x, copy=True).tolist() == [2, 1, 0]


def test_steps_that_are_not_taken_do_not_matter():
    """Of one element or none there is no order."""
    for view in (np.arange(3.0)[::-1][:1], np.zeros((0, 3))[:, ::-1]):
        x = lucid.as_tensor(view) if DEVICE == "cpu" else backwards(view)
        assert lucid.from_dlpack(Lender(x)).tolist() == view.tolist()


@pytest.mark.cpu("arrays of NumPy's")
def test_storage_of_what_lies_backwards():
    """It begins at the lowest address, and holds the elements in the order of memory."""
    memory = np.arange(6.0)
    x = lucid.as_tensor(memory[4:0:-1])
    assert x.tolist() == [4, 3, 2, 1]
    assert x.untyped_storage().nbytes() == 32
    assert len(x.untyped_storage()) == 32
    assert x.storage().tolist() == [1, 2, 3, 4]
    assert x.untyped_storage().data_ptr() == memory[1:].ctypes.data
    assert x.storage_offset() == 3
    assert x[1:].storage_offset() == 2
    assert x[1:].untyped_storage() == x.untyped_storage()
