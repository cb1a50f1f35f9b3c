"""Layers under PyTorch's addresses, and the bases by which tools tell them apart."""

from __future__ import annotations

import copy
import importlib
import sys

import pytest

from lucid import nn
from lucid.nn.modules.addresses import LAYERS


def test_every_base_is_one():
    """What the table names is there, and a layer of the address is of it."""
    for address, layers in LAYERS.items():
        module = importlib.import_module(f"lucid.nn.modules.{address}")
        assert module is sys.modules[module.__name__] is getattr(nn.modules, address)
        assert module.__doc__
        for name in (entry.partition("=")[0] for entry in layers.split() if "=" in entry):
            base = getattr(module, name)
            assert issubclass(base, nn.Module)
            assert any(issubclass(getattr(module, layer), base) for layer in module.__all__)


def test_tools_find_them():
    """The tables that tools keep by class, and a layer that is copied, work."""
    from lucid.nn.modules.batchnorm import _BatchNorm
    from lucid.nn.modules.conv import _ConvNd

    model = copy.deepcopy(nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.LayerNorm(2)))
    assert [isinstance(layer, _ConvNd) for layer in model] == [True, False, False]
    assert [isinstance(layer, _BatchNorm) for layer in model] == [False, True, False]
    assert "_ConvNd" in dir(nn.modules.conv)
    assert nn.modules.conv.__name__ == "lucid.nn.modules.conv"
    with pytest.raises(AttributeError, match=r"module 'lucid.nn.modules' has no attribute 'Nothing'"):
        _ = nn.modules.Nothing
    assert nn.modules.Linear is nn.Linear
