"""Methods and changes in place are the functions of their names."""

from __future__ import annotations

import inspect

import pytest

import lucid
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
