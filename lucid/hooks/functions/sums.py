"""Numbers summed up by the names of ops, and the table of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from lucid.autograd.hooks.functions import FunctionHook
from lucid.hooks.printing import printed, rich_table

if TYPE_CHECKING:
    from rich.table import Table as RichTable


class Sums(FunctionHook):
    """Base of the hooks of functions that count.

    Attributes
    ----------
    calls : Counter of str
        How often each op has run.
    """

    columns: ClassVar[tuple[str, ...]]

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def values(self, name: str) -> tuple[float | None, ...]:
        """Return an op's values beside its calls; the table goes by the first."""
        raise NotImplementedError

    def __rich__(self) -> RichTable:
        """Return the table for rich: a row for each op, those with the most first."""
        names = sorted(self.calls, key=lambda name: (-(self.values(name)[0] or 0), name))
        rows = [(name, self.calls[name], *self.values(name)) for name in names]
        return rich_table(("op", "calls", *self.columns), rows, {"op"})

    def __str__(self) -> str:
        return printed(self)
