"""What the standard says of operators and indices, which the namespace's arrays keep: NumPy's of the same operands."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest

import lucid
from lucid import array_api as xp
from lucid.errors import DtypeError, SettingError

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
INDICES = [
    np.s_[::-1], np.s_[::-2, 1], np.s_[..., ::-1], np.s_[None, 3:0:-1, ::2], np.s_[-1, ::-3], np.s_[1:3:-1],
    np.s_[2, None, ..., ::-1], np.s_[::-1, ::-2], np.s_[-9:9:-1], np.s_[..., 1],
]  # fmt: skip


def same(made, wanted):
    """Check values and dtype of an array against NumPy's, and that it is one of the namespace's."""
    assert type(made) is type(xp.zeros(()))
    assert made.array.dtype == wanted.dtype
    np.testing.assert_allclose(made.numpy(force=True), wanted)


@pytest.mark.parametrize("symbol", [*BINARY, *BITS], ids=lambda each: each.__name__)
def test_operators_promote_arrays_without_dimensions(symbol):
    """Each operator, in both orders, beside a Tensor too, has the dtype to which both operands promote."""
    pairs = [("int8", "int16"), ("int16", "int8"), ("uint8", "int8")]
    pairs = [] if symbol is operator.truediv else pairs  # whose quotients have the default dtype
    pairs += [] if symbol in BITS else [("float32", "float64"), ("float64", "float32"), ("float32", "float32")]
    for first, second in pairs:
        a, b = np.array([3, 1, 2], first), np.array(2, second)
        for one, other in [(a, b), (b, a)]:
            wanted = np.asarray(symbol(one, other))
            x, y = xp.asarray(one), xp.asarray(other)
            same(symbol(x, y), wanted)
            same(symbol(x, lucid.tensor(other)), wanted)
            same(symbol(lucid.tensor(one), y), wanted)
            if symbol is not operator.pow:
                same(symbol(2, x), np.asarray(symbol(2, one)))


def test_quotients_of_infinities():
    """``//`` of an infinity is an infinity, in place too; the standard's table."""
    rows = [(np.inf, 2.0, np.inf), (-np.inf, 2.0, -np.inf), (np.inf, -2.0, -np.inf), (1.0, -np.inf, -0.0)]
    for a, b, wanted in rows:
        x, y = xp.asarray([a]), xp.asarray([b])
        for made in (x // y, x // b, a // y, operator.ifloordiv(xp.asarray([a]), y)):
            assert made.item() == wanted
            assert np.signbit(made.item()) == np.signbit(wanted)


@pytest.mark.parametrize("key", INDICES, ids=str)
def test_negative_steps(key, rng):
    """Parts with negative steps are NumPy's, read and written, and have the gradient of their elements."""
    values = rng.uniform(1.0, 2.0, (4, 3))
    leaf = lucid.tensor(values, requires_grad=True)
    part = xp.asarray(leaf)[key]
    same(part, values[key])
    weights = rng.uniform(1.0, 2.0, values[key].shape)
    (part * xp.asarray(weights)).sum().backward()
    wanted = np.zeros((4, 3))
    wanted[key] = weights
    np.testing.assert_allclose(leaf.grad.numpy(force=True), wanted)
    for new in (weights, weights[..., :1], np.float64(7.0)):
        into, written = xp.asarray(values, copy=True), values.copy()
        into[key] = xp.asarray(new)
        written[key] = new
        same(into, written)


def test_masks_of_no_element():
    """A mask of no element selects none, also where the array has elements there."""
    for shape, sizes in [((0, 1), (0, 0)), ((2, 3), (0,)), ((2, 3), (2, 0)), ((2,), (0,))]:
        array, mask = np.zeros(shape), np.zeros(sizes, bool)
        assert tuple(xp.asarray(array)[xp.asarray(mask)].shape) == array[mask].shape
    with pytest.raises(IndexError):
        xp.zeros((2, 3))[xp.zeros((1, 0), dtype=xp.bool)]
    with pytest.raises(IndexError, match="too many indices"):
        xp.zeros(2)[::-1, ::-1]


def test_what_is_given_stays_what_it_was():
    """A function that gives its operand back gives a view: the Tensor's class, and its operators, do not change."""
    x = lucid.ones(3, requires_grad=True)
    for made in (xp.asarray(x), xp.positive(x), xp.astype(x, x.dtype, copy=False), xp.reshape(x, (3,))):
        assert type(x) is lucid.Tensor
        assert made.data_ptr() == x.data_ptr()
        assert made.requires_grad
    with pytest.raises(ValueError, match="step must be greater than zero"):
        x[::-1]


def test_arrays_are_copied_and_pickled():
    """Copies, pickles, parts and rows of an array are arrays; what the standard does not have is the Tensor's."""
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    kind = type(x)
    for made in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x)), x.T, x.mT, x[0], *x, -x, abs(x)):
        assert type(made) is kind
    assert type(xp.linalg.qr(x).Q) is type(xp.fft.fft(x)) is type(xp.unstack(x)[0]) is kind
    assert type(x.softmax(0)) is lucid.Tensor
    assert (x == None) is False  # noqa: E711 - what Python's operator gives beside what is no array
    assert {x: 1}[x] == 1


def test_quotients_in_place():
    """They have the array's dtype or are refused, and it is the array that changes."""
    x = xp.asarray([7, 8])
    same = x
    x //= 2
    assert x is same
    assert x.tolist() == [3, 4]
    for array, other in ((x, 2.5), (xp.asarray([True]), xp.asarray([2]))):
        before = array.tolist()
        with pytest.raises(DtypeError, match="can't be cast to the desired output type"):
            array //= other
        assert array.tolist() == before


def test_a_sequence_of_tensors_is_copied():
    """It becomes one array, which no memory of theirs is, and is refused where that may not be."""
    parts = [xp.asarray(1), xp.asarray(2)]
    assert xp.asarray(parts).tolist() == xp.asarray(parts, copy=True).tolist() == [1, 2]
    with pytest.raises(SettingError, match="copy=False: tensors in a sequence are copied"):
        xp.asarray(parts, copy=False)
