"""Context of a hook's call, passed beside its arguments if it asked for that: its place and moment."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.firing import StandIn
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.modes.reading import recomputing
from lucid.autograd.modes.state import thread
from lucid.base.capture import capture_of_this_thread
from lucid.base.device import device as Device
from lucid.base.device import device_of
from lucid.cuda.streams import current_stream
from lucid.errors import HookTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.engine.node import Node


class CallRecord:
    """One call of a module, as all its hooks that asked for context know it, forward and backward.

    Attributes
    ----------
    module : weakref
        What is called.
    number : int
        How many calls of this module came before it while such a hook was on it.
    data : dict
        Theirs.
    """

    __slots__ = ("data", "module", "number")

    def __init__(self, module: Any) -> None:
        active = module._active_hooks  # noqa: SLF001  which a module that says it is equal to others has for itself
        self.number = active.calls
        active.calls += 1
        self.module = weakref.ref(module)
        self.data: dict[Any, Any] = {}


class HookContext:
    """Last argument of a hook registered with ``with_context=True``.

    Attributes
    ----------
    phase : str
        ``"forward pre"``, ``"forward"``, ``"backward pre"`` and ``"backward"`` of a module's hooks; ``"gradient"`` and
        ``"accumulated"`` of a tensor's; ``"node pre"`` and ``"node post"`` of a node's.
    module : Module or None
        On which it fires.
    path : str
        Of the module in its model; empty for the model itself, tensors and nodes.
    rank : int
        The number of this process among those that train together: 0, as there is one.
    call : int
        The number of the module's call, from 0 on, which a backward has in common with its forward; calls count while
        a hook with context is on the module. 0 for tensors and nodes.
    data : dict
        One for all such hooks of this call, forward and backward: what one puts in another finds.
    shapes : list of tuple of int
        Of the tensors that the hook is given, in their order, lists and dictionaries looked into.
    training : bool or None
        The module's mode.
    recomputing : bool
        Whether a checkpoint runs its function again.
    capturing : bool
        Whether the step is being captured as a CUDA graph.
    node : str or None
        In backward the name of the node that runs.
    backward : int or None
        In backward the number of the pass; see `lucid.autograd.graph.current_graph_task_id`.
    device : device or None
        Of the first of the tensors.
    """

    __slots__ = (
        "backward",
        "call",
        "capturing",
        "data",
        "device",
        "module",
        "node",
        "path",
        "phase",
        "rank",
        "recomputing",
        "shapes",
        "training",
    )

    def __init__(
        self, phase: str, given: tuple[Any, ...], module: Any = None, path: str = "", record: CallRecord | None = None
    ) -> None:
        tensors: list[Any] = []
        map_leaves(given, lambda leaf: tensors.append(leaf) if isinstance(leaf, TensorBase) else None)
        this = thread.state.passes[-1] if thread.state.passes else None
        node: Node | None = None if this is None or phase.startswith("forward") else this.node
        self.phase = phase
        self.module = module
        self.path = path
        self.rank = 0
        self.call = 0 if record is None else record.number
        self.data: dict[Any, Any] = {} if record is None else record.data
        self.shapes = [tuple(tensor.array.shape) for tensor in tensors]
        self.training: bool | None = None if module is None else module.training
        self.recomputing = recomputing()
        self.capturing = capture_of_this_thread() is not None
        self.node = None if node is None else node.name()
        self.backward = None if node is None or this is None else this.number
        self.device: Device | None = device_of(tensors[0].array) if tensors else None

    @property
    def stream(self) -> Any:
        """The `lucid.cuda.Stream` of the device's work here; None on the CPU."""
        if self.device is None or self.device.type != "cuda":
            return None
        return current_stream(self.device)

    def __repr__(self) -> str:
        where = f" of {self.path or type(self.module).__name__}, call {self.call}" if self.module is not None else ""
        return f"<{self.phase}{where}: {', '.join(map(str, self.shapes))}>"


class InContext(StandIn):
    """A hook that gets a `HookContext` after its arguments."""

    __slots__ = ("phase",)

    def __init__(self, func: Callable[..., Any], phase: str) -> None:
        super().__init__(func)
        self.phase = phase

    def __call__(self, *args: Any) -> Any:
        """Return the hook's result."""
        return self.func(*args, HookContext(self.phase, args))


def in_context(hook: Any, with_context: bool, phase: str, kind: type[InContext] = InContext) -> Any:
    """Return the hook itself, or, with `with_context`, a stand-in that passes it a context."""
    if with_context.__class__ is not bool:
        raise HookTypeError(f"with_context: expected a bool, got {type(with_context).__name__}: {with_context!r}")
    return kind(hook, phase) if with_context and callable(hook) else hook
