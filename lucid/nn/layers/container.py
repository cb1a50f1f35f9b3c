"""Containers of modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any, Self, cast, overload

from lucid.arguments import checked, unfit
from lucid.errors import ArgumentError, SettingError
from lucid.nn.module.module import Module, indented
from lucid.nn.module.paths import adopt


def positive(number: int) -> int:
    """Return a number of repetitions, if it is one."""
    if number <= 0:
        raise SettingError(f"expected a positive number of repetitions, got {number}")
    return number


def position_in(index: int, size: int) -> int:
    """Return a position in a list, counted from its end if negative, as one counted from its beginning."""
    position = operator.index(index)
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of range: expected one from {-size} to {size - 1}")
    return position % size


def named_entries(source: Any, argument: str) -> dict[str, Any]:
    """Return the entries of a mapping, or of pairs of names and values, as a dict."""
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise unfit(source, "a dict or pairs of names and values", argument)
    entries = cast("Any", source)
    if not hasattr(entries, "keys"):
        entries = list(entries)
        for pair in entries:
            if not isinstance(pair, tuple | list) or len(cast("list[Any]", pair)) != 2:
                raise unfit(cast("Any", pair), "a pair of a name and a value", argument)
    return dict(entries)


class Numbered(Module):
    """The base of Sequential and ModuleList: modules under the names "0", "1" and so on."""

    def _key(self, index: int) -> str:
        """Return the name at a position, counted from the end if negative."""
        names = self._modules
        position = position_in(index, len(names))
        # from the nearer end
        behind = len(names) - 1 - position
        return next(islice(names, position, None) if position < behind else islice(reversed(names), behind, None))

    def _renumber(self, modules: Iterable[Module | None]) -> None:
        self._modules.clear()
        for index, module in enumerate(modules):
            self._modules[str(index)] = module
            adopt(self, module)

    @overload
    def __getitem__(self, idx: slice) -> Self: ...
    @overload
    def __getitem__(self, idx: int) -> Any: ...
    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return self._made_of(list(self._modules.items())[idx])
        return self._modules[self._key(idx)]

    def _made_of(self, items: list[tuple[str, Any]]) -> Self:
        raise NotImplementedError

    def __setitem__(self, idx: int, module: Module) -> None:
        self.add_module(self._key(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        keys = list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]
        for key in keys:
            del self._modules[key]
        self._renumber(list(self._modules.values()))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Self:
        """Return this container after adding a module at its end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Return this container after adding modules at its end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Return this container after putting a module before position `index`."""
        if not isinstance(module, Module):
            raise ArgumentError(f"module should be of type: {Module}, got {type(module).__name__}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"index {index} is out of range: expected one from {-size} to {size}")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: int | slice) -> Any:
        """Return the module at a position after taking it out."""
        module = self[key]
        del self[key]
        return module

    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)


class Sequential(Numbered):
    """Calls its modules one after another, each with the output of the one before.

    They are named "0", "1" and so on, or as in the one OrderedDict that is given.

    >>> from lucid import nn
    >>> nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in cast("dict[str, Module]", args[0]).items():
                self.add_module(name, module)
        else:
            self.extend(args)

    def _made_of(self, items: list[tuple[str, Any]]) -> Self:
        return type(self)(OrderedDict(items))

    def forward(self, input: Any) -> Any:
        """Return `input` after all modules, one after another."""
        for module in self._modules.values():
            input = module(input)  # pyright: ignore[reportOptionalCall]
        return input

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            return NotImplemented
        return Sequential(*self, *other)

    def __mul__(self, other: Any) -> Sequential:
        if not isinstance(other, int):
            return NotImplemented
        return Sequential(*list(self) * positive(other))

    __rmul__ = __mul__

    def __imul__(self, other: Any) -> Self:
        if not isinstance(other, int):
            return NotImplemented
        return self.extend(list(self) * (positive(other) - 1))


class ModuleList(Numbered):
    """A list of modules, at first `modules`, that are part of the module that holds it; it is not called itself.

    >>> from lucid import nn
    >>> nn.ModuleList([nn.ReLU(), nn.ReLU()])
    ModuleList(
      (0-1): 2 x ReLU()
    )
    """

    @checked
    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _key(self, index: int) -> str:
        # in constant time: a loop over the indices of a long list is usual
        name = str(position_in(index, len(self._modules)))
        return name if name in self._modules else super()._key(index)

    def _made_of(self, items: list[tuple[str, Any]]) -> Self:
        return type(self)(module for _, module in items)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        if not len(self):
            return f"{self._get_name()}()"
        lines: list[str] = []
        first = 0
        for text, equal in groupby(map(repr, self)):
            count = len(list(equal))
            numbers = f"({first}): " if count == 1 else f"({first}-{first + count - 1}): {count} x "
            lines.append(numbers + indented(text))
            first += count
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dictionary of modules, at first `modules`, that are part of the module that holds it; it is not called itself.

    >>> from lucid import nn
    >>> list(nn.ModuleDict({"act": nn.ReLU()}))
    ['act']
    """

    @checked
    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Return the module of a name after taking it out."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the pairs of name and module."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules, of a mapping or of pairs, replacing those of the same names."""
        for name, module in named_entries(modules, "modules").items():
            self.add_module(name, module)
