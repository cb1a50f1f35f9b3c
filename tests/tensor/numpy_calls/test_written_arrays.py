"""Arrays that are written to after a call: its gradient is right, or it is an error that says so."""

import contextlib
import re

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp
from lucid.errors import InplaceError
from lucid.tensor.numpy_calls.operands import NumpyCallError
from tests.tensor.numpy_calls.samples import OPERANDS
from tests.tensor.numpy_calls.test_rules import ROWS, evaluated, leaf_of, plain

WORDS = r"an array of NumPy's that is needed for gradient computation, of shape \[.*\] and dtype \w+, was written to"
pytestmark = pytest.mark.cpu("a look at an array on a device would wait for it")


def loss_of(call, values, key, weights):
    """Return a leaf and a sum of what a call gives of it and of plain arrays; None where that is plain."""
    leaf = leaf_of(values[key])
    results = evaluated(call, lnp, {**values, key: lnp.asarray(leaf)})
    recorded = [one for one in results if isinstance(one, lucid.Tensor)]
    return leaf, sum(lnp.real(lnp.sum(lnp.where(lnp.isfinite(one), one, 0) * weights[one.shape])) for one in recorded)


class Weights(dict):
    """Random numbers by shape."""

    def __missing__(self, shape):
        self[shape] = np.random.default_rng(len(shape)).standard_normal(shape)
        return self[shape]


def test_each_operand_of_each_rule(rng):
    """Whatever operand requires grad, the others may be written to only where the gradient does not need them."""
    wrong, errors, weights = [], 0, Weights()
    for _, call in ROWS:
        keys = sorted({word for word in re.findall(r"\b[a-zA-Z]\b", call) if word in OPERANDS})
        for key in filter(str.islower, keys):
            others = [other for other in keys if other != key and OPERANDS[other](rng).shape]
            values = {each: OPERANDS[each](rng) for each in keys}
            try:
                leaf, loss = loss_of(call, values, key, weights)
            except NumpyCallError:  # what writes into a plain array
                continue
            if not others or not isinstance(loss, lucid.Tensor):
                continue
            loss.backward()
            again, loss = loss_of(call, values, key, weights)
            for other in others:
                values[other][...] = 1 - values[other] if other != "B" else ~values[other]
            try:
                loss.backward()
            except InplaceError as error:
                errors += 1
                if not re.search(WORDS, str(error)):
                    wrong.append(f"{call} by {key}: {error}")
                continue
            if not np.array_equal(plain(again.grad), plain(leaf.grad), equal_nan=True):
                wrong.append(f"{call} by {key}")
    assert not wrong
    assert errors > 50


@pytest.mark.parametrize("shape", [(70000,), (300, 300), (2, 3, 5000), (20, 1, 30, 40)])
def test_large_arrays(shape, rng):
    """Of many elements some are looked at, along each dimension: what writes to all of them is seen."""
    for order in ("C", "F"):
        a = np.asarray(rng.standard_normal(shape), order=order)
        x = leaf_of(rng.standard_normal(shape))
        y = x * a
        a *= 2
        with pytest.raises(InplaceError, match=WORDS):
            y.sum().backward()


@pytest.mark.parametrize("shape", [(70000,), (70000, 1, 1), (1, 1, 70000)])
def test_a_hundredth_of_a_large_array(shape, rng):
    """What is written to a run of neighbours is seen, however many dimensions of one element there are."""
    a, x = rng.standard_normal(shape), leaf_of(rng.standard_normal(shape))
    y = x * a
    a.reshape(-1)[30000:30700] = 0
    with pytest.raises(InplaceError, match=WORDS):
        y.sum().backward()


def test_arrays_that_are_given_back(rng):
    """What was written over and has its old numbers again is what it was."""
    a = rng.standard_normal(5)
    before, x = a.copy(), leaf_of(rng.standard_normal(5))
    y = x * a
    a[:] = 0
    a[:] = before
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), before)


def test_indices(rng):
    """An index is an operand too, in a lookup, an assignment and a mask."""
    for index in (np.array([0, 2]), np.array([True, False, True])):
        x, kept = leaf_of(rng.standard_normal(3)), index.copy()
        y = x[index]
        index[:] = index[::-1] if index.dtype != bool else ~index
        if index.dtype != bool:
            index[0] = 1
        with contextlib.suppress(InplaceError):
            y.sum().backward()
            np.testing.assert_array_equal(x.grad.numpy(), np.isin([0, 1, 2], np.arange(3)[kept]))


def test_an_operator_and_numpys_own_function(rng):
    """The array on either side, by PyTorch's operators and by NumPy's functions."""
    for call in (lambda a, x: a * x, lambda a, x: x * a, np.multiply, np.dot, lucid.mul, lambda a, x: a / x):
        a, x = rng.standard_normal(4), leaf_of(rng.uniform(1, 2, 4))
        y = call(a, x)
        a += 1
        with pytest.raises(InplaceError, match=WORDS):
            lucid.sum(y).backward()
