"""PyTorch's pickles without pickle: the opcodes that `torch.save` writes, and the few names that it uses.

Opcodes and their arguments are read as `pickletools` describes them; here each builds plain values. A name in the text
is never imported or looked up: it stands for one of `CALLS` and `VALUES`, or the file is refused.
"""

from __future__ import annotations

import pickletools
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lucid.autograd.base import is_tuple
from lucid.backend.device import device
from lucid.backend.dtype import DTYPES, dtype
from lucid.errors import CheckpointError
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

__all__ = ["Mark", "NotLoadedError", "Storage", "Tensor", "unpickle"]

LEVELS = 100


class NotLoadedError(CheckpointError, TypeError):
    """A file holds something else than tensors and plain values."""


class Storage(NamedTuple):
    """Memory that tensors share: its elements, and the device on which it was saved."""

    array: Any
    location: str


class Tensor(NamedTuple):
    """A tensor of the file: where it lies in a storage, and what is to be made of it."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool
    parameter: bool = False


class _Name(NamedTuple):
    """What a name of the file stands for: it is called by its text, never looked up."""

    text: str


class Mark:
    """Where the arguments of an opcode begin."""


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
SIMPLE = {
    "NONE": None,
    "NEWTRUE": True,
    "NEWFALSE": False,
}
LITERALS = {
    "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
}  # fmt: skip
OPCODES = LITERALS | SIMPLE.keys() | {
    "PROTO", "FRAME", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET", "MARK", "EMPTY_DICT", "EMPTY_LIST",
    "EMPTY_TUPLE", "EMPTY_SET", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "APPEND", "APPENDS", "ADDITEMS", "SETITEM",
    "SETITEMS", "GLOBAL", "STACK_GLOBAL", "BINPERSID", "REDUCE", "BUILD", "STOP",
}  # fmt: skip


def is_a(value: Any, *kinds: type[Any]) -> bool:
    """Tell whether a value is of one of these classes, and of none below them."""
    return type(value) in kinds


def _plain(keys: Any) -> bool:
    """Tell whether keys are plain values: hashing tuples in tuples may take as long as whoever made them wishes."""
    return all(type(key) in {str, int, float, bool, bytes, type(None)} for key in keys)


def _expect(met: bool, what: str) -> None:
    if not met:
        raise ValueError(f"expected {what}")


def _tensor(
    storage: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    requires_grad: Any = False,
    _hooks: Any = None,
    bits: Any = None,
) -> Tensor:
    """Return a tensor that lies within its storage; `bits` say what is to be done to each number that is read."""
    for bit in ("conj", "neg"):
        if is_a(bits, dict) and bits.get(bit):
            raise NotLoadedError(f"holds a {bit} view: save its resolve_{bit}(); it is a tensor")
    _expect(isinstance(storage, Storage) and type(offset) is int, "a storage and an offset")
    _expect(is_tuple(shape) and is_tuple(strides) and len(shape) == len(strides), "sizes and strides")
    _expect(len(shape) <= 64 and all(type(n) is int and n >= 0 for n in (offset, *shape, *strides)), "sizes from 0 on")
    _expect(type(requires_grad) is bool, "true or false for requires_grad")
    if 0 not in shape:
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        _expect(last < len(storage.array), f"elements up to {last} of a storage of {len(storage.array)}")
    return Tensor(storage, offset, tuple(shape), tuple(strides), requires_grad)


def _tensor_of_dtype(
    storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any, hooks: Any, kind: Any, bits: Any = None
) -> Tensor:
    """Return a tensor of a storage that is bytes."""
    _expect(isinstance(storage, Storage) and isinstance(kind, dtype), "a storage and a dtype")
    size = kind.numpy.itemsize
    whole = storage.array.view(np.uint8)
    typed = Storage(whole[: len(whole) // size * size].view(kind.numpy), storage.location)
    return _tensor(typed, offset, shape, strides, requires_grad, hooks, bits)


def _parameter(data: Any, requires_grad: Any, *_hooks_and_state: Any) -> Tensor:
    _expect(isinstance(data, Tensor) and type(requires_grad) is bool, "a tensor, and whether it requires grad")
    return data._replace(requires_grad=requires_grad, parameter=True)


def _with_attributes(function: Any, kind: Any, arguments: Any, _state: Any) -> Any:
    """Return a tensor without the attributes that it had."""
    _expect(
        isinstance(function, _Name) and isinstance(kind, _Name) and isinstance(arguments, tuple), "a tensor's parts"
    )
    if kind.text not in {"torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter"}:
        raise NotLoadedError(f"holds a {kind.text}")
    return _called(function, arguments)


def _ordered() -> OrderedDict[Any, Any]:
    return OrderedDict()


def _size(sizes: Any = ()) -> Size:
    _expect(is_tuple(sizes) and all(type(n) is int for n in sizes), "whole numbers in a size")
    return Size(sizes)


def _counts(counts: Any = None) -> dict[Any, Any]:
    """Return the counts of a Counter, as in lucid's own files; schedules keep their milestones in one."""
    _expect(counts is None or is_a(counts, dict), "a dict of counts")
    return counts or {}


def _set(items: Any) -> set[Any]:
    _expect(is_a(items, list) and _plain(items), "plain values in a set")
    return set(items)


def _complex(real: Any, imaginary: Any) -> complex:
    _expect(is_a(real, float) and is_a(imaginary, float), "two numbers")
    return complex(real, imaginary)


def _encoded(text: Any, code: Any) -> bytes:
    """Return bytes, which protocol 2 has no opcode for."""
    _expect(is_a(text, str) and code == "latin1", "letters that stand for bytes")
    return text.encode("latin1")


CALLS: dict[str, Callable[..., Any]] = {
    **{f"{module}.set": _set for module in ("builtins", "__builtin__")},
    **{f"{module}.complex": _complex for module in ("builtins", "__builtin__")},
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
    "torch.device": device,
}
VALUES = {f"torch.{name}": known for name, known in DTYPES.items()}
# named by others of these, and never called
KNOWN = {
    "torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter", "torch.storage.UntypedStorage",
    "torch.serialization._get_layout",
} | {f"torch.{name}" for name in STORAGES}  # fmt: skip


def _named(module: str, name: str) -> Any:
    """Return what a name stands for."""
    text = f"{module}.{name}"
    if text in VALUES:
        return VALUES[text]
    if text in CALLS or text in KNOWN:
        return _Name(text)
    raise NotLoadedError(f"holds a {text}")


def _called(function: Any, arguments: Any) -> Any:
    """Return what a call of the file gives."""
    _expect(isinstance(function, _Name) and function.text in CALLS and is_tuple(arguments), "a known call")
    return CALLS[function.text](*arguments)


def _opcodes(file: BinaryIO) -> Iterator[tuple[str, Any]]:
    """Read the name and the argument of each opcode up to the last; what `torch.save` does not write is refused."""
    known = cast("dict[str, Any]", getattr(pickletools, "code2op"))  # noqa: B009  the stubs do not know it
    name = ""
    while name != "STOP":
        code = file.read(1).decode("latin1")
        if code not in known:
            raise ValueError(f"{code!r} is no opcode")
        name = known[code].name
        if name not in OPCODES:
            raise NotLoadedError(f"holds an object that takes the opcode {name}")
        # a name is two lines as they stand, which pickletools would unescape
        argument = tuple(_line(file) for _ in range(2)) if name == "GLOBAL" else None
        yield name, argument or (known[code].arg and known[code].arg.reader(file))


def _line(file: BinaryIO) -> str:
    line = file.readline()
    if not line.endswith(b"\n"):
        raise EOFError("it ends in a name")
    return line[:-1].decode()


def unpickle(file: BinaryIO, stored: Callable[[Any], Storage]) -> Any:
    """Return the value of the pickle at which a file stands, and leave the file behind it.

    Parameters
    ----------
    file : binary file object
    stored : callable
        Gives the storage that a persistent id means.

    Raises
    ------
    NotLoadedError
        If it names something else than tensors and plain values.
    ValueError, TypeError, LookupError, AttributeError, EOFError, OverflowError, RecursionError
        If it is none that `torch.save` writes.
    """
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def since_mark() -> list[Any]:
        place = len(stack) - 1
        while not isinstance(stack[place], Mark):
            place -= 1
            _expect(place >= 0, "a mark")
        items = stack[place + 1 :]
        del stack[place:]
        return items

    for name, argument in _opcodes(file):
        if name in LITERALS:
            stack.append(argument)
        elif name in SIMPLE:
            stack.append(SIMPLE[name])
        elif name in {"PROTO", "FRAME"}:
            pass
        elif name in {"BINPUT", "LONG_BINPUT"}:
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in {"BINGET", "LONG_BINGET"}:
            stack.append(memo[argument])
        elif name == "MARK":
            stack.append(Mark())
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name == "EMPTY_LIST":
            stack.append([])
        elif name == "EMPTY_TUPLE":
            stack.append(())
        elif name == "EMPTY_SET":
            stack.append(set())
        elif name == "TUPLE":
            stack.append(tuple(since_mark()))
        elif name in {"TUPLE1", "TUPLE2", "TUPLE3"}:
            count = int(name[-1])
            _expect(len(stack) >= count, f"{count} values")
            stack[-count:] = [tuple(stack[-count:])]
        elif name in {"APPEND", "APPENDS", "ADDITEMS"}:
            items = [stack.pop()] if name == "APPEND" else since_mark()
            target: Any = stack[-1]
            _expect(is_a(target, set if name == "ADDITEMS" else list), "a list or a set")
            _expect(name != "ADDITEMS" or _plain(items), "plain values in a set")
            (target.update if name == "ADDITEMS" else target.extend)(items)
        elif name in {"SETITEM", "SETITEMS"}:
            items = [stack.pop(-2), stack.pop()] if name == "SETITEM" else since_mark()
            _expect(is_a(stack[-1], dict, OrderedDict) and len(items) % 2 == 0, "a dict, and keys and values")
            _expect(_plain(items[::2]), "plain values as keys")
            stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif name == "GLOBAL":
            stack.append(_named(*argument))
        elif name == "STACK_GLOBAL":
            attribute, module = stack.pop(), stack.pop()
            _expect(isinstance(module, str) and isinstance(attribute, str), "two words")
            stack.append(_named(module, attribute))
        elif name == "BINPERSID":
            stack.append(stored(stack.pop()))
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            stack.append(_called(function, arguments))
        elif name == "BUILD":
            state: Any = stack.pop()
            _expect(is_a(stack[-1], OrderedDict) and is_a(state, dict), "the attributes of an OrderedDict")
            if is_a(state.get("_metadata"), dict, OrderedDict):
                vars(stack[-1])["_metadata"] = state["_metadata"]
        elif name == "STOP":
            _expect(len(stack) == 1, "one value at the end")
            return stack.pop()
    raise EOFError("it has no end")
