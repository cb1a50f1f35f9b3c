"""Functions of cupy.fuse: what they compute is read by calling them once, and differentiated."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.errors import ArgumentError, GraphError, KernelError, NotDifferentiableError
from tests.autograd.kernels.making import drawn, is_right

pytestmark = pytest.mark.gpu
derivative = lucid.cuda.derivative


def fused(function, **settings):
    """Return a function of cupy.fuse."""
    return gpu.cupy().fuse(**settings)(function)


def test_what_is_found(rng):
    """Operators and ufuncs of CuPy's are read as expressions, whose gradients are found and shown."""
    cp = gpu.cupy()

    def curve(x, a):
        return (
            cp.where(x > 0.5, cp.exp(x) * a, x**2) + cp.maximum(a, 0.5) / 2 - cp.arctan2(x, a) + cp.sqrt(cp.square(x))
        )

    def line(x, a):
        return 2.0 * x + a

    f = derivative(fused(curve))
    x, a = drawn(rng, 4, 3), drawn(rng, 3)
    assert (f(x, a) - curve(x.detach().array, a.detach().array)).abs().max().item() < 1e-14
    assert is_right(f, x, a)
    f = derivative(fused(line))
    assert f.gradients == {"x": "g * 2.0", "a": "g"}
    assert is_right(lambda x: f(x, 3.0), x)


def test_every_ufunc(rng):
    """All ufuncs that are read give what differences give of CuPy's own values."""
    cp = gpu.cupy()
    unary = """exp expm1 exp2 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh
        sqrt cbrt square reciprocal absolute fabs negative floor ceil rint trunc"""
    binary = "add subtract multiply true_divide power maximum minimum fmax fmin arctan2 hypot"

    def everything(x, a):
        total = cp.arccosh(x + 1) + cp.where(cp.logical_and(x > 0.5, cp.logical_not(a >= 0.5)), x, a)
        for name in unary.split():
            total = total + getattr(cp, name)(x * 0.9)
        for name in binary.split():
            total = total + getattr(cp, name)(x, a)
        return total

    x, a = drawn(rng, 3), drawn(rng, 3)
    f = derivative(fused(everything))
    assert (f(x, a) - everything(x.detach().array, a.detach().array)).abs().max().item() < 1e-12
    assert is_right(f, x, a)


def test_several_outputs_and_given_expressions(rng):
    """Outputs are called out, or out0 and so on; expressions may be given instead."""

    def both(x, a):
        return x * a, x + a

    f = derivative(fused(both))
    assert f.gradients == {"x": "g_out0 * a + g_out1", "a": "g_out0 * x + g_out1"}
    x, a = drawn(rng, 2, 3), drawn(rng, 3)
    assert is_right(f, x, a)
    given = derivative(fused(both), x="g_out0 * a + g_out1")
    assert is_right(lambda x: given(x, a.detach()), x)
    with pytest.raises(NotDifferentiableError, match="both: the tensor given for a requires grad"):
        given(x, a)

    def one(x):
        return gpu.cupy().exp(x)

    assert is_right(derivative(fused(one), x="g * out"), x)
    assert is_right(derivative(fused(one), backward=lambda g, args: [g * args[1]]), x)


def test_a_python_number_beside_float32(rng):
    """A number that is given counts in the dtype of the arrays, as CuPy has it."""

    def scaled(x, a):
        return x * a

    x = drawn(rng, 3, dtype="float32")
    (grad,) = lucid.autograd.grad(derivative(fused(scaled))(x, 0.1).sum(), x)
    assert grad.tolist() == [lucid.tensor(0.1).item()] * 3


def test_numbers_of_any_kind(rng):
    """A number in a function is in its gradient what it is in Python, of NumPy's kinds and beyond C's integers too."""
    numbers = (True, np.False_, np.int8(-3), np.float32(0.5), 2**62, -(2**63), 10**20)

    def multiples(x):
        return tuple(x * number for number in numbers)

    f, x = derivative(fused(multiples)), drawn(rng, 3)
    for out, number in zip(f(x), numbers, strict=True):
        (grad,) = lucid.autograd.grad(out.sum(), x, retain_graph=True)
        assert grad.tolist() == [float(number)] * 3


NAN = float("nan")


@pytest.mark.parametrize(
    ("function", "m"),
    [
        (lambda cp, x, m: x * (m / 3), np.array([1, 2, 4], np.int32)),
        (lambda cp, x, m: x * (m / 3), np.array([1, 2, 4], np.uint16)),
        (lambda cp, x, m: x * (m.astype(np.float64) / 3), np.array([1, 2, 4])),
        (lambda cp, x, m: x * (1 / m), np.array([1, 2, 4])),
        (lambda cp, x, m: x * (np.int32(1) / m), np.array([1, 2, 4])),
        (lambda cp, x, m: x * ((m > 1) / 2), np.array([1.0, 2.0, 4.0])),
        (lambda cp, x, m: x * ((m + m) / 4), np.array([1, 2, 4])),
        (lambda cp, x, m: x * m**2 / m, np.array([1, 2, 4])),
        (lambda cp, x, m: x * m.astype(bool), np.array([2.0, 0.0, 5.0])),
        (lambda cp, x, m: x * m.astype(np.int64), np.array([2.5, -1.5, 5.0])),
        (lambda cp, x, m: x * cp.logical_and(m, True), np.array([2.0, 0.0, 5.0])),
        (lambda cp, x, m: x * (m + m), np.array([True, False, True])),
        (lambda cp, x, m: x * (m * m), np.array([100, 3, 4], np.int8)),
        (lambda cp, x, m: x * (m - 5), np.array([100, 3, 4], np.uint8)),
        (lambda cp, x, m: x * (m + np.int32(-7)), np.array([100, 3, 4], np.uint32)),
        (lambda cp, x, m: x * cp.fmax(m, 1.0), np.array([NAN, 3.0, 0.0])),
        (lambda cp, x, m: cp.fmax(x, m), np.array([NAN, 3.0, 0.0])),
        (lambda cp, x, m: cp.fmin(x, m), np.array([NAN, 3.0, 0.0])),
        (lambda cp, x, m: x * (m / 3), 2),
    ],
)
def test_integers_and_bools_count_as_in_numpy(rng, function, m):
    """The gradient is that of NumPy's function, of what is divided, added and cast in NumPy's types."""
    f = derivative(fused(lambda x, m: function(gpu.cupy(), x, m), kernel_name="typed"))
    x = drawn(rng, 3)
    operand = gpu.cupy().asarray(m) if isinstance(m, np.ndarray) else m
    (grad,) = lucid.autograd.grad(f(x, operand).sum(), x)
    at, step = x.detach().cpu().numpy(), 1e-6
    slope = (function(np, at + step, m) - function(np, at - step, m)) / (2 * step)
    np.testing.assert_allclose(grad.cpu().numpy(), slope, rtol=1e-7, atol=1e-8)


def test_what_is_not_read():
    """What a function does beyond ufuncs is said with the remedy; one that writes into an argument is no function."""
    cp = gpu.cupy()

    def total(x):
        return cp.sum(x)

    def branches(x):
        return x if x > 0 else -x

    def inplace(x, y):
        x += y
        return x

    def sets(x):
        x[:] = 1
        return x

    def unknown(x):
        return cp.isnan(x) * cp.sinc(x)

    for function in (total, branches, unknown):
        with pytest.raises(NotDifferentiableError, match=rf"{function.__name__}: its derivative is not found: .*x=\"g"):
            derivative(fused(function))
    for function in (inplace, sets):
        for given in ({}, {"x": "g"}):
            with pytest.raises(GraphError, match=f"{function.__name__} writes into an argument, which is not recorded"):
                derivative(fused(function), **given)
    with pytest.raises(KernelError, match=r"<lambda>: CuPy compiles no function of this name: use def"):
        derivative(fused(lambda x: x))
    assert derivative(fused(lambda x: x * x, kernel_name="squared")).gradients == {"x": "g * x * 2"}


def test_wrong_calls(rng):
    """The number of arguments is that of the function."""

    def twice(x):
        return x + x

    f = derivative(fused(twice))
    with pytest.raises(ArgumentError, match="twice: expected x, got 2 arguments"):
        f(drawn(rng, 3), 2)
    with pytest.raises(ArgumentError, match="twice: expected a CUDA tensor among its arguments"):
        f(2.0)
