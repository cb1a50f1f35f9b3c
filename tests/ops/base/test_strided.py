"""as_strided: views given by strides, their derivatives, and what would leave the tensor's memory."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import InplaceError, ShapeError
from tests.device import shares_memory
from tests.samples import COMPLEX, FLOATS, INTEGERS

# Sizes, strides and offset of views of twelve elements.
GRIDS = {
    "columns": ((2, 3), (1, 4), 1),
    "windows": ((5, 4), (2, 1), 0),
    "one element many times": ((3, 2), (0, 0), 7),
    "no dimension": ((), (), 5),
    "nothing": ((2, 0), (3, 1), 11),
    "backwards in order": ((2, 2, 2), (1, 2, 4), 3),
    "other holes": ((2, 2), (7, 3), 1),
}
grids = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)


def places(grid):
    """Return the place in memory of each element of a grid."""
    size, stride, offset = grid
    return offset + sum((i * s for i, s in zip(np.indices(size), stride, strict=True)), np.zeros(size, int))


def values(tensor):
    """Return the elements of a tensor."""
    return tensor.detach().cpu().numpy()


def summed(grid, upstream, count=12):
    """Return the gradient of `count` elements in memory, where those of a grid get `upstream`."""
    out = np.zeros(count)
    np.add.at(out, places(grid), upstream)
    return out


@grids
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, *COMPLEX, "bool"])
def test_values(grid, dtype, rng):
    """It is a view of the elements that lie there, of every dtype; lucid.as_strided is the same as the method."""
    x = lucid.tensor(rng.integers(0, 100, (3, 4)), dtype=getattr(lucid, dtype))
    view = x.as_strided(*grid)
    expected = np.asarray(x.tolist()).reshape(-1)[places(grid)]
    np.testing.assert_array_equal(np.asarray(view.tolist()).reshape(grid[0]), expected)
    assert view._base is x
    assert view.stride() == grid[1] or 0 in grid[0]
    assert not view.numel() or (view.storage_offset() == grid[2] and shares_memory(view, x))
    assert lucid.as_strided(x, *grid).tolist() == view.tolist()


@grids
@pytest.mark.parametrize("form", ["rows", "columns", "a part", "a view between"])
def test_derivatives(grid, form, rng):
    """The gradient of each element in memory is the sum over the places that show it; so is the second derivative."""
    x = lucid.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    y = {
        "rows": lambda: x * 2.0,
        "columns": lambda: x.t() * 2.0,
        "a part": lambda: (lucid.cat([x, x]) * 2.0)[:3],
        "a view between": lambda: (x * 2.0).view(2, 6).t(),
    }[form]()
    memory = values(y._base if y._base is not None else y)
    order = np.argsort(-np.array(y.stride() if y._base is None else y._base.stride()), kind="stable")
    memory = memory.transpose(order).reshape(-1)
    view = y.as_strided(*grid)
    np.testing.assert_array_equal(values(view), memory[places(grid)])
    upstream = rng.standard_normal(grid[0])
    (grad,) = lucid.autograd.grad((view**3), x, lucid.tensor(upstream), create_graph=True)
    shown = memory[places(grid)]
    total = summed(grid, upstream * 3.0 * shown**2)
    lay = (
        (lambda flat: flat.reshape(4, 3).T)
        if form == "columns" and order[0] == 0
        else (lambda flat: flat.reshape(3, 4))
    )
    np.testing.assert_allclose(values(grad), 2.0 * lay(total), rtol=1e-12, atol=1e-12)
    if not view.numel():
        return
    again = rng.standard_normal((3, 4))
    (second,) = lucid.autograd.grad(grad, x, lucid.tensor(again))
    total = summed(grid, upstream * 6.0 * shown)
    np.testing.assert_allclose(values(second), 4.0 * lay(total) * again, rtol=1e-12, atol=1e-12)


def test_gradients_by_finite_differences(rng):
    """Gradcheck and gradgradcheck, real and complex, of a view whose elements overlap."""
    for dtype in (lucid.float64, lucid.complex128):
        x = lucid.tensor(rng.standard_normal((3, 4)), dtype=dtype, requires_grad=True)
        take = lambda x: (x * x).as_strided((3, 3), (2, 1), 1)
        assert lucid.autograd.gradcheck(take, (x,))
        assert lucid.autograd.gradgradcheck(take, (x,))


def test_elements_between_those_of_a_view(rng):
    """Taken of a view with gaps it may show elements of the gaps, which get no gradient through the view."""
    x = lucid.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    part = (x * 1.0)[:, :2]
    shown = part.as_strided((8,), (1,), 0)
    np.testing.assert_array_equal(values(shown), values(x).reshape(-1)[:8])
    upstream = rng.standard_normal(8)
    shown.backward(lucid.tensor(upstream))
    expected = np.zeros((3, 4))
    expected[:2, :2] = upstream.reshape(2, 4)[:, :2]
    assert x.grad.tolist() == expected.tolist()


def test_it_writes_into_its_base(rng):
    """What is written into it, the base has, with the gradients of both."""
    x = lucid.tensor(rng.standard_normal((3, 4)), requires_grad=True)
    w = lucid.tensor(rng.standard_normal((2, 3)), requires_grad=True)
    base = x * 1.0
    grid = (2, 3), (1, 4), 1
    base.as_strided(*grid).mul_(w)
    upstream = rng.standard_normal((3, 4))
    base.backward(lucid.tensor(upstream))
    flat, factor = upstream.reshape(-1), np.ones(12)
    factor[places(grid)] = values(w)
    np.testing.assert_allclose(values(x.grad).reshape(-1), flat * factor, rtol=1e-12)
    np.testing.assert_allclose(values(w.grad), (flat * values(x).reshape(-1))[places(grid)], rtol=1e-12)


@pytest.mark.parametrize(
    "take",
    [lambda x: x.as_strided((5, 4), (2, 1)), lambda x: x.view(-1).unfold(0, 3, 1), lambda x: x[:1].expand(3, 4)],
    ids=["as_strided", "unfold", "expand"],
)
def test_overlapping_elements_are_not_written(take, rng):
    """What shows an element twice cannot be changed in place: the result would depend on the order of writing."""
    x = lucid.tensor(rng.standard_normal((3, 4)))
    before = x.tolist()
    with pytest.raises(InplaceError, match="broadcast memory"):
        take(x).mul_(2.0)
    assert x.tolist() == before


@pytest.mark.parametrize(
    ("act", "match"),
    [
        (lambda x: x.as_strided((2, 2), (1,)), "mismatch in length of strides and shape"),
        (lambda x: x.as_strided((2,), (-1,), 3), "no negative size or stride"),
        (lambda x: x.as_strided((-2,), (1,)), "no negative size or stride"),
        (lambda x: x.as_strided((2, 2), (100, 1)), "leave the memory"),
        (lambda x: x.as_strided((13,), (1,)), "leave the memory"),
        (lambda x: x.as_strided((2,), (1,), -1), "leave the memory"),
        (lambda x: x[1:].as_strided((2,), (1,), 0), "elements 4 to below 12"),
        (lambda x: x[:2].as_strided((12,), (1,)), "elements 0 to below 8"),
        (lambda x: x.expand(2, 3, 4).as_strided((2,), (1,)), "clone\\(\\) it first"),
    ],
)
def test_what_leaves_the_memory(act, match):
    """Nothing outside of the tensor's own elements can be reached, and the error says which these are."""
    with pytest.raises(ShapeError, match=match):
        act(lucid.zeros(3, 4))


@pytest.mark.cpu("arrays of the user's own")
def test_a_base_with_gaps():
    """Memory that lucid does not know whole is refused."""
    with pytest.raises(ShapeError, match="gaps"):
        lucid.from_numpy(np.zeros((4, 4))[:, ::2]).as_strided((2,), (1,))
