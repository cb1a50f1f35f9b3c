"""One class per kind of mistake, each also the builtin that a caller would catch.

PyTorch raises ``RuntimeError`` for most mistakes with tensors, so every class here whose mistake PyTorch reports that
way is a ``RuntimeError``, and besides that the builtin that names the mistake in Python. ``except LucidError`` catches
everything that lucid raises on purpose.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings
from typing import Any

import numpy as np

from lucid.public import FOLDER as _FOLDER
from lucid.public import publish as _publish

__all__ = [
    "AnomalyError",
    "ArgumentError",
    "CallError",
    "CaptureError",
    "CheckpointError",
    "CudaUnavailableError",
    "DeviceError",
    "DistributedError",
    "DistributedTimeoutError",
    "DtypeError",
    "GraphError",
    "HookError",
    "HookTypeError",
    "IndexKindError",
    "IndexOutOfRangeError",
    "InplaceError",
    "KernelError",
    "LinAlgError",
    "LucidError",
    "NestingError",
    "NotATensorError",
    "NotDifferentiableError",
    "NumberRangeError",
    "OutOfMemoryError",
    "SettingError",
    "ShapeError",
    "StateDictError",
    "WorkerError",
]


class LucidError(Exception):
    """The base of every error that lucid raises on purpose."""


class CallError(LucidError, RuntimeError, TypeError, ValueError):
    """A call that cannot be: whether it is a TypeError or a ValueError goes by no rule in PyTorch, so it is both."""


class ArgumentError(CallError):
    """An argument is of a type that its parameter does not take."""


class ShapeError(CallError):
    """Sizes, dimensions or strides do not fit the operation or each other."""


class DtypeError(CallError, NotImplementedError):
    """A dtype is unknown, unsupported by the operation, or would lose values that the cast must keep."""


class NumberRangeError(DtypeError, OverflowError):
    """A number is too large for the dtype that it was to have."""


class DeviceError(CallError):
    """Operands live on different devices, or a device is misspelled or does not exist."""


class CudaUnavailableError(DeviceError):
    """A CUDA device was asked for, but CuPy is missing, does not load, or finds no device."""


class KernelError(LucidError, RuntimeError):
    """A CUDA kernel does not compile, has an impossible launch, or does something forbidden."""


class CaptureError(LucidError, RuntimeError):
    """Work cannot be captured in a CUDA graph, or a captured graph cannot be launched any more."""


class DistributedError(LucidError, RuntimeError):
    """Processes that train together cannot: one has failed or left, or they call different collectives."""


class DistributedTimeoutError(DistributedError, TimeoutError):
    """A collective takes longer than its group allows.

    Attributes
    ----------
    rank : int
        Of the process that has waited.
    call : str
        The collective that it has waited for.
    """

    def __init__(self, message: str, rank: int = 0, call: str = "") -> None:
        super().__init__(message)
        self.rank = rank
        self.call = call

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.rank, self.call)


class OutOfMemoryError(LucidError, RuntimeError, MemoryError):
    """A device has no room for an allocation."""


class LinAlgError(LucidError, RuntimeError, np.linalg.LinAlgError):
    """A matrix has no inverse or factors of the kind asked for, or the iteration for them does not converge.

    Examples
    --------
    >>> import lucid
    >>> try:
    ...     lucid.linalg.inv(lucid.zeros(2, 2))
    ... except lucid.linalg.LinAlgError:
    ...     print("no inverse")
    no inverse
    """


class IndexOutOfRangeError(CallError, IndexError):
    """An index or a dimension is out of range."""


class IndexKindError(ShapeError, DtypeError, IndexError):
    """An index is of an unsupported kind, or its dtype or shape cannot index here."""


class GraphError(LucidError, RuntimeError):
    """The recorded graph cannot do this: it was freed, its root is not a scalar, or nothing requires a gradient."""


class NestingError(GraphError, RecursionError):
    """Backward passes run inside of each other without end."""


class InplaceError(GraphError):
    """An in-place change hit a value that backward needs, or a leaf or view that may not be changed."""


class NotDifferentiableError(LucidError, NotImplementedError):
    """A derivative was asked for that the operation does not have."""


class AnomalyError(LucidError, RuntimeError):
    """Anomaly detection saw a backward that raised or that produced NaN."""


class HookError(LucidError, RuntimeError):
    """A hook broke its contract, or was registered or removed at a point that forbids it."""


class HookTypeError(LucidError, RuntimeError, TypeError):
    """A hook is not callable, or returned a value of a wrong type: neither None nor a replacement."""


class NotATensorError(HookTypeError, AssertionError):
    """The value to be differentiated is no tensor, or does not require grad."""


class SettingError(CallError, AssertionError):
    """A setting of a call has a value that it cannot have, or excludes another."""


class CheckpointError(LucidError, RuntimeError, ValueError):
    """A checkpoint cannot be used.

    A file is truncated, corrupt, of another program, or was to hold what it cannot; or a recomputation did not repeat
    what the first run saved, or its settings exclude each other.
    """


class StateDictError(LucidError, RuntimeError, ValueError, KeyError):
    """A state dict does not match its target: keys are missing, unexpected, or of another shape."""

    def __str__(self) -> str:
        # KeyError shows the repr of its only argument, which would print a report of several lines as one with "\n".
        return Exception.__str__(self)


class WorkerError(LucidError, RuntimeError):
    """A worker of a `DataLoader` failed, ended or fell silent; its cause is the exception that it raised, if any.

    Parameters
    ----------
    message : str
        What happened.
    worker : int
        Which one.
    batch : int or None
        The number of the batch in its epoch that it was reading; None while it was starting.
    indices : list or None
        What it was reading for that batch; None of a stream.

    Examples
    --------
    >>> from lucid.errors import WorkerError
    >>> raise WorkerError("worker 1 fell silent", worker=1)
    Traceback (most recent call last):
        ...
    lucid.errors.WorkerError: worker 1 fell silent
    """

    def __init__(self, message: str, worker: int = 0, batch: int | None = None, indices: Any = None) -> None:
        super().__init__(message)
        self.worker = worker
        self.batch = batch
        self.indices = indices

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.worker, self.batch, self.indices)


# Files whose frames stand between a user's line and what warns of it: lucid's, and what wraps its functions.
_BETWEEN = (_FOLDER, contextlib.__file__, functools.__file__)


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn of the line outside of lucid that led here, however many of lucid's functions lie between."""
    level, frame = 2, sys._getframe(1)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - what is asked for
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_publish(globals())
