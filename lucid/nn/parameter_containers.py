"""Containers of parameters: ParameterList, ParameterDict."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.backend.dtype import dtype_of
from lucid.nn.module import Module
from lucid.nn.parameter import Buffer, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self


def as_parameter(value: Any) -> Any:
    """Return a tensor as a parameter; parameters, buffers and other things stay what they are."""
    if isinstance(value, TensorBase) and not isinstance(value, Parameter | Buffer):
        return Parameter(value)
    return value


def description(key: Any, value: Any) -> str:
    """Return one line of the `repr`."""
    if isinstance(value, TensorBase):
        sizes = "x".join(str(size) for size in value.array.shape)
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        return f"({key}): {kind} containing: [{dtype_of(value.array)} of size {sizes}]"
    return f"({key}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """A list whose tensors are parameters of the module that holds it.

    Parameters
    ----------
    values : iterable, optional
        What is in it at first. Tensors become parameters; other things are kept as they are.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> len(list(nn.ParameterList([lucid.ones(2), lucid.ones(3)]).parameters()))
    2
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _key(self, index: int) -> str:
        position = operator.index(index)
        if not -self._size <= position < self._size:
            raise IndexError(f"index {position} is out of range: expected one from {-self._size} to {self._size - 1}")
        return str(position % self._size)

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
        """Return this list after adding `values` at its end."""
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, other: Iterable[Any]) -> Self:
        return self.extend(other)

    def extra_repr(self) -> str:
        """Return one line for each entry."""
        return "\n".join(description(position, value) for position, value in enumerate(self))


class ParameterDict(Module):
    """A dictionary whose tensors are parameters of the module that holds it.

    Parameters
    ----------
    parameters : mapping or iterable of (str, value), optional
        What is in it at first. Tensors become parameters; other things are kept as they are.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> list(nn.ParameterDict({"scale": lucid.ones(2)}).state_dict())
    ['scale']
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
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

    def update(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add entries, replacing those of the same keys."""
        for key, value in dict(parameters).items():
            self[key] = value

    def extra_repr(self) -> str:
        """Return one line for each entry."""
        return "\n".join(description(key, value) for key, value in self.items())
