"""What Python and NumPy make of a recorded array: values where they are asked for, never in silence."""

import math
import re

import numpy as np
import pytest

import lucid
from lucid import numpy as lnp


def recorded(value):
    """Return a recorded array."""
    return lnp.asarray(lucid.tensor(value, dtype=lucid.float64, requires_grad=True)) * 1.0


def whole(y, x):
    y[:] = x


def element(y, x):
    y[0] = x


def chained(y, x):
    y[0] = y[1] = x


def unpacked(y, x):
    y[1], y[0] = 1.0, x


def deeper(y, x):
    y.reshape(1, 3)[0, 2] = x


@pytest.mark.cpu("into arrays of NumPy's")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("write", [whole, element, chained, unpacked, deeper])
def test_nothing_is_written_into_a_plain_array_in_silence(write, dtype):
    """It would be a number without a gradient: that is refused, and the array stays what it was."""
    y = np.zeros(3, dtype)
    with pytest.raises((TypeError, ValueError, RuntimeError)) as raised:
        write(y, recorded(2.0))
    # NumPy puts words of its own in front
    assert re.search("requires? grad", f"{raised.value} {raised.value.__cause__}")
    assert not y[0]
    assert not y[2]
    with lucid.no_grad():
        write(y, recorded(2.0))
    assert np.count_nonzero(y) >= 1


@pytest.mark.parametrize("convert", [float, complex, math.sin, math.sqrt])
def test_a_number_would_lose_the_gradient(convert):
    """What Python makes a number of is refused by name; a whole number, a bool, `item` and a format are plain."""
    x = recorded(2.0)
    with pytest.raises(TypeError, match=r"\(x\): x requires grad, .* x\.item\(\) is its number"):
        convert(x)
    with lucid.no_grad():
        assert convert(x) == convert(2.0)
    assert (int(x), bool(x), x.item(), f"{x:.1f}") == (2, True, 2.0, "2.0")


@pytest.mark.cpu("into arrays of NumPy's")
def test_what_to_do_is_said_where_parts_are_written():
    """The advice keeps the gradient: the array that is written into is recorded too, or parts are joined."""
    leaf = lucid.tensor([1.0, 2.0, 3.0], dtype=lucid.float64, requires_grad=True)
    for x in (leaf, recorded([1.0, 2.0, 3.0])):
        y = np.zeros(4)
        with pytest.raises(RuntimeError, match=r"requires grad: .* y = y \+ 0 \* x\.sum\(\), or join parts"):
            y[1:] = x
    y = lnp.zeros(4) + 0 * leaf.sum()
    y[1:] = leaf
    (y * lnp.arange(4)).sum().backward()
    assert leaf.grad.tolist() == [1, 2, 3]
