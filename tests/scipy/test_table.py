"""What has a rule: by SciPy's names and parameters, tried by rows, each for itself, and named in the documentation."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import scipy

import lucid.scipy
from lucid.numpy.border import OTHERS
from lucid.tensor.interop import ExportError
from tests.scipy import interpolate_rows, ndimage_rows, other_rows, signal_rows
from tests.scipy.checks import by_name, check, drawn

pytestmark = pytest.mark.cpu("with SciPy's arrays beside; of CuPy's says test_device.py")

CLASSES = {f"scipy.interpolate.{name}" for name in lucid.scipy.interpolate.__all__}
RULES = {name: rule for name, rule in OTHERS.items() if rule is not None}
UNTRIED = {"scipy.linalg.cho_factor"}
"""What others that are tried call."""
IDLE = ("overwrite_", "check_finite", "workers", "lapack_driver", "lwork", "copy")
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
FUNCTIONS = {(module, name): rows for module, tables in TABLES.items() for name, rows in by_name(*tables).items()}
"""The rows of each function."""
ALL = [(module, row) for (module, _), rows in FUNCTIONS.items() for row in rows]
NAMES = [f"{module}.{row.name}" for module, row in ALL]


def theirs(name):
    """Return SciPy's function or class of a full name."""
    module, _, function = name.rpartition(".")
    return getattr(import_module(module), function)


def parameters(function):
    """Return the parameters of a function, with their defaults."""
    own = inspect.signature(function).parameters.items()
    return {key: each.default for key, each in own if each.kind is not each.VAR_KEYWORD}


def ours(name):
    """Return the names of the parameters that are taken, and the defaults of those that the function has itself."""
    if name in RULES:
        return list(RULES[name].names), parameters(RULES[name].function)
    own = parameters(getattr(lucid.scipy.interpolate, name.rpartition(".")[2]))
    return list(own), own


@pytest.mark.filterwarnings("ignore:The behavior of affine_transform:UserWarning")  # of SciPy's before 1.16
@pytest.mark.parametrize(("module", "row"), ALL, ids=NAMES)
def test_values_and_gradients(module, row, rng):
    """Of each call what SciPy gives, in its dtype, and the slope along a random direction of all its arrays."""
    check(row, module, rng)


def test_parameters_are_scipys():
    """A rule has parameters of SciPy's, in its order and with its defaults; those it lacks are refused by name."""
    for name in (*RULES, *CLASSES):
        taken, own = ours(name)
        known = {key: each.default for key, each in inspect.signature(theirs(name)).parameters.items()}
        assert taken == [key for key in known if key in taken], name
        assert set(own) <= set(taken), name
        for key, default in own.items():
            assert default is None or repr(default) == repr(known[key]), f"{name}: {key}"


def test_each_rule_is_tried_and_documented():
    """Whoever adds a rule adds a row, and its name to the page."""
    differ = sorted(({*RULES, *CLASSES} - {f"scipy.{name}" for name in NAMES}) ^ UNTRIED)
    assert not differ, f"add a row of {differ} to a table in tests/scipy, or take it away from UNTRIED if it has one"
    page = (Path(__file__).parents[2] / "docs" / "users" / "numpy.md").read_text(encoding="utf-8")
    section = re.search(r"\n## `lucid.scipy`\n(.*?)\n## ", page, re.DOTALL)
    assert section is not None
    named = set(re.findall(r"`(\w+)`", section[1]))
    unnamed = sorted({name.rpartition(".")[2] for name in {*RULES, *CLASSES}} - named)
    assert not unnamed, f'docs/users/numpy.md, "## `lucid.scipy`", does not name {unnamed}: add them there'


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
    given = {name: set() for name in (*RULES, *CLASSES)}
    for module, row in ALL:
        row.call(Noted(module, given), *drawn(row, rng))
    left = {
        name: [key for key in ours(name)[0] if key not in tried and not key.startswith(IDLE)]
        for name, tried in given.items()
    }
    untried = {name: keys for name, keys in left.items() if keys}
    assert not untried, f"no row in tests/scipy gives these parameters: {untried}"


def test_constants_are_scipys():
    """Functions of which no result carries a gradient are SciPy's by their names."""
    for name in set(OTHERS) - set(RULES):
        assert callable(theirs(name))


def test_names_that_are_scipys():
    """Modules and names without a counterpart here are SciPy's own, and take no array that requires grad."""
    for name in ("__version__", "constants", "optimize", "stats"):
        assert getattr(lucid.scipy, name) is getattr(scipy, name)
    assert {"optimize", "ndimage"} <= set(dir(lucid.scipy))
    assert lucid.scipy.ndimage is not scipy.ndimage
    with pytest.raises(AttributeError, match=r"module 'lucid.scipy' has no attribute 'nothing', nor has SciPy's"):
        lucid.scipy.nothing
    with pytest.raises(ExportError, match=r"requires grad"):
        lucid.scipy.stats.norm.cdf(lucid.tensor([2.0, 1.0], requires_grad=True))


REFUSED = {
    "integrate.quad": (lambda x: (lambda t: t, 0.0, x[0, 0]), r"use fixed_quad"),
    "linalg.solve_continuous_are": (lambda x: (x, x, x, x), r"a step of Newton's .* by solve_continuous_lyapunov"),
    "linalg.solve_discrete_are": (lambda x: (x, x, x, x), r"a step of Newton's .* by solve_discrete_lyapunov"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_remedies(name):
    """Functions without a rule are refused with what is recorded in their place."""
    operands, message = REFUSED[name]
    module, _, function = name.rpartition(".")
    with pytest.raises(TypeError, match=rf"scipy.{name} has no counterpart here.*{message}"):
        getattr(getattr(lucid.scipy, module), function)(*operands(lucid.tensor([[2.0]], requires_grad=True)))


@pytest.mark.parametrize("kind", ["continuous", "discrete"])
def test_riccati_by_a_step_of_newtons(kind, rng):
    """The remedy's step has the gradient of the solution, as differences of SciPy's solutions have it."""
    a, b, q, r = rng.standard_normal((3, 3)) / 3, rng.standard_normal((3, 2)), np.eye(3), np.eye(2)
    solve = getattr(scipy.linalg, f"solve_{kind}_are")
    lyapunov = getattr(lucid.scipy.linalg, f"solve_{kind}_lyapunov")

    def step(a, b):
        x = solve(a.detach().numpy(), b.detach().numpy(), q, r)
        if kind == "continuous":
            gain = b.mT @ lucid.tensor(x)
            return lyapunov((a - b @ gain).mT, -(lucid.tensor(q) + gain.mT @ gain))
        gain = lucid.linalg.solve(lucid.tensor(r) + b.mT @ lucid.tensor(x) @ b, b.mT @ lucid.tensor(x) @ a).detach()
        return lyapunov((a - b @ gain).mT, lucid.tensor(q) + gain.mT @ gain)

    leaves = [lucid.tensor(each, requires_grad=True) for each in (a, b)]
    result = step(*leaves)
    np.testing.assert_allclose(result.detach().numpy(), solve(a, b, q, r), atol=1e-12)
    weights, ways = rng.standard_normal((3, 3)), [rng.standard_normal(each.shape) for each in (a, b)]
    gradients = lucid.autograd.grad((result * lucid.tensor(weights)).sum(), leaves)
    one, two = (np.sum(weights * solve(a + h * ways[0], b + h * ways[1], q, r)) for h in (1e-5, -1e-5))
    found = sum(np.sum(g.numpy() * way) for g, way in zip(gradients, ways, strict=True))
    np.testing.assert_allclose(found, (one - two) / 2e-5, rtol=1e-6)
