"""Dropout; what holds for all elementwise ops says `lucid.ops.base.declaration`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.primitive import primitive
from lucid.autograd.recording.views import change_in_place
from lucid.backend.device import device_of
from lucid.backend.dtype import dtype_of
from lucid.backend.random import draws as draw
from lucid.cuda.launch import random as kernels
from lucid.errors import DtypeError
from lucid.ops.base.blocks import in_blocks, keep_where
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.creation.generators import drawn, stream_for
from lucid.ops.creation.random import ProbabilityError

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.backend.arrays import Array
    from lucid.tensor import Tensor


def _dropout_into(xp: ModuleType, out: Array, mask: Array, x: Array, *, scale: float) -> None:
    keep_where(xp, out, x, mask)
    xp.multiply(out, scale, out=out)


@primitive
def _dropout(xp: ModuleType, x: Array, mask: Array, *, scale: float) -> Array:
    """Return ``x * scale`` where `mask` holds, and 0 elsewhere."""
    return in_blocks(xp, _dropout_into, 0, mask, x, scale=scale)


@_dropout.vjp("x")
def _dropout_vjp(m: Namespace, grad: Array, mask: Array, scale: float) -> Any:
    return m.dropout(grad, mask, scale=scale)


@primitive
def _drawn_dropout(xp: ModuleType, x: Array, *, keep: float, seed: int, offset: int) -> Array:
    """Return `_dropout` of the mask that begins at `offset` in the stream of `seed`.

    It is drawn again wherever it is needed: on a CUDA device that costs less than to keep it.
    """
    stream = draw.Generator(seed=seed)
    stream.reserve(offset)
    return _dropout.reference(xp, x, draw.bernoulli(stream, keep, x.shape, xp), scale=_scale(keep))


@_drawn_dropout.vjp("x")
def _drawn_dropout_vjp(m: Namespace, grad: Array, keep: float, seed: int, offset: int) -> Any:
    return m.drawn_dropout(grad, keep=keep, seed=seed, offset=offset)


@_drawn_dropout.cuda
def _drawn_dropout_cuda(x: Array, *, keep: float, seed: int, offset: int) -> Array:
    return kernels.dropout(x, seed=seed, offset=offset, threshold=draw.threshold_of(keep), scale=_scale(keep))


def _scale(keep: float) -> float:
    return 1 / keep if keep else 0.0


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return `input` with each element 0 with probability `p`, and divided by ``1 - p`` otherwise.

    Without `training`, `input` itself is returned; with `inplace` it is changed and returned. It is real and
    floating-point. What is dropped is drawn from the default generator of the device: the same on every device for the
    same seed. A `p` that is not between 0 and 1 raises a ProbabilityError. (Srivastava, Hinton, Krizhevsky, Sutskever,
    Salakhutdinov, 2014.)

    >>> import lucid
    >>> sorted(set(lucid.nn.functional.dropout(lucid.ones(1000), p=0.5).tolist()))
    [0.0, 2.0]
    """
    training = as_bool(training, "training")
    inplace = as_bool(inplace, "inplace")
    p = as_number(p, "p")
    if not 0 <= p <= 1:
        raise ProbabilityError(f"dropout probability has to be between 0 and 1, but got {p}")
    x = tensor_operand(input)
    if not dtype_of(x.array).is_floating_point:
        raise DtypeError(f"dropout: expected a real floating-point tensor, got {dtype_of(x.array)}")
    if not training or p == 0:
        return x
    device, shape = device_of(x.array), x.array.shape
    if x.is_cuda:
        seed, offset = stream_for("dropout", None, device).reserve(draw.bernoulli_blocks(shape))
        out = _drawn_dropout(x, keep=1 - p, seed=seed, offset=offset)
    else:
        mask = drawn("dropout", lambda g, xp: draw.bernoulli(g, 1 - p, shape, xp), None, device)
        out = _dropout(x, mask, scale=_scale(1 - p))
    return change_in_place(x, out) if inplace else out
