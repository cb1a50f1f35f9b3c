"""Anomaly detection warns where PyTorch's does: how often, of which kind, naming node and forward line."""

from __future__ import annotations

import warnings

import pytest

from tests.parity.pieces import LIBRARIES
from tests.pieces import function_of, raising


def enter(lib, x):
    with lib.autograd.detect_anomaly():
        pass


def nan(lib, x):
    y = x / x  # the forward line
    (y * 2).sum().backward()


def nan_without_forward(lib, x):
    with lib.autograd.set_detect_anomaly(False):
        y = x / x
    y.sum().backward()


def raising_function(lib, x):
    Bad = function_of(lambda ctx, x: x * 2, raising(KeyError("stop")), lib)

    Bad.apply(x).sum().backward()  # the forward line


def raising_hook(lib, x):
    y = x * 2  # the forward line

    y.register_hook(raising(KeyError("stop")))
    y.sum().backward()


def second_derivative(lib, x):
    y = (x**1.5).sum()  # the forward line
    (slope,) = lib.autograd.grad(y, x, create_graph=True)
    lib.autograd.grad((slope * 0).sum(), x)


def a_pass_in_a_hook(lib, x):
    y = x * 2

    def hook(grad):
        with lib.enable_grad():
            raising_hook(lib, x)

    y.register_hook(hook)
    y.sum().backward()


def nothing_wrong(lib, x):
    (x * 2).sum().backward()


@pytest.mark.parametrize(
    "program",
    [
        enter,
        nan,
        nan_without_forward,
        raising_function,
        raising_hook,
        second_derivative,
        a_pass_in_a_hook,
        nothing_wrong,
    ],
)
def test_warnings(program):
    """Type of the error, kinds and order of the warnings, and which of them show the forward line, are PyTorch's."""
    found = []
    for lib in LIBRARIES.values():
        x = lib.tensor([0.0, 0.0], dtype=lib.float64, requires_grad=True)
        error = None
        with warnings.catch_warnings(record=True) as caught, lib.autograd.set_detect_anomaly(True):
            warnings.simplefilter("always", UserWarning)
            try:
                program(lib, x)
            except (KeyError, RuntimeError) as raised:
                error = KeyError if isinstance(raised, KeyError) else RuntimeError
        told = [
            (w.category, "Error detected in" in str(w.message), "the forward line" in str(w.message)) for w in caught
        ]
        found.append((error, told))
    theirs, ours = found
    assert theirs == ours
