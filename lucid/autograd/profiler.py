"""Ranges with names on the timeline of NVIDIA's profilers."""

from __future__ import annotations

import contextlib
import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeVar

from lucid.arguments import checked

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["emit_nvtx", "record_function"]

F = TypeVar("F", bound="Callable[..., Any]")


class record_function:
    """Names what runs inside, as a context manager or a decorator, for a profiler that shows NVTX ranges.

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
        # loaded on first use: importing lucid does not need it
        nvtx: Any = import_module("nvtx")
        nvtx.push_range(self.name, domain="lucid")
        return self

    def __exit__(self, *exception: object) -> None:
        nvtx: Any = import_module("nvtx")
        nvtx.pop_range(domain="lucid")

    def __call__(self, function: F) -> F:
        """Return `function` with each of its calls inside the range."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapped  # pyright: ignore[reportReturnType]


def emit_nvtx(
    enabled: bool = True,
    record_shapes: bool = False,  # noqa: ARG001  PyTorch's signature
) -> contextlib.AbstractContextManager[None]:
    """Return a context manager that does nothing, for ``enabled=False``: lucid does not name single ops for profilers.

    To look at each op whether it is to be named would make all of them slower.

    Parameters
    ----------
    enabled : bool
        Must be False.
    record_shapes : bool
        Makes no difference.

    Raises
    ------
    NotImplementedError
        If `enabled`.

    Examples
    --------
    >>> from lucid.autograd.profiler import emit_nvtx
    >>> with emit_nvtx(enabled=False):
    ...     pass
    """
    if enabled:
        raise NotImplementedError(
            "emit_nvtx: expected enabled=False, got True: lucid does not name each op for profilers; put the parts of "
            "interest into lucid.autograd.profiler.record_function, which a profiler shows beside the kernels' names"
        )
    return contextlib.nullcontext()
