"""Errors: each is the builtin that a caller would catch."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import pytest

import lucid
from lucid import errors, nn


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


# ---- warnings ----

LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "soft_margin_loss", "poisson_nll_loss")


def test_who_warns_counts_no_frames():
    """All warnings go through one function: how many frames lie between is different for each way into a function."""
    sources = {path: path.read_text(encoding="utf-8") for path in Path(errors.__file__).parent.rglob("*.py")}
    direct = [path.name for path, text in sources.items() if "warnings.warn(" in text or "stacklevel" in text]
    assert direct == ["errors.py"]


def test_warnings_are_about_the_line_that_led_to_them():
    """The frames of a check, a wrapper or a module's call are not where a warning comes from."""
    single = nn.Parameter(lucid.ones(1))
    rows, columns = lucid.ones(3), lucid.ones(3, 1)
    for call in (
        lambda: nn.init.kaiming_uniform_(lucid.zeros(0, 2)),
        lambda: nn.init.kaiming_normal_(lucid.zeros(0, 2)),
        lambda: lucid.autograd.gradcheck(lambda x: x * 2, single, atol=1.0, eps=1e-2),
        lambda: lucid.utils.checkpoint.checkpoint(lambda x: x, single),
        lambda: lucid.utils.checkpoint.checkpoint(lambda x: x, lucid.ones(1), use_reentrant=True),
        lambda: lucid.utils.checkpoint.checkpoint_sequential([nn.ReLU()], 1, single),
        lambda: lucid.autograd.detect_anomaly(),
        lambda: nn.functional.softmax(rows),
        lambda: nn.MSELoss()(rows, columns),
        lambda: nn.Sequential(nn.Softmax())(rows),
        *[lambda name=name: getattr(nn.functional, name)(rows, columns) for name in LOSSES],
    ):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        assert seen
        assert {warning.filename for warning in seen} == {__file__}
