"""Per-thread state of recording: grad mode, inference mode, saved-tensor hooks, anomaly detection."""

from __future__ import annotations

import threading
import warnings
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lucid.autograd.decorating import Decorating, check_bool

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from lucid.autograd.mutation import allow_mutation_on_saved_tensors
    from lucid.autograd.passes import Pass
    from lucid.autograd.saved import SavedTensorHooks

    Modes = tuple[bool, bool, tuple[SavedTensorHooks, ...], str | None, tuple[allow_mutation_on_saved_tensors, ...]]

F = TypeVar("F", bound="Callable[..., Any]")

# Values of ThreadState.recording. Only PLAIN records on the short path.
OFF, PLAIN, SPECIAL = 0, 1, 2


# The states whose recording is not PLAIN. Empty, it tells an op what it needs to know of its thread for a quarter of
# what the thread's own state costs.
unusual: set[ThreadState] = set()


class ThreadState:
    """What one thread does when an op is applied.

    `recording` folds grad mode, inference mode, saved-tensor hooks and anomaly detection into one number, so that
    an op pays one look-up; `refresh` keeps it in step with the other fields. `passes` holds the backward passes that
    run on this thread, innermost last. What user code changes inside of a pass lasts until its node is done: `refresh`
    tells the pass, which puts its `modes` back. `early_stop` and `debug` replace settings of checkpoints where they are
    not None; `multithreading` is only noted.
    """

    __slots__ = (
        "anomaly",
        "check_nan",
        "debug",
        "early_stop",
        "grad_enabled",
        "inference",
        "multithreading",
        "mutable",
        "passes",
        "quiet",
        "recording",
        "saved_hooks",
        "saved_hooks_disabled",
    )

    def __init__(self) -> None:
        self.grad_enabled = True
        self.inference = False
        self.anomaly = False
        self.check_nan = True
        self.early_stop: bool | None = None
        self.debug: bool | None = None
        self.multithreading = True
        self.saved_hooks: tuple[SavedTensorHooks, ...] = ()
        self.saved_hooks_disabled: str | None = None
        self.mutable: tuple[allow_mutation_on_saved_tensors, ...] = ()
        self.passes: list[Pass] = []
        self.recording = PLAIN
        # A context in which NumPy reports no floating-point warnings: PyTorch gives inf and nan silently. Running one
        # call inside it costs 40 ns, `np.errstate` 1,400, and the user's own error state stays untouched.
        with np.errstate(all="ignore"):
            self.quiet = copy_context().run

    def modes(self) -> Modes:
        """Return what user code may change for this thread."""
        return self.grad_enabled, self.inference, self.saved_hooks, self.saved_hooks_disabled, self.mutable

    def restore(self, modes: Modes) -> None:
        """Put back what `modes` gave."""
        self.grad_enabled, self.inference, self.saved_hooks, self.saved_hooks_disabled, self.mutable = modes
        self.refresh()

    def refresh(self) -> None:
        """Recompute `recording` after one of the fields has changed."""
        if self.passes:
            self.passes[-1].strayed = True
        if not self.grad_enabled or self.inference:
            self.recording = OFF
            unusual.add(self)
        elif self.saved_hooks or self.anomaly:
            self.recording = SPECIAL
            unusual.add(self)
        else:
            self.recording = PLAIN
            unusual.discard(self)


class _Thread(threading.local):
    """Gives each thread its own state."""

    def __init__(self) -> None:
        self.state = ThreadState()


thread = _Thread()

# The hot path calls ufuncs outside of a quiet context. NumPy's warnings are attributed to the module that calls it, so
# this silences lucid's own calls and nobody else's; where a user's filter or error state turns them into errors, the
# callers catch these and run again in the quiet context.
NumPyComplaints = (RuntimeWarning, FloatingPointError)
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"lucid\.(autograd|ops|tensor)\b")


class _Mode(Decorating):
    """A setting of the thread as a context manager and as a decorator; what it replaced comes back on exit."""

    def __init__(self) -> None:
        self._before: list[tuple[bool, bool]] = []

    def _enter(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> None:
        self._before.append((thread.state.grad_enabled, thread.state.inference))
        self._enter()
        thread.state.refresh()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        thread.state.grad_enabled, thread.state.inference = self._before.pop()
        thread.state.refresh()


class no_grad(_Mode):
    """Ops inside are not recorded; what they return does not require grad.

    A context manager and a decorator. Affects the current thread only.

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

    def _enter(self) -> None:
        thread.state.grad_enabled = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Decorate `function` at once when written without parentheses, as in ``@lucid.no_grad``."""
        if function is None:
            return super().__new__(cls)
        mode = super().__new__(cls)
        mode.__init__()
        return mode(function)


class enable_grad(no_grad):
    """Ops inside are recorded, also within :class:`no_grad`.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> with lucid.no_grad(), lucid.enable_grad():
    ...     y = x * 2
    >>> y.requires_grad
    True
    """

    def _enter(self) -> None:
        thread.state.grad_enabled = True


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
        self.mode = check_bool(mode, "set_grad_enabled")
        self._outer: bool | None = thread.state.grad_enabled
        self._enter()
        thread.state.refresh()

    def _enter(self) -> None:
        thread.state.grad_enabled = self.mode

    def __enter__(self) -> None:
        # the constructor has switched already: what comes back on exit is what stood before it
        if self._outer is not None:
            thread.state.grad_enabled, self._outer = self._outer, None
        super().__enter__()

    def __call__(self, function: F) -> F:
        """Decorate `function`: the mode holds during its calls only."""
        if self._outer is not None:
            thread.state.grad_enabled, self._outer = self._outer, None
            thread.state.refresh()
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        """Return an equal mode, which switches at once."""
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
        self.mode = bool(mode)

    def _enter(self) -> None:
        thread.state.inference = self.mode
        thread.state.grad_enabled = not self.mode

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
    return thread.state.grad_enabled


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is inside :class:`inference_mode`.

    Examples
    --------
    >>> import lucid
    >>> lucid.is_inference_mode_enabled()
    False
    """
    return thread.state.inference
