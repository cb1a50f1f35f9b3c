"""Full backward hooks on a module of one tensor in and one tensor out: the two nodes of `boundary`, at a third less.

Most modules are called like that. What the general form decides for each call is fixed here, so that a call with a hook
costs little more than its two nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import INFERENCE, TensorBase, version_of
from lucid.autograd.hooks.firing import fire
from lucid.autograd.modes.state import PLAIN, thread, unusual
from lucid.autograd.recording import short_path
from lucid.autograd.recording.attach import attach
from lucid.autograd.recording.namespace import GRAPH
from lucid.autograd.recording.views import lent, live_edge
from lucid.nn.hooking.boundary import InputView, ModuleInputBackward, ModuleOutputBackward, OutputView
from lucid.nn.hooking.skeletons import replaced
from lucid.nn.hooking.tables import everywhere

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.base import Edge
    from lucid.autograd.hooks.table import ActiveHooks, Entry
    from lucid.nn.hooking.boundary import BoundaryView, Frontier
    from lucid.nn.hooking.calling import Call
    from lucid.nn.module.module import Module


def join(node: Frontier, tensor: Any, edge: Edge, version: list[int], view_type: type[BoundaryView]) -> Any:
    """Return a view, joined to `node`, of a `tensor` at `edge` that counts its changes in `version`."""
    array = tensor.array
    node.expected = [(array.shape, array.dtype)]
    attach(node, (edge,), array)
    origin: Any = view_type.__new__(view_type)
    origin.parent = origin.base = tensor if tensor.origin is None else tensor.origin.base
    view: Any = short_path.new_tensor()
    view.array = array
    view.edge = (node, 0)
    view.version = version
    origin.seen = version[0]
    view.origin = origin
    return view


class OneTensorCall(ModuleInputBackward):
    """The call of a module with one tensor that requires grad and with plain full backward hooks only."""

    __slots__ = ()

    outputs: Any = 1
    skeleton: Any = None
    pre_hooks: Any = ()
    deep: Any = False
    on_request: Any = False
    with_kwargs: Any = False
    joined: Any = True
    record: Any = None

    def name(self) -> str:
        """Return the name that the node of any call has."""
        return ModuleInputBackward.__name__

    def __init__(self, module: Module, hooks: Any) -> None:
        self.module = module
        self.hooks = hooks

    def leave(self, result: Any) -> Any:
        """Return a view of an output that is one tensor and requires grad; any other as the general form does."""
        if not isinstance(result, TensorBase):
            return super().leave(result)
        edge = result.edge if result.origin is None else live_edge(result)
        version = version_of(result)
        if edge is None or version is INFERENCE:
            return super().leave(result)
        end = OneTensorEnd()
        end.call = self
        return join(end, result, edge, version, OutputView)

    def backward(self, m: Any, grad: Any, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        """Return the gradient after the hooks."""
        between = thread.state.passes[-1].between
        waiting = between.pop(self, None)
        if waiting is None or m is GRAPH or grad is None or type(waiting[0]) is list:
            if waiting is not None:
                between[self] = waiting if type(waiting[0]) is list else ([lent(waiting[0])], waiting[1])
            return super().backward(m, grad, quiet)
        dtype = self.expected[0][1]
        tensor = lent(grad if grad.dtype is dtype else grad.astype(dtype, copy=False))
        module, outputs, kind = self.module, (lent(waiting[0]),), "full backward hook"

        def call(hook: Entry, grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
            result = hook.func(module, grads, outputs)
            if result is None:
                return None
            return tuple(replaced(hook, kind, "grad_input", (result,), ((0,),), [*grads], self.expected))

        (tensor,) = fire(self.hooks, call, (tensor,), kind, self.owner)
        return (None if tensor is None else tensor.array,)


class OneTensorEnd(ModuleOutputBackward):
    """The output of such a call."""

    __slots__ = ()

    outputs: Any = 1
    skeleton: Any = None
    single: Any = True

    def name(self) -> str:
        """Return the name that the node of any call has."""
        return ModuleOutputBackward.__name__

    def backward(self, m: Any, grad: Any, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        """Keep the gradient for the hooks, and hand it on."""
        if m is GRAPH or grad is None:
            return super().backward(m, grad, quiet)
        dtype = self.expected[0][1]
        if grad.dtype is not dtype:
            grad = grad.astype(dtype, copy=False)
        thread.state.passes[-1].between[self.call] = grad, self
        return (grad,)


def call_with_hooks(module: Any, active: ActiveHooks, x: Any, general: type[Call]) -> Any:
    """Return the output of ``module(x)`` joined to its full backward hooks; NotImplemented for the general form.

    The form `general` fires the forward hooks that forward itself has registered.

    The general form looks at the rest: no tensor, no gradient, anomaly detection, hooks for saved tensors, other hooks
    beside these, hooks that ask for structure or keyword arguments.
    """
    if len(active) != 1 or not isinstance(x, TensorBase) or (unusual and thread.state.recording != PLAIN):
        return NotImplemented
    hooks = active.get("_backward_hooks")
    if hooks is None:
        return NotImplemented
    table = module._backward_hooks  # noqa: SLF001  the module's own call
    edge = x.edge if x.origin is None else live_edge(x)
    version = version_of(x)
    if edge is None or version is INFERENCE or table.options:
        return NotImplemented
    call = OneTensorCall(module, hooks or table.snapshot())
    view = join(call, x, edge, version, InputView)
    output = module.forward(view)
    if "_forward_hooks" in active or everywhere:
        output = general(module, (view,), {}, output).fire_forward_hooks()
    return call.leave(output)
