"""What each row of the tables of `lucid.scipy` is checked for: SciPy's value and dtype, and the slope of differences.

A row is the name of a function, a call ``call(l, *arrays)`` of a module l, lucid's or SciPy's, and its arrays: a shape,
of normal numbers, or what draws one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import lucid
from lucid import numpy as lnp
from tests.gradients import check_gradient, gradient_of, random_like


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


def increasing(count, step=0.2):
    """Return what draws increasing places, none too near to the next."""
    return lambda rng: np.cumsum(rng.uniform(step, 3 * step, count))


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
    return lambda *tensors: [lucid.as_tensor(each) for each in parts(call(module, *tensors))]


def check(row, module, rng):
    """Fail unless a recorded call has SciPy's values, dtypes and class, and the gradients that differences give."""
    arrays = drawn(row, rng)
    theirs, ours = import_module(f"scipy.{module}"), import_module(f"lucid.scipy.{module}")
    expected = parts(row.call(theirs, *arrays))
    result = parts(row.call(ours, *[lucid.tensor(array, requires_grad=True) for array in arrays]))
    for one, other in zip(result, expected, strict=True):
        assert type(one) is lnp.ndarray or not one.dtype.kind in "fc" or row.name == "freqz"
        assert one.dtype == other.dtype
        np.testing.assert_allclose(values(one), other, rtol=row.tolerance, atol=row.tolerance)
    if row.is_flat:
        return
    op = as_op(row.call, ours)
    check_gradient(op, arrays, rng)
    if row.twice:
        upstream = [random_like(rng, np.asarray(each)) for each in expected]
        check_gradient(gradient_of(op, len(arrays)), [*arrays, *upstream], rng)
