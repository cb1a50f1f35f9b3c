"""What Python and NumPy make of a recorded array: values where they are asked for, never in silence."""

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


def test_numbers_are_what_is_asked_for():
    """``float(x)``, of a key too, ``x.item()`` and formats give values."""
    x, z = recorded(2.0), lnp.asarray(lucid.tensor(2j, dtype=lucid.complex128, requires_grad=True)) * 1.0
    y = np.zeros(3)
    y[int(x)] = float(x)
    y[0] = x.item()
    assert y.tolist() == [2, 0, 2]
    assert (complex(z), f"{x:.1f}", bool(x)) == (2j, "2.0", True)
    assert {float(x): 1}[2.0] == 1
