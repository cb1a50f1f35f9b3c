"""The settings of a parameter group: those that every group must name, and all of them as numbers."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from lucid.autograd.base import TensorBase
from lucid.base import gpu
from lucid.base.capture import check_not_capturing
from lucid.cuda.steps.numbers import StepSettings
from lucid.errors import NotDifferentiableError, SettingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lucid.base.arrays import Array
    from lucid.optim.optimizer import Group


class _Required(Enum):
    """The type of one member that stays itself in copies and pickles."""

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


def rate_of(group: Group) -> float:
    """Return the learning rate of a group as a number; one that a tensor holds is read from its device."""
    lr = group["lr"]
    return _read(lr, "a learning rate") if isinstance(lr, TensorBase) else float(lr)


def _read(tensor: TensorBase, what: str) -> float:
    """Return the number that a tensor holds."""
    if gpu.is_gpu_array(tensor.array):
        check_not_capturing(f"{what} in a CUDA tensor, which is read on the host,")
    return float(tensor.array.item())


def numbers_of(group: Group) -> Group:
    """Return the settings of a group with those that tensors hold, learning rate and betas, as numbers."""
    numbers: Group = {**group, "lr": rate_of(group)}
    if isinstance(group.get("betas", (0.0,))[0], TensorBase):
        numbers["betas"] = tuple([_read(beta, "a beta") for beta in group["betas"]])
    return numbers


def step_settings(group: Group, names: Iterable[str], *, write: bool) -> StepSettings:
    """Return settings as numbers: pairs as two, flags as 0 or 1; those in tensors on a device are not read."""
    values: list[float] = []
    on_device: list[tuple[int, Array]] = []
    for name in names:
        value = group[name]
        for each in cast("tuple[Any, ...]", value if isinstance(value, tuple | list) else (value,)):
            if isinstance(each, TensorBase) and gpu.is_gpu_array(each.array):
                on_device.append((len(values), each.array))
                values.append(0.0)
            else:
                values.append(float(cast("Any", each) or 0))
    return StepSettings(values, on_device, write)


def check_implementation(arguments: Mapping[str, Any]) -> None:
    """Raise unless the arguments that select one of PyTorch's implementations allow lucid's."""
    if arguments.get("foreach") and arguments.get("fused"):
        raise SettingError(
            "`fused` and `foreach` cannot be `True` together: leave both out, one kernel does all anyway"
        )
    if arguments.get("differentiable") and arguments.get("fused"):
        raise SettingError("`fused` does not support `differentiable`: leave both out")
    if arguments.get("differentiable"):
        raise NotDifferentiableError("differentiable=True: a step is not recorded in the graph: leave it False")


def check_foreach(arguments: Mapping[str, Any]) -> None:
    """Raise if PyTorch's list implementation is asked for beside settings in tensors that it cannot take."""
    if not arguments["foreach"] or arguments["capturable"]:
        return
    settings = {"lr": arguments["lr"], **{f"betas[{index}]": beta for index, beta in enumerate(arguments["betas"])}}
    for name, value in settings.items():
        if isinstance(value, TensorBase):
            raise SettingError(
                f"{name} as a Tensor is not supported for capturable=False and foreach=True: leave foreach out, one "
                "kernel does all anyway, or count steps on the device by capturable=True"
            )
