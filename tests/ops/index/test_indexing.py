"""What rows cannot say of indexing: mistakes, order of summation, aliasing, large and half-precision sums."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.backends import cpu
from lucid.errors import DtypeError, IndexOutOfRangeError, InplaceError, ShapeError
from lucid.ops.index import accumulation, index_select, indexing, masked_select, select
from lucid.ops.index.accumulation import sums_at
from tests.device import DEVICE, shares_memory
from tests.gradients import numbers

MISTAKES = {
    "int": (lambda x: x[2], IndexOutOfRangeError, "index 2 is out of bounds for dimension 0 with size 2"),
    "negative int": (lambda x: x[:, -4], IndexOutOfRangeError, "index -4 is out of bounds for dimension 1 with size 3"),
    "tensor": (lambda x: x[:, [0, 3]], IndexOutOfRangeError, "index 3 is out of bounds for dimension 1 with size 3"),
    "too many": (lambda x: x[0, 0, 0], IndexOutOfRangeError, "too many indices for tensor of dimension 2: got 3"),
    "two ellipses": (lambda x: x[..., ...], IndexOutOfRangeError, "single ellipsis"),
    "mask": (lambda x: x[lucid.tensor([True])], ShapeError, r"mask \[1\] at index 0 .* \[2, 3\]"),
    "no broadcast": (lambda x: x[[0, 1], [0, 1, 2]], ShapeError, r"broadcast together with shapes \[2\], \[3\]"),
    "float": (lambda x: x[1.5], DtypeError, "got float"),
    "string": (lambda x: x["a"], DtypeError, "got str"),
    "float tensor": (lambda x: x[lucid.tensor([1.0])], DtypeError, "got float32"),
    "bytes": (lambda x: x[lucid.tensor([1], dtype=lucid.uint8)], DtypeError, "mask"),
    "backwards": (lambda x: x[::-1], ValueError, r"greater than zero, got -1; use lucid.flip"),
    "no step": (lambda x: x[:: lucid.tensor(0).item()], ValueError, "greater than zero, got 0"),
    "index_select": (lambda x: index_select.index_select(x, 0, lucid.tensor([-1])), IndexOutOfRangeError, "index -1"),
    "index_select matrix": (
        lambda x: index_select.index_select(x, 0, lucid.tensor([[0]])),
        ShapeError,
        "one dimension",
    ),
    "index_add": (
        lambda x: index_select.index_add(x, 0, lucid.tensor([0]), x),
        ShapeError,
        r"shape \[1, 3\], got \[2, 3\]",
    ),
    "index_add alpha": (
        lambda x: index_select.index_add(x.long(), 0, lucid.tensor([0, 1]), x.long(), alpha=0.5),
        DtypeError,
        "an integer",
    ),
    "index_reduce": (
        lambda x: lucid.index_reduce(x, 0, lucid.tensor([0]), lucid.ones(1, 2, dtype=x.dtype), "amax"),
        ShapeError,
        r"shape \[1, 3\], got \[1, 2\]",
    ),
    "index_reduce dim": (
        lambda x: lucid.index_reduce(x, 2, lucid.tensor([0]), x[:1], "amax"),
        IndexOutOfRangeError,
        r"range of \[-2, 1\], but got 2",
    ),
    "index_copy": (
        lambda x: index_select.index_copy(x, 0, lucid.tensor([0, 1]), lucid.ones(2, 3)),
        DtypeError,
        "like input",
    ),
    "masked_fill": (
        lambda x: masked_select.masked_fill(x, lucid.tensor([1]), 0),
        DtypeError,
        "mask of bools, got int64",
    ),
    "index_fill value": (
        lambda x: index_select.index_fill(x, 0, lucid.tensor([0]), x[0]),
        ShapeError,
        r"a number or a 0-dim tensor, got shape \[3\]",
    ),
    "masked_fill value": (lambda x: masked_select.masked_fill(x, x > 1, x), ShapeError, "0-dim tensor"),
    "masked_fill one value": (lambda x: masked_select.masked_fill(x, x > 1, lucid.ones(1)), ShapeError, "0-dim tensor"),
    "masked_scatter": (lambda x: masked_select.masked_scatter(x, x >= 0, x[0]), ShapeError, "source has only 3"),
}


NO_INDICES = {
    "float": lambda: 1.5,
    "complex": lambda: 1j,
    "string": lambda: "a",
    "set": lambda: {0},
    "dict": lambda: {0: 1},
    "object": object,
    "NumPy's float": lambda: np.float32(1),
    "float beside an int": lambda: (0, 1.5),
    "list of floats": lambda: [1.5],
    "float tensor": lambda: lucid.ones(2),
    "complex tensor": lambda: lucid.ones(2, dtype=lucid.complex64),
    "mask of another shape": lambda: lucid.ones(3, dtype=lucid.bool),
    "list of bools": lambda: [True],
    "no broadcast": lambda: ([0, 1], [0, 1, 2]),
}


@pytest.mark.usefixtures("indices_are_read")
@pytest.mark.parametrize("name", NO_INDICES)
def test_what_is_no_index_is_an_index_error(name):
    """Reading and assigning raise Python's error of what stands in brackets, which programs that try one catch."""
    x, index = lucid.tensor(np.arange(6.0).reshape(2, 3)), NO_INDICES[name]()
    with pytest.raises(IndexError, match=r"indices|mask|shape mismatch"):
        x[index]
    with pytest.raises(IndexError, match=r"indices|mask|shape mismatch"):
        x[index] = 0.0
    np.testing.assert_array_equal(x.numpy(force=True), np.arange(6.0).reshape(2, 3))


@pytest.mark.usefixtures("indices_are_read")
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(name):
    """A wrong index raises, says which and of what size, and changes nothing."""
    call, kind, message = MISTAKES[name]
    x = lucid.tensor(np.arange(6.0).reshape(2, 3))
    with pytest.raises(kind, match=message):
        call(x)
    np.testing.assert_array_equal(x.numpy(force=True), np.arange(6.0).reshape(2, 3))


BAD_VALUES = {
    "shape": (0, np.ones(2), ShapeError, r"shape \[2\] cannot be broadcast to indexing result of shape \[3\]"),
    "picked shape": (([0, 1],), np.ones((3, 3)), ShapeError, r"shape \[3, 3\] .* \[2, 3\]"),
    "complex": (0, 1j, DtypeError, "complex"),
    "outside": (([0, 5],), 1.0, IndexOutOfRangeError, "index 5"),
}


@pytest.mark.usefixtures("indices_are_read")
@pytest.mark.parametrize("name", BAD_VALUES)
def test_a_failed_assignment_changes_nothing(name):
    """What cannot be assigned raises before anything was written or counted as a change."""
    index, value, kind, message = BAD_VALUES[name]
    x = lucid.tensor(np.arange(6.0).reshape(2, 3))
    with pytest.raises(kind, match=message):
        x[index] = value
    np.testing.assert_array_equal(x.numpy(force=True), np.arange(6.0).reshape(2, 3))
    assert x._version == 0


@pytest.mark.parametrize("index", [0, slice(1), [0], "mask"], ids=["int", "slice", "list", "mask"])
def test_a_leaf_is_not_assigned_to(index):
    """Assignment to a leaf that requires grad raises, and is allowed under no_grad."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    index = lucid.tensor([True, False]) if index == "mask" else index
    with pytest.raises(InplaceError, match="leaf"):
        x[index] = 5.0
    assert x.tolist() == [1.0, 2.0]
    with lucid.no_grad():
        x[index] = 5.0
    assert x.tolist() == [5.0, 2.0]


def test_assignment_is_seen_by_saved_tensors(rng):
    """A value that backward needs and that an assignment changed makes backward raise."""
    x = lucid.tensor(rng.standard_normal(4), requires_grad=True)
    for index in (0, [1, 2], lucid.tensor([True, False, True, False])):
        y = x * 1
        z = y * y
        y[index] = 0.0
        with pytest.raises(InplaceError):
            z.sum().backward()


def test_overlapping_parts_of_one_tensor():
    """A part assigned to another part of the same memory is read before it is overwritten."""
    x = lucid.tensor([1.0, 2.0, 3.0, 4.0])
    x[1:] = x[:-1]
    assert x.tolist() == [1.0, 1.0, 2.0, 3.0]


def test_an_index_is_saved_not_aliased(rng):
    """An index tensor changed after indexing makes backward raise: its gradient would go elsewhere."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    index = lucid.tensor([0, 2])
    out = x[index]
    index[0] = 1
    with pytest.raises(InplaceError):
        out.sum().backward()


def direct_sums(shape, dims, indices, values):
    """Return the sums, one element after the other in float64."""
    out = np.zeros(shape)
    key = [slice(None)] * len(shape)
    for dim, index in zip(dims, indices, strict=True):
        key[dim] = index
    np.add.at(out, tuple(key), values.astype(np.float64))
    return out


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("rows", [3, 70, 3000, 100_000])
@pytest.mark.parametrize("width", [1, 5, 64])
def test_sums_of_rows(rows, width, compiled, rng, monkeypatch):
    """Rows that repeat, few times and often, add up; every path of the sum gives the direct sum."""
    monkeypatch.setattr(cpu, "compiled", compiled)
    count = 600 if rows < 100_000 else 3000
    spread = np.minimum(rng.integers(0, rows, count), rng.integers(0, rows, count) // 3)
    index = np.where(rng.random(count) < 0.5, spread, spread - rows)
    values = rng.standard_normal((count, width))
    expected = direct_sums((rows, width), (0,), (index,), values)
    np.testing.assert_allclose(sums_at(np, (rows, width), (0,), (index,), values), expected, atol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("bits", [8, 16, 20])
def test_rows_whose_numbers_share_bits(bits, compiled, rng, monkeypatch):
    """Rows that are a power of two apart are different ones, however they alternate."""
    monkeypatch.setattr(cpu, "compiled", compiled)
    rows = 2**bits + 3
    index = np.tile([1, 1 + 2**bits, 2, 1, 2 + 2**bits], 30)
    values = rng.standard_normal((len(index), 20))
    expected = direct_sums((rows, 20), (0,), (index,), values)
    np.testing.assert_allclose(sums_at(np, (rows, 20), (0,), (index,), values), expected, atol=1e-12)


def test_sums_over_random_dimensions(rng):
    """Indices of any dimensions, apart or neighbours, broadcast and add up to the direct sum."""
    for _ in range(200):
        ndim = int(rng.integers(1, 5))
        shape = tuple((rng.integers(1, 5, ndim) * rng.choice([1, 4])).tolist())
        dims = tuple(sorted(rng.choice(ndim, rng.integers(1, ndim + 1), replace=False).tolist()))
        common = tuple((rng.integers(1, 6, rng.integers(0, 3)) * rng.choice([1, 5])).tolist())
        indices = [rng.integers(-shape[d], shape[d], [n if rng.random() < 0.8 else 1 for n in common]) for d in dims]
        key = [slice(None)] * ndim
        for dim, index in zip(dims, indices, strict=True):
            key[dim] = index
        values = rng.standard_normal(np.zeros(shape)[tuple(key)].shape)
        expected = direct_sums(shape, dims, indices, values)
        np.testing.assert_allclose(sums_at(np, shape, dims, indices, values), expected, atol=1e-12)


@pytest.mark.cpu("a device adds in any order")
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int64, np.bool_])
@pytest.mark.parametrize(
    ("shape", "dims", "count"),
    [
        ((50,), (0,), (3000,)), ((40, 3), (0,), (500,)), ((300, 20), (0,), (2000,)), ((9, 30), (0,), (3000,)),
        ((20, 300), (1,), (2000,)), ((4, 200, 17), (1,), (40, 30)), ((6, 40, 5, 30), (1, 2), (900,)),
        ((30, 40, 20), (0, 2), (700,)), ((200, 64), (0,), (60,)), ((70_000, 18), (0,), (400,)), ((5, 7), (0, 1), (99,)),
    ],
)  # fmt: skip
def test_each_repetition_is_added_in_turn(shape, dims, count, dtype, rng):
    """Sums are to the bit those of one addition after another, of few, many and one repeated row, in any layout."""
    for most in (1, 2, 10**6):
        indices = [rng.integers(-min(shape[d], most), min(shape[d], most), count) for d in dims]
        key = tuple([indices[dims.index(d)] if d in dims else slice(None) for d in range(len(shape))])
        values = rng.standard_normal(np.zeros(shape)[key].shape).astype(dtype)
        values = values + dtype(1j) * values if dtype is np.complex64 else values
        for layout in (values, np.asfortranarray(values), np.broadcast_to(values.reshape(-1)[0], values.shape)):
            start = rng.standard_normal(shape).astype(dtype)
            expected = start.copy()
            np.add.at(expected, key, layout)
            accumulation.add_at(np, start, dims, indices, layout)
            np.testing.assert_array_equal(start, expected)


@pytest.mark.cpu("of arrays of NumPy's")
def test_sums_into_gaps(rng):
    """What is added to may lie in any order."""
    out, index, values = np.zeros((6, 50)).T, rng.integers(0, 50, 400), rng.standard_normal((400, 6))
    accumulation.add_at(np, out, (0,), (index,), values)
    np.testing.assert_allclose(out, direct_sums((50, 6), (0,), (index,), values), atol=1e-12)


@pytest.mark.cpu("indices on a device are not read")
def test_indices_are_looked_at_once(rng, monkeypatch):
    """NumPy refuses what is out of range: only then, or where nothing is selected, is an index looked through."""
    looked = []
    outside = select.outside
    monkeypatch.setattr(select, "outside", lambda *args: looked.append(args) or outside(*args))
    x, good = lucid.tensor(rng.standard_normal((5, 4)), device="cpu"), lucid.tensor([0, -5, 4], device="cpu")
    for found, expected in ((x[good], [0, 0, 4]), (x.T[:, good].T, [0, 0, 4])):
        np.testing.assert_array_equal(found.numpy(), x.numpy()[expected])
    assert not looked
    for wrong in ([5], [0, -6]):
        with pytest.raises(
            IndexOutOfRangeError, match=rf"index {wrong[-1]} is out of bounds for dimension 0 with size 5"
        ):
            x[lucid.tensor(wrong, device="cpu")]
    with pytest.raises(IndexOutOfRangeError, match="index 7"):
        x[lucid.tensor([7], device="cpu"), lucid.tensor([], dtype=lucid.int64, device="cpu")]
    assert len(looked) == 3


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_index_select_along_any_dimension(dim, rng):
    """Selected are the slices that NumPy takes, of any layout, also by an index of more dimensions, with gradients."""
    values = rng.standard_normal((5, 6, 7))
    for array in (values, values.T.copy().T, values[:, ::-1]):
        index = rng.integers(-array.shape[dim], array.shape[dim], (3, 4))
        x = lucid.tensor(array, requires_grad=True)
        key = (slice(None),) * dim
        found = x[(*key, lucid.tensor(index))]
        np.testing.assert_array_equal(numbers(found), np.take(array, index, dim))
        upstream = rng.standard_normal(found.shape)
        found.backward(lucid.tensor(upstream))
        expected = np.zeros(array.shape)
        np.add.at(expected, (*key, index), upstream)
        np.testing.assert_allclose(numbers(x.grad), expected, atol=1e-12)
        others = index % 5
        np.testing.assert_array_equal(
            numbers(x[:, lucid.tensor(others), lucid.tensor(others - 1)]), array[:, others, others - 1]
        )
        flat = index.reshape(-1) % array.shape[dim]
        np.testing.assert_array_equal(
            numbers(lucid.index_select(x, dim, lucid.tensor(flat))), np.take(array, flat, dim)
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_sum_in_float32(dtype, rng):
    """A thousand halves of one place add up without losing those that are small beside the sum."""
    table = lucid.zeros(4, 3, dtype=getattr(lucid, dtype), requires_grad=True)
    index = lucid.tensor(np.full(1000, 2))
    upstream = lucid.tensor(np.full((1000, 3), 0.25), dtype=getattr(lucid, dtype))
    table[index].backward(upstream)
    assert table.grad.dtype == getattr(lucid, dtype)
    assert table.grad.to(lucid.float32).tolist() == [[0.0] * 3, [0.0] * 3, [250.0] * 3, [0.0] * 3]


def test_sums_repeat_bitwise(rng):
    """On the CPU the same gradient comes out every time, down to the last bit."""
    index = lucid.tensor(rng.integers(0, 50, 5000))
    upstream = lucid.tensor(rng.standard_normal((5000, 16)).astype(np.float32))
    grads = []
    for _ in range(3):
        table = lucid.zeros(50, 16, requires_grad=True)
        table[index].backward(upstream)
        grads.append(table.grad.numpy(force=True))
    assert all((grad == grads[0]).all() for grad in grads)


@pytest.mark.cpu("on another device a tensor is not read back, and picks a copy")
def test_tensors_of_one_integer_index_like_integers():
    """A tensor of no dimension, a NumPy integer and a Python integer give the same view."""
    x = lucid.tensor([[1, 2], [3, 4]])
    for index in (1, np.int32(1), lucid.tensor(1), lucid.tensor(-1), np.array(1)):
        assert x[index]._base is x
        assert x[index].tolist() == [3, 4]
    ends = lucid.tensor(0), lucid.tensor(1)
    assert x[ends[0] : ends[1]].tolist() == [[1, 2]]


def test_windows_share_memory(rng):
    """Windows are a view whose backward adds up what overlaps."""
    x = lucid.tensor(rng.standard_normal(6), requires_grad=True)
    windows = select.unfold(x, 0, 3, 1)
    assert shares_memory(windows, x)
    upstream = rng.standard_normal((4, 3))
    windows.backward(lucid.tensor(upstream))
    expected = np.zeros(6)
    for start in range(4):
        expected[start : start + 3] += upstream[start]
    np.testing.assert_allclose(x.grad.numpy(force=True), expected)


def test_index_put_takes_masks(rng):
    """index_put writes where a mask is true, as assignment does."""
    x = lucid.tensor(rng.standard_normal((2, 3)))
    mask = lucid.tensor([[True, False, True], [False, True, False]])
    out = indexing.index_put(x, (mask,), lucid.tensor(np.array([7.0, 8.0, 9.0])))
    np.testing.assert_array_equal(out.numpy(force=True)[mask.numpy(force=True)], [7.0, 8.0, 9.0])
    np.testing.assert_array_equal(
        out.numpy(force=True)[~mask.numpy(force=True)], x.numpy(force=True)[~mask.numpy(force=True)]
    )


def test_index_put_takes_a_single_bool(rng):
    """True names every element and False none, as in assignment; the shape stays."""
    x = lucid.tensor(rng.standard_normal((2, 3)))
    assert indexing.index_put(x, (lucid.tensor(True),), lucid.tensor(7.0).double()).tolist() == [[7.0] * 3] * 2
    assert indexing.index_put(x, (lucid.tensor(False),), lucid.tensor(7.0).double()).tolist() == x.tolist()


@pytest.mark.parametrize("array", [[[0.0, 2.0], [-1.0, 0.0]], [[True, False]], [0, 3, 4], 5, False, []], ids=str)
def test_where_of_a_condition_alone(array):
    """The indices of what is not zero, one tensor for each dimension, as NumPy's: they index the condition."""
    condition = lucid.tensor(array)
    found = lucid.where(condition)
    expected = np.nonzero(np.atleast_1d(np.asarray(array)))
    assert isinstance(found, tuple)
    assert [part.tolist() for part in found] == [part.tolist() for part in expected]
    assert all(part.dtype == lucid.int64 for part in found)
    assert [part.tolist() for part in lucid.nonzero(condition, as_tuple=True)] == [part.tolist() for part in expected]
    # rows of indices, of which those of a number have none
    for rows in (lucid.nonzero(condition), lucid.argwhere(condition)):
        assert rows.shape == np.argwhere(array).shape
        assert rows.tolist() == np.argwhere(array).tolist()


@pytest.mark.parametrize(
    ("given", "missing"), [((1.0,), {}), ((), {"input": 1.0}), ((), {"other": 1.0})], ids=["first", "input", "other"]
)
def test_where_with_one_of_two_values(given, missing):
    condition = lucid.tensor([True, False])
    with pytest.raises(TypeError, match="expected a condition, input and other, or a condition alone, got no"):
        lucid.where(condition, *given, **missing)
    for none in ((None,), (None, None), (1.0, None), (None, 1.0)):
        with pytest.raises(TypeError):
            lucid.where(condition, *none)


@pytest.mark.parametrize("index", [[], ([], slice(1, 3)), (slice(None), []), ([], []), (0, []), (..., [])], ids=str)
def test_an_empty_list_selects_nothing(index, rng):
    """It is one of integers: what is read is empty, in NumPy's shape, and what is written changes nothing."""
    values = rng.standard_normal((2, 3))
    x = lucid.tensor(values)
    whole = index if isinstance(index, tuple) else (index,)
    expected = values[tuple(np.array(part, int) if part == [] else part for part in whole)]
    assert x[index].shape == expected.shape
    x[index] = 7
    np.testing.assert_array_equal(x.numpy(force=True), values)


ONE, FIRST, NEW = (lucid.tensor(values, device=DEVICE) for values in (2.0, [0], [5.0]))
ALONG = {
    "index_select": (FIRST,), "index_add": (FIRST, NEW), "index_copy": (FIRST, NEW), "index_fill": (FIRST, 7.0),
    "index_reduce": (FIRST, NEW, "prod"), "scatter": (FIRST, NEW), "scatter_add": (FIRST, NEW),
    "scatter_reduce": (FIRST, NEW, "sum"),
}  # fmt: skip


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", ALONG)
def test_along_no_dimension(name, dim):
    """A tensor without dimensions counts as a vector of one element, and stays without dimensions; so do its grads."""
    x = ONE.clone().requires_grad_()
    out = getattr(x, name)(dim, *ALONG[name])
    assert out.shape == ()
    row = ONE.reshape(1).requires_grad_()
    expected = getattr(row, name)(dim, *ALONG[name])
    assert [out.item()] == expected.tolist()
    (grad,), (other,) = lucid.autograd.grad(out, x), lucid.autograd.grad(expected.sum(), row)
    assert grad.shape == ()
    assert [grad.item()] == other.tolist()


@pytest.mark.parametrize("size", [0, 1])
def test_windows_of_a_number(size):
    """A tensor without dimensions has one window, of no or one element, and no dimension that counts windows."""
    x = ONE.clone().requires_grad_()
    out = x.unfold(0, size, 1)
    assert out.tolist() == [2.0][:size]
    out.sum().backward()
    assert x.grad.item() == size


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64"]
)
def test_rows_named_many_times_keep_their_dtype(dtype, rng):
    """Rows of each dtype are added up as by a loop, few of them and many, and integers wrap around."""
    for count, width in ((3, 2), (20, 300), (2000, 5)):
        places, rows = rng.integers(0, 3, count), rng.integers(0, 3, (count, width)).astype(dtype)
        expected = np.zeros((4, width), dtype)
        with np.errstate(over="ignore"):
            for place, row in zip(places, rows, strict=True):
                expected[place] += row
        x, index, source = lucid.tensor(np.zeros_like(expected)), lucid.tensor(places), lucid.tensor(rows)
        for got in (x.index_add(0, index, source), x.index_put((index,), source, accumulate=True)):
            assert got.dtype.name == dtype
            np.testing.assert_array_equal(got.numpy(force=True), expected)


@pytest.mark.cpu("on a device nothing is launched to select nothing, and kernels check indices")
@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 4), (2, 0, 3), (0, 0)])
def test_an_index_out_of_range_where_nothing_is_selected(shape):
    """An index is checked also where other dimensions are empty, as PyTorch does."""
    x = lucid.zeros(shape, device="cpu")
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        x[..., lucid.tensor([7], device="cpu")]
