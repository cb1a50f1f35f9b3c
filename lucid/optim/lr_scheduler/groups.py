"""Settings of parameter groups, read and written by schedules: a tensor keeps its place, a number is replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

from lucid.errors import SettingError, StateDictError
from lucid.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.optim.optimizer import Group, Optimizer

Rate: TypeAlias = float | Tensor
"""A learning rate."""


def read(optimizer: Optimizer, name: str) -> list[Any]:
    """Return a setting of each group; tensors are copied, so that nobody changes the group's by them."""
    return [copied(group[name]) for group in optimizer.param_groups]


def copied(value: object) -> Any:
    """Return a setting, or a copy of a tensor."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def beside(value: object, rate: object) -> Any:
    """Return a setting; one that a tensor holds on the device of a group's learning rate, if that is a tensor too."""
    return value.to(rate.device) if isinstance(value, Tensor) and isinstance(rate, Tensor) else value


def write_rate(group: Group, value: Rate) -> None:
    """Give a group its learning rate, a copy; one that a tensor holds is written in place, as graphs read it there."""
    rate: object = group["lr"]
    if not isinstance(rate, Tensor):
        group["lr"] = copied(value)
    elif isinstance(value, Tensor):
        rate.copy_(value.reshape(rate.shape))
    else:
        rate.fill_(value)


def write_momentum(group: Group, value: float) -> None:
    """Give a group its momentum, or the first of its betas."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def require(optimizer: Optimizer, names: set[str]) -> None:
    """Raise unless each group has the settings that a schedule put there."""
    for place, group in enumerate(optimizer.param_groups):
        missing = sorted(names - group.keys())
        if missing:
            raise StateDictError(
                f"param_groups[{place}] has no {missing}, which the scheduler gives to groups: make a new scheduler "
                "after add_param_group(), or load the optimizer's state"
            )


def per_group(optimizer: Optimizer, value: object, name: str, check: Callable[[Any, str], None]) -> list[Any]:
    """Return a setting for each group, checked: one for all of them, or a list with one for each."""
    groups = len(optimizer.param_groups)
    values = [*cast("list[object]", value)] if isinstance(value, list | tuple) else [value] * groups
    if len(values) != groups:
        raise SettingError(
            f"{name} must have the same length as optimizer.param_groups: expected {groups} values, got {len(values)}"
        )
    for each in values:
        check(each, name)
    return [beside(copied(each), group["lr"]) for each, group in zip(values, optimizer.param_groups, strict=True)]
