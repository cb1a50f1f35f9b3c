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


@pytest.mark.parametrize(
    "function",
    [
        lambda cp, x, k: cp.where(x % 2 > 1, x * x, x) + x * cp.floor(x % 2),
        lambda cp, x, k: cp.where((x + 0.1) % 2 > 1, x * x, x) + (x % 0.7) * (0.7 % x) * (x // 0.31),
        lambda cp, x, k: x * (k % 3) + x * (k // 3) + x * (k % -3) + x * (k // -3),
        lambda cp, x, k: cp.maximum(x, 0) ** 2 + cp.maximum(x, 0) * cp.minimum(x, 1),
        lambda cp, x, k: cp.where(cp.maximum(x, 0) > 1, 2, x) * cp.where(x < np.inf, x * x, x),
        lambda cp, x, k: cp.sin(cp.maximum(x, k)) + cp.where(cp.minimum(k, 2) > 1, x * cp.exp(k), x),
        lambda cp, x, k: cp.where((x > 0) & (x < 1), x * x, x) + cp.where(~(x > 0) | (x > 2), x, cp.sin(x)),
        lambda cp, x, k: cp.where((x > 0) ^ (k > 0), x * x, x) + cp.where(cp.logical_xor(x > 0, k), x * x, x),
        lambda cp, x, k: x * cp.sqrt(cp.absolute(k)) + x * cp.arctan2(k, 2) + cp.absolute(x) ** k + x * cp.fmax(k, 1),
        lambda cp, x, k: cp.where(cp.signbit(x), x * x, x) + cp.where(x > -np.inf, x, 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["int64", "uint32"])
def test_ufuncs_are_those_of_numpy_in_numpys_dtypes(function, dtype):
    """Where C has another function of the same name, or none for operands of two types, the gradient is right too."""
    f = derivative(fused(lambda x, k: function(gpu.cupy(), x, k), kernel_name="mixed"))
    k = np.array([3, 20, 1, 7, 0, 5, 2]) if dtype == "uint32" else np.array([3, -2, 1, 7, 0, -1, 2])
    at, step = np.array([1.5, 2.25, -0.4, 0.5, 5.1, -1.3, 0.15]), 1e-6
    operand = gpu.cupy().asarray(k.astype(dtype))
    x = lucid.tensor(at).cuda().requires_grad_()
    (grad,) = lucid.autograd.grad(f(x, operand).sum(), x)
    above, below = (f(lucid.tensor(at + move).cuda(), operand) for move in (step, -step))
    slope = ((above - below) / (2 * step)).cpu().numpy()
    np.testing.assert_allclose(grad.cpu().numpy(), slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "function",
    [
        lambda np, x, k, j: np.where(k > j, x * x, x),
        lambda np, x, k, j: np.where(k == j, x * x, x) + np.where(k != j, 3 * x, x),
        lambda np, x, k, j: np.where(j <= k, x * x, x) + np.where(j >= k, 3 * x, x),
        lambda np, x, k, j: x * np.where(x > 0, k, j) + x * np.maximum(k, j) + x * np.minimum(k, j),
        lambda np, x, k, j: x * (k + j) + x * (k - j),
    ],
)
@pytest.mark.parametrize(("first", "second"), [("u4", "i4"), ("u8", "i8"), ("i1", "u1"), ("i8", "u4")])
def test_integers_of_two_dtypes(function, first, second):
    """They are compared, chosen and added as NumPy does it, and not in C's conversions."""
    f = derivative(fused(lambda x, k, j: function(gpu.cupy(), x, k, j), kernel_name="mixed"))
    at = np.array([0.5, 2.0, -1.0, 3.0])
    k, j = np.array([3, 3, 3, -1]).astype(first), np.array([-1, -3, 5, -1]).astype(second)
    x = lucid.tensor(at).cuda().requires_grad_()
    (grad,) = lucid.autograd.grad(f(x, *map(gpu.cupy().asarray, (k, j))).sum(), x)
    # of a polynomial of degree two differences of any step are exact
    slope = (function(np, at + 0.125, k, j) - function(np, at - 0.125, k, j)) / 0.25
    np.testing.assert_allclose(grad.cpu().numpy(), slope, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    "function",
    [
        lambda cp, x: cp.where(x <= 0.1, 3 * x, x),
        lambda cp, x: cp.where(x >= 0.7, 3 * x, x),
        lambda cp, x: cp.where(x * 3 >= 2.1, 3 * x, x),
        lambda cp, x: cp.where(x == 0.1, 3 * x, x),
        lambda cp, x: x * cp.floor(x * 10.0),
        lambda cp, x: x * ((x > 0.2) * 0.3),
    ],
)
def test_numbers_have_the_dtype_of_the_arrays(function, dtype):
    """The gradient takes the branch of the function: numbers, and what is computed with them, are rounded alike."""
    f = derivative(fused(lambda x: function(gpu.cupy(), x), kernel_name="rounded"))
    x = lucid.tensor([0.1, 0.05, 0.3, 0.7, 0.6999], dtype=getattr(lucid, dtype)).cuda().requires_grad_()
    y = f(x)
    (grad,) = lucid.autograd.grad(y.sum(), x)
    # each of these functions is linear around each of these numbers
    expected = (y.detach().double() / x.detach().double()).cpu().numpy()
    np.testing.assert_allclose(grad.double().cpu().numpy(), expected, rtol=1e-2 if "16" in dtype else 1e-6)


def test_a_tie_with_a_number():
    """At a tie with a number half of the gradient is handed on, in single precision too, and of one that is given."""
    cp = gpu.cupy()
    x = lucid.tensor([0.1, 0.2, 0.05]).cuda().requires_grad_()
    f = derivative(fused(lambda x: cp.maximum(x, 0.1), kernel_name="most"))
    assert lucid.autograd.grad(f(x).sum(), x)[0].tolist() == [0.5, 1.0, 0.0]
    f = derivative(fused(lambda x, a: cp.maximum(x, a), kernel_name="most"))
    assert lucid.autograd.grad(f(x, 0.1).sum(), x)[0].tolist() == [0.5, 1.0, 0.0]
    f = derivative(fused(lambda x: x**3, kernel_name="cube"))
    (grad,) = lucid.autograd.grad(f(x).sum(), x, create_graph=True)
    assert (lucid.autograd.grad(grad.sum(), x)[0] - 6 * x.detach()).abs().max().item() < 1e-6


def test_variables_from_outside(rng):
    """What a function finds outside of its arguments is read when CuPy reads it: by the first call of a kind."""
    box = [2.0]
    f = derivative(fused(lambda x: x * box[0], kernel_name="boxed"))
    for number, shape in ((5.0, (3,)), (7.0, (2, 2))):
        box[0] = number
        x = drawn(rng, *shape)
        for _ in range(2):
            y = f(x)
            (grad,) = lucid.autograd.grad(y.sum(), x)
            assert (grad - y.detach() / x.detach()).abs().max().item() < 1e-12
            box[0] = 11.0


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

    def condition(x):
        return cp.where(cp.sinc(x) > 0.5, x * x, x)

    for function in (total, branches, unknown, condition):
        with pytest.raises(NotDifferentiableError, match=rf"{function.__name__}: its derivative is not found: .*x=\"g"):
            derivative(fused(function))

    def position(x, y):
        return cp.add(x, y, x)

    for function in (inplace, sets, position):
        for given in ({}, {"x": "g"}):
            with pytest.raises(GraphError, match=f"{function.__name__} writes into an argument, which is not recorded"):
                derivative(fused(function), **given)
    f = derivative(fused(lambda x, k: x * cp.where(k == 0, 2, k), kernel_name="later"))
    x, k = lucid.ones(1).cuda(), lucid.tensor([1j]).cuda()
    assert f(x, k).item() == 1j
    with pytest.raises(NotDifferentiableError, match=r"later: its derivative is not found: equal of complex64, int64"):
        f(x.requires_grad_(), k)
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
