"""Views: memory in common, and a graph that follows changes in both directions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lucid
from lucid.errors import InplaceError
from tests.device import shares_memory
from tests.gradients import numbers
from tests.pieces import function_of

# Each is taken of a (4, 6) tensor; NumPy takes the same view by the second function.
VIEWS = {
    "element": (lambda t: t[1, 2], lambda a: a[1, 2]),
    "row": (lambda t: t[-1], lambda a: a[-1]),
    "slice": (lambda t: t[1:3, ::2], lambda a: a[1:3, ::2]),
    "new dimension": (lambda t: t[None, ..., 0], lambda a: a[None, ..., 0]),
    "view": (lambda t: t.view(2, 12), lambda a: a.reshape(2, 12)),
    "view with -1": (lambda t: t.view(-1, 3), lambda a: a.reshape(-1, 3)),
    "reshape": (lambda t: t.reshape(24), lambda a: a.reshape(24)),
    "flatten": (lambda t: t.flatten(), lambda a: a.reshape(24)),
    "transpose": (lambda t: t.transpose(0, 1), lambda a: a.T),
    "t": (lambda t: t.t(), lambda a: a.T),
    "T": (lambda t: t.T, lambda a: a.T),
    "mT": (lambda t: t.mT, lambda a: a.T),
    "permute": (lambda t: t.permute(1, 0), lambda a: a.T),
    "unsqueeze": (lambda t: t.unsqueeze(-1), lambda a: a[..., None]),
    "squeeze": (lambda t: t.unsqueeze(0).squeeze(0), lambda a: a),
    "diagonal": (lambda t: t.diagonal(1), lambda a: np.diagonal(a, 1)),
    "narrow": (lambda t: t.narrow(1, 2, 3), lambda a: a[:, 2:5]),
    "select": (lambda t: t.select(0, 2), lambda a: a[2]),
    "split": (lambda t: t.split(3, 1)[1], lambda a: a[:, 3:]),
    "chunk": (lambda t: t.chunk(2)[0], lambda a: a[:2]),
    "unbind": (lambda t: t.unbind(1)[4], lambda a: a[:, 4]),
    "unflatten": (lambda t: t.unflatten(1, (2, 3)), lambda a: a.reshape(4, 2, 3)),
    "view_as": (lambda t: t.view_as(lucid.zeros(8, 3)), lambda a: a.reshape(8, 3)),
    "expand_as": (lambda t: t[:1].expand_as(t), lambda a: np.broadcast_to(a[:1], (4, 6))),
    "expand to the same": (lambda t: t.expand(1, 4, -1), lambda a: a[None]),
    "movedim": (lambda t: t.movedim(0, -1), lambda a: a.T),
    "unfold": (lambda t: t.unfold(1, 2, 2), lambda a: a.reshape(4, 3, 2)),
    "of a view": (lambda t: t.t()[1:].view(5, 2, 2)[..., 1], lambda a: a.T[1:].reshape(5, 2, 2)[..., 1]),
    "detach": (lambda t: t.detach(), lambda a: a),
}


def sent(tensor, rng):
    """Run backward from a tensor; return the gradient that it is given, an array."""
    upstream = rng.standard_normal(tuple(tensor.shape))
    tensor.backward(lucid.tensor(upstream))
    return upstream


def back(take, upstream):
    """Return the gradient of a (4, 6) array of which a view has got this; copies in an expanded view add up."""
    summed = np.zeros(24)
    np.add.at(summed, take(np.arange(24).reshape(4, 6)), upstream)
    return summed.reshape(4, 6)


@pytest.mark.parametrize("name", VIEWS)
def test_shares_memory(name, rng):
    """A view holds the elements that NumPy's holds, sees changes of the base, and counts them with it."""
    array = rng.standard_normal((4, 6))
    take, expected = VIEWS[name]
    base = lucid.tensor(array)
    view = take(base)
    np.testing.assert_array_equal(view.cpu().numpy(), expected(array))
    assert shares_memory(view, base)
    base.mul_(2)
    np.testing.assert_array_equal(view.cpu().numpy(), 2 * expected(array))
    assert view._version == base._version == 1


@pytest.mark.parametrize("name", [n for n in VIEWS if n != "detach"])
def test_base_and_derivative(name, rng):
    """A view names its base, and passes its gradient to the elements that it holds."""
    array = rng.standard_normal((4, 6))
    take, expected = VIEWS[name]
    x = lucid.tensor(array, requires_grad=True)
    view = take(x)
    assert view._base is x
    upstream = sent(view, rng)
    np.testing.assert_allclose(x.grad.cpu().numpy(), back(expected, upstream), rtol=1e-12)


def test_a_view_taken_before_follows_a_change_of_the_base(rng):
    """After its base was changed, a view has a new place in the graph: the derivative is that of the new values."""
    x = lucid.tensor(rng.standard_normal((2, 3)), requires_grad=True)
    y = x * 1
    row = y[1]
    old = row.grad_fn
    y.mul_(x)
    assert row.grad_fn is not old
    upstream = sent(row, rng)
    expected = np.zeros((2, 3))
    expected[1] = 2 * x.detach().cpu().numpy()[1] * upstream
    np.testing.assert_allclose(x.grad.cpu().numpy(), expected)


def test_a_view_that_was_taken_again_stays_where_it_is(rng):
    """Looked at twice it has one place in the graph, where what is registered on it is called."""
    x = lucid.tensor(rng.standard_normal((2, 3)), requires_grad=True)
    y = x * 1.0
    row = y[1]
    y.mul_(2.0)
    seen = []
    row.register_hook(lambda grad: seen.append(grad.tolist()))
    row.retain_grad()
    assert row.grad_fn is row.grad_fn
    upstream = sent(row, rng)
    assert seen == [upstream.tolist()]
    assert row.grad.tolist() == upstream.tolist()


def test_a_change_of_a_view_enters_the_base(rng):
    """A base and its other views see what was written into one view, values and gradient."""
    x = lucid.tensor(rng.standard_normal((2, 3)), requires_grad=True)
    w = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    y = x * 2
    first, second, column = y[0], y[1], y[:, 1]
    first.mul_(w)
    assert y.grad_fn.name() == "CopySlices"
    upstream = rng.standard_normal((2, 3))
    of_column = rng.standard_normal(2)
    lucid.autograd.backward([y, column], [lucid.tensor(upstream), lucid.tensor(of_column)])
    total = upstream.copy()
    total[:, 1] += of_column
    expected = 2 * total
    expected[0] *= w.detach().cpu().numpy()
    np.testing.assert_allclose(x.grad.cpu().numpy(), expected)
    np.testing.assert_allclose(w.grad.cpu().numpy(), 2 * x.detach().cpu().numpy()[0] * total[0])
    np.testing.assert_array_equal(second.detach().cpu().numpy(), y.detach().cpu().numpy()[1])


REFUSING = {"split", "chunk", "unbind", "expand_as", "detach"}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", [n for n in VIEWS if n not in REFUSING])
def test_a_change_of_any_view_enters_the_base(name, create_graph, rng):
    """The elements that the view holds, and no others, get the new values and pass the gradient to what was written."""
    array, upstream = rng.standard_normal((2, 4, 6))
    take, expected = VIEWS[name]
    places = expected(np.arange(24).reshape(4, 6))
    x = lucid.tensor(array, requires_grad=True)
    factor = rng.standard_normal(places.shape)
    w = lucid.tensor(factor, requires_grad=True)
    base = x * 1.0
    take(base).mul_(w)
    of_x, of_w = lucid.autograd.grad(base, (x, w), lucid.tensor(upstream), create_graph=create_graph)
    factors = np.ones(24)
    factors[places] = factor
    np.testing.assert_allclose(of_x.detach().cpu().numpy(), upstream * factors.reshape(4, 6), rtol=1e-12)
    np.testing.assert_allclose(of_w.detach().cpu().numpy(), (upstream * array).reshape(24)[places], rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in VIEWS if n != "detach"])
def test_any_view_follows_a_change_of_its_base(name, rng):
    """Taken before the change, it has the derivative of the elements that it holds after it."""
    array = rng.standard_normal((4, 6))
    take, expected = VIEWS[name]
    x = lucid.tensor(array, requires_grad=True)
    base = x * 1.0
    view = take(base)
    base.mul_(x)
    upstream = sent(view, rng)
    np.testing.assert_allclose(x.grad.cpu().numpy(), 2 * array * back(expected, upstream), rtol=1e-12)


@pytest.mark.parametrize("dims", list(itertools.permutations(range(3))))
def test_a_change_of_a_view_that_needs_the_layout_of_its_base(dims, rng):
    """A base whose memory is in another order of dimensions: what only that memory can be viewed as is taken again."""
    made, upstream = rng.standard_normal((2, 2, 3, 4))
    w = lucid.tensor(rng.standard_normal(8), requires_grad=True)
    x = lucid.tensor(made.transpose(dims), requires_grad=True)
    back = tuple(np.argsort(dims).tolist())
    base = lucid.tensor(made).permute(*dims).data
    base.copy_(x)
    flat = base.permute(*back).view(24)
    flat[4:12].mul_(w)
    base.backward(lucid.tensor(upstream.transpose(dims)))
    factors = np.ones(24)
    factors[4:12] = w.detach().cpu().numpy()
    expected = upstream * factors.reshape(2, 3, 4)
    np.testing.assert_allclose(x.grad.cpu().numpy(), expected.transpose(dims), rtol=1e-12)
    np.testing.assert_allclose(w.grad.cpu().numpy(), (upstream * made).reshape(24)[4:12], rtol=1e-12)


def test_a_base_without_gradient_gets_one_from_a_view(rng):
    """Writing what requires grad into a view makes the base require grad."""
    w = lucid.tensor(rng.standard_normal(2), requires_grad=True)
    base = lucid.zeros(4, dtype=lucid.float64)
    base[1:3] = w
    assert base.requires_grad
    upstream = sent(base, rng)
    assert w.grad.tolist() == upstream[1:3].tolist()


@pytest.mark.parametrize("take", [lambda t: t.split(1)[0], lambda t: t.unbind()[0], lambda t: next(iter(t))])
def test_one_of_several_views_refuses(take, rng):
    """The outputs of an op that returns several views cannot be changed while gradients are recorded."""
    y = lucid.tensor(rng.standard_normal((2, 3)), requires_grad=True) * 2
    part = take(y)
    before = y.tolist()
    with pytest.raises(InplaceError, match="returns several views"):
        part.add_(1)
    assert y.tolist() == before
    with lucid.no_grad():
        part.add_(1)
    assert part._version == 1


def test_a_view_from_no_grad_refuses(rng):
    """A view of a tensor on the graph that was taken in no_grad mode cannot be changed outside of it, by anything."""
    y = lucid.tensor(rng.standard_normal((2, 3)), requires_grad=True) * 2
    with lucid.no_grad():
        row = y[0]
    before = y.tolist()
    for act in (
        lambda: row.mul_(2),
        lambda: row.mul_(lucid.tensor(rng.standard_normal(3), requires_grad=True)),
        lambda: row.__setitem__(0, 1.0),
        lambda: row[1:].zero_(),
    ):
        with pytest.raises(InplaceError, match="no_grad mode"):
            act()
    assert y.tolist() == before
    with lucid.no_grad():
        row.mul_(2)
    assert y[0].tolist() == [2 * value for value in before[0]]


@pytest.mark.parametrize("mode", [lucid.no_grad, lucid.inference_mode])
def test_a_view_finds_its_place_again_in_every_mode(mode, rng):
    """A view whose base was changed since is taken again with its history, also where nothing is recorded."""
    x = lucid.tensor(rng.standard_normal((2, 3)), requires_grad=True)
    y = x * 2.0
    row = y[0]
    upstream = rng.standard_normal(3)
    y.detach().mul_(3.0)
    with mode():
        assert row.requires_grad
        row.backward(lucid.tensor(upstream))
    np.testing.assert_array_equal(x.grad.cpu().numpy(), [2.0 * upstream, np.zeros(3)])


def test_copies_are_no_views(rng):
    """What has to copy has memory and versions of its own."""
    x = lucid.tensor(rng.standard_normal((4, 6)))
    for made in (
        x.clone(),
        x.t().contiguous(),
        x[[0, 1]],
        x[x > 0],
        x.t().reshape(24),
        x.flip(0),
        x + 0,
        x.repeat(1, 1),
    ):
        assert not shares_memory(made, x)
        assert made._base is None
        made.zero_()
        assert x._version == 0


def test_view_needs_fitting_memory():
    """`view` never copies: it says that reshape would."""
    x = lucid.zeros(2, 3).t()
    with pytest.raises(RuntimeError, match="reshape"):
        x.view(6)
    assert x.reshape(6).shape == (6,)


def test_one_of_several_views_after_a_change_of_its_base(rng):
    """It has the gradient of the slice that it is; PyTorch refuses it then."""
    x = lucid.tensor(rng.standard_normal((4, 3)), requires_grad=True)
    for take, first in ((lambda t: t.chunk(2)[1], 2), (lambda t: t.split(1)[3], 3), (lambda t: t.unbind()[1], 1)):
        base = x * 1.0
        part = take(base)
        base.mul_(x)
        upstream = rng.standard_normal(part.shape)
        (grad,) = lucid.autograd.grad(part, x, lucid.tensor(upstream))
        expected = np.zeros((4, 3))
        rows = slice(first, first + (1 if part.ndim == 1 else len(upstream)))
        expected[rows] = 2 * x.detach().cpu().numpy()[rows] * upstream
        np.testing.assert_allclose(grad.cpu().numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("mode", [lucid.no_grad, lucid.inference_mode])
def test_a_view_taken_without_recording_stays_out_of_the_graph(mode, rng):
    """It requires no grad, before and after its base is changed or enters a graph, and refuses recorded changes."""
    leaf = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    for base in (leaf, leaf * 1.0, lucid.zeros(3)):
        with mode():
            view = base[1:]
        inner = view[:1]
        with pytest.raises(InplaceError, match=r"taken in (no_grad|inference) mode"):
            view.mul_(lucid.ones(2, requires_grad=True))
        with mode():
            view.mul_(2.0)
        assert base[1:].tolist() == view.tolist()
        if base is not leaf:
            base.add_(leaf)
            assert base.requires_grad
        assert (view.requires_grad, view.is_leaf, view.grad_fn) == (False, True, None)
        assert not (view * 2.0).requires_grad
        assert (inner.requires_grad, inner.grad_fn, inner.tolist()) == (False, None, base[1:2].tolist())


def test_views_of_inference_tensors():
    """A view of an inference tensor that requires grad is one too, and requires none."""
    with lucid.inference_mode():
        x = lucid.ones(2, 2, requires_grad=True)
    for view in (x.view(4), x[0], x.unbind()[0]):
        assert view.is_inference()
        assert (x.requires_grad, view.requires_grad, view.grad_fn, view._base) == (True, False, None, None)


def test_a_view_that_is_looked_at_in_inference_mode():
    """Its place in the graph follows a change of its base there, too."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    view = y[1:]
    with lucid.inference_mode():
        y.mul_(2.0)
        assert view.requires_grad
    view.backward()
    assert x.grad.tolist() == [0.0, 1.0]


def test_a_view_as_root_after_a_change_of_its_base(rng):
    """The pass begins at the new values, though nobody has asked for the view's place since."""
    x = lucid.tensor(rng.standard_normal(2), requires_grad=True)
    base = x * 1.0
    view = base[1]
    base.mul_(3.0)
    view.backward()
    assert x.grad.tolist() == [0.0, 3.0]


def test_a_view_that_was_made_a_leaf():
    """It and its views refuse recorded changes as other leaves do; it was left without its gradient before."""
    x = lucid.zeros(2, 3)[0].requires_grad_()
    for target in (x, x[1:]):
        with pytest.raises(InplaceError, match="a view of a leaf Variable that requires grad"):
            target.mul_(2.0)
        with pytest.raises(InplaceError, match="a view of a leaf Variable that requires grad"):
            target.zero_()
    (x * 3.0).sum().backward()
    assert x.grad.tolist() == [3.0] * 3


def test_a_view_cannot_be_detached_in_place():
    """Views refuse, in a graph or not, since their base may come into one."""
    x = lucid.ones(2, requires_grad=True)
    for view in ((x * 1.0)[:1], (x * 1.0).unbind()[0], lucid.ones(2)[:1]):
        with pytest.raises(InplaceError, match="cannot be detached in place"):
            view.detach_()


# Gives a new tensor, and an input as it is.
TwoOutputs = function_of(lambda ctx, x, weight: (x * 2, weight), lambda ctx, grad, grad_weight: (grad * 2, grad_weight))


def test_what_has_no_derivative_can_be_asked_of_a_lost_view(rng):
    """A view that no op can take again has no gradient, but its values may still be compared."""
    weight = lucid.tensor(rng.standard_normal(5), requires_grad=True)
    out, view = TwoOutputs.apply(weight.detach(), weight)
    with lucid.no_grad():
        weight.mul_(-1)
    values = numbers(weight)
    with pytest.raises(InplaceError, match="cannot be taken again"):
        view * 2
    assert (view == view).all()
    assert (view > out).tolist() == (values > numbers(out)).tolist()
    assert (view > 0.5).tolist() == (values > 0.5).tolist()
    assert view.isnan().tolist() == [False] * 5
    assert view.argmax().item() == values.argmax()
    assert view.argmin(0).item() == values.argmin()


@pytest.mark.parametrize("swapped", [False, True])
def test_a_view_of_a_changed_base_is_either_operand(swapped):
    """A recorded op asks each of its operands for its place in the graph as it is now."""
    leaf, other = (lucid.ones(2, requires_grad=True) for _ in range(2))
    base = leaf * 1.0
    view = base[:]
    base.mul_(3.0)
    (other + view if swapped else view + other).sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]
