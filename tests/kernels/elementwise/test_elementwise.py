"""Elementwise kernels walk through any strides, broadcast, write in place and cast as NumPy does."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import lucid
from lucid.cuda.launch.layout import layouts_of
from lucid.cuda.source.signature import constant
from tests.gradients import numbers
from tests.kernels.near import on_device

MAX_DIMS = constant("elementwise.cuh", "MAX_DIMS")
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8")


def numpy_dtype(name):
    """Return NumPy's dtype of a name of lucid's."""
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def small_integers(rng, shape, dtype):
    """Draw numbers that every dtype holds, as their sums and differences."""
    return np.asarray(rng.integers(3, 50, shape)).astype(numpy_dtype(dtype))


def part_of(tensor, index):
    """Return a tensor that shares the memory of a part of another one, backwards too."""
    return lucid.as_tensor(tensor.array[index])


# Shapes of two operands, and a view that is taken of each. Sizes lie around packs, warps and blocks.
PAIRS = {
    **{f"{n} elements": ((n,), (n,), None) for n in (0, 1, 3, 4, 31, 33, 255, 1023, 1025)},
    "no rows": ((0, 5), (1, 5), None),
    "no dimension": ((), (), None),
    "one element for many": ((1025,), (1,), None),
    "rows that begin between packs": ((6, 33), (6, 33), lambda x: x[:, :32]),
    "no dimension beside a matrix": ((3, 8), (), None),
    "unaligned": ((66,), (66,), lambda x: x[1:]),
    "one of every two": ((66,), (66,), lambda x: x[::2]),
    "backwards": ((67,), (67,), lambda x: x[::-1]),
    "backwards in steps": ((67,), (67,), lambda x: x[60:2:-3]),
    "transposed": ((8, 19), (8, 19), lambda x: x.T),
    "permuted": ((2, 3, 4, 5), (2, 3, 4, 5), lambda x: x.transpose(2, 0, 3, 1)),
    "columns of a matrix": ((6, 32), (6, 32), lambda x: x[:, 16:]),
    "unaligned columns of a matrix": ((6, 32), (6, 32), lambda x: x[:, 3:19]),
    "rows in steps": ((7, 16), (7, 16), lambda x: x[::2]),
    "a row for each row": ((5, 32), (32,), None),
    "an uneven row for each row": ((5, 33), (33,), None),
    "a column for each column": ((5, 32), (5, 1), None),
    "a row and a column": ((32,), (5, 1), None),
    "channels": ((2, 3, 4, 8), (3, 1, 1), None),
    "broadcast inside": ((2, 16, 3, 16), (2, 1, 3, 1), None),
    "sizes of one": ((1, 5, 1, 16), (5, 1, 16), None),
    "as many dimensions as there may be": ((2,) * MAX_DIMS, (2, 1) * (MAX_DIMS // 2), None),
    "more dimensions than there may be": ((2,) * (MAX_DIMS + 1), (2, 1) * (MAX_DIMS // 2) + (2,), None),
    "more dimensions than there may be, but mergeable": ((2,) * 12, (2,) * 12, None),
}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_every_layout(pair, dtype, rng):
    """A difference is NumPy's, element by element, in a new array in C order, whatever the layout of the operands."""
    a_shape, b_shape, view = pair
    a, b = small_integers(rng, a_shape, dtype), small_integers(rng, b_shape, dtype)
    there = [on_device(a).array, on_device(b).array]
    here = [a, b]
    if view is not None:
        there, here = [view(x) for x in there], [view(x) for x in here]
    out = lucid.as_tensor(there[0]) - lucid.as_tensor(there[1])
    expected = here[0].astype(np.float64) - here[1].astype(np.float64)
    assert out.array.flags.c_contiguous
    assert out.array.dtype == numpy_dtype(dtype)
    assert out.shape == expected.shape
    if numpy_dtype(dtype).kind == "u":
        expected = expected % 256
    np.testing.assert_array_equal(numbers(out).astype(np.float64), expected)


@pytest.mark.gpu
def test_one_operand_of_another_layout(rng):
    """Packs are read from one operand and single elements from another where their layouts differ."""
    a, b = rng.standard_normal((8, 12)), rng.standard_normal((12, 8))
    there = on_device(a).array, on_device(b).array
    for mine, other in ((there[0], there[1].T), (there[0][::-1], there[1].T), (there[0][:, ::-1], there[1].T[::-1])):
        got = numbers(lucid.as_tensor(mine) * lucid.as_tensor(other))
        expected = numbers(lucid.as_tensor(mine)) * numbers(lucid.as_tensor(other))
        np.testing.assert_array_equal(got, expected)


@pytest.mark.gpu
def test_zero_strides(rng):
    """An expanded operand is read where it is."""
    x = rng.standard_normal((4, 1, 8))
    wide = on_device(x).expand(4, 6, 8)
    np.testing.assert_array_equal(numbers(wide + wide), np.broadcast_to(2 * x, (4, 6, 8)))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_numbers_are_rounded_to_the_dtype(dtype, rng):
    """A Python number beside an array is first rounded to the array's dtype, as on the CPU."""
    x = rng.standard_normal(37)
    here, there = (lucid.tensor(x, dtype=getattr(lucid, dtype), device=d) for d in ("cpu", "cuda"))
    for op in (
        lambda t: t * 0.1,
        lambda t: 0.1 - t,
        lambda t: t == 0.1,
        lambda t: lucid.maximum(t, 0.3),
        lambda t: t + 7,
    ):
        expected, got = op(here), op(there)
        assert got.dtype is expected.dtype
        np.testing.assert_array_equal(numbers(got), numbers(expected))
    tenth = lucid.tensor([0.1], dtype=getattr(lucid, dtype), device="cuda")
    assert bool((tenth == 0.1).item())


@pytest.mark.gpu
def test_large_integers_keep_their_digits():
    """Numbers beside int64 are not rounded to a floating-point type."""
    x = on_device(np.array([0, 1, -1]))
    assert (x + (2**62 + 1)).tolist() == [2**62 + 1, 2**62 + 2, 2**62]


@pytest.mark.gpu
def test_integers_wrap_around():
    """Sums, differences and products of integers are taken modulo their range, as in NumPy."""
    for dtype in ("int8", "uint8", "int16", "int32", "int64"):
        info = np.iinfo(dtype)
        a = np.array([info.max, info.min, info.max, info.min, 3], dtype)
        b = np.array([1, 1, info.max, info.min, 100], dtype)
        for op in (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: -x, lambda x, y: x * x):
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(numbers(op(on_device(a), on_device(b))), op(a, b))
        np.testing.assert_array_equal(numbers(on_device(a).abs()), np.abs(a))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "target",
    [np.s_[::2], np.s_[:, 1:5], np.s_[:, 4:8], np.s_[:, :5], np.s_[::-1, ::3], np.s_[2], np.s_[..., 4]],
    ids=str,
)
def test_in_place_on_views(target, rng):
    """In-place sums, copies and fills write to the view's elements, and to no others."""
    x = rng.standard_normal((6, 12)).astype(np.float32)
    there = on_device(x)
    values = rng.standard_normal(x[target].shape).astype(np.float32)
    part = part_of(there, target)
    part.add_(on_device(values))
    x[target] += values
    np.testing.assert_array_equal(numbers(there), x)
    part.copy_(on_device(values.astype(np.float64)))
    x[target] = values
    np.testing.assert_array_equal(numbers(there), x)
    part.fill_(2.5)
    x[target] = 2.5
    np.testing.assert_array_equal(numbers(there), x)
    part.zero_()
    x[target] = 0
    np.testing.assert_array_equal(numbers(there), x)


@pytest.mark.gpu
@pytest.mark.parametrize(("into", "of"), [(np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[::-1], np.s_[:])])
def test_copies_within_one_array(into, of, rng):
    """A copy to overlapping memory takes the values from before."""
    x = rng.standard_normal(2000)
    there = on_device(x)
    part_of(there, into).copy_(part_of(there, of))
    x[into] = x[of].copy()
    np.testing.assert_array_equal(numbers(there), x)


@pytest.mark.gpu
def test_gradients_through_changed_views(rng):
    """The gradient of what a change of a view replaced is zero, as on the CPU."""
    x, values, upstream = rng.standard_normal((5, 6)), rng.standard_normal((5, 2)), rng.standard_normal((5, 6))
    grads = []
    for device in ("cpu", "cuda"):
        leaf = lucid.tensor(x, device=device, requires_grad=True)
        new = lucid.tensor(values, device=device, requires_grad=True)
        y = leaf * 2
        y[:, 1:3] = new * 3
        y.backward(lucid.tensor(upstream, device=device))
        grads.append((numbers(leaf.grad), numbers(new.grad)))
    for here, there in zip(*grads, strict=True):
        np.testing.assert_array_equal(there, here)


@pytest.mark.gpu
@pytest.mark.parametrize("source", [*DTYPES, "bool"])
def test_casts(source, rng):
    """Between all dtypes a cast gives what it gives on the CPU, from any strides."""
    x = (rng.integers(0, 100, (5, 7)) + rng.choice([0.0, 0.25, 0.5, 1 / 3], (5, 7))).astype(numpy_dtype(source))
    for target in (*DTYPES, "bool"):
        dtype = getattr(lucid, target)
        for view in (lambda t: t, lambda t: t.T, lambda t: t[1:, ::-2]):
            here, there = (lucid.as_tensor(view(lucid.tensor(x, device=d).array)).to(dtype) for d in ("cpu", "cuda"))
            if source != target:
                assert there.array.flags.c_contiguous
            assert there.dtype is dtype
            np.testing.assert_array_equal(numbers(there), numbers(here))


@pytest.mark.gpu
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
def test_casts_of_what_does_not_fit(source):
    """NaN and numbers that no int32 holds become the lowest integer, or wrap around from it; the others wrap around."""
    x = lucid.tensor([np.nan, np.inf, -np.inf, 300.0, -1.0, -2.5], device="cuda").to(getattr(lucid, source))
    for target in ("uint8", "int8", "int16", "int32"):
        wanted = np.array([*[-(2**31)] * 3, 300, -1, -2]).astype(target)
        assert x.to(getattr(lucid, target)).tolist() == wanted.tolist()
    assert x.to(lucid.int64).tolist() == [*[-(2**63)] * 3, 300, -1, -2]
    assert x.to(lucid.bool).tolist() == [True] * 6


@pytest.mark.gpu
def test_casts_round_once():
    """float64 becomes a half type by one rounding: through float32 these would go to the even neighbour."""
    x = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-8 + 2.0**-40])
    there = on_device(x)
    assert there.to(lucid.float16).tolist()[0] == 1 + 2.0**-10
    assert there.to(lucid.bfloat16).tolist()[1] == 1 + 2.0**-7


@pytest.mark.gpu
def test_shapes_that_do_not_fit():
    """Shapes that cannot be broadcast are refused with the shapes named, and nothing is launched."""
    with pytest.raises(lucid.errors.ShapeError, match=r"\(3,\).*\(4,\)"):
        on_device(np.zeros(3)) + on_device(np.zeros(4))


def elements_of(sizes, strides):
    """Return the offsets that nested loops over sizes and strides visit, outermost first."""
    return [sum(i * s for i, s in zip(place, strides, strict=True)) for place in itertools.product(*map(range, sizes))]


def test_layouts_of_more_elements_than_32_bits():
    """Sizes and offsets beyond 32 bits are kept whole."""
    rows, columns = 1 << 20, 1 << 13
    operand = (rows, columns), (2 * columns * 4, 4), 4
    _, aligned, general = layouts_of([operand], None, 4, 4)
    words = np.frombuffer(aligned.parameter, np.int64)
    packs, tail, dims = words[:3]
    assert (packs, tail, dims) == (rows * columns // 4, 0, 2)
    assert words[3:5].tolist() == [columns // 4, rows]
    assert words[3 + 2 * MAX_DIMS :][:2].tolist() == [1, 2 * columns]
    assert aligned.grid * aligned.block >= packs
    assert general.grid * general.block >= rows * columns


def test_layouts_are_packed_where_they_can_be():
    """Packs are used for dense rows with broadcast operands, and not for rows that begin between them."""

    def packed(*operands):
        _, aligned, _ = layouts_of(operands, None, 4, 4)
        return aligned.packed

    dense = (6, 8), (32, 4), 4
    assert packed(dense, dense)
    assert packed(dense, None)
    assert packed(dense, ((8,), (4,), 4))
    assert packed(dense, ((6, 1), (4, 4), 4))
    assert packed(((6, 7), (28, 4), 4))  # one run of 42, with a tail
    assert not packed(((6, 7), (28, 4), 4), ((7,), (4,), 4))  # rows of 7
    assert not packed(((6, 8), (4, 24), 4))
    assert not packed(((6, 8), (36, 4), 4))
    assert not packed(((3,), (4,), 4))
