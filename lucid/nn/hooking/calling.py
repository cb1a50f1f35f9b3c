"""What a module call does once a hook waits for it: forward pre-hooks, the module, forward hooks, backward hooks."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import INFERENCE, TensorBase, version_of
from lucid.autograd.engine.node import AccumulateGrad
from lucid.autograd.engine.retain import register_hook
from lucid.autograd.hooks import StandIn, add_hook_note, hook_name
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.views import live_edge
from lucid.errors import HookError
from lucid.nn.hooking.boundary import ModuleInputBackward
from lucid.nn.hooking.one_tensor import call_with_hooks
from lucid.nn.hooking.tables import changing, everywhere, global_tables
from lucid.nn.module.paths import module_path
from lucid.ops.base.core import clone, expand

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.nn.hooking.tables import ActiveHooks


class Progress:
    """How far a call has come, for the hooks that are also called after an error.

    Attributes
    ----------
    args, kwargs, output
        What such a hook is given: the arguments after the pre-hooks, and the output, None until there is one.
    called : set of int
        The handle ids of the always-called hooks that have been called.
    """

    __slots__ = ("args", "called", "kwargs", "output")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.output: Any = None
        self.called: set[int] = set()


def call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``forward(*args, **kwargs)`` after every hook has had its say."""
    own = self._active_hooks
    if not own and not everywhere:
        return self.forward(*args, **kwargs)
    if own.special or everywhere:
        if own.backward and len(args) == 1 and not kwargs and not everywhere:
            output = call_with_hooks(self, args[0], _fire_forward_hooks)
            if output is not NotImplemented:
                return output
        return _call_in_full(self, own, args, kwargs)
    # what most hooks are, in straight-line code
    at: Any = None
    hooks = own.get("_forward_pre_hooks")
    if hooks is not None:
        hooks = hooks or self._forward_pre_hooks.snapshot()
        try:
            for at in hooks:
                result = at[1](self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)  # pyright: ignore[reportUnknownVariableType]
        except Exception as error:
            _note(error, self, "forward pre-hook", hooks, at)
            raise
    output = self.forward(*args, **kwargs)
    hooks = own.get("_forward_hooks")
    if hooks is not None:
        if not hooks or own.special:
            # the first call since the hooks have changed: also where forward, or another thread, has changed them
            return _fire_forward_hooks(self, args, kwargs, output, None)
        try:
            for at in hooks:
                result = at[1](self, args, output)
                if result is not None:
                    output = result
        except Exception as error:
            _note(error, self, "forward hook", hooks, at)
            raise
    return output


def _call_in_full(module: Any, own: ActiveHooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if "_forward_hooks_always_called" not in own and "_forward_hooks_always_called" not in everywhere:
        return _call(module, own, args, kwargs, None)
    progress = Progress(args, kwargs)
    try:
        return _call(module, own, args, kwargs, progress)
    except Exception:
        _call_after_error(module, progress)
        raise


def _call(
    module: Any, own: ActiveHooks, args: tuple[Any, ...], kwargs: dict[str, Any], progress: Progress | None
) -> Any:
    call = None
    if (
        "_backward_hooks" in own
        or "_backward_pre_hooks" in own
        or "_backward_hooks" in everywhere
        or "_backward_pre_hooks" in everywhere
    ) and thread.state.recording:
        # the hooks as they are before any hook of this call has run
        pre_hooks = module._backward_pre_hooks.snapshot() if "_backward_pre_hooks" in own else ()  # noqa: SLF001
        hooks = module._backward_hooks.snapshot() if "_backward_hooks" in own else ()  # noqa: SLF001
        if everywhere:
            pre_hooks = global_tables.backward_pre.snapshot() + pre_hooks
            hooks = global_tables.backward.snapshot() + hooks
        call = ModuleInputBackward(module, pre_hooks, hooks)
    output_hooks = module._output_hooks.snapshot() if "_output_hooks" in own else ()  # noqa: SLF001
    if "_output_hooks" in everywhere:
        output_hooks = global_tables.output.snapshot() + output_hooks
    if "_forward_pre_hooks" in own or "_forward_pre_hooks" in everywhere:
        args, kwargs = _fire_pre_hooks(module, args, kwargs, progress)
    if call is not None:
        args, kwargs = call.enter(args, kwargs)
    if progress is not None:
        progress.args, progress.kwargs = args, kwargs
    output = module.forward(*args, **kwargs)
    if "_forward_hooks" in own or "_forward_hooks" in everywhere:
        output = _fire_forward_hooks(module, args, kwargs, output, progress)
    if call is not None:
        output = call.leave(output)
    if output_hooks:
        output = _hook_output(module, args, output, output_hooks)
    return output


def _fire_pre_hooks(
    module: Any, args: Any, kwargs: Any, progress: Progress | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments after the forward pre-hooks."""
    with changing:
        hooks = global_tables.forward_pre.snapshot() + module._forward_pre_hooks.snapshot()  # noqa: SLF001
        # a copy: a hook taken off by another one still fires in this call, as it was registered
        with_kwargs = set(module._forward_pre_hooks_with_kwargs)  # noqa: SLF001
    at = 0
    try:
        for at in hooks:
            hook = at[1]
            if at[0] in with_kwargs:
                result = hook(module, args, kwargs)
                if result is not None:
                    args, kwargs = _both(hook, result)
            else:
                result = hook(module, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)  # pyright: ignore[reportUnknownVariableType]
    except Exception as error:
        if progress is not None:
            progress.args, progress.kwargs = args, kwargs
        _note(error, module, "forward pre-hook", hooks, at)
        raise
    return args, kwargs  # pyright: ignore[reportUnknownVariableType]


def _both(hook: Any, result: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what a pre-hook with kwargs returned, if it is (new_args, new_kwargs)."""
    pair: Any = result
    # a tensor, too, could be unpacked into arguments, row by row
    if not (
        isinstance(result, tuple)
        and len(pair) == 2
        and isinstance(pair[0], tuple | list)
        and isinstance(pair[1], Mapping)
    ):
        raise HookError(
            f"forward pre-hook {hook_name(hook)}: expected None or a tuple of (new_args, new_kwargs), a tuple and a "
            f"dictionary, got {result!r}"
        )
    return tuple(pair[0]), dict(pair[1])  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _fire_forward_hooks(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any, progress: Progress | None
) -> Any:
    """Return the output after the forward hooks."""
    with changing:
        hooks = global_tables.forward.snapshot() + module._forward_hooks.snapshot()  # noqa: SLF001
        with_kwargs = {*global_tables.forward_with_kwargs, *module._forward_hooks_with_kwargs}  # noqa: SLF001
    at = 0
    try:
        for at in hooks:
            if progress is not None:
                progress.output = output
                progress.called.add(at[0])
            if at[0] in with_kwargs:
                result = at[1](module, args, kwargs, output)
            else:
                result = at[1](module, args, output)
            if result is not None:
                output = result
    except Exception as error:
        _note(error, module, "forward hook", hooks, at)
        raise
    if progress is not None:
        progress.output = output
    return output


def _call_after_error(module: Any, progress: Progress) -> None:
    """Call the always-called forward hooks that have not been called, after the call has raised."""
    with changing:
        always = {*global_tables.forward_always_called, *module._forward_hooks_always_called}  # noqa: SLF001
        with_kwargs = {*global_tables.forward_with_kwargs, *module._forward_hooks_with_kwargs}  # noqa: SLF001
        hooks = global_tables.forward.snapshot() + module._forward_hooks.snapshot()  # noqa: SLF001
    for hook_id, hook, _ in hooks:
        if hook_id not in always or hook_id in progress.called:
            continue
        try:
            if hook_id in with_kwargs:
                result = hook(module, progress.args, progress.kwargs, progress.output)
            else:
                result = hook(module, progress.args, progress.output)
            if result is not None:
                progress.output = result
        except Exception as error:  # noqa: BLE001  the first error is the one to raise
            warnings.warn(
                f"forward hook {hook_name(hook)} of {module_path(module)}, registered with "
                f"always_call=True, raised {type(error).__name__}: {error}; silenced, as the call had raised before",
                UserWarning,
                stacklevel=4,
            )


def _note(error: Exception, module: Any, kind: str, hooks: tuple[tuple[int, Any, Any], ...], at: Any) -> None:
    """Note on `error` which of `hooks` raised it: the one that stands at the entry `at`."""
    add_hook_note(error, at[1], kind, module_path(module), hooks.index(at))


def _hook_output(
    module: Any, args: tuple[Any, ...], output: Any, hooks: tuple[tuple[int, Callable[..., Any], Any], ...]
) -> Any:
    """Return the output with the hooks of `register_backward_hook` on it, if it is a single tensor on the graph."""
    edge = live_edge(output) if isinstance(output, TensorBase) and thread.state.recording else None
    if edge is None:
        return output
    if type(edge[0]) is AccumulateGrad or any(output is a for a in args):
        # a leaf or an argument that is handed through: the hooks belong to this call, not to that tensor;
        # of an inference tensor a copy, as its views are not recorded
        output = clone(output) if version_of(output) is INFERENCE else expand(output, shape=output.array.shape)
    # the node holds its hooks: a strong reference to the tensor would be a cycle
    ref = weakref.ref(output)
    for index, (_, hook, _) in enumerate(hooks):
        register_hook(output, _OutputHook(hook, ref, module, index))
    return output


class _OutputHook(StandIn):
    """A tensor hook that calls ``hook(tensor, grad)`` and ignores what it returns."""

    __slots__ = ("func", "index", "module", "tensor")

    def __init__(self, hook: Callable[..., Any], tensor: weakref.ref[TensorBase], module: Any, index: int) -> None:
        self.func = hook
        self.tensor = tensor
        self.module = module
        self.index = index

    def __call__(self, grad: Any) -> None:
        try:
            self.func(self.tensor(), grad)
        except Exception as error:
            add_hook_note(error, self.func, "backward hook", module_path(self.module), self.index)
            raise
