"""What a module call does once a hook waits for it: forward pre-hooks, the module, forward hooks, backward hooks."""

from __future__ import annotations

import warnings
import weakref
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.hooks import add_hook_note, hook_name
from lucid.autograd.mode import thread
from lucid.autograd.retain import register_hook
from lucid.autograd.views import live_edge
from lucid.errors import HookError
from lucid.nn.boundary import FULL, PRE, Boundary
from lucid.nn.paths import calling_root, module_path
from lucid.nn.tables import everywhere, global_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.nn.module import Module


BACKWARD = frozenset({"_backward_hooks", "_backward_pre_hooks"})


class Progress:
    """How far a call has come, for the hooks that are also called after an error.

    Attributes
    ----------
    args, kwargs, result
        What such a hook is given: the arguments after the pre-hooks, and the output, None until there is one.
    called : set of int
        The handle ids of the always-called hooks that have been called.
    """

    __slots__ = ("args", "called", "kwargs", "result")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.called: set[int] = set()


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what ``module(*args, **kwargs)`` gives, with every hook fired at its moment."""
    own = module._active_hooks  # noqa: SLF001  one class in several files
    if "_forward_hooks_always_called" not in own and "_forward_hooks_always_called" not in everywhere:
        return _call(module, args, kwargs, own, None)
    progress = Progress(args, kwargs)
    try:
        return _call(module, args, kwargs, own, progress)
    except Exception:
        _call_after_error(module, progress)
        raise


def _call(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], own: set[str], progress: Progress | None
) -> Any:
    boundary = None
    if not (BACKWARD.isdisjoint(own) and BACKWARD.isdisjoint(everywhere)) and thread.state.recording:
        boundary = _boundary(module)
    if "_forward_pre_hooks" in own or "_forward_pre_hooks" in everywhere:
        args, kwargs = _fire_pre_hooks(module, args, kwargs)
    if boundary is not None:
        args, kwargs = boundary.enter(args, kwargs)
    if progress is not None:
        progress.args, progress.kwargs = args, kwargs
    result = module.forward(*args, **kwargs)
    if "_forward_hooks" in own or "_forward_hooks" in everywhere:
        result = _fire_forward_hooks(module, args, kwargs, result, progress)
    if boundary is not None:
        result = boundary.leave(result)
    if "_output_hooks" in own:
        _hook_output(module, result)
    return result


def _fire_pre_hooks(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments after the forward pre-hooks."""
    hooks = module._forward_pre_hooks.snapshot()  # noqa: SLF001
    if global_tables.forward_pre:
        hooks = global_tables.forward_pre.snapshot() + hooks
    with_kwargs = module._forward_pre_hooks_with_kwargs  # noqa: SLF001
    hook_id, hook = -1, None
    try:
        for hook_id, hook in hooks:
            if hook_id in with_kwargs:
                result = hook(module, args, kwargs)
                if result is not None:
                    if not isinstance(result, tuple) or len(result) != 2:  # pyright: ignore[reportUnknownArgumentType]
                        raise HookError(
                            f"forward pre-hook {hook_name(hook)}: expected None or a tuple of (new_args, new_kwargs), "
                            f"got {result!r}"
                        )
                    args, kwargs = result
            else:
                result = hook(module, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
    except Exception as error:
        _note(error, module, hook, "forward pre-hook", hooks, hook_id)
        raise
    return args, kwargs


def _fire_forward_hooks(
    module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any, progress: Progress | None
) -> Any:
    """Return the output after the forward hooks."""
    hooks = module._forward_hooks.snapshot()  # noqa: SLF001
    if global_tables.forward:
        hooks = global_tables.forward.snapshot() + hooks
    with_kwargs = module._forward_hooks_with_kwargs  # noqa: SLF001
    everyones_with_kwargs = global_tables.forward_with_kwargs
    hook_id, hook = -1, None
    try:
        for hook_id, hook in hooks:
            if progress is not None:
                progress.result = output
                progress.called.add(hook_id)
            if hook_id in with_kwargs or hook_id in everyones_with_kwargs:
                result = hook(module, args, kwargs, output)
            else:
                result = hook(module, args, output)
            if result is not None:
                output = result
    except Exception as error:
        _note(error, module, hook, "forward hook", hooks, hook_id)
        raise
    if progress is not None:
        progress.result = output
    return output


def _call_after_error(module: Module, progress: Progress) -> None:
    """Call the always-called forward hooks that have not been called, after the call has raised."""
    hooks = [
        *((hook_id, hook, "global") for hook_id, hook in global_tables.forward.snapshot()),
        *((hook_id, hook, "own") for hook_id, hook in module._forward_hooks.snapshot()),  # noqa: SLF001
    ]
    for hook_id, hook, whose in hooks:
        everyones = whose == "global"
        always = global_tables.forward_always_called if everyones else module._forward_hooks_always_called  # noqa: SLF001
        if hook_id not in always or hook_id in progress.called:
            continue
        with_kwargs = global_tables.forward_with_kwargs if everyones else module._forward_hooks_with_kwargs  # noqa: SLF001
        try:
            if hook_id in with_kwargs:
                result = hook(module, progress.args, progress.kwargs, progress.result)
            else:
                result = hook(module, progress.args, progress.result)
            if result is not None:
                progress.result = result
        except Exception as error:  # noqa: BLE001  the first error is the one to raise
            warnings.warn(
                f"forward hook {hook_name(hook)} of {module_path(module, calling_root(module))}, registered with "
                f"always_call=True, raised {type(error).__name__}: {error}; silenced, as the call had raised before",
                UserWarning,
                stacklevel=4,
            )


def _note(
    error: Exception, module: Module, hook: Any, kind: str, hooks: tuple[tuple[int, Any], ...], hook_id: int
) -> None:
    index = [each for each, _ in hooks].index(hook_id)
    add_hook_note(error, hook, kind, module_path(module, calling_root(module)), index)


def _boundary(module: Module) -> Boundary:
    """Return the boundary with the backward hooks as they are now."""
    pre_hooks = [(hook, PRE) for _, hook in global_tables.backward_pre.snapshot()]
    hooks = [(hook, FULL) for _, hook in global_tables.backward.snapshot()]
    own = module._backward_pre_hooks.snapshot()  # noqa: SLF001
    if own:
        forms = module._backward_pre_hooks_form  # noqa: SLF001
        pre_hooks += [(hook, forms.get(hook_id, PRE)) for hook_id, hook in own]
    own = module._backward_hooks.snapshot()  # noqa: SLF001
    if own:
        forms = module._backward_hooks_form  # noqa: SLF001
        hooks += [(hook, forms.get(hook_id, FULL)) for hook_id, hook in own]
    return Boundary(module, pre_hooks, hooks)


def _hook_output(module: Module, output: Any) -> None:
    """Put the hooks of `register_backward_hook` on the output, if it is a single tensor that requires grad."""
    if not isinstance(output, TensorBase) or live_edge(output) is None:
        return
    # the node holds its hooks: a strong reference to the tensor would be a cycle
    ref = weakref.ref(output)
    for _, hook in module._output_hooks.snapshot():  # noqa: SLF001
        register_hook(output, _OutputHook(hook, ref))


class _OutputHook:
    """A tensor hook that calls ``hook(tensor, grad)`` and ignores what it returns."""

    __slots__ = ("func", "tensor")

    def __init__(self, hook: Callable[..., Any], tensor: weakref.ref[TensorBase]) -> None:
        self.func = hook
        self.tensor = tensor

    def __call__(self, grad: Any) -> None:
        self.func(self.tensor(), grad)
