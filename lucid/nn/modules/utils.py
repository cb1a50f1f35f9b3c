"""PyTorch's address of what is done with the state dicts of modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from lucid.arguments import checked

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives a tuple: of what it is given if that has elements, otherwise `n` times that."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    return parse


# by which tools make sizes of kernels and strides
_single, _pair, _triple, _quadruple = map(_ntuple, range(1, 5))


@checked
def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take `prefix` off the keys of a state dict that begin with it, in place, as where a wrapper's name is in the way.

    Parameters
    ----------
    state_dict : dict
        What `Module.state_dict` returned. The other keys stay, those without their prefix come after them. The layout
        versions in its `_metadata`, where it has that, are renamed too.
    prefix : str
        With its dot, such as ``"module."``.

    Examples
    --------
    >>> from lucid import nn
    >>> state = nn.Sequential(nn.Linear(1, 1)).state_dict()
    >>> nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "0.")
    >>> nn.Linear(1, 1).load_state_dict(state)
    <All keys matched successfully>
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata: dict[str, Any] | None = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        # the prefix's own module has its name without the dot, and becomes the top
        if metadata is not None and key and f"{key}.".startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)
