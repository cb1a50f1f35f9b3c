"""Hooks of tensors and nodes: the results that they may return."""

from __future__ import annotations

from typing import Any

from lucid.autograd.base import TensorBase, describe
from lucid.autograd.hooks.firing import hook_name
from lucid.errors import HookError, HookTypeError


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
