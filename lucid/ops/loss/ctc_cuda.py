"""Connectionist temporal classification on a CUDA device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.base import gpu
from lucid.cuda.launch.kernels import C_TYPES, FLOATS, Kernel
from lucid.cuda.launch.plans import empty
from lucid.cuda.launch.reduction import power_of_two

if TYPE_CHECKING:
    from lucid.base.arrays import Array

__all__ = ["ctc_loss", "ctc_loss_grad"]

_ONE_TYPE = tuple((name,) for name in FLOATS)
_ALPHA = Kernel("ctc", "lucid::ctc_alpha", _ONE_TYPE)
_BETA = Kernel("ctc", "lucid::ctc_beta", _ONE_TYPE)
_GRAD = Kernel("ctc", "lucid::ctc_grad", _ONE_TYPE)
# Threads of a block at most.
_BLOCK = 256


def _block(count: int) -> int:
    return max(32, min(_BLOCK, power_of_two(count)))


def _work(x: Array) -> Any:
    return np.dtype(np.float64 if x.dtype.itemsize == 8 else np.float32)


def ctc_loss(
    x: Array, target: Array, offset: Array, time: Array, length: Array, *, blank: int, longest: int, zero_infinity: bool
) -> Any:
    """Return the losses, minus the logarithms of all paths, and those of the paths from the beginning."""
    steps, batch, classes = x.shape
    states = 2 * longest + 1
    alpha = empty((batch, steps, states), _work(x))
    nll, loss = empty(batch, _work(x)), empty(batch, x.dtype)
    if batch:
        x = gpu.cupy().ascontiguousarray(x)
        _ALPHA[C_TYPES[x.dtype]](
            batch, _block(states), x.data.ptr, target.data.ptr, offset.data.ptr, time.data.ptr, length.data.ptr,
            alpha.data.ptr, nll.data.ptr, loss.data.ptr, steps, classes, states, blank, int(zero_infinity),
        )  # fmt: skip
    return loss, nll, alpha


def ctc_loss_grad(
    grad: Array, x: Array, target: Array, offset: Array, time: Array, length: Array, nll: Array, alpha: Array, *,
    blank: int, zero_infinity: bool,
) -> Any:  # fmt: skip
    """Return the gradient of the log-probabilities."""
    steps, batch, classes = x.shape
    out, beta = empty(x.shape, x.dtype), empty(alpha.shape, alpha.dtype)
    if out.size:
        states = alpha.shape[2]
        grad, x = gpu.cupy().ascontiguousarray(grad), gpu.cupy().ascontiguousarray(x)
        example = target.data.ptr, offset.data.ptr, time.data.ptr, length.data.ptr
        name = C_TYPES[x.dtype]
        _BETA[name](batch, _block(states), x.data.ptr, *example, beta.data.ptr, steps, classes, states, blank)
        _GRAD[name](
            steps * batch, _block(classes), grad.data.ptr, x.data.ptr, *example, alpha.data.ptr, beta.data.ptr,
            nll.data.ptr, out.data.ptr, steps, batch, classes, states, blank, int(zero_infinity),
        )  # fmt: skip
    return out
