"""The settings of an optimiser's parameter group: what they may be, and the learning rate as a number."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any

from lucid.arguments import shown
from lucid.autograd.base import TensorBase
from lucid.errors import ArgumentError, NotDifferentiableError, SettingError

if TYPE_CHECKING:
    from lucid.optim.optimizer import Group


FLAGS = {"amsgrad", "nesterov", "maximize", "decoupled_weight_decay"}


def check_at_least_zero(value: Any, name: str) -> None:
    """Raise unless `value` is a number of at least 0."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ArgumentError(f"Invalid {name}: expected a Python number, got {shown(value)}")
    if not 0 <= float(value) < math.inf:
        raise SettingError(f"Invalid {name}: {value}: expected a number of at least 0, and finite")


def check_rate(value: Any) -> None:
    """Raise unless `value` is a learning rate: a number of at least 0, or a tensor that holds one."""
    if isinstance(value, TensorBase):
        if value.array.size != 1:
            raise SettingError(
                f"Invalid learning rate: Tensor lr must be 1-element, got one of shape {tuple(value.array.shape)}"
            )
        value = float(value.array.item())
    check_at_least_zero(value, "learning rate")


def check_flags(group: Group) -> None:
    """Raise unless the settings of a group that are named like flags hold bools."""
    for name in FLAGS & group.keys():
        if not isinstance(group[name], bool):
            raise ArgumentError(f"Invalid {name}: expected a bool, got {shown(group[name])}")


def rate_of(group: Group) -> float:
    """Return the learning rate of a group as a number; one that a tensor holds is read from its device."""
    rate = group["lr"]
    return float(rate.array.item() if isinstance(rate, TensorBase) else rate)


def check_implementation(*, foreach: bool | None, fused: bool | None, differentiable: bool) -> None:
    """Raise unless the settings with which PyTorch chooses among implementations ask for what lucid's one does."""
    if foreach and fused:
        raise SettingError(
            "`fused` and `foreach` cannot be `True` together: leave both out, one kernel does all anyway"
        )
    if differentiable:
        raise NotDifferentiableError("differentiable=True: a step is not recorded in the graph: leave it False")
