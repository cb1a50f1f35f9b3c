"""Schedules along a cosine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lucid.errors import SettingError
from lucid.optim.lr_scheduler.scheduler import LRScheduler, Rate, all_or_nothing, read, refuse_capture
from lucid.settings.optimizers import number
from lucid.settings.schedules import scheduled

if TYPE_CHECKING:
    from lucid.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    r"""The learning rate goes down to `eta_min` in `T_max` epochs, along half a period of a cosine, and up again.

    .. math:: lr_t = eta\_min + (lr_0 - eta\_min) \frac{1 + \cos(\pi t / T\_max)}{2}

    It is computed from that of the epoch before, so that other schedules may change it too.
    `lucid.optim.lr_scheduler` says what holds for all schedules.

    References
    ----------
    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", https://arxiv.org/abs/1608.03983

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> for epoch in range(6):
    ...     print(f"{optimizer.param_groups[0]['lr']:.2f}", end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    1.00 0.85 0.50 0.15 0.00 0.15
    """

    @scheduled
    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the learning rates of `last_epoch`, from those of the epoch before."""
        self._warn_outside_of_step()
        epoch, length, least = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return read(self.optimizer, "lr")
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - length) % (2 * length) == 0:
            # the epoch before was at the bottom, where the ratio below has no divisor
            rise = 1 - math.cos(math.pi / length)
            return [group["lr"] + (base - least) * rise / 2 for base, group in self._with_base()]
        ratio = (1 + math.cos(math.pi * epoch / length)) / (1 + math.cos(math.pi * (epoch - 1) / length))
        return [ratio * (group["lr"] - least) + least for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Rate]:
        return _on_cosine(self.base_lrs, self.eta_min, math.pi * self.last_epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""The learning rate goes down to `eta_min` along half a period of a cosine, again and again.

    .. math:: lr_t = eta\_min + (lr_0 - eta\_min) \frac{1 + \cos(\pi T\_cur / T\_i)}{2}

    where `T_cur` epochs have passed since the last restart, and :math:`T\_i` lie between it and the next one.
    `lucid.optim.lr_scheduler` says what holds for all schedules.

    References
    ----------
    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", https://arxiv.org/abs/1608.03983

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
    >>> for epoch in range(7):
    ...     print(f"{optimizer.param_groups[0]['lr']:.2f}", end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    1.00 0.50 1.00 0.85 0.50 0.15 1.00
    """

    @scheduled
    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_0 = T_0
        self.T_i: float = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the learning rates `T_cur` epochs after a restart."""
        self._warn_outside_of_step()
        return _on_cosine(self.base_lrs, self.eta_min, math.pi * self.T_cur / self.T_i)

    def step(self, epoch: float | None = None) -> None:
        """Go on by an epoch, or to the one given, also a fraction: ``step(epoch + batch / batches)``.

        Raises
        ------
        ValueError
            If the epoch is negative, or groups were added.
        CaptureError
            In a capture of a CUDA graph.
        """
        refuse_capture(self)
        if epoch is not None:
            number(epoch, "epoch")
            if epoch < 0:
                raise SettingError(f"Expected non-negative epoch, but got {epoch}")
        with all_or_nothing(self):
            if epoch is None and self.last_epoch >= 0:
                epoch = self.last_epoch + 1
                self.T_cur += 1
                if self.T_cur >= self.T_i:
                    self.T_cur %= self.T_i
                    self.T_i *= self.T_mult
            else:
                epoch = epoch or 0
                self._find(epoch)
            self._go_to(math.floor(epoch), self.get_lr)

    def _find(self, epoch: float) -> None:
        """Put `T_cur` and `T_i` to an epoch."""
        first, factor = self.T_0, self.T_mult
        if epoch < first:
            self.T_cur, self.T_i = epoch, first
        elif factor == 1:
            self.T_cur = epoch % first
        else:
            restarts = int(math.log(epoch / first * (factor - 1) + 1, factor))
            self.T_cur = epoch - first * (factor**restarts - 1) / (factor - 1)
            self.T_i = first * factor**restarts


def _on_cosine(rates: list[Rate], least: float, angle: float) -> list[Rate]:
    """Return each rate at the angle 0 of a cosine, `least` at pi, and values along the cosine between them."""
    return [least + (rate - least) * (1 + math.cos(angle)) / 2 for rate in rates]
