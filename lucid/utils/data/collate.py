"""Batches of samples: tensors, arrays and numbers are stacked, and their containers keep their form."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.base import gpu
from lucid.base.device import CPU
from lucid.base.dtype import float64
from lucid.base.foreign.reading import is_masked, plain
from lucid.errors import ArgumentError, IndexOutOfRangeError, ShapeError
from lucid.ops.creation.data import as_tensor, tensor
from lucid.ops.shape.joining import stack

if TYPE_CHECKING:
    from collections.abc import Callable

    # makes an array without values of a shape and dtype
    Memory = Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]]


def default_collate(batch: Sequence[Any]) -> Any:
    """Return a batch of samples, stacked along a new first dimension.

    Tensors and arrays are stacked, of one shape; Python's ints and bools become a tensor, its floats one of float64. Of
    dicts, named tuples and lists each entry is collated, and they keep their type; a tuple becomes a list. Strings
    and bytes stay a list. What was no tensor becomes one on the CPU, whatever the default device.

    Parameters
    ----------
    batch : sequence
        The samples, of one kind.

    Raises
    ------
    ShapeError
        If tensors or arrays differ in shape, or lists in length.
    ArgumentError
        If a sample is, or holds, anything else.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.utils.data import default_collate
    >>> default_collate([{"x": np.zeros(2), "name": "a"}, {"x": np.ones(2), "name": "b"}])
    {'x': tensor([[0., 0.],
            [1., 1.]], dtype=lucid.float64), 'name': ['a', 'b']}
    """
    return collate(batch, range(len(batch)), np.empty)


def default_convert(data: Any) -> Any:
    """Return `data` with tensors in place of NumPy's arrays and numbers, wherever in dicts, tuples and lists they are.

    It is the `collate_fn` of a loader without batches. A tuple becomes a list; anything else stays what it is.

    Parameters
    ----------
    data : object
        A sample.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid.utils.data import default_convert
    >>> default_convert({"x": np.zeros(2), "name": "a"})
    {'x': tensor([0., 0.], dtype=lucid.float64), 'name': 'a'}
    """
    if isinstance(data, np.ndarray | np.generic):
        values = cast("Any", data)
        unsupported = values.dtype.kind in "SUO" or values.dtype.names or is_masked(values)
        return values if unsupported else as_tensor(values, device=CPU)
    return structured(data, lambda part, _: default_convert(part), lambda leaf: leaf)


def structured(data: Any, entry: Callable[[Any, Any], Any], leaf: Callable[[Any], Any]) -> Any:
    """Return a container of the type of `data` with ``entry(value, key)`` for each value, or else ``leaf(data)``.

    A tuple becomes a list, and so does what cannot be made again of its values.
    """
    if isinstance(data, Mapping):
        entries = cast("Mapping[Any, Any]", data)
        return like(entries, {key: entry(value, key) for key, value in entries.items()})
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        values = [entry(value, index) for index, value in enumerate(cast("Sequence[Any]", data))]
        if isinstance(data, tuple):
            kind: Any = cast("type[Any]", type(data))  # pyright: ignore[reportUnknownArgumentType]
            return kind(*values) if hasattr(kind, "_fields") else values
        return like(cast("Sequence[Any]", data), values)
    return leaf(data)


def like(data: Any, made: dict[Any, Any] | list[Any]) -> Any:
    """Return `made` in a container of the type and attributes of `data`; `made` itself if that cannot be built."""
    kind = cast("Any", type(data))
    if kind is type(made):
        return made
    try:
        if not isinstance(data, MutableMapping | MutableSequence):
            return kind(made)
        clone: Any = copy.copy(cast("Any", data))
        for key in list(made) if isinstance(made, dict) else range(len(made)):
            clone[key] = made[key]
            if clone[key] is not made[key]:  # it holds numbers only, as an array does
                return made
    except (TypeError, ValueError, RuntimeError):  # it does not take tensors
        return made
    return clone


def collate(batch: Sequence[Any], names: Sequence[Any], memory: Memory) -> Any:
    """Return the batch of `default_collate` in ``memory(shape, dtype)``; errors call sample i by ``names[i]``."""
    if not len(batch):
        raise IndexOutOfRangeError("default_collate: expected at least one sample, got an empty batch")
    first: Any = batch[0]
    if isinstance(first, TensorBase):
        return _collate_tensors(batch, names, memory)
    if isinstance(first, np.ndarray):
        return _collate_arrays(batch, names, memory)
    if isinstance(first, float) and not isinstance(first, np.generic):
        return tensor(list(batch), dtype=float64, device=CPU)
    if isinstance(first, int):
        return tensor(list(batch), device=CPU)
    if isinstance(first, np.generic) and cast("Any", first).dtype.kind not in "SUOV":
        if len(set(map(type, batch))) == 1:
            return as_tensor(np.asarray(batch), device=CPU)
        return stack([as_tensor(value, device=CPU) for value in batch])
    if isinstance(first, str | bytes):
        return batch if isinstance(batch, list) else list(batch)
    if isinstance(first, Sequence):
        _check_lengths(batch, names)

    def entry(_: Any, key: Any) -> Any:
        return collate([_entry(sample, key, name) for sample, name in zip(batch, names, strict=True)], names, memory)

    def refuse(leaf: Any) -> Any:
        raise _cannot(leaf, names[0])

    return structured(first, entry, refuse)


def _cannot(value: Any, name: Any) -> ArgumentError:
    kind = type(value).__name__
    if hasattr(value, "dtype"):
        kind = f"{'a masked' if is_masked(value) else 'an'} array of {value.dtype}"
    return ArgumentError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind} in sample "
        f"{name}; write a collate_fn for others"
    )


def _entry(sample: Any, key: Any, name: Any) -> Any:
    try:
        return sample[key]
    except (KeyError, IndexError, TypeError) as error:
        error.add_note(f"default_collate: sample {name} has no entry {key!r}, which the first of its batch has")
        raise


def _check_lengths(batch: Sequence[Any], names: Sequence[Any]) -> None:
    size = len(batch[0])
    for sample, name in zip(batch, names, strict=True):
        if len(sample) != size:
            raise ShapeError(
                f"default_collate: each element in list of batch should be of equal size: sample {names[0]} has "
                f"{size} entries, sample {name} has {len(sample)}"
            )


def _collate_arrays(batch: Sequence[Any], names: Sequence[Any], memory: Memory) -> Any:
    for value, name in zip(batch, names, strict=True):
        if type(value) is not np.ndarray and (not isinstance(value, np.ndarray | TensorBase) or is_masked(value)):
            raise _cannot(value, name)
    # of NumPy's own class: a matrix cannot be stacked
    batch = [value if isinstance(value, TensorBase) else plain(value) for value in batch]
    if len({_dtype(value) for value in batch}) == 1:
        if batch[0].dtype.kind in "SUO":
            raise _cannot(batch[0], names[0])
        _check_shapes(batch, names)
        return as_tensor(_stacked(batch, memory), device=CPU)
    # of several dtypes, promoted as those of tensors are
    return _collate_tensors([_as_tensor(value, name) for value, name in zip(batch, names, strict=True)], names, memory)


def _dtype(value: Any) -> Any:
    """Return the dtype of an array in the byte order of the machine; None of a tensor."""
    return None if isinstance(value, TensorBase) else value.dtype.newbyteorder("=")


def _as_tensor(value: Any, name: Any) -> Any:
    if isinstance(value, TensorBase):
        return value
    if value.dtype.kind in "SUO":
        raise _cannot(value, name)
    return as_tensor(value.astype(value.dtype.newbyteorder("="), copy=False), device=CPU)


def _collate_tensors(batch: Sequence[Any], names: Sequence[Any], memory: Memory) -> Any:
    for value, name in zip(batch, names, strict=True):
        if not isinstance(value, TensorBase):
            raise _cannot(value, name)
    arrays = [tensor.array for tensor in batch]
    _check_shapes(arrays, names)
    several = len({array.dtype for array in arrays}) > 1
    if several or any(tensor.edge is not None for tensor in batch) or any(map(gpu.is_gpu_array, arrays)):
        return stack(cast("Any", list(batch)))
    return wrap(_stacked(arrays, memory))


def _check_shapes(arrays: Sequence[Any], names: Sequence[Any]) -> None:
    shape = arrays[0].shape
    for array, name in zip(arrays, names, strict=True):
        if array.shape != shape:
            raise ShapeError(
                "default_collate: stack expects each tensor to be equal size: sample "
                f"{names[0]} has shape {tuple(shape)}, sample {name} has {tuple(array.shape)}; pad them in a "
                "collate_fn, as by lucid.nn.utils.rnn.pad_sequence, or return a list there"
            )


def _stacked(arrays: Sequence[Any], memory: Memory) -> np.ndarray[Any, Any]:
    """Return a new array of arrays of one shape and dtype."""
    return np.stack(arrays, out=memory((len(arrays), *arrays[0].shape), _dtype(arrays[0])))
