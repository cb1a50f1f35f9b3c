"""Updates in place: a chain of ufuncs over blocks that stay in the cache, so that a step costs memory traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.backend import gpu
from lucid.backend.arrays import namespace
from lucid.ops.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lucid.backend.arrays import Array

# Six blocks of it (parameter, gradient, two moments, two temporaries) lie in a second-level cache of 1 MiB; below it
# NumPy's cost of a call shows, above it memory's.
BLOCK_BYTES = 1 << 17

TEMPORARIES = 2


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
    if xp is np:
        # a step overflows silently, as all arithmetic of tensors
        with np.errstate(all="ignore"):
            for block in _blocks(arrays):
                _apply(np, formula, block, settings)
    else:
        with gpu.use_device(gpu.device_index(grad)):
            _apply(xp, formula, arrays, settings)


def _as_real(array: Array) -> Array:
    if array.dtype.kind != "c":
        return array
    return array[..., None].view(array.real.dtype)


def _blocks(arrays: list[Array]) -> Iterator[list[Array]]:
    """Yield arrays of one shape in stretches of `BLOCK_BYTES`; whole if they are smaller, or not contiguous."""
    grad, *targets = arrays
    length = BLOCK_BYTES // targets[0].itemsize
    if grad.size <= length or not all(target.flags.c_contiguous for target in targets):
        yield arrays
        return
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, grad.size, length):
        yield [array[start : start + length] for array in flat]


def _apply(xp: Any, formula: Callable[..., None], arrays: list[Array], settings: dict[str, Any]) -> None:
    targets = arrays[1:]
    dtype = targets[0].dtype
    work = accumulation_dtype(dtype)
    if work != dtype:
        arrays = [array.astype(work) for array in arrays]
    formula(xp, *arrays, *[xp.empty_like(arrays[1]) for _ in range(TEMPORARIES)], **settings)
    if work != dtype:
        for target, made in zip(targets, arrays[1:], strict=True):
            target[...] = made


def descent(xp: Any, grad: Array, param: Array, temporary: Array, *, weight_decay: float, maximize: bool) -> Array:
    """Return ``±grad + weight_decay * param``, in `temporary` unless that is `grad` itself."""
    if weight_decay:
        decay = xp.multiply(param, weight_decay, out=temporary)
        return xp.subtract(decay, grad, out=temporary) if maximize else xp.add(decay, grad, out=temporary)
    return xp.negative(grad, out=temporary) if maximize else grad
