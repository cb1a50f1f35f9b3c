"""What rows cannot say of gathering and joining: mistakes, dtypes, scalars."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DeviceError, DtypeError, IndexOutOfRangeError, LucidError, ShapeError
from lucid.ops.index import gather as gathering
from lucid.ops.index import scatter as scattering
from lucid.ops.shape import joining
from tests.device import shares_memory


def index(*values):
    """Return an index tensor."""
    return lucid.tensor(list(values))


MISTAKES = {
    "negative": (lambda x: gathering.gather(x, 0, index([-1])), IndexOutOfRangeError, "index -1 is out of bounds"),
    "too large": (lambda x: gathering.gather(x, 1, index([3])), IndexOutOfRangeError, "index 3 .* dimension 1"),
    "rank": (lambda x: gathering.gather(x, 0, index(0)), ShapeError, "as many dimensions"),
    "longer": (lambda x: gathering.gather(x, 0, index([0, 0, 0, 0])), ShapeError, "dimension 1 must not exceed"),
    "float index": (lambda x: gathering.gather(x, 0, x), DtypeError, "got float32"),
    "list index": (lambda x: gathering.gather(x, 0, [[0]]), DtypeError, "got list"),
    "no source": (lambda x: scattering.scatter(x, 0, index([0])), ValueError, "either src or value"),
    "reduce": (lambda x: scattering.scatter(x, 0, index([0]), 1.0, reduce="max"), ValueError, "'max'"),
    "source dtype": (lambda x: scattering.scatter(x, 0, index([0]), index([0])), DtypeError, "got int64"),
    "short source": (lambda x: scattering.scatter_add(x, 0, index([0, 1]), x[:, :1]), ShapeError, "at least as long"),
    "take": (lambda x: gathering.take(x, index(6)), IndexOutOfRangeError, "index 6 on a tensor of 6 elements"),
    "classes": (lambda x: gathering.one_hot(index(0, 3), 3), IndexOutOfRangeError, "index 3"),
    "negative class": (lambda x: gathering.one_hot(index(0, -1)), IndexOutOfRangeError, "index -1"),
    "no classes": (lambda x: gathering.one_hot(index(0)[:0]), ShapeError, "expected num_classes"),
    "no class": (lambda x: gathering.one_hot(index(0)[:0], 0), ShapeError, "above zero, or -1, got 0"),
    "bool index": (lambda x: gathering.gather(x[0], 0, index(True)), DtypeError, "int32 or int64, got bool"),
    "uint8 index": (lambda x: gathering.take(x, index(1).to(lucid.uint8)), DtypeError, "int32 or int64, got uint8"),
    "named": (lambda x: scattering.scatter(x, 0, index([2]), 1.0), IndexOutOfRangeError, "^scatter: index 2 "),
    "source precision": (lambda x: scattering.scatter(x, 0, index([0]), x.double()), DtypeError, "got float64"),
    "windows": (lambda x: x.unfold(0, 2, 0), ShapeError, "a step above zero, got 0"),
    "no step": (lambda x: lucid.slice_scatter(x, x, step=0), ShapeError, "^slice_scatter: expected a step above zero"),
    "value": (lambda x: x.__setitem__(index(0, 1), x.new_zeros(2, 2, 3)), ShapeError, "to indexing result of shape"),
    "cat nothing": (lambda x: joining.cat([]), ShapeError, "non-empty list"),
    "cat sizes": (lambda x: joining.cat([x, x[:, :2]]), ShapeError, r"\[2, 2\] for tensor number 1"),
    "cat a scalar": (lambda x: joining.cat([x[0], x[0, 0]]), ShapeError, r"\[\] for tensor number 1"),
    "cat scalars": (lambda x: joining.cat([x[0, 0], x[0, 1]]), ShapeError, "stack"),
    "stack": (lambda x: joining.stack([x, x[:1]]), ShapeError, r"\[2, 3\] at entry 0 and \[1, 3\] at entry 1"),
}  # fmt: skip


@pytest.mark.usefixtures("indices_are_read")
@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(name):
    """A wrong index, shape or dtype raises and says which, and changes nothing."""
    call, kind, message = MISTAKES[name]
    x = lucid.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    with pytest.raises(kind, match=message) as caught:
        call(x)
    assert isinstance(caught.value, LucidError) or kind is ValueError
    np.testing.assert_array_equal(x.numpy(force=True).reshape(-1), np.arange(6))


def test_joining_promotes(rng):
    """Tensors of several dtypes join in their common one, and each gets its gradient in its own."""
    a = lucid.tensor(rng.standard_normal(2), dtype=lucid.float16, requires_grad=True)
    b = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    for out in (joining.cat([a, b, lucid.tensor([1, 2])]), joining.stack([a, b[:2]])):
        assert out.dtype == lucid.float64
        a.grad = b.grad = None
        out.backward(lucid.tensor(rng.standard_normal(out.array.shape)))
        assert (a.grad.dtype, b.grad.dtype) == (lucid.float16, lucid.float64)


def test_empty_vectors_join_anything(rng):
    """A tensor of shape (0,) adds nothing to a cat, of any dimensions, and gets an empty gradient, as in PyTorch."""
    nothing = lucid.tensor([], dtype=lucid.float64, requires_grad=True)
    x = lucid.tensor(rng.standard_normal((2, 3)))
    for dim in (0, 1):
        for given in ([nothing, x], [x, nothing, x[:, :0] if dim else x[:0]]):
            out = joining.cat(given, dim)
            np.testing.assert_array_equal(out.numpy(force=True), x.numpy(force=True))
            nothing.grad = None
            out.backward(lucid.tensor(rng.standard_normal((2, 3))))
            assert nothing.grad.array.shape == (0,)
    assert joining.cat([nothing, nothing]).array.shape == (0,)


def test_an_index_without_elements_reaches_nowhere():
    """Its other sizes may exceed those of the input, as in PyTorch; a part of no places may begin behind the last."""
    x = lucid.arange(6.0).reshape(2, 3)
    nothing = lucid.zeros(0, 5, dtype=lucid.int64)
    assert gathering.gather(x, 0, nothing).shape == (0, 5)
    assert scattering.scatter(x, 0, nothing[:, :3], x[:, :1]).tolist() == x.tolist()
    source = lucid.ones(1, 2, requires_grad=True)
    out = scattering.scatter_add(x, 1, nothing[:, :3], source)
    assert out.tolist() == x.tolist()
    out.sum().backward()
    assert source.grad.tolist() == [[0.0, 0.0]]
    assert lucid.narrow(x, 1, 3, 0).shape == (2, 0)


REDUCED = ("sum", "prod", "mean", "amax", "amin")
# Ways to change nothing, of a tensor, no places, and a tensor of no elements.
NOWHERE = {
    "scatter": lambda x, index, none: lucid.scatter(x, 0, index, none),
    "scatter of a number": lambda x, index, none: lucid.scatter(x, 0, index, 2.0),
    "scatter_add": lambda x, index, none: lucid.scatter_add(x, 0, index, none),
    **{
        f"scatter_reduce by {how}": lambda x, index, none, how=how: lucid.scatter_reduce(x, 0, index, none, how)
        for how in REDUCED
    },
    "index_add": lambda x, index, none: lucid.index_add(x, 0, index[:, 0], none),
    "index_copy": lambda x, index, none: lucid.index_copy(x, 0, index[:, 0], none),
    "index_fill": lambda x, index, none: lucid.index_fill(x, 0, index[:, 0], 2.0),
    **{
        f"index_reduce by {how}": lambda x, index, none, how=how: lucid.index_reduce(x, 0, index[:, 0], none, how)
        for how in ("prod", "mean", "amax", "amin")
    },
    "index_put": lambda x, index, none: lucid.index_put(x, (index[:, 0],), none),
    "put": lambda x, index, none: lucid.put(x, index, none),
    "masked_fill": lambda x, index, none: lucid.masked_fill(x, x > 9, 2.0),
    "masked_scatter": lambda x, index, none: lucid.masked_scatter(x, x > 9, none),
    "slice_scatter": lambda x, index, none: lucid.slice_scatter(x, none, 0, 1, 1),
}


@pytest.mark.parametrize("name", NOWHERE)
def test_what_is_changed_nowhere_is_a_copy(name):
    """As what is changed somewhere: a new tensor in memory of its own, through which gradients go unchanged."""
    x = lucid.arange(6.0).reshape(2, 3)
    index, none = lucid.zeros(0, 3, dtype=lucid.int64), lucid.zeros(0, 3)
    out = NOWHERE[name](x, index, none)
    assert out is not x
    assert not shares_memory(out, x)
    assert out.tolist() == x.tolist()
    out = NOWHERE[name](x.requires_grad_(), index, none)
    out.backward(x.detach() + 1)
    assert not out.is_leaf
    assert x.grad.tolist() == (x.detach() + 1).tolist()


def test_scalars_gather_from_scalars():
    """Tensors of no dimension gather, scatter and are picked from as vectors of one element."""
    x = lucid.tensor(3.0, requires_grad=True)
    out = gathering.gather(x, 0, lucid.tensor(0))
    assert out.array.shape == ()
    out.backward(lucid.tensor(2.5))
    assert x.grad.item() == 2.5
    assert gathering.gather(x, 0, index(0, 0)).tolist() == [3.0, 3.0]
    assert scattering.scatter(x, 0, lucid.tensor(0), lucid.tensor(4.0)).tolist() == 4.0
    assert gathering.take(x, index(0, -1)).tolist() == [3.0, 3.0]


@pytest.mark.cpu("its second device is the CUDA device")
def test_no_silent_transfers():
    """Operands of two devices raise; nothing is copied from one to the other."""
    assert issubclass(DeviceError, RuntimeError)
    if not lucid.cuda.is_available():
        with pytest.raises(DeviceError):
            joining.cat([lucid.zeros(1), lucid.zeros(1, device="cuda")])
        return
    with pytest.raises(DeviceError, match="same device"):
        joining.cat([lucid.zeros(1), lucid.zeros(1, device="cuda")])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_repeated_places_add_up_in_float32(dtype):
    """Sums of half types at one place keep what is small beside them."""
    x = lucid.zeros(3, dtype=getattr(lucid, dtype), requires_grad=True)
    places = lucid.tensor(np.full(1000, 1))
    quarters = lucid.tensor(np.full(1000, 0.25), dtype=getattr(lucid, dtype))
    assert scattering.scatter_add(x.detach(), 0, places, quarters).to(lucid.float32).tolist() == [0.0, 250.0, 0.0]
    gathering.gather(x, 0, places).backward(quarters)
    assert x.grad.to(lucid.float32).tolist() == [0.0, 250.0, 0.0]


@pytest.mark.parametrize("op", [lucid.sort, lucid.argsort])
def test_descending_is_a_bool(op):
    """A tensor, or a number that merely counts as True, was meant as something else."""
    for value in (lucid.tensor(True), 1):
        with pytest.raises(TypeError, match="descending: expected a bool, got"):
            op(lucid.ones(2), descending=value)


@pytest.mark.parametrize("op", [lucid.sort, lambda x: lucid.topk(x, 1)], ids=["sort", "topk"])
def test_a_sorted_scalar_is_a_new_tensor(op):
    """Of a tensor of no dimension values and places are no views, and the gradient arrives."""
    x = lucid.tensor(1.5, requires_grad=True)
    values, indices = op(x)
    assert values._base is None
    assert indices._base is None
    assert (values.item(), indices.item(), tuple(values.shape)) == (1.5, 0, ())
    values.backward(lucid.tensor(3.0))
    assert x.grad.item() == 3
    with lucid.no_grad():
        values.zero_()
    assert x.item() == 1.5


@pytest.mark.usefixtures("indices_are_read")
@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: x[i],
        lambda x, i: x.take(i),
        lambda x, i: x.gather(0, i),
        lambda x, i: x.index_select(0, i),
    ],
    ids=["getitem", "take", "gather", "index_select"],
)
@pytest.mark.parametrize("values", [[3, 52, -60, 70], [3, 52, 4], [0, 60, 70]])
def test_of_several_indices_outside_the_first_is_named(call, values):
    """An error names the first that does not fit, as PyTorch's does, and neither the least nor the largest."""
    with pytest.raises(IndexOutOfRangeError, match=rf"index {values[1]}\b"):
        call(lucid.zeros(5), index(*values))


@pytest.mark.parametrize("count", range(1, 10))
def test_products_of_any_number_at_a_place(count, rng):
    """A product takes each that meets at a place once, however many they are, and so does its gradient."""
    source = rng.uniform(0.5, 2, (count + 1, 2))
    places = rng.permuted(np.repeat([[1, 1]], count + 1, 0) * (np.arange(count + 1) > 0)[:, None], axis=0)
    x, src = (lucid.tensor(values, requires_grad=True) for values in (rng.uniform(1, 2, (3, 2)), source))
    upstream = rng.standard_normal((3, 2))
    out = lucid.scatter_reduce(x, 0, lucid.tensor(places), src, "prod")
    expected = x.detach().cpu().numpy().copy()
    for row, column in np.ndindex(places.shape):
        expected[places[row, column], column] *= source[row, column]
    np.testing.assert_allclose(out.detach().cpu().numpy(), expected, rtol=1e-12)
    out.backward(lucid.tensor(upstream))
    share = np.take_along_axis(upstream * expected, places, 0) / source
    np.testing.assert_allclose(src.grad.cpu().numpy(), share, rtol=1e-10)


@pytest.mark.parametrize("include_self", [True, False])
def test_means_of_scattered_integers_are_rounded_down(include_self):
    """They stay integers, and the one below is taken, of numbers below zero too."""
    x = lucid.tensor([1, -2, 9])
    out = x.scatter_reduce(
        0, lucid.tensor([0, 1, 0, 1]), lucid.tensor([4, -3, 3, 0]), "mean", include_self=include_self
    )
    assert out.dtype == lucid.int64
    assert out.tolist() == ([2, -2, 9] if include_self else [3, -2, 9])


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_what_is_left_out_has_no_part_in_the_gradient(reduce):
    """Of a place that is written, even with the number that was there; elsewhere the gradient goes to the input."""
    x, src = (lucid.tensor(values, requires_grad=True) for values in ([2.0, 3.0, 5.0], [2.0, 5.0]))
    out = x.scatter_reduce(0, lucid.tensor([0, 2]), src, reduce, include_self=False)
    assert out.tolist() == [2.0, 3.0, 5.0]
    out.backward(lucid.tensor([7.0, 11.0, 13.0]))
    assert x.grad.tolist() == [0.0, 11.0, 0.0]
    assert src.grad.tolist() == [7.0, 13.0]


def test_bools_are_added_without_a_factor():
    """Added to a bool is whether one of all holds; only a factor that is a fraction does not fit."""
    x, index = lucid.tensor([True, False, False]), lucid.tensor([2, 2])
    source = lucid.tensor([True, False])
    assert lucid.index_add(x, 0, index, source).tolist() == [True, False, True]
    assert lucid.index_add(x, 0, index, source, alpha=1).dtype is lucid.bool
    with pytest.raises(DtypeError, match="index_add: expected alpha to be an integer"):
        lucid.index_add(x, 0, index, source, alpha=0.5)
