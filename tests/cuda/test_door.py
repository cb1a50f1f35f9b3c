"""The door to CuPy, and devices and arrays on its far side, with a stand-in for CuPy."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from lucid.base import gpu
from lucid.base.arrays import asarray, astype, is_array, namespace, to_device
from lucid.base.device import CPU, as_device, device, device_of, get_default_device, set_default_device
from lucid.base.dtype import float16, float32, float64, int64
from lucid.errors import CudaUnavailableError, DeviceError, OutOfMemoryError, ShapeError
from tests.pieces import raising


def test_without_cupy_the_package_is_named(no_cupy):
    """Where CuPy is not installed the message says what to install, and asking whether it is there never raises."""
    with pytest.raises(CudaUnavailableError, match=r"not installed; .*pip install 'lucid-cupy\[cuda12\]'"):
        gpu.cupy()
    assert gpu.is_available() is False
    assert gpu.device_count() == 0


def test_without_a_device_the_driver_is_named(no_device):
    """An installed CuPy without a device counts as no CUDA, and the message sends the reader to the driver."""
    with pytest.raises(CudaUnavailableError, match="found no CUDA device; check nvidia-smi"):
        gpu.cupy()
    assert gpu.is_available() is False


def test_a_driver_that_raises_is_reported(fake_cupy):
    """What the driver raises when it is asked for devices is part of the message, and is_available stays silent."""
    fake_cupy.cuda.runtime.getDeviceCount = raising(OSError("insufficient driver"))
    with pytest.raises(CudaUnavailableError, match=r"found no CUDA device \(insufficient driver\)"):
        gpu.cupy()
    assert gpu.is_available() is False


def test_a_cupy_that_does_not_load_is_reported(monkeypatch, no_cupy):
    """An import that fails for another reason than a missing package says which."""

    class Broken:
        def find_spec(self, name, *_):
            if name == "cupy":
                raise ImportError("libcudart.so.12: cannot open shared object file")

    monkeypatch.delitem(sys.modules, "cupy")
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(CudaUnavailableError, match=r"does not load \(libcudart"):
        gpu.cupy()
    assert gpu.device_count() == 0


def test_telling_arrays_apart_imports_nothing(monkeypatch, no_cupy):
    """Where CuPy is not loaded no object is a CuPy array, and finding that out does not load it."""
    monkeypatch.delitem(sys.modules, "cupy")
    monkeypatch.setattr(gpu, "import_module", lambda name: pytest.fail(f"imported {name}"))
    assert not gpu.is_gpu_array(np.zeros(2))
    assert not is_array([1.0])
    # A module that is still being imported has no ndarray yet.
    monkeypatch.setitem(sys.modules, "cupy", types.ModuleType("cupy"))
    assert not gpu.is_gpu_array(np.zeros(2))


def test_cuda_devices_are_found_and_listed(fake_cupy):
    """``cuda`` is the current device; an index that does not exist is refused with those that do."""
    assert as_device("cuda") == as_device("cuda:0") == as_device(0) == device("cuda", 0)
    fake_cupy.current = 1
    assert as_device("cuda") is as_device("cuda:1")
    with pytest.raises(DeviceError, match="no device cuda:2; the devices here are cpu, cuda:0, cuda:1"):
        as_device(2)
    with pytest.raises(DeviceError, match="no device cuda:7"):
        set_default_device("cuda:7")
    assert get_default_device() is CPU


def test_arrays_know_their_device_and_namespace(fake_cupy):
    """A CuPy array belongs to CuPy and to the device that holds it; devices of arrays are one object each."""
    with fake_cupy.cuda.Device(1):
        x = fake_cupy.ndarray(np.zeros(2))
    assert is_array(x)
    assert namespace(x).ndarray is fake_cupy.ndarray
    assert device_of(x) is as_device("cuda:1")
    assert device_of(x) is device_of(x)


def test_values_travel_to_every_device_and_back(fake_cupy, rng):
    """A round trip over both devices keeps the values, each step lands where it was sent, the current device stays."""
    x = rng.standard_normal((3, 2))
    first = to_device(x, "cuda:1")
    second = to_device(first, "cuda:0")
    back = to_device(second, "cpu")
    assert [device_of(step) for step in (first, second, back)] == [as_device("cuda:1"), as_device("cuda:0"), CPU]
    assert fake_cupy.current == 0
    np.testing.assert_array_equal(back, x)
    assert not np.shares_memory(back, x)
    assert to_device(first, "cuda:1") is first


def test_copies_block_unless_told_otherwise(fake_cupy, rng):
    """The default is safe to read and write after the call; ``non_blocking`` is passed on in both directions."""
    x = to_device(rng.standard_normal(2), "cuda")
    to_device(x, "cpu")
    y = to_device(rng.standard_normal(2), "cuda", non_blocking=True)
    to_device(y, "cpu", non_blocking=True)
    assert fake_cupy.log == [("asarray", 0, True), ("get", True), ("asarray", 0, False), ("get", False)]


def test_copies_between_devices_wait_for_each_other(fake_cupy, rng):
    """The taker waits until the source is written, and the giver does not overwrite it until it is taken."""
    x = to_device(rng.standard_normal(2), "cuda:0")
    streams = []
    for index in (0, 1):
        with fake_cupy.cuda.Device(index):
            streams.append(fake_cupy.cuda.Stream().use().name)
    giver, taker = streams
    fake_cupy.log.clear()
    to_device(x, "cuda:1")
    assert fake_cupy.log == [("record", giver), ("wait", taker), ("copy", 0, 1), ("record", taker), ("wait", giver)]


def test_a_full_device_is_reported(fake_cupy):
    """CuPy's own error becomes one that is a RuntimeError as in PyTorch and a MemoryError, and names size and place."""
    with pytest.raises(
        OutOfMemoryError, match=r"cuda:1 has no room left: .* 16,000 bytes\. Tensors hold 0 bytes"
    ) as info:
        to_device(np.zeros(2000), "cuda:1")
    assert isinstance(info.value, MemoryError)
    assert isinstance(info.value, RuntimeError)
    assert fake_cupy.current == 0


def test_data_goes_where_it_is_told(fake_cupy):
    """Python data follows ``device`` or the default device; CuPy arrays stay unless told; dtypes are PyTorch's."""
    assert device_of(asarray([1.0, 2.0], device="cuda:1")) == device("cuda:1")
    stays = asarray(to_device(np.arange(3), "cuda:1"))
    assert device_of(stays) == device("cuda:1")
    assert asarray(stays) is stays
    assert asarray(stays, copy=True) is not stays
    assert device_of(asarray(stays, device="cpu")) is CPU
    set_default_device("cuda")
    made = asarray([1.5, 2.5])
    assert device_of(made) == device("cuda:0")
    assert made.dtype == float32.numpy
    np.testing.assert_array_equal(to_device(made, "cpu"), np.array([1.5, 2.5], np.float32))
    assert device_of(asarray(stays)) == device("cuda:1")
    fake_cupy.current = 1
    assert get_default_device() == device("cuda:1")


def test_dtypes_change_in_place_of_the_array(fake_cupy):
    """`astype` keeps the device, drops imaginary parts and returns the array itself where nothing changes."""
    x = to_device(np.array([1.5 + 2j, -2.5 + 1j]), "cuda:1")
    made = astype(x, float16)
    assert device_of(made) == device("cuda:1")
    assert made.dtype == np.float16
    np.testing.assert_array_equal(made.values, [1.5, -2.5])
    assert astype(made, float16) is made
    assert asarray(made, float64).dtype == np.float64


def test_sequences_of_cuda_arrays_become_one_array(fake_cupy):
    """Arrays of one device stack there; a mixture of devices, or of shapes, is refused."""
    parts = [to_device(np.arange(3) + i, "cuda:1") for i in range(2)]
    made = asarray(parts)
    assert device_of(made) == device("cuda:1")
    assert made.dtype == int64.numpy
    np.testing.assert_array_equal(made.values, [[0, 1, 2], [1, 2, 3]])
    with pytest.raises(DeviceError, match="must not mix devices"):
        asarray([parts[0], np.arange(3)])
    with pytest.raises(ShapeError, match="of one shape"):
        asarray([parts[0], to_device(np.arange(4), "cuda:1")])


def test_cuda_array_interface_is_taken_without_a_copy(fake_cupy):
    """What speaks CUDA's array interface enters through CuPy."""
    inner = to_device(np.arange(3), "cuda:1")
    interface = {"typestr": "<i8", "shape": (3,), "data": (0, False), "version": 3}
    lends = types.SimpleNamespace(__cuda_array_interface__=interface, array=inner)
    assert asarray(lends) is inner
