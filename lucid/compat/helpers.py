"""Functions that stand at PyTorch's addresses alone; `lucid.compat.addresses` lists them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from lucid.arguments import checked
from lucid.base.device import device
from lucid.cuda import is_available
from lucid.ops.shape.joining import cat

if TYPE_CHECKING:
    from lucid.tensor import Tensor

__all__ = [
    "FileLike", "Number", "_flatten_dense_tensors", "_ntuple", "_pair", "_quadruple", "_single", "_triple",
    "_unflatten_dense_tensors", "consume_prefix_in_state_dict_if_present", "current_accelerator",
]  # fmt: skip

Number: TypeAlias = int | float | bool
"""A number of Python's."""

FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
"""What `save` writes to and `load` reads from."""


def current_accelerator(check_available: bool = False) -> device | None:  # noqa: ARG001  nothing is known unasked
    """Return the device ``cuda``, without an index; None without a CUDA device.

    Parameters
    ----------
    check_available : bool
        PyTorch's: there the device is also named where it is not available, if PyTorch was built for it.

    Examples
    --------
    >>> import lucid
    >>> found = lucid.accelerator.current_accelerator()
    >>> (found is None) == (not lucid.accelerator.is_available())
    True
    """
    return device("cuda") if is_available() else None


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of all tensors, one behind the other."""
    return cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return parts of `flat`, each of the shape of one of `tensors`."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple([part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)])


def _ntuple(n: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives a tuple: of its argument's elements, or `n` times the argument if it has none."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    return parse


# by which tools make sizes of kernels and strides
_single, _pair, _triple, _quadruple = map(_ntuple, range(1, 5))


@checked
def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take `prefix` off the keys of a state dict that begin with it, in place, as for a wrapper's name.

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
