"""What has a rule: by SciPy's names and parameters, tried by some row, and named in the documentation."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import lucid.scipy
from lucid.numpy.border import OTHERS
from tests.scipy import interpolate_rows, ndimage_rows, other_rows, signal_rows
from tests.scipy.checks import by_name, drawn

pytestmark = pytest.mark.cpu("about names")

CLASSES = {f"scipy.interpolate.{name}" for name in lucid.scipy.interpolate.__all__}
RULES = {name: rule.function for name, rule in OTHERS.items() if rule is not None}
UNTRIED = {"scipy.linalg.cho_factor"}
"""What others that are tried call."""
IDLE = ("overwrite_", "check_finite", "workers", "lapack_driver", "copy")
"""Parameters that say nothing of the result."""
TABLES = {
    "ndimage": (ndimage_rows.FILTERS, ndimage_rows.TRANSFORMS),
    "signal": (signal_rows.CONVOLUTIONS, signal_rows.FILTERS, signal_rows.RATES),
    "fft": (other_rows.FFT,),
    "integrate": (other_rows.INTEGRATE,),
    "special": (other_rows.SPECIAL,),
    "linalg": (other_rows.LINALG,),
    "interpolate": (interpolate_rows.PIECEWISE, interpolate_rows.SPLINES, interpolate_rows.TABLES),
}


def theirs(name):
    """Return SciPy's function or class of a full name."""
    module, _, function = name.rpartition(".")
    return getattr(import_module(module), function)


def parameters(function):
    """Return the parameters of a function, with their defaults."""
    return {key: each.default for key, each in inspect.signature(function).parameters.items()}


def test_parameters_are_scipys():
    """A rule has parameters of SciPy's, in its order and with its defaults; those it lacks are refused by name."""
    for name in (*RULES, *CLASSES):
        ours = parameters(RULES[name] if name in RULES else getattr(lucid.scipy.interpolate, name.rpartition(".")[2]))
        known = parameters(theirs(name))
        assert list(ours) == [key for key in known if key in ours], name
        for key, default in ours.items():
            assert default is None or repr(default) == repr(known[key]), f"{name}: {key}"


def test_each_rule_is_tried_and_documented():
    """Whoever adds a rule adds a row, and its name to the page."""
    tried = {f"scipy.{module}.{name}" for module, tables in TABLES.items() for name in by_name(*tables)}
    differ = sorted(({*RULES, *CLASSES} - tried) ^ UNTRIED)
    assert not differ, f"add a row of {differ} to a table in tests/scipy, or take it away from UNTRIED if it has one"
    page = (Path(__file__).parents[2] / "docs" / "numpy.md").read_text(encoding="utf-8")
    section = re.search(r"\n## `lucid.scipy`\n(.*?)\n## ", page, re.DOTALL)
    assert section is not None
    named = set(re.findall(r"`(\w+)`", section[1]))
    unnamed = sorted({name.rpartition(".")[2] for name in {*RULES, *CLASSES}} - named)
    assert not unnamed, f'docs/numpy.md, "## `lucid.scipy`", does not name {unnamed}: add them there'


class Noted:
    """A module of SciPy's that notes which parameters its functions are given."""

    def __init__(self, name, given):
        self.name, self.given = name, given

    def __getattr__(self, function):
        own = theirs(full := f"scipy.{self.name}.{function}")

        def call(*args, **settings):
            if full in self.given:
                self.given[full] |= set(inspect.signature(own).bind(*args, **settings).arguments)
            return own(*args, **settings)

        return call


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_each_parameter_is_tried(rng):
    """Whoever gives a rule a parameter adds a row that gives it: a default says nothing of it."""
    ours = {**RULES, **{name: getattr(lucid.scipy.interpolate, name.rpartition(".")[2]) for name in CLASSES}}
    given = {name: set() for name in ours}
    for module, tables in TABLES.items():
        for row in (row for table in tables for row in table):
            row.call(Noted(module, given), *drawn(row, rng))
    left = {
        name: [key for key in set(parameters(ours[name])) - given[name] if not key.startswith(IDLE)] for name in ours
    }
    untried = {name: keys for name, keys in left.items() if keys}
    assert not untried, f"no row in tests/scipy gives these parameters: {untried}"


def test_constants_are_scipys():
    """Functions of which no result carries a gradient are SciPy's by their names."""
    for name in set(OTHERS) - set(RULES):
        assert callable(theirs(name))
