"""PyTorch's addresses, and the bases by which tools tell its layers apart."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import pydoc
import subprocess
import sys

import pytest

from lucid import nn
from lucid.compat.addresses import ADDRESSES, LAYERS, names_at
from tests.compat.stubs import STUBS, stubs


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_a_module_like_others(address):
    """It is imported, reached from its package, reloaded and described; what it exports is the one of its place."""
    module = importlib.import_module(f"lucid.{address}")
    package, _, own = module.__name__.rpartition(".")
    assert getattr(importlib.import_module(package), own) is module is sys.modules[module.__name__]
    assert module.__spec__ is importlib.util.find_spec(module.__name__)
    assert module.__spec__.name == module.__name__
    assert importlib.reload(module) is module
    assert module.__doc__.splitlines()[0] in pydoc.render_doc(module, renderer=pydoc.plaintext)
    places = {name: (place, there) for name, place, there in names_at(address)}
    assert {*module.__all__} <= places.keys() <= {*dir(module)}
    for name, (place, there) in places.items():
        if place != module.__name__:
            assert getattr(module, name) is getattr(importlib.import_module(place), there)
    with pytest.raises(AttributeError, match=rf"module 'lucid.{address}' has no attribute 'nothing'"):
        _ = module.nothing


def test_each_is_imported_first():
    """In a new process, where nothing else was asked for, each address is found, and none is made before."""
    code = (
        "import lucid, os, sys\n"
        "from lucid.compat.addresses import ADDRESSES\n"
        "assert not [each for each in ADDRESSES if f'lucid.{each}' in sys.modules]\n"
        "for each in ADDRESSES:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        exec(f'from lucid.{each} import *; import lucid.{each}')\n"
        "        os._exit(0)\n"
        "    assert not os.waitpid(child, 0)[1], each\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_folder_that_has_moved():
    """Its modules are the same under the name that older pickles have, and keep the one that they have now."""
    now = importlib.import_module("lucid.base.random.generator")
    assert importlib.import_module("lucid.backend.random.generator") is now
    assert (now.__name__, now.__spec__.name) == ("lucid.base.random.generator",) * 2
    assert sys.modules["lucid.backend.random"] is sys.modules["lucid.base"].random
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("lucid.backend.nothing")


def test_type_checkers_are_told():
    """The stubs are those of the table: `python -m tests.compat.stubs` writes them."""
    there = {path.relative_to(STUBS).as_posix(): path.read_text() for path in STUBS.rglob("*") if path.is_file()}
    assert there == stubs()


def test_every_base_is_one():
    """What the table names is there, and a layer of the address is of it."""
    for address in LAYERS:
        module = importlib.import_module(f"lucid.nn.modules.{address}")
        assert module is sys.modules[module.__name__] is getattr(nn.modules, address)
        assert module.__doc__
        for name in (name for name, place, _ in names_at(f"nn.modules.{address}") if place != "lucid.nn"):
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
