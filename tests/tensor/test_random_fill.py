"""Draws in place from distributions that come of others: their quantiles, their ends, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lucid
from lucid.errors import DeviceError, DtypeError, InplaceError, SettingError
from tests.gradients import numbers

COUNT = 20000
# By the name: the call, and the distribution function.
DISTRIBUTIONS = {
    "log_normal_": (
        lambda x, g: x.log_normal_(0.5, 0.75, generator=g),
        lambda v: 0.5 * (1 + math.erf((math.log(v) - 0.5) / 0.75 / math.sqrt(2))) if v > 0 else 0.0,
    ),
    "log_normal_: defaults": (
        lambda x, g: x.log_normal_(generator=g),
        lambda v: 0.5 * (1 + math.erf((math.log(v) - 1) / 2 / math.sqrt(2))) if v > 0 else 0.0,
    ),
    "cauchy_": (lambda x, g: x.cauchy_(1.5, 0.5, generator=g), lambda v: 0.5 + math.atan((v - 1.5) / 0.5) / math.pi),
    "cauchy_: defaults": (lambda x, g: x.cauchy_(generator=g), lambda v: 0.5 + math.atan(v) / math.pi),
    "geometric_": (lambda x, g: x.geometric_(0.3, generator=g), lambda v: 1 - 0.7 ** math.floor(v) if v >= 1 else 0.0),
}


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64, lucid.float16])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_shares_below(name, dtype):
    """As many numbers lie below some points as the distribution function says, to five standard deviations."""
    draw, function = DISTRIBUTIONS[name]
    x = lucid.zeros(COUNT, dtype=dtype)
    generator = lucid.Generator(x.device, 5)
    assert draw(x, generator) is x
    values = numbers(x).astype(float)
    for point in (-2.25, 0.25, 1.0, 1.5, 2.25, 4.0, 7.25):
        share = function(point)
        spread = 5 * math.sqrt(share * (1 - share) / COUNT)
        # what is rounded to a point of a half type counts as below it
        assert abs(np.mean(values <= point) - share) <= spread + 1e-3, point


def test_trials_of_integers():
    """Numbers of trials are whole, from one on, and the largest of the dtype where they are beyond it."""
    x = lucid.zeros(1000, dtype=lucid.uint8).geometric_(0.001)
    assert 1 <= int(x.min()) <= int(x.max()) == 255
    assert set(lucid.zeros(1000, dtype=lucid.int64).geometric_(0.999999).tolist()) == {1}


BAD = {
    "log_normal_: std": (lambda: lucid.ones(2).log_normal_(0, 0), SettingError, "std > 0, got 0"),
    "log_normal_: integers": (lambda: lucid.tensor([1]).log_normal_(), DtypeError, "floating-point"),
    "cauchy_: sigma": (lambda: lucid.ones(2).cauchy_(0, -1), SettingError, "sigma > 0, got -1"),
    "cauchy_: integers": (lambda: lucid.tensor([1]).cauchy_(), DtypeError, "floating-point"),
    "geometric_: 0": (lambda: lucid.ones(2).geometric_(0), SettingError, "0 < p < 1, got 0"),
    "geometric_: 1": (lambda: lucid.ones(2).geometric_(1), SettingError, "0 < p < 1, got 1"),
    "geometric_: bools": (lambda: lucid.tensor([True]).geometric_(0.5), DtypeError, "real numbers"),
    "geometric_: complex": (lambda: lucid.tensor([1j]).geometric_(0.5), DtypeError, "real numbers"),
    "random_: bytes": (lambda: lucid.zeros(4, dtype=lucid.uint8).random_(-5, 10), SettingError, "least is 0 and"),
    "random_: bools": (lambda: lucid.zeros(4, dtype=lucid.bool).random_(-1, 1), SettingError, "least is 0 and"),
    "random_: bool 2": (lambda: lucid.zeros(4, dtype=lucid.bool).random_(0, 3), SettingError, "largest 1"),
    "random_: signed": (lambda: lucid.zeros(4, dtype=lucid.int8).random_(-129, 1), SettingError, "least is -128"),
    "random_: halves": (lambda: lucid.zeros(4, dtype=lucid.float16).random_(-2049, 1), SettingError, "is -2048 and"),
    "cauchy_: leaf": (lambda: lucid.ones(2, requires_grad=True).cauchy_(), InplaceError, "leaf"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    """Widths of nothing, chances that are none and other dtypes are refused."""
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


@pytest.mark.gpu
@pytest.mark.parametrize(("here", "there"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_generator_of_another_kind_of_device(here, there):
    """It is refused, as by the functions that draw new tensors, and neither the tensor nor the generator has moved."""
    x, generator = lucid.zeros(3, device=here), lucid.Generator(there, 5)
    state = generator.get_state().tolist()
    for draw in (
        x.normal_, x.uniform_, x.exponential_, x.log_normal_, x.cauchy_, x.bernoulli_, x.random_,
        lambda generator: x.geometric_(0.5, generator=generator),
    ):  # fmt: skip
        with pytest.raises(DeviceError, match=rf"_: Expected a '{here}' device type .* found '{there}"):
            draw(generator=generator)
    assert x.tolist() == [0, 0, 0]
    assert x._version == 0
    assert generator.get_state().tolist() == state


@pytest.mark.parametrize(
    ("dtype", "bounds"),
    [("uint8", (0, 256)), ("bool", (0, 2)), ("int8", (-128, 128)), ("float16", (-2048, 2049)), ("float32", (-3, 4))],
)
def test_whole_numbers_up_to_the_bounds(dtype, bounds):
    """Numbers from each bound to below the other that a dtype holds are drawn, and no others."""
    x = numbers(lucid.zeros(20_000, dtype=getattr(lucid, dtype)).random_(*bounds)).astype(float)
    width = bounds[1] - bounds[0]
    assert bounds[0] <= x.min() <= bounds[0] + width / 1000
    assert bounds[1] - 1 - width / 1000 <= x.max() <= bounds[1] - 1
    assert (x == np.round(x)).all()
