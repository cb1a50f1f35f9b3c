"""Connectionist temporal classification on a CUDA device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.base import gpu
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, Kernel
from lucid.cuda.launch.plans import empty
from lucid.cuda.launch.reduction import block_of
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from lucid.base.arrays import Array


_ALPHA = Kernel("ctc", "lucid::ctc_alpha", EACH_FLOAT)
_BETA = Kernel("ctc", "lucid::ctc_beta", EACH_FLOAT)
_GRAD = Kernel("ctc", "lucid::ctc_grad", EACH_FLOAT)


def ctc_loss(
    x: Array, target: Array, offset: Array, time: Array, length: Array, *, blank: int, longest: int, zero_infinity: bool
) -> Any:
    """Return the losses, minus the logarithms of all paths, and those of the paths from the beginning."""
    steps, batch, classes = x.shape
    states = 2 * longest + 1
    alpha = empty((batch, steps, states), accumulation_dtype(x.dtype))
    nll, loss = empty(batch, accumulation_dtype(x.dtype)), empty(batch, x.dtype)
    if batch:
        x = gpu.cupy().ascontiguousarray(x)
        _ALPHA[C_TYPES[x.dtype]](
            batch, block_of(states), x.data.ptr, target.data.ptr, offset.data.ptr, time.data.ptr, length.data.ptr,
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
        _BETA[name](batch, block_of(states), x.data.ptr, *example, beta.data.ptr, steps, classes, states, blank)
        _GRAD[name](
            steps * batch, block_of(classes), grad.data.ptr, x.data.ptr, *example, alpha.data.ptr, beta.data.ptr,
            nll.data.ptr, out.data.ptr, steps, batch, classes, states, blank, int(zero_infinity),
        )  # fmt: skip
    return out
