"""The graph for users: nodes, edges, hooks over several tensors, and hooks of saved tensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.arguments import among, checked
from lucid.autograd.base import INFERENCE, TensorBase, describe, version_of, wrap
from lucid.autograd.engine.node import Node
from lucid.autograd.engine.retain import add_hook
from lucid.autograd.engine.running import current_graph_task_id, current_node, queue_callback
from lucid.autograd.hooks.firing import StandIn, check_callable, every_step_hook, fire
from lucid.autograd.hooks.handle import Handle, RemovableHandle
from lucid.autograd.hooks.registration import changing
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.attach import node_creation_hook
from lucid.autograd.recording.mutation import allow_mutation_on_saved_tensors
from lucid.autograd.recording.saved import disable_saved_tensors_hooks, saved_tensors_hooks
from lucid.autograd.recording.views import live_edge
from lucid.base.arrays import to_device
from lucid.base.device import CPU, device, device_of
from lucid.base.gpu import pinned_copy
from lucid.base.locks import new_lock
from lucid.errors import GraphError, HookError, HookTypeError, SettingError
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from lucid.autograd.engine.passes import Pass

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "current_graph_task_id",
    "current_node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "node_creation_hook",
    "queue_callback",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class GradientEdge(NamedTuple):
    """A node and the number of one of its outputs: it can stand for that output in `autograd.grad` and `backward`.

    Attributes
    ----------
    node, output_nr
        Which output.
    form : tuple of shape, dtype and device, or None
        What the output was, if the edge is that of a tensor: then a root of one element needs no gradient.
    """

    node: Node
    output_nr: int
    form: tuple[tuple[int, ...], Any, device] | None = None


class save_on_cpu(saved_tensors_hooks):
    """Inside, tensors saved for backward wait in host memory and go back to their device when they are needed.

    Parameters
    ----------
    pin_memory : bool
        Whether the host memory is page-locked, which makes the copies faster; only for CUDA tensors.

    Notes
    -----
    Tensors that are on the CPU are copied too, so that the result does not depend on the device.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> with lucid.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    @checked
    def __init__(self, pin_memory: bool = False) -> None:
        def pack(tensor: TensorBase) -> tuple[Any, Any]:
            array = tensor.array
            device = device_of(array)
            if device is CPU:
                return device, array.copy()
            return device, pinned_copy(array) if pin_memory else to_device(array, CPU)

        def unpack(packed: tuple[Any, Any]) -> TensorBase:
            device, array = packed
            return wrap(array if device is CPU else to_device(array, device, non_blocking=pin_memory))

        super().__init__(pack, unpack)


def get_gradient_edge(tensor: TensorBase) -> GradientEdge:
    """Return the edge that takes the gradient of `tensor`.

    Parameters
    ----------
    tensor : Tensor
        Must require grad. A leaf's node is its `AccumulateGrad`.

    Raises
    ------
    GraphError
        If it does not require grad.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> lucid.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    if not isinstance(tensor, TensorBase):
        raise HookTypeError(f"get_gradient_edge: tensor: expected a Tensor, got {type(tensor).__name__}")
    edge = live_edge(tensor)
    if edge is None:
        raise GraphError(f"get_gradient_edge: the tensor of {describe(tensor)} does not require grad")
    array = tensor.array
    return GradientEdge(*edge, (array.shape, array.dtype, device_of(array)))


def increment_version(tensor: TensorBase | Iterable[TensorBase]) -> None:
    """Count one in-place change of each tensor, for code that wrote to its array behind the version counter.

    Parameters
    ----------
    tensor : Tensor or iterable of Tensor
        What was changed. One made in inference mode has no counter, and is left as it is.

    Raises
    ------
    GraphError
        If one is no tensor. Nothing is counted then.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2)
    >>> lucid.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    tensors: tuple[Any, ...]
    try:
        tensors = (tensor,) if isinstance(tensor, TensorBase) else tuple(tensor)
    except TypeError:
        tensors = (tensor,)
    for t in tensors:
        if not isinstance(t, TensorBase):
            raise GraphError(
                f"increment_version: tensor: expected a Tensor or an iterable of them, got {type(t).__name__}"
            )
    for version in map(version_of, tensors):
        if version is not INFERENCE:
            version[0] += 1


class _Receiver(StandIn):
    """Part of a hook over several tensors, registered on one of them."""

    __slots__ = ("receive",)

    def __init__(self, func: Callable[..., Any], receive: Callable[[Any], None]) -> None:
        super().__init__(func)
        self.receive = receive

    def __call__(self, grad: Any) -> None:
        self.receive(grad)


class _MultiHandle(Handle):
    """The handle of a hook over several tensors: takes all its parts off, and switches all of them.

    `calls` and `time` are those of its parts together: each gradient that comes to it is one call.
    """

    __slots__ = ("_handles",)

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Take the hook off all tensors; a second call does nothing."""
        for handle in self._handles:
            handle.remove()

    def hook(self) -> Any:
        """Return the first of its parts that is there; None once all are off."""
        return next((hook for handle in self._handles if (hook := handle.hook()) is not None), None)

    @property
    def enabled(self) -> bool:
        """Whether the hook is called when its moment comes; set, all its parts rest, or are called again."""
        standing = [handle for handle in self._handles if handle.hook() is not None]
        return bool(standing) and all(handle.enabled for handle in standing)

    @enabled.setter
    def enabled(self, value: bool) -> None:
        with changing:
            for handle in self._handles:
                handle.enabled = value

    @property
    def calls(self) -> int | None:
        """How many gradients came in the block of `lucid.hooks.counting` around; None outside of any."""
        counts = [calls for handle in self._handles if (calls := handle.calls) is not None]
        return sum(counts) if counts else None

    @property
    def time(self) -> float | None:
        """Microseconds of the host that its parts took for them; None outside of any such block."""
        times = [time for handle in self._handles if (time := handle.time) is not None]
        return sum(times) if times else None


class NoGradientError(HookError, AssertionError):
    """A hook was to wait for the gradient of a tensor that gets none."""


def register_multi_grad_hook(
    tensors: Sequence[TensorBase], fn: Callable[..., Any], *, mode: str = "all", every_step: bool = False
) -> _MultiHandle:
    """Return the handle of a hook that waits for the gradients of several tensors.

    Parameters
    ----------
    tensors : sequence of Tensor
        Each must require grad.
    fn : callable
        With ``mode="all"`` called once for each pass with the list of gradients, None for a tensor that this pass
        gives none. With ``mode="any"`` called once for each pass with the first gradient.
    mode : {"all", "any"}
        Which gradients to wait for.
    every_step : bool
        As for `Tensor.register_hook`.

    Raises
    ------
    ValueError
        If `mode` is neither.
    HookTypeError
        If `fn` is not callable.
    HookError
        If a tensor does not require grad; then no hook is registered.

    Examples
    --------
    >>> import lucid
    >>> x, y = lucid.ones(1, requires_grad=True), lucid.ones(1, requires_grad=True)
    >>> handle = lucid.autograd.graph.register_multi_grad_hook((x, y), print)
    >>> (x * 2 + y).sum().backward()
    [tensor([2.]), tensor([1.])]
    """
    if not among(mode, {"all", "any"}):
        raise SettingError(f"register_multi_grad_hook: mode must be 'all' or 'any', got {mode!r}")
    check_callable(fn, "register_multi_grad_hook: fn")
    fn = every_step_hook(fn, every_step)
    if isinstance(tensors, TensorBase) or not isinstance(tensors, Iterable):
        got = "a single Tensor" if isinstance(tensors, TensorBase) else type(tensors).__name__
        raise HookTypeError(f"register_multi_grad_hook: tensors: expected a sequence of tensors, got {got}")
    tensors = tuple(tensors)
    for tensor in tensors:
        if not isinstance(tensor, TensorBase):
            raise HookTypeError(f"register_multi_grad_hook: tensors: expected Tensors, got {type(tensor).__name__}")
        if live_edge(tensor) is None:
            raise NoGradientError(f"register_multi_grad_hook: the tensor of {describe(tensor)} does not require grad")
    # weakly: the hooks below hang on these nodes
    nodes = [weakref.ref(edge[0]) for edge in map(live_edge, tensors) if edge is not None]
    count = len(nodes)
    lock = new_lock()
    # by pass, with which it goes, however that ends: the gradients so far and how many are still to come
    waiting: weakref.WeakKeyDictionary[Pass, tuple[list[Any], int]] = weakref.WeakKeyDictionary()
    fired: weakref.WeakSet[Pass] = weakref.WeakSet()

    def call(argument: Any) -> None:
        kind, owner = f"multi-grad hook (mode={mode!r})", f"{count} tensors"
        fire((fn,), lambda fn, _: fn(argument), None, kind, owner)

    def receiver(index: int) -> Callable[[Any], None]:
        def receive_all(grad: Any) -> None:
            this = thread.state.passes[-1]
            with lock:
                grads, missing = waiting.pop(this, None) or (
                    [None] * count,
                    sum(1 for node in nodes if (alive := node()) is not None and this.will_run(alive)),
                )
                grads[index] = grad
                missing -= 1
                if missing:
                    waiting[this] = grads, missing
            if not missing:
                call(grads)

        def receive_any(grad: Any) -> None:
            this = thread.state.passes[-1]
            if grad is None:
                return
            with lock:
                first = this not in fired
                fired.add(this)
            if first:
                call(grad)

        return _Receiver(fn, receive_all if mode == "all" else receive_any)

    return _MultiHandle([add_hook(tensor, receiver(index)) for index, tensor in enumerate(tensors)])


_publish(globals())
