"""NumPy's scalars: a single element and the result of a reduction are values, which nothing changes afterwards."""

import copy

import numpy as np
import pytest

import lucid
import lucid.numpy as lnp


def summed(x, np):
    """Add elements up in the first: the array stays."""
    total = x[0]
    for k in range(1, 4):
        total += x[k]
    return np.stack([total, *x])


def swapped(x, np):
    """Exchange elements, in one statement and by a variable."""
    x[0], x[2] = x[2], x[0]
    kept = x[-1]
    x[-1] = x[1]
    x[1] = kept
    return x


def remembered(x, np):
    """Change what was the largest, and the sum, after they were kept."""
    largest, total = x.max(), np.sum(x)
    kept = largest, total
    largest *= 2
    total /= largest
    largest **= 2
    return np.stack([largest, total, *kept])


def iterated(x, np):
    """Change the elements that loops and unpacking give: the array stays."""
    for element in x:
        element += 1
    a, b, *_ = x
    a -= b
    first = x.flat[0]
    x[0] = 7.0
    return np.stack([a, first, *x])


def viewed(x, np):
    """Change an element through an array of no dimension, which is a view."""
    x[1, ...] *= 3
    place = x[2, ...]
    place += 1
    return x


@pytest.mark.parametrize("program", [summed, swapped, remembered, iterated, viewed])
def test_programs_with_scalars_are_numpys(program, rng):
    """Values are NumPy's, and gradients their differences, wherever a program changes a scalar or what it came from."""
    values, weights, step = rng.uniform(1, 2, 4), rng.uniform(1, 2, 6), 1e-6

    def loss(array):
        result = program(array.copy(), np)
        return result, result @ weights[: len(result)]

    x = lucid.tensor(values, requires_grad=True)
    got = program(lnp.asarray(x) * 1.0, lnp)
    np.testing.assert_allclose(got.detach().cpu().numpy(), loss(values)[0], rtol=1e-12)
    (got @ lucid.tensor(weights[: len(got)])).backward()
    slopes = [(loss(values + step * e)[1] - loss(values - step * e)[1]) / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(x.grad.cpu().numpy(), slopes, rtol=1e-6)


def test_scalars_have_numpys_dtypes():
    """An operator in place gives a scalar the dtype of both, as NumPy does; that of an array stays."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    scalar, array = lnp.sum(x), lnp.asarray(x) * 1
    scalar += np.float64(2)
    array += np.float64(2)
    assert (scalar.dtype, array.dtype) == (np.float64, np.float32)


@pytest.mark.parametrize(
    "key", [[0, 2, 0], ([1, 1, 1],), np.array([[0, 3], [-4, 3]]), ([2, 2], None), [True, False, True, False]], ids=repr
)
def test_of_values_written_to_one_place_the_last_has_the_gradient(key, rng):
    """Where an index names an element more than once, NumPy keeps the last value, and no other has a gradient."""
    values = rng.uniform(1, 2, 4)
    wanted, numbers = np.zeros(4), rng.uniform(1, 2, np.shape(values[key]))
    wanted[key] = numbers
    deeper = [] if np.asarray(key[0]).dtype == bool else [numbers[None, None]]
    for new in (numbers, numbers[..., :1], *deeper):
        plain = values.copy()
        plain[key] = new
        x, y = (lucid.tensor(each, requires_grad=True) for each in (values, new))
        array = lnp.asarray(x) * 1.0
        array[key] = lnp.asarray(y) * 1.0
        np.testing.assert_array_equal(array.detach().cpu().numpy(), plain)
        lnp.sum(array**2).backward()
        places = np.full(4, -1)
        places[key] = np.broadcast_to(np.arange(new.size).reshape(new.shape[new.ndim - numbers.ndim :]), numbers.shape)
        slopes = np.zeros(new.size)
        np.add.at(slopes, places[places >= 0], 2 * plain[places >= 0])
        np.testing.assert_allclose(y.grad.cpu().numpy().ravel(), slopes)
        np.testing.assert_allclose(x.grad.cpu().numpy(), np.where(places < 0, 2 * values, 0))


def test_copies_of_the_module_copy():
    """`copy.copy` and `copy.deepcopy` give copies which are recorded, as NumPy's arrays do."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    y = lnp.asarray(x) * 2
    for copied in (copy.copy(y), copy.deepcopy(y), *copy.deepcopy([y])):
        copied[0] = 5.0
        lnp.sum(copied).backward(retain_graph=True)
    assert y.tolist() == [2.0, 4.0]
    assert x.grad.tolist() == [0.0, 6.0]


@pytest.mark.cpu("CuPy's arrays are compared with numbers alone")
def test_none_is_equal_to_no_element():
    """``x == None`` and ``x != None`` are arrays, as NumPy's are."""
    x, nothing = lnp.asarray(lucid.tensor([1.0, 2.0], requires_grad=True)) * 1, None
    assert [(x == nothing).tolist(), (nothing != x).tolist()] == [[False] * 2, [True] * 2]


def test_dtypes_of_tensors_are_numpys_in_functions():
    """The dtype of a Tensor, ``x.dtype``, is one for each function that makes arrays."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    made = lnp.zeros(2, x.dtype), lnp.ones_like([1, 2], dtype=x.dtype), lnp.arange(3, dtype=x.dtype)
    assert [each.dtype for each in made] == [np.float32] * 3
    of = lucid.nn.Linear(1, 1).weight.dtype  # lucid's
    assert np.finfo(of) is np.finfo(np.float32)
    assert lnp.finfo(of) is np.finfo(np.float32)
    made = np.zeros(2, of), lnp.arange(2).astype(of), (lnp.asarray(x) * 1).astype(lucid.float16).astype(of)
    assert [each.dtype for each in made] == [np.dtype(of)] * 3
    assert [np.dtype(each) for each in lucid.base.dtype.DTYPES.values()] == [
        each.numpy for each in lucid.base.dtype.DTYPES.values()
    ]


@pytest.mark.parametrize(
    "call",
    ["x.ravel('K')", "x.ravel('A')", "x.flatten('A')", "x.reshape(-1, order='A')", "x.reshape(4, -1, order='A')"],
)
@pytest.mark.parametrize(
    "view",
    [
        "x",
        "x.T",
        "x.swapaxes(0, 1)",
        "x.transpose(1, 2, 0)",
        "x[::2]",
        "x.T[:, 1:]",
        "x[..., ::-1]",
        "x[:, 0]",
        "x[:, 0].T",
    ],
)
def test_orders_of_memory(call, view, rng):
    """Elements in a row come in the order in which they are in memory where NumPy is asked for it."""
    values = rng.standard_normal((2, 3, 4))
    x = lnp.asarray(lucid.tensor(values, requires_grad=True))
    wanted = eval(call, {"x": eval(view, {"x": values})})
    np.testing.assert_array_equal(eval(call, {"x": eval(view, {"x": x})}).detach().cpu().numpy(), wanted)


def test_single_elements_round():
    """``round`` of a scalar is a number of Python's, to digits a scalar of its dtype; an array has no such number."""
    values = np.array([2.5, -1.75, 1e9], np.float32)
    x = lnp.asarray(lucid.tensor(values, requires_grad=True)) * 1
    for k, value in enumerate(values):
        whole, part = round(x[k]), round(x[k], 1)
        assert (type(whole), whole) == (int, round(value))
        assert (part.dtype, part.item()) == (np.float32, round(value, 1).item())
    for refused in (x, x[:1], x[0, ...]):
        with pytest.raises(TypeError, match="is no real number"):
            round(refused)
