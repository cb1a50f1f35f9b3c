"""How long a training loop waited for its data."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class LoaderStats:
    """The times of one pass over a `DataLoader`, in seconds, as returned by `DataLoader.stats`.

    Parameters
    ----------
    waits : sequence of float
        For each batch, from when it was asked for until it was there.
    worked : float
        What the training loop took between getting a batch and asking for the next, all together.

    Examples
    --------
    >>> from lucid.utils import data
    >>> data.LoaderStats([0.5, 0.25], worked=1.0).worked
    1.0
    """

    def __init__(self, waits: Sequence[float] = (), worked: float = 0.0) -> None:
        self.waits = array("d", waits)
        self.worked = worked

    @property
    def batches(self) -> int:
        """How many batches have been given out."""
        return len(self.waits)

    @property
    def waited(self) -> float:
        """How long batches were waited for, all together."""
        return sum(self.waits)

    @property
    def share(self) -> float:
        """The waiting part of the time: near 0 the loader keeps up, near 1 it is the bottleneck."""
        total = self.waited + self.worked
        return self.waited / total if total else 0.0

    def copy(self) -> LoaderStats:
        """Return the times as they are now."""
        return LoaderStats(self.waits, self.worked)

    def __repr__(self) -> str:
        if not self.waits:
            return "LoaderStats(no batches yet)"
        longest = max(range(len(self.waits)), key=self.waits.__getitem__)
        return (
            f"LoaderStats({self.batches} batches: waited {self.waited:.3g} s for data of "
            f"{self.waited + self.worked:.3g} s ({self.share:.0%}), longest {self.waits[longest]:.3g} s for batch "
            f"{longest})"
        )
