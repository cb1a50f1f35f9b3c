"""Schedules made of schedules: one after another, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import unfit
from lucid.errors import SettingError, StateDictError
from lucid.optim.lr_scheduler.plateau import ReduceLROnPlateau
from lucid.optim.lr_scheduler.scheduler import LRScheduler, all_or_nothing, read, write_rate
from lucid.settings.optimizers import whole
from lucid.settings.schedules import scheduled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lucid.optim.optimizer import Optimizer


class Combined(LRScheduler):
    """A schedule that lets others change the learning rates."""

    _schedulers: list[LRScheduler]

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        """Check the schedules, and keep them."""
        parts = list(cast("Sequence[object]", schedulers))
        if not parts:
            raise SettingError(f"{type(self).__name__}: schedulers: expected at least one scheduler, got none")
        for place, each in enumerate(parts):
            where = f"{type(self).__name__}: schedulers[{place}]"
            if not isinstance(each, LRScheduler):
                raise unfit(each, "an LRScheduler", "schedulers")
            if isinstance(each, ReduceLROnPlateau):
                raise SettingError(f"{where}: ReduceLROnPlateau needs a metric at each step: step it by itself")
            optimizer = optimizer or each.optimizer
            if each.optimizer is not optimizer:
                raise SettingError(f"{where}: expected all schedulers to belong to the same optimizer, got another's")
        self._schedulers = cast("list[LRScheduler]", parts)
        self.optimizer = self._schedulers[0].optimizer

    def _initial_step(self) -> None:
        # as part of another one: the schedules of this one take their second step, and the optimizer none before it
        noticed = vars(self.optimizer)
        before, noticed["_opt_called"] = noticed.get("_opt_called", False), True
        try:
            super()._initial_step()
        finally:
            noticed["_opt_called"] = before

    def _undo(self) -> None:
        for each in self._schedulers:
            each._undo()  # noqa: SLF001

    def _parts(self, ago: int) -> Iterator[tuple[int, LRScheduler]]:
        return chain.from_iterable(each._parts(ago) for each in self._schedulers)  # noqa: SLF001

    def _take_over(self) -> None:
        _to_first_rates(self.optimizer)
        self._begin_anew()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the schedule, with the state dicts of the others under ``"_schedulers"``."""
        return {**super().state_dict(), "_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a state that `state_dict` returned, here or in PyTorch, the others too.

        Raises
        ------
        StateDictError
            If it is that of other schedules. Nothing is changed then.
        """
        super().load_state_dict(state_dict)

    def _adopt(self, state_dict: Mapping[str, Any]) -> None:
        super()._adopt(state_dict)
        for each, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            each._adopt(state)  # noqa: SLF001

    def _write_back(self) -> None:
        # rates are those of this one; momenta those of whichever part gave the groups theirs last
        for _, each in sorted(self._parts(0), key=lambda part: part[0], reverse=True):
            if each.last_epoch >= 0:
                each._write_momentums()  # noqa: SLF001
        super()._write_back()

    def _check_state(self, state_dict: Mapping[str, Any]) -> None:
        super()._check_state(state_dict)
        states = state_dict["_schedulers"]
        if len(states) != len(self._schedulers):
            raise StateDictError(
                f"load_state_dict: {type(self).__name__} has {len(self._schedulers)} schedulers, the state those of "
                f"{len(states)}"
            )
        for each, state in zip(self._schedulers, states, strict=True):
            each._check_state(state)  # noqa: SLF001

    def _adopted(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        return super()._adopted({name: value for name, value in state_dict.items() if name != "_schedulers"})


class SequentialLR(Combined):
    """One schedule after another: at each milestone the next begins, at its own epoch 0.

    `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    schedulers : list of LRScheduler
        All of one optimizer, made before; no `ReduceLROnPlateau`.
    milestones : list of int
        The epochs at which the second and later ones begin, each at least that before.

    Examples
    --------
    >>> import lucid
    >>> from lucid.optim.lr_scheduler import ExponentialLR, LinearLR, SequentialLR
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> warmup = LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> scheduler = SequentialLR(optimizer, [warmup, ExponentialLR(optimizer, gamma=0.5)], milestones=[2])
    >>> for epoch in range(5):
    ...     print(optimizer.param_groups[0]["lr"], end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    0.5 0.75 1.0 0.5 0.25
    """

    @scheduled
    def __init__(  # pyright: ignore[reportMissingSuperCall]
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if not isinstance(schedulers, list | tuple):
            raise unfit(schedulers, "a list of schedulers", "schedulers")
        if not isinstance(milestones, list | tuple):
            raise unfit(milestones, "a list of epochs", "milestones")
        for milestone in milestones:
            whole(milestone, "milestones")
        if any(later < earlier for earlier, later in pairwise(milestones)):
            raise SettingError(f"milestones: expected epochs in ascending order, got {milestones}")
        if schedulers and len(milestones) != len(schedulers) - 1:
            raise SettingError(
                f"SequentialLR: expected a milestone for each of {len(schedulers)} schedulers but the first, got "
                f"{len(milestones)}"
            )
        self._take(schedulers, optimizer)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        _to_first_rates(optimizer)
        self._undo()
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()  # noqa: SLF001
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Go on by an epoch, in the schedule that has its turn."""
        with all_or_nothing(self):
            self.last_epoch += 1
            place = bisect_right(self._milestones, self.last_epoch)
            scheduler = self._schedulers[place]
            if place > 0 and self._milestones[place - 1] == self.last_epoch:
                scheduler._take_over()  # noqa: SLF001
            else:
                scheduler.step()
            self._last_lr = scheduler.get_last_lr()

    def _parts(self, ago: int) -> Iterator[tuple[int, LRScheduler]]:
        # the last one never ends
        ends = [*self._milestones, self.last_epoch + 1]
        for end, each in zip(ends, self._schedulers, strict=True):
            yield from each._parts(ago + max(0, self.last_epoch + 1 - end))  # noqa: SLF001

    def _begin_anew(self) -> None:
        self.last_epoch = 0
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._begin_anew()  # noqa: SLF001
        self._last_lr = first.get_last_lr()


class ChainedScheduler(Combined):
    """Several schedules at once: at each step each changes the learning rates of those before it.

    `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    schedulers : sequence of LRScheduler
        All of one optimizer, made before; no `ReduceLROnPlateau`.
    optimizer : Optimizer, optional
        Their optimizer.

    Examples
    --------
    >>> import lucid
    >>> from lucid.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> warmup = ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> scheduler = ChainedScheduler([warmup, ExponentialLR(optimizer, gamma=0.5)])
    >>> for epoch in range(4):
    ...     print(optimizer.param_groups[0]["lr"], end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    0.5 0.25 0.25 0.125
    """

    @scheduled
    def __init__(  # pyright: ignore[reportMissingSuperCall]
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self._take(schedulers, optimizer)
        self._last_lr = read(self.optimizer, "lr")

    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Go on by an epoch, in each schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = read(self.optimizer, "lr")

    def _begin_anew(self) -> None:
        for scheduler in self._schedulers:
            scheduler._begin_anew()  # noqa: SLF001
        self._last_lr = read(self.optimizer, "lr")


def _to_first_rates(optimizer: Optimizer) -> None:
    """Give each group its first learning rate."""
    for group in optimizer.param_groups:
        write_rate(group, group["initial_lr"])
