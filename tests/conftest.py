"""What every test has: random numbers that can be drawn again, and a say in whether a GPU may be missing."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from _pytest.runner import runtestprotocol

import lucid
from lucid.base import gpu
from tests import contract
from tests.device import DEVICE
from tests.seeds.drawing import VARIABLE, numbers_of, seed_examples, seed_generators

TESTS = Path(__file__).parent
# Folders of tests of sources, processes and scripts, which run on the CPU alone: but for those marked `gpu`, and for
# the files that read `DEVICE`.
HOST = {"benchmarks", "collectives", "compat", "examples", "laws", "planted", "seeds", "utils"}
REQUIRES_GPU = os.environ.get("LUCID_REQUIRE_GPU") == "1"

# Every run is the same run, whatever the machine, and however busy it is; `python -m tests.seeds` draws others.
os.environ.setdefault(VARIABLE, "0")
hypothesis.settings.register_profile("same", derandomize=True, database=None, deadline=None, print_blob=True)
hypothesis.settings.load_profile("same")


def pytest_configure(config):
    """Let workers of pytest-xdist, and what tests start, iterate over sets of strings in one order."""
    os.environ.setdefault("PYTHONHASHSEED", "0")
    config.files_before = files_here()


def files_here():
    """Return what lies where pytest was started; caches of tools are not looked at."""
    return {path.name for path in Path.cwd().iterdir() if not path.name.startswith((".", "__"))}


def pytest_report_header(config):
    """Say how to repeat the run."""
    return f"{VARIABLE}={os.environ[VARIABLE]} LUCID_TEST_DEVICE={DEVICE}"


@pytest.fixture
def rng(request):
    """Random numbers of this test: from the seed of the run and the test's name, so that they repeat when run alone."""
    return numbers_of(request.node.nodeid)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    """Let what several tests share be drawn from its own name, whichever of them comes first."""
    if fixturedef.scope != "function" and fixturedef.baseid:
        seed_generators(f"{fixturedef.baseid}::{fixturedef.argname}")
    return (yield)


@pytest.fixture(autouse=True)
def numbers_of_its_own(request):
    """Let each test draw the same numbers from generators that all share, whichever tests ran before it."""
    seed_generators(request.node.nodeid)
    seed_examples(getattr(request.node, "obj", None), request.node.nodeid)


def pytest_runtest_protocol(item, nextitem):
    """Let a worker of pytest-xdist send one report of a test instead of five messages, which take longer than many do.

    Tables of durations and of JUnit are made of the others too.
    """
    leave_out_of_collections(item.config)
    asked = item.config.option
    if not hasattr(item.config, "workerinput") or asked.xmlpath or asked.durations is not None:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Print in the report of a failure what draws its random numbers again."""
    report = yield
    if report.failed:
        words = f"{VARIABLE}={os.environ[VARIABLE]} pytest '{item.nodeid}' draws them again"
        report.sections.append(("random numbers", words))
    return report


def pytest_runtest_setup(item):
    """Skip tests marked `gpu` where there is no CUDA device; under LUCID_REQUIRE_GPU=1 they fail instead.

    Those marked `cpu` are about NumPy arrays, and skipped where tensors are made on another device.
    """
    if DEVICE != "cpu" and (mark := item.get_closest_marker("cpu")):
        pytest.skip(f"only on the CPU: {mark.args[0]}")
    if item.get_closest_marker("gpu") is None or lucid.cuda.is_available():
        return
    if REQUIRES_GPU:
        pytest.fail("LUCID_REQUIRE_GPU=1, and lucid.cuda.is_available() is False", pytrace=False)
    pytest.skip("needs a CUDA device, as others of the file: lucid.cuda.is_available() is False")


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """Fail a test that leaves a mode, a default or what NumPy warns of changed, rather than a later one."""
    lucid.set_default_device(DEVICE)
    device, warns = lucid.get_default_device(), np.geterr()
    yield
    left = lucid.is_grad_enabled(), lucid.get_default_dtype(), lucid.get_default_device(), np.geterr()
    casting = [kind for kind in ("cpu", "cuda") if lucid.is_autocast_enabled(kind)]
    for kind in casting:
        lucid.set_autocast_enabled(kind, False)
    lucid.set_grad_enabled(True)
    lucid.set_default_dtype(lucid.float32)
    lucid.set_default_device("cpu")
    np.seterr(**warns)
    assert (*left, casting) == (True, lucid.float32, device, warns, [])


@pytest.fixture
def two_devices():
    """Skip a test where there are fewer CUDA devices than two."""
    if lucid.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")


@pytest.fixture
def indices_are_read():
    """Switch the debug mode of CUDA devices on: the values of indices are looked at, as they are on the CPU."""
    before = lucid.cuda.is_debug()
    lucid.cuda.set_debug(True)
    yield
    lucid.cuda.set_debug(before)


def says_the_same_anywhere(item):
    """Tell whether a test is of one of these folders and asks for no device: by `gpu`, or its file by `DEVICE`."""
    where = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
    asks = item.get_closest_marker("gpu") or hasattr(getattr(item, "module", None), "DEVICE")
    return where in HOST and not asks


def pytest_collection_modifyitems(config, items):
    """Note on each test which lines of the hooks contract it proves, where reports carry it to the table.

    Of those that need a CUDA device, and of those that are about NumPy arrays, one of a file stands for all where they
    would be skipped: twenty thousand take a minute.
    """
    for item in items:
        item.user_properties += [("contract", mark.args[0]) for mark in item.iter_markers("contract")]
    if DEVICE == "cpu" and (REQUIRES_GPU or lucid.cuda.is_available()):
        return
    skipped = "gpu" if DEVICE == "cpu" else "cpu"
    first = {item.path: item for item in reversed(items) if item.get_closest_marker(skipped)}
    left_out = [
        item
        for item in items
        if (DEVICE != "cpu" and says_the_same_anywhere(item))
        or (item.get_closest_marker(skipped) and first[item.path] is not item)
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        left = set(left_out)
        items[:] = [item for item in items if item not in left]


def pytest_collection_finish(session):
    """Leave what was collected, which stays, out of later garbage collections: of 30,000 tests one takes a second."""
    session.config.tests_run = 0
    leave_out_of_collections(session.config)


def leave_out_of_collections(config):
    """Leave what pytest keeps of tests out of later garbage collections, which tests of memory do by the dozen."""
    if config.tests_run % 200 == 0:
        gc.collect()
        gc.freeze()
    config.tests_run += 1


def pytest_terminal_summary(terminalreporter, config):
    """Print which tests prove which line of the hooks contract, where tests were chosen by that mark."""
    if "contract" in config.option.markexpr:
        terminalreporter.section("the hooks contract and its tests")
        for row in contract.table(terminalreporter):
            terminalreporter.write_line(row)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    """Fail a run that leaves files where it was started; note launched kernels, each worker in a file of its own."""
    if left := files_here() - session.config.files_before:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\ntests have left {sorted(left)} in {Path.cwd()}: write into tmp_path")
    folder = os.environ.get("LUCID_KERNEL_LOG")
    if folder and lucid.cuda.is_available():
        from tests.kernels.table import launched_names

        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, f"{os.getpid()}.txt").write_text("".join(f"{name}\n" for name in launched_names()))


@pytest.fixture(autouse=True)
def nothing_under_way():
    """Let all work of a test end with it: what it frees without waiting is given to another test, on any stream."""
    yield
    if gpu.is_simulated():
        for index in range(gpu.device_count()):
            with gpu.use_device(index):
                gpu.cupy().cuda.runtime.deviceSynchronize()
