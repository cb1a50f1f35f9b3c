"""What tests of kernels share as fixtures."""

from __future__ import annotations

import pytest

from lucid.cuda.launch import kernels


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
