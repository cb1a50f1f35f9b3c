"""Faults are planted where something changes, and a test that calls the function finds them."""

from __future__ import annotations

import ast
import subprocess
import sys

from lucid.cuda.launch.plans import LaunchPlan
from lucid.nn.utils import parametrize
from tests.planted.faults import places, planted
from tests.planted.running import ROOT, caches_of, plans

SOURCE = '''
LIMIT = 1 + 1

def outer(a, b: int = 3, *, scale=2):
    """Say."""
    if a < b and not scale:
        raise ValueError(f"{a + b}")
    if TYPE_CHECKING:
        a = call(a, b)
    values = [call(a, b, key=True) for a, _ in zip(range(3), max(a, b), strict=True) if xp.add(a, b, out=a)]
    return (lambda x: x if a else -x)(values[0])
'''


def test_every_place_of_a_function_once():
    """What can be changed is; what a module does at import, raises, declares or says, or no answer tells, is not."""
    changed = {(fault.old, fault.new) for fault in (planted(SOURCE, place) for place in places(SOURCE))}
    condition = "if a < b and (not scale):"
    assert changed == {
        ("a < b and (not scale)", "a < b or not scale"), ("a < b and (not scale)", "a < b"),
        ("a < b and (not scale)", "not scale"), ("a < b", "a <= b"), ("not scale", "scale"),
        (condition, "if not (a < b and (not scale)):"), (condition, "if False:"),
        ("call(a, b, key=True)", "call(b, a, key=True)"), ("call(a, b, key=True)", "call(a, b)"), ("True", "False"),
        ("zip(range(3), max(a, b), strict=True)", "zip(max(a, b), range(3), strict=True)"),
        ("xp.add(a, b, out=a)", "xp.add(a, b)"), ("3", "4"), ("0", "1"), ("-x", "x"),
        ("x if a else -x", "-x if a else x"),
        ("return (lambda x: x if a else -x)(values[0])", "return None"),
    }  # fmt: skip
    for place in places(SOURCE):
        fault = planted(SOURCE, place)
        assert ast.unparse(fault.tree) != ast.unparse(ast.parse(SOURCE))
        assert ast.unparse(ast.parse(SOURCE).body[0]) == "LIMIT = 1 + 1" == ast.unparse(fault.tree.body[0])


def planting(tests, *more):
    """Return a run that plants faults in a small file, and the lines that it prints."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.planted", "lucid/hooks/printing.py", "--tests", tests, *more],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    return run, run.stdout.splitlines()


def test_faults_are_found_by_tests_that_call_them(tmp_path):
    """A test kills what changes its function's answer, and what nobody looks at survives and is printed."""
    tests = tmp_path / "test_printed.py"
    tests.write_text(
        "from lucid.hooks.printing import printed\n"
        "def test_a_word():\n    assert printed('[red]word') == 'word'\n"
        "def test_that_fails():\n    assert 0\n"
    )
    run, said = planting(tests)
    at = "lucid/hooks/printing.py:20 printed: "
    assert said[0].startswith("left out, as it fails without a fault: ")
    assert said[0].endswith("::test_that_fails")
    assert f"{at}'Console(width=WIDTH, color_system=None)' -> 'Console(color_system=None)': survives, 1 tests" in said
    assert not any("'console.print(table)' -> 'pass'" in line for line in said)
    assert said[-1].startswith("2 of 4 faults killed")
    assert run.returncode == 1
    (tmp_path / "said").write_text(run.stdout)
    again = planting(tests, "--again", tmp_path / "said")[1]
    assert {*again} - {*said} == {again[-1]}
    assert again[-1].startswith("0 of 2 faults killed")


def test_what_is_remembered_is_found():
    """A result that was kept before a fault was planted would be given again, so that no test could find it."""
    found = caches_of({parametrize.__file__})[parametrize.__file__]
    assert [each.__name__ for each in found] == ["_parametrized"]
    remembered = {"form": None, "another": LaunchPlan([], [], None, None, ())}
    assert any(each is remembered for each in plans())
