"""ReduceLROnPlateau: the schedule that looks at the results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat

from lucid.arguments import unfit
from lucid.autograd.modes.state import no_grad
from lucid.errors import SettingError
from lucid.optim.base.settings import rate_of
from lucid.optim.lr_scheduler.scheduler import LRScheduler, per_group, read, refuse_capture, warn_of_epoch, write_rate
from lucid.settings.optimizers import InRange, at_least_zero, number
from lucid.settings.ranges import words
from lucid.settings.schedules import scheduled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lucid.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """The learning rate falls to `factor` of itself once a metric has not improved for more than `patience` epochs.

    `step` takes the metric, a number or a tensor of one element; a NaN is no improvement.
    `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    mode : {"min", "max"}
        Whether lower is better, or higher.
    factor : float
        Factor of the learning rate at each reduction, at least 0 and below 1.
    min_lr : float, or list of float
        The lowest learning rate, at least 0, or that of each group.

    Attributes
    ----------
    best : float
        The best metric so far.
    num_bad_epochs : int
        Epochs without improvement.

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> for loss in [3.0, 2.0, 2.0, 2.0, 2.0]:
    ...     optimizer.step()
    ...     scheduler.step(loss)
    ...     print(scheduler.get_last_lr(), end=" ")
    [1.0] [1.0] [1.0] [0.5] [0.5]
    """

    @scheduled
    def __init__(  # pyright: ignore[reportMissingSuperCall]
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        InRange(words("min", "max"))(mode, "mode")
        at_least_zero(factor, "factor")
        if factor >= 1:
            raise SettingError(f"Factor should be < 1.0: expected a number in [0, 1), got {factor}")
        self.min_lrs: list[float] = per_group(optimizer, min_lr, "min_lr", at_least_zero)
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        self.optimizer = optimizer
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = read(optimizer, "lr")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._reset()

    def _reset(self) -> None:
        """Forget the metrics."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, metrics: SupportsFloat, epoch: int | None = None
    ) -> None:
        """Take the metric of an epoch, and reduce the learning rate if it is time to.

        Parameters
        ----------
        metrics : float, or Tensor of one element
            Of a tensor on a device the host waits for it.
        epoch : int, optional
            Its number, which warns.

        Raises
        ------
        TypeError
            If the metric is no number.
        RuntimeError
            If groups were added, and `min_lr` was given for each.
        CaptureError
            In a capture of a CUDA graph.
        """
        refuse_capture(self)
        if not hasattr(metrics, "__float__"):
            raise unfit(metrics, "a number, or a tensor of one element", "metrics")
        if epoch is not None:
            number(epoch, "epoch")
            warn_of_epoch()
        # a loss may be recorded still: its number alone is wanted
        with no_grad():
            metric = float(metrics)
        least = self._least()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(metric, self.best):
            self.best = metric
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce(least)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = read(self.optimizer, "lr")

    def _least(self) -> list[float]:
        """Return the lowest learning rate of each group, also of those that were added."""
        groups = len(self.optimizer.param_groups)
        if len(self.min_lrs) == groups:
            return self.min_lrs
        if self.default_min_lr is None:
            raise SettingError(
                f"The number of param groups in the `optimizer` ({groups}) differs from when `ReduceLROnPlateau` was "
                f"initialized ({len(self.min_lrs)}): give `min_lrs` as many entries"
            )
        return [self.default_min_lr] * groups

    def _reduce(self, least: list[float]) -> None:
        self.min_lrs = least
        for group, lowest in zip(self.optimizer.param_groups, least, strict=True):
            before = rate_of(group)
            after = max(before * self.factor, lowest)
            if before - after > self.eps:
                write_rate(group, after)

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs after a reduction, with metrics that do not count as bad, last on."""
        return self.cooldown_counter > 0

    def _is_better(self, metric: float, best: float) -> bool:
        relative, margin = self.threshold_mode == "rel", self.threshold
        if self.mode == "min":
            return metric < (best * (1.0 - margin) if relative else best - margin)
        return metric > (best * (margin + 1.0) if relative else best + margin)

    def _adopted(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        state = super()._adopted(state_dict)
        return {**state, "mode_worse": math.inf if state["mode"] == "min" else -math.inf}
