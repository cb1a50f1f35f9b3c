"""Schedules that go up and down, the momentum the other way."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from lucid.arguments import unfit
from lucid.errors import SettingError
from lucid.optim.lr_scheduler.functions import state_of
from lucid.optim.lr_scheduler.scheduler import LRScheduler, Rate, per_group, require, write_momentum, write_rate
from lucid.settings.optimizers import InRange, at_least_zero, count, decay, rate
from lucid.settings.ranges import words
from lucid.settings.schedules import scheduled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lucid.optim.optimizer import Optimizer

MODES = InRange(words("triangular", "triangular2", "exp_range"))


class Cycling(LRScheduler):
    """A schedule that, if asked to, also sets each group's momentum, or the first of its betas."""

    cycle_momentum: bool

    def _begin_momentum(
        self, base_momentum: object, max_momentum: object, last_epoch: int
    ) -> tuple[list[float], list[float]]:
        """Return the lowest and the highest momentum of each group; a schedule that begins has them in the groups."""
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise SettingError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled: pass "
                "cycle_momentum=False"
            )
        self.use_beta1 = "betas" in defaults
        check = decay if self.use_beta1 else at_least_zero
        lowest = per_group(self.optimizer, base_momentum, "base_momentum", check)
        highest = per_group(self.optimizer, max_momentum, "max_momentum", check)
        if last_epoch == -1:
            for group, low, high in zip(self.optimizer.param_groups, lowest, highest, strict=True):
                write_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return lowest, highest

    def _momentums(self) -> list[float]:
        """Return the momentum of each group at `last_epoch`."""
        raise NotImplementedError

    def _update_lr(self, epoch: int | None = None) -> None:
        super()._update_lr(epoch)
        self._write_momentums()

    def _write_back(self) -> None:
        super()._write_back()
        self._write_momentums()

    def _write_momentums(self) -> None:
        if self.cycle_momentum:
            for group, momentum in zip(self.optimizer.param_groups, self._momentums(), strict=True):
                write_momentum(group, momentum)


class CyclicLR(Cycling):
    r"""The learning rate goes from `base_lr` up to `max_lr` and back, cycle after cycle, at every batch.

    .. math:: lr_t = base\_lr + (max\_lr - base\_lr) \cdot height_t \cdot scale

    where `height` rises from 0 to 1 in `step_size_up` steps and falls again in `step_size_down`. The momentum goes from
    `max_momentum` to `base_momentum` and back. `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    base_lr : float, or list of float
        The lowest learning rate, at least 0, or that of each group.
    max_lr : float, or list of float
        The highest learning rate, at least 0, or that of each group.
    mode : {"triangular", "triangular2", "exp_range"}
        Scale of the cycles: 1; half of the cycle's before; or `gamma` to the power of the step.
    gamma : float
        Factor of the scale at each step, at least 0, in the mode ``"exp_range"``.
    scale_fn : callable, optional
        Returns the scale, instead of `mode`.

    References
    ----------
    Smith, "Cyclical learning rates for training neural networks", https://arxiv.org/abs/1506.01186

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=0.1, momentum=0.9)
    >>> scheduler = lucid.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.5, step_size_up=2)
    >>> for batch in range(5):
    ...     print(f"{optimizer.param_groups[0]['lr']:.1f} {optimizer.param_groups[0]['momentum']:.2f}", end=", ")
    ...     optimizer.step()
    ...     scheduler.step()
    0.1 0.90, 0.3 0.85, 0.5 0.80, 0.3 0.85, 0.1 0.90,
    """

    @scheduled
    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if scale_fn is None:
            MODES(mode, "mode")
        elif not callable(scale_fn):
            raise unfit(scale_fn, "a callable or None", "scale_fn")
        base_lrs = per_group(optimizer, base_lr, "base_lr", rate)
        self.max_lrs: list[Rate] = per_group(optimizer, max_lr, "max_lr", rate)
        self.optimizer = optimizer
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._begin_momentum(base_momentum, max_momentum, last_epoch)
        if last_epoch == -1:
            for group, lowest in zip(optimizer.param_groups, base_lrs, strict=True):
                write_rate(group, lowest)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the scale of a cycle, by its number, or that of a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return self.gamma**x
        return 1.0 if self.mode == "triangular" else 1 / 2.0 ** (x - 1)

    def _height(self) -> tuple[float, float]:
        """Return how far between its ends a cycle is at `last_epoch`, and the scale of its height."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        up = place <= self.step_ratio
        height = place / self.step_ratio if up else (place - 1) / (self.step_ratio - 1)
        return height, self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the learning rates of `last_epoch`."""
        self._warn_outside_of_step()
        height, scale = self._height()
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def _momentums(self) -> list[float]:
        height, scale = self._height()
        pairs = zip(self.base_momentums, self.max_momentums, strict=True)
        return [high - (high - low) * height * scale for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Return all that the schedule knows but its optimizer; of `scale_fn` the attributes, if it is an object."""
        function = self._scale_fn_custom
        return {**super().state_dict(), "_scale_fn_custom": None if function is None else state_of(function)}

    def _adopted(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        state = super()._adopted(state_dict)
        attributes = state.pop("_scale_fn_custom")
        if attributes and self._scale_fn_custom is not None:
            vars(self._scale_fn_custom).update(attributes)
        return state


class OneCycleLR(Cycling):
    r"""The learning rate goes from `max_lr / div_factor` up to `max_lr`, and down to almost nothing, at every batch.

    It ends at ``max_lr / div_factor / final_div_factor``. The momentum goes from `max_momentum` to `base_momentum` and
    back. `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    max_lr : float, or list of float
        The highest learning rate, at least 0, or that of each group.
    epochs, steps_per_epoch : int, optional
        Numbers of at least 1, whose product is `total_steps` where that is not given.
    three_phase : bool
        Whether it goes down to the first learning rate in as many steps as up, and then to the end, rather than at
        once.

    References
    ----------
    Smith and Topin, "Super-convergence: very fast training of neural networks using large learning rates",
    https://arxiv.org/abs/1708.07120

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=0.1, momentum=0.9)
    >>> scheduler = lucid.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=7, anneal_strategy="linear")
    >>> for batch in range(6):
    ...     print(f"{optimizer.param_groups[0]['lr']:.2f} {optimizer.param_groups[0]['momentum']:.2f}", end=", ")
    ...     optimizer.step()
    ...     scheduler.step()
    0.04 0.95, 0.91 0.86, 0.82 0.87, 0.61 0.89, 0.41 0.91, 0.20 0.93,
    """

    @scheduled
    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 10000.0,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = optimizer
        self.total_steps = _steps(total_steps, epochs, steps_per_epoch)
        highest = per_group(optimizer, max_lr, "max_lr", rate)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase=three_phase)
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch)
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, highest, strict=True):
                group["initial_lr"], group["max_lr"] = high / div_factor, high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the learning rates of `last_epoch`."""
        self._warn_outside_of_step()
        if self.last_epoch > self.total_steps:
            raise SettingError(
                f"Tried to step {self.last_epoch} times, and the number of total steps is {self.total_steps}: count "
                "batches, not epochs, in total_steps, and step once for each"
            )
        return self._annealed("lr")

    def _momentums(self) -> list[float]:
        return self._annealed("momentum")

    def _annealed(self, name: str) -> list[Any]:
        """Return the learning rates, or the momenta, between those at the ends of the phase of `last_epoch`."""
        *earlier, latest = self._schedule_phases
        phase = next((each for each in earlier if self.last_epoch <= each["end_step"]), latest)
        before = self._schedule_phases.index(phase)
        start = self._schedule_phases[before - 1]["end_step"] if before else 0.0
        length = phase["end_step"] - start
        # one without steps is at its end
        part = (self.last_epoch - start) / length if length else 1.0
        first, last = phase[f"start_{name}"], phase[f"end_{name}"]
        require(self.optimizer, {first, last})
        anneal = _along_cosine if self._anneal_func_type == "cos" else _along_line
        return [anneal(group[first], group[last], part) for group in self.optimizer.param_groups]


def _steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    """Return the number of steps, as it is given."""
    if total_steps is not None:
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise SettingError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    count(epochs, "epochs")
    count(steps_per_epoch, "steps_per_epoch")
    return epochs * steps_per_epoch


def _phases(steps: int, share_up: float, *, three_phase: bool) -> list[dict[str, Any]]:
    """Return the parts of the cycle: of each its last step, and the names of the settings at its ends."""
    rates = ("initial_lr", "max_lr", "initial_lr", "min_lr") if three_phase else ("initial_lr", "max_lr", "min_lr")
    momentums = ("max_momentum", "base_momentum", "max_momentum", "max_momentum")
    ends = [float(share_up * steps) - 1, float(2 * share_up * steps) - 2][: len(rates) - 2]
    parts = zip([*ends, steps - 1], pairwise(rates), pairwise(momentums), strict=False)
    return [
        {"end_step": end, "start_lr": lr, "end_lr": next_lr, "start_momentum": momentum, "end_momentum": next_momentum}
        for end, (lr, next_lr), (momentum, next_momentum) in parts
    ]


def _along_cosine(start: float, end: float, part: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _along_line(start: float, end: float, part: float) -> float:
    return (end - start) * part + start
