"""Arrays of somebody else's as tensors: unseen writes to them are noticed when a gradient needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap

if TYPE_CHECKING:
    from lucid.base.arrays import Array


class ContentsVersion(list[int]):
    """The version counter of an array that others own and may write to unseen: one more once its contents differ.

    All of up to `FEW` elements are looked at, and as many in a grid of more: where an array is saved and where it is
    used, which takes a microsecond. `is_read_by_others` says that somebody keeps the memory, and would see values that
    are written later, and no gradient of theirs.
    """

    FEW = 256
    __slots__ = ("array", "contents", "is_read_by_others")

    def __init__(self, array: Array) -> None:
        super().__init__((0,))
        self.array = array
        self.contents = b""
        self.is_read_by_others = False

    def __getitem__(self, index: Any) -> Any:
        array: Any = self.array
        if array.size > self.FEW:
            share = int(self.FEW ** (1 / sum(size > 1 for size in array.shape)))
            array = array[tuple([slice(None, None, -(-size // share)) for size in array.shape])]
        # what is looked at first is what it is compared with
        contents = array.tobytes()
        count: int = super().__getitem__(0)
        if self.contents and contents != self.contents:
            count += 1
            super().__setitem__(0, count)
        self.contents = contents
        return count

    def __setitem__(self, index: Any, value: Any) -> None:
        # the next look is at the contents after this change
        super().__setitem__(index, value)
        self.contents = b""


def borrowed(array: Array) -> Any:
    """Return a tensor around an array of somebody else's; changes of the array in place are noticed as a tensor's are.

    On the host: a look at an array on a device would wait for it.
    """
    tensor = wrap(array)
    if not hasattr(tensor, "version"):
        tensor.version = counter_of(tensor.array)
    return tensor


def counter_of(array: Array) -> list[int]:
    """Return a version counter for an array of somebody else's."""
    return ContentsVersion(array) if type(array) is np.ndarray and array.size else [0]
