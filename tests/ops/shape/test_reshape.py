"""What rows cannot say of shapes: what is a view, what raises, and gradients through views changed in place."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, IndexOutOfRangeError, InplaceError, ShapeError
from lucid.ops.base.dims import viewable
from lucid.ops.index import select
from lucid.ops.shape import axes, broadcasting, diagonal, padding, repeating, splitting
from lucid.ops.shape import reshape as shape
from tests.device import shares_memory


def tensor(rng, *sizes):
    """Return a tensor of random numbers that is no leaf but requires grad, and the leaf."""
    leaf = lucid.tensor(rng.standard_normal(sizes), requires_grad=True)
    return leaf * 1, leaf


VIEWS = {
    "view": lambda x: shape.view(x, 6, -1),
    "reshape": lambda x: shape.reshape(x, -1),
    "flatten": lambda x: shape.flatten(x, 1),
    "unflatten": lambda x: shape.unflatten(x, 2, (2, 2)),
    "squeeze": lambda x: shape.squeeze(x),
    "unsqueeze": lambda x: shape.unsqueeze(x, 1),
    "permute": lambda x: axes.permute(x, 2, 0, 1),
    "transpose": lambda x: axes.transpose(x, 0, 1),
    "movedim": lambda x: axes.movedim(x, 0, 2),
    "select": lambda x: select.select(x, 2, -1),
    "narrow": lambda x: select.narrow(x, 1, 1, 2),
    "int": lambda x: x[1],
    "all ints": lambda x: x[1, 2, 3],
    "slices": lambda x: x[..., None, 1::2],
    "diagonal": lambda x: diagonal.diagonal(x, -1, 2, 1),
    "unfold": lambda x: select.unfold(x, 2, 2, 2),
    "chain": lambda x: shape.reshape(axes.permute(x[1:], 1, 0, 2)[1:, 0], -1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_change_of_a_view_changes_its_base(name, rng):
    """Values written into a view appear in the base, which passes their gradient to them and no longer to the old."""
    take = VIEWS[name]
    base, leaf = tensor(rng, 2, 3, 4)
    upstream = rng.standard_normal(base.array.shape)
    value = lucid.tensor(rng.standard_normal(take(base).array.shape), requires_grad=True)
    view = take(base)
    assert shares_memory(view, base)
    assert view._base is base
    view.copy_(value)
    # where the view lies, by the same op on an array of places
    places = take(lucid.tensor(np.arange(24).reshape(2, 3, 4))).numpy(force=True)
    expected = leaf.numpy(force=True).copy()
    expected.reshape(-1)[places] = value.numpy(force=True)
    np.testing.assert_array_equal(base.numpy(force=True), expected)
    base.backward(lucid.tensor(upstream))
    np.testing.assert_allclose(value.grad.numpy(force=True), upstream.reshape(-1)[places])
    outside = upstream.copy()
    outside.reshape(-1)[places] = 0
    np.testing.assert_allclose(leaf.grad.numpy(force=True), outside)


@pytest.mark.parametrize("name", VIEWS)
def test_a_change_of_the_base_reaches_its_views(name, rng):
    """A view taken before an in-place change of its base passes gradients through that change."""
    base, leaf = tensor(rng, 2, 3, 4)
    view = VIEWS[name](base)
    base.mul_(3.0)
    np.testing.assert_array_equal(view.numpy(force=True), VIEWS[name](base).numpy(force=True))
    upstream = rng.standard_normal(view.array.shape)
    view.backward(lucid.tensor(upstream))
    places = VIEWS[name](lucid.tensor(np.arange(24).reshape(2, 3, 4))).numpy(force=True)
    expected = np.zeros((2, 3, 4))
    np.add.at(expected.reshape(-1), places, 3 * upstream)
    np.testing.assert_allclose(leaf.grad.numpy(force=True), expected)


COPIES = {
    "reshape": lambda x: shape.reshape(axes.t(x), -1),
    "contiguous": lambda x: shape.contiguous(axes.t(x)),
    "clone": shape.clone,
    "flip": lambda x: axes.flip(x, 0),
    "roll by nothing": lambda x: axes.roll(x, 0, 0),
    "no turn": lambda x: axes.rot90(x, 4),
    "repeat once": lambda x: repeating.repeat(x, 1, 1),
    "interleave once": lambda x: repeating.repeat_interleave(x, 1, 0),
    "all of a triangle": lambda x: diagonal.tril(x, 5),
    "diag": diagonal.diag,
    "no padding": lambda x: padding.pad(x, (0, 0)),
    "no mirror": lambda x: padding.pad(x, (0, 0), "reflect"),
    "list": lambda x: x[[0, 1, 2]],
    "mask": lambda x: x[lucid.tensor(np.ones((3, 3), bool))],
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_has_memory_of_its_own(name, rng):
    """What PyTorch returns as a copy never shares memory, even where it equals its input."""
    x, _ = tensor(rng, 3, 3)
    out = COPIES[name](x)
    assert not shares_memory(out, x)
    assert out._base is None


SAME = {
    "flatten": lambda x: shape.flatten(x, 1, 1),
    "contiguous": shape.contiguous,
    "atleast_1d": lucid.atleast_1d,
    "atleast_2d": lucid.atleast_2d,
    "to": lambda x: x.to(x.dtype),
    "type_as": lambda x: x.type_as(x),
    "real": lambda x: x.real,
    "plus": lambda x: +x,
}


@pytest.mark.parametrize("name", SAME)
def test_where_there_is_nothing_to_do_it_is_the_tensor_itself(name, rng):
    """What PyTorch returns as its input is that, and no view or copy of it."""
    for x in tensor(rng, 2, 3):
        assert SAME[name](x) is x
    row = x[0]
    assert shape.flatten(row) is row


@pytest.mark.parametrize("k", range(-9, 10))
def test_turns_and_shifts_go_round_and_round(k):
    """As NumPy counts them: four turns, and as many shifts as there are elements, are none, in either direction."""
    array = np.arange(6).reshape(2, 3)
    x = lucid.tensor(array)
    for dims in ((0, 1), (1, 0)):
        np.testing.assert_array_equal(axes.rot90(x, k, dims).numpy(force=True), np.rot90(array, k, dims))
    np.testing.assert_array_equal(axes.roll(x, k).numpy(force=True), np.roll(array, k))
    np.testing.assert_array_equal(axes.roll(x, (k, -k), (0, 1)).numpy(force=True), np.roll(array, (k, -k), (0, 1)))


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: splitting.split(x, 1),
        lambda x: splitting.chunk(x, 2),
        lambda x: splitting.tensor_split(x, 2),
        splitting.unbind,
    ],
)
def test_parts_of_a_cut_refuse_changes_while_recording(cut, rng):
    """One of several views from one op shares memory, but is changed in place only under no_grad."""
    x, _ = tensor(rng, 2, 3)
    part = cut(x)[1]
    assert shares_memory(part, x)
    before = x.numpy(force=True).copy()
    with pytest.raises(InplaceError, match="several views"):
        part.zero_()
    np.testing.assert_array_equal(x.numpy(force=True), before)
    with lucid.no_grad():
        part.zero_()
    assert not x.numpy(force=True)[1].any()


def test_unused_parts_get_zeros(rng):
    """The gradient of a cut of which one part is used is that part's gradient among zeros."""
    x, leaf = tensor(rng, 5, 2)
    for cut, rows in ((splitting.split(x, [1, 3, 1])[1], slice(1, 4)), (splitting.unbind(x)[3], 3)):
        upstream = rng.standard_normal(cut.array.shape)
        (grad,) = lucid.autograd.grad(cut, leaf, lucid.tensor(upstream), retain_graph=True)
        expected = np.zeros((5, 2))
        expected[rows] = upstream
        np.testing.assert_array_equal(grad.numpy(force=True), expected)


def test_unbind_of_nothing(rng):
    """A dimension of size zero has no places: there are no views."""
    assert splitting.unbind(tensor(rng, 0, 3)[0]) == ()


def test_unbind_of_a_number():
    """There is no dimension to leave out, as for an index: an IndexError, where other cuts give a ShapeError."""
    with pytest.raises(IndexError, match="0-dim"):
        splitting.unbind(lucid.tensor(1.0))


@pytest.mark.parametrize("chunks", [1, 2, 5])
@pytest.mark.parametrize("length", [0, 1, 4, 7])
def test_chunks_of_any_length(length, chunks):
    """They are of one size but for the last, no more than were asked for; of nothing there are as many, all empty."""
    parts = lucid.arange(length).chunk(chunks)
    size = -(-length // chunks)
    expected = [list(range(length))[k : k + size] for k in range(0, length, size)] if length else [[]] * chunks
    assert [part.tolist() for part in parts] == expected


@pytest.mark.parametrize("make", [lambda n: n, lambda n: [n], lambda n: lucid.tensor(n), lambda n: lucid.tensor([n])])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_one_number_of_copies_is_that_of_each_slice(make, count, rng):
    """It is a number, or the only element of a sequence or tensor."""
    x = rng.standard_normal((3, 2))
    for dim in (0, 1, None):
        found = lucid.tensor(x).repeat_interleave(make(count), dim)
        np.testing.assert_array_equal(found.numpy(force=True), np.repeat(x, count, dim))


def test_viewable_agrees_with_numpy(rng):
    """Whether memory can be seen in a shape is what NumPy finds when it must not copy."""
    sizes = [1, 2, 3, 4]
    agreed = set()
    for _ in range(2000):
        old = tuple(rng.choice(sizes, rng.integers(0, 4)).tolist())
        array = np.zeros([2 * n for n in old])[(slice(None, None, int(rng.integers(1, 3))),) * len(old)]
        array = array[tuple([slice(n) for n in old])].transpose(rng.permutation(len(old)))
        if rng.random() < 0.5:
            array = np.ascontiguousarray(array).reshape(array.shape).transpose(rng.permutation(array.ndim))
        rest, new = array.size, []
        while rest > 1:
            new.append(int(rng.choice([n for n in range(2, rest + 1) if rest % n == 0])))
            rest //= new[-1]
        for _ in range(int(rng.integers(0, 2))):
            new.insert(int(rng.integers(0, len(new) + 1)), 1)
        try:
            np.reshape(array, new, copy=False)
            expected = True
        except ValueError:
            expected = False
        assert viewable(array.shape, array.strides, tuple(new)) == expected, (array.shape, array.strides, new)
        agreed.add(expected)
    assert agreed == {True, False}


def test_nothing_is_split_by_nothing():
    """Of a dimension of size 0 parts of size 0 are one part; any other size, too."""
    x = lucid.zeros(0, 3)
    for size in (0, 1, 5, []):
        assert [tuple(part.shape) for part in splitting.split(x, size)] == ([(0, 3)] if size != [] else [])


X = np.arange(6.0).reshape(2, 3)
ERRORS = {
    "too many elements": (lambda x: shape.reshape(x, 2, 5), ShapeError, r"shape '\[2, 5\]' is invalid for input"),
    "not divisible": (lambda x: shape.reshape(x, -1, 4), ShapeError, r"shape '\[-1, 4\]' is invalid"),
    "two inferred": (lambda x: shape.reshape(x, -1, -1), ShapeError, "only one dimension can be inferred"),
    "negative": (lambda x: shape.reshape(x, -2, 3), ShapeError, "invalid shape dimension -2 at index 0"),
    "ambiguous": (lambda x: shape.reshape(x[:0], -1, 0), ShapeError, "can be any size"),
    "view of a transpose": (lambda x: shape.view(axes.t(x), 6), ShapeError, r"strides \[1, 3\].*reshape"),
    "view as a dtype": (lambda x: shape.view(x, lucid.int32), DtypeError, "to"),
    "flatten backwards": (lambda x: shape.flatten(x, 1, 0), ShapeError, "start_dim 1 comes after end_dim 0"),
    "unflatten": (lambda x: shape.unflatten(x, 1, (2, 2)), ShapeError, "invalid for input of size 3"),
    "dim": (lambda x: axes.transpose(x, 0, 5), IndexOutOfRangeError, r"range of \[-2, 1\], but got 5"),
    "new dim": (lambda x: shape.unsqueeze(x, 3), IndexOutOfRangeError, r"range of \[-3, 2\], but got 3"),
    "permute too few": (lambda x: axes.permute(x, 0), ShapeError, "all 2 dimensions"),
    "permute twice": (lambda x: axes.permute(x, 0, 0), ShapeError, "dim 0 appears multiple times"),
    "t of three": (lambda x: axes.t(x[None]), ShapeError, "at most 2 dimensions"),
    "movedim": (lambda x: axes.movedim(x, (0, 1), 0), ShapeError, "as many destinations"),
    "roll": (lambda x: axes.roll(x, (1, 2), 0), ShapeError, "one dimension for each shift"),
    "expand": (lambda x: broadcasting.expand(x, 3, 3), ShapeError, r"expanded size.*\(3\).*existing size \(2\)"),
    "expand too few": (lambda x: broadcasting.expand(x, 3), ShapeError, "number of sizes provided"),
    "expand unknown": (lambda x: broadcasting.expand(x, -1, 2, 3), ShapeError, "-1 keeps a size that is there"),
    "repeat too few": (lambda x: repeating.repeat(x, 2), ShapeError, "a number for each of the 2 dimensions"),
    "repeat negative": (lambda x: repeating.repeat(x, 2, -1), ShapeError, "zero or more"),
    "interleave": (lambda x: repeating.repeat_interleave(x, [1, 2, 3], 0), ShapeError, "each of the 2 slices"),
    "combinations": (lambda x: lucid.combinations(x[0], -1), ShapeError, "r of zero or more, got -1"),
    "meshgrid": (lambda x: broadcasting.meshgrid(x), ShapeError, "at most one dimension"),
    "split sum": (lambda x: splitting.split(x, [1, 2]), ShapeError, "sum exactly to 2"),
    "split below zero": (lambda x: splitting.split(x, [3, -1]), ShapeError, r"zero or more .*got \[3, -1\]"),
    "split by less": (lambda x: splitting.split(x, -1), ShapeError, "above zero, got split_size=-1"),
    "split sizes": (lambda x: splitting.split_with_sizes(x, [-1, 2, 1]), ShapeError, "zero or more"),
    "chunk below zero": (lambda x: splitting.chunk(x, -1), ShapeError, "greater than 0"),
    "split zero": (lambda x: splitting.split(x, 0), ShapeError, "above zero"),
    "chunk": (lambda x: splitting.chunk(x, 0), ShapeError, "greater than 0"),
    "narrow": (lambda x: select.narrow(x, 0, 1, 3), ShapeError, r"start \(1\) \+ length \(3\) exceeds"),
    "select": (lambda x: select.select(x, 0, 2), IndexOutOfRangeError, r"index 2 out of range.*\[2, 3\]"),
    "tril": (lambda x: diagonal.tril(x[0]), IndexOutOfRangeError, "at least 2 dimensions"),
    "diagonal": (lambda x: diagonal.diagonal(x, 0, 0, -2), ShapeError, "identical"),
    "pad odd": (lambda x: padding.pad(x, (1,)), ShapeError, "pair of numbers"),
    "pad mirror": (lambda x: padding.pad(x, (3, 0), "reflect"), ShapeError, "at most 2 elements to dimension 1"),
    "pad mode": (lambda x: padding.pad(x, (1, 0), "mirror"), ValueError, "constant, reflect, replicate, circular"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_mistakes_are_explained(name):
    """A wrong shape or dimension raises, names what was wrong, and changes nothing."""
    call, kind, message = ERRORS[name]
    x = lucid.tensor(X)
    with pytest.raises(kind, match=message):
        call(x)
    np.testing.assert_array_equal(x.numpy(force=True), X)


def test_scalars_take_dimension_zero():
    """A tensor of no dimension accepts 0 and -1 as its dimension, as in PyTorch."""
    x = lucid.tensor(2.0)
    for out in (shape.flatten(x), shape.unsqueeze(x, -1), shape.reshape(x, 1), shape.ravel(x)):
        assert out.array.shape == (1,)
    for out in (axes.transpose(x, 0, -1), shape.squeeze(x, 0), axes.t(x), axes.flip(x, 0)):
        assert out.array.shape == ()


def test_sums_to_a_size_are_sums():
    """Integers and bools are summed in int64, as by `sum`; where there is nothing to sum the dtype stays."""
    for dtype in (lucid.bool, lucid.uint8, lucid.int32):
        x = lucid.ones(300, 2, dtype=dtype)
        out = x.sum_to_size(1, 2)
        assert out.dtype is lucid.int64
        assert out.tolist() == [[300, 300]]
        assert x.sum_to_size(300, 2).dtype is dtype


@pytest.mark.parametrize("name", ["tensor_split", "hsplit", "vsplit", "dsplit"])
@pytest.mark.parametrize("places", [[2, 1], [0, 3, 2], [-1, 1], (3, -2)])
def test_places_of_a_split(name, places, rng):
    """Parts are NumPy's slices in any order of places, views of the tensor, and all gradients come together."""
    values = rng.standard_normal((4, 4, 4))
    split, numpys = getattr(lucid, name), {"tensor_split": np.array_split}.get(name) or getattr(np, name)
    for each in (places, [1, 1, 3], [-3, -1], (0, 9), ()):
        x = lucid.tensor(values, requires_grad=True)
        parts, expected = split(x, each), numpys(values, each)
        share, total = np.zeros_like(values), 0
        for part, wanted, place in zip(parts, expected, numpys(share, each), strict=True):
            np.testing.assert_array_equal(part.cpu().numpy(force=True), wanted)
            assert shares_memory(part, x) or not wanted.size
            upstream = rng.standard_normal(wanted.shape)
            place += upstream  # a view of `share`
            total = total + (part * lucid.tensor(upstream)).sum()
        total.backward()
        np.testing.assert_allclose(x.grad.numpy(force=True), share)


@pytest.mark.parametrize("offset", range(-4, 5))
def test_diagonals_beyond_the_corners_are_empty(offset):
    """A diagonal is as long as NumPy's, in a view and in a copy; beyond the last one it has no elements."""
    expected = np.diagonal(X, offset)
    x = lucid.tensor(X)
    for found in (lucid.diagonal(x, offset), lucid.linalg.diagonal(x, offset=offset), lucid.diag(x, offset)):
        np.testing.assert_array_equal(found.numpy(force=True), expected)
