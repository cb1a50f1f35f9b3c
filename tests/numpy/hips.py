"""The tests of HIPS/autograd, run on lucid: ``python -m tests.numpy.hips FOLDER``, with a checkout of it.

Its own package is not imported: modules of its names that hold lucid's functions stand in for it. What is printed is a
table: per file how many tests apply, pass and fail, then each that fails or does not apply with a line that says why;
and how many of the functions for which it defines a derivative have the right one here.
"""

from __future__ import annotations

import ast
import os
import sys
import types
import warnings
from collections import Counter
from pathlib import Path

import numpy  # noqa: ICN001 - np is lucid's here
import pytest
import scipy.stats

import lucid
import lucid.numpy as np
from lucid.numpy import autograd
from lucid.numpy.autograd import builtins, crossing, extend, misc, products, test_util
from lucid.numpy.autograd.misc import fixed_points, flatten, optimizers
from lucid.scipy import integrate, linalg, signal, special
from lucid.tensor.numpy_calls.operands import is_recorded

TRACER = "internals: the tracer, whose graph is run again"
SPACES = "internals: vector spaces of the core"
OLD = "the form of defvjp before version 1.2, which warns that it is deprecated"
NOT_APPLICABLE = {
    "test_vspaces.py": SPACES,
    "test_fft.py::test_rfftn_odd_not_implemented": "asks that odd sizes are refused, which have a gradient here",
    "test_misc.py::test_const_graph": TRACER,
    "test_misc.py::test_const_graph_args": TRACER,
    "test_wrappers.py::test_deprecated_defgrad_wrapper": OLD,
    "test_wrappers.py::test_deprecated_defvjp_wrapper": OLD,
    "test_wrappers.py::test_deprecated_defvjp_is_zero_wrapper": OLD,
    "test_wrappers.py::test_wrapped_name_and_docs": "the words of its docstrings",
}
"""By file or test, why it says nothing about lucid."""
DISTRIBUTIONS = "autograd.scipy.stats: lucid.distributions has these densities"
STATISTICS = tuple(
    f"test_scipy.py::test_{name}" for name in ("chi2", "beta_", "gamma_", "norm_", "poisson", "t_", "mvn", "dirichlet")
)


# ---- modules that stand in ----


def unary_to_nary(operator):
    """Return what makes an operator on functions of one argument one on those of several."""

    def of_several(fun, argnum=0, *args, **kwargs):
        def bound(fun, x):
            return operator(fun, x, *args, **kwargs)

        bound.__name__ = getattr(operator, "__name__", "operator")
        return crossing.of_argument(bound.__name__, bound, fun, argnum)

    return of_several


def internal(name):
    """Return a function that says that it is not there."""

    def missing(*args, **kwargs):
        raise NotImplementedError(f"{name} is one of HIPS/autograd's internals")

    return missing


def quick_grad_check(fun, arg0, extra_args=(), kwargs=None, **settings):
    """Check a gradient, under an old name."""
    del settings
    test_util.check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)


def stand_in():
    """Let the names of HIPS/autograd's modules be lucid's."""
    core = {
        "make_vjp": lambda fun, x: products.make_vjp(fun)(x),
        "make_jvp": lambda fun, x: products.make_jvp(fun)(x),
        "primitive": extend.primitive,
        "primitive_vjps": {},
        "vspace": internal("vspace"),
    }
    modules = {
        "autograd.core": core,
        "autograd.util": {"quick_grad_check": quick_grad_check},
        "autograd.wrap_util": {"unary_to_nary": unary_to_nary},
        "autograd.tracer": {"isbox": is_recorded, "primitive": extend.primitive},
        "autograd.misc": {"flatten": misc.flatten, "const_graph": internal("const_graph")},
        "autograd.scipy": {"special": special, "integrate": integrate},
        "autograd.scipy.stats": {name: getattr(scipy.stats, name) for name in scipy.stats.__all__},
        "autograd.scipy.stats.multivariate_normal": {},
    }
    made = types.ModuleType("autograd")
    made.__dict__.update({name: getattr(autograd, name) for name in autograd.__all__})
    sys.modules["autograd"] = made
    for name, held in modules.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(held)
    for name, module in {
        "autograd.numpy": np,
        "autograd.numpy.linalg": np.linalg,
        "autograd.numpy.fft": np.fft,
        "autograd.numpy.random": np.random,
        "autograd.builtins": builtins,
        "autograd.extend": extend,
        "autograd.test_util": test_util,
        "autograd.misc.flatten": flatten,
        "autograd.misc.optimizers": optimizers,
        "autograd.misc.fixed_points": fixed_points,
        "autograd.scipy.linalg": linalg,
        "autograd.scipy.signal": signal,
    }.items():
        sys.modules[name] = module
    # two helpers of its file that a test borrows
    np.linalg._dot = np.matmul
    np.linalg.T = lambda x: np.swapaxes(x, -1, -2)
    for name in [name for name in sys.modules if name.startswith("autograd.")]:
        parent, _, own = name.rpartition(".")
        setattr(sys.modules[parent], own, sys.modules[name])


# ---- tests ----


class Results:
    """A plugin of pytest that keeps how each test ended."""

    def __init__(self, words=""):
        self.ended = {}
        self.words = words

    def pytest_collection_modifyitems(self, config, items):
        """Leave out what does not apply."""
        kept = []
        for item in items:
            reason = NOT_APPLICABLE.get(key(item.nodeid)) or (key(item.nodeid).startswith(STATISTICS) and DISTRIBUTIONS)
            reason = reason or NOT_APPLICABLE.get(item.path.name)
            if reason:
                self.ended[key(item.nodeid)] = "not applicable", reason
            elif self.words in item.nodeid:
                kept.append(item)
        items[:] = kept

    def pytest_runtest_logreport(self, report):
        """Keep the worst of what a test's parts say."""
        name = key(report.nodeid)
        if report.skipped:
            self.ended[name] = "not applicable", str(report.longrepr[2]).removeprefix("Skipped: ")
        elif report.failed:
            self.ended[name] = "failed", report.longrepr.reprcrash.message.splitlines()[0]
        elif report.when == "call":
            self.ended.setdefault(name, ("passed", ""))

    def pytest_collectreport(self, report):
        """Let a file that cannot be read fail as a whole."""
        if report.failed:
            self.ended[key(report.nodeid)] = "failed", str(report.longrepr).splitlines()[-1]


def key(node):
    """Return the name of a test from its file on."""
    file, mark, test = node.partition("::")
    return file.rpartition("/")[2] + mark + test


def tests_of(path):
    """Return the names of the tests that a file defines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def run_tests(folder, words=""):
    """Return how each of HIPS/autograd's tests ended, and why."""
    results = Results(words)
    tests = folder / "tests"
    files = [path for path in sorted(tests.glob("test_*.py")) if path.name not in NOT_APPLICABLE]
    for path in sorted(tests.glob("test_*.py")):
        if path.name in NOT_APPLICABLE:
            ended = ("not applicable", NOT_APPLICABLE[path.name])
            results.ended.update({f"{path.name}::{name}": ended for name in tests_of(path)})
    os.chdir(tests)
    sys.path.insert(0, str(tests))
    arguments = ["-q", "-c", os.devnull, "--rootdir", str(tests), "-p", "no:cacheprovider", "--tb=short"]
    pytest.main([*arguments, "-W", "ignore", *map(str, files)], plugins=[results])
    return results.ended


# ---- functions ----

PUBLIC = {
    "_array_from_scalar_or_array": "array", "array_from_args": "array", "concatenate_args": "concatenate",
    "_astype": "astype", "_primitive_mean": "mean", "_primitive_std": "std", "_primitive_var": "var", "msort": "sort",
    "linalg._primitive_norm": "linalg.norm",
}  # fmt: skip
"""Functions of HIPS/autograd's own, and of older versions of NumPy, and what they are in NumPy."""

SQUARE = numpy.array([[2.0, 0.3, 0.1], [0.2, 1.5, 0.4], [0.5, 0.1, 1.0]])
OTHER = numpy.array([[0.35, 0.85, 0.15, 0.65], [0.75, 0.25, 0.55, 0.45], [0.95, 0.05, 0.5, 0.3]])
TAKES = {
    "arccosh": lambda f, x: f(x + 1),
    "array_split": lambda f, x: f(x, 2),
    "astype": lambda f, x: f(x, numpy.float64),
    "broadcast_to": lambda f, x: f(x, (2, 3, 4)),
    "clip": lambda f, x: f(x, 0.3, 0.7),
    "cross": lambda f, x: f(x[:, :3], OTHER[:, 1:]),
    "concatenate": lambda f, x: f([x, OTHER]),
    "diff": lambda f, x: f(x),
    "dot": lambda f, x: f(x, OTHER.T),
    "dsplit": lambda f, x: f(x[None], 2),
    "einsum": lambda f, x: f("ij,kj->ik", x, OTHER),
    "expand_dims": lambda f, x: f(x, 1),
    "full": lambda f, x: f((2, 3, 4), x),
    "hsplit": lambda f, x: f(x, 2),
    "imag": lambda f, x: f(x * (1 + 2j)),
    "inner": lambda f, x: f(x, OTHER),
    "kron": lambda f, x: f(x, OTHER),
    "linspace": lambda f, x: f(x, OTHER, 5),
    "matmul": lambda f, x: f(x, OTHER.T),
    "moveaxis": lambda f, x: f(x, 0, 1),
    "outer": lambda f, x: f(x, OTHER),
    "pad": lambda f, x: f(x, 1),
    "partition": lambda f, x: f(x, 2),
    "repeat": lambda f, x: f(x, 2, 0),
    "reshape": lambda f, x: f(x, (4, 3)),
    "roll": lambda f, x: f(x, 2),
    "rollaxis": lambda f, x: f(x, 1),
    "split": lambda f, x: f(x, 3),
    "squeeze": lambda f, x: f(x[None]),
    "swapaxes": lambda f, x: f(x, 0, 1),
    "tensordot": lambda f, x: f(x, OTHER),
    "tile": lambda f, x: f(x, (2, 2)),
    "vsplit": lambda f, x: f(x, 3),
    "where": lambda f, x: f(OTHER > 0.5, x, OTHER),
    "make_diagonal": lambda f, x: f(x, axis1=-1, axis2=-2),
    "linalg.cholesky": lambda f, x: f(x[:, :3] + x[:, :3].T + 3 * SQUARE @ SQUARE.T),
    "linalg.eigh": lambda f, x: f(x[:, :3] + x[:, :3].T)[0],
    "linalg.eig": lambda f, x: numpy.abs(f(x[:, :3])[0]),
    "linalg.solve": lambda f, x: f(SQUARE, x),
    "linalg.svd": lambda f, x: f(x)[1],
    "linalg.det": lambda f, x: f(x[:, :3]),
    "linalg.inv": lambda f, x: f(x[:, :3] + SQUARE),
    "linalg.slogdet": lambda f, x: f(x[:, :3] + SQUARE)[1],
}
"""How functions are called that do not take one array, or two of one shape."""
TWO = {
    "add", "arctan2", "divide", "fmax", "fmin", "hypot", "logaddexp", "logaddexp2", "maximum", "minimum", "mod",
    "multiply", "power", "remainder", "subtract", "true_divide",
}  # fmt: skip


def functions_of(folder):
    """Return the names of the functions for which HIPS/autograd defines a derivative."""
    found = set()
    for part in ("numpy_vjps", "linalg", "fft"):
        tree = ast.parse((folder / "autograd" / "numpy" / f"{part}.py").read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "").startswith("defvjp")):
                continue
            first = node.args[0]
            if part == "numpy_vjps" and isinstance(first, ast.Attribute) and getattr(first.value, "id", "") == "anp":
                found.add(first.attr)
            elif part != "numpy_vjps" and isinstance(first, ast.Name) and first.id != "truncate_pad":
                found.add(f"{part}.{first.id}")
    return sorted(found)


def differentiates(name):
    """Return what is wrong with the derivative of a function of lucid.numpy; nothing if it is right."""
    public = PUBLIC.get(name, name)
    function = np
    try:
        for part in public.split("."):
            function = getattr(function, part)
    except AttributeError as error:
        return str(error)
    x = numpy.random.default_rng(0).permutation(numpy.linspace(0.12, 0.88, 12)).reshape(3, 4)
    take = TAKES.get(public, (lambda f, x: f(x, OTHER)) if public in TWO else (lambda f, x: f(x)))
    try:
        test_util.check_grads(lambda x: take(function, x), modes=["rev"])(x)
        recorded = take(function, lucid.tensor(x, requires_grad=True))
        if not any(is_recorded(each) for each in (recorded if isinstance(recorded, list | tuple) else [recorded])):
            return "no gradient"
    except Exception as error:  # noqa: BLE001  # whatever is wrong is a line of the table
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def report(ended, functions):
    """Print the tables."""
    counts = Counter((name.partition("::")[0], how) for name, (how, _) in ended.items())
    print(f"\n{'file':<26}{'applicable':>11}{'passed':>8}{'failed':>8}{'not applicable':>16}")
    rows = [*sorted({file for file, _ in counts}), "all"]
    for file in rows:
        passed, failed, rest = (
            sum(n for (name, how), n in counts.items() if how == wanted and file in {name, "all"})
            for wanted in ("passed", "failed", "not applicable")
        )
        print(f"{file:<26}{passed + failed:>11}{passed:>8}{failed:>8}{rest:>16}")
    for wanted in ("failed", "not applicable"):
        print(f"\n{wanted}:")
        by_reason = {}
        for name, (how, why) in sorted(ended.items()):
            if how == wanted:
                by_reason.setdefault((name.partition("::")[0], why), []).append(name.partition("::")[2])
        for (file, why), names in by_reason.items():
            which = ", ".join(names) if len(names) < 4 else f"{len(names)} tests"
            print(f"  {file}: {which}: {why}")
    wrong = {name: why for name in functions if (why := differentiates(name))}
    print(f"\nfunctions with a derivative: {len(functions) - len(wrong)} of {len(functions)}")
    for name, why in wrong.items():
        print(f"  {name}: {why}")


def main():
    """Run the tests in the folder that the command line names; a second argument says which."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m tests.numpy.hips FOLDER [WORDS]: FOLDER is a checkout of HIPS/autograd")
    folder = Path(sys.argv[1]).resolve()
    stand_in()
    warnings.simplefilter("ignore")
    functions = functions_of(folder)
    report(run_tests(folder, *sys.argv[2:3]), functions)


if __name__ == "__main__":
    main()
