"""The names of the standard: each is there, with the signature of ``standard.txt``, and what an array has."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid import array_api as xp

LINES = Path(__file__).with_name("standard.txt").read_text(encoding="utf-8").split("\n")[:-1]
STANDARD = {line.partition("(")[0]: line[line.index("(") :] for line in LINES}
"""The signatures of the 2024.12 standard, without types; below `array` the methods."""
MISSING = {"uint16", "uint32", "uint64"}
"""The dtypes of the standard that lucid does not have."""


def found(name):
    """Return a function of the namespace, a method of Tensors, or of what the namespace says of itself."""
    if name.startswith("array."):
        return getattr(lucid.Tensor, name.removeprefix("array."))
    if name.startswith("__array_namespace_info__."):
        return getattr(xp.__array_namespace_info__(), name.partition(".")[2])
    value = xp
    for part in name.split("."):
        value = getattr(value, part)
    return value


def form(signature):
    """Return the parameters of a signature: name, kind and default."""
    return [(each.name, each.kind, each.default) for each in signature.parameters.values()]


@pytest.mark.parametrize("name", [name for name in STANDARD if not name.startswith("array.")])
def test_signatures(name):
    """Parameters have the standard's names, kinds and defaults."""
    namespace = {}
    exec(f"from math import inf\ndef function{STANDARD[name]}: ...", namespace)
    assert form(inspect.signature(found(name))) == form(inspect.signature(namespace["function"]))


@pytest.mark.parametrize("name", [name for name in STANDARD if name.startswith("array.")])
def test_an_array_has_its_methods(name):
    """A Tensor has each method, and takes its keywords."""
    method = found(name)
    keywords = STANDARD[name].strip("()").partition("*,")[2]
    if keywords:
        wanted = {each.strip().partition("=")[0] for each in keywords.split(",")}
        assert wanted <= {*inspect.signature(method).parameters}


def test_constants_and_dtypes():
    """Constants and dtypes are there, and the dtypes that are not are known."""
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (np.e, np.pi, np.inf, None)
    assert np.isnan(xp.nan)
    numbers = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    kinds = ["bool", *numbers, "float32", "float64", "complex64", "complex128"]
    assert {name for name in kinds if not hasattr(xp, name)} == MISSING
    assert {*xp.__array_namespace_info__().dtypes()} == {*kinds} - MISSING
    assert xp.__array_namespace_info__().dtypes(kind="bool") == {"bool": lucid.bool}


def test_what_a_tensor_says():
    """``x.__array_namespace__()`` is the module, of each version that it has."""
    x = lucid.ones(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2022.12") is xp
    assert xp.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match=r"expected one of 2021.12, .*, got '2030.12'"):
        x.__array_namespace__(api_version="2030.12")
    with pytest.raises(AttributeError, match="has no attribute 'missing'"):
        _ = xp.special.missing


def test_what_the_namespace_says():
    """Devices, default dtypes and capabilities are what they are."""
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert lucid.device("cpu") in info.devices()
    assert info.default_dtypes()["real floating"] is lucid.float32
    assert info.capabilities()["boolean indexing"] is True
    assert xp.zeros(2).device == info.default_device()


def test_to_device():
    """A tensor goes to a device by `to_device`, joined to the graph, and is itself where it is there."""
    x = lucid.ones(2, requires_grad=True)
    assert x.to_device(x.device) is x
    for device in xp.__array_namespace_info__().devices():
        moved = x.to_device(device)
        assert moved.device == device
        assert moved.requires_grad
    with pytest.raises(ValueError, match="stream: expected None"):
        x.to_device("cpu", stream=1)


def test_dlpack():
    """`from_dlpack` copies as it is told, and brings to a device; `__dlpack__` has the standard's keywords alone."""
    array = np.arange(3.0)
    shared, copied = lucid.from_dlpack(array, copy=False), xp.from_dlpack(array, copy=True)
    array[0] = 7.0
    assert (float(shared[0]), float(copied[0])) == (7.0, 0.0)
    x = lucid.arange(3)
    same = xp.from_dlpack(x, copy=False)
    same[0] = 5
    assert x.tolist() == [5, 1, 2]
    for device in xp.__array_namespace_info__().devices():
        assert xp.from_dlpack(x, device=device).device == device
        if device != x.device:
            with pytest.raises(ValueError, match="a copy is needed"):
                xp.from_dlpack(x, device=device, copy=False)
    x.__dlpack__(max_version=(1, 0), copy=True)
    with pytest.raises(TypeError, match="unexpected keyword"):
        x.__dlpack__(other=1)
