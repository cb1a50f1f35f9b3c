"""What a hook changes in place of the gradient that it is given is no one else's: sharing memory is not seen."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd import Function
from lucid.autograd.graph import register_multi_grad_hook
from tests.gradients import numbers
from tests.pieces import function_of

SIZES = (3, 5000)  # sums of small gradients go another way than those of large ones


class Same(Function):
    """The identity, whose backward changes its gradient in place."""

    change = staticmethod(lambda grad: None)

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        Same.change(grad)
        return grad


def only(change, grad):
    """Change a gradient and return nothing, so that what counts is the change."""
    change(grad)


def by_hook(y, change):
    y.register_hook(lambda grad: only(change, grad))
    return y


def by_retained(y, change):
    y.retain_grad()
    return by_hook(y, change)


def by_prehook(y, change):
    y.grad_fn.register_prehook(lambda grads: only(change, grads[0]))
    return y


def by_function(y, change):
    Same.change = staticmethod(change)
    return Same.apply(y)


def by_module(register):
    def put(y, change):
        module = nn.Identity()
        register(module, change)
        return module(y)

    return put


def by_multi(mode):
    def put(y, change):
        register_multi_grad_hook([y], lambda grads: only(change, grads[0] if mode == "all" else grads), mode=mode)
        return y

    return put


def full(module, change):
    module.register_full_backward_hook(lambda module, into, out: only(change, into[0]))


def full_and_forward(module, change):
    module.register_forward_hook(lambda module, args, out: None)
    full(module, change)


def pre(module, change):
    module.register_full_backward_pre_hook(lambda module, out: only(change, out[0]))


PLACES = {
    "tensor hook": by_hook,
    "tensor hook beside retain_grad": by_retained,
    "node prehook": by_prehook,
    "Function": by_function,
    "full backward hook": by_module(full),
    "full backward hook beside another": by_module(full_and_forward),
    "full backward pre-hook": by_module(pre),
    "multi-grad hook": by_multi("all"),
    "multi-grad hook, any": by_multi("any"),
}
CHANGES = {
    "mul_": lambda grad: grad.mul_(10),
    "zero_ and add": lambda grad: grad.add_(grad * 9),
    "copy_": lambda grad: grad.copy_(grad * 10),
    "all of it": lambda grad: grad.__setitem__(slice(None), grad * 10),
    "view": lambda grad: grad.view(-1).mul_(10),
    "detach": lambda grad: grad.detach().mul_(10),
    "data": lambda grad: grad.data.mul_(10),
    "view of detach": lambda grad: grad.detach()[:].mul_(10),
    "twice": lambda grad: grad.mul_(5) is grad.mul_(2),
    "clamp_": lambda grad: grad.clamp_(min=10),
    "no_grad": lucid.no_grad()(lambda grad: grad.mul_(10)),
}


def run(place, change, size, create_graph, root=None):
    """Return the gradients on both sides of a sum, and the gradient that was given to backward.

    The hook is on the left side; the right side has the same gradient, in the same memory.
    """
    a, b = (lucid.ones(size, requires_grad=True) for _ in range(2))
    left, right = a * 2, b * 2
    left = PLACES[place](left, CHANGES[change])
    total = left + right
    given = lucid.ones(size) if root is None else root(size)
    total.backward(given, create_graph=create_graph)
    return numbers(a.grad), numbers(b.grad), numbers(given)


@pytest.mark.parametrize("create_graph", [False, True], ids=["plain", "create_graph"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("place", PLACES)
def test_another_branch_keeps_its_gradient(place, change, create_graph):
    """A sum gives both sides one gradient in one memory: a change of it on one side reaches that side alone."""
    for size in SIZES:
        left, right, given = run(place, change, size, create_graph)
        np.testing.assert_array_equal(left, 20.0)
        np.testing.assert_array_equal(right, 2.0)
        np.testing.assert_array_equal(given, 1.0)


@pytest.mark.parametrize("place", PLACES)
def test_an_expanded_gradient_can_be_changed(place):
    """The gradient of a sum of all elements, which is one number repeated, is a hook's to change as any other."""
    a, b = lucid.ones(3, requires_grad=True), lucid.ones(3, requires_grad=True)
    left = PLACES[place](a * 2, CHANGES["mul_"])
    (left + b * 2).sum().backward()
    np.testing.assert_array_equal(numbers(a.grad), 20.0)
    np.testing.assert_array_equal(numbers(b.grad), 2.0)


def test_a_posthook_changes_its_own():
    """What a posthook changes of the gradients of a node's inputs, or of its outputs, is no one else's."""
    a, b, c = (lucid.ones(3, requires_grad=True) for _ in range(3))
    inner = a + b
    total = inner + c
    inner.grad_fn.register_hook(lambda into, out: only(lambda grad: (grad.mul_(10), out[0].mul_(100)), into[0]))
    given = lucid.ones(3)
    total.backward(given)
    assert [numbers(t.grad).tolist() for t in (a, b, c)] == [[10.0] * 3, [1.0] * 3, [1.0] * 3]
    np.testing.assert_array_equal(numbers(given), 1.0)


def test_a_leafs_hooks():
    """At a leaf the change reaches its `.grad`, whether or not others have the same gradient."""
    a, b = lucid.ones(3, requires_grad=True), lucid.ones(3, requires_grad=True)
    a.register_hook(_change)
    given = lucid.ones(3)
    (a + b).backward(given)
    assert (numbers(a.grad).tolist(), numbers(b.grad).tolist()) == ([10.0] * 3, [1.0] * 3)
    np.testing.assert_array_equal(numbers(given), 1.0)
    c = lucid.ones(3, requires_grad=True)
    c.register_post_accumulate_grad_hook(_scale)
    c.backward(given)
    np.testing.assert_array_equal(numbers(c.grad), 10.0)
    np.testing.assert_array_equal(numbers(given), 1.0)


def _scale(leaf):
    leaf.grad.mul_(10)


def test_the_gradients_that_grad_returns():
    """`autograd.grad` gives what came to a tensor after its own hooks; a prehook's change comes later."""
    x = lucid.ones(3, requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: _change(grads[0]))
    given = lucid.ones(3)
    at_y, at_x = lucid.autograd.grad(y, [y, x], given)
    assert numbers(at_y).tolist() == [1.0] * 3
    assert numbers(at_x).tolist() == [20.0] * 3
    np.testing.assert_array_equal(numbers(given), 1.0)


def _change(grad):
    grad.mul_(10)


def test_a_gradient_that_was_kept_is_the_users():
    """What a hook keeps, and is changed after it has returned, or after the pass, is nobody else's either."""
    kept = []
    a, b = lucid.ones(3, requires_grad=True), lucid.ones(3, requires_grad=True)
    right = b * 2
    left = a * 2
    left.register_hook(kept.append)
    right.register_hook(lambda grad: _change(kept[0]) if kept else None)
    given = lucid.ones(3)
    (left + right).backward(given)
    kept[0].zero_()
    assert (numbers(a.grad).tolist(), numbers(b.grad).tolist()) == ([2.0] * 3, [2.0] * 3)
    np.testing.assert_array_equal(numbers(given), 1.0)


def test_a_change_is_recorded_with_create_graph(rng):
    """In a recorded pass the change is part of the graph of its own side."""
    array = rng.standard_normal(3)
    x = lucid.tensor(array, requires_grad=True)
    left, right = x**2, x**3
    left.register_hook(lambda grad: _times(grad, x))
    (grad,) = lucid.autograd.grad((left + right).sum(), x, create_graph=True)
    np.testing.assert_allclose(numbers(grad), 2 * array**2 + 3 * array**2)
    grad.sum().backward()
    np.testing.assert_allclose(numbers(x.grad), 10 * array)


def _times(grad, x):
    grad.mul_(x)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("order", sorted(set(itertools.permutations((0, 0, 1, 1)))), ids=str)
def test_what_several_outputs_receive_is_summed_apart(order, size, rng):
    """Sums of one output of a node are no sign for another's: what is given to backward for that stays as it is."""
    x = lucid.zeros(2, size, requires_grad=True)
    outputs = x.unbind(0)
    given = [lucid.tensor(rng.integers(1, 9, size), dtype=lucid.float32) for _ in order]
    before = [grad.clone() for grad in given]
    lucid.autograd.backward([outputs[number] for number in order], given)
    for grad, kept in zip(given, before, strict=True):
        np.testing.assert_array_equal(numbers(grad), numbers(kept))
    for number in (0, 1):
        expected = sum(numbers(grad) for grad, to in zip(before, order, strict=True) if to == number)
        np.testing.assert_array_equal(numbers(x.grad[number]), expected)


def test_what_a_function_hands_on_is_not_changed():
    """A Function's backward may return what it has saved: a hook below changes its gradient, and not that."""

    def forward(ctx, x, scale):
        ctx.save_for_backward(scale)
        return x * scale

    Constant = function_of(forward, lambda ctx, grad: (ctx.saved_tensors[0], None), name="Constant")

    x, scale = lucid.ones(3, requires_grad=True), lucid.full((3,), 3.0)
    inner = x * 1
    inner.register_hook(_change)
    Constant.apply(inner, scale).sum().backward()
    np.testing.assert_array_equal(numbers(scale), 3.0)
    np.testing.assert_array_equal(numbers(x.grad), 30.0)


@pytest.mark.parametrize(
    "build",
    [
        lambda y, w: y,
        lambda y, w: y + w,
        lambda y, w: y.view(2, 2) + w.view(2, 2),
        lambda y, w: y.clone(),
        lambda y, w: Same.apply(y),
    ],
    ids=["itself", "sum", "view", "clone", "function"],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_each_grad_is_memory_of_its_own(build, create_graph, rng):
    """What `.grad` of a leaf or of a retained result holds is neither another's nor the one given to backward."""
    x, w = (lucid.tensor(rng.standard_normal(4), requires_grad=True) for _ in range(2))
    y = x + 0
    out = build(y, w)
    given = lucid.tensor(rng.standard_normal(tuple(out.shape)))
    for tensor in (y, out):
        tensor.retain_grad()
    out.backward(given, create_graph=create_graph)
    grads = {id(t): t.grad for t in (x, y, w, out) if t.grad is not None}
    before = {key: grad.tolist() for key, grad in grads.items()}
    kept = given.tolist()
    for key, grad in grads.items():
        with lucid.no_grad():
            grad.add_(1)
        assert given.tolist() == kept
        assert [other for other, each in grads.items() if each.tolist() != before[other]] == [key]
        before[key] = grad.tolist()


RETURNING = {
    "tensor hook": lambda y, first, second: [y.register_hook(first), y.register_hook(second)],
    "beside a prehook": lambda y, first, second: [
        y.grad_fn.register_prehook(lambda _: None), y.register_hook(first), y.register_hook(second)
    ],
    "prehook": lambda y, first, second: [
        y.grad_fn.register_prehook(lambda grads: (first(grads[0]),)),
        y.grad_fn.register_prehook(lambda grads: only(second, grads[0])),
    ],
    "posthook": lambda y, first, second: [
        y.grad_fn.register_hook(lambda grads, _: (first(grads[0]), *grads[1:])),
        y.grad_fn.register_hook(lambda grads, _: only(second, grads[0])),
    ],
}  # fmt: skip


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("kind", [*RETURNING, "backward pre-hook", "backward hook", "backward hook of several"])
def test_what_a_hook_returned_is_not_changed(kind, create_graph, rng):
    """The next hook changes what comes after it, and not the tensor that the one before had returned and holds."""
    kept = lucid.tensor(rng.standard_normal(3))
    before = numbers(kept).copy()
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)

    def first(grad):
        return kept

    def second(grad):
        grad.mul_(2)

    if kind in RETURNING:
        y = x * 1.0
        RETURNING[kind](y, first, second)
    else:
        module = nn.Bilinear(3, 3, 3, dtype=lucid.float64) if kind.endswith("several") else nn.Identity()
        if kind == "backward pre-hook":
            module.register_full_backward_pre_hook(lambda _, grads: (first(grads[0]),))
            module.register_full_backward_pre_hook(lambda _, grads: only(second, grads[0]))
        else:
            module.register_full_backward_hook(lambda _, grads, __: (first(grads[0]), *grads[1:]))
            module.register_full_backward_hook(lambda _, grads, __: only(second, grads[0]))
        y = module(x, x.detach().requires_grad_()) if kind.endswith("several") else module(x)
    y.sum().backward(create_graph=create_graph)
    np.testing.assert_array_equal(numbers(kept), before)
    np.testing.assert_allclose(numbers(x.grad), 2 * before)
