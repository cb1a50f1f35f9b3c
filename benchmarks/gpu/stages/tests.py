"""The tests that need a device, and those of ops, layers and optimizers with their tensors on it.

Each process collects its share of the files and writes a fact for each test, so that one that loses its context costs
one test. What a test skips is counted by its reason, and is no failure: simulated devices, a second device.
"""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.gpu import device
from benchmarks.gpu.facts import Facts
from benchmarks.gpu.rows import LOST, MARGIN, Group, Stage

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from benchmarks.gpu.rows import Scope, Setting

ROOT = Path(__file__).resolve().parents[3]
MOST_PROCESSES = 6  # of each group
QUIET = (
    "-q", "--no-header", "--tb=short", "-W", "default", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly",
)  # fmt: skip
MARKED, ON_CUDA = "marked gpu", "tensors on cuda"
# What needs the simulated device, a compiler or two minutes to be collected is left out.
SELECTED = {
    MARKED: (
        "-m", "gpu", "tests/kernels", "tests/cuda", "tests/graphs", "tests/optim/base", "tests/amp",
        "--ignore=tests/kernels/test_bad_input.py", "--ignore=tests/kernels/test_huge.py",
        "--ignore=tests/kernels/test_nvrtc.py", "--ignore=tests/cuda/simulator", "--ignore=tests/cuda/source",
    ),
    ON_CUDA: (
        "-k", "not documented and not docstring", "tests/ops", "tests/nn", "tests/optim", "tests/autograd",
        "tests/tensor",
    ),
}  # fmt: skip
REHEARSED = {MARKED: ("-m", "gpu", "tests/cuda/test_cuda.py"), ON_CUDA: ("tests/tensor/test_layout.py",)}
SHARED = "tests/ops/test_samples.py"  # half of all tests: each process takes some of it


def part_of(name: str, parts: int) -> int:
    return zlib.crc32(name.encode()) % parts


class Reporter:
    """A plugin of pytest that takes a process's share, and writes what comes of each test."""

    def __init__(self, scope: Scope, facts: Facts) -> None:
        self.scope, self.facts = scope, facts
        self.known = {name for name, fact in facts.rows().items() if not fact.get("stopped")}

    def row(self, nodeid: str) -> str:
        return f"{self.scope.group}: {nodeid}"

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave other processes their files."""
        if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
            return None
        name = collection_path.relative_to(ROOT).as_posix() if collection_path.is_relative_to(ROOT) else ""
        alone = self.scope.parts == 1 or name == SHARED or self.scope.rows
        return None if alone or part_of(name, self.scope.parts) == self.scope.part else True

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Keep the tests of this process that have no fact yet, and take one of each file in turn.

        Time that ends leaves no file out then.
        """
        shared = [i for i in items if i.nodeid.startswith(SHARED) or self.scope.rows]
        others = {i for i in shared if part_of(i.nodeid, self.scope.parts) != self.scope.part}
        mine = self.scope.chosen([item for item in items if item not in others])
        kept = [item for item in mine if self.row(item.nodeid) not in self.known]
        config.hook.pytest_deselected(items=list({*items} - {*kept}))
        seen: Counter[Path] = Counter()
        turn: dict[Any, int] = {}
        for item in kept:
            turn[item] = seen[item.path]
            seen[item.path] += 1
        items[:] = sorted(kept, key=turn.__getitem__)
        self.left = len(kept)

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> None:
        """Note the test, or stop where time is over."""
        if time.time() > self.scope.until - MARGIN:
            self.facts(group=self.scope.group, part=self.scope.part, left=self.left)
            pytest.exit("its time is over", returncode=0)
        self.scope.at(self.row(item.nodeid), self.left)
        self.left -= 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, Any]:
        """Write what came of a test; end the process if it has lost the context."""
        report = yield
        row = self.row(item.nodeid)
        if report.failed:
            how = device.lost(call.excinfo.value)
            self.facts(
                row=row,
                ok=False,
                when=report.when,
                error=str(report.longrepr)[-1500:],
                **({"lost": how} if how else {}),
            )
            if how:
                os._exit(LOST)
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self.facts(row=row, ok=None, skipped=reason.removeprefix("Skipped: "))
        elif report.when == "call":
            self.facts(row=row, ok=True)
        return report

    def pytest_collectreport(self, report: Any) -> None:
        """Write what cannot be collected."""
        if report.failed:
            self.facts(row=self.row(report.nodeid), ok=False, error=str(report.longrepr)[-1500:])


def work(scope: Scope) -> None:
    """Run this process's share of a group."""
    selected = (REHEARSED if scope.rows else SELECTED)[scope.group]
    reporter = Reporter(scope, Facts(Path(scope.folder), scope.stage))
    pytest.main([*QUIET, "--rootdir", str(ROOT), *selected], plugins=[reporter])


def groups(setting: Setting) -> Sequence[Group]:
    required = {"LUCID_REQUIRE_GPU": "1", "LUCID_TEST_SEED": "0", "CI": "1"}
    count = max(1, min(MOST_PROCESSES, setting.processors // 2))
    return [
        Group(MARKED, count, required),
        Group(ON_CUDA, count, {**required, "LUCID_TEST_DEVICE": "cuda"}),
    ]


STAGE = Stage(work, rehearsed=4, groups=groups)
