"""A formula applied in place, on the CPU over blocks of elements that stay in the cache."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base.arrays import Array, namespace, on
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType


# Six blocks of it (parameter, gradient, two moments, two temporaries) lie in a last-level cache of 4 MiB. Smaller ones
# cost more in NumPy calls than a nearer cache gives back; without blocks every pass goes to memory, for twice the time.
BLOCK_BYTES = 1 << 19


def update_in_blocks(
    chain: Callable[..., None], temporaries: int, rows: Iterable[Sequence[Array]], numbers: dict[str, Any]
) -> None:
    """Let the chain of a formula change arrays in place: parameters and the state that belongs to each.

    Complex numbers are handed over as pairs of real ones, and half types in float32.

    Parameters
    ----------
    chain : callable
        ``chain(xp, *row, *temporaries, **numbers)`` writes to the arrays of the row, but for the gradient, and to
        more like them, with ufuncs and ``out=``. On CuPy it gets whole arrays.
    temporaries : int
        How many more.
    rows : iterable of sequence of Array
        The gradient, the parameter and its state, of one shape, dtype and device, for each parameter.
    numbers : dict
        As the chain calls them.
    """
    # a step overflows silently, as all arithmetic of tensors
    with np.errstate(all="ignore"):
        for row in rows:
            grad = row[0]
            if type(grad) is np.ndarray and grad.nbytes <= BLOCK_BYTES and grad.dtype.char in "fd":
                # one block as it is: of many small parameters all else would take most of the time
                chain(np, *row, *[np.empty_like(grad) for _ in range(temporaries)], **numbers)
            else:
                _update(chain, temporaries, row, numbers)


def _update(chain: Callable[..., None], temporaries: int, row: Sequence[Array], numbers: dict[str, Any]) -> None:
    arrays = [array[..., None].view(array.real.dtype) if array.dtype.kind == "c" else array for array in row]
    xp = namespace(row[0])
    work = accumulation_dtype(arrays[0].dtype)
    if xp is not np:
        with on(row[0]):
            spare = [xp.empty(arrays[0].shape, work) for _ in range(temporaries)]
            _apply(chain, xp, arrays, spare, work, numbers)
        return
    if all(target.flags.c_contiguous for target in arrays[1:]):
        arrays = [array.reshape(-1) for array in arrays]
    count, *rest = arrays[0].shape
    length = max(BLOCK_BYTES // max(work.itemsize * math.prod(rest), 1), 1)
    spare = [np.empty((min(length, count), *rest), work) for _ in range(temporaries)]
    for start in range(0, count, length):
        block = [array[start : start + length] for array in arrays]
        _apply(chain, np, block, [array[: len(block[0])] for array in spare], work, numbers)


def _apply(
    chain: Callable[..., None],
    xp: ModuleType,
    block: list[Array],
    spare: list[Array],
    work: np.dtype[Any],
    numbers: dict[str, Any],
) -> None:
    if block[0].dtype == work:
        chain(xp, *block, *spare, **numbers)
        return
    widened = [array.astype(work) for array in block]
    chain(xp, *widened, *spare, **numbers)
    for target, made in zip(block[1:], widened[1:], strict=True):
        target[...] = made
