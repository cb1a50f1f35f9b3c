"""Methods of ufuncs: NumPy's values, shapes and dtypes, and gradients by differences of what NumPy gives."""

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from lucid.errors import DtypeError, InplaceError
from tests.tensor.numpy_calls.test_odd_operands import alike, outcome
from tests.tensor.numpy_calls.test_rules import leaf_of, plain

NAMES = (
    "add arctan2 copysign divide float_power fmax fmin hypot logaddexp logaddexp2 maximum minimum multiply nextafter "
    "power remainder subtract"
)
CALLS = [
    "reduce(x)", "reduce(x, 1)", "reduce(x, -1, None, None, True)", "reduce(x, (0, 2))", "reduce(x, None)",
    "reduce(x[:1])", "reduce(x[:0])", "reduce(x[:, :, :0])", "reduce(x, 1, initial=0.7)", "reduce(x[0, 0, 0])",
    "reduce(x, ())", "reduce(x, 5)", "accumulate(x)", "accumulate(x, 1)", "accumulate(x[:0], 1)",
    "reduceat(x, [0, 2])", "reduceat(x, [2, 0, 2], 1)", "reduceat(x, [0, 2, 2], axis=1)", "reduceat(x, [0, 9])",
    "reduceat(x, [], 1)", "accumulate(x[0, 0, 0])",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES.split())
def test_reductions(name, rng):
    """Of any ufunc of two operands, over any axes, with positional options, of one element and of none."""
    values = rng.uniform(0.5, 2.0, (3, 4, 2))
    direction, tried = rng.standard_normal(values.shape), 0
    for call in CALLS:
        text = f"np.{name}.{call}"
        expected = outcome(text, np, {"x": values})
        leaf = leaf_of(values)
        x = lnp.asarray(leaf) * 1
        made = outcome(text, lnp, {"x": x})
        assert alike(made, expected), (text, made, expected)
        if isinstance(expected, Exception) or not expected[0].size or ":0]" in call:  # of none the identity, plain
            continue
        assert made[0].dtype == expected[0].dtype
        tried += 1
        weights = rng.standard_normal(expected[0].shape)
        lnp.sum(eval(text, {"np": lnp, "x": x}) * weights).backward()
        up, down = (np.sum(eval(text, {"np": np, "x": values + h * direction}) * weights) for h in (1e-6, -1e-6))
        np.testing.assert_allclose(np.sum(plain(leaf.grad) * direction), (up - down) / 2e-6, rtol=1e-5, atol=1e-7)
    assert tried >= 12


def test_second_derivatives(rng):
    """The gradient of a gradient is that of differences of it."""
    values, direction = rng.uniform(0.5, 2.0, (3, 4)), rng.standard_normal((3, 4))
    for ufunc in (lnp.hypot, lnp.logaddexp, lnp.logaddexp2, lnp.divide):
        for call in (lambda f, x: f.reduce(x, 1), lambda f, x: f.accumulate(x, 1), lambda f, x: f.reduceat(x, [0, 2])):

            def slope(x, call=call, ufunc=ufunc):
                (g,) = lucid.autograd.grad(lnp.sum(call(ufunc, lnp.asarray(x)) ** 2), x, create_graph=True)
                return g

            x = leaf_of(values)
            (second,) = lucid.autograd.grad((slope(x) * lucid.tensor(direction)).sum(), x)
            up, down = (plain(slope(leaf_of(values + h * direction))) for h in (1e-6, -1e-6))
            np.testing.assert_allclose(plain(second), (up - down) / 2e-6, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["add", "subtract"])
def test_additions_at_places(name, rng):
    """Each element is added to as often as it is named, with gradients by both operands, by either way to call it."""
    values = rng.standard_normal((3, 4))
    for module in (np, lnp):
        for key, shape in (
            ([0, 0, 2], (3, 4)), ([1, 1], ()), (np.s_[::2], (4,)), (np.array([True, False, True]), (2, 4)),
            ((np.array([0, 0]), np.array([1, 1])), (2,)), (np.s_[0, [1, 1]], (2,)), (..., (3, 4)),
        ):  # fmt: skip
            new, weights = rng.standard_normal(shape), rng.standard_normal((3, 4))
            expected = values.copy()
            getattr(np, name).at(expected, key, new)
            leaf, other = leaf_of(values), leaf_of(new)
            x = lnp.asarray(leaf) * 1
            assert getattr(module, name).at(x, key, lnp.asarray(other)) is None
            np.testing.assert_allclose(plain(x), expected, rtol=1e-14, atol=1e-15)
            lnp.sum(x * weights).backward()
            np.testing.assert_array_equal(plain(leaf.grad), weights)
            kept = weights[key]
            share = kept.sum(tuple(range(kept.ndim - len(shape)))) * (1 if name == "add" else -1)
            np.testing.assert_allclose(plain(other.grad), share, rtol=1e-12)


def test_additions_that_are_refused():
    """Into a leaf, of a dtype that does not go in, at a place that is none, and of what has no such op."""
    leaf = leaf_of([1.0, 2.0])
    x = lnp.asarray(leaf) * 1
    for error, words, write in (
        (InplaceError, "leaf", lambda: lnp.add.at(leaf, [0], 1.0)),
        (DtypeError, r"complex128 cannot be added to elements of float32", lambda: lnp.add.at(x, [0], 1j)),
        (IndexError, "out of bounds", lambda: lnp.add.at(x, [7], 1.0)),
        (ValueError, "size", lambda: lnp.add.at(x, [0, 1], np.ones(3, np.float32))),
        (TypeError, r"numpy.multiply.at cannot be recorded", lambda: lnp.multiply.at(x, [0], 1.0)),
        (TypeError, r"numpy.hypot.reduce cannot be recorded", lambda: lnp.hypot.reduce(x, where=np.ones(2, bool))),
    ):
        with pytest.raises(error, match=words):
            write()
    assert x.tolist() == [1.0, 2.0]


def test_options_by_their_places():
    """The outputs of a ufunc, or all of a method's options, in order; what is too much or given twice is refused."""
    x = lnp.asarray(leaf_of([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(plain(lnp.modf(x + 0.5, None, None)[1]), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(plain(lnp.add.reduce(x, 1, np.float64)), [3, 7])
    np.testing.assert_array_equal(plain(lnp.maximum.reduce(x, 0, None, None, True)), [[3, 4]])
    for words, call in (
        (r"numpy.exp: out cannot be used with a Tensor", lambda: lnp.exp(x, np.zeros((2, 2)))),
        (r"numpy.exp: expected at most 2 arguments, got 3", lambda: lnp.exp(x, None, None)),
        (r"numpy.add: out is given twice", lambda: lnp.add(x, x, np.zeros((2, 2)), out=None)),
        (r"numpy.add.reduce: axis is given twice", lambda: lnp.add.reduce(x, 0, axis=0)),
        (r"numpy.add.accumulate: expected at most 4 arguments", lambda: lnp.add.accumulate(x, 0, None, None, None)),
        (r"numpy.add.reduce cannot|only a, axis, .*got out", lambda: lnp.add.reduce(x, 0, None, np.zeros(2))),
    ):
        with pytest.raises(TypeError, match=words):
            call()


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running_results_without_an_axis(name):
    """The error of a matrix without an axis names the function that was called."""
    with pytest.raises(ValueError, match=rf"numpy\.{name}: expected one axis for 2 dimensions, got None"):
        getattr(np, name)(leaf_of([[1.0, 2.0], [3.0, 4.0]]))
