"""How elements lie in memory, by PyTorch's names: `lucid.strided`, `lucid.channels_last` and the others.

lucid has one way, strides, as NumPy and CuPy lay them. A memory format that is asked for changes no value and moves
nothing: kernels read any strides. `Tensor.is_contiguous` says whether strides happen to be those of a format.
"""

from __future__ import annotations

from lucid.arguments import shown
from lucid.errors import ArgumentError


class _Named:
    """A name that equals itself alone, is written ``lucid.name`` and comes out of pickle and copy as it is."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"lucid.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout(_Named):
    """How the elements of a tensor are stored; `lucid.strided` is the only one.

    Parameters
    ----------
    name : str
        How it is shown.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2).layout
    lucid.strided
    """

    __slots__ = ()


class memory_format(_Named):
    """An order of dimensions in memory that code may ask for; lucid takes each, and moves no elements for it.

    Parameters
    ----------
    name : str
        How it is shown.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.zeros(1, 2, 3, 4)
    >>> x.to(memory_format=lucid.channels_last).stride()
    (24, 12, 4, 1)
    """

    __slots__ = ()


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
preserve_format = memory_format("preserve_format")


def check_layout(value: object) -> None:
    """Refuse a layout other than `lucid.strided` and None."""
    if value is not None and not isinstance(value, layout):
        raise ArgumentError(f"layout: expected lucid.strided, got {shown(value)}")


def check_memory_format(value: object) -> None:
    """Refuse a value other than a memory format and None."""
    if value is not None and not isinstance(value, memory_format):
        raise ArgumentError(f"memory_format: expected one such as lucid.channels_last, got {shown(value)}")
