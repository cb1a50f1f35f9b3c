"""Where PyTorch has its layers, and by which bases tools tell them apart."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
import torch

from lucid import nn
from lucid.compat.addresses import LAYERS, names_at

# Bases that are not here: of lazy layers, and of layers that have none in common here.
NO_BASES = {
    "_ASMoutput", "_ConvTransposeMixin", "_LazyConvXdMixin", "_LazyNormBase",
}  # fmt: skip
# Layers that have a base on one side alone.
APART = {
    ("BCEWithLogitsLoss", "_WeightedLoss"),
    ("ZeroPad1d", "_ConstantPadNd"),
    ("ZeroPad2d", "_ConstantPadNd"),
    ("ZeroPad3d", "_ConstantPadNd"),
}
BASES = [
    (address, name) for address in LAYERS for name, place, _ in names_at(f"nn.modules.{address}") if place != "lucid.nn"
]


def theirs(address):
    """Return PyTorch's module."""
    return importlib.import_module(f"torch.nn.modules.{address}")


@pytest.mark.parametrize("address", LAYERS)
def test_layers_stand_at_their_addresses(address):
    """What PyTorch exports there and lucid has, the address has, and nothing else; a star import brings it."""
    ours = importlib.import_module(f"lucid.nn.modules.{address}")
    assert ours is getattr(nn.modules, address)
    expected = {name for name in theirs(address).__all__ if hasattr(nn, name)}
    assert set(ours.__all__) == expected, (
        f'LAYERS["{address}"] in lucid/compat/addresses.py: add {sorted(expected - {*ours.__all__})}, take away '
        f"{sorted({*ours.__all__} - expected)}"
    )
    for name in expected:
        assert getattr(ours, name) is getattr(nn, name) is getattr(nn.modules, name)
    found = {}
    exec(f"from lucid.nn.modules.{address} import *", found)
    assert expected <= set(found)
    with pytest.raises(ImportError):
        exec(f"from lucid.nn.modules.{address} import Nothing")


def test_every_address_is_there():
    """PyTorch's modules with layers, but for those of lazy ones and of one loss in parts."""
    there = {module.name for module in pkgutil.iter_modules(torch.nn.modules.__path__)}
    inner = {"_functions", "lazy", "linear_cross_entropy", "linear_cross_entropy_options"}
    assert there - inner == {*LAYERS, "module", "utils"}
    bases = {
        name
        for address in LAYERS
        for name, value in vars(theirs(address)).items()
        if name.startswith("_") and isinstance(value, type) and value.__module__ == f"torch.nn.modules.{address}"
    }
    assert bases - NO_BASES == {name for _, name in BASES}


@pytest.mark.parametrize(("address", "base"), BASES)
def test_bases_have_the_same_layers(address, base):
    """A layer is of a base here if it is there."""
    here, there = getattr(importlib.import_module(f"lucid.nn.modules.{address}"), base), getattr(theirs(address), base)
    assert issubclass(here, nn.Module)
    layers = [name for name in nn.__all__ if isinstance(getattr(torch.nn, name, None), type)]
    own = {name for name in layers if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), here)}
    others = {name for name in layers if issubclass(getattr(torch.nn, name), there)}
    assert own ^ others == {name for name, of in APART if of == base}
