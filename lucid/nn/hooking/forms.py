"""The two forms of hooks, PyTorch's and lucid's own: told apart once, at registration."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from lucid.autograd.hooks.firing import check_callable, hook_name
from lucid.errors import HookTypeError, warn

if TYPE_CHECKING:
    from collections.abc import Callable


def takes_pytorch_form(hook: Callable[..., Any], theirs: int, ours: int, where: str) -> bool:
    """Return whether `hook` is called with PyTorch's arguments rather than with lucid's own, fewer or more.

    Parameters
    ----------
    hook : callable
        What is being registered. One that can take either form, such as ``*args``, gets PyTorch's; so does a callable
        whose signature Python does not know.
    theirs, ours : int
        How many positional arguments the two forms have.
    where : str
        The registration, for the message.

    Raises
    ------
    HookTypeError
        If it is not callable, or can take neither form.
    """
    check_callable(hook, where)
    try:
        signature = inspect.signature(hook)
    except (TypeError, ValueError):
        return True
    for count in (theirs, ours):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count == theirs
    raise HookTypeError(
        f"{where}: expected a hook of {ours} positional arguments, or of {theirs} as in PyTorch, got "
        f"{hook_name(hook)} with the signature {signature}"
    )


def is_full_backward_hook(hook: Callable[..., Any], where: str, instead: str) -> bool:
    """Return whether a backward hook takes (module, grad_input, grad_output) rather than (tensor, grad): that warns.

    Parameters
    ----------
    hook, where
        As for `takes_pytorch_form`.
    instead : str
        The registration that such a hook is meant for.

    Raises
    ------
    HookTypeError
        If it is not callable, or can take neither form.
    """
    full = takes_pytorch_form(hook, 3, 2, where)
    if full:
        warn(
            f"{where}: a hook of three arguments (module, grad_input, grad_output) is a full backward hook: register "
            f"it with {instead}",
            FutureWarning,
        )
    return full
