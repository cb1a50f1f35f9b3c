"""Nested arguments and results of functions: tuples, lists, dictionaries and dataclasses, with tensors as leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import shown
from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.structure import StructureError, map_leaves, paired
from lucid.errors import ArgumentError, SettingError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of `tree` in order."""
    result: list[Any] = []
    map_leaves(tree, result.append)
    return result


def refilled(tree: Any, values: Iterable[Any]) -> Any:
    """Return a tree of the structure of `tree` with other leaves."""
    following = iter(values)
    return map_leaves(tree, lambda _: next(following))


class _Leaf:
    def __repr__(self) -> str:
        return "*"


LEAF = _Leaf()


def structure(tree: Any) -> Any:
    """Return `tree` with the same for each leaf: equal for trees of one structure, and shown with stars."""
    return map_leaves(tree, lambda _: LEAF)


def tensors(tree: Any, what: str) -> list[Any]:
    """Return the leaves of `tree`.

    Raises
    ------
    ArgumentError
        If one is no tensor.
    """
    values = leaves(tree)
    for leaf in values:
        if not isinstance(leaf, TensorBase):
            raise ArgumentError(f"{what}: expected only tensors, got {shown(leaf)}")
    return values


def matching(tree: Any, like: Any, what: str) -> list[Any]:
    """Return the leaves of `tree`, tensors of the structure and shapes of those of `like`.

    Raises
    ------
    ShapeError
        If structure or shapes differ.
    """
    if structure(tree) != structure(like):
        raise ShapeError(f"{what}: expected the structure {structure(like)}, got {structure(tree)}")
    values = tensors(tree, what)
    for index, (leaf, other) in enumerate(zip(values, leaves(like), strict=True)):
        if leaf.array.shape != other.array.shape:
            raise ShapeError(
                f"{what}: mismatch in shape: tensor {index} has shape {tuple(leaf.array.shape)}, expected "
                f"{tuple(other.array.shape)}"
            )
    return values


def spread(prefix: Any, tree: Any, what: str) -> list[Any]:
    """Return for each leaf of `tree` the entry of `prefix` that stands at its place, or at that of a tree around it.

    Raises
    ------
    SettingError
        If `prefix` is of another structure.
    """
    result: list[Any] = []
    try:
        for entry, below in paired(prefix, tree):
            result.extend(entry for _ in leaves(below))
    except StructureError as error:
        raise SettingError(f"{what} is not compatible with the structure of what it is for: {error}") from None
    return result


def chosen(args: tuple[Any, ...], argnums: int | tuple[int, ...], what: str) -> tuple[int, ...]:
    """Return the positions that `argnums` names among `args`.

    Raises
    ------
    SettingError
        If there are none, one is no integer or out of range, or one is named twice.
    """
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise SettingError(f"{what}: argnums must be non-empty")
    for number in numbers:
        if not hasattr(number, "__index__"):
            raise SettingError(f"{what}: expected argnums to be an int or a tuple of ints, got {argnums!r}")
        if not -len(args) <= number < len(args):
            raise SettingError(f"{what}: got argnums={number}, but only {len(args)} positional inputs")
    positions = tuple([number % len(args) for number in numbers])
    if len({*positions}) != len(positions):
        raise SettingError(f"{what}: argnums elements must be unique, got {argnums}")
    return positions
