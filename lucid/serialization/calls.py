"""Meanings of the names in PyTorch's pickles: a dozen calls and the dtypes; none is ever looked up."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import TensorBase, is_tuple, wrap
from lucid.base.device import device
from lucid.base.dtype import DTYPES, dtype
from lucid.errors import DeviceError
from lucid.nn.parameter import Parameter
from lucid.serialization.bounded import DICT, LIST, NODE, NUMBER, SLOT, TENSOR, TUPLE, Budget, is_shape
from lucid.serialization.format import as_bytes
from lucid.serialization.refusals import NotLoaded, shown
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Callable


class Storage(NamedTuple):
    """Memory that tensors share: an array of one dimension on its device."""

    array: Any


class Name(NamedTuple):
    """A name of the file that is called by its text, and never looked up."""

    text: str


STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
}


def is_a(value: Any, *kinds: type[Any]) -> bool:
    """Tell whether a value is of one of these classes, and of none below them."""
    return type(value) in kinds


def expect(met: bool, what: str) -> None:
    """Raise a ValueError with `what` as the expectation, unless it is met."""
    if not met:
        raise ValueError(f"expected {what}")


def _tensor(
    budget: Budget,
    storage: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    requires_grad: Any = False,
    _hooks: Any = None,
    bits: Any = None,
) -> Any:
    """Return a tensor that lies within its storage; `bits` are the operations pending on each number read."""
    for bit in ("conj", "neg"):
        if is_a(bits, dict) and bits.get(bit):
            raise NotLoaded(f"holds a {bit} view: save its resolve_{bit}(); it is a tensor")
    expect(isinstance(storage, Storage) and type(offset) is int, "a storage and an offset")
    expect(is_a(shape, tuple, Size, list) and is_a(strides, tuple, Size, list), "sizes and strides")
    expect(len(shape) == len(strides), "a stride for each size")
    expect(all(type(n) is int and n >= 0 for n in (offset, *shape, *strides)), "sizes from 0 on")
    expect(type(requires_grad) is bool, "true or false for requires_grad")
    array = storage.array
    if not is_shape(shape, array.itemsize) or any(stride >= 2**59 for stride in strides):
        raise NotLoaded("holds a tensor of more dimensions or elements than an array has")
    budget.take(TENSOR + 2 * SLOT * len(shape))
    if 0 in shape:
        view = array[:0].reshape(shape)
    else:
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        expect(last < len(array), f"elements up to {last} of a storage of {len(array)}")
        view = _strided(array, offset, shape, tuple(stride * array.itemsize for stride in strides))
    return wrap(view).requires_grad_(requires_grad)


def _strided(array: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Return a view of an array; the caller has looked that it lies within."""
    if type(array) is np.ndarray:
        return np.ndarray(shape, array.dtype, as_bytes(array), offset * array.itemsize, strides)
    return type(array)(shape, array.dtype, memptr=array[offset:].data, strides=strides)


def _tensor_of_dtype(
    budget: Budget,
    storage: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    requires_grad: Any,
    hooks: Any,
    kind: Any,
    bits: Any = None,
) -> Any:
    """Return a tensor of a storage that is bytes."""
    expect(isinstance(storage, Storage) and isinstance(kind, dtype) and kind.name != "bool", "a storage and a dtype")
    size = kind.numpy.itemsize
    whole = storage.array.view(np.uint8)
    typed = Storage(whole[: len(whole) // size * size].view(kind.numpy))
    return _tensor(budget, typed, offset, shape, strides, requires_grad, hooks, bits)


def _parameter(budget: Budget, data: Any, requires_grad: Any, *_hooks_and_state: Any) -> Any:
    expect(isinstance(data, TensorBase) and type(requires_grad) is bool, "a tensor, and whether it requires grad")
    budget.take(TENSOR)
    return Parameter(data, requires_grad)


def _with_attributes(budget: Budget, function: Any, kind: Any, arguments: Any, _state: Any) -> Any:
    """Return a tensor without the attributes that it had."""
    expect(isinstance(function, Name) and isinstance(kind, Name) and is_tuple(arguments), "a tensor's parts")
    if kind.text not in {"torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter"}:
        raise NotLoaded(f"holds a {kind.text}")
    return called(budget, function, arguments)


def _ordered(budget: Budget, items: Any = ()) -> OrderedDict[Any, Any]:
    """Return an OrderedDict; Python 2 makes it from a list of pairs."""
    made: OrderedDict[Any, Any] = OrderedDict()
    budget.take(2 * DICT)
    if not is_a(items, list, tuple) or not all(is_a(pair, list) and len(pair) == 2 for pair in items):
        raise NotLoaded("holds an OrderedDict that is made of something else than a list of pairs")
    for key, value in items:
        budget.key(key, len(made))
        budget.take(NODE)
        made[key] = value
    return made


def _size(budget: Budget, sizes: Any = ()) -> Size:
    expect(is_a(sizes, tuple, list) and all(type(n) is int for n in sizes), "whole numbers in a size")
    budget.take(TUPLE + SLOT * len(sizes))
    return Size(sizes)


def _counts(budget: Budget, counts: Any = None) -> dict[Any, Any]:
    """Return the counts of a Counter, as in lucid's own files; schedules keep their milestones in one."""
    expect(counts is None or is_a(counts, dict), "a dict of counts")
    budget.take(DICT)
    return counts or {}


def _set(budget: Budget, items: Any = ()) -> set[Any]:
    expect(is_a(items, list, tuple), "a list of what is in a set")
    budget.take(4 * LIST)
    made = set[Any]()
    for item in items:
        budget.key(item, len(made))
        made.add(item)
    return made


def _complex(budget: Budget, real: Any, imaginary: Any) -> complex:
    expect(is_a(real, float, int) and is_a(imaginary, float, int), "two numbers")
    budget.take(NUMBER)
    return complex(real, imaginary)


def _encoded(budget: Budget, text: Any, code: Any) -> bytes:
    """Return bytes; protocol 2 has no opcode for them."""
    expect(is_a(text, str) and code in ("latin1", "utf-8"), "letters that stand for bytes")
    budget.take(LIST + len(text))
    return text.encode(code)


def _bytes(budget: Budget, data: Any = b"") -> bytes:
    expect(is_a(data, bytes), "bytes")
    budget.take(LIST + len(data))
    return data


def _bytearray(budget: Budget, data: Any = b"") -> bytearray:
    return bytearray(_bytes(budget, data))


def _device(budget: Budget, kind: Any, index: Any = None) -> device:
    expect(is_a(kind, str) and (index is None or (type(index) is int and 0 <= index < 2**16)), "a device")
    budget.take(LIST)
    try:
        return device(kind, index)
    except DeviceError as error:
        raise NotLoaded(f"holds the device {shown(kind)}") from error


CALLS: dict[str, Callable[..., Any]] = {
    **{
        f"{module}.{name}": call
        for module in ("builtins", "__builtin__")
        for name, call in {"set": _set, "complex": _complex, "bytes": _bytes, "bytearray": _bytearray}.items()
    },
    "_codecs.encode": _encoded,
    "collections.Counter": _counts,
    "collections.OrderedDict": _ordered,
    "torch.Size": _size,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor_of_dtype,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._tensor._rebuild_from_type_v2": _with_attributes,
    "torch.device": _device,
}
REBUILDS = (_tensor, _tensor_of_dtype, _parameter, _with_attributes)  # whose arguments are damaged if they do not fit
VALUES = {f"torch.{name}": known for name, known in DTYPES.items()}
# named by others of these, and never called
KNOWN = {
    "torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter", "torch.storage.UntypedStorage",
    "torch.serialization._get_layout",
} | {f"{module}.{name}" for name in STORAGES for module in ("torch", "torch.cuda")}  # fmt: skip


def named(budget: Budget, module: str, name: str) -> Any:
    """Return the meaning of a name."""
    budget.take(2 * LIST + len(name))
    text = f"{module}.{name}"
    if text in VALUES:
        return VALUES[text]
    if text in CALLS or text in KNOWN:
        return Name(text)
    raise NotLoaded(f"holds a {text}")


def called(budget: Budget, function: Any, arguments: Any) -> Any:
    """Return the result of a call of the file."""
    expect(isinstance(function, Name) and is_tuple(arguments), "a known call")
    if function.text not in CALLS:
        raise NotLoaded(f"holds what {function.text} makes")
    call = CALLS[function.text]
    if call in REBUILDS:
        return call(budget, *arguments)
    try:
        return call(budget, *arguments)
    except (ValueError, TypeError) as error:  # PyTorch's own may take more
        raise NotLoaded(f"holds what {function.text} makes of other arguments") from error
