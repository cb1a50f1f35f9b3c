"""Processes with different numbers of batches: who has run out takes part with zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from lucid.collectives.numbers import all_gathered
from lucid.collectives.sharing import share
from lucid.nn.parallel.agreement import share_buffers

if TYPE_CHECKING:
    from lucid.nn.parallel.distributed import DistributedDataParallel

__all__ = ["Join"]


class Join:
    """The block of `DistributedDataParallel.join`."""

    def __init__(self, model: DistributedDataParallel, whole: bool, enable: bool, raises: bool) -> None:
        self.model = model
        self.whole = whole
        self.enable = enable and model.process_group.size() > 1
        self.raises = raises

        self.last = 0  # a process that has had the last batch

    def __enter__(self) -> Self:
        if self.enable:
            self.model.joining = self
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: object) -> None:
        if not self.enable:
            return
        model = self.model
        model.joining = None
        if kind is None:
            while (first := self._round(here=False)) is not None:
                share_buffers(model, first)
                model.reducer.shadow()
            share(
                [*model.module.parameters(), *model.module.buffers()],
                model.process_group,
                self.last,
                "DistributedDataParallel.join",
            )
        model.reducer.scale = 1.0

    def announce(self) -> int:
        """Tell the others that this process has another batch, and return the first one that has."""
        first = self._round(here=True)
        return 0 if first is None else first

    def _round(self, *, here: bool) -> int | None:
        """Return the first process that has another batch; None if none has."""
        group = self.model.process_group
        everyone = all_gathered(group, np.array([here], np.uint8), "who has a batch")
        active = [int(rank) for rank in np.flatnonzero(everyone)]
        if not active:
            return None
        if self.raises and len(active) < group.size():
            raise RuntimeError(
                "DistributedDataParallel.join: Detected at least one rank that exhausted inputs, and "
                "throw_on_early_termination=True ends all"
            )
        self.last = active[-1]
        self.model.reducer.scale = 1.0 if self.whole else group.size() / len(active)
        return active[0]
