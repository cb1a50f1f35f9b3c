"""Errors: each is the builtin that a caller would catch."""

from __future__ import annotations

import pickle

import pytest

from lucid import errors


@pytest.mark.parametrize(
    ("name", "builtins"),
    [
        ("ArgumentError", (RuntimeError, TypeError)),
        ("ShapeError", (RuntimeError, ValueError)),
        ("DtypeError", (RuntimeError, TypeError)),
        ("DeviceError", (RuntimeError,)),
        ("CudaUnavailableError", (RuntimeError,)),
        ("OutOfMemoryError", (RuntimeError, MemoryError)),
        ("IndexOutOfRangeError", (IndexError,)),
        ("GraphError", (RuntimeError,)),
        ("InplaceError", (RuntimeError,)),
        ("NotDifferentiableError", (RuntimeError, NotImplementedError)),
        ("AnomalyError", (RuntimeError,)),
        ("HookError", (RuntimeError,)),
        ("HookTypeError", (TypeError,)),
        ("CheckpointError", (RuntimeError, ValueError)),
        ("StateDictError", (RuntimeError, ValueError, KeyError)),
    ],
)
def test_errors_are_the_builtins_that_callers_catch(name, builtins):
    """Code ported from PyTorch catches RuntimeError, Python code the builtin of the mistake, and both must work."""
    kind = getattr(errors, name)
    assert issubclass(kind, errors.LucidError)
    for builtin in builtins:
        assert issubclass(kind, builtin)
    error = kind("matmul: inner sizes differ")
    assert str(error) == "matmul: inner sizes differ"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert kind.__doc__


def test_every_error_is_listed():
    """``__all__`` holds exactly the error classes of the module."""
    classes = {n for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, errors.LucidError)}
    assert classes == set(errors.__all__)


def test_reports_of_several_lines_stay_readable():
    """A KeyError shows the repr of its message; a state dict report must show its lines as lines."""
    report = "Missing keys:\n  'linear.weight'\nUnexpected keys:\n  'fc.weight'"
    assert str(errors.StateDictError(report)) == report
    assert repr(str(KeyError(report))) != repr(report)
