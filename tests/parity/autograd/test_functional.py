"""`autograd.functional` gives PyTorch's values, shapes, structures and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lucid
from tests.parity.pieces import LIBRARIES, seeded


def one(x):
    return (x * x).sin() * x.sum()


def two(x, y):
    return x.exp() * y.sum(), (x * x).sum() * y, x[:2]


def linear(x, y):
    return x * 3.0 + y.sum()


def unused(x, y):
    return x * x


def scalar(x):
    return (x * x).sin().sum() * x.exp().prod()


def scalar_of_two(x, y):
    return (x.exp() * y.sum()).sum() + (y * y * y).sum() * x[0]


def scalar_linear(x, y):
    return (x * 2.0).sum() + (y * y).sum()


def compare(theirs, ours):
    """Check nested tuples of tensors."""
    assert isinstance(theirs, tuple) == isinstance(ours, tuple)
    if isinstance(theirs, tuple):
        assert len(theirs) == len(ours)
        for a, b in zip(theirs, ours, strict=True):
            compare(a, b)
    else:
        assert tuple(theirs.shape) == tuple(ours.shape)
        assert theirs.requires_grad == ours.requires_grad
        np.testing.assert_allclose(ours.numpy(force=True), theirs.numpy(force=True), rtol=1e-11, atol=1e-13)


def inputs(lib, func, requires_grad=False):
    """Return arguments for a function: one tensor, or a tuple of two of different shapes."""
    x = seeded(lib, 3, requires_grad=requires_grad)
    if func in {one, scalar}:
        return x
    return x, seeded(lib, 2, 2, seed=1, requires_grad=requires_grad)


def outputs_like(lib, func):
    """Return random tensors of the shapes of a function's outputs."""
    given = inputs(lib, func)
    results = func(*given) if isinstance(given, tuple) else func(given)
    if isinstance(results, tuple):
        return tuple(seeded(lib, *r.shape, seed=5 + i) for i, r in enumerate(results))
    return seeded(lib, *results.shape, seed=5)


def inputs_like(lib, func):
    """Return random tensors of the shapes of a function's inputs."""
    return (seeded(lib, 3, seed=7), seeded(lib, 2, 2, seed=8)) if func not in {one, scalar} else seeded(lib, 3, seed=7)


def results(name, func, **arguments):
    """Return what a functional gives in the two libraries, PyTorch first."""
    given = []
    for lib in LIBRARIES.values():
        call = getattr(lib.autograd.functional, name)
        at = inputs(lib, func, requires_grad=arguments.get("create_graph", False))
        if name == "vjp":
            given.append(call(func, at, outputs_like(lib, func), **arguments))
        elif name in {"jvp", "vhp", "hvp"}:
            given.append(call(func, at, inputs_like(lib, func), **arguments))
        else:
            given.append(call(func, at, **arguments))
    return given


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("func", [one, two, linear, unused], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian"])
def test_first_order(name, func, create_graph):
    """Products with the Jacobian, and the Jacobian, with and without a graph."""
    compare(*results(name, func, create_graph=create_graph))


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("func", [scalar, scalar_of_two, scalar_linear], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", ["vhp", "hvp", "hessian"])
def test_second_order(name, func, create_graph):
    """Products with the Hessian, and the Hessian, with and without a graph."""
    compare(*results(name, func, create_graph=create_graph))


@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian", "vhp", "hvp", "hessian"])
def test_results_can_be_differentiated(name):
    """Under create_graph a further derivative, by the original inputs, agrees."""
    func = scalar_of_two if name in {"vhp", "hvp", "hessian"} else two
    slopes = []
    for lib in LIBRARIES.values():
        at = inputs(lib, func, requires_grad=True)
        call = getattr(lib.autograd.functional, name)
        if name == "vjp":
            given = call(func, at, outputs_like(lib, func), create_graph=True)[1]
        elif name in {"jvp", "vhp", "hvp"}:
            given = call(func, at, inputs_like(lib, func), create_graph=True)[1]
        else:
            given = tuple(entry for row in call(func, at, create_graph=True) for entry in row)
        total = sum((entry * entry).sum() for entry in given)
        slopes.append(lib.autograd.grad(total, at))
    compare(*slopes)


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
def test_the_vector_may_be_left_out(name):
    """For one element it is 1; for more, or several, it is missing."""

    def func(x):
        return (x * x * x).sum()

    given = [getattr(lib.autograd.functional, name)(func, seeded(lib, 1)) for lib in LIBRARIES.values()]
    compare(*given)
    for lib in LIBRARIES.values():
        call = getattr(lib.autograd.functional, name)
        with pytest.raises(RuntimeError):
            call(one, seeded(lib, 3))
        with pytest.raises(RuntimeError):
            call(unused if name in {"vhp", "hvp", "jvp"} else two, inputs(lib, two))


def strict_cases(lib):
    """Yield calls of which strict=True refuses each, in PyTorch too."""
    f = lib.autograd.functional
    x, pair = inputs(lib, one), inputs(lib, two)
    yield lambda: f.vjp(unused, pair, outputs_like(lib, unused), strict=True)
    yield lambda: f.vjp(lambda x: x.detach(), x, seeded(lib, 3), strict=True)
    yield lambda: f.jvp(unused, pair, inputs_like(lib, unused), strict=True)
    yield lambda: f.jacobian(unused, pair, strict=True)
    yield lambda: f.jacobian(lambda x: x * 2.0, x, strict=True, create_graph=True)
    yield lambda: f.hessian(lambda x: (x * 2.0).sum(), x, strict=True)
    yield lambda: f.vhp(scalar_linear, pair, inputs_like(lib, scalar_linear), strict=True)
    yield lambda: f.hvp(scalar_linear, pair, inputs_like(lib, scalar_linear), strict=True)


def bad_cases(lib):
    """Yield calls that are refused, with what PyTorch raises."""
    f = lib.autograd.functional
    x = inputs(lib, one)
    yield lambda: f.vjp(one, 3.0, x), TypeError
    yield lambda: f.vjp(one, [x], x), TypeError
    yield lambda: f.jacobian(lambda x: 3.0, x), TypeError
    yield lambda: f.jacobian(lambda x: [x], x), TypeError
    yield lambda: f.vjp(one, x, seeded(lib, 2)), RuntimeError
    yield lambda: f.vjp(two, inputs(lib, two), seeded(lib, 3)), RuntimeError
    yield lambda: f.hvp(one, x, x), RuntimeError
    yield lambda: f.hessian(one, x), RuntimeError
    yield lambda: f.hessian(lambda x: (x.sum(), x.sum()), x), RuntimeError


def test_strict():
    """An output or derivative that does not depend on an input is refused by both."""
    theirs, ours = list(strict_cases(torch)), list(strict_cases(lucid))
    for call in theirs + ours:
        with pytest.raises(RuntimeError):
            call()
    assert len(ours) == len(theirs) == 8


def test_bad_input():
    """Wrong types, shapes and numbers raise the same builtin."""
    for (theirs, kind), (ours, _) in zip(bad_cases(torch), bad_cases(lucid), strict=True):
        with pytest.raises(kind):
            theirs()
        with pytest.raises(kind):
            ours()


def test_forward_mode_is_refused():
    """The error names the argument and says how to get the same matrix."""
    x = inputs(lucid, one)
    for call, word in (
        (lambda: lucid.autograd.functional.jacobian(one, x, strategy="forward-mode"), "strategy"),
        (lambda: lucid.autograd.functional.jacobian(one, x, strategy="forward-mode", vectorize=True), "strategy"),
        (
            lambda: lucid.autograd.functional.hessian(scalar, x, outer_jacobian_strategy="forward-mode"),
            "outer_jacobian_strategy",
        ),
    ):
        with pytest.raises(NotImplementedError, match=f"'forward-mode'.* leave {word} out"):
            call()


@pytest.mark.parametrize(("name", "func"), [("jacobian", one), ("jacobian", two), ("hessian", scalar_of_two)])
def test_vectorize_gives_the_same(name, func):
    """`vectorize=True` is taken as in PyTorch: it asks for speed, and the results are those without it."""
    compare(*results(name, func, vectorize=True))
    plain, vectorized = (results(name, func, create_graph=True, vectorize=on)[1] for on in (False, True))
    compare(plain, vectorized)


def test_empty_outputs_and_no_grad():
    """A Jacobian of nothing is empty (PyTorch's raises), and grad mode of the caller does not matter."""
    assert tuple(lucid.autograd.functional.jacobian(lambda x: x[:0], seeded(lucid, 3)).shape) == (0, 3)
    with lucid.no_grad(), torch.no_grad():
        compare(*results("jacobian", one))
        compare(*results("hvp", scalar))
