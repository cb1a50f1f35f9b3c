"""Per-thread state of recording: grad mode, inference mode, saved-tensor hooks, anomaly detection, mixed precision."""

from __future__ import annotations

import os
import threading
import warnings
from contextvars import copy_context
from itertools import product, starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.modes.decorating import Decorating, F, check_bool
from lucid.autograd.modes.leaving import together
from lucid.base.dtype import bfloat16, dtype, float16

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable, Collection

    from lucid.autograd.base import TensorBase
    from lucid.autograd.engine.passes import Pass
    from lucid.autograd.hooks.context import CallRecord
    from lucid.autograd.hooks.functions import Call
    from lucid.autograd.modes.reading import Reads
    from lucid.autograd.recording.saved import SavedTensorHooks

    Modes = tuple["GradMode", tuple[SavedTensorHooks, ...], str | None, "Autocast", tuple[Callable[..., Any], ...]]


class GradMode(NamedTuple):
    """Whether ops are recorded, and whether their results can be."""

    enabled: bool
    inference: bool

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a copy be the one that is there."""
        return _grad_mode, (self.enabled, self.inference)


def _grad_mode(enabled: bool, inference: bool) -> GradMode:
    return GRAD_MODES[enabled, inference]


# Each exists once: they are told apart by identity.
GRAD_MODES = {(mode.enabled, mode.inference): mode for mode in starmap(GradMode, product((True, False), repeat=2))}
GRAD, NO_GRAD = GRAD_MODES[True, False], GRAD_MODES[False, False]


class Autocast(NamedTuple):
    """For each type of device whether ops choose their dtypes there, and the lower one; whether casts are kept."""

    cpu: bool = False
    cuda: bool = False
    cpu_dtype: dtype = bfloat16
    cuda_dtype: dtype = float16
    cache: bool = True


AUTOCAST_OFF = Autocast()
# What user code may change for its thread, as it is in the beginning.
ORDINARY: Modes = (GRAD, (), None, AUTOCAST_OFF, ())

# Values of ThreadState.recording. Only PLAIN records on the short path.
OFF, PLAIN, SPECIAL = 0, 1, 2


# The states whose recording may not be PLAIN, and those whose modes may not be ORDINARY. Empty, it tells an op what it
# needs to know of its thread for a quarter of what the thread's own state costs.
unusual: set[ThreadState] = set()
# Those whose ops may be intercepted, by autocast or by function hooks: empty, it tells an op that nothing comes first.
intercepted: set[ThreadState] = set()


class ThreadState:
    """Modes and settings of one thread for the application of ops.

    `anomaly` is None, or whether gradients are searched for NaN. `passes` holds the backward passes that run on this
    thread, innermost last. What user code changes inside of a pass lasts until its node is done: by `changes`, which
    counts, the pass sees that it has to put back its modes. `early_stop` and `debug` replace settings of checkpoints
    where they are not None; `multithreading` is only noted. `runs` are those of checkpointed functions, innermost last,
    `levels` what functions that are being differentiated have changed. `autocast` is `AUTOCAST_OFF` itself where it is
    equal; `autocast_cache` holds casts of leaves by id, until `autocast_nesting`, which counts blocks, is 0 again.
    `calls` are those of modules whose hooks ask for context, innermost last.
    `open_hooks` and `open_node_hooks` hold the hooks of functions whose blocks are open, by their ids, for forward and
    backward. `function_hooks` and `node_hooks` are these, or empty while what runs is seen by none; `hooks_wait` says
    that this is an op, whose end they will hear of. `call` is the innermost that runs of those that they have seen.
    """

    __slots__ = (
        "anomaly",
        "autocast",
        "autocast_cache",
        "autocast_nesting",
        "call",
        "calls",
        "changes",
        "creation_hooks",
        "debug",
        "early_stop",
        "function_hooks",
        "grad_mode",
        "hooks_wait",
        "levels",
        "multithreading",
        "node_hooks",
        "open_hooks",
        "open_node_hooks",
        "passes",
        "quiet",
        "runs",
        "saved_hooks",
        "saved_hooks_disabled",
    )

    def __init__(self) -> None:
        self.grad_mode = GRAD
        self.anomaly: bool | None = None
        self.autocast = AUTOCAST_OFF
        self.autocast_cache: dict[int, Any] = {}
        self.autocast_nesting = 0
        self.early_stop: bool | None = None
        self.debug: bool | None = None
        self.multithreading = True
        self.saved_hooks: list[SavedTensorHooks] = []  # innermost first, as `list.remove` takes the first of equals
        self.saved_hooks_disabled: str | None = None
        self.creation_hooks: tuple[Callable[..., Any], ...] = ()
        self.open_hooks: dict[int, Any] = {}
        self.open_node_hooks: dict[int, Any] = {}
        self.function_hooks: Collection[Any] = self.open_hooks
        self.node_hooks: Collection[Any] = self.open_node_hooks
        self.hooks_wait = False
        self.call: Call | None = None
        self.passes: list[Pass] = []
        self.calls: tuple[CallRecord, ...] = ()
        self.runs: tuple[Reads, ...] = ()
        self.levels: tuple[list[weakref.ref[TensorBase]], ...] = ()
        self.changes = 0
        # A context in which NumPy reports no floating-point warnings: PyTorch gives inf and nan silently. Running one
        # call inside it costs 40 ns, `np.errstate` 1,400, and the user's own error state stays untouched.
        with np.errstate(all="ignore"):
            self.quiet = copy_context().run

    @property
    def recording(self) -> int:
        """Mode of recording beside the computation; PLAIN in every state that is not in `unusual`."""
        if self.grad_mode is not GRAD:
            return OFF
        if self.saved_hooks or self.anomaly is not None or self.creation_hooks or self.runs:
            return SPECIAL
        self.settle()
        return PLAIN

    def settle(self) -> None:
        """Leave `intercepted` and `unusual` if nothing is unusual any more: the end of a block does not do it."""
        if self.autocast is AUTOCAST_OFF and not (self.autocast_nesting or self.passes or self.function_hooks):
            intercepted.discard(self)
        if (
            self.grad_mode is GRAD
            and not self.saved_hooks
            and self.anomaly is None
            and self.saved_hooks_disabled is None
            and self.autocast is AUTOCAST_OFF
            and not self.creation_hooks
            and not self.runs
        ):
            unusual.discard(self)

    def before_change(self) -> None:
        """Note that one of the fields is about to change."""
        self.changes += 1
        unusual.add(self)

    def putting_back(self, field: str, *, ordinary: bool) -> tuple[Any, ...]:
        """Return the call that gives a field the value that it has now, function first; see `Context.undo`.

        Where that is not the `ordinary` one it enters the state in `unusual`, which `settle` may have taken off.
        """
        step = setattr, self, field, getattr(self, field)
        return step if ordinary else together((unusual.add, self), step)

    def modes(self) -> Modes:
        """Return the modes that user code may change for this thread."""
        return self.grad_mode, (*self.saved_hooks,), self.saved_hooks_disabled, self.autocast, self.creation_hooks


class _End:
    """Goes with its thread, and removes the thread's state from the sets of states."""

    __slots__ = ("_state",)

    def __init__(self, state: ThreadState) -> None:
        self._state = state

    def __del__(self, sets: tuple[set[ThreadState], ...] = (unusual, intercepted)) -> None:
        for states in sets:
            states.discard(self._state)


class _Thread(threading.local):
    """Gives each thread its own state."""

    def __init__(self) -> None:
        self.state = ThreadState()
        self._end = _End(self.state)


def _only_this_thread() -> None:
    """Forget the states of threads that a fork has left behind."""
    for states in (unusual, intercepted):
        states.intersection_update({thread.state})


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_only_this_thread)


thread = _Thread()

# The hot path calls ufuncs outside of a quiet context. NumPy's warnings are attributed to the module that calls it, so
# this silences lucid's own calls and nobody else's; where a user's filter or error state turns them into errors, the
# callers catch these and run again in the quiet context.
NumPyComplaints = (RuntimeWarning, FloatingPointError)
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"lucid\.(autograd|ops|tensor)\b")


class _Mode(Decorating):
    """A grad mode as a context manager and as a decorator; the previous mode comes back on exit."""

    def _mode(self, before: GradMode) -> GradMode:
        """Return the replacement of `before`."""
        raise NotImplementedError

    def __enter__(self) -> None:
        state = thread.state
        before = state.grad_mode
        mode = self._mode(before)
        self.undo.append(state.putting_back("grad_mode", ordinary=before is GRAD))
        state.before_change()
        state.grad_mode = mode


class no_grad(_Mode):
    """Ops inside are not recorded; their results do not require grad.

    A context manager and a decorator. Affects the current thread only.

    Parameters
    ----------
    function : callable, optional
        What it decorates.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> with lucid.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__()

    def _mode(self, before: GradMode) -> GradMode:
        return GRAD_MODES[False, before.inference]

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Decorate `function` at once when written without parentheses, as in ``@lucid.no_grad``."""
        if function is None:
            return super().__new__(cls)
        mode = super().__new__(cls)
        mode.__init__()
        return mode(function)


class enable_grad(no_grad):
    """Ops inside are recorded, also within :class:`no_grad`.

    Parameters
    ----------
    function : callable, optional
        What it decorates.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> with lucid.no_grad(), lucid.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    def _mode(self, before: GradMode) -> GradMode:
        return GRAD_MODES[True, before.inference]


class set_grad_enabled(_Mode):
    """Recording is switched on or off: at once as a function, and back on exit as a context manager.

    Parameters
    ----------
    mode : bool
        True records, False does not.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> with lucid.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = check_bool(mode, "set_grad_enabled: mode")
        state = thread.state
        self._outer: GradMode | None = state.grad_mode
        state.before_change()
        state.grad_mode = self._mode(self._outer)

    def _mode(self, before: GradMode) -> GradMode:
        return GRAD_MODES[self.mode, before.inference]

    def _put_back(self) -> None:
        """Undo the constructor's change, unless that has been done."""
        if self._outer is not None:
            thread.state.before_change()
            thread.state.grad_mode, self._outer = self._outer, None

    def __enter__(self) -> None:
        # what comes back on exit is what stood before the constructor
        self._put_back()
        super().__enter__()

    def __call__(self, function: F) -> F:
        """Decorate `function`: the mode holds during its calls only."""
        self._put_back()
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        """Return an equal mode, in force at once."""
        return set_grad_enabled(self.mode)


class inference_mode(_Mode):
    """Ops inside are not recorded and their results carry no version counter: they can never enter a graph.

    Parameters
    ----------
    mode : bool
        False leaves inference mode and records again.

    Examples
    --------
    >>> import lucid
    >>> with lucid.inference_mode():
    ...     y = lucid.ones(2) * 2
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: Any = True) -> Any:
        """Decorate at once when written without parentheses, as in ``@lucid.inference_mode``."""
        made = super().__new__(cls)
        if callable(mode):
            made.__init__()
            return made(mode)
        return made

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = check_bool(mode, "inference_mode: mode")

    def _mode(self, before: GradMode) -> GradMode:
        return GRAD_MODES[not self.mode, self.mode]

    def clone(self) -> inference_mode:
        """Return an equal mode."""
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Return whether ops are recorded on this thread.

    Examples
    --------
    >>> import lucid
    >>> lucid.is_grad_enabled()
    True
    """
    return thread.state.grad_mode.enabled


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is inside :class:`inference_mode`.

    Examples
    --------
    >>> import lucid
    >>> lucid.is_inference_mode_enabled()
    False
    """
    return thread.state.grad_mode.inference
