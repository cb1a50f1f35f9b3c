"""Processes with uneven numbers of batches: hooks of an exhausted process shadow the collectives of the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lucid.arguments import checked, unfit
from lucid.collectives.numbers import all_gathered
from lucid.collectives.world import default_group
from lucid.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lucid.base.device import device
    from lucid.collectives.group import ProcessGroup


class JoinHook:
    """The part of a `Joinable` in a process without further batches, instead of calls of it."""

    def main_hook(self) -> None:
        """Shadow the collectives of one batch of the others; called for each of their remaining batches."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """End the block, when all have run out.

        Parameters
        ----------
        is_last_joiner : bool
            Whether this process had a batch as long as any.
        """


class Joinable(ABC):
    """A member of a `Join` block: `DistributedDataParallel`, `ZeroRedundancyOptimizer`, or a class of one's own.

    It calls ``Join.notify_join_context(self)`` for each batch, before its collectives.

    Attributes
    ----------
    joining : Join or None
        The block that it is in.
    """

    joining: Join | None = None

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook of a process without batches; `kwargs` are those of the `Join`, for all in the block."""

    @property
    @abstractmethod
    def join_device(self) -> device:
        """The device of its collectives."""

    @property
    @abstractmethod
    def join_process_group(self) -> ProcessGroup | None:
        """The processes; all if None."""


class Join:
    """A block for uneven numbers of batches: a process without further ones takes part by hooks until all have ended.

    Parameters
    ----------
    joinables : iterable of Joinable
        In the order in which they are called for a batch; the first tells the other processes that there is one.
    enable : bool
        Whether anything is done.
    throw_on_early_termination : bool
        Whether, instead, all raise a RuntimeError as soon as one runs out.
    **kwargs
        For `join_hook` of each, such as ``divide_by_initial_world_size`` of `DistributedDataParallel`.

    Attributes
    ----------
    active : list of int
        The numbers in the group of the processes that have the last batch.

    Raises
    ------
    SettingError
        If there are no joinables, one is in another such block, or they are of several groups.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> from lucid.distributed.algorithms.join import Join
    >>> from lucid.distributed.optim import ZeroRedundancyOptimizer
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> optimizer = ZeroRedundancyOptimizer(model.parameters(), lucid.optim.SGD, lr=0.1)
    >>> with Join([model, optimizer]):
    ...     for x in lucid.ones(2, 3, 2):
    ...         optimizer.zero_grad()
    ...         model(x).sum().backward()
    ...         optimizer.step()
    """

    @checked
    def __init__(
        self,
        joinables: Iterable[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        self._joinables = list(joinables)
        if not self._joinables:
            raise SettingError("Join: joinables: expected at least one, got none")
        for each in self._joinables:
            if not isinstance(each, Joinable):
                raise unfit(each, "Joinables, such as a DistributedDataParallel", "Join: joinables")
        groups = [each.join_process_group or default_group("Join") for each in self._joinables]
        if any(group is not groups[0] for group in groups):
            raise SettingError(f"Join: joinables: expected all of one process group, got {groups}")
        self._group = groups[0]
        self._enable = enable
        self._raises = throw_on_early_termination
        self._hooks = [each.join_hook(**kwargs) for each in self._joinables]
        self._begin()

    def _begin(self) -> None:
        self.active = list(range(self._group.size()))
        self._ended = False

    def __enter__(self) -> Self:
        if self._enable:
            if any(each.joining is not None for each in self._joinables):
                raise SettingError("Join: joinables: expected some that are in no other such block")
            self._begin()
            for each in self._joinables:
                each.joining = self
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: object) -> None:
        if not self._enable:
            return
        try:
            if kind is None:
                self._follow()
        finally:
            for each in self._joinables:
                each.joining = None

    def _follow(self) -> None:
        """Shadow the collectives of the others until all have run out of batches."""
        self._ended = True
        last = True
        while self._round(here=False):
            last = False
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """Tell the other processes that this one has another batch, if `joinable` is the first of a `Join` block.

        Parameters
        ----------
        joinable : Joinable
            Which calls this, before its collectives. Outside of a block nothing is done.

        Raises
        ------
        RuntimeError
            With ``throw_on_early_termination=True``, if a process has none.
        """
        if joinable.joining is not None:
            joinable.joining.called_by(joinable)

    def called_by(self, joinable: Joinable) -> None:
        """Take note that one of the joinables is called, by this process or by a hook in its place."""
        if joinable is self._joinables[0] and not self._ended:
            self._round(here=True)

    def _round(self, *, here: bool) -> bool:
        """Return whether a process has another batch."""
        everyone = all_gathered(self._group, np.array([here], np.uint8), "who has a batch")
        active = [int(rank) for rank in np.flatnonzero(everyone)]
        if not active:
            return False
        if self._raises and len(active) < self._group.size():
            raise RuntimeError(
                "Join: Detected at least one rank that exhausted inputs, and throw_on_early_termination=True ends all"
            )
        self.active = active
        return True
