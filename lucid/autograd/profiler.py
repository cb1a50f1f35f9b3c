"""Ranges with names on the timeline of NVIDIA's profilers."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeVar

from lucid.arguments import checked
from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.functions import Call, FunctionHook
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["emit_nvtx", "record_function"]

F = TypeVar("F", bound="Callable[..., Any]")


def begin_range(name: str) -> None:
    """Begin a range."""
    # loaded on first use: importing lucid does not need it
    import_module("nvtx").push_range(name, domain="lucid")


def end_range() -> None:
    """End the range that began last."""
    import_module("nvtx").pop_range(domain="lucid")


class record_function:
    """Name of the work inside, as a context manager or a decorator, for a profiler that shows NVTX ranges.

    Parameters
    ----------
    name : str
        The range's name.
    args : str, optional
        Appended to the name.

    Notes
    -----
    Without a profiler such as Nsight Systems attached, a range is a no-op of the NVTX library.

    Examples
    --------
    >>> import lucid
    >>> from lucid.autograd.profiler import record_function
    >>> with record_function("square"):
    ...     y = lucid.ones(2) ** 2
    >>> @record_function("twice")
    ... def twice(x):
    ...     return x * 2
    >>> twice(y)
    tensor([2., 2.])
    """

    @checked
    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name if args is None else f"{name} {args}"

    def __enter__(self) -> Self:
        begin_range(self.name)
        return self

    def __exit__(self, *exception: object) -> None:
        end_range()

    def __call__(self, function: F) -> F:
        """Return `function` with each of its calls inside the range."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped  # pyright: ignore[reportReturnType]


class emit_nvtx(FunctionHook):
    """Names each op of this thread inside, forward and backward, for a profiler that shows NVTX ranges.

    Parameters
    ----------
    enabled : bool
        False names nothing.
    record_shapes : bool
        Whether the shapes of the operands, in backward of the gradients, are part of the name.

    Notes
    -----
    It is a `lucid.hooks.FunctionHook`, which costs each op some microseconds; ops outside of such blocks cost nothing.
    Names of modules come from `record_function`, or `lucid.hooks.trace` with ``nvtx=True``.

    Examples
    --------
    >>> import lucid
    >>> with lucid.autograd.profiler.emit_nvtx():
    ...     y = lucid.ones(2).exp()
    """

    @checked
    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        super().__init__()
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self) -> Self:
        if not self.enabled:
            self.undo.append((bool,))
            return self
        return super().__enter__()

    def before(self, call: Call) -> None:
        """Begin a range."""
        name = call.name
        if self.record_shapes:
            name = f"{name} {[tuple(x.array.shape) for x in call.inputs if isinstance(x, TensorBase)]}"
        begin_range(name)

    def after(self, call: Call, output: Any) -> None:
        """End the range."""
        end_range()

    def failed(self, call: Call, error: BaseException) -> None:
        """End the range."""
        end_range()


_publish(globals(), record_function="lucid.profiler")
