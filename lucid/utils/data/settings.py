"""Settings of a `DataLoader`: their ranges, and their exclusions of each other."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import among, shown
from lucid.base import gpu
from lucid.errors import ArgumentError, SettingError, warn
from lucid.ops.base.scalars import as_int
from lucid.utils.data.workers.processes import preload

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext


def check_reading(num_workers: int, timeout: float, prefetch_factor: int | None, worker: str) -> None:
    """Raise `SettingError` if a setting of workers is out of its range."""
    if num_workers < 0:
        raise SettingError(
            "DataLoader: num_workers option should be non-negative; use num_workers=0 to read in the training loop, "
            f"got {num_workers}"
        )
    if not timeout >= 0:
        raise SettingError(f"DataLoader: timeout option should be non-negative, in seconds, got {timeout}")
    if not among(worker, {"process", "thread"}):
        raise SettingError(f"DataLoader: worker: expected 'process' or 'thread', got {worker!r}")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise SettingError(f"DataLoader: prefetch_factor option should be at least 1, got {prefetch_factor}")


def check_order(
    batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, *, drop_last: bool, streamed: bool
) -> None:
    """Raise if settings of the order, of a stream or of indices, exclude each other."""
    if streamed:
        for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
            if value is not None:
                raise SettingError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                    f"{name}={shown(value)}: the stream itself has the order"
                )
    if sampler is not None and shuffle:
        raise SettingError("DataLoader: sampler option is mutually exclusive with shuffle: the sampler has the order")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise SettingError(
            "DataLoader: batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
        )
    if batch_size is None and batch_sampler is None and drop_last:
        raise SettingError("DataLoader: batch_size=None gives single samples and is mutually exclusive with drop_last")
    if batch_size is not None and (isinstance(batch_size, bool) or as_int(batch_size, "batch_size") < 1):
        raise SettingError(f"DataLoader: expected a batch_size of at least 1, or None, got {batch_size}")
    for name, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None and not isinstance(value, Iterable):
            raise ArgumentError(f"DataLoader: {name}: expected an iterable, got {shown(value)}")


def check_length(dataset: Any) -> None:
    """Raise `ArgumentError` if a dataset has no length."""
    kind = cast("type[Any]", type(dataset))
    if not hasattr(kind, "__len__"):
        advice = (
            "wrap what can only be iterated in an IterableDataset, or put its batches on the device by prefetch"
            if hasattr(kind, "__iter__") and not hasattr(kind, "__getitem__")
            else "give it one, or the DataLoader a sampler"
        )
        raise ArgumentError(
            f"DataLoader: dataset: expected __len__, by which to choose indices, got {kind.__name__}: {advice}"
        )


def can_pin() -> bool:
    """Return whether memory can be page-locked; warn if not."""
    if gpu.is_available():
        return True
    warn(
        "DataLoader: pin_memory is True, and there is no CUDA device for which memory could be page-locked: batches "
        "are in ordinary memory"
    )
    return False


def _usual(methods: list[str]) -> str:
    """Return the default start method of worker processes.

    Where lucid stands in for PyTorch they start as there, as Python usually does: by `fork` on most machines, for which
    a script need not be one that can be imported. A device that was used forbids that.
    """
    import multiprocessing  # noqa: PLC0415

    if sys.modules.get("torch") is sys.modules["lucid"]:
        usual = multiprocessing.get_start_method(allow_none=True) or methods[0]
        if usual != "fork" or not gpu.is_loaded():
            return usual
    return "forkserver" if "forkserver" in methods else "spawn"


def context_of(choice: str | BaseContext | None) -> BaseContext:
    """Return how worker processes start, with the fork server under way if they come from it."""
    import multiprocessing  # noqa: PLC0415
    from multiprocessing.context import BaseContext  # noqa: PLC0415

    methods = multiprocessing.get_all_start_methods()
    if choice is None:
        choice = _usual(methods)
    if isinstance(choice, str):
        if choice not in methods:
            raise SettingError(
                f"DataLoader: multiprocessing_context option should specify a valid start method in {methods}, got "
                f"{choice!r}"
            )
        choice = multiprocessing.get_context(choice)
    if not isinstance(choice, BaseContext):
        raise ArgumentError(
            "DataLoader: multiprocessing_context: expected a start method or a multiprocessing context, got "
            f"{shown(choice)}"
        )
    preload(choice)
    return choice
