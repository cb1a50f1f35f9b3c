"""What each row of the tables of `lucid.scipy` is checked for: SciPy's value and dtype, and the slope of differences.

A row is the name of a function, a call ``call(l, *arrays)`` of a module l, lucid's or SciPy's, and its arrays: a shape,
of normal numbers, or what draws one.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import lucid
from lucid import numpy as lnp
from tests.gradients import check_gradient, gradient_of, random_like

# The second result is where the first one is, of no array that is recorded.
OF_PLACES = {"freqz", "resample"}


class Row(NamedTuple):
    """One call; `twice` where its second derivatives are checked too, `tolerance` where SciPy's own error is larger."""

    name: str
    call: Any
    arrays: tuple[Any, ...]
    twice: bool = False
    tolerance: float = 1e-10
    is_flat: bool = False


def complex_of(*shape):
    """Return what draws complex numbers."""
    return lambda rng: rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def between(low, high, *shape):
    """Return what draws numbers between two."""
    return lambda rng: rng.uniform(low, high, shape)


def increasing(count, step=0.5):
    """Return what draws increasing places, each near to a multiple of a step."""
    return lambda rng: (np.arange(count) + rng.uniform(-0.1, 0.1, count)) * step


def off_grid(low, high, *shape, step=1.0):
    """Return what draws places as far from the multiples of a step as from the middles between, where kinks are."""

    def draw(rng):
        halves = rng.integers(2 * low, 2 * high, shape) / 2
        return (halves + rng.uniform(0.2, 0.3, shape)) * step

    return draw


def spaced(*shape):
    """Return what draws numbers in any order, of which no two are near, nor near zero: none overtakes another."""
    count = int(np.prod(shape))
    return lambda rng: ((rng.permutation(count) - count // 2 + 0.5) * 0.1 + rng.uniform(0, 0.02, count)).reshape(shape)


def drawn(row, rng):
    """Return the arrays of a row."""
    return [draw(rng) if callable(draw) else rng.standard_normal(draw) for draw in row.arrays]


def parts(result):
    """Return results as a list, without those that are None."""
    return [each for each in (result if isinstance(result, tuple) else (result,)) if each is not None]


def values(result):
    """Return an array on the host."""
    return np.asarray(result.detach().cpu().array if isinstance(result, lucid.Tensor) else result)


def as_op(call, module):
    """Return a call as a function of tensors to tensors, as `tests.gradients` takes them."""
    # a number of SciPy's is one of double precision
    return lambda *tensors: [
        lucid.as_tensor(np.asarray(each) if isinstance(each, float) else each) for each in parts(call(module, *tensors))
    ]


def check(row, module, rng):
    """Fail unless a recorded call has SciPy's values, dtypes and class, and the gradients that differences give."""
    arrays = drawn(row, rng)
    theirs, ours = import_module(f"scipy.{module}"), import_module(f"lucid.scipy.{module}")
    expected = parts(row.call(theirs, *arrays))
    result = parts(row.call(ours, *[lucid.tensor(array, requires_grad=True) for array in arrays]))
    for one, other in zip(result, expected, strict=True):
        assert type(one) is lnp.ndarray or one.dtype.kind not in "fc" or row.name in OF_PLACES
        assert (one.shape, one.dtype) == (np.shape(other), np.asarray(other).dtype)
        np.testing.assert_allclose(values(one), other, rtol=row.tolerance, atol=row.tolerance)
    check_single(row, theirs, ours, arrays)
    if row.is_flat:
        return
    op = as_op(row.call, ours)
    check_gradient(op, arrays, rng)
    if row.twice:
        upstream = [random_like(rng, np.asarray(each)) for each in expected]
        check_gradient(gradient_of(op, len(arrays)), [*arrays, *upstream], rng)


def check_single(row, theirs, ours, arrays):
    """Fail unless the call has SciPy's shapes and dtypes in single precision too, of all or the first alone."""
    single = [array.astype("F" if array.dtype.kind == "c" else "f") for array in arrays]
    for given in (single, [*single[:1], *arrays[1:]]):
        with warnings.catch_warnings():
            # of SciPy's own guesses of its errors
            warnings.simplefilter("ignore", RuntimeWarning)
            expected = parts(row.call(theirs, *given))
        result = parts(row.call(ours, *[lucid.tensor(array, requires_grad=True) for array in given]))
        found = [(one.shape, one.dtype) for one in result]
        assert found == [(np.shape(each), np.asarray(each).dtype) for each in expected]


def by_name(*tables):
    """Return the rows of tables by the names of their functions."""
    found = {}
    for row in (row for table in tables for row in table):
        found.setdefault(row.name, []).append(row)
    return found
