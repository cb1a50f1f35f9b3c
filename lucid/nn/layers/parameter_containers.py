"""Containers of parameters: ParameterList, ParameterDict."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, TypeAlias

from lucid.arguments import checked
from lucid.autograd.base import TensorBase
from lucid.base.device import device_of
from lucid.base.dtype import dtype_of
from lucid.errors import ArgumentError
from lucid.nn.layers.container import named_entries, position_in
from lucid.nn.module.module import Module, ModuleAttributeError
from lucid.nn.parameter import Buffer, Parameter

Entries: TypeAlias = "Mapping[str, Any] | ParameterDict | Iterable[tuple[str, Any]]"


def as_parameter(value: Any) -> Any:
    """Return a tensor as a parameter; parameters, buffers and the rest stays as it is."""
    if isinstance(value, TensorBase) and not isinstance(value, Parameter | Buffer):
        return Parameter(value)
    return value


def description(key: Any, value: Any) -> str:
    """Return one line of the `repr`."""
    if isinstance(value, TensorBase):
        sizes = "x".join(str(size) for size in value.array.shape)
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        device = device_of(value.array)
        where = "" if device.type == "cpu" else f" (GPU {device.index})"
        return f"  ({key}): {kind} containing: [{dtype_of(value.array)} of size {sizes}{where}]"
    return f"  ({key}): Object of type: {type(value).__name__}"


class ParameterKeyError(ModuleAttributeError, KeyError):
    """A ParameterDict has no such key."""


class ParameterList(Module):
    """A list, at first `values`, with its tensors as parameters of the module that holds it; the rest stays as it is.

    >>> import lucid
    >>> from lucid import nn
    >>> len(list(nn.ParameterList([lucid.ones(2), lucid.ones(3)]).parameters()))
    2
    """

    @checked
    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _key(self, index: int) -> str:
        return str(position_in(index, self._size))

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(self[position] for position in range(*idx.indices(self._size)))
        return getattr(self, self._key(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, self._key(idx), as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[position] for position in range(self._size))

    def append(self, value: Any) -> Self:
        """Return this list after adding `value` at its end."""
        setattr(self, str(self._size), as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Return this list after adding `values`, an iterable but no tensor, at its end."""
        if isinstance(values, TensorBase):
            raise ArgumentError(
                "ParameterList.extend should be called with an iterable of values, but got "
                f"{type(values).__name__}: append it, or put it into a list"
            )
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, other: Iterable[Any]) -> Self:
        return self.extend(other)

    def extra_repr(self) -> str:
        """Return one line for each entry."""
        return "\n".join(description(position, value) for position, value in enumerate(self))


class ParameterDict(Module):
    """A dictionary with its tensors as parameters of the module that holds it; other things stay as they are.

    At first it holds `parameters`, a mapping or pairs, in the order in which `update` adds them.

    >>> import lucid
    >>> from lucid import nn
    >>> list(nn.ParameterDict({"scale": lucid.ones(2)}).state_dict())
    ['scale']
    """

    def __init__(self, parameters: Entries | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise ParameterKeyError(f"'{type(self).__name__}' object has no key {key!r}: it has {[*self._keys]}")
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        # registered before it is listed: a name that a module cannot take leaves the dictionary as it was
        if key not in self._keys and hasattr(self, key):
            raise KeyError(f"attribute '{key}' already exists: choose another key")
        setattr(self, key, as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __or__(self, other: Entries) -> ParameterDict:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: Any) -> dict[str, Any]:
        return {**other, **dict(self.items())} if isinstance(other, dict) else NotImplemented

    def __ior__(self, other: Entries) -> Self:
        self.update(other)
        return self

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Iterable[str]:
        """Return the keys."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """Return the values."""
        return [self[key] for key in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the pairs of key and value."""
        return [(key, self[key]) for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or `default`."""
        return self[key] if key in self._keys else default

    def pop(self, key: str) -> Any:
        """Return the value of a key after taking it out."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Take everything out."""
        for key in list(self._keys):
            del self[key]

    def popitem(self) -> tuple[str, Any]:
        """Return the last pair of key and value after taking it out; a KeyError if there is none."""
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, `default` after adding it if there was none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def copy(self) -> ParameterDict:
        """Return a dictionary of its own with the same values."""
        return ParameterDict(self.items())

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dictionary with the value `default` for all `keys`."""
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters: Entries) -> None:
        """Add entries, replacing those of the same keys.

        Pairs, an OrderedDict and a ParameterDict are taken in their order, other mappings in that of their sorted keys,
        as in PyTorch: equal dictionaries give parameters in one order, however they were made.

        >>> from lucid import nn
        >>> list(nn.ParameterDict({"b": 1, "a": 2})), list(nn.ParameterDict([("b", 1), ("a", 2)]))
        (['a', 'b'], ['b', 'a'])
        """
        entries = named_entries(parameters, "parameters")
        sort = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for key in sorted(entries) if sort else entries:
            self[key] = entries[key]

    def extra_repr(self) -> str:
        """Return one line for each entry."""
        return "\n".join(description(key, value) for key, value in self.items())
