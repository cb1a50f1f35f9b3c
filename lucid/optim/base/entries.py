"""The dicts of an optimizer's state: graphs that use a tensor in them are told when another one takes its place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Self, cast

from lucid.autograd.base import TensorBase
from lucid.base.capture import changes

if TYPE_CHECKING:
    from lucid.tensor import Tensor


def note_replaced(value: object) -> None:
    """Tell graphs that an optimizer no longer has the tensors of this value: a tensor, or dicts of them."""
    if isinstance(value, TensorBase):
        changes.replace(value)
    elif isinstance(value, dict):
        for each in cast("dict[object, object]", value).values():
            note_replaced(each)


class _Telling(dict[Any, Any]):
    """A dict that notifies graphs of replaced and removed values."""

    def __setitem__(self, key: Any, value: Any) -> None:
        before = self.get(key)
        super().__setitem__(key, value)
        if before is not None and before is not value:
            note_replaced(before)

    def __delitem__(self, key: Any) -> None:
        before = self.get(key)
        super().__delitem__(key)
        note_replaced(before)

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove a key and return its value, or else the default."""
        before = self.get(key)
        value = super().pop(key, *default)
        note_replaced(before)
        return value

    # those of dict change entries past the methods above
    popitem = MutableMapping[Any, Any].popitem
    clear = MutableMapping[Any, Any].clear
    update = MutableMapping[Any, Any].update

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self


class Entries(_Telling):
    """The state of one parameter, by name."""


class State(_Telling, defaultdict[Any, Any]):
    """The state of all parameters; a missing one is created on lookup."""


def as_state(state: Mapping[Tensor, Any]) -> State:
    """Return a state with dicts that notify graphs of their losses: the same object if it is such a state."""
    made = state if isinstance(state, State) else State(Entries, state)
    for param, entries in made.items():
        if type(entries) is dict:
            # nothing is lost by this
            super(_Telling, made).__setitem__(param, Entries(cast("dict[str, Any]", entries)))
    return made
