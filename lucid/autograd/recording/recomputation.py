"""Recomputation of checkpointed functions: the slots that the first run leaves, filled by a second run."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

from lucid.autograd.anomaly import user_stack
from lucid.autograd.base import TensorBase, describe, version_of
from lucid.autograd.engine.node import AccumulateGrad
from lucid.autograd.hooks.firing import hook_name
from lucid.autograd.modes.autocast import AutocastAs
from lucid.autograd.modes.reading import Reads
from lucid.autograd.modes.state import inference_mode, thread
from lucid.autograd.recording.saved import Packed, changed_error, saved_tensor, saved_tensors_hooks
from lucid.autograd.recording.views import detached, live_edge
from lucid.base.random.generator import get_rng_states, set_rng_states
from lucid.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from lucid.autograd.engine.passes import Pass

# How many tensors an error about a recomputation lists.
MOST_LISTED = 5


class _Stop(BaseException):
    """Ends a recomputation that has given all that it had to; not an `Exception`, so that no hook hears of it."""

    def __init__(self, rerun: Rerun) -> None:
        super().__init__()
        self.rerun = rerun


class Input:
    """A tensor argument between the first run and the others."""

    __slots__ = ("count", "edge", "held", "version")

    def __init__(self, tensor: TensorBase) -> None:
        hooks = thread.state.saved_hooks
        self.edge = live_edge(tensor)
        self.version = version_of(tensor)
        self.count = self.version[0]
        leaf = self.edge is not None and type(self.edge[0]) is AccumulateGrad
        # an intermediate of an outer checkpoint must not be kept alive by an inner one
        self.held: Any = Packed(hooks[0], tensor) if hooks and not leaf else tensor

    def again(self, name: str, index: int) -> Any:
        """Return the tensor, or a new one at its position in the graph."""
        if isinstance(self.held, Packed):
            return saved_tensor(self.held, self.edge, self.version)
        if self.version[0] != self.count:
            raise changed_error(f"checkpoint of {name}, argument", index, self.count, self.version)
        return self.held


class Slot:
    """Stands in a node for one tensor that the first run would have saved."""

    __slots__ = ("__weakref__", "count", "form", "index", "trace", "version")

    def __init__(self, index: int, tensor: TensorBase, trace: str) -> None:
        self.index = index
        self.form = describe(tensor)
        self.trace = trace
        self.version = version_of(tensor)
        self.count = self.version[0]


class Region:
    """One checkpointed call: its function and arguments, and the tensors that recomputations gave.

    Nodes hold their slots and, through the unpack hook, the region; the region holds the slots weakly. So it goes when
    the last of these nodes has run.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        preserve: bool,
        context: contextlib.AbstractContextManager[Any],
        check: bool,
        debug: bool,
        early_stop: bool,
    ) -> None:
        self.function = function
        self.names = tuple(kwargs)
        self.arguments = [Input(a) if isinstance(a, TensorBase) else a for a in (*args, *kwargs.values())]
        self.states = get_rng_states() if preserve else None
        self.autocast = thread.state.autocast
        self.context = context
        self.check = check
        self.debug = debug
        self.early_stop = early_stop
        self.complete = False
        self.reads = Reads(self.name)
        # how much of it when the last tensor was saved
        self.read_before = 0
        self.slots: list[weakref.ref[Slot]] = []
        # by backward pass: what that pass has had recomputed and not yet used; gone with the pass, however it ends
        self.recomputed: weakref.WeakKeyDictionary[Pass, weakref.WeakKeyDictionary[Slot, tuple[Any, int]]] = (
            weakref.WeakKeyDictionary()
        )

    def pack(self, tensor: TensorBase) -> Slot:
        """Return the slot for a tensor that the first run saves."""
        trace = "".join(user_stack()) if self.debug else ""
        slot = Slot(len(self.slots), tensor, trace)
        self.slots.append(weakref.ref(slot))
        self.read_before = len(self.reads.seen)
        return slot

    def close(self) -> None:
        """End the first run; a recomputation may repeat the in-place changes that it made."""
        self.complete = True
        self.reads.close()
        for each in self.slots:
            if (slot := each()) is not None:
                slot.count = slot.version[0]

    def unpack(self, slot: Slot) -> Any:
        """Return that tensor, after running the function again if this pass has not done so."""
        passes = thread.state.passes
        table = self.recomputed.get(passes[-1]) if passes else None
        if table is None or slot not in table:
            table = Rerun(self).run()
            if passes:
                self.recomputed[passes[-1]] = table
        # a graph that is kept would otherwise keep what it has used, too
        tensor, count = table.pop(slot) if passes and passes[-1].keep else table[slot]
        if isinstance(tensor, Packed):
            return tensor.unpack()
        if version_of(tensor)[0] != count:
            raise changed_error(f"checkpoint of {self.name}", slot.index, count, version_of(tensor))
        return tensor

    @property
    def name(self) -> str:
        """The function's name, for messages."""
        return hook_name(self.function)

    def inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the call."""
        values = [a.again(self.name, index) if isinstance(a, Input) else a for index, a in enumerate(self.arguments)]
        positional = len(values) - len(self.names)
        return tuple(values[:positional]), dict(zip(self.names, values[positional:], strict=True))


class Rerun:
    """One recomputation of a region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        # while the first run is still on, a backward inside of it needs no more than what has been saved so far
        self.stops = region.early_stop or not region.complete
        self.count = 0
        self.recomputed: weakref.WeakKeyDictionary[Slot, tuple[Any, int]] = weakref.WeakKeyDictionary()
        self.wrong: list[str] = []
        self.reads = Reads(region.name, region.reads, check=region.check)
        # the versions of what the first run has saved, before this run changes anything
        self.before = [0 if (slot := each()) is None else slot.version[0] for each in region.slots]
        # the block around that keeps values which change in place, as they may before this run ends
        self.keeping = next((hooks for hooks in thread.state.saved_hooks[:1] if hooks.before_change is not None), None)

    def run(self) -> weakref.WeakKeyDictionary[Slot, tuple[Any, int]]:
        """Return the tensors of the living slots of the region."""
        region = self.region
        args, kwargs = region.inputs()
        stopped = False
        try:
            with (
                self.reads,
                random_numbers(region.states),
                inference_mode(False),
                AutocastAs(region.autocast),
                saved_tensors_hooks(self.pack, _unchanged),
                region.context,
            ):
                region.function(*args, **kwargs)
        except _Stop as stop:
            if stop.rerun is not self:
                raise
            stopped = True
        if self.count != len(region.slots):
            self.fail(
                f"a different number of tensors was saved: expected {len(region.slots)} as in the first run, got "
                f"{self.count}"
            )
        if self.wrong and region.check:
            self.fail("recomputed tensors differ from those of the first run: " + "; ".join(self.wrong[:MOST_LISTED]))
        self.reads.end(region.read_before if stopped else None)
        return self.recomputed

    def pack(self, tensor: TensorBase) -> Any:
        """Put a tensor that this run saves into its slot."""
        slots = self.region.slots
        index, self.count = self.count, self.count + 1
        # what requires no grad keeps its identity, as where nothing is recomputed
        alias = tensor if tensor.edge is None else detached(tensor)
        if index < len(slots):
            slot = slots[index]()
            if slot is not None:
                form = describe(tensor)
                if form != slot.form:
                    now = "".join(user_stack())
                    trace = f", saved at\n{slot.trace}and now at\n{now}" if self.region.debug else ""
                    self.wrong.append(f"tensor {index}: expected {slot.form}, got {form}{trace}")
                # one that both runs have found, rather than made
                before = self.before[index]
                same = version_of(tensor) is slot.version
                if self.region.check and same and self.reads.changed(slot.count, before):
                    raise changed_error(f"checkpoint of {self.region.name}", index, slot.count, [before])
                kept = alias if self.keeping is None else Packed(self.keeping, alias)
                self.recomputed[slot] = kept, version_of(alias)[0]
        elif not self.stops:
            # at once: the traceback shows what saves more, and no later hook fires
            self.fail(f"a different number of tensors was saved: expected {len(slots)} as in the first run, got more")
        if self.stops and self.count >= len(slots):
            self.count = len(slots)
            raise _Stop(self)
        return alias

    def fail(self, what: str) -> NoReturn:
        """Raise the error of a run that did not repeat the first."""
        hint = "" if self.region.debug else "; debug=True shows where each tensor was saved"
        raise CheckpointError(
            f"checkpoint of {self.region.name}: {what}. The function must do the same again when backward calls it: "
            f"look for state, globals or random numbers that changed in between{hint}"
        )


def _unchanged(tensor: Any) -> Any:
    return tensor


@contextlib.contextmanager
def random_numbers(states: dict[str, Any] | None) -> Generator[None]:
    """Continue all devices' generators from `states` inside, and from their own states afterwards."""
    if states is None:
        yield
        return
    before = get_rng_states()
    set_rng_states(states)
    try:
        yield
    finally:
        set_rng_states(before)
