"""Sequences of several lengths in one tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.arguments import checked
from lucid.errors import SettingError, ShapeError
from lucid.ops.base.promotion import only_tensors
from lucid.ops.creation.filling import full
from lucid.ops.shape.joining import cat, stack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

__all__ = ["pad_sequence"]


@checked
def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Return sequences of several lengths in one tensor, padded to the longest.

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
    if padding_side not in {"right", "left"}:
        raise SettingError(f"pad_sequence: padding_side should be either 'right' or 'left', got {padding_side!r}")
    only_tensors(*sequences)
    shapes = [tuple(sequence.shape) for sequence in sequences]
    if not all(shapes) or len({shape[1:] for shape in shapes}) != 1:
        raise ShapeError(
            f"pad_sequence: expected at least one sequence, with sizes that differ in dimension 0 alone, got {shapes}"
        )
    longest = max(shape[0] for shape in shapes)
    padded: list[Tensor] = []
    for sequence in sequences:
        rest = (longest - sequence.shape[0], *sequence.shape[1:])
        padding = full(rest, padding_value, dtype=sequence.dtype, device=sequence.device)
        padded.append(cat([sequence, padding] if padding_side == "right" else [padding, sequence]))
    return stack(padded, 0 if batch_first else 1)
