"""Libraries of loops: when they are loaded and compiled, and the arrays that their functions are called with."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.cpu import functions
from lucid.cpu.functions import BUILD, LOOK, Unit, address, dense

pytestmark = pytest.mark.cpu("addresses of the host")


@pytest.fixture
def built(monkeypatch):
    """Return whether each call of `Unit.build` was to compile; what is not compiled was not kept either."""
    calls = []

    def build(unit, *, make=True):
        calls.append(make)
        if make:
            unit.loaded = "library"
        return make

    monkeypatch.setattr(functions, "UNITS", {})
    monkeypatch.setattr(Unit, "build", build)
    monkeypatch.setattr(functions.sys, "platform", "linux")
    return calls


def test_a_library_is_looked_for_and_then_compiled(built):
    """Few elements do neither; those of all calls count, and each is done once."""
    unit = Unit("of_tests.cpp")
    assert unit.work(LOOK - 1) is None
    assert built == []
    assert unit.work(1) is None
    assert built == [False]
    assert unit.work(BUILD - LOOK - 1) is None
    assert built == [False]
    assert unit.work(1) == "library"
    assert unit.work(BUILD) == "library"
    assert built == [False, True]


def test_work_that_is_worth_it_at_once_compiles_at_once(built):
    """Nothing is looked for first."""
    assert Unit("of_tests.cpp").work(BUILD) == "library"
    assert built == [True]


def test_dense_arrays_are_no_copies():
    """In the order of C and aligned; any other array is copied to one that is."""
    x = np.arange(24.0).reshape(4, 6)
    shifted = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    shifted[...] = x
    assert dense(x) is x
    for other in (shifted, x.T, x[:, ::2], x[::-1], np.broadcast_to(x[0], x.shape)):
        with pytest.raises(ValueError, match="in the order of C, and aligned"):
            address(other)
        copy = dense(other)
        assert copy.flags.c_contiguous
        assert copy.flags.aligned
        assert address(copy) == copy.ctypes.data
        np.testing.assert_array_equal(copy, other)
