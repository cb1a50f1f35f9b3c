"""Section 3 of the hooks contract: Function and FunctionCtx."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from lucid.autograd import Function
from lucid.autograd.function import FunctionCtx, once_differentiable
from lucid.errors import HookTypeError
from tests.pieces import function_of, leaf

contract = pytest.mark.contract


def constant(*values: float) -> lucid.Tensor:
    return lucid.tensor(list(values), dtype=lucid.float64)


class Cube(Function):
    """x ** 3 with a backward made of differentiable ops."""

    contexts: ClassVar[list] = []

    @staticmethod
    def forward(ctx, x):
        Cube.contexts.append(ctx)
        assert not lucid.is_grad_enabled()
        ctx.save_for_backward(None)
        ctx.save_for_backward(x, None)
        ctx.power = 3
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        x, nothing = ctx.saved_tensors
        assert nothing is None
        return grad * ctx.power * x * x


@contract("3.1")
@contract("3.2")
def test_contexts_are_fresh_and_keep_the_last_saving() -> None:
    """A new ctx per apply; the last save_for_backward wins, None is allowed; attributes live on."""
    Cube.contexts.clear()
    x = leaf(2.0)
    a, b = Cube.apply(x), Cube.apply(x)
    assert Cube.contexts[0] is not Cube.contexts[1]
    (a + b).backward(constant(0.5))
    assert x.grad.item() == 12.0
    assert a.grad_fn.name() == "CubeBackward"
    assert a.grad_fn.power == 3


@contract("3.2")
def test_double_backward_differentiates_the_users_backward() -> None:
    """Under create_graph the backward is recorded."""
    x = leaf(2.0)
    (first,) = lucid.autograd.grad(Cube.apply(x), x, create_graph=True)
    (second,) = lucid.autograd.grad(first, x, create_graph=True)
    (third,) = lucid.autograd.grad(second, x)
    assert [t.item() for t in (first, second, third)] == [12.0, 12.0, 6.0]


@contract("3.1")
def test_needs_input_grad_and_arguments_that_are_no_tensors() -> None:
    """One entry per positional argument, set before forward; nested tuples of non-tensors pass through."""

    def forward(ctx, x, factor, w, extra):
        ctx.factor = factor
        assert ctx.needs_input_grad == (True, False, False, False)
        assert extra == ((1, "two"), None)
        return x * factor + w, extra

    def backward(ctx, grad, nothing):
        assert nothing is None
        return grad * ctx.factor, None, grad, None

    Scaled = function_of(forward, backward, name="Scaled")

    x = leaf(2.0)
    y, extra = Scaled.apply(x, 4.0, constant(1.0), ((1, "two"), None))
    assert extra == ((1, "two"), None)
    y.backward(constant(3.0))
    assert x.grad.item() == 12.0


@contract("3.1")
def test_setup_context_style_with_keywords() -> None:
    """Forward without ctx, setup_context(ctx, inputs, output), keyword arguments put into their places."""

    class Power(Function):
        @staticmethod
        def forward(x, exponent=2):
            return x**exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.exponent = inputs
            ctx.save_for_backward(x, output)

        @staticmethod
        def vjp(ctx, grad):
            x, output = ctx.saved_tensors
            return grad * ctx.exponent * output / x, None

    x = leaf(3.0)
    y = Power.apply(x, exponent=4)
    (first,) = lucid.autograd.grad(y, x, create_graph=True)
    assert first.item() == pytest.approx(108.0)
    assert lucid.autograd.grad(first, x)[0].item() == pytest.approx(108.0)
    assert Cube.apply(x=x).grad_fn is not None
    with pytest.raises(TypeError, match="unexpected keyword"):
        Cube.apply(x, power=3)


def test_what_pytorchs_forward_mode_asks_for() -> None:
    """A Function with a `jvp` and `save_for_forward` is recorded as any other; `func.jvp` differentiates backward."""

    class Square(Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs, None)

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

        @staticmethod
        def jvp(ctx, tangent):
            raise NotImplementedError

    value, pushed = lucid.func.jvp(Square.apply, (constant(3.0),), (constant(5.0),))
    assert (value.item(), pushed.item()) == (9.0, 30.0)
    with pytest.raises(HookTypeError, match="save_for_forward: expected tensors or None, got int as number 0"):
        FunctionCtx().save_for_forward(3)


@contract("3.3")
@pytest.mark.parametrize("materialize", [True, False])
def test_unused_and_non_differentiable_outputs(materialize: bool) -> None:
    """Zeros, or None if gradients are not materialised."""
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(materialize)
        index = x.argmax()
        mask = x * 0
        ctx.mark_non_differentiable(mask)
        return x * 2, mask, x * 3, index

    def backward(ctx, used, mask, unused, index):
        seen.extend(g if g is None else g.tolist() for g in (mask, unused))
        return used * 2

    Three = function_of(forward, backward, name="Three")

    x = leaf(1.0, 5.0)
    used, mask, unused, index = Three.apply(x)
    assert (used.requires_grad, mask.requires_grad, unused.requires_grad) == (True, False, True)
    assert not index.requires_grad
    used.backward(constant(1.5, -1.0))
    assert seen == ([[0.0, 0.0]] * 2 if materialize else [None, None])
    assert x.grad.tolist() == [3.0, -2.0]


@contract("3.4")
@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        (lambda g: g, RuntimeError, r"expected 2.*got 1"),
        (lambda g: (g, g), RuntimeError, "position 1.*not a Tensor"),
        (lambda g: (g.reshape(2, 1), None), RuntimeError, r"index 0: got shape \(2, 1\) but expected .*\(2,\)"),
        (lambda g: (g[:1], None), RuntimeError, r"index 0: got shape \(1,\)"),
        (lambda g: [g, None], TypeError, "got a list"),
        (lambda g: (3.0, None), TypeError, "gradient 0: expected a Tensor or None, got float"),
        (lambda g: (g, None, g), RuntimeError, r"expected 2.*got 3"),
    ],
)
def test_wrong_gradients_are_named(returned: object, error: type[Exception], text: str) -> None:
    """Each error names the Function, the index, expected and got; nothing is accumulated."""
    Wrong = function_of(lambda ctx, x, number: x * number, lambda ctx, grad: returned(grad), name="Wrong")

    x = leaf(1.0, 2.0)
    with pytest.raises(error, match=f"Wrong.backward.*{text}"):
        Wrong.apply(x, 2.0).sum().backward()
    assert x.grad is None


@contract("3.4")
def test_trailing_nones_are_fine() -> None:
    """More entries than arguments are accepted if they are None."""
    Generous = function_of(lambda ctx, x: x * 2, lambda ctx, grad: (grad * 2, None, None), name="Generous")

    x = leaf(1.0)
    Generous.apply(x).backward()
    assert x.grad.item() == 2.0


@contract("3.5")
def test_an_input_returned_unchanged_is_a_view_with_a_grad_fn() -> None:
    """It is another object on the same memory; changing it in place is refused."""
    Same = function_of(lambda ctx, x: x, lambda ctx, grad: grad * 7, name="Same")

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x
    assert y.grad_fn.name() == "SameBackward"
    assert y.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match=r"in-place|in place"):
        y.add_(1)
    y.backward()
    assert x.grad.item() == 7.0


@contract("3.5")
def test_mark_dirty_returns_the_same_object() -> None:
    """The changed input itself comes back with a new grad_fn; leaves and unreturned inputs are refused."""

    def forward(ctx, x, give_back):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x if give_back else x * 1

    Double = function_of(forward, lambda ctx, grad: (grad * 2, None), name="Double")

    x = leaf(3.0)
    y = x * 1
    z = Double.apply(y, True)
    assert z is y
    assert y._version == 2
    (z * 5).backward()
    assert x.grad.item() == 10.0
    with pytest.raises(RuntimeError, match="not returned"):
        Double.apply(x * 1, False)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        Double.apply(x, True)


@contract("3.5")
@pytest.mark.cpu("what is written is NumPy's memory")
@pytest.mark.parametrize("recorded", [True, False])
def test_mark_dirty_counts_what_is_written_below_tensors(recorded: bool) -> None:
    """A change of the memory itself is one of the tensor's, on the graph or not: what has saved it notices."""

    def forward(ctx, x):
        x.array[...] = 7
        ctx.mark_dirty(x)
        return x

    Write = function_of(forward, lambda ctx, grad: grad * 0, name="Write")

    weight, x = leaf(2.0), lucid.tensor([3.0], dtype=lucid.float64)
    y, version = weight * x, x._version
    with lucid.set_grad_enabled(recorded):
        assert Write.apply(x) is x
    assert x._version == version + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@contract("3.5")
def test_mark_dirty_on_a_view_moves_its_base() -> None:
    """The base's history follows the change of its view."""

    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    Double = function_of(forward, lambda ctx, grad: grad * 2, name="Double")

    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    Double.apply(base[1:])
    base.backward(constant(1.0, 10.0, 100.0))
    assert x.grad.tolist() == [1.0, 20.0, 200.0]
    assert base.tolist() == [1.0, 4.0, 6.0]


@contract("3.1")
def test_once_differentiable() -> None:
    """A first derivative is given; asking for the second raises."""

    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            assert not lucid.is_grad_enabled()
            return 2 * x * grad

    x = leaf(3.0)
    (first,) = lucid.autograd.grad(Square.apply(x) * x, x, create_graph=True)
    assert first.item() == 27.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()


@contract("3.1")
def test_bad_use() -> None:
    """An instance that is called, a non-tensor saved, no backward, freed tensors: each says what to do."""
    with pytest.raises(RuntimeError, match=r"legacy.*call Cube\.apply"):
        Cube()(leaf(1.0))

    class Saves(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)
            return x

    with pytest.raises(TypeError, match="expected tensors or None, got int as number 0"):
        Saves.apply(leaf(1.0))

    NoBackward = function_of(lambda ctx, x: x * 2, None, name="NoBackward")

    with pytest.raises(NotImplementedError, match="static backward"):
        NoBackward.apply(leaf(1.0)).backward()
    y = Cube.apply(leaf(1.0))
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_saved_inputs_changed_in_place_are_detected() -> None:
    """saved_tensors checks versions."""
    x = leaf(2.0)
    y = x * 1
    z = Cube.apply(y)
    with lucid.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_no_graph_without_gradients() -> None:
    """Under no_grad, and for inputs that do not require grad, the outputs are in no graph."""
    with lucid.no_grad():
        assert not Cube.apply(leaf(2.0)).requires_grad
    assert Cube.apply(constant(2.0)).grad_fn is None


def test_a_function_that_changes_a_view_runs_once(rng):
    """Backward waits for the gradient through the base of a changed view, though its other output's is there before."""
    received = []

    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        x *= 2
        return x, y * 3

    def backward(ctx, grad_x, grad_y):
        received.append((grad_x.tolist(), grad_y.tolist()))
        return grad_x * 2, grad_y * 3

    Both = function_of(forward, backward, name="Both")

    x, y = (lucid.tensor(rng.standard_normal(3), requires_grad=True) for _ in range(2))
    upstream = [lucid.tensor(rng.standard_normal(3)) for _ in range(2)]
    base = x * 1
    _, other = Both.apply(base[:], y)
    ((base * upstream[0]).sum() + (other * upstream[1]).sum()).backward()
    assert received == [(upstream[0].tolist(), upstream[1].tolist())]
    assert x.grad.tolist() == (upstream[0] * 2).tolist()
    assert y.grad.tolist() == (upstream[1] * 3).tolist()


def test_tensors_that_are_not_saved_leave_those_that_were() -> None:
    """A call that is refused changes nothing: backward finds what forward had saved before."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        with pytest.raises(TypeError):
            ctx.save_for_backward("nothing")
        return x * x

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    Careful = function_of(forward, backward, name="Careful")

    x = leaf(3.0)
    Careful.apply(x).backward()
    assert x.grad.item() == 6.0


def test_a_saved_output_that_is_returned_twice() -> None:
    """Its gradient comes at the last position, of the output that was saved too."""

    def forward(ctx, x):
        y = x * x
        ctx.save_for_backward(x, y)
        return y, y

    def backward(ctx, first, last):
        x, y = ctx.saved_tensors
        assert y.grad_fn is not None
        return (first + 10 * last) * 2 * y / x

    Twice = function_of(forward, backward, name="Twice")

    x = leaf(3.0)
    a, b = Twice.apply(x)
    assert a is b
    (gradient,) = lucid.autograd.grad(a * 1, x, create_graph=True)
    assert gradient.item() == 60.0
    gradient.backward()
    # 20 y' / x - 20 y / x**2, where y' comes through the last position too
    assert x.grad.item() == pytest.approx(20 * 60 / 3 - 20)


def test_a_forward_of_lucid_numpy_is_recorded(rng):
    """Plain arrays and numbers of floats that forward returns, beside tensors too, get the gradients of backward."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return lnp.sin(lnp.asarray(x)), lnp.sum(lnp.asarray(x) ** 2), x * 2, lnp.argmax(x), "words"

    def backward(ctx, of_sines, of_sum, of_twice, *others):
        assert others == (None, None)
        (x,) = ctx.saved_tensors
        return of_sines * x.cos() + of_sum * 2 * x + of_twice * 2

    Written = function_of(forward, backward, name="Written")

    values = rng.standard_normal(3)
    x = lucid.tensor(values, requires_grad=True)
    sines, total, twice, place, words = Written.apply(x)
    assert type(sines) is type(total) is lnp.ndarray
    assert (int(place), words) == (values.argmax(), "words")
    (lnp.sum(sines * sines) + total + twice.sum()).backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.sin(2 * values) + 2 * values + 2, rtol=1e-12)
    with lucid.no_grad():
        assert not isinstance(Written.apply(x)[0], lucid.Tensor)
