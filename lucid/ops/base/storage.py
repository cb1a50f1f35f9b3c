"""The memory under a tensor, as tools look at it: its identity and size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import wrap
from lucid.base.arrays import Array, namespace, to_device
from lucid.base.device import device, device_of
from lucid.base.dtype import dtype, dtype_of
from lucid.base.memory import forwards
from lucid.base.sharing import block_of
from lucid.ops.base.strided import address_of, span, strides_of

if TYPE_CHECKING:
    from lucid.tensor import Tensor


class UntypedStorage:
    """The bytes under a tensor and all of its views; `Tensor.untyped_storage` returns it.

    It is for looking: elements are changed through tensors. Two of them are equal if they begin at one address.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.zeros(2, 3)
    >>> x.untyped_storage().nbytes(), x[1].untyped_storage() == x.untyped_storage()
    (24, True)
    """

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    @property
    def device(self) -> device:
        """The device that holds the bytes."""
        return device_of(self._array)

    @property
    def is_cuda(self) -> bool:
        """Whether the bytes are on a CUDA device."""
        return self.device.type == "cuda"

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return address_of(self._array)

    def nbytes(self) -> int:
        """Return the number of bytes, from the first element to the end of the last."""
        return span(self._array.shape, strides_of(self._array)) * self._array.dtype.itemsize

    def element_size(self) -> int:
        """Return the bytes of one entry."""
        return 1

    def size(self) -> int:
        """Return the number of entries."""
        return self.nbytes() // self.element_size()

    def is_shared(self) -> bool:
        """Return whether processes share the memory."""
        return block_of(self._array) is not None

    def __len__(self) -> int:
        return self.size()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (self.data_ptr(), self.device) == (other.data_ptr(), other.device)

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.device))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size()} entries of {self.element_size()} bytes on {self.device}>"


class TypedStorage(UntypedStorage):
    """The elements under a tensor and all of its views; `Tensor.storage` returns it.

    Examples
    --------
    >>> import lucid
    >>> lucid.tensor([[1, 2], [3, 4]])[1].storage().tolist()
    [1, 2, 3, 4]
    """

    __slots__ = ()

    @property
    def dtype(self) -> dtype:
        """The type of the elements."""
        return dtype_of(self._array)

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self._array.dtype.itemsize

    def untyped(self) -> UntypedStorage:
        """Return the same memory as bytes."""
        return UntypedStorage(self._array)

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers, in their order in memory."""
        if not self.size():
            return []
        # an array of another library may have gaps, and overlap itself: no tensor is made of all of its memory
        whole = namespace(self._array).lib.stride_tricks.as_strided(self._array, (self.size(),), (self.element_size(),))
        return wrap(to_device(whole, "cpu")).tolist()

    def __getitem__(self, index: Any) -> Any:
        return self.tolist()[index]


def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the bytes under this tensor, of a view those under its base.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 3)[1].untyped_storage().nbytes()
    24
    """
    return UntypedStorage(_memory(self))


def storage(self: Tensor) -> TypedStorage:
    """Return the elements under this tensor, of a view those under its base.

    Examples
    --------
    >>> import lucid
    >>> lucid.zeros(2, 3)[1].storage().size()
    6
    """
    return TypedStorage(_memory(self))


def _memory(tensor: Tensor) -> Array:
    return forwards(tensor.array if tensor.origin is None else tensor.origin.base.array)
