"""Schedules by functions of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from lucid.arguments import checked, unfit
from lucid.errors import StateDictError
from lucid.optim.lr_scheduler.scheduler import LRScheduler, Rate, per_group, read

if TYPE_CHECKING:
    from lucid.optim.optimizer import Optimizer

Function: TypeAlias = Callable[[int], float]


class ByFunctions(LRScheduler):
    """A schedule with a function for each group."""

    lr_lambdas: list[Function]

    def state_dict(self) -> dict[str, Any]:
        """Return all that the schedule knows but its optimizer, of its functions the attributes of those with some.

        Those are objects that can be called; of functions and lambdas there is None.
        """
        return {**super().state_dict(), "lr_lambdas": [state_of(function) for function in self.lr_lambdas]}

    def _check_state(self, state_dict: Mapping[str, Any]) -> None:
        super()._check_state(state_dict)
        if len(state_dict["lr_lambdas"]) != len(self.lr_lambdas):
            raise StateDictError(
                f"load_state_dict: expected {len(self.lr_lambdas)} lr_lambdas, got {len(state_dict['lr_lambdas'])}"
            )

    def _adopted(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        state = super()._adopted(state_dict)
        for function, attributes in zip(self.lr_lambdas, state.pop("lr_lambdas"), strict=True):
            vars(function).update(attributes or {})
        return state


class LambdaLR(ByFunctions):
    r"""The learning rate is the first one times a function of the epoch: :math:`lr_t = lr_0 f(t)`.

    `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    lr_lambda : callable, or list of callable
        The function of the epoch, or one for each group.

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    >>> for epoch in range(4):
    ...     print(f"{optimizer.param_groups[0]['lr']:.2f}", end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    1.00 0.50 0.33 0.25
    """

    @checked
    def __init__(self, optimizer: Optimizer, lr_lambda: Function | list[Function], last_epoch: int = -1) -> None:
        self.lr_lambdas = per_group(optimizer, lr_lambda, "lr_lambda", _function)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the first learning rates, each multiplied by its function's value at `last_epoch`."""
        self._warn_outside_of_step()
        return [rate * function(self.last_epoch) for rate, function in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(ByFunctions):
    r"""The learning rate is multiplied by a function of the epoch: :math:`lr_t = lr_{t-1} f(t)`.

    `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    lr_lambda : callable, or list of callable
        The function of the epoch, from 1, or one for each group.

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for epoch in range(4):
    ...     print(optimizer.param_groups[0]["lr"], end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    1.0 0.5 0.25 0.125
    """

    @checked
    def __init__(self, optimizer: Optimizer, lr_lambda: Function | list[Function], last_epoch: int = -1) -> None:
        self.lr_lambdas = per_group(optimizer, lr_lambda, "lr_lambda", _function)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the groups' learning rates, each multiplied by its function's value at `last_epoch`."""
        self._warn_outside_of_step()
        rates = read(self.optimizer, "lr")
        if self._is_initial:
            return rates
        if len(rates) != len(self.lr_lambdas):
            raise self._other_groups(len(self.lr_lambdas))
        return [rate * function(self.last_epoch) for rate, function in zip(rates, self.lr_lambdas, strict=True)]


def state_of(function: object) -> dict[str, Any] | None:
    """Return the attributes of an object that can be called; None of a function, or without attributes."""
    return None if isinstance(function, FunctionType) else dict(getattr(function, "__dict__", {})) or None


def _function(value: object, name: str) -> None:
    """Raise unless `value` can be called."""
    if not callable(value):
        raise unfit(value, "a function of the epoch, or a list of one for each group", name)
