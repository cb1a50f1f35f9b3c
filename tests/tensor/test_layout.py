"""t_, squeeze_ and their like: the elements stay where they are, the shape changes, and the graph follows."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import InplaceError
from tests.device import shares_memory
from tests.pieces import drawn

# Of a (2, 4) tensor; NumPy gives the same shape of it by the second function.
CHANGES = {
    "t_": (lambda t: t.t_(), lambda a: a.T),
    "transpose_": (lambda t: t.transpose_(0, -1), lambda a: a.T),
    "unsqueeze_": (lambda t: t.unsqueeze_(1), lambda a: a[:, None]),
    "squeeze_": (lambda t: t.unsqueeze_(1).squeeze_(1), lambda a: a),
    "as_strided_": (lambda t: t.as_strided_((4, 2), (1, 4)), lambda a: a.T),
}
named = pytest.mark.parametrize("name", CHANGES)


def like(rng, tensor):
    """Return normal numbers of the shape of a tensor."""
    return lucid.tensor(rng.standard_normal(tensor.shape))


def values(tensor):
    """Return the elements of a tensor."""
    return tensor.detach().cpu().numpy()


def back(change, grad):
    """Return the gradient of a (2, 4) array whose changed shape has got `grad`."""
    found = np.zeros(8)
    np.add.at(found, change(np.arange(8).reshape(2, 4)), values(grad))
    return found.reshape(2, 4)


def test_a_lone_tensor_changes_shape(rng):
    """squeeze_, unsqueeze_, transpose_ and t_ change the shape, and the graph follows."""
    array = rng.standard_normal((3, 2))
    x = lucid.tensor(array, requires_grad=True)
    y = x + 0
    assert y.t_() is y
    assert y.unsqueeze_(0) is y
    y.transpose_(0, 2).squeeze_()
    expected = np.swapaxes(array.T[None], 0, 2).squeeze()
    np.testing.assert_array_equal(values(y), expected)
    upstream = rng.standard_normal(expected.shape)
    y.backward(lucid.tensor(upstream))
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.swapaxes(upstream.reshape(3, 2, 1), 0, 2)[0].T)


def test_a_base_with_views_refuses():
    """A tensor with views keeps its shape, as they know it by that, until they are gone."""
    x = lucid.zeros(2, 3)
    row = x[0]
    with pytest.raises(InplaceError, match="has views or is saved"):
        x.unsqueeze_(0)
    assert (x.shape, row.shape) == ((2, 3), (3,))
    del row
    assert x.unsqueeze_(0).shape == (1, 2, 3)


@named
def test_a_view_changes_shape(name, rng):
    """A view becomes another view of its base: the base stays, and both have their own gradients."""
    act, expected = CHANGES[name]
    x = drawn(rng, 3, 4)
    base = x * 2.0
    view = base[1:]
    assert act(view) is view
    assert view._base is base
    assert view._version == base._version > 0
    assert shares_memory(view, base)
    np.testing.assert_array_equal(values(view), expected(values(base)[1:]))
    of_view, of_base = like(rng, view), like(rng, base)
    lucid.autograd.backward([view, base], [of_view, of_base])
    total = values(of_base).copy()
    total[1:] += back(expected, of_view)
    np.testing.assert_allclose(values(x.grad), 2.0 * total, rtol=1e-12, atol=1e-12)


@named
def test_such_a_view_follows_and_writes(name, rng):
    """After the change of shape a view still follows its base, and its base follows it."""
    act, expected = CHANGES[name]
    x, w = drawn(rng, 3, 4), drawn(rng)
    base = x * 2.0
    view = base[1:]
    act(view)
    base.mul_(w)
    view.mul_(3.0)
    np.testing.assert_array_equal(values(view), expected(values(base)[1:]))
    of_view, of_base = like(rng, view), like(rng, base)
    lucid.autograd.backward([view, base], [of_view, of_base])
    total = values(of_base).copy()
    total[1:] += back(expected, of_view)
    total[1:] *= 3.0
    np.testing.assert_allclose(values(x.grad), 2.0 * values(w) * total, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(values(w.grad), (2.0 * values(x) * total).sum(), rtol=1e-12, atol=1e-12)


@named
def test_hooks_of_a_view_stay_with_its_old_shape(name, rng):
    """A hook from before the change of shape fires with the gradient of that shape, one from after it with the new."""
    act, expected = CHANGES[name]
    view = (drawn(rng, 3, 4) * 2.0)[1:]
    seen = []
    view.register_hook(seen.append)
    act(view)
    view.register_hook(seen.append)
    upstream = like(rng, view)
    view.backward(upstream)
    new, old = map(values, seen)
    np.testing.assert_array_equal(new, values(upstream))
    np.testing.assert_array_equal(expected(old), values(upstream))


@named
def test_its_own_views_stay(name, rng):
    """A view that was taken of a view before its change of shape shows what it showed, with the right gradient."""
    act, _ = CHANGES[name]
    x = drawn(rng, 3, 4)
    base = x * 2.0
    view = base[1:]
    inner = view[:, 1]
    act(view)
    base.mul_(3.0)
    np.testing.assert_array_equal(values(inner), values(base)[1:, 1])
    upstream = like(rng, inner)
    inner.backward(upstream)
    total = np.zeros((3, 4))
    total[1:, 1] = 6.0 * values(upstream)
    np.testing.assert_allclose(values(x.grad), total, rtol=1e-12, atol=1e-12)


@named
@pytest.mark.parametrize("mode", [lucid.no_grad, lucid.inference_mode])
@pytest.mark.parametrize("kind", ["leaf", "result", "view", "view of a leaf"])
def test_without_recording(name, mode, kind, rng):
    """The place in the graph follows a change of shape that is not recorded: a leaf stays one, others get gradients."""
    act, expected = CHANGES[name]
    x = drawn(rng, 2, 4)
    y = {"leaf": lambda: x, "result": lambda: x * 2.0, "view": lambda: (x * 2.0)[:], "view of a leaf": lambda: x[:]}[
        kind
    ]()
    before = values(y).copy()
    with mode():
        act(y)
    np.testing.assert_array_equal(values(y), expected(before))
    assert y.requires_grad
    assert y.is_leaf == (kind == "leaf")
    upstream = like(rng, y)
    (y * 3.0).backward(upstream)
    scale = 6.0 if kind in {"result", "view"} else 3.0
    want = values(upstream) if kind == "leaf" else back(expected, upstream)
    np.testing.assert_allclose(values(x.grad), scale * want, rtol=1e-12, atol=1e-12)


@named
@pytest.mark.parametrize(
    ("take", "match"),
    [
        (lambda x: x, "a leaf Variable that requires grad"),
        (lambda x: x[:], "a view of a leaf Variable"),
        (lambda x: (x * 2.0).unbind()[0], "returns several views"),
        (lambda x: no_grad_view(x * 2.0), "taken in no_grad mode"),
        (lambda x: lucid.zeros(1, 2, 4)[0].requires_grad_(), "a view of a leaf Variable"),
    ],
    ids=["leaf", "view of a leaf", "one of several views", "no_grad view", "leaf that is a view"],
)
def test_what_refuses(name, take, match, rng):
    """What refuses a change of its values refuses one of its shape, and keeps it."""
    act, _ = CHANGES[name]
    y = take(drawn(rng, 2, 2, 4) if "several" in match else drawn(rng, 2, 4))
    with pytest.raises(InplaceError, match=match):
        act(y)
    assert (y.shape, y._version) == ((2, 4), 0)


def no_grad_view(tensor):
    """Return a view that was taken in no_grad mode."""
    with lucid.no_grad():
        return tensor[:]


@named
def test_in_inference_mode(name, rng):
    """What inference mode made changes its shape there, and nowhere else, also with views."""
    act, expected = CHANGES[name]
    array = rng.standard_normal((2, 4))
    with lucid.inference_mode():
        x = lucid.tensor(array)
        row = x[0]
        act(x)
    np.testing.assert_array_equal(values(x), expected(array))
    np.testing.assert_array_equal(values(row), array[0])
    shape = x.shape
    with pytest.raises(RuntimeError, match="inference"):
        act(x)
    assert x.shape == shape


def test_what_was_saved_of_a_view_is_not_used_any_more(rng):
    """A change of shape counts as one of a view's memory: what has been saved of that is refused, as in PyTorch."""
    base = drawn(rng, 3, 3) * 2.0
    view = base[:]
    loss = (view * view).sum()
    view.t_()
    with pytest.raises(InplaceError, match="version 1; expected version 0"):
        loss.backward()


def test_hooks_of_a_leaf_expect_its_new_shape(rng):
    """A hook on a leaf whose shape has changed may replace the gradient by one of the new shape."""
    x = drawn(rng, 2, 3)
    x.register_hook(lambda grad: grad * 2.0)
    with lucid.no_grad():
        x.t_()
    upstream = like(rng, x)
    (x * 1.0).backward(upstream)
    assert x.grad.tolist() == (upstream * 2.0).tolist()


def test_what_is_the_same_view():
    """`is_set_to` tells views of the same elements in the same layout from all others."""
    x = lucid.ones(3, 3)
    for same in (x, x[:], x.view(3, 3), x.t().t(), x.detach()):
        assert x.is_set_to(same)
    for other in (x.t(), x[:1], x[1:], x.view(9), x.view(1, 9), x.clone(), x[:, :1].expand(3, 3)):
        assert not x.is_set_to(other)
        assert not other.is_set_to(x)


def test_nothing_is_lazily_conjugated():
    """`conj` computes: what asks for the bit is told no, what resolves it gives the tensor, and the graph, itself."""
    x = lucid.tensor([1 + 2j], requires_grad=True)
    y = x.conj()
    assert [lucid.is_conj(y), y.is_conj(), lucid.is_neg(y.imag), lucid.is_distributed(y)] == [False] * 4
    assert lucid.resolve_conj(y) is y.resolve_conj() is y
    assert lucid.resolve_neg(y) is y.resolve_neg() is y
    assert lucid.conj_physical(x).tolist() == x.conj_physical().tolist() == y.tolist() == [1 - 2j]
    z = x.detach().clone()
    assert z.conj_physical_() is z
    assert z.tolist() == [1 - 2j]
