"""Ranges on the timeline of a profiler."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import lucid
from lucid.autograd.profiler import record_function
from lucid.errors import ShapeError


@pytest.fixture
def ranges(monkeypatch):
    """Return what is pushed to and popped from a stand-in for the NVTX library."""
    events = []
    library = types.ModuleType("nvtx")
    library.push_range = lambda name, domain=None: events.append(("push", name, domain))
    library.pop_range = lambda domain=None: events.append(("pop", domain))
    monkeypatch.setitem(sys.modules, "nvtx", library)
    return events


def test_ranges_nest_and_end_with_an_exception(ranges):
    """A range begins and ends around the block, however that is left."""
    with pytest.raises(KeyError), record_function("outer"):
        with record_function("inner", "of 3"):
            pass
        raise KeyError
    pushed = [("push", "outer", "lucid"), ("push", "inner of 3", "lucid")]
    assert ranges == [*pushed, ("pop", "lucid"), ("pop", "lucid")]


def test_as_a_decorator(ranges):
    """Each call is a range; the function keeps its name, its result, and may call itself."""

    @record_function("factorial")
    def factorial(n):
        return n * factorial(n - 1) if n else 1

    assert factorial(3) == 6
    assert factorial.__name__ == "factorial"
    assert [event[0] for event in ranges] == ["push"] * 4 + ["pop"] * 4


def test_with_the_library_itself():
    """Without a profiler attached the ranges do nothing, and hooks may open them."""
    x = lucid.tensor([2.0], requires_grad=True)

    def hook(grad):
        with record_function("hook"):
            return grad * 3

    x.register_hook(hook)
    (x * x).backward()
    assert x.grad.tolist() == [12.0]


def test_importing_lucid_does_not_load_it():
    """The library is loaded when the first range begins."""
    code = "import lucid, sys; assert 'nvtx' not in sys.modules; from lucid.autograd.profiler import record_function\n"
    code += "with record_function('x'): pass\nassert 'nvtx' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ranges_of_all_ops(ranges):
    """Forward and backward, also of ops that record nothing or raise; an op ends its own range alone."""
    x = lucid.ones(2, requires_grad=True)
    with lucid.autograd.profiler.emit_nvtx():
        (x * 2).sum().backward()
        with lucid.no_grad(), pytest.raises(ShapeError):
            x + lucid.ones(3)
    names = ["mul", "sum", "SumBackward0", "MulBackward0", "AccumulateGrad", "add"]
    assert ranges == [event for name in names for event in (("push", name, "lucid"), ("pop", "lucid"))]
    ranges.clear()
    with lucid.autograd.profiler.emit_nvtx(record_shapes=True):
        x.exp().view(2, 1)
    assert [event[1] for event in ranges if event[0] == "push"] == ["exp [(2,)]", "view [(2,)]"]


def test_ranges_of_no_op(ranges):
    """Disabled it names nothing, and its block ends as any."""
    with lucid.autograd.profiler.emit_nvtx(enabled=False):
        lucid.ones(2).sum()
    lucid.ones(2).sum()
    assert not ranges
