"""Switches for work on a CUDA device: sums in a fixed order, and checks of indices."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from lucid.arguments import checked

if TYPE_CHECKING:
    from lucid.base.arrays import Array


_deterministic = False
_debug = os.environ.get("LUCID_CUDA_DEBUG", "0") not in {"", "0"}


@checked
def use_deterministic_algorithms(mode: bool) -> None:
    """Choose whether sums by index on a CUDA device are added in a fixed order; on the CPU they always are.

    It concerns the gradients of embedding, gather, take and ``x[index]``, and `scatter_add`, `index_add` and
    `index_put` with `accumulate`. By default these add by atomics: fast, but the order of additions, and so the last
    bits of the result, may change from run to run. In a fixed order the indices are sorted first. Where `scatter`,
    `index_copy` and ``x[index] = value`` name an index more than once, the last value then stays, as on the CPU.
    The gradients of attention are concerned where cuDNN computes them.

    Parameters
    ----------
    mode : bool
        Whether results must repeat bit by bit.

    Examples
    --------
    >>> import lucid
    >>> lucid.use_deterministic_algorithms(True)
    >>> lucid.are_deterministic_algorithms_enabled()
    True
    >>> lucid.use_deterministic_algorithms(False)
    """
    global _deterministic
    _deterministic = bool(mode)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether sums by index on a CUDA device are added in a fixed order.

    Examples
    --------
    >>> import lucid
    >>> lucid.are_deterministic_algorithms_enabled()
    False
    """
    return _deterministic


@checked
def set_debug(mode: bool) -> None:
    """Choose whether the values of indices on a CUDA device are looked at, as they are on the CPU.

    With it, an index that lies outside raises `IndexOutOfRangeError`, naming the op, the index and the size; each op
    then waits for the device. Without it, which is the default, nothing is ever read or written out of bounds: what
    such an index selects is zero, and what it would write or add is left out; `index_select`, `index_add`, `index_copy`
    and `index_fill` then count negative indices from the end, as ``x[index]`` does. The environment variable
    LUCID_CUDA_DEBUG=1 switches it on from the start.

    Parameters
    ----------
    mode : bool
        Whether to look.

    Examples
    --------
    >>> import lucid
    >>> lucid.cuda.set_debug(True)
    >>> lucid.cuda.is_debug()
    True
    >>> lucid.cuda.set_debug(False)
    """
    global _debug
    _debug = bool(mode)


def is_debug() -> bool:
    """Whether the values of indices on a CUDA device are looked at.

    Examples
    --------
    >>> import lucid
    >>> lucid.cuda.is_debug()
    False
    """
    return _debug


def looked_at(array: Array) -> bool:
    """Whether an op checks the values of this array: on CUDA, at the cost of waiting for the device, in debug mode."""
    return bool(array.size) and (_debug or isinstance(array, np.ndarray))
