"""Updates in place: one kernel for all parameters on CUDA, elsewhere ufuncs over blocks that stay in the cache."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.backend import gpu
from lucid.backend.arrays import namespace
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.backend.arrays import Array

# Six blocks of it (parameter, gradient, two moments, two temporaries) lie in a last-level cache of 4 MiB. Smaller ones
# cost more in NumPy calls than a nearer cache gives back; without blocks every pass goes to memory, for twice the time.
BLOCK_BYTES = 1 << 19

TEMPORARIES = 2


def update_all(
    formula: Callable[..., None], kernel: Callable[..., list[list[Array]]], rows: list[list[Array]], **settings: Any
) -> None:
    """Change parameters and their state in place.

    Parameters
    ----------
    formula : callable
        As for `update_in_blocks`.
    kernel : callable
        ``kernel(rows, **settings)`` does the same on CUDA devices for all rows at once; returns those it cannot.
    rows : list of list of Array
        The gradient, the parameter and its state, of each parameter; as many arrays in each row.
    **settings : object
        Numbers of the formula.
    """
    on_cuda = [row for row in rows if type(row[0]) is not np.ndarray]
    if on_cuda:
        rows = [row for row in rows if type(row[0]) is np.ndarray]
        rows += kernel(on_cuda, **settings)
    for row in rows:
        update_in_blocks(formula, *row, **settings)


def update_in_blocks(formula: Callable[..., None], grad: Array, *targets: Array, **settings: Any) -> None:
    """Let an elementwise formula change arrays in place: the parameter and the state that belongs to it.

    Complex numbers are handed over as pairs of real ones, and half types in float32.

    Parameters
    ----------
    formula : callable
        ``formula(xp, grad, *targets, *temporaries, **settings)`` writes to the targets and to `TEMPORARIES` arrays like
        them, with ufuncs and ``out=``, and leaves `grad` as it is. On CuPy it gets whole arrays.
    grad : Array
        The gradient.
    *targets : Array
        Of the shape, dtype and device of `grad`.
    **settings : object
        Numbers of the formula.
    """
    arrays = [_as_real(array) for array in (grad, *targets)]
    xp = namespace(grad)
    work = accumulation_dtype(arrays[0].dtype)
    if xp is not np:
        with gpu.use_device(gpu.device_index(grad)):
            temporaries = [xp.empty(arrays[0].shape, work) for _ in range(TEMPORARIES)]
            _apply(formula, xp, arrays, temporaries, settings)
        return
    if all(target.flags.c_contiguous for target in arrays[1:]):
        arrays = [array.reshape(-1) for array in arrays]
    rows, *rest = arrays[0].shape
    length = max(BLOCK_BYTES // max(work.itemsize * math.prod(rest), 1), 1)
    temporaries = [np.empty((min(length, rows), *rest), work) for _ in range(TEMPORARIES)]
    # a step overflows silently, as all arithmetic of tensors
    with np.errstate(all="ignore"):
        for start in range(0, rows, length):
            block = [array[start : start + length] for array in arrays]
            _apply(formula, np, block, [array[: len(block[0])] for array in temporaries], settings)


def _as_real(array: Array) -> Array:
    return array[..., None].view(array.real.dtype) if array.dtype.kind == "c" else array


def _apply(
    formula: Callable[..., None], xp: Any, block: list[Array], temporaries: list[Array], settings: dict[str, Any]
) -> None:
    work = temporaries[0].dtype
    if block[0].dtype == work:
        formula(xp, *block, *temporaries, **settings)
        return
    widened = [array.astype(work) for array in block]
    formula(xp, *widened, *temporaries, **settings)
    for target, made in zip(block[1:], widened[1:], strict=True):
        target[...] = made


def descent(xp: Any, grad: Array, param: Array, temporary: Array, *, weight_decay: float, maximize: bool) -> Array:
    """Return ``±grad + weight_decay * param``, in `temporary` unless that is `grad` itself."""
    if weight_decay:
        decay = xp.multiply(param, weight_decay, out=temporary)
        return xp.subtract(decay, grad, out=temporary) if maximize else xp.add(decay, grad, out=temporary)
    return xp.negative(grad, out=temporary) if maximize else grad
