"""Sequences of several lengths in one tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from lucid.arguments import among, checked, unfit
from lucid.errors import DeviceError, SettingError, ShapeError
from lucid.ops.base.promotion import only_tensors
from lucid.ops.creation.data import tensor
from lucid.ops.creation.filling import full, zeros_like
from lucid.ops.creation.ranges import arange
from lucid.ops.index.index_select import index_select
from lucid.ops.index.scatter import scatter
from lucid.ops.shape.joining import cat, stack
from lucid.ops.shape.reshape import flatten, reshape
from lucid.ops.shape.splitting import unbind
from lucid.settings.documents import document
from lucid.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Integers = np.ndarray[Any, np.dtype[np.int64]]

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences of several lengths without padding: all first elements, then all second ones, and so on.

    `data` has the shape (sum of lengths, *); `batch_sizes`, int64 on the CPU, says how many sequences have an element
    at each step. They stand from the longest to the shortest: `sorted_indices` says which was where, and
    `unsorted_indices` is the way back; None each if they stood so. Made by `pack_padded_sequence` and `pack_sequence`.

    Parameters
    ----------
    data : Tensor
        Elements of all sequences, step by step, shape (sum of lengths, *).
    batch_sizes : Tensor
        Number of sequences that have an element at each step, int64, on the CPU.
    sorted_indices : Tensor, optional
        Which sequence was where.
    unsorted_indices : Tensor, optional
        The way back.

    Examples
    --------
    >>> import lucid
    >>> from lucid.nn.utils.rnn import pack_sequence
    >>> pack_sequence([lucid.tensor([1, 2]), lucid.tensor([3])]).data
    tensor([1, 3, 2])
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        """Make it of its parts, or of a pair of the first two."""
        if batch_sizes is None:
            data, batch_sizes = data
        if batch_sizes.is_cuda:
            raise DeviceError(
                f"PackedSequence: batch_sizes: expected a tensor on the CPU, got one on {batch_sizes.device}"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Return the sequences with other data, and the indices on its device."""
        data = change(self.data)
        if data is self.data:
            return self
        indices = (None if at is None else at.to(data.device) for at in self[2:])
        return type(self)(data, self.batch_sizes, *indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences with `data` converted as by `Tensor.to`; these themselves if nothing changes."""
        return self._map(lambda data: data.to(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Return the sequences on a CUDA device."""
        return self._map(lambda data: data.cuda(*args, **kwargs))

    def cpu(self) -> Self:
        """Return the sequences on the CPU."""
        return self._map(lambda data: data.cpu())

    def pin_memory(self) -> Self:
        """Return the sequences with `data` in page-locked memory."""
        return self._map(lambda data: data.pin_memory())

    def double(self) -> Self:
        """Return the sequences in float64."""
        return self._map(lambda data: data.double())

    def float(self) -> Self:
        """Return the sequences in float32."""
        return self._map(lambda data: data.float())

    def half(self) -> Self:
        """Return the sequences in float16."""
        return self._map(lambda data: data.half())

    def long(self) -> Self:
        """Return the sequences in int64."""
        return self._map(lambda data: data.long())

    def int(self) -> Self:
        """Return the sequences in int32."""
        return self._map(lambda data: data.int())

    def short(self) -> Self:
        """Return the sequences in int16."""
        return self._map(lambda data: data.short())

    def char(self) -> Self:
        """Return the sequences in int8."""
        return self._map(lambda data: data.char())

    def byte(self) -> Self:
        """Return the sequences in uint8."""
        return self._map(lambda data: data.byte())

    @property
    def is_cuda(self) -> bool:
        """Whether `data` is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Return whether `data` is in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the permutation that undoes `permutation`, ``out[permutation[i]] = i``; None for None.

    >>> import lucid
    >>> from lucid.nn.utils.rnn import invert_permutation
    >>> invert_permutation(lucid.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = arange(permutation.numel(), device=permutation.device, dtype=permutation.dtype)
    return scatter(zeros_like(permutation), 0, permutation, places)


def _lengths_of(name: str, lengths: Tensor | Sequence[int] | Integers) -> Integers:
    """Return lengths as an array; those on a device are refused, as their values would have to be waited for."""
    if isinstance(lengths, Tensor) and lengths.is_cuda:
        raise DeviceError(f"{name}: expected lengths on the CPU, got them on {lengths.device}: use lengths.cpu()")
    array = np.asarray(lengths.numpy(force=True) if isinstance(lengths, Tensor) else lengths)
    if array.size and array.dtype.kind not in "iu":
        raise unfit(lengths, "integers", "lengths")
    if array.ndim != 1:
        raise ShapeError(f"{name}: expected lengths of one dimension, got shape {list(array.shape)}")
    return array.astype(np.int64)


def _how_many_above(numbers: Integers) -> Integers:
    """Return how many numbers are above 0, 1, ...: of lengths the batch sizes, and of those the lengths."""
    return np.count_nonzero(np.greater.outer(numbers, np.arange(int(numbers.max()))), axis=0)


@checked
def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int] | Integers, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Return padded sequences without their padding, as a `PackedSequence`.

    `input` has the shape (T, B, *), with `batch_first` (B, T, *); `lengths` are B integers in [1, T], on the CPU, from
    the longest to the shortest unless `enforce_sorted` is False. Others raise a ShapeError or a SettingError.

    >>> import lucid
    >>> from lucid.nn.utils.rnn import pack_padded_sequence
    >>> pack_padded_sequence(lucid.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True).batch_sizes
    tensor([2, 1])
    """
    only_tensors(input)
    sizes = _lengths_of("pack_padded_sequence", lengths)
    if input.ndim < 2 or not sizes.size or input.shape[1 - batch_first] != sizes.size:
        form = "(B, T, *)" if batch_first else "(T, B, *)"
        raise ShapeError(
            f"pack_padded_sequence: expected input of shape {form} for B lengths, at least one, "
            f"got shape {list(input.shape)} and {sizes.size} lengths"
        )
    steps, batch = input.shape[batch_first], sizes.size
    if sizes.min() < 1 or sizes.max() > steps:
        raise SettingError(f"pack_padded_sequence: expected lengths from 1 to {steps}, got {sizes.tolist()}")
    order = np.arange(batch)
    if not enforce_sorted:
        order = np.argsort(-sizes, kind="stable")
    elif (np.diff(sizes) > 0).any():
        raise SettingError(
            f"pack_padded_sequence: expected lengths from the longest to the shortest, got {sizes.tolist()}: "
            "use enforce_sorted=False for any order"
        )
    counts = _how_many_above(sizes)
    step = np.repeat(np.arange(counts.size), counts)
    sequence = np.concatenate([order[:count] for count in counts])
    at = sequence * steps + step if batch_first else step * batch + sequence
    data = index_select(flatten(input, 0, 1), 0, tensor(at, device=input.device))
    return PackedSequence(
        data, tensor(counts, device="cpu"), None if enforce_sorted else tensor(order, device=input.device)
    )


@checked
def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return packed sequences padded to the longest, in their first order, and their lengths on the CPU.

    The first has the shape (T, B, *), with `batch_first` (B, T, *); T is `total_length`, which may not be below the
    longest or a SettingError is raised, if that is given.

    >>> import lucid
    >>> from lucid.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> pad_packed_sequence(pack_sequence([lucid.tensor([1, 2]), lucid.tensor([3])]), batch_first=True)
    (tensor([[1, 2],
            [3, 0]]), tensor([2, 1]))
    """
    data, batch_sizes, _, unsorted = sequence
    counts = batch_sizes.numpy(force=True)
    steps = counts.size if total_length is None else total_length
    if steps < counts.size:
        raise SettingError(
            f"pad_packed_sequence: expected total_length of at least {counts.size}, the longest sequence, got {steps}"
        )
    # rows that have ended read the one behind all others, which has the padding
    at = np.full((counts[0], steps), data.shape[0])
    for step, (start, count) in enumerate(zip(np.cumsum(counts) - counts, counts, strict=True)):
        at[:count, step] = np.arange(start, start + count)
    lengths = _how_many_above(counts)
    if unsorted is not None:
        back = unsorted.numpy(force=True)
        at, lengths = at[back], lengths[back]
    if not batch_first:
        at = at.T
    padding = full((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    rows = index_select(cat([data, padding]), 0, tensor(at.ravel(), device=data.device))
    return reshape(rows, (*at.shape, *data.shape[1:])), tensor(lengths, device="cpu")


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Return sequences of several lengths, of shape (L, *) each, as a `PackedSequence`.

    They stand from the longest to the shortest, or a SettingError is raised, unless `enforce_sorted` is False.

    >>> import lucid
    >>> from lucid.nn.utils.rnn import pack_sequence
    >>> pack_sequence([lucid.tensor([1]), lucid.tensor([2, 3])], enforce_sorted=False).data
    tensor([2, 1, 3])
    """
    padded = pad_sequence(sequences)
    return pack_padded_sequence(padded, [sequence.shape[0] for sequence in sequences], enforce_sorted=enforce_sorted)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences of `pad_sequence`, each of its length: views of `padded_sequences`.

    >>> import lucid
    >>> from lucid.nn.utils.rnn import unpad_sequence
    >>> unpad_sequence(lucid.tensor([[1, 2], [3, 0]]), lucid.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    only_tensors(padded_sequences)
    sizes = _lengths_of("unpad_sequence", lengths.cpu() if isinstance(lengths, Tensor) else lengths)
    if padded_sequences.ndim < 2 or padded_sequences.shape[1 - batch_first] != sizes.size:
        raise ShapeError(
            f"unpad_sequence: expected a length for each sequence, got shape {list(padded_sequences.shape)} "
            f"and {sizes.size} lengths"
        )
    rows = unbind(padded_sequences, 0 if batch_first else 1)
    # a length below zero would count from the end
    return [row[: max(size, 0)] for row, size in zip(rows, sizes.tolist(), strict=True)]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences of a `PackedSequence`, in their first order.

    >>> import lucid
    >>> from lucid.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([lucid.tensor([1, 2]), lucid.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)


@checked
def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Return sequences of several lengths in one tensor of the first one's dtype, padded to the longest.

    Parameters
    ----------
    sequences : sequence of Tensor
        At least one; of shape (L, *), with sizes that differ in dimension 0 alone.
    batch_first : bool
        Whether the result has shape (B, T, *) for B sequences, of which the longest has T, rather than (T, B, *).
    padding_value : float
        What stands where a sequence has ended.
    padding_side : {"right", "left"}
        Where it stands.

    Raises
    ------
    ShapeError
        If there is none, or other sizes differ too.
    SettingError
        If the side is neither.

    Examples
    --------
    >>> import lucid
    >>> from lucid.nn.utils.rnn import pad_sequence
    >>> pad_sequence([lucid.ones(2), lucid.ones(3)], batch_first=True)
    tensor([[1., 1., 0.],
            [1., 1., 1.]])
    """
    if not among(padding_side, {"right", "left"}):
        raise SettingError(f"pad_sequence: padding_side should be either 'right' or 'left', got {padding_side!r}")
    only_tensors(*sequences)
    shapes = [tuple(sequence.shape) for sequence in sequences]
    if not all(shapes) or len({shape[1:] for shape in shapes}) != 1:
        raise ShapeError(
            f"pad_sequence: expected at least one sequence, with sizes that differ in dimension 0 alone, got {shapes}"
        )
    longest = max(shape[0] for shape in shapes)
    padded: list[Tensor] = []
    for sequence in [each.to(sequences[0].dtype) for each in sequences]:
        rest = (longest - sequence.shape[0], *sequence.shape[1:])
        padding = full(rest, padding_value, dtype=sequence.dtype, device=sequence.device)
        padded.append(cat([sequence, padding] if padding_side == "right" else [padding, sequence]))
    return stack(padded, 0 if batch_first else 1)


document(__all__, globals())
