"""An elementwise op follows from its declaration: name, forward, derivatives, what it takes and what it refuses."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest

import lucid
from lucid.autograd.recording.namespace import CPU, CUDA, GRAPH, PRIMITIVES
from lucid.errors import DtypeError
from lucid.ops.base.declaration import REAL, Formula, Fused, Slope, elementwise, flat
from tests.gradients import check_gradient
from tests.kernels.declared import KERNELS


@pytest.fixture
def forgotten():
    """Take out again what a test declares: primitives, and kernels from the table of all."""
    before, kernels = set(PRIMITIVES), len(KERNELS)
    yield
    del KERNELS[kernels:]
    for name in set(PRIMITIVES) - before:
        del PRIMITIVES[name]
        for space in (CPU, CUDA, GRAPH):
            vars(space).pop(name, None)


def declared(*arguments, **settings):
    """Declare an op of one operand, ``squared``."""

    @elementwise(*arguments, **settings)
    def squared(input: lucid.Tensor) -> lucid.Tensor:
        """Return the square of it."""
        return GRAPH.squared(input)

    return squared


def square(xp, x):
    return xp.multiply(x, x)


def square_vjp(m, grad, x):
    return m.mul(m.mul(grad, x), 2)


def test_the_function_stays_what_it_is(forgotten):
    """The decorated function keeps name, signature and docstring, and its name is that of op and node."""
    squared = declared(square, square_vjp, kernel="elementwise.Square")
    assert (squared.__name__, squared.__doc__) == ("squared", "Return the square of it.")
    assert list(inspect.signature(squared).parameters) == ["input"]
    assert PRIMITIVES["squared"].inputs == ("x",)
    assert squared(lucid.ones(2, requires_grad=True)).grad_fn.name() == "SquaredBackward0"


def test_of_a_ufunc_the_names_may_differ(forgotten):
    """The reference calls the ufunc by NumPy's name, on whatever array module it is given."""
    declared(np.arcsinh, lambda m, grad, x: grad, kernel="elementwise.Square")
    assert PRIMITIVES["squared"].cpu is np.arcsinh

    class Module:
        arcsinh = staticmethod(lambda x: -x)

    assert PRIMITIVES["squared"].reference(Module, 3) == -3


def test_derivatives(forgotten, rng):
    """A rule gives the gradient, and is differentiated in its turn."""
    squared = declared(square, Fused(square_vjp), kernel="elementwise.Square")
    check_gradient(squared, [rng.standard_normal((2, 3))], rng)
    x = lucid.tensor([3.0], requires_grad=True)
    (slope,) = lucid.autograd.grad(squared(x), x, lucid.ones(1), create_graph=True)
    assert lucid.autograd.grad(slope, x, lucid.ones(1))[0].tolist() == [2.0]


def test_two_operands(forgotten):
    """Of two operands each has its rule, and its gradient is summed to its shape."""

    @elementwise(
        np.multiply,
        lambda m, grad, b, a_shape: m.sum_to(m.mul(grad, b), shape=a_shape),
        lambda m, grad, a, b_shape: m.sum_to(m.mul(grad, a), shape=b_shape),
        kernel="elementwise.Mul",
    )
    def product(input, other):
        return GRAPH.product(input, other)

    a, b = lucid.tensor([[1.0], [2.0]], requires_grad=True), lucid.tensor([3.0, 4.0], requires_grad=True)
    product(a, b).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([[7.0], [7.0]], [3.0, 3.0])
    with pytest.raises(lucid.errors.ShapeError, match="product"):
        product(a, lucid.ones(3, 3, 3))


def test_rules_for_some_operands_only_are_refused(forgotten):
    """An op with derivatives has one for each operand: a forgotten one would be found in somebody's backward pass."""
    with pytest.raises(ValueError, match="zip"):
        elementwise(np.multiply, lambda m, grad, b, a_shape: grad, kernel="elementwise.Mul")(lambda input, other: None)


def test_a_late_rule_is_refused(forgotten):
    """The declaration has read the rules: one that comes later raises instead of never running."""
    declared(square, square_vjp, kernel="elementwise.Square")
    with pytest.raises(TypeError, match="squared: the rule square_vjp comes after"):
        PRIMITIVES["squared"].vjp("x")(square_vjp)


@pytest.mark.parametrize(("dtypes", "expected"), [({}, "float32"), ({"dtypes": ("float", "long long")}, "int64")])
def test_integers(forgotten, dtypes, expected):
    """Integers become floating-point numbers where the kernel takes nothing else, and stay where it takes them."""
    assert str(declared(square, kernel="elementwise.Square", **dtypes)(lucid.tensor([2])).dtype) == f"lucid.{expected}"


def test_refused_dtypes(forgotten):
    """What the function is not defined on is refused by the op's name, with what to do instead."""
    squared = declared(square, square_vjp, kernel="elementwise.Square", refused=REAL)
    with pytest.raises(DtypeError, match=r"squared: got a tensor of lucid.complex64, .* it is defined on real numbers"):
        squared(lucid.tensor([1j]))


def test_a_slope_is_a_primitive(forgotten, rng):
    """A slope is an op of its own with the settings of its op, linear in the gradient, and has derivatives."""

    @elementwise(
        lambda m, x, *, slope: m.where(x > 0, x, slope * x),
        Slope(lambda m, g, x, *, slope: m.where(x > 0, 1, slope) * g, flat),
    )
    def leaky(input, slope):
        return GRAPH.leaky(input, slope=slope)

    assert (PRIMITIVES["leaky"].inputs, PRIMITIVES["leaky"].settings) == (("x",), ("slope",))
    assert (PRIMITIVES["leaky_grad"].inputs, PRIMITIVES["leaky_grad"].settings) == (("g", "x"), ("slope",))
    check_gradient(lambda x: leaky(x, 0.25), [rng.standard_normal((2, 3)) + 0.1], rng)
    x, g = lucid.tensor([-2.0, 3.0], requires_grad=True), lucid.tensor([4.0, 4.0], requires_grad=True)
    (slope,) = lucid.autograd.grad(leaky(x, 0.25), x, g, create_graph=True)
    of_x, of_g = lucid.autograd.grad(slope.sum(), (x, g))
    assert (slope.tolist(), of_x.tolist(), of_g.tolist()) == ([1.0, 4.0], [0.0, 0.0], [0.25, 1.0])


def test_what_a_slope_keeps(forgotten):
    """A parameter called `result` gets what the op gave; the rule saves that and not the operand."""

    @elementwise(lambda m, x: x * 0.5, Slope(lambda m, g, result: g * 0.5, flat))
    def halved(input):
        return GRAPH.halved(input)

    (rule,) = PRIMITIVES["halved"].rules
    assert rule.arguments == ("out",)
    assert PRIMITIVES["halved_grad"].inputs == ("g", "result")


def double_into(xp, out, x, spare):
    """Write twice the numbers, by a temporary."""
    xp.add(x, x, out=spare)
    xp.copyto(out, spare)


def double(m, x):
    """Return twice a number."""
    return x * 2


@pytest.mark.parametrize("numpy", [None, double_into, lambda xp, x: x + x])
def test_a_formula_may_have_a_chain_by_hand(forgotten, numpy):
    """What NumPy does follows from the formula, or is given beside it, of blocks or of whole arrays."""
    twice = declared(Formula(double, numpy), lambda m, grad: m.mul(grad, 2))
    for dtype in (lucid.float32, lucid.float16):
        out = twice(lucid.tensor([1.5], dtype=dtype))
        assert (out.tolist(), out.dtype) == ([3.0], dtype)


def test_an_op_without_formula_and_kernel(forgotten):
    """An op that nothing says the kernel of is a wrong declaration."""
    with pytest.raises(TypeError, match=r"squared: expected a formula, or the name of a kernel, got <function square"):
        declared(square, square_vjp)


CALLS = """
import contextlib, warnings
import lucid

values = [0.0, 3e38, -3e38, float("inf"), -float("inf"), float("nan")]
tried = 0
for place in (lucid, lucid.special, lucid.nn.functional):
    for name in place.__all__:
        for others in (lambda x: (), lambda x: (x,), lambda x: (0,)):
            with contextlib.suppress(Exception):
                with warnings.catch_warnings(action="ignore", category=UserWarning):
                    x = lucid.tensor(values, requires_grad=True)
                    y = getattr(place, name)(x, *others(x))
                (grad,) = lucid.autograd.grad(y, x, x.detach().flip(0).expand(y.shape), create_graph=True)
                grad.sum().backward()
                tried += 1
print(tried)
"""


@pytest.mark.cpu("NumPy's warnings")
def test_nothing_warns_of_what_overflows():
    """No op and no derivative says on the way that numbers are infinite or NaN, where nobody has set a filter."""
    run = [sys.executable, "-W", "always::RuntimeWarning", "-c", CALLS]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    found = sorted({line for line in done.stderr.splitlines() if "RuntimeWarning" in line})
    assert not found, (
        "NumPy names the module that calls it, and lucid silences its own (lucid/autograd/modes/state.py): call ufuncs "
        f"and methods from a module of lucid.ops, not functions that NumPy has in Python: {found}"
    )
    assert int(done.stdout) > 100
