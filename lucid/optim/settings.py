"""The settings of an optimiser's parameter group: what they may be, and the learning rate as a number."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.errors import NotDifferentiableError

if TYPE_CHECKING:
    from lucid.optim.optimizer import Group


def check_at_least_zero(value: Any, name: str) -> None:
    """Raise unless `value` is a number of at least 0."""
    if not isinstance(value, Real):
        raise TypeError(f"Invalid {name}: expected a Python number, got {type(value).__name__}: {value!r}")
    if not float(value) >= 0:
        raise ValueError(f"Invalid {name}: {value}: expected a number of at least 0")


def check_rate(value: Any) -> None:
    """Raise unless `value` is a learning rate: a number of at least 0, or a tensor that holds one."""
    if isinstance(value, TensorBase):
        if value.array.size != 1:
            raise ValueError(
                f"Invalid learning rate: Tensor lr must be 1-element, got one of shape {tuple(value.array.shape)}"
            )
        value = float(value.array.item())
    check_at_least_zero(value, "learning rate")


def rate_of(group: Group) -> float:
    """Return the learning rate of a group as a number; one that a tensor holds is read from its device."""
    rate = group["lr"]
    return float(rate.array.item() if isinstance(rate, TensorBase) else rate)


def check_implementation(*, foreach: bool | None, fused: bool | None, differentiable: bool) -> None:
    """Raise unless the settings with which PyTorch chooses among implementations ask for what lucid's one does."""
    if foreach and fused:
        raise RuntimeError(
            "`fused` and `foreach` cannot be `True` together: leave both out, one kernel does all anyway"
        )
    if differentiable:
        raise NotDifferentiableError("differentiable=True: a step is not recorded in the graph: leave it False")
