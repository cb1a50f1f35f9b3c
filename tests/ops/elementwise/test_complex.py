"""Complex numbers seen as pairs of real ones, and made of magnitude and phase."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.errors import DtypeError, ShapeError
from tests.gradients import numbers

BAD = {
    "view_as_real: real": (lambda: lucid.view_as_real(lucid.ones(2)), DtypeError, "view_as_real.*complex"),
    "view_as_complex: halves": (
        lambda: lucid.view_as_complex(lucid.ones(2, dtype=lucid.float16)), DtypeError, "float32 or float64"),
    "view_as_complex: no dimension": (lambda: lucid.view_as_complex(lucid.tensor(1.0)), ShapeError, "size 2"),
    "view_as_complex: no pairs": (lambda: lucid.view_as_complex(lucid.ones(2, 3)), ShapeError, "size 2"),
    "view_as_complex: pairs apart": (lambda: lucid.view_as_complex(lucid.ones(2, 3).t()), ShapeError, "contiguous"),
    "view_as_complex: odd": (lambda: lucid.view_as_complex(lucid.ones(2, 3)[:, :2]), ShapeError, "even number"),
    "polar: dtypes": (lambda: lucid.polar(lucid.ones(1), lucid.ones(1, dtype=lucid.float64)), DtypeError, "polar"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    """What is no pair, or no complex number, is refused with a message that says why."""
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


def test_views_share_memory(rng):
    """What is written to one view is seen in the tensor, whatever its strides, and in the gradient."""
    array = rng.standard_normal((3, 4, 2))
    x = lucid.tensor(array, requires_grad=True)
    y = x * 1
    numbers_of_y = lucid.view_as_complex(y.transpose(0, 1))
    numbers_of_y.mul_(2j)
    np.testing.assert_allclose(numbers(y), 2 * np.stack((-array[..., 1], array[..., 0]), -1))
    back = lucid.view_as_real(numbers_of_y[1])
    back.mul_(3)
    np.testing.assert_allclose(numbers(y)[:, 1], 6 * np.stack((-array[:, 1, 1], array[:, 1, 0]), -1))
    weight = rng.standard_normal((3, 4, 2))
    (y * lucid.tensor(weight)).sum().backward()
    slope = 2 * np.stack((weight[..., 1], -weight[..., 0]), -1)
    slope[:, 1] *= 3
    np.testing.assert_allclose(numbers(x.grad), slope)


def test_rotation_of_pairs(rng):
    """A product with numbers of magnitude 1 turns pairs, as rotary embeddings do; the gradient is turned back."""
    array, phase, weight = rng.standard_normal((2, 5, 4)), rng.uniform(-3, 3, (5, 2)), rng.standard_normal((2, 5, 4))
    x = lucid.tensor(array, requires_grad=True)
    turn = lucid.polar(lucid.ones(5, 2, dtype=lucid.float64), lucid.tensor(phase))
    out = lucid.view_as_real(lucid.view_as_complex(x.reshape(2, 5, 2, 2)) * turn).flatten(2)

    def turned(a, by):
        pairs = a.reshape(2, 5, 2, 2)
        cos, sin = np.cos(by), np.sin(by)
        first, second = pairs[..., 0], pairs[..., 1]
        return np.stack((first * cos - second * sin, first * sin + second * cos), -1).reshape(2, 5, 4)

    np.testing.assert_allclose(numbers(out), turned(array, phase), rtol=1e-12)
    out.backward(lucid.tensor(weight))
    np.testing.assert_allclose(numbers(x.grad), turned(weight, -phase), rtol=1e-12)
