"""Dropout. Common rules of elementwise ops: `lucid.ops.base.declaration`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.recording.primitive import primitive
from lucid.autograd.recording.views import change_in_place
from lucid.base.device import device_of
from lucid.base.random import draws as draw
from lucid.cuda.launch import random as kernels
from lucid.errors import ShapeError
from lucid.ops.base.blocks import in_blocks, keep_where
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.creation.filling import ones
from lucid.ops.creation.generators import drawn, stream_for
from lucid.ops.creation.random import ProbabilityError
from lucid.ops.elementwise.arithmetic import add, mul, sub
from lucid.ops.elementwise.combination import addcmul
from lucid.ops.layers.normalisation import real_operand

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor


def _dropout_into(xp: ModuleType, out: Array, mask: Array, x: Array, *, scale: float) -> None:
    keep_where(xp, out, x, mask)
    xp.multiply(out, scale, out=out)


@primitive
def _dropout(xp: ModuleType, x: Array, mask: Array, *, scale: float) -> Array:
    """Return ``x * scale`` at the true elements of `mask`, and 0 elsewhere."""
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


def _applied(
    name: str, input: Tensor, p: float, training: bool, inplace: bool, drop: Callable[..., Any], dimensions: int = 0
) -> Tensor:
    """Return ``drop(x, p)`` of the input in training, in its place if that is wanted; else the input.

    Arguments that are wrong are refused, and another number of `dimensions`, but for one less without a batch.
    """
    training, inplace, p = as_bool(training, "training"), as_bool(inplace, "inplace"), as_number(p, "p")
    if not 0 <= p <= 1:
        raise ProbabilityError(f"dropout probability has to be between 0 and 1, but got {p}")
    x = real_operand(name, input)
    if dimensions and dimensions - x.array.ndim not in {0, 1}:
        raise ShapeError(
            f"{name}: expected {dimensions - 1} or {dimensions} dimensions, ([batch,] channels, ...), "
            f"got shape {x.array.shape}"
        )
    if not training or p == 0:
        return x
    out = drop(x, p)
    return change_in_place(x, out) if inplace else out


def _dropped(x: Tensor, p: float) -> Tensor:
    device, shape = device_of(x.array), x.array.shape
    if x.is_cuda:
        seed, offset = stream_for("dropout", None, device).reserve(draw.bernoulli_blocks(shape))
        return _drawn_dropout(x, keep=1 - p, seed=seed, offset=offset)
    mask = drawn("dropout", lambda g, xp: draw.bernoulli(g, 1 - p, shape, xp), None, device)
    return _dropout(x, mask, scale=_scale(1 - p))


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
    return _applied("dropout", input, p, training, inplace, _dropped)


# ---- whole channels ----


def _of_channels(name: str, x: Tensor, p: float, *, batched: bool = True) -> Tensor:
    """Return the factor of each channel, dimension 1, or 0 without a batch."""
    shape = x.array.shape
    kept = 1 + batched
    if len(shape) < kept:
        raise ShapeError(f"{name}: expected at least 2 dimensions, (batch, channels, ...), got shape {shape}")
    return _dropped(ones(*shape[:kept], *[1] * (len(shape) - kept), dtype=x.dtype, device=x.device), p)


def _channels_dropped(name: str, input: Tensor, p: float, training: bool, inplace: bool, dimensions: int) -> Tensor:
    def drop(x: Tensor, p: float) -> Tensor:
        # PyTorch's dropout2d takes three dimensions as those of dropout1d
        return mul(x, _of_channels(name, x, p, batched=dimensions in {x.array.ndim, 4}))

    return _applied(name, input, p, training, inplace, drop, dimensions)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return `input` with each channel 0 with probability `p`, and divided by ``1 - p`` otherwise.

    It has the shape (batch, channels, length), or (channels, length); else a ShapeError is raised. `training` and
    `inplace` are those of :func:`dropout`. (Tompson, Goroshin, Jain, LeCun, Bregler, 2015.)

    >>> import lucid
    >>> sorted(set(lucid.nn.functional.dropout1d(lucid.ones(100, 2)).sum(1).tolist()))
    [0.0, 4.0]
    """
    return _channels_dropped("dropout1d", input, p, training, inplace, 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return `input` with each channel 0 with probability `p`, and divided by ``1 - p`` otherwise.

    It has the shape (batch, channels, height, width). Three dimensions are, as in PyTorch, taken as batch, channels and
    length; others raise a ShapeError. `training` and `inplace` are those of :func:`dropout`.

    >>> import lucid
    >>> sorted(set(lucid.nn.functional.dropout2d(lucid.ones(20, 5, 2, 2)).sum((2, 3)).flatten().tolist()))
    [0.0, 8.0]
    """
    return _channels_dropped("dropout2d", input, p, training, inplace, 4)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return `input` with each channel 0 with probability `p`, and divided by ``1 - p`` otherwise.

    It has the shape (batch, channels, depth, height, width), or is without the batch; else a ShapeError is raised.
    `training` and `inplace` are those of :func:`dropout`.

    >>> import lucid
    >>> sorted(set(lucid.nn.functional.dropout3d(lucid.ones(100, 2, 2, 2)).sum((1, 2, 3)).tolist()))
    [0.0, 16.0]
    """
    return _channels_dropped("dropout3d", input, p, training, inplace, 5)


# ---- for self-normalising networks ----

# What SELU tends to far below zero, negated: its scale times its alpha.
ALPHA = 1.7580993408473766


def _factor(p: float) -> float:
    """Return the factor that restores the variance, if a share `p` is ``-ALPHA`` and mean and variance were 0 and 1."""
    return 1 / math.sqrt((1 - p) * (1 + p * ALPHA**2))


def _alpha_dropped(x: Tensor, p: float) -> Tensor:
    # moved by ALPHA, what is dropped is 0
    return mul(x, 0.0) if p == 1 else mul(sub(_dropped(add(x, ALPHA), p), ALPHA), _factor(p) * (1 - p))


def _channels_alpha_dropped(x: Tensor, p: float) -> Tensor:
    noise = mul(_of_channels("feature_alpha_dropout", x, p), 0.0 if p == 1 else _factor(p) * (1 - p))
    shift = mul(noise, 0.0) if p == 1 else mul(sub(noise, _factor(p) * (1 - p)), ALPHA)
    return addcmul(shift, x, noise)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Return ``a * x' + b``: x' is `input` with each element, with probability `p`, set to the least value of SELU.

    That is -1.7581; ``a`` and ``b`` keep a mean of 0 and a variance of 1. A `p` of 1 leaves zeros. `training` and
    `inplace` are those of :func:`dropout`. (Klambauer, Unterthiner, Mayr, Hochreiter, 2017.)

    >>> import lucid
    >>> _ = lucid.manual_seed(0)
    >>> bool(lucid.nn.functional.alpha_dropout(lucid.randn(10000), 0.3, training=True).mean().abs() < 0.05)
    True
    """
    return _applied("alpha_dropout", input, p, training, inplace, _alpha_dropped)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Return :func:`alpha_dropout` of whole channels of an `input` of shape (batch, channels, ...).

    Fewer than two dimensions raise a ShapeError. `p`, `training` and `inplace` are those of :func:`alpha_dropout`.

    >>> import lucid
    >>> out = lucid.nn.functional.feature_alpha_dropout(lucid.zeros(50, 2, 3), training=True)
    >>> bool((out == out[:, :, :1]).all()), len(set(out.flatten().tolist()))
    (True, 2)
    """
    return _applied("feature_alpha_dropout", input, p, training, inplace, _channels_alpha_dropped)
