"""Anomaly detection: errors, notes and warnings name the forward call of the node that was running."""

from __future__ import annotations

import gc
import traceback
import warnings

import numpy as np
import pytest

import lucid
from lucid.autograd import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from tests.pieces import function_of, leaf, no_collections, raising


@pytest.fixture
def detecting():
    """Hold anomaly detection during the test, which PyTorch's function switches on without a warning."""
    with set_detect_anomaly(True):
        yield
    assert not is_anomaly_enabled()


def messages(run, expected=None):
    """Return the warnings that `run()` gives, after the exception of type `expected` that it raises."""
    given = []
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        if expected is None:
            run()
        else:
            with pytest.raises(expected) as raised:
                run()
            given.append(raised.value)
    assert all(warning.category is UserWarning for warning in caught)
    return [*given, *(str(warning.message) for warning in caught)]


# Raises in backward.
Bad = function_of(lambda ctx, x: x * 1, raising(KeyError("inside")), name="Bad")


def test_switching_it_on_warns() -> None:
    """The context manager warns that it makes everything slower, the function does not."""

    def enter():
        with detect_anomaly(), detect_anomaly(check_nan=False):
            assert is_anomaly_enabled()
            assert lucid.is_anomaly_enabled()
        assert not is_anomaly_enabled()

    first, second = messages(enter)
    assert first == second
    assert "slower" in first
    with set_detect_anomaly(True):
        assert is_anomaly_enabled()
    assert not is_anomaly_enabled()


@pytest.mark.usefixtures("detecting")
def test_nan_names_the_forward_line() -> None:
    """NaN in backward raises and warns, each naming the node and the line of the forward op that made it."""
    x = leaf(0.0)
    y = x / x  # the culprit
    z = y * 2
    error, words = messages(z.backward, RuntimeError)
    assert "nan" in str(error)
    assert "Error detected in DivBackward0" in words
    for text in (str(error), words):
        assert "DivBackward0" in text
        assert "y = x / x  # the culprit" in text
        assert "test_anomaly.py" in text
        assert "z = y * 2" not in text
    assert x.grad is None
    with set_detect_anomaly(False):
        (x / x).backward()
    assert np.isnan(x.grad.item())


@pytest.mark.usefixtures("detecting")
@pytest.mark.parametrize("dtype", [lucid.float16, lucid.bfloat16, lucid.float32, lucid.complex64, lucid.complex128])
def test_nan_of_any_dtype_is_seen(dtype) -> None:
    """A gradient that is no number is one in complex numbers and half types too, and without `check_nan` passes."""
    for check_nan in (True, False):
        x = lucid.zeros(1, dtype=dtype, requires_grad=True)
        y = (x / x).real.sum() if dtype.is_complex else (x / x).sum()
        with set_detect_anomaly(True, check_nan):
            if check_nan:
                messages(y.backward, RuntimeError)
            else:
                assert messages(y.backward) == []
                assert x.grad.isnan().all()


@pytest.mark.usefixtures("detecting")
def test_a_backward_that_raises_is_explained() -> None:
    """Another exception keeps its type and gets the forward line as a note, and a warning says the same."""
    x = leaf(1.0)
    y = Bad.apply(x)  # made here
    error, words = messages(y.backward, KeyError)
    assert "Error detected in BadBackward" in words
    for text in (*error.__notes__, words):
        assert "made here" in text


@pytest.mark.usefixtures("detecting")
@pytest.mark.parametrize("kind", ["tensor hook", "prehook", "posthook", "leaf hook"])
def test_a_hook_that_raises_is_explained(kind) -> None:
    """An error in a hook belongs to the node on which the hook hangs."""
    x = leaf(1.0)
    y = x * 3
    fail = raising(KeyError("stop"))
    if kind == "leaf hook":
        x.register_hook(fail)
    else:
        {"tensor hook": y, "prehook": y.grad_fn, "posthook": y.grad_fn}[kind].__getattribute__(
            "register_prehook" if kind == "prehook" else "register_hook"
        )(fail)
    _, words = messages(y.backward, KeyError)
    assert ("AccumulateGrad" if kind == "leaf hook" else "MulBackward0") in words
    assert ("y = x * 3" in words) == (kind != "leaf hook")


def test_a_forward_outside_of_it_is_said_to_be_unknown() -> None:
    """Where only backward ran under detection the warning says what is missing."""
    x = leaf(0.0)
    y = x / x
    with set_detect_anomaly(True):
        _, words = messages(y.backward, RuntimeError)
    assert "forward call is not known" in words


@pytest.mark.usefixtures("detecting")
def test_a_node_that_a_backward_recorded_names_that_too() -> None:
    """In a double backward one warning names the line of the first backward, the next that of the forward op."""
    x = leaf(0.0)
    y = x**1.5  # the forward line
    (slope,) = lucid.autograd.grad(y, x, create_graph=True)  # the first backward
    error, first, second = messages(lambda: lucid.autograd.grad(slope * 0, x), RuntimeError)
    assert "the first backward" in first
    assert "the forward line" in second
    assert "recorded by the backward of PowBackward0" in second
    assert "the first backward" in str(error)
    assert "the forward line" in error.__notes__[0]
    node = slope.grad_fn
    assert node.metadata["parent_"] is y.grad_fn
    assert "parent_" not in y.grad_fn.metadata
    assert any("the first backward" in line for line in node.metadata["traceback_"])


@pytest.mark.usefixtures("detecting")
def test_a_call_stack_is_lines_of_text() -> None:
    """It is what `traceback` gives of the same frames, of a recursion too, whose repetitions are counted."""

    def deep(count: int) -> tuple[lucid.Tensor, list[str]]:
        if count:
            return deep(count - 1)
        return leaf(2.0) * 3, traceback.format_stack()

    y, expected = deep(20)
    lines = y.grad_fn.metadata["traceback_"]
    assert len(lines) == len(list(lines)) == len(expected)
    assert lines[-2].startswith("  [Previous line repeated ")
    assert lines[-1].splitlines()[1] == expected[-1].splitlines()[1]


@pytest.mark.usefixtures("detecting")
def test_passes_inside_of_passes_each_warn() -> None:
    """An error inside a hook's own backward is explained by the inner pass, then by the outer one."""
    x = leaf(1.0)
    y = x * 3

    def hook(grad):
        with lucid.enable_grad():
            Bad.apply(x).backward()

    y.register_hook(hook)
    _, *words = messages(y.backward, KeyError)
    assert [text.partition(";")[0] for text in words] == [
        "Error detected in BadBackward",
        "BadBackward was recorded by the backward of MulBackward0",
        "Error detected in MulBackward0",
    ]


@pytest.mark.usefixtures("detecting")
def test_it_keeps_no_graph_alive() -> None:
    """The notes of a double backward form no cycle: what a node remembers is older than itself."""
    gc.collect()
    with no_collections():
        x = leaf(2.0)
        (slope,) = lucid.autograd.grad((x**3).sum(), x, create_graph=True)
        kept = slope.grad_fn.metadata

        class Mark:
            """Says when the node's metadata go."""

            def __del__(self):
                gone.append(True)

        gone: list[bool] = []
        kept["mark"] = Mark()
        del slope, kept
        assert gone == [True]


def test_the_warning_is_the_callers() -> None:
    """That it is on is said of the line that switched it on, not of one of lucid's."""
    with pytest.warns(UserWarning, match="anomaly detection is on") as found:
        lucid.autograd.detect_anomaly()
    assert found[0].filename == __file__


@pytest.mark.usefixtures("detecting")
def test_a_changed_view_names_the_forward_line() -> None:
    """The node of a base whose view was changed in place knows its forward call as any other."""
    x = leaf(1.0, 2.0)
    y = x * 1
    y[0:1].mul_(3.0)  # the change
    error, words = messages(lambda: y.backward(lucid.tensor([1.0, float("nan")], dtype=lucid.float64)), RuntimeError)
    assert "'CopySlices' returned nan" in str(error)
    assert "# the change" in words


def test_it_may_look_for_no_nan() -> None:
    """Without `check_nan` it is on, and a NaN passes."""
    x = lucid.tensor([-1.0], requires_grad=True)
    with warnings.catch_warnings(action="ignore"), lucid.autograd.set_detect_anomaly(True, check_nan=False):
        assert is_anomaly_enabled()
        lucid.sqrt(x).sum().backward()
    assert np.isnan(x.grad.item())
