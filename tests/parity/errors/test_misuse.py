"""Misuse of autograd is caught under the builtin type that PyTorch raises: each row fails in both libraries."""

from __future__ import annotations

import pytest
import torch

import lucid
from tests.pieces import function_of


def leaf(lib):
    return lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)


def one(lib):
    return leaf(lib).sum()


def function(lib, returned):
    """Run a backward of the user's that returns what it may not."""
    Wrong = function_of(lambda ctx, x: x * 2, lambda ctx, grad: returned(grad), lib)

    Wrong.apply(leaf(lib)).sum().backward()


def functional(lib, name, **kwargs):
    getattr(lib.autograd.functional, name)(lambda x: (x * x).sum(), leaf(lib), **kwargs)


MISUSE = {
    "root is a number": (AssertionError, lambda lib: lib.autograd.backward([3])),
    "root is a string": (AssertionError, lambda lib: lib.autograd.backward("ab")),
    "root is None": (TypeError, lambda lib: lib.autograd.backward(None)),
    "inputs hold a number": (RuntimeError, lambda lib: lib.autograd.backward(one(lib), inputs=[3])),
    "grad by a string": (RuntimeError, lambda lib: lib.autograd.grad(one(lib), [leaf(lib), "a"])),
    "grad by None": (TypeError, lambda lib: lib.autograd.grad(one(lib), None)),
    "gradient is a number": (TypeError, lambda lib: lib.autograd.backward(leaf(lib) * 1, 3.0)),
    "materialize without unused": (
        ValueError,
        lambda lib: lib.autograd.grad(one(lib), leaf(lib), allow_unused=False, materialize_grads=True),
    ),
    "grad mode of a number": (TypeError, lambda lib: lib.set_grad_enabled(3)),
    "grad mode of a string": (TypeError, lambda lib: lib.set_grad_enabled("no")),
    "anomaly of a string": (TypeError, lambda lib: lib.autograd.set_detect_anomaly("no")),
    "threads of a string": (TypeError, lambda lib: lib.autograd.set_multithreading_enabled("no")),
    "requires_grad of a number": (RuntimeError, lambda lib: setattr(lib.ones(1), "requires_grad", 1)),
    "requires_grad_ of a string": (TypeError, lambda lib: lib.ones(1).requires_grad_("no")),
    "multi-grad hook without grad": (
        AssertionError,
        lambda lib: lib.autograd.graph.register_multi_grad_hook([lib.ones(1)], print),
    ),
    "multi-grad hook of no mode": (
        ValueError,
        lambda lib: lib.autograd.graph.register_multi_grad_hook([leaf(lib)], print, mode="some"),
    ),
    "version of a number": (RuntimeError, lambda lib: lib.autograd.graph.increment_version(3)),
    "version of numbers": (RuntimeError, lambda lib: lib.autograd.graph.increment_version([3])),
    "callback outside": (RuntimeError, lambda lib: lib.autograd.Variable._execution_engine.queue_callback(3)),
    "backward gives a list": (RuntimeError, lambda lib: function(lib, lambda grad: [grad])),
    "backward gives a number": (RuntimeError, lambda lib: function(lib, lambda grad: 3)),
    "backward gives too many": (RuntimeError, lambda lib: function(lib, lambda grad: (grad, grad))),
    "jacobian of no strategy": (AssertionError, lambda lib: functional(lib, "jacobian", strategy="sideways")),
    "hessian of no strategy": (
        AssertionError,
        lambda lib: functional(lib, "hessian", outer_jacobian_strategy="sideways"),
    ),
    "vjp of another shape": (RuntimeError, lambda lib: functional(lib, "vjp", v=lib.ones(3))),
    "a node of two gradients": (TypeError, lambda lib: (leaf(lib) * 2).grad_fn(leaf(lib), leaf(lib))),
    "is_inference of a number": (TypeError, lambda lib: lib.is_inference(3)),
    "gradcheck of overlapping memory": (
        RuntimeError,
        lambda lib: lib.autograd.gradcheck(lambda x: x * 2, lib.ones(1, dtype=lib.float64).expand(3).requires_grad_()),
    ),
}


@pytest.mark.parametrize("what", MISUSE)
def test_types_of_errors(what):
    """What `except` catches for PyTorch's error it catches for lucid's, and that is a LucidError."""
    kind, call = MISUSE[what]
    with pytest.raises(kind):
        call(torch)
    with pytest.raises(kind) as caught:
        call(lucid)
    assert isinstance(caught.value, lucid.errors.LucidError)
