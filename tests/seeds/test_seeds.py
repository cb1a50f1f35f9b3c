"""`python -m tests.seeds` finds the seeds with which a test fails, and what it prints repeats them."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import lucid
from lucid.base.random.draws import uniform
from lucid.base.random.generator import Generator
from tests.seeds.__main__ import Finds, main
from tests.seeds.drawing import VARIABLE, number_of, numbers_of, seed_generators

ROOT = Path(__file__).parents[2]
FILE = "tests/seeds/unlucky.py"
SEEDS = range(3, 15)


def run(*words, **variables):
    """Return what a command of Python prints."""
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def printed():
    """Return what the command prints of the unlucky tests."""
    ran = run("tests.seeds", FILE, "--first", str(SEEDS[0]), "--seeds", str(len(SEEDS)), "--processes", "1")
    assert ran.returncode == 1, ran.stderr
    return ran.stdout


def found(printed, name):
    """Return the seeds with which a test was found to fail."""
    return [int(s) for s in re.findall(rf"LUCID_TEST_SEED=(\d+) python -m pytest {FILE}::{name}  #", printed)]


def test_numbers_of_the_fixture(printed, monkeypatch):
    """The seeds are those of which the generator of the test draws a zero, however the test is set up."""
    for name in ("test_own_numbers", "test_own_numbers_and_a_folder"):
        expected = []
        for seed in SEEDS:
            monkeypatch.setenv(VARIABLE, str(seed))
            expected += [seed] * int(numbers_of(f"{FILE}::{name}").integers(4) == 0)
        assert expected
        assert found(printed, name) == expected


def test_numbers_that_all_share(printed, monkeypatch):
    """So are those of which lucid's generator gives little, to a test and to a fixture of a file."""
    names = {"test_shared_generator": f"{FILE}::test_shared_generator", "test_shared_fixture": f"{FILE}::shared"}
    for test, name in names.items():
        expected = []
        for seed in SEEDS:
            monkeypatch.setenv(VARIABLE, str(seed))
            expected += [seed] * (uniform(Generator("cpu", number_of(name)), (1,), np.float32).item() <= 0.25)
        assert expected
        assert found(printed, test) == expected


def test_the_rest_runs_once(printed):
    """Tests without numbers run once, and twice where they seed lucid themselves; examples are drawn of each seed."""
    assert found(printed, "test_no_numbers") == [SEEDS[0]]
    assert found(printed, "test_seeded_itself") == list(SEEDS[:2])
    assert set(SEEDS) > set(found(printed, "test_examples"))
    assert found(printed, "test_examples")
    failures = sum(len(found(printed, name)) for name in re.findall(r"def (test_\w+)", (ROOT / FILE).read_text()))
    assert re.search(rf"^tests/seeds +5 +{5 * len(SEEDS)} +{failures} +7$", printed, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tests/nowhere", "tests/nowhere does not exist"),
        (f"{FILE} -k a(b", "'a(b' is no expression of pytest's"),
        (f"{FILE} {FILE}c::test_it", f"{FILE}c::test_it does not exist"),
        *((f"{FILE} {option} {value}", f"argument {option}: {value} is less than 1")
          for option in ("--seeds", "--processes") for value in ("0", "-1")),
    ],
)  # fmt: skip
def test_a_wrong_call_is_refused(capsys, monkeypatch, words, said):
    """With status 2 and what is wrong, before a test is looked for."""
    monkeypatch.setattr(pytest, "main", lambda *_, **__: pytest.fail("tests were run"))
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as left:
        main(words.split())
    assert left.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [f"{FILE}::test_nothing", f"{FILE} -k nothing_of_this_name"])
def test_no_test_is_no_success(words):
    """A name or an expression that chooses nothing: that is said, with status 2, and no table of zeros."""
    ran = run("tests.seeds", *words.split(), "--seeds", "1", "--processes", "1")
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stdout
    assert f"no test was run: there is none in {words.split()[0]}" in ran.stderr


def test_the_printed_line_repeats_a_find(printed):
    """The line fails again, and with another seed the test passes."""
    seeds = found(printed, "test_shared_fixture")
    line = f"LUCID_TEST_SEED={seeds[0]} python -m pytest {FILE}::test_shared_fixture"
    assert line in printed
    _, _, *words = shlex.split(line)
    assert run(*words[1:], LUCID_TEST_SEED=str(seeds[0])).returncode == 1
    other = next(seed for seed in SEEDS if seed not in seeds)
    assert run(*words[1:], LUCID_TEST_SEED=str(other)).returncode == 0


DRAWS = {
    "lucid": lambda: lucid.rand(1, device="cpu").item(),
    "python": random.random,
    "numpy": lambda: np.random.random(),  # noqa: NPY002  the stream that users draw from
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_every_shared_generator_is_seeded(draw):
    """A name gives the same numbers each time, and another name others."""
    drawn = []
    for name in ("one", "other", "one"):
        seed_generators(name)
        drawn.append(draw())
    assert drawn[0] == drawn[2] != drawn[1]


@pytest.mark.parametrize("when", ["setup", "call", "teardown"])
def test_a_failure_is_a_find_whenever_it_comes(when, capsys):
    """What a fixture of a test raises with a seed is printed with it, as what the test raises is."""
    finds = Finds(5)
    finds.pytest_runtest_logreport(
        SimpleNamespace(when=when, failed=True, nodeid=f"{FILE}::test_it", longreprtext="why", longrepr="why",
                        user_properties=[("seed", 7)])
    )  # fmt: skip
    assert finds.failures == {f"{FILE}::test_it": {7: "why"}}
    assert f"LUCID_TEST_SEED=7 python -m pytest {FILE}::test_it  # why" in capsys.readouterr().out


def test_what_cannot_be_collected_is_said(capsys):
    """A file that cannot be imported is printed with its error, and is no find of a seed."""
    finds = Finds(5)
    finds.pytest_collectreport(SimpleNamespace(failed=True, nodeid=FILE, longreprtext="no module"))
    finds.print_all()
    assert f"{FILE}: no module" in capsys.readouterr().out
    assert finds.broken
    assert not finds.failures
