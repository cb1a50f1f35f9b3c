"""Devices: how they are named, compared and found, on a machine without CUDA."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.base.device import CPU, as_device, device, device_of, get_default_device, set_default_device
from lucid.errors import CudaUnavailableError, DeviceError
from tests.pieces import raising


@pytest.fixture
def no_cuda(monkeypatch):
    """No CUDA device, whatever this machine has."""
    monkeypatch.setattr(gpu, "cupy", raising(CudaUnavailableError("no CUDA device")))


@pytest.mark.parametrize(
    ("arguments", "kind", "index", "text", "representation"),
    [
        (("cpu",), "cpu", None, "cpu", "device(type='cpu')"),
        (("cpu:0",), "cpu", 0, "cpu:0", "device(type='cpu', index=0)"),
        (("cuda",), "cuda", None, "cuda", "device(type='cuda')"),
        (("cuda:1",), "cuda", 1, "cuda:1", "device(type='cuda', index=1)"),
        (("cuda", 10), "cuda", 10, "cuda:10", "device(type='cuda', index=10)"),
        ((2,), "cuda", 2, "cuda:2", "device(type='cuda', index=2)"),
        ((device("cuda"), 3), "cuda", 3, "cuda:3", "device(type='cuda', index=3)"),
    ],
)
def test_devices_are_named_as_in_pytorch(arguments, kind, index, text, representation):
    """Type and index come from the name, the arguments or another device, and str and repr are PyTorch's."""
    made = device(*arguments)
    assert (made.type, made.index, str(made), repr(made)) == (kind, index, text, representation)
    assert device(text) == made
    assert device(made) == made


@pytest.mark.parametrize(
    "bad", ["", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:01", "cuda:a", "cuda:1 ", " cpu", "cuda:1:2"]
)
def test_misspelled_devices_are_refused(bad):
    """What PyTorch refuses as a device string is refused, and the message shows how one looks."""
    with pytest.raises(DeviceError, match="expected a device such as 'cpu', 'cuda' or 'cuda:1', got"):
        device(bad)


def test_an_unknown_kind_is_named_in_pytorchs_words():
    """Which kinds there are, code for several libraries reads out of the error, as array-api-compat does."""
    with pytest.raises(RuntimeError, match="tpu") as caught:
        device("tpu:0")
    words = str(caught.value)
    assert words.partition("Expected one of ")[2].partition(" device type")[0].split(", ") == ["cpu", "cuda"]
    with pytest.raises(DeviceError) as caught:
        device("cuda:x")
    assert "device type" not in str(caught.value)


@pytest.mark.parametrize("bad", [1.0, None, b"cpu", True, ["cpu"]])
def test_what_is_no_device_is_refused(bad):
    """Only names, indices and devices name a device."""
    with pytest.raises(DeviceError, match="expected a device, its name or a CUDA index"):
        device(bad)


def test_indices_are_checked():
    """An index is not negative and is given once."""
    with pytest.raises(DeviceError, match="index of 0 or more, got -1"):
        device(-1)
    with pytest.raises(DeviceError, match="index of 0 or more, got -2"):
        device("cuda", -2)
    with pytest.raises(DeviceError, match="given twice"):
        device("cuda:0", 0)


def test_devices_are_values():
    """Equal type and index make equal devices with equal hashes; a missing index is not index 0."""
    assert device("cuda", 1) == device("cuda:1")
    assert hash(device("cuda", 1)) == hash(device("cuda:1"))
    assert device("cuda") != device("cuda:0")
    assert device("cpu") != device("cuda")
    assert device("cpu") != "cpu"
    assert len({device("cpu"), device("cpu"), device("cuda"), device("cuda:0")}) == 3


def test_devices_cannot_be_changed_and_can_be_copied():
    """Devices serve as keys, so they never change; copies and unpickled ones are equal."""
    made = device("cuda:1")
    with pytest.raises(AttributeError, match="immutable"):
        made.index = 2
    with pytest.raises(AttributeError, match="immutable"):
        del made.type
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made


@pytest.mark.cpu("about a machine without another device")
def test_the_cpu_is_one_device():
    """Every way to the CPU leads to the same object, so that comparing devices by identity is enough."""
    for spec in (None, "cpu", "cpu:0", device("cpu"), device("cpu", 0), CPU):
        assert as_device(spec) is CPU
    for array in (np.zeros(3), np.float32(1), np.zeros(2).view(np.recarray)):
        assert device_of(array) is CPU


@pytest.mark.skipif(lucid.cuda.is_available(), reason="says what happens without a CUDA device")
def test_cuda_devices_must_exist(no_cuda):
    """Naming a CUDA device needs none, using one does, and the error is a DeviceError and a RuntimeError."""
    for spec in ("cuda", "cuda:0", 0, device("cuda:3")):
        with pytest.raises(CudaUnavailableError) as info:
            as_device(spec)
        assert isinstance(info.value, DeviceError)
        assert isinstance(info.value, RuntimeError)


@pytest.mark.gpu
def test_devices_beyond_the_last_are_refused():
    """The first index without a device is refused as those after it, however it is given; those here are named."""
    count = lucid.cuda.device_count()
    for index in (count, count + 1):
        for spec in (index, f"cuda:{index}", device("cuda", index)):
            with pytest.raises(DeviceError, match=rf"no device cuda:{index}; the devices here are cpu, cuda:0"):
                as_device(spec)
    assert as_device(count - 1) == device("cuda", count - 1)


def test_there_is_one_cpu():
    """A second CPU can be named, as in PyTorch, but holds no tensors."""
    with pytest.raises(DeviceError, match=r"no device cpu:1"):
        as_device("cpu:1")


@pytest.mark.cpu("about a machine without another device")
def test_refused_default_device_changes_nothing(no_cuda):
    """A default that does not exist is refused when it is set, and the old one stays."""
    with pytest.raises(CudaUnavailableError):
        set_default_device("cuda")
    with pytest.raises(DeviceError):
        set_default_device("tpu")
    assert get_default_device() is CPU
    set_default_device(None)
    assert get_default_device() is CPU


@pytest.mark.parametrize("bad", [1.0, [1, 2], None])
def test_only_arrays_have_a_device(bad):
    """Python data lives nowhere."""
    with pytest.raises(DeviceError, match="expected a NumPy or CuPy array, got"):
        device_of(bad)
