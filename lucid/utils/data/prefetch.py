"""Batches on the device before they are asked for."""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.arguments import checked
from lucid.autograd.base import TensorBase
from lucid.autograd.modes.state import inference_mode, is_grad_enabled, set_grad_enabled
from lucid.base import gpu
from lucid.base.capture import check_not_capturing
from lucid.base.device import CPU, as_device
from lucid.cuda.devices import cuda_index
from lucid.cuda.streams import Stream, current_stream, stream
from lucid.errors import SettingError
from lucid.ops.creation.data import as_tensor
from lucid.tensor.interop import from_dlpack
from lucid.utils.data.collate import like

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lucid.base.device import Device, device
    from lucid.tensor import Tensor


@checked
def prefetch(
    iterable: Iterable[Any], device: Device, depth: int = 2, convert: Callable[[Any], Any] | None = None
) -> Iterator[Any]:
    """Return an iterator over the items of another, with their arrays as tensors on a device, copied ahead.

    On a CUDA device the next `depth` items are read and their copies queued, on a stream of their own, before an item
    is given out; the current stream waits for that item's copies alone, the host for none. From page-locked memory one
    copy leads to the device, other arrays are copied into such memory first.

    Parameters
    ----------
    iterable : iterable
        Of arrays, tensors, objects with DLPack, and dicts, tuples, lists and dataclasses of these, at any depth.
        Other objects with a method ``to(device, non_blocking=)`` are moved by it, without being ahead. Anything else
        stays what it is: numbers, strings, arrays of text or objects.
    device : device
        Where the tensors are to be.
    depth : int
        At least 1. On the CPU nothing is copied, and nothing read ahead: tensors are on the memory of the arrays.
    convert : callable, optional
        Called with each item as it is read; what it returns is what is moved. Page-locked arrays in it must not be
        overwritten while they are copied.

    Raises
    ------
    CudaUnavailableError
        If there is no such device.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.utils.data import prefetch
    >>> for batch in prefetch([{"x": np.zeros(2, np.float32), "name": "first"}], "cpu"):
    ...     print(batch)
    {'x': tensor([0., 0.]), 'name': 'first'}
    """
    if depth < 1:
        raise SettingError(f"prefetch: expected a depth of at least 1, got {depth}")
    where = as_device(device)
    items = iter(iterable) if convert is None else map(convert, iterable)
    if where.type == "cpu":
        return (_mapped(on_device(item, where), lambda leaf: _own(leaf, where)) for item in items)
    return _ahead(items, where, depth)


def _ahead(items: Iterator[Any], where: device, depth: int) -> Iterator[Any]:
    side = Stream(where)
    waiting: deque[tuple[Any, Any]] = deque()
    ended: BaseException | None = None

    def arrive(leaf: Any) -> Any:
        if isinstance(leaf, TensorBase):
            cast("Tensor", leaf).record_stream(now)
        return _own(leaf, where)

    try:
        while True:
            if ended is None:
                ended = _fill(waiting, items, where, side, depth)
            if not waiting:
                if isinstance(ended, StopIteration) or ended is None:
                    return
                raise ended
            item, arrived = waiting.popleft()
            now = current_stream(where)
            now.wait_event(arrived)
            yield _mapped(item, arrive)
            del item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def _fill(
    waiting: deque[tuple[Any, Any]], items: Iterator[Any], where: device, side: Stream, depth: int
) -> Exception | None:
    """Queue items until `depth` of them wait behind the next one; return the exception that ended them, or None."""
    while len(waiting) <= depth:
        check_not_capturing("a batch that is copied ahead")
        try:
            waiting.append(_queued(next(items), where, side))
        except Exception as error:  # noqa: BLE001  raised by the caller, after what came before it
            return error
    return None


def _queued(item: Any, where: device, side: Stream) -> tuple[Any, Any]:
    """Return an item on a device, with the event that its copies reach on the side stream."""
    recorded = is_grad_enabled()
    # the inference mode of the moment is not that in which it will be used
    with gpu.use_device(cuda_index(where)), stream(side), inference_mode(mode=False), set_grad_enabled(recorded):
        moved = on_device(item, where)
        return moved, side.record_event()


def on_device(value: Any, where: device) -> Any:
    """Return `value` with tensors on a device in place of its arrays."""
    return _mapped(value, lambda leaf: _tensor(leaf, where))


def pinned(value: Any) -> Any:
    """Return `value` with its tensors on the CPU in page-locked memory."""
    return _mapped(value, _pinned)


def _pinned(leaf: Any) -> Any:
    if isinstance(leaf, TensorBase) and type(leaf.array) is not np.ndarray:
        return leaf
    # a batch of the user's own class may know how, too
    method = getattr(leaf, "pin_memory", None)
    return method() if callable(method) else leaf


def _tensor(leaf: Any, where: device) -> Any:
    if not isinstance(leaf, TensorBase):
        if isinstance(leaf, np.ndarray):
            values = cast("Any", leaf)
            if values.dtype.kind in "SUO":
                return values
            leaf = as_tensor(values, device=CPU)
        elif gpu.is_gpu_array(leaf):
            leaf = as_tensor(leaf)
        elif hasattr(leaf, "__dlpack__"):
            leaf = from_dlpack(leaf)
        else:
            return leaf
    return cast("Any", leaf).to(where, non_blocking=True)


def _own(leaf: Any, where: device) -> Any:
    """Return an object of another class as its `to` moves it, on the stream of whoever uses it."""
    if isinstance(leaf, TensorBase) or not callable(getattr(leaf, "to", None)):
        return leaf
    return leaf.to(where, non_blocking=True)


def _mapped(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a structure with ``leaf(x)`` for each x that is no dict, tuple, list or dataclass."""
    kind = cast("Any", type(value))
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value)
        return like(entries, {key: _mapped(entry, leaf) for key, entry in entries.items()})
    if isinstance(value, tuple | list):
        parts = [_mapped(entry, leaf) for entry in cast("Sequence[Any]", value)]
        return kind(*parts) if hasattr(kind, "_fields") else like(value, parts)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = copy.copy(value)
        for field in dataclasses.fields(value):
            # also of a frozen one, of which this is a copy
            object.__setattr__(made, field.name, _mapped(getattr(value, field.name), leaf))
        return made
    return leaf(value)
