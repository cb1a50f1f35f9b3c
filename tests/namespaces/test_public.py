"""Where a function or a class is public, by its `__module__`: for `help`, and for pickles that outlive a file."""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys

import pytest

import lucid
from lucid import nn
from lucid.public import written_in

# Public modules that `lucid` does not export.
BESIDE = ("hooks", "hooks.functions", "hooks.tracing", "viz", "array_api", "compat", "numpy.autograd")
# Public under names that are not their own: PyTorch's.
RENAMED = {"UntypedStorage"}


def modules():
    """Return the public modules by name: `lucid`, what it and they export, and those beside."""
    found, waiting = {}, [lucid, *(importlib.import_module(f"lucid.{name}") for name in BESIDE)]
    while waiting:
        module = waiting.pop()
        if module.__name__ not in found:
            found[module.__name__] = module
            exported = [getattr(module, name) for name in getattr(module, "__all__", ())]
            waiting += [each for each in exported if inspect.ismodule(each) and each.__name__.startswith("lucid")]
    return found


MODULES = modules()


def callables(module):
    """Return the functions and classes of lucid that a module exports under their own names."""
    exported = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    return {
        name: value
        for name, value in exported.items()
        if (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__.startswith("lucid")
    }


def test_everything_public_says_where():
    """Its `__module__` is a public module that has it under its name, and no other that is nearer to `lucid` has it."""
    places = {}
    for path, module in MODULES.items():
        for name, value in callables(module).items():
            places.setdefault(value, set()).add((path, name))
    assert len(places) > 1200
    wrong = {
        f"{name} of {path}: {value.__module__}.{value.__qualname__}"
        for value, found in places.items()
        for path, name in found
        if not value.__name__.startswith("_") and value.__name__ not in RENAMED
        if (value.__module__, value.__name__) not in found
        or value.__module__.count(".") > path.count(".")
        or getattr(sys.modules[value.__module__], value.__name__) is not value
        or value.__qualname__ != value.__name__
    }
    assert not wrong, "let their modules publish(globals()) at the end, as lucid/public.py says"


def test_a_pickle_names_what_is_public():
    """No inner path stands in it, and it gives back what it was made of."""
    for module in MODULES.values():
        for value in callables(module).values():
            if not value.__name__.startswith("_") and value.__name__ not in RENAMED:
                text = pickle.dumps(value, 0).decode()
                assert f"c{value.__module__}\n{value.__name__}\n" in text
                assert pickle.loads(text.encode()) is value


# What pickles of earlier versions hold.
OLDER = {
    "lucid.ops.base.keywords exp": lucid.exp,
    "lucid.ops.base.keywords linalg.inv": lucid.linalg.inv,
    "lucid.ops.base.keywords Tensor.sum": lucid.Tensor.sum,
    "lucid.ops.base.keywords special.digamma": lucid.special.digamma,
    "lucid.backend.device device": lucid.device,
    "lucid.backend.dtype dtype": lucid.dtype,
    "lucid.nn.layers.linear Linear": nn.Linear,
    "lucid.nn.modules.lazy LazyLinear": nn.LazyLinear,
    "lucid.nn.modules.module register_module_forward_hook": nn.register_module_forward_hook,
    "lucid.nn.module.module Module": nn.Module,
    "lucid.tensor.tensor Tensor": lucid.Tensor,
    "lucid.autograd.functions grad": lucid.autograd.grad,
    "lucid.tensor.recording detach": lucid.detach,
    "lucid.tensor.layout never": lucid.is_neg,
    "lucid.tensor.inplace_methods relu_": lucid.relu_,
    "lucid.optim.adam Adam": lucid.optim.Adam,
    "lucid.jit script": lucid.jit.script,
    "lucid.amp.autocast_mode custom_fwd": lucid.amp.custom_fwd,
    "lucid.distributions.families.normal Normal": lucid.distributions.Normal,
    "lucid.ops.activation.sigmoid sigmoid": nn.functional.sigmoid,
    "lucid.autograd.modes.state no_grad": lucid.no_grad,
}


@pytest.mark.parametrize("path", OLDER)
def test_older_pickles_load(path):
    """The paths of files that they name still lead to the same function or class."""
    module, _, name = path.partition(" ")
    pickled = b"\x80\x04\x8c" + bytes([len(module)]) + module.encode() + b"\x8c" + bytes([len(name)]) + name.encode()
    assert pickle.loads(pickled + b"\x93.") is OLDER[path]


ALONE = """
import importlib, os, sys
import lucid
for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        module = importlib.import_module(path)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if isinstance(value, type | type(lucid.exp)):
                print(path, name, value.__module__, flush=True)
        sys.stdout.flush()
        os._exit(0)
    assert not os.waitpid(child, 0)[1], path
"""


@pytest.mark.cpu("names are those of any device")
def test_it_does_not_hang_on_what_was_imported():
    """A module that is asked for first, in a process of its own, gives its names the same `__module__`."""
    ran = subprocess.run([sys.executable, "-c", ALONE, *MODULES], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    alone = {tuple(line.split()) for line in ran.stdout.splitlines()}
    together = {
        (path, name, getattr(module, name).__module__)
        for path, module in MODULES.items()
        for name in getattr(module, "__all__", ())
        if isinstance(getattr(module, name), type | type(lucid.exp))
    }
    assert alone == together


def test_where_something_is_written():
    """Of functions and classes, those of several names too, and of what is exported nowhere."""
    assert written_in(lucid.exp) == "lucid.ops.elementwise.exponential"
    assert written_in(nn.functional.relu) == "lucid.nn.functional"
    assert written_in(nn.functional.conv2d) == written_in(lucid.conv2d) == "lucid.ops.layers.convolution"
    assert written_in(nn.Linear) == "lucid.nn.layers.linear"
    assert written_in(test_where_something_is_written) == __name__
    assert "def expm1" in inspect.getsource(inspect.unwrap(lucid.expm1))
