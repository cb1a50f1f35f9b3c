"""Module calls with hooks: forward pre-hooks, the module, forward hooks, backward hooks."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.engine.retain import register_hook
from lucid.autograd.hooks.context import CallRecord
from lucid.autograd.hooks.firing import StandIn, add_hook_note, fire, hook_name
from lucid.autograd.hooks.registration import changing
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.views import live_edge
from lucid.base.capture import captures, note_places
from lucid.errors import HookError, warn
from lucid.nn.hooking.boundary import ModuleInputBackward
from lucid.nn.hooking.one_tensor import call_with_hooks
from lucid.nn.hooking.own_output import Beginning
from lucid.nn.hooking.tables import everywhere, global_tables
from lucid.nn.module.paths import module_path

if TYPE_CHECKING:
    from lucid.autograd.hooks.table import ActiveHooks, Entry


class StopForward(BaseException):
    """The base of exceptions that end a forward early on purpose; handlers of `Exception` do not catch them."""


def call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``forward(*args, **kwargs)`` after every hook has had its say."""
    own = self._active_hooks
    if not own and not everywhere:
        return self.forward(*args, **kwargs)
    if own.special or everywhere or captures:
        if captures:
            note_places((own, everywhere))
        if len(args) == 1 and not kwargs and not everywhere:
            output = call_with_hooks(self, own, args[0], Call)
            if output is not NotImplemented:
                return output
        this = Call(self, args, kwargs)
        if "_hooks_with_context" in own:
            return _call_in_context(this, own)
        try:
            return this.call(own)
        except (Exception, StopForward):
            if "_forward_hooks_always_called" in own or "_forward_hooks_always_called" in everywhere:
                this.call_after_error()
            raise
    # What most hooks are, in straight-line code: one adds 0.2 us so, and 0.95 by `Call` and `fire`. These take over
    # where forward or another thread registers others meanwhile.
    at: Any = None
    output: Any = None
    called: set[int] | None = None
    try:
        hooks = own.get("_forward_pre_hooks")
        if hooks is not None:
            if not hooks:
                hooks = self._forward_pre_hooks.snapshot(self._forward_pre_hooks_with_kwargs)
            if own.special:
                this = Call(self, args, kwargs)
                try:
                    this.fire_pre_hooks()
                finally:
                    args, kwargs = this.args, this.kwargs
                hooks = ()
            try:
                for at in hooks:
                    hook = at.func
                    result = hook(self, args)
                    if result is not None:
                        args = result if isinstance(result, tuple) else (result,)  # pyright: ignore[reportUnknownVariableType]
            except Exception as error:
                add_hook_note(error, at, "forward pre-hook", module_path(self), hooks.index(at))
                raise
        output = self.forward(*args, **kwargs)
        hooks = own.get("_forward_hooks")
        if hooks is not None:
            if not hooks:
                hooks = self._forward_hooks.snapshot(self._forward_hooks_with_kwargs)
            if own.special:
                this = Call(self, args, kwargs, output)
                try:
                    return this.fire_forward_hooks()
                finally:
                    called, output = this.called, this.output
            try:
                for at in hooks:
                    hook = at.func
                    result = hook(self, args, output)
                    if result is not None:
                        output = result
            except (Exception, StopForward) as error:
                called = {each.id for each in hooks[: hooks.index(at) + 1]}
                add_hook_note(error, at, "forward hook", module_path(self), hooks.index(at))
                raise
    except (Exception, StopForward):
        if "_forward_hooks_always_called" in own:
            this = Call(self, args, kwargs, output)
            this.called = called or set()
            this.call_after_error()
        raise
    return output


class Call:
    """One call of a module in full, with the values for its forward hooks, also for those called after an error.

    Attributes
    ----------
    args, kwargs, output
        The arguments after the pre-hooks so far; the output after the forward hooks so far, None until there is one.
    called : set of int
        The handle ids of the forward hooks that have been called.
    """

    __slots__ = ("args", "called", "kwargs", "module", "output")

    args: tuple[Any, ...]

    def __init__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any = None) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.output = output
        self.called: set[int] = set()

    # errors pass over functions of this name: the module's forward is what the user called
    def call(self, own: ActiveHooks, record: CallRecord | None = None) -> Any:
        """Return the output after all hooks."""
        module = self.module
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
            call.record = record
        output_hooks = module._output_hooks.snapshot() if "_output_hooks" in own else ()  # noqa: SLF001
        if "_output_hooks" in everywhere:
            output_hooks = global_tables.output.snapshot() + output_hooks
        if "_forward_pre_hooks" in own or "_forward_pre_hooks" in everywhere:
            self.fire_pre_hooks()
        if call is not None:
            self.args, self.kwargs = call.enter(self.args, self.kwargs)
        beginning = Beginning() if output_hooks else None
        self.output = module.forward(*self.args, **self.kwargs)
        if "_forward_hooks" in own or "_forward_hooks" in everywhere:
            self.fire_forward_hooks()
        output = self.output
        if call is not None:
            output = call.leave(output)
        if beginning is not None and isinstance(output, TensorBase):
            output = beginning.own(output, self.args, self.kwargs)
            _hook_output(module, output, output_hooks)
        return output

    def owner(self) -> str:
        """Return a description of the owner of the hooks, for messages."""
        return module_path(self.module)

    def fire_pre_hooks(self) -> None:
        """Let the forward pre-hooks replace the arguments."""
        module = self.module
        hooks = module._forward_pre_hooks.snapshot(module._forward_pre_hooks_with_kwargs)  # noqa: SLF001
        if everywhere:
            hooks = global_tables.forward_pre.snapshot() + hooks
        fire(hooks, self.call_pre_hook, None, "forward pre-hook", self.owner)

    def call_pre_hook(self, hook: Entry, _: None) -> None:
        """Let one hook replace the arguments."""
        if hook.option:
            result = hook.func(self.module, self.args, self.kwargs)
            if result is not None:
                self.args, self.kwargs = _both(hook, result)
        else:
            result = hook.func(self.module, self.args)
            if result is not None:
                self.args = result if isinstance(result, tuple) else (result,)

    def forward_hooks(self) -> tuple[Entry, ...]:
        """Return the forward hooks; their option is whether they are given the keyword arguments too."""
        module = self.module
        hooks = module._forward_hooks.snapshot(module._forward_hooks_with_kwargs)  # noqa: SLF001
        if everywhere:
            hooks = global_tables.forward.snapshot(global_tables.forward_with_kwargs) + hooks
        return hooks

    def fire_forward_hooks(self) -> Any:
        """Return the output after the forward hooks."""
        fire(self.forward_hooks(), self.call_forward_hook, None, "forward hook", self.owner)
        return self.output

    def call_forward_hook(self, hook: Entry, _: None) -> None:
        """Let one hook replace the output."""
        self.called.add(hook.id)
        if hook.option:
            result = hook.func(self.module, self.args, self.kwargs, self.output)
        else:
            result = hook.func(self.module, self.args, self.output)
        if result is not None:
            self.output = result

    def call_after_error(self) -> None:
        """Call the always-called forward hooks that have not been called, after the call has raised."""
        with changing:
            hooks = self.forward_hooks()
            always = {*global_tables.forward_always_called, *self.module._forward_hooks_always_called}  # noqa: SLF001
        for hook in hooks:
            if hook.id not in always or hook.id in self.called:
                continue
            try:
                self.call_forward_hook(hook, None)
            except Exception as error:  # noqa: BLE001  the first error is the one to raise
                warn(
                    f"forward hook {hook_name(hook)} of {self.owner()}, registered with always_call=True, raised "
                    f"{type(error).__name__}: {error}; silenced, as the call had raised before",
                    UserWarning,
                )


def _call_in_context(this: Call, own: ActiveHooks) -> Any:
    """Return the output of a call after all hooks, some of them with a context."""
    state = thread.state
    calls = state.calls
    record = CallRecord(this.module)
    state.calls = (*calls, record)
    try:
        return this.call(own, record)
    except (Exception, StopForward):
        if "_forward_hooks_always_called" in own or "_forward_hooks_always_called" in everywhere:
            this.call_after_error()
        raise
    finally:
        state.calls = calls


def _both(hook: Any, result: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the result of a pre-hook with kwargs, after a check that it is (new_args, new_kwargs)."""
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


def _hook_output(module: Any, output: TensorBase, hooks: tuple[Entry, ...]) -> None:
    """Hang the hooks of `register_backward_hook` on an output, if it is on the graph."""
    if not thread.state.recording or live_edge(output) is None:
        return
    # the node holds its hooks: a strong reference to the tensor would be a cycle
    ref = weakref.ref(output)
    for index, hook in enumerate(hooks):
        register_hook(output, _OutputHook(hook.func, ref, module, index))


class _OutputHook(StandIn):
    """A tensor hook that calls ``hook(tensor, grad)`` and ignores the result."""

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
