"""The settings of a parameter group, and of its schedule: what they may be, and the learning rate as a number.

A check takes the value and the name of a setting, and raises unless the one may be the other.
"""

from __future__ import annotations

import math
from enum import Enum
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.arguments import shown
from lucid.autograd.base import TensorBase
from lucid.base import gpu
from lucid.cuda.steps.numbers import Given
from lucid.errors import ArgumentError, NotDifferentiableError, SettingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lucid.base.arrays import Array
    from lucid.optim.optimizer import Group

# how messages call a setting, as PyTorch's do
_TITLES = {"lr": "learning rate", "eps": "epsilon value"}


class _Required(Enum):
    """Of one member, which stays itself in copies and pickles."""

    REQUIRED = "<required parameter>"


required = _Required.REQUIRED
"""The default of a setting that has none: every group names it, as optimizers written for PyTorch ask for."""


def refuse_missing(group: Group) -> None:
    """Raise if a group lacks a setting that is `required`."""
    for name, value in group.items():
        if value is required:
            raise SettingError(
                f"parameter group didn't specify a value of required optimization parameter {name}: give it in the "
                "group, or as the optimizer's argument"
            )


def number(value: object, name: str) -> None:
    """Raise unless `value` is a number of Python's or NumPy's."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ArgumentError(f"Invalid {_title(name)}: expected a Python number, got {shown(value)}")
    try:
        float(value)
    except OverflowError:
        raise SettingError(
            f"Invalid {_title(name)}: expected a number that float64 can hold, got a larger int"
        ) from None


def finite(value: Any, name: str) -> None:
    """Raise unless `value` is a finite number."""
    number(value, name)
    if not math.isfinite(value):
        raise SettingError(f"Invalid {_title(name)}: {value}: expected a finite number")


def at_least_zero(value: Any, name: str) -> None:
    """Raise unless `value` is a number of at least 0."""
    number(value, name)
    if not 0 <= float(value) < math.inf:
        raise SettingError(f"Invalid {_title(name)}: {value}: expected a number of at least 0, and finite")


def above_zero(value: Any, name: str) -> None:
    """Raise unless `value` is a number above 0."""
    number(value, name)
    if not 0 < float(value) < math.inf:
        raise SettingError(f"Invalid {_title(name)}: {value}: expected a number above 0, and finite")


def share(value: Any, name: str) -> None:
    """Raise unless `value` is a number from 0 to 1."""
    number(value, name)
    if not 0 <= float(value) <= 1:
        raise SettingError(f"Invalid {_title(name)}: {value}: expected a number in [0, 1]")


def decay(value: Any, name: str) -> None:
    """Raise unless `value` is the decay of a running mean."""
    number(value, name)
    if not 0 <= float(value) < 1:
        raise SettingError(f"Invalid {_title(name)}: {value}: expected a number in [0, 1)")


def whole(value: Any, name: str, least: int = 0) -> None:
    """Raise unless `value` is a whole number of at least 0, or of at least another one."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ArgumentError(f"Invalid {_title(name)}: expected an int, got {shown(value)}")
    if int(value) < least:
        raise SettingError(f"Invalid {_title(name)}: {value}: expected a whole number of at least {least}")


def count(value: object, name: str) -> None:
    """Raise unless `value` is a whole number of at least 1."""
    whole(value, name, 1)


def one_of(options: tuple[str, ...], value: object, name: str) -> None:
    """Raise unless `value` is one of some words."""
    if not (isinstance(value, str) and value in options):
        got = repr(value) if isinstance(value, str) else shown(value)
        raise SettingError(f"Invalid {name}: expected one of {', '.join(map(repr, options))}, got {got}")


def rate(value: object, name: str) -> None:
    """Raise unless `value` is a learning rate: a number of at least 0, or a tensor that holds one."""
    if isinstance(value, TensorBase):
        if value.array.size != 1:
            raise SettingError(
                f"Invalid {_title(name)}: Tensor {name} must be 1-element, got one of shape {tuple(value.array.shape)}"
            )
        value = float(value.array.item())
    at_least_zero(value, name)


def decays(value: object, name: str) -> None:
    """Raise unless `value` is the two decays of running means, called betas."""
    given = two(value, name)
    if len({isinstance(decay, TensorBase) for decay in given}) == 2:
        raise SettingError(f"{name} must be either both floats or both Tensors, got {given[0]!r} and {given[1]!r}")
    for index, decay in enumerate(given):
        if isinstance(decay, TensorBase) and decay.array.size != 1:
            raise SettingError(f"Tensor {name}[{index}] must be 1-element, got one of shape {tuple(decay.array.shape)}")
        if not hasattr(decay, "__float__") or not 0.0 <= float(cast("Any", decay)) < 1.0:
            raise SettingError(
                f"Invalid {name.removesuffix('s')} parameter at index {index}: expected a number in [0, 1), got {decay}"
            )


def factors(value: object, name: str) -> None:
    """Raise unless `value` is two factors, one that shrinks and one that grows."""
    minus, plus = two(value, name)
    for each in (minus, plus):
        number(each, name)
    if not 0 < minus < 1 < plus < math.inf:
        raise SettingError(
            f"Invalid {name.removesuffix('s')} values: {minus}, {plus}: expected one in (0, 1) and one above 1, finite"
        )


def limits(value: object, name: str) -> None:
    """Raise unless `value` is the smallest and the largest of sizes."""
    smallest, largest = two(value, name)
    for each in (smallest, largest):
        number(each, name)
    if not 0 <= smallest <= largest:
        raise SettingError(
            f"Invalid {name}: {smallest}, {largest}: expected two numbers of at least 0, the smaller one first"
        )


def flag(value: object, name: str) -> None:
    """Raise unless `value` is a bool, or 0 or 1."""
    if not (isinstance(value, bool | np.bool_) or (type(value) is int and value in {0, 1})):
        raise ArgumentError(f"Invalid {name}: expected a bool, got {shown(value)}")


def choice(value: object, name: str) -> None:
    """Raise unless `value` is a bool, or None where nothing was chosen."""
    if value is not None:
        flag(value, name)


def two(value: object, name: str) -> list[Any]:
    """Return the entries of `value`; raises unless they are two."""
    if type(value) not in {tuple, list} or len(values := cast("list[Any]", value)) != 2:
        raise SettingError(f"Invalid {name}: expected two numbers, got {value}")
    return values


def _title(name: str) -> str:
    return _TITLES.get(name, f"{name} value")


def rate_of(group: Group) -> float:
    """Return the learning rate of a group as a number; one that a tensor holds is read from its device."""
    lr = group["lr"]
    return float(lr.array.item() if isinstance(lr, TensorBase) else lr)


def numbers_of(group: Group) -> Group:
    """Return the settings of a group with those that tensors hold, learning rate and betas, as numbers."""
    numbers: Group = {**group, "lr": rate_of(group)}
    if isinstance(group.get("betas", (0.0,))[0], TensorBase):
        numbers["betas"] = tuple([float(beta.array.item()) for beta in group["betas"]])
    return numbers


def given_of(group: Group, names: Iterable[str], *, write: bool) -> Given:
    """Return settings as numbers: pairs as two, flags as 0 or 1; those in tensors on a device are not read."""
    values: list[float] = []
    there: list[tuple[int, Array]] = []
    for name in names:
        value = group[name]
        for each in cast("tuple[Any, ...]", value if isinstance(value, tuple | list) else (value,)):
            if isinstance(each, TensorBase) and gpu.is_gpu_array(each.array):
                there.append((len(values), each.array))
                values.append(0.0)
            else:
                values.append(float(cast("Any", each) or 0))
    return Given(values, there, write)


def check_implementation(given: Mapping[str, Any]) -> None:
    """Raise unless the arguments with which PyTorch chooses among implementations ask for what lucid's one does."""
    if given.get("foreach") and given.get("fused"):
        raise SettingError(
            "`fused` and `foreach` cannot be `True` together: leave both out, one kernel does all anyway"
        )
    if given.get("differentiable") and given.get("fused"):
        raise SettingError("`fused` does not support `differentiable`: leave both out")
    if given.get("differentiable"):
        raise NotDifferentiableError("differentiable=True: a step is not recorded in the graph: leave it False")


def check_foreach(given: Mapping[str, Any]) -> None:
    """Raise if PyTorch's list implementation is asked for beside settings in tensors that it cannot take."""
    if not given["foreach"] or given["capturable"]:
        return
    settings = {"lr": given["lr"], **{f"betas[{index}]": beta for index, beta in enumerate(given["betas"])}}
    for name, value in settings.items():
        if isinstance(value, TensorBase):
            raise SettingError(
                f"{name} as a Tensor is not supported for capturable=False and foreach=True: leave foreach out, one "
                "kernel does all anyway, or count steps on the device by capturable=True"
            )
