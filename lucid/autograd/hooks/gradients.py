"""Hooks of tensors and nodes: the results that they may return, and the calls of a list of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lucid.autograd.base import TensorBase, describe, registered
from lucid.autograd.hooks.firing import add_hook_note, fire, hook_name, note_fired
from lucid.base.capture import captures
from lucid.errors import HookError, HookTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.autograd.engine.node import Extra, Node


def check_replacement(
    hook: object, kind: str, result: object, expected: tuple[tuple[int, ...], Any] | None, grad: Any
) -> TensorBase:
    """Return `result` if it is a tensor of the shape, dtype and device of `grad`, or as expected; otherwise raise."""
    if not isinstance(result, TensorBase):
        raise HookTypeError(
            f"{kind} {hook_name(hook)}: expected None or a Tensor to be returned, got {type(result).__name__}"
        )
    like = result if grad is None else grad
    shape, dtype = expected or (like.array.shape, like.array.dtype)
    same_device = grad is None or (
        type(result.array) is type(grad.array)
        and getattr(result.array, "device", None) == getattr(grad.array, "device", None)
    )
    if result.array.shape != shape or result.array.dtype != dtype or not same_device:
        wanted = f"shape {tuple(shape)}, {dtype.name}" if grad is None else describe(grad)
        raise HookError(
            f"{kind} {hook_name(hook)}: the returned gradient must have the same shape, dtype and device as the "
            f"gradient that was given: expected {wanted}, got {describe(result)}"
        )
    return result


def fire_tensor_hooks(
    hooks: Sequence[Callable[..., Any]],
    grad: Any,
    expected: tuple[tuple[int, ...], Any] | None,
    owner: Callable[[], str],
    lend: Callable[[Any], Any],
) -> Any:
    """Return the gradient of a tensor of the `expected` shape and dtype, or None, after the tensor's hooks.

    `lend` makes of a tensor that one of them returns what the next one is given: nobody else sees it changed in place.
    """

    def call(hook: Callable[..., Any], grad: Any) -> Any:
        result = hook(grad)
        if result is None or result is grad:
            return result
        return lend(check_replacement(hook, "tensor hook", result, expected, grad))

    return fire(tuple(hooks), call, grad, "tensor hook", owner)


def fire_light(node: Node, extra: Extra, grad: Any, owner: Callable[[Node, int], str]) -> Any:
    """Return the gradient of a node's only output after its tensor hooks, the only rare attributes of the node.

    What the engine does for any node, for the case in which its generality would cost more than the hooks: one adds
    0.3 us, and by `fire` 0.7.
    """
    tensor = registered.new()
    expected = extra.expected[0]
    # another dtype where `data` was set since
    tensor.array = grad if grad.dtype is expected[1] else grad.astype(expected[1], copy=False)
    tensor.edge = tensor.origin = None
    tensor.version = {0: 0}  # as `lent` makes it
    light: Any = extra.light
    hooks = light[:]
    if captures:
        note_fired(hooks, "tensor hook")
    hook, number = None, 0
    try:
        for number, hook in enumerate(hooks):  # noqa: B007  the note on an error says it
            result = hook(tensor)
            if result is not None and result is not tensor:
                array = check_replacement(hook, "tensor hook", result, expected, tensor).array
                tensor = registered.new()
                tensor.array = array
                tensor.edge = tensor.origin = None
                tensor.version = {0: 0}
    except Exception as error:
        add_hook_note(error, hook, "tensor hook", owner(node, 0), number)
        raise
    return tensor.array


def fire_node_hooks(
    hooks: Sequence[Callable[..., Any]],
    grads: tuple[Any, ...],
    others: tuple[Any, ...],
    kind: str,
    owner: str,
    lend: Callable[[Any], Any],
) -> tuple[Any, ...]:
    """Return the gradients of a node after its pre- or posthooks; these replace them as a whole.

    `others` is what the hooks are given besides: a posthook's `grad_outputs`; `lend` is as in `fire_tensor_hooks`.
    """

    def call(hook: Callable[..., Any], grads: tuple[Any, ...]) -> Any:
        result = hook(grads, *others)
        if result is None:
            return None
        if not isinstance(result, tuple):
            raise HookTypeError(f"{kind} {hook_name(hook)}: expected None or a tuple, got {type(result).__name__}")
        entries = cast("tuple[Any, ...]", result)  # a user's tuple holds anything
        if len(entries) != len(grads):
            raise HookError(f"{kind} {hook_name(hook)}: expected a tuple of {len(grads)} gradients, got {len(entries)}")
        return tuple(
            new if new is None or new is old else lend(check_replacement(hook, kind, new, None, old))
            for old, new in zip(grads, entries, strict=True)
        )

    return fire(tuple(hooks), call, grads, kind, owner)
