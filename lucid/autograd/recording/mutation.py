"""Tensors saved for backward that may be changed in place: copied at the moment before the change."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, version_of, wrap
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.saved import saved_tensors_hooks
from lucid.base.arrays import copied
from lucid.errors import GraphError

if TYPE_CHECKING:
    from lucid.base.arrays import Array


class Kept:
    """The values that a tensor has now: its array, shared until that is changed in place."""

    __slots__ = ("__weakref__", "array")

    def __init__(self, array: Array) -> None:
        self.array = array


class Keeping:
    """Values of tensors, each copied just before it changes in place."""

    def __init__(self) -> None:
        # by identity of a version counter, which stands for the memory: the counter itself and what shares its memory
        self._kept: dict[int, tuple[list[int], list[weakref.ref[Kept]]]] = {}

    def pack(self, tensor: TensorBase) -> Kept:
        """Return an entry that keeps the present values of `tensor`."""
        kept = Kept(tensor.array)
        counter = version_of(tensor)
        self._kept.setdefault(id(counter), (counter, []))[1].append(weakref.ref(kept))
        return kept

    def keep(self, counter: list[int]) -> None:
        """Copy the saved values in the memory of `counter`, before it changes."""
        _, references = self._kept.pop(id(counter), (counter, []))
        for reference in references:
            kept = reference()
            if kept is not None:
                kept.array = copied(kept.array)


# Those whose values are kept whichever thread changes them, as long as they live.
everywhere: weakref.WeakSet[Keeping] = weakref.WeakSet()


class _Block(Keeping):
    """The hooks of one :class:`allow_mutation_on_saved_tensors`, and the values saved under them."""

    def __init__(self) -> None:
        super().__init__()
        self.state = thread.state

    def unpack(self, kept: Kept) -> Any:
        """Return the values at saving as a tensor; raise `GraphError` after the block."""
        if not any(hooks.before_change == self.keep for hooks in self.state.saved_hooks):
            raise GraphError(
                "backward needs a tensor saved under allow_mutation_on_saved_tensors, but that block was left: "
                "call backward inside of it"
            )
        return wrap(kept.array)


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Inside, a tensor that was saved for backward may be changed in place: backward uses its values at saving.

    The values are copied just before the first change, and only then.

    Raises
    ------
    GraphError
        When backward needs a saved tensor after the block was left.

    Notes
    -----
    Leaves that require grad still refuse in-place changes. The block belongs to the thread.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> with lucid.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 3
    ...     z = (y * y).sum()
    ...     _ = y.zero_()
    ...     z.backward()
    >>> x.grad
    tensor([18., 18.])
    """

    def __init__(self) -> None:
        self._block = _Block()
        super().__init__(self._block.pack, self._block.unpack)
        self._hooks.before_change = self._block.keep

    def __enter__(self) -> None:
        self._block.state = thread.state
        super().__enter__()


def keep_saved(counter: list[int]) -> None:
    """Copy the saved values in a memory that is about to change, also for :class:`allow_mutation_on_saved_tensors`."""
    if everywhere:  # to iterate over none takes longer than a small op
        for keeping in list(everywhere):
            keeping.keep(counter)
    for hooks in thread.state.saved_hooks:
        if hooks.before_change is not None:
            hooks.before_change(counter)
