"""How often hooks are called, and how long that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.hooks.listing import Table, table

if TYPE_CHECKING:
    from lucid.autograd.base import TensorBase
    from lucid.nn.module.module import Module
    from lucid.optim.optimizer import Optimizer


class counting:
    """A block that counts the calls of hooks; its value, after ``as``, is their table, with calls and times.

    Parameters
    ----------
    *objects : Module, Tensor or Optimizer
        As for `table`: the hooks on them as the block begins. What is registered later is not counted.

    Raises
    ------
    ArgumentError
        If an object is none of these.

    Notes
    -----
    A hook that is counted has another in its place, which calls it: none costs anything outside of such blocks.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks, nn
    >>> model = nn.Linear(2, 2)
    >>> handle = model.register_forward_hook(lambda module, args, output: None)
    >>> with hooks.counting(model) as found:
    ...     for _ in range(3):
    ...         _ = model(lucid.ones(1, 2))
    ...     handle.calls
    3
    >>> found[0].calls, handle.calls
    (3, None)
    """

    def __init__(self, *objects: Module | TensorBase | Optimizer) -> None:
        self._objects = objects
        self._tables: list[Table] = []

    def __enter__(self) -> Table:
        rows = table(*self._objects)
        self._tables.append(rows)
        for row in rows:
            row.begin_counting()
        return rows

    def __exit__(self, *exception: object) -> None:
        for row in self._tables.pop():
            row.end_counting()
