"""What is public is explained where `help` looks: each parameter has an entry, each class an example that runs."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import types
from pathlib import Path

import pytest

import lucid
from lucid.settings.kinds import KINDS
from lucid.settings.layers import LAYERS

# Modules of which everything public is explained; those below them are in the list themselves.
EXPLAINED = (
    "lucid",
    "lucid.amp",
    "lucid.distributions",
    "lucid.fft",
    "lucid.func",
    "lucid.linalg",
    "lucid.nn",
    "lucid.nn.functional",
    "lucid.nn.init",
    "lucid.nn.parallel",
    "lucid.nn.utils",
    "lucid.nn.utils.rnn",
    "lucid.optim",
    "lucid.optim.lr_scheduler",
    "lucid.optim.swa_utils",
    "lucid.special",
    "lucid.utils.data",
)
REMEDY = (
    "explain it in lucid/settings, in the table of all functions (functions.py), layers (layers.py) or optimizers "
    "(optimizers.py) where the name means the same in all, in kinds.py or operands.py where it does in one kind, else "
    "in the docstring"
)
MOST_TYPED = 12


def public(module):
    """Return (name, value) of each class and function of lucid's that a module exports, or has if it has no list."""
    module = importlib.import_module(module)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    names = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
    values = [(name, getattr(module, name)) for name in names]
    return [(name, value) for name, value in values if isinstance(value, type | types.FunctionType)]


def parameters(value):
    """Return the names of the parameters; none where Python has no signature, as of an exception."""
    try:
        return list(inspect.signature(value).parameters)
    except ValueError:
        return []


def explained(text):
    """Return the parameters that the section of a docstring explains, in its order."""
    section = re.split(r"\n\n\w[\w ]*\n-{3,}\n", text.partition("Parameters\n----------\n")[2])[0]
    return re.findall(r"^\*{0,2}(\w+) : .*\n    \S", section, re.MULTILINE)


@pytest.mark.parametrize("module", EXPLAINED)
def test_each_parameter_is_explained(module):
    """The section has an entry for each parameter, in the order of the signature."""
    missing: list[str] = []
    for name, value in public(module):
        found, wanted = explained(inspect.getdoc(value) or ""), parameters(value)
        if found != wanted:
            others = [parameter for parameter in wanted if parameter not in found] or "each, in another order"
            missing.append(f"{module}.{name}: {others}")
    assert not missing, f"help does not explain the parameters {missing}: {REMEDY}"


@pytest.mark.parametrize("module", EXPLAINED)
def test_each_class_has_an_example(module):
    """`help` of a class shows how it is used; doctests run it."""
    without = [name for name, value in public(module) if isinstance(value, type) and ">>> " not in value.__doc__]
    assert not without, f"{module} has classes without an example: add one to their docstrings: {without}"


@pytest.mark.parametrize("module", EXPLAINED)
def test_no_address_is_shown(module):
    """What stands for an argument that was not given has no form of its own: its place in memory says nothing."""
    shown = [name for name, value in public(module) if " at 0x" in (value.__doc__ or "")]
    assert not shown, f"{module}: the section of parameters shows the default of {shown} as an object in memory"


def test_a_section_is_made_when_it_is_read():
    """What stands in a source stays short: a class of many parameters has none of the table's sentences in its file."""
    text = Path(inspect.getfile(lucid.nn.Conv2d.forward)).read_text(encoding="utf-8")
    (source,) = [
        ast.get_docstring(node)
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and node.name == "Conv2d"
    ]
    assert "Parameters" not in source
    assert len(source.splitlines()) <= MOST_TYPED
    assert LAYERS["dilation"].meaning in lucid.nn.Conv2d.__doc__


def test_what_is_particular_to_a_class_comes_first():
    """An entry of the class, or of its base, goes before the table's, and a class of a user's is left alone."""

    class Own(lucid.nn.Conv2d):
        """A convolution of somebody's."""

    assert Own.__doc__ == "A convolution of somebody's."
    assert KINDS["convtranspose"]["padding"] in " ".join(lucid.nn.ConvTranspose2d.__doc__.split())
    assert "Whether the hooks run while" in lucid.nn.Hook.__doc__
    assert lucid.nn.Conv2d(1, 1, 1).__doc__ is lucid.nn.Conv2d.__doc__
