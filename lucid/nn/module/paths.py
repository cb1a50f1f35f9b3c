"""Descriptions of a module's place in its model, for the notes on errors of hooks."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lucid.nn.module.module import Module
    from lucid.nn.module.tree import Tree


class Parent(weakref.ref["Module"]):
    """The module that a module was put into, held weakly: copies and pickles have None instead."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(None), ()


def parent_of(module: Tree) -> Module | None:
    """Return the module that `module` was put into, if it is still there."""
    ref = vars(module).get("_adopted_by")
    return None if ref is None else ref()


def adopt(parent: Module, child: Module | None) -> None:
    """Note that `child` was put into `parent`, unless the module that it was put into before still holds it."""
    if child is None:
        return
    state = child.__dict__
    if (
        "_adopted_by" not in state or (before := parent_of(child)) is None or child not in before._modules.values()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    ):
        state["_adopted_by"] = Parent(parent)


def module_path(module: Tree) -> str:
    """Return the module's class and, if it is part of a model, its dotted path from the top of that."""
    top, names = _way(module)
    kind = type(module).__name__
    return f"module {'.'.join([type(top).__name__, *names])} ({kind})" if names else f"module {kind}"


def names_of(module: Tree) -> str:
    """Return the dotted path of a module from the top of its model; empty for the top itself."""
    return ".".join(_way(module)[1])


def _way(module: Tree) -> tuple[Tree, list[str]]:
    """Return the top of the model, and the names from there to a module."""
    names: list[str] = []
    top: Tree = module
    while (parent := parent_of(top)) is not None:
        name = next((name for name, each in parent._modules.items() if each is top), None)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if name is None:
            break
        names.append(name)
        top = parent
    return top, names[::-1]


def saved_as(module: Tree, prefix: str) -> str:
    """Return the module's class, and the path of its entries in a state dict."""
    kind = type(module).__name__
    return f"module {prefix[:-1]} ({kind})" if prefix else f"module {kind}"
