"""`vmap`: values, dimensions, nesting, random numbers, and what is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid import numpy as lnp
from lucid.errors import GraphError, IndexOutOfRangeError, SettingError, ShapeError
from lucid.func import functional_call, grad, vmap
from lucid.func.trees import leaves
from tests.func.test_derivatives import draw
from tests.gradients import numbers


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("out", [0, 1, -1])
def test_dimensions(dim, out, rng):
    """Elements lie along `in_dims` of the argument, and along `out_dims` of the result."""
    x = draw(rng, 3, 4, 5)
    found = vmap(lambda row: row * 2, in_dims=dim, out_dims=out)(x)
    np.testing.assert_array_equal(numbers(found), 2 * np.moveaxis(numbers(x), dim, out))


def test_structures(rng):
    """Dimensions may be nested as arguments and results are, or stand for all below them; None is for all calls."""
    x, y, z = draw(rng, 3, 2), draw(rng, 2, 3), draw(rng, 2)

    def func(tree, z, factor, *, shift):
        return {"sum": tree["x"] + tree["y"] + z, "all": [tree["x"] * factor + shift]}

    in_dims = ({"x": 0, "y": 1}, None, None)
    found = vmap(func, in_dims, {"sum": 1, "all": 0})({"x": x, "y": y}, z, 3.0, shift=z)
    np.testing.assert_allclose(numbers(found["sum"]), (numbers(x) + numbers(y).T + numbers(z)).T, rtol=1e-12)
    np.testing.assert_allclose(numbers(found["all"][0]), 3 * numbers(x) + numbers(z), rtol=1e-12)
    same, rows = vmap(lambda row: (z, row), out_dims=(None, 1))(x)
    assert same is z
    np.testing.assert_array_equal(numbers(rows), numbers(x).T)
    (rows,) = vmap(lambda row: (row,), out_dims=1)(x)
    np.testing.assert_array_equal(numbers(rows), numbers(x).T)
    np.testing.assert_array_equal(numbers(vmap(lambda row: row, out_dims=(1,))(x)), numbers(x).T)


def test_what_does_not_depend_on_the_element(rng):
    """It is repeated, as in PyTorch, unless its dimension is None."""
    aside = draw(rng, 2)
    found = vmap(lambda row: aside)(draw(rng, 3, 4))
    np.testing.assert_array_equal(numbers(found), np.stack([numbers(aside)] * 3))


def test_gradients_go_through(rng):
    """A random gradient of the result reaches the argument, an element that is for all, and what the function sees."""
    x, y, w = draw(rng, 4, 3).requires_grad_(), draw(rng, 3).requires_grad_(), draw(rng, 3).requires_grad_()
    u = draw(rng, 4)
    found = vmap(lambda x, y: (x * y**2 * w).sum(), in_dims=(0, None))(x, y)
    by_x, by_y, by_w = lucid.autograd.grad(found, (x, y, w), u)
    (a, b, c), up = (numbers(t) for t in (x, y, w)), numbers(u)[:, None]
    np.testing.assert_allclose(numbers(by_x), up * b**2 * c, rtol=1e-10)
    np.testing.assert_allclose(numbers(by_y), (up * 2 * a * b * c).sum(0), rtol=1e-10)
    np.testing.assert_allclose(numbers(by_w), (up * a * b**2).sum(0), rtol=1e-10)


def test_nested(rng):
    """All pairs by one inside of another; gradients of elements; and the gradient of a sum over a batch."""
    x, y = draw(rng, 3), draw(rng, 4)
    products = vmap(vmap(lambda a, b: a * b, in_dims=(None, 0)), in_dims=(0, None))(x, y)
    np.testing.assert_allclose(numbers(products), np.outer(numbers(x), numbers(y)), rtol=1e-12)
    np.testing.assert_allclose(numbers(vmap(grad(lambda a: a**3))(x)), 3 * numbers(x) ** 2, rtol=1e-12)
    np.testing.assert_allclose(numbers(vmap(grad(grad(lambda a: a**3)))(x)), 6 * numbers(x), rtol=1e-12)
    found = grad(lambda x: vmap(lambda a: a**3)(x).sum())(x)
    np.testing.assert_allclose(numbers(found), 3 * numbers(x) ** 2, rtol=1e-12)
    found = grad(lambda s: vmap(grad(lambda a: s * a**3))(x).sum())(draw(rng))
    np.testing.assert_allclose(float(found), (3 * numbers(x) ** 2).sum(), rtol=1e-12)


def test_gradients_of_single_samples(rng):
    """They are what separate calls of backward give, of a network with a hidden layer."""
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    x, y = draw(rng, 5, 3), draw(rng, 5, 1)

    def loss(parameters, x, y):
        return (functional_call(net, parameters, (x,)) - y).square().sum()

    parameters = {name: p.detach() for name, p in net.named_parameters()}
    found = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    for index in range(5):
        net.zero_grad()
        (net(x[index]) - y[index]).square().sum().backward()
        for name, p in net.named_parameters():
            np.testing.assert_allclose(numbers(found[name][index]), numbers(p.grad), rtol=1e-10, atol=1e-12)


# ---- random numbers ----


def test_randomness():
    """Different numbers for each call, or the same for all, of any generator; by default refused before they are drawn.

    Afterwards the generators stand where the last call has left them.
    """
    x, own = lucid.zeros(3, 4), lucid.Generator(device=lucid.get_default_device())
    for generator in (None, own):
        draws = lambda row, generator=generator: row + lucid.rand(4, generator=generator)
        lucid.manual_seed(5)
        own.manual_seed(5)
        expected = [numbers(draws(row)) for row in x]
        following = numbers(lucid.rand(4, generator=generator))
        lucid.manual_seed(5)
        own.manual_seed(5)
        with pytest.raises(GraphError, match="randomness error mode"):
            vmap(draws)(x)
        np.testing.assert_array_equal(numbers(vmap(draws, randomness="different")(x)), expected)
        np.testing.assert_array_equal(numbers(lucid.rand(4, generator=generator)), following)
        lucid.manual_seed(5)
        own.manual_seed(5)
        np.testing.assert_array_equal(numbers(vmap(draws, randomness="same")(x)), [expected[0]] * 3)
        np.testing.assert_array_equal(numbers(lucid.rand(4, generator=generator)), expected[1])


def test_randomness_of_nested_ones():
    """Whichever of them refuses, refuses; otherwise each has its say along its own dimension."""
    x = lucid.zeros(2, 3, 4)

    def both(outer, inner):
        return numbers(vmap(vmap(lambda row: row + lucid.rand(4), randomness=inner), randomness=outer)(x))

    for modes in (("error", "different"), ("same", "error")):
        with pytest.raises(GraphError, match="randomness error mode"):
            both(*modes)
    found = both("different", "same")
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    assert (found[0] != found[1]).any()
    found = both("same", "different")
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[:, 0] != found[:, 1]).any()


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_dropout(randomness):
    """It draws as other functions do: the same elements of all samples, or others of each."""
    x = lucid.ones(6, 64)
    with pytest.raises(GraphError, match="randomness"):
        vmap(nn.functional.dropout)(x)
    found = numbers(vmap(nn.functional.dropout, randomness=randomness)(x))
    assert set(np.unique(found)) == {0.0, 2.0}
    assert bool((found == found[:1]).all()) == (randomness == "same")


# ---- what PyTorch has no batched form of ----


def test_control_flow_and_items(rng):
    """The function may look at the values of its element."""
    x = draw(rng, 6)
    found = vmap(lambda a: a if a.item() > 0 else -2 * a)(x)
    at = numbers(x)
    np.testing.assert_array_equal(numbers(found), np.where(at > 0, at, -2 * at))


def test_functions_of_the_user(rng):
    """They need no rule for batches, and one that they have is not asked: each element goes through `forward`."""

    class Square(lucid.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            assert x.ndim == 0
            return x**2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad_output):
            return 2 * ctx.saved_tensors[0] * grad_output

        @staticmethod
        def vmap(info, in_dims, x):
            raise NotImplementedError

    x = draw(rng, 3)
    np.testing.assert_allclose(numbers(vmap(Square.apply)(x)), numbers(x) ** 2, rtol=1e-12)
    np.testing.assert_allclose(numbers(vmap(grad(Square.apply))(x)), 2 * numbers(x), rtol=1e-12)
    np.testing.assert_allclose(numbers(vmap(grad(grad(Square.apply)))(x)), 2, rtol=1e-12)


def test_elements_are_views(rng):
    """What the function changes in place is changed in the argument."""
    x = draw(rng, 2, 3)
    before = numbers(x).copy()
    vmap(lambda row: row.add_(1))(x)
    np.testing.assert_array_equal(numbers(x), before + 1)


# ---- what is refused ----

WRONG = {
    "in_dims None": (lambda x: vmap(len, in_dims=None), SettingError, "in_dims: expected an int"),
    "in_dims list": (lambda x: vmap(len, in_dims=[0]), SettingError, "in_dims: expected an int"),
    "out of range": (lambda x: vmap(len, in_dims=2)(x), SettingError, "2 for a Tensor of 2 dim.* -2 <= in_dim < 2"),
    "no dimension": (lambda x: vmap(len)(x[0, 0]), SettingError, "Tensor of 0 dimensions"),
    "None everywhere": (lambda x: vmap(len, in_dims=(None,))(x), SettingError, "None for all"),
    "no arguments": (lambda x: vmap(lambda: x)(), SettingError, "no inputs"),
    "sizes": (lambda x: vmap(lucid.dot)(x, x[:1]), ShapeError, "sizes \\[1, 2\\]"),
    "no tensor": (lambda x: vmap(lucid.mul)(x, 2.0), SettingError, "type float.*pass None"),
    "a fraction": (lambda x: vmap(len, in_dims=(0.5,))(x), SettingError, "in each place, got float 0.5"),
    "a bool": (lambda x: vmap(len, in_dims=(True,))(x), SettingError, "in each place, got bool True"),
    "out_dims bool": (
        lambda x: vmap(len, out_dims=False),
        SettingError,
        "out_dims: expected an int .*, got bool False",
    ),
    "other structure": (lambda x: vmap(len, in_dims=(0, 0))(x), SettingError, "not compatible.* 2 entries, got 1"),
    "no element": (lambda x: vmap(len)(x[:0]), ShapeError, "at least one element"),
    "out_dims": (lambda x: vmap(lambda row: row, out_dims=2)(x), IndexOutOfRangeError, "2"),
    "out_dims text": (lambda x: vmap(len, out_dims="a"), SettingError, "out_dims: expected an int or None"),
    "out_dims structure": (lambda x: vmap(lambda r: (r, r), out_dims=(0,))(x), SettingError, "1 entries, got 2"),
    "no same": (lambda x: vmap(lambda row: row, out_dims=None)(x), SettingError, "different results"),
    "a number": (lambda x: vmap(lambda row: 3)(x), SettingError, "only Tensors, got int 3"),
    "nothing": (lambda x: vmap(lambda row: None)(x), SettingError, "only Tensors, got NoneType"),
    "shapes": (lambda x: vmap(lambda r: r[: int(r[0])])(x), ShapeError, "equal shapes"),
    "dtypes": (lambda x: vmap(lambda r: r if r[0] > 2 else r.double())(x), ShapeError, "equal shapes and dtypes"),
    "kinds": (lambda x: vmap(lambda r: r if r[0] > 2 else (r,))(x), ShapeError, "one structure"),
    "randomness": (lambda x: vmap(len, randomness="some"), SettingError, "randomness: only allowed"),
    "chunk_size": (lambda x: vmap(len, chunk_size=0), SettingError, "chunk_size"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_refused(what):
    """The error is a ValueError, or an IndexError, that says what was expected."""
    call, kind, match = WRONG[what]
    with pytest.raises(kind, match=match) as error:
        call(lucid.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert isinstance(error.value, ValueError | IndexError)


@pytest.mark.parametrize("make", [lambda: lucid.tensor([1.0, math.nan]), lambda: math.nan], ids=["tensor", "number"])
def test_one_object_for_all_is_itself(make):
    """What each call returns need not be compared where it is one object, even if that is not equal to itself."""
    same = make()
    assert vmap(lambda x: same, out_dims=None)(lucid.ones(3)) is same


@pytest.mark.parametrize("value", [float("nan"), 1.5, True])
def test_what_all_calls_have_in_common(value):
    """Values that are the same for all calls come out as they are, NaN too, as numbers and in tensors; others raise."""
    for made in (lambda: value, lambda: lucid.tensor([value, 1.0]), lambda: lucid.tensor(value)):
        _, kept = vmap(lambda x, made=made: (x, made()), out_dims=(0, None))(lucid.ones(3))
        np.testing.assert_array_equal(*[numbers(x) if isinstance(x, lucid.Tensor) else x for x in (kept, made())])
    count = itertools.count()
    with pytest.raises(SettingError, match="got different results"):
        vmap(lambda x: (x, lucid.tensor([value, next(count)])), out_dims=(0, None))(lucid.ones(3))


def test_functions_of_lucid_numpy_on_plain_tensors():
    """What requires no grad comes out of `lucid.numpy` as plain arrays, which `vmap` stacks as it does tensors."""
    x = lucid.tensor([[0.5, 1.0], [2.0, 3.0]], dtype=lucid.float64)
    for function, out_dims in (
        (lnp.sin, 0),
        (lnp.sum, 0),
        (lambda r: (lnp.exp(r), {"a": lnp.sum(r)}), 0),
        (lnp.cos, 1),
    ):
        made = lucid.vmap(function, out_dims=out_dims)(x)
        expected = lucid.vmap(function, out_dims=out_dims)(x.clone().requires_grad_())
        for one, other in zip(leaves(made), leaves(expected), strict=True):
            assert isinstance(one, lucid.Tensor)
            assert lucid.equal(one, other.detach())
    assert lucid.vmap(lambda r: lnp.ones(2), out_dims=None)(x).tolist() == [1, 1]
