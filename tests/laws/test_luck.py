"""The same code gives the same colour: what tests draw comes from seeds, and nothing hangs on how fast a machine is."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests").rglob("*.py"))
CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "thread_time"}
CLOCKS |= {f"{name}_ns" for name in CLOCKS}
ENTROPY = {"os.urandom", "random.SystemRandom", "uuid.uuid1", "uuid.uuid4"}
MAKERS = {"default_rng", "Random", "RandomState"}
# What reads a clock though it lies here: commands, which say how long they took, what interrupts at any moment, and the
# one place that waits.
MAY_READ_CLOCKS = {
    "tests/collectives/job/measured.py",
    "tests/cuda/cupys_own_tests.py",
    "tests/kernels/planted_faults.py",
    "tests/parity/nn/full_models.py",
    "tests/parity/programs/__main__.py",
    "tests/planted/running.py",
    "tests/stress/interrupts.py",
    "tests/waiting.py",
}


def path_of(node):
    """Return the dotted name of a node, and an empty one if it is no name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def calls(tree):
    """Yield the dotted name of each call with the call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield path_of(node.func), node


def is_generator(node):
    """Tell whether an expression makes a generator of random numbers."""
    return isinstance(node, ast.Call) and path_of(node.func).rpartition(".")[2] in MAKERS


def entropy_in(tree):
    """Return the lines that take numbers which nothing repeats."""
    found = []
    for name, call in calls(tree):
        unseeded = is_generator(call) and not call.args and not call.keywords
        if unseeded or name in ENTROPY or name.startswith("secrets."):
            found.append(call.lineno)
    return found


def shared_generators_in(tree):
    """Return the names of a file's generators that functions draw from: what a test gets hangs on which ran before."""
    made = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and is_generator(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = set()
    for function in ast.walk(tree) if made else ():
        if isinstance(function, ast.FunctionDef | ast.Lambda):
            own = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
            own |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            found |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} & made - own
    return sorted(found)


def clocks_in(tree):
    """Return the lines that read a clock."""
    return [
        call.lineno
        for name, call in calls(tree)
        if (name.partition(".")[2] in CLOCKS and name.startswith("time.")) or name.startswith("timeit.")
    ]


@pytest.mark.parametrize(
    ("look", "line"),
    [
        (entropy_in, "x = np.random.default_rng().normal()"),
        (entropy_in, "x = random.SystemRandom().random()"),
        (shared_generators_in, "rng = np.random.default_rng(0)\ndef test_it():\n    rng.normal()"),
        (clocks_in, "begin = time.perf_counter()"),
    ],
)
def test_what_looks_sees(look, line):
    """Each kind of luck is found in a line that has it."""
    assert look(ast.parse(line))
    assert not look(ast.parse("def test_it(rng):\n    x = np.random.default_rng(3).normal() + rng.normal()"))


def test_no_test_needs_luck():
    """Numbers come from a seed, no test draws from the generator of another, and none looks at a clock."""
    lucky = {}
    for path in FILES:
        name, tree = str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))
        for look in (entropy_in, shared_generators_in, clocks_in):
            if look is clocks_in and name in MAY_READ_CLOCKS:
                continue
            if found := look(tree):
                lucky[name, look.__name__] = found
    assert not lucky, f"draw from the fixture rng, and wait by tests/waiting.py instead, in these lines: {lucky}"


def test_sets_have_one_order():
    """Workers of pytest-xdist, and the processes that tests start, iterate over sets of strings in one order."""
    assert os.environ["PYTHONHASHSEED"]
