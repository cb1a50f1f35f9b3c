"""What rows cannot say of padding: what is refused, and that the result is a copy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, ShapeError
from lucid.ops.shape.padding import MODES, pad
from tests.device import DEVICE, shares_memory
from tests.gradients import numbers


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pads", [(0, 0), (-1, 0), (0, -2)])
def test_a_copy(mode, pads):
    """Also where nothing is added the result has memory of its own, so that changing it changes no input."""
    x = lucid.tensor([[1.0, 2.0, 3.0]])
    out = pad(x, pads, mode)
    assert not shares_memory(out, x)
    np.testing.assert_array_equal(out.cpu().numpy(), x.cpu().numpy()[:, -pads[0] : 3 + pads[1]])


REFUSED = {
    "reflect of all": ("reflect", (3, 0), "can add at most 2"),
    "reflect of one": ("reflect", (0, 0, 1, 0), "can add at most 0"),
    "circular of more": ("circular", (0, 4), "can add at most 3"),
    "circular of what is cut": ("circular", (-2, 2), "can add at most 1"),
    "constant cut by more": ("constant", (-4, 2), "cuts off more"),
    "circular cut by more": ("circular", (-4, 2), "cuts off more"),
    "reflect cut by more": ("reflect", (-4, 0), "cuts off more"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    """An edge that is longer than what it repeats, and one that cuts off more than there is, raise."""
    mode, pads, text = REFUSED[case]
    with pytest.raises(ShapeError, match=text):
        pad(lucid.ones(1, 3), pads, mode)


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.float32, lucid.float64])
def test_zeros_of_either_sign(dtype):
    """Zeros are added as they are, and the gradient goes to the middle, whichever was added before."""
    x = lucid.tensor([-0.0, 1.0], dtype=dtype, requires_grad=True)
    for value in (0.0, -0.0, 0, None, -0.0, 0.0):
        out = pad(x, (1, 2), value=value)
        minus = isinstance(value, float) and math.copysign(1, value) < 0
        assert np.signbit(numbers(out)).tolist() == [minus, True, False, minus, minus]
        (grad,) = lucid.autograd.grad(out, x, lucid.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=dtype))
        assert grad.tolist() == [2.0, 3.0]


def test_replicate_of_nothing():
    """No edge can be repeated where a dimension has no elements."""
    with pytest.raises(ShapeError, match="can add at most 0"):
        pad(lucid.ones(2, 0), (1, 1), "replicate")


@pytest.mark.parametrize("dtype", [lucid.float16, lucid.bfloat16])
def test_replicate_adds_up_in_float32(dtype):
    """The gradient of many replicas of a half type is summed in float32: one by one it would stop growing."""
    x = lucid.ones(1, 2, 3, dtype=dtype, requires_grad=True)
    pad(x, (0, 0, 0, 4095), "replicate").sum(0).backward(lucid.ones(4097, 3, dtype=dtype))
    assert x.grad.tolist() == [[[1.0] * 3, [4096.0] * 3]]


@pytest.mark.parametrize(("dtype", "value"), [("uint8", -3), ("int8", 300), ("int64", float("inf")), ("float32", 1j)])
def test_a_value_that_does_not_fit(dtype, value):
    """What cannot be a number of the tensor's dtype is refused as where a tensor is made of it."""
    x = lucid.ones(2, dtype=getattr(lucid, dtype), device=DEVICE)
    with pytest.raises(DtypeError, match=dtype):
        pad(x, (1, 1), value=value)
