"""Tensors that a checkpointed function reads beside its arguments: when run again it has to read the same.

Its modules say which parameters and buffers they hand out, ops which leaves their operands are. Both ask one set of the
process first, which is empty while no checkpointed function runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.autograd.base import INFERENCE, births, describe, version_of
from lucid.autograd.modes.leaving import Context, together
from lucid.autograd.modes.state import ThreadState, thread, unusual
from lucid.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lucid.autograd.base import Edge, TensorBase

# The threads that run a checkpointed function: false where nobody has to say what is read.
watching: set[ThreadState] = set()


class Read(NamedTuple):
    """One tensor that a run has read.

    Attributes
    ----------
    tensor : Tensor
        The tensor itself, held so that no other takes its identity.
    name : callable or None
        Names it for messages.
    holder, key : object, str
        The dictionary in which a module has it, and under which name; None for what an op has read.
    version : int or None
        Its version when it was read; None for a buffer, which a run may change.
    """

    tensor: TensorBase
    name: Callable[[], str] | None
    holder: dict[str, Any] | None
    key: str
    version: int | None

    def __str__(self) -> str:
        return f"a leaf of {describe(self.tensor)}" if self.name is None else self.name()


class Reads(Context):
    """Tensors read by one run of a checkpointed function, and their comparison with those of the first run.

    Parameters
    ----------
    function : str
        The function's name, for messages.
    first : Reads, optional
        The first run, where this is another.
    check : bool
        Whether it has to read the same as the first.
    known : iterable of Tensor
        Tensors that stand for arguments of the first run.
    """

    def __init__(
        self, function: str, first: Reads | None = None, *, check: bool = True, known: Iterable[TensorBase] = ()
    ) -> None:
        super().__init__()
        self.function = function
        self.first = first
        self.check = check
        self.known = {id(tensor): tensor for tensor in known}
        self.seen: dict[int, Read] = {}
        # leaves made from now on are the function's own, others in each run
        self.began = next(births)
        # of the first run, once it is done: which it has changed or replaced itself
        self.own: set[int] = set()
        self.replaced: set[tuple[int, str]] = set()

    def __enter__(self) -> None:
        state = thread.state
        back = setattr, state, "runs", state.runs
        self.undo.append(back if state.runs else together(back, (watching.discard, state)))
        watching.add(state)
        unusual.add(state)
        state.runs = (*state.runs, self)

    def close(self) -> None:
        """Find the tensors that the first run has changed or replaced: it may do so again."""
        for key, read in self.seen.items():
            if read.version is not None and version_of(read.tensor)[0] != read.version:
                self.own.add(key)
            if read.holder is not None and read.holder.get(read.key) is not read.tensor:
                self.replaced.add((id(read.holder), read.key))

    def note(self, read: Read) -> None:
        """Note that a tensor is read.

        Raises
        ------
        CheckpointError
            If the first run has not read it, or it was changed in place since.
        """
        key = id(read.tensor)
        accumulator = getattr(read.tensor, "accumulator", None)
        if key in self.seen or key in self.known or (accumulator is not None and accumulator.born > self.began):
            return
        self.seen[key] = read
        first = self.first
        if first is None or not self.check or (id(read.holder), read.key) in first.replaced:
            return
        before = first.seen.get(key)
        if before is None:
            others = [str(each) for each in first.seen.values() if each.key == read.key and each.key]
            self._refuse(
                f"reads {read}, which the first run did not read"
                + (f" ({others[0]} in its place)" if len(others) == 1 else "")
            )
        elif key not in first.own and self.changed(before.version, read.version):
            self._refuse(
                f"reads {read} at version {read.version}, which the first run read at version {before.version}: it was "
                "changed by an inplace operation in between"
            )

    @staticmethod
    def changed(before: int | None, now: int | None) -> bool:
        """Return whether a tensor of this version in the first run was changed in place since."""
        return None not in {before, now} and before != now

    def end(self, count: int | None = None) -> None:
        """Compare the tensors read with the `count` first ones that the first run has read, all if None.

        Raises
        ------
        CheckpointError
            If a parameter is missing.
        """
        first = self.first
        if first is None or not self.check:
            return
        for key, read in list(first.seen.items())[:count]:
            if key not in self.seen and read.holder is not None and read.version is not None:
                self._refuse(f"does not read {read}, which the first run read")

    def _refuse(self, what: str) -> None:
        raise CheckpointError(
            f"checkpoint of {self.function}: run again in backward, it {what}, so that the gradient would be that of "
            "another function. Let it find what it found in the forward until backward has run (switch adapters and "
            "replace or change parameters afterwards), or leave the checkpoint out"
        )


def note_read(tensor: TensorBase, holder: dict[str, Any], key: str, name: Callable[[], str], *, trained: bool) -> None:
    """Note that a module hands out a parameter, or a buffer."""
    _note(Read(tensor, name, holder, key, _count(tensor) if trained else None))


def note_leaves(edges: Iterable[Edge | None]) -> None:
    """Note the leaves among an op's operands, by the edges of their gradients."""
    for edge in edges:
        leaf: Any = None if edge is None else getattr(edge[0], "leaf", None)
        if leaf is not None and (tensor := leaf()) is not None:
            _note(Read(tensor, None, None, "", _count(tensor)))


def _note(read: Read) -> None:
    for run in thread.state.runs:
        run.note(read)


def _count(tensor: TensorBase) -> int | None:
    """Return the version of a tensor; None for an inference tensor, as it has none."""
    version = version_of(tensor)
    return None if version is INFERENCE else version[0]


def recomputing() -> bool:
    """Return whether this thread runs a checkpointed function again, after its first run made the same changes."""
    return bool(watching) and any(run.first is not None for run in thread.state.runs)
