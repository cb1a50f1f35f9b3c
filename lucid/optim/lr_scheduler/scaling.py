"""Schedules that multiply the learning rates of all groups by one factor."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any

from lucid.errors import SettingError
from lucid.optim.lr_scheduler.scheduler import LRScheduler, Rate
from lucid.settings.optimizers import number, whole
from lucid.settings.schedules import scheduled

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lucid.optim.optimizer import Optimizer


class Scaling(LRScheduler):
    """A schedule of factors: from epoch to epoch, and of the first learning rate."""

    def _factor(self) -> float:
        """Return the factor of `last_epoch` for the learning rates of the epoch before."""
        raise NotImplementedError

    def _total(self) -> float:
        """Return the factor of `last_epoch` for the first learning rates: the product of all factors."""
        raise NotImplementedError

    def get_lr(self) -> list[Rate]:
        """Return the groups' learning rates, each multiplied by the factor of `last_epoch`."""
        self._warn_outside_of_step()
        factor = self._factor()
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Rate]:
        total = self._total()
        return [rate * total for rate in self.base_lrs]


class StepLR(Scaling):
    r"""The learning rate falls to `gamma` of itself every `step_size` epochs.

    .. math:: lr_t = lr_0 \cdot gamma^{\lfloor t / step\_size \rfloor}

    `lucid.optim.lr_scheduler` says what holds for all schedules.

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for epoch in range(5):
    ...     print(optimizer.param_groups[0]["lr"], end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    1.0 1.0 0.5 0.5 0.25
    """

    @scheduled
    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma if self.last_epoch != 0 and self.last_epoch % self.step_size == 0 else 1

    def _total(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(Scaling):
    r"""The learning rate falls to `gamma` of itself at each of some epochs.

    .. math:: lr_t = lr_0 \cdot gamma^{|\{m \in milestones : m \le t\}|}

    `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    milestones : iterable of int
        The epochs, each at least 0; one that is named twice counts twice.

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> for epoch in range(5):
    ...     print(optimizer.param_groups[0]["lr"], end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    1.0 0.5 0.5 0.25 0.25
    """

    @scheduled
    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        for milestone in self.milestones:
            whole(milestone, "milestones")
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma ** self.milestones[self.last_epoch]

    def _total(self) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)

    def _adopted(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        # a file has it as a plain dict
        return {**super()._adopted(state_dict), "milestones": Counter(state_dict["milestones"])}


class ConstantLR(Scaling):
    r"""The learning rate is `factor` of the first one for `total_iters` epochs, and then the first one.

    `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    factor : float
        Factor of the learning rate at first, above 0 and at most 1.

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> for epoch in range(4):
    ...     print(optimizer.param_groups[0]["lr"], end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    0.5 0.5 1.0 1.0
    """

    @scheduled
    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        _first_factor(factor, "factor")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1

    def _total(self) -> float:
        return self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)


class LinearLR(Scaling):
    r"""The learning rate goes from `start_factor` to `end_factor` of the first one in `total_iters` equal steps.

    .. math:: lr_t = lr_0 \left(start + (end - start) \frac{\min(t, total\_iters)}{total\_iters}\right)

    `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    start_factor : float
        Factor of the learning rate at first, above 0 and at most 1.

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
    >>> for epoch in range(5):
    ...     print(optimizer.param_groups[0]["lr"], end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    0.25 0.5 0.75 1.0 1.0
    """

    @scheduled
    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        _first_factor(start_factor, "start_factor")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _total(self) -> float:
        rise = self.end_factor - self.start_factor
        return self.start_factor + rise * min(self.total_iters, self.last_epoch) / max(self.total_iters, 1)


class ExponentialLR(Scaling):
    r"""The learning rate falls to `gamma` of itself every epoch: :math:`lr_t = lr_0 \cdot gamma^t`.

    `lucid.optim.lr_scheduler` says what holds for all schedules.

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for epoch in range(4):
    ...     print(optimizer.param_groups[0]["lr"], end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    1.0 0.5 0.25 0.125
    """

    @scheduled
    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1 if self._is_initial else self.gamma

    def _total(self) -> float:
        return self.gamma**self.last_epoch


class PolynomialLR(Scaling):
    r"""The learning rate falls to 0 in `total_iters` epochs, by a power of the epochs that are left.

    .. math:: lr_t = lr_0 \left(1 - \frac{\min(t, total\_iters)}{total\_iters}\right)^{power}

    `lucid.optim.lr_scheduler` says what holds for all schedules.

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> for epoch in range(6):
    ...     print(f"{optimizer.param_groups[0]['lr']:.2f}", end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    1.00 0.75 0.50 0.25 0.00 0.00
    """

    @scheduled
    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        share, before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return (share / before) ** self.power

    def _total(self) -> float:
        return (1.0 - min(self.total_iters, self.last_epoch) / max(self.total_iters, 1)) ** self.power


def _first_factor(value: float, name: str) -> None:
    """Raise unless `value` is in (0, 1]: later learning rates are computed from those that it makes."""
    number(value, name)
    if not 0 < value <= 1:
        raise SettingError(f"Invalid {name} value: {value}: expected a number in (0, 1], as later rates are made of it")
