"""Skeletons of arguments and outputs: the number of a tensor in place of each tensor, None in place of all else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.firing import hook_name
from lucid.autograd.hooks.gradients import check_replacement
from lucid.autograd.hooks.structure import StructureError, map_leaves, paired
from lucid.autograd.recording.views import lent
from lucid.errors import HookError, HookTypeError

if TYPE_CHECKING:
    from collections.abc import Callable


def flat(number: Any) -> int | None:
    """Return the number of a tensor; None for a structure that holds several."""
    return number if isinstance(number, int) else None


def counted(tensors: list[Any]) -> Callable[[Any], int | None]:
    """Return a function that appends a tensor to `tensors` and returns its number, and None for any other leaf."""

    def count(leaf: Any) -> int | None:
        if not isinstance(leaf, TensorBase):
            return None
        tensors.append(leaf)
        return len(tensors) - 1

    return count


def filled(numbers: Any, grads: list[Any]) -> Any:
    """Return the skeleton `numbers` with the gradient in place of each number."""
    if numbers == (0,):  # what most hooks ask for
        return (grads[0],)
    return map_leaves(numbers, lambda number: None if number is None else grads[number])


def replaced(
    hook: Any, kind: str, what: str, result: Any, numbers: Any, grads: list[Any], expected: list[Any]
) -> list[Any]:
    """Return `grads` with the result of a hook in place of the gradients that the hook was given.

    Raises
    ------
    HookTypeError
        If it is of another structure, or holds something that is neither a tensor nor None.
    HookError
        If it has another length, or a gradient another shape, dtype or device.
    """
    try:
        pairs = paired(numbers, result)
    except StructureError as error:
        message = (
            f"{kind} {hook_name(hook)}: returned an invalid {'' if error.other_type else 'number of '}{what}: {error}"
        )
        raise (HookTypeError if error.other_type else HookError)(message) from None
    after = list(grads)
    for number, new in pairs:
        if number is None:
            continue
        if new is not None and new is not grads[number]:
            after[number] = lent(check_replacement(hook, kind, new, expected[number], grads[number]))
        else:
            after[number] = new
    return after
