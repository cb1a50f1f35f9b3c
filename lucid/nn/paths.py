"""Where a module stands in the model that is being called, in words: for the notes on errors of hooks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType

    from lucid.nn.module import Module


class _Calls:
    """The code of `Module.__call__`, by which calls of modules are told on the stack; `lucid.nn.module` sets it."""

    code: CodeType | None = None


calls = _Calls()


def calling_root(module: Module) -> Module:
    """Return the outermost of the modules that are being called on this thread: `module` or one around it."""
    root: Any = module
    frame = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  the stack costs nothing until then
    while frame is not None:
        if frame.f_code is calls.code:
            root = frame.f_locals["self"]
        frame = frame.f_back
    return root


def module_path(module: Module, root: Module | None) -> str:
    """Return the module's class, and its dotted path within `root` where it is one of its descendants.

    A module does not know its parents, so a call that begins below the model's top gives the path from there.
    """
    kind = type(module).__name__
    if root is None or root is module:
        return f"module {kind}"
    for name, each in root.named_modules():
        if each is module:
            return f"module {type(root).__name__}.{name} ({kind})"
    return f"module {kind}"
