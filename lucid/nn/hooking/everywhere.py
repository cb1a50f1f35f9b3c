"""Hooks of all modules of the process, `lucid.nn.modules.module`: they fire before a module's own.

One that cannot be called is refused with a TypeError. `every_step` is that of `Module.register_forward_hook`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.autograd.hooks.firing import every_step_hook
from lucid.autograd.hooks.table import RemovableHandle, register
from lucid.nn.hooking.registration import is_full_backward_hook
from lucid.nn.hooking.tables import global_tables

if TYPE_CHECKING:
    from collections.abc import Callable


def register_module_forward_pre_hook(hook: Callable[..., Any], *, every_step: bool = False) -> RemovableHandle:
    """Return the handle of a forward pre-hook of every module, ``hook(module, args)``.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> with nn.register_module_forward_pre_hook(lambda module, args: print(type(module).__name__)):
    ...     _ = nn.Sequential(nn.Identity())(lucid.ones(1))
    Sequential
    Identity
    """
    return register(global_tables.forward_pre, every_step_hook(hook, every_step), "register_module_forward_pre_hook")


@checked
def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False, every_step: bool = False
) -> RemovableHandle:
    """Return the handle of a forward hook of every module; see `Module.register_forward_hook`."""
    marks = [global_tables.forward_with_kwargs] if with_kwargs else []
    if always_call:
        marks.append(global_tables.forward_always_called)
    return register(
        global_tables.forward, every_step_hook(hook, every_step), "register_module_forward_hook", marks=marks
    )


def register_module_full_backward_pre_hook(hook: Callable[..., Any], *, every_step: bool = False) -> RemovableHandle:
    """Return the handle of a full backward pre-hook of every module, ``hook(module, grad_output)``."""
    return register(
        global_tables.backward_pre, every_step_hook(hook, every_step), "register_module_full_backward_pre_hook"
    )


def register_module_full_backward_hook(hook: Callable[..., Any], *, every_step: bool = False) -> RemovableHandle:
    """Return the handle of a full backward hook of every module, ``hook(module, grad_input, grad_output)``."""
    return register(global_tables.backward, every_step_hook(hook, every_step), "register_module_full_backward_hook")


def register_module_backward_hook(hook: Callable[..., Any], *, every_step: bool = False) -> RemovableHandle:
    """Return the handle of ``hook(tensor, grad)`` on the tensor that each module returns; see `register_backward_hook`.

    A hook of the three arguments ``(module, grad_input, grad_output)`` becomes a full backward hook of every module,
    with a warning.

    Raises
    ------
    TypeError
        If `hook` cannot be called, or takes neither two nor three arguments.
    """
    if is_full_backward_hook(hook, "register_module_backward_hook", "register_module_full_backward_hook"):
        return register_module_full_backward_hook(hook, every_step=every_step)
    return register(global_tables.output, every_step_hook(hook, every_step), "register_module_backward_hook")


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Return the handle of ``hook(module, name, parameter)``, called before any module stores a parameter.

    What it returns, unless None, is stored instead.
    """
    return register(global_tables.parameter_registration, hook, "register_module_parameter_registration_hook")


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Return the handle of ``hook(module, name, buffer)``, called before any module stores a buffer.

    What it returns, unless None, is stored instead.
    """
    return register(global_tables.buffer_registration, hook, "register_module_buffer_registration_hook")


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Return the handle of ``hook(module, name, submodule)``, called before any module stores a submodule.

    What it returns, unless None, is stored instead.
    """
    return register(global_tables.module_registration, hook, "register_module_module_registration_hook")
