"""Primitives: an op declared with its derivative, in an order that cannot go wrong in silence."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.autograd.recording import primitive as module
from lucid.autograd.recording.namespace import CPU, GRAPH
from lucid.errors import ShapeError
from tests.autograd.calls import calls


@pytest.fixture
def declare():
    """Return a function that declares an op by its reference; all it has declared is gone after the test."""
    before = set(module.PRIMITIVES)
    yield module.primitive
    for name in set(module.PRIMITIVES) - before:
        del module.PRIMITIVES[name]
        delattr(CPU, name)
        delattr(GRAPH, name)


def thrice(m, grad):
    """Return the derivative of three times a tensor."""
    return m.mul(grad, 3.0)


@pytest.mark.parametrize("operands", [1, 2])
def test_a_rule_after_the_short_path_is_refused(declare, operands):
    """A short path reads the rules when it is made: one that comes later would never run, and is refused by name."""
    if operands == 1:
        late = declare(lambda xp, x: xp.multiply(x, 3.0))
        late.shorten(late)
    else:
        late = declare(lambda xp, x, y: xp.multiply(x, 3.0))
        late.shorten(late)
    with pytest.raises(TypeError, match=r"thrice.*never run.*before the op gets its caller"):
        late.vjp("x")(thrice)


def test_a_rule_after_the_first_recorded_call_is_refused(declare):
    """The first recorded call fixes what a node keeps and runs; until then rules may be added."""
    op = declare(lambda xp, x, y: xp.multiply(xp.multiply(x, 3.0), y))
    op.vjp("x")(lambda m, grad, y: m.mul(m.mul(grad, 3.0), y))
    x, y = lucid.tensor([1.0, -2.0], requires_grad=True), lucid.tensor([4.0, 5.0])
    with lucid.no_grad():
        op(x, y)
    op.vjp("y")(lambda m, grad, x: m.mul(m.mul(grad, 3.0), x))
    op(x, y.requires_grad_()).backward(lucid.tensor([1.0, 10.0]))
    np.testing.assert_array_equal(x.grad.tolist(), [12.0, 150.0])
    np.testing.assert_array_equal(y.grad.tolist(), [3.0, -60.0])
    with pytest.raises(TypeError, match="thrice"):
        op.vjp("x")(thrice)


@pytest.mark.parametrize("first", ["all that is kept", "a part of it"])
def test_each_rule_of_several_gives_its_gradient(declare, first, rng):
    """Whatever the first rule reads of what the node keeps, the one after it runs too, alone or beside it."""
    op = declare(lambda xp, x, y: xp.multiply(xp.multiply(x, x), y))
    if first == "all that is kept":
        op.vjp("x")(lambda m, grad, x, y: m.mul(m.mul(grad, 2.0), m.mul(x, y)))
        op.vjp("y")(lambda m, grad, x: m.mul(grad, m.mul(x, x)))
    else:
        op.vjp("y")(lambda m, grad, x: m.mul(grad, m.mul(x, x)))
        op.vjp("x")(lambda m, grad, x, y: m.mul(m.mul(grad, 2.0), m.mul(x, y)))
    a, b, up = rng.standard_normal((3, 4))
    for wanted in ((True, True), (True, False), (False, True)):
        x, y = (lucid.tensor(each, requires_grad=need) for each, need in zip((a, b), wanted, strict=True))
        op(x, y).backward(lucid.tensor(up))
        for operand, need, expected in zip((x, y), wanted, (2 * a * b * up, a * a * up), strict=True):
            if need:
                np.testing.assert_allclose(operand.grad.tolist(), expected, rtol=1e-12)
            else:
                assert operand.grad is None


@pytest.mark.parametrize(
    "rule",
    [
        lambda m, grad, y_shape: grad,
        lambda m, grad, out_shape: grad,
        lambda m, grad, x_size: grad,
        lambda m, grad, other: grad,
    ],
    ids=lambda rule: rule.__code__.co_varnames[2],
)
def test_a_rule_asks_for_what_there_is(declare, rule):
    """Inputs, outputs, settings, shapes and dtypes of inputs: another name is refused at the first recorded call."""
    op = declare(lambda xp, x: xp.multiply(x, 3.0))
    op.vjp("x")(rule)
    with pytest.raises(TypeError, match=f"a rule asks for '{rule.__code__.co_varnames[2]}', which is no input"):
        op(lucid.ones(2, requires_grad=True))


def test_a_name_stands_for_one_primitive(declare):
    """A second one of the name is refused, and the first is called as before."""

    def mul(xp, x):
        return x

    with pytest.raises(ValueError, match="a primitive named mul exists already"):
        declare(mul)
    assert (lucid.ones(1) * 3).tolist() == [3.0]


@pytest.mark.gpu
def test_a_kernel_after_the_first_call_on_a_device_is_refused(declare):
    """An op chooses between kernel and reference at its first call on a device: a later kernel is refused."""
    op = declare(lambda xp, x: xp.multiply(x, 3.0))
    op(lucid.ones(2, device="cuda"))
    with pytest.raises(TypeError, match="a kernel comes after"):
        op.cuda(lambda x: x)


@pytest.mark.gpu
def test_a_rule_runs_its_kernel_on_a_device(declare):
    """Where a rule has a kernel, a pass on a device runs that in place of the rule."""
    ran = []

    def kernel(grad):
        ran.append(grad.shape)
        return grad * 3.0

    op = declare(lambda xp, x: xp.multiply(x, 3.0))
    op.vjp("x", cuda=kernel)(thrice)
    x = lucid.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    op(x).backward(lucid.tensor([1.0, 10.0], device="cuda"))
    assert x.grad.tolist() == [3.0, 30.0]
    assert ran == [(2,)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_short_path_is_one_call(dtype):
    """An operator on floating-point tensors of the CPU is one call inside lucid; with a number too, but of halves."""
    a, b = (
        lucid.tensor([2.0, -3.0], dtype=getattr(lucid, dtype), device="cpu", requires_grad=True) * 1.0 for _ in range(2)
    )
    constant = lucid.tensor([2.0, -3.0], dtype=getattr(lucid, dtype), device="cpu")
    numbers = (lambda: a * 2.0, lambda: a / 3) if dtype != "float16" else ()
    for run in (lambda: a * b, lambda: a + constant, lambda: constant - a, *numbers):
        run()
        assert calls(run, "lucid.") == ["_binary.<locals>.call"]


def test_operators_leave_the_short_path_once():
    """What it cannot take goes from there to promotion, not through another short path."""
    x = lucid.tensor([2, 3], device="cpu")
    # and through that for CUDA arrays, once there are any
    most = 1 + lucid.cuda.is_available()
    assert calls(lambda: x * x, "lucid.").count("_binary.<locals>.call") <= most
    assert calls(lambda: lucid.mul(x, x), "lucid.").count("_binary.<locals>.call") <= most


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_number_is_kept_in_its_place(dtype, rng):
    """Either operand may be the number, whatever the rule keeps of the two and of the output."""
    numbers = rng.uniform(0.5, 2.0, 3)
    given = rng.uniform(0.5, 2.0, 3)
    rows = {
        "x * 3": (lambda x: x * 3, lambda v: 3 + 0 * v),
        "3 - x": (lambda x: 3 - x, lambda v: -1 + 0 * v),
        "x / 4": (lambda x: x / 4, lambda v: 0.25 + 0 * v),
        "4 / x": (lambda x: 4 / x, lambda v: -4 / v**2),
        "x ** 3": (lambda x: x**3, lambda v: 3 * v**2),
        "3 ** x": (lambda x: 3**x, lambda v: 3**v * np.log(3)),
    }
    for name, (function, slope) in rows.items():
        x = lucid.tensor(numbers, dtype=getattr(lucid, dtype), requires_grad=True)
        upstream = lucid.tensor(given, dtype=getattr(lucid, dtype))
        out = function(x)
        assert out.dtype is x.dtype
        out.backward(upstream, retain_graph=True)
        tolerance = 2e-2 if dtype == "float16" else 1e-5
        np.testing.assert_allclose(x.grad.tolist(), given * slope(numbers), rtol=tolerance, err_msg=name)


def test_operands_that_do_not_fit():
    """They are named with their shapes, and so is a shape that fits and is larger than any memory."""
    with pytest.raises(ShapeError, match=r"add: shapes \(2, 3\) and \(2,\) cannot be broadcast: expected equal sizes"):
        lucid.ones(2, 3) + lucid.ones(2)
    column, row = lucid.ones(1, 1).expand(2**40, 1), lucid.ones(1, 1).expand(1, 2**40)
    with pytest.raises(
        ShapeError, match=r"add: shapes \(\d+, 1\) and \(1, \d+\) broadcast to .* larger than any memory"
    ):
        column + row


def test_a_rule_after_the_class_of_nodes(declare):
    """What a rule reads is an attribute of nodes, also of those whose class was asked for before the rule came."""
    op = declare(lambda xp, x, y: xp.multiply(x, y))
    op.vjp("x")(lambda m, grad, y: m.mul(grad, y))
    assert not hasattr(op.node_type, "_saved_self")
    op.vjp("y")(lambda m, grad, x: m.mul(grad, x))
    x, y = (lucid.tensor([value], requires_grad=True) for value in (2.0, 3.0))
    node = op(x, y).grad_fn
    assert (node._saved_self.tolist(), node._saved_y.tolist()) == ([2.0], [3.0])
