"""Tensors saved for backward that may be changed in place: copied at the moment before the change."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, version_of, wrap
from lucid.autograd.borrowing import ContentsVersion
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.saved import saved_tensors_hooks
from lucid.base.arrays import copied
from lucid.base.locks import new_rlock
from lucid.errors import GraphError, InplaceError

if TYPE_CHECKING:
    from lucid.base.arrays import Array


FEW = 256
"""So many values may be dead before they are left out."""


def _lives(reference: weakref.ref[Any]) -> bool:
    return reference() is not None


class Kept:
    """The values that a tensor has now: its array, shared until that is changed in place.

    Until then `counter` is the version counter of the tensor, and `version` what it was.
    """

    __slots__ = ("__weakref__", "array", "counter", "version")

    def __init__(self, array: Array, counter: list[int] | None = None) -> None:
        self.array, self.counter = array, counter
        self.version = None if counter is None else counter[0]


class Keeping:
    """Values of tensors, each copied just before it changes in place."""

    def __init__(self) -> None:
        # by identity of a version counter, which stands for the memory: the counter itself and what shares its memory
        self._kept: dict[int, tuple[list[int], list[weakref.ref[Kept]]]] = {}
        # how many they are, and how many they are to be when those that died are left out
        self._count, self._most = 0, FEW
        self._lock = new_rlock()

    def pack(self, tensor: TensorBase) -> Kept:
        """Return an entry that keeps the present values of `tensor`."""
        counter = version_of(tensor)
        if isinstance(counter, ContentsVersion):  # of others, who write to it unseen
            return Kept(copied(tensor.array))
        kept = Kept(tensor.array, counter)
        with self._lock:
            if self._count >= self._most:
                self._leave_out_dead()
            self._kept.setdefault(id(counter), (counter, []))[1].append(weakref.ref(kept))
            self._count += 1
        return kept

    def _leave_out_dead(self) -> None:
        entries = [(key, counter, [*filter(_lives, kept)]) for key, (counter, kept) in list(self._kept.items())]
        self._kept = {key: (counter, kept) for key, counter, kept in entries if kept}
        self._count = sum([len(kept) for _, kept in self._kept.values()])
        self._most = max(FEW, 2 * self._count)

    def keep(self, *counters: list[int]) -> None:
        """Copy the saved values in the memory of `counters`, before it changes."""
        references: list[weakref.ref[Kept]] = []
        with self._lock:
            # of many parameters hardly any is kept: no function is called for each
            for key in self._kept.keys() & {*map(id, counters)}:
                references += self._kept.pop(key)[1]
            self._count -= len(references)
        for reference in references:
            kept = reference()
            if kept is not None:
                kept.array, kept.counter = copied(kept.array), None


# Those whose values are kept whichever thread changes them, as long as they live.
everywhere: weakref.WeakSet[Keeping] = weakref.WeakSet()
# The set that it is made of, and its stub leaves out: to ask it itself takes longer than a small op.
kept_everywhere: set[Any] = vars(everywhere)["data"]


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
        if kept.counter is not None and kept.counter[0] != kept.version:
            raise InplaceError(
                "a tensor saved under allow_mutation_on_saved_tensors was changed where that block does not hold, by "
                "another thread or while the block was left: change it inside of the block, or change a clone()"
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
    Leaves that require grad still refuse in-place changes. The block belongs to the thread. Arrays that `lucid.numpy`
    makes inside of it, ``np.zeros(n)``, can be filled with what requires grad.

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


def keep_saved(*counters: list[int]) -> None:
    """Copy the saved values in memory that is about to change, also for :class:`allow_mutation_on_saved_tensors`."""
    if kept_everywhere:
        for keeping in list(everywhere):
            keeping.keep(*counters)
    for hooks in thread.state.saved_hooks:
        if hooks.before_change is not None:
            hooks.before_change(*counters)


def allows_mutation() -> bool:
    """Return whether this thread is inside of a block of :class:`allow_mutation_on_saved_tensors`."""
    return any(hooks.before_change is not None for hooks in thread.state.saved_hooks)
