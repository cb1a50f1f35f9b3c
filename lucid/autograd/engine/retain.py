"""Hooks of tensors: registering them, and keeping the gradients of tensors that are no leaves."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, describe
from lucid.autograd.engine.node import AccumulateGrad
from lucid.autograd.hooks.context import in_context
from lucid.autograd.hooks.firing import check_callable, every_step_hook
from lucid.autograd.hooks.handle import RemovableHandle
from lucid.autograd.hooks.registration import HookList
from lucid.autograd.recording.views import live_edge
from lucid.base.gpu import is_gpu_array
from lucid.errors import GraphError, HookError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.base import Edge


def hooks_of(tensor: TensorBase) -> HookList:
    """Return the list of the tensor's hooks; it lives on the node that takes the tensor's gradient.

    Raises
    ------
    HookError
        If the tensor does not require grad.
    """
    edge = live_edge(tensor)
    if edge is None:
        raise HookError(
            f"cannot register a hook on a tensor that doesn't require gradient ({describe(tensor)}): "
            "set requires_grad=True, or register on the result of an op that requires grad"
        )
    node, output = edge
    extra = node.rare()
    extra.expected[output] = (tensor.array.shape, tensor.array.dtype)
    hooks = extra.tensor_hooks.get(output)
    if hooks is None:
        hooks = extra.tensor_hooks.setdefault(output, HookList())
    # a bfloat16 gradient may have to be cast back before a hook sees it, and several outputs come as a list
    if node.outputs == 1 and extra.light is not hooks and tensor.array.dtype.kind == "f":
        extra.settle()
    return hooks


def expect_form(tensor: TensorBase, edge: Edge) -> None:
    """Let the hooks at `edge` expect gradients of the form that `tensor` has now."""
    extra = edge[0].extra
    if extra is not None and edge[1] in extra.expected:
        extra.expected[edge[1]] = (tensor.array.shape, tensor.array.dtype)


def registered_hooks(tensor: TensorBase, kind: str) -> OrderedDict[int, Callable[..., Any]] | None:
    """Return the hooks of a tensor by their position; None if there are none.

    Parameters
    ----------
    tensor : Tensor
        Any.
    kind : {"tensor_hooks", "accumulated"}
        Those of `register_hook`, or of `register_post_accumulate_grad_hook`.
    """
    edge = live_edge(tensor)
    if edge is None or (extra := edge[0].extra) is None:
        return None
    hooks = extra.accumulated if kind == "accumulated" else extra.tensor_hooks.get(edge[1])
    return OrderedDict(enumerate(hooks)) if hooks else None


def register_hook(
    tensor: TensorBase, hook: Callable[..., Any], *, every_step: bool = False, with_context: bool = False
) -> RemovableHandle:
    """Return the handle of a tensor hook; see `Tensor.register_hook`."""
    check_callable(hook, "Tensor.register_hook")
    return add_hook(tensor, every_step_hook(in_context(hook, with_context, "gradient"), every_step))


def add_hook(tensor: TensorBase, hook: Callable[..., Any]) -> RemovableHandle:
    """Return the handle of a hook that is called with the gradient of a tensor that requires grad."""
    hooks = hooks_of(tensor)
    edge = tensor.edge
    leaf = edge is not None and type(edge[0]) is AccumulateGrad and is_gpu_array(tensor.array)
    return RemovableHandle.of(hooks, hook, edge[0] if edge is not None and leaf else None)


def register_post_accumulate_grad_hook(
    tensor: TensorBase, hook: Callable[..., Any], *, every_step: bool = False, with_context: bool = False
) -> RemovableHandle:
    """Return the handle of a post-accumulate hook; see `Tensor.register_post_accumulate_grad_hook`."""
    check_callable(hook, "Tensor.register_post_accumulate_grad_hook")
    edge = live_edge(tensor)
    if edge is None:
        raise HookError(f"cannot register a hook on a tensor that doesn't require gradient ({describe(tensor)})")
    if type(edge[0]) is not AccumulateGrad:
        raise HookError(
            f"post accumulate grad hooks cannot be registered on non-leaf tensors ({describe(tensor)}, made by "
            f"{edge[0].name()}): use register_hook there"
        )
    hook = every_step_hook(in_context(hook, with_context, "accumulated"), every_step)
    extra = edge[0].rare()
    return extra.register("accumulated", hook, edge[0])


def retain_grad(tensor: TensorBase) -> None:
    """Have backward keep the gradient of `tensor`, not a leaf, in its `.grad`; see `Tensor.retain_grad`."""
    edge = live_edge(tensor)
    if edge is None:
        raise GraphError(f"can't retain_grad on a Tensor that has requires_grad=False ({describe(tensor)})")
    node, output = edge
    if type(node) is AccumulateGrad:
        return
    extra = node.rare()
    extra.expected[output] = (tensor.array.shape, tensor.array.dtype)
    extra.retained[output] = weakref.ref(tensor)
    extra.settle()


def retains_grad(tensor: TensorBase) -> bool:
    """Return whether `tensor` is no leaf and keeps its gradient."""
    edge = live_edge(tensor)
    if edge is None or (extra := edge[0].extra) is None:
        return False
    kept = extra.retained.get(edge[1])
    return kept is not None and kept() is tensor
