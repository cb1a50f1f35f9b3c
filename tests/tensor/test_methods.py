"""Methods and changes in place are the functions of their names."""

from __future__ import annotations

import functools
import inspect
import itertools

import pytest

import lucid
from lucid.base import gpu
from lucid.tensor.inplace_methods import InPlaceMethods
from lucid.tensor.methods import Methods

# Methods that are no function, or take their operands in another order than it.
OF_THEIR_OWN = {
    "contiguous", "expand", "expand_as", "polygamma", "positive", "repeat", "reshape_as", "sum_to_size", "unfold",
    "view", "view_as", "where",
}  # fmt: skip
WITHOUT_FUNCTION = {
    "cauchy_", "copy_", "exponential_", "fill_diagonal_", "geometric_", "log_normal_", "random_", "uniform_", "zero_",
}  # fmt: skip


def names_of(kind):
    """Return the public names that a class defines."""
    return [name for name in vars(kind) if not name.startswith("_")]


@pytest.mark.parametrize("name", [name for name in names_of(Methods) if name not in OF_THEIR_OWN])
def test_a_method_is_the_function_of_its_name(name):
    """``x.f(...)`` is ``lucid.f(x, ...)``: the same function, where the class has it and not a loader of it."""
    method, function = getattr(lucid.Tensor, name), getattr(lucid, name)
    own, other = inspect.unwrap(method), inspect.unwrap(function)
    assert (own.__name__, own.__module__) == (other.__name__, other.__module__)
    assert inspect.getdoc(method) == inspect.getdoc(function)


@pytest.mark.parametrize("name", [name for name in names_of(InPlaceMethods) if name not in WITHOUT_FUNCTION])
def test_a_change_in_place_is_by_the_function_of_its_name(name):
    """``x.f_(...)`` sets ``x`` to ``f(x, ...)``."""
    assert vars(InPlaceMethods)[name].__name__ == f"{inspect.unwrap(getattr(lucid, name[:-1])).__name__}_"


MADE_BESIDE = {
    "new_tensor": ([1, 2],), "new_empty": (2,), "new_zeros": (2,), "new_ones": (2,), "new_full": ((2,), 3),
    "empty_like": (), "zeros_like": (), "ones_like": (), "full_like": (3,), "rand_like": (), "randn_like": (),
}  # fmt: skip


def test_all_that_is_made_beside_a_tensor_is_named():
    """A method or function of that kind has its row."""
    methods = {name for name in dir(lucid.Tensor) if name.startswith("new_")}
    functions = {name for name in dir(lucid) if name.endswith("_like") and name != "randint_like"}
    assert {*MADE_BESIDE} == methods | functions


@pytest.mark.parametrize("name", MADE_BESIDE)
def test_what_is_made_beside_a_tensor_is_as_asked(name):
    """Dtype, device and whether it requires grad are those that are given, and else, but for the last, the tensor's."""
    places = ["cpu", *(f"cuda:{index}" for index in range(lucid.cuda.device_count()))]
    for own, other in itertools.product(places, repeat=2):
        x = lucid.ones(2, dtype=lucid.float64, device=own, requires_grad=True)
        make = getattr(x, name, None) or functools.partial(getattr(lucid, name), x)
        made = make(*MADE_BESIDE[name])
        asked = make(*MADE_BESIDE[name], dtype=lucid.float32, device=other, requires_grad=True)
        assert (made.dtype, made.device, made.requires_grad) == (lucid.float64, lucid.device(own), False)
        assert (asked.dtype, asked.device, asked.requires_grad) == (lucid.float32, lucid.device(other), True)
        assert not made.is_cuda or gpu.device_index(made.array) == made.device.index
