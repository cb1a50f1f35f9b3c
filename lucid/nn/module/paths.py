"""Where a module stands in its model, in words: for the notes on errors of hooks."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lucid.nn.module.module import Module


def adopt(parent: Module, child: Module | None) -> None:
    """Note that `child` was put into `parent`, unless the module that it was put into before still holds it."""
    if child is None:
        return
    active = child._active_hooks  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  one package
    before = active.parent() if active.parent is not None else None
    if before is None or child not in before._modules.values():  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        active.parent = weakref.ref(parent)


def module_path(module: Module) -> str:
    """Return the module's class, and its dotted path from the top of its model where it is part of one."""
    names: list[str] = []
    top = module
    while (ref := top._active_hooks.parent) is not None and (parent := ref()) is not None:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        name = next((name for name, each in parent._modules.items() if each is top), None)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if name is None:
            break
        names.append(name)
        top = parent
    kind = type(module).__name__
    return f"module {'.'.join([type(top).__name__, *reversed(names)])} ({kind})" if names else f"module {kind}"
