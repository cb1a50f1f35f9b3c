"""What tests of kernels share as fixtures."""

from __future__ import annotations

import pytest

import lucid
from lucid.cuda.launch import kernels


def pytest_terminal_summary(terminalreporter):
    """Print of how many units it was known what NVIDIA's compiler says of them; reports carry it from all workers."""
    known = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        for name, value in report.user_properties
        if name == "known"
    ]
    if known:
        hits = sum(known)
        terminalreporter.write_line(f"what NVRTC says of {len(known)} units: {hits} hits, {len(known) - hits} misses")


@pytest.fixture(params=["fast", "in order"])
def way(request):
    """Run a test with sums by atomics and in a fixed order."""
    lucid.use_deterministic_algorithms(request.param == "in order")
    yield request.param
    lucid.use_deterministic_algorithms(False)


@pytest.fixture
def launched(monkeypatch):
    """Names of the kernels that were launched."""
    seen, names = [], {}
    driver = kernels.driver()
    launch = driver.launch

    def noted(handle, *arguments):
        if handle not in names:
            names.update(handle_names())
        seen.append(names[handle])
        return launch(handle, *arguments)

    monkeypatch.setattr(driver, "launch", noted)
    return seen


def handle_names():
    """Return the names of the kernels that are loaded, by their handles."""
    return {
        handle: launcher.name
        for kernel in kernels.KERNELS
        for launcher in kernel._launchers.values()
        for handle in launcher._handles.values()
    }
