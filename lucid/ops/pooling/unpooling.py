"""The way back from the largest elements to their places.

`kernel_size`, `stride` and `padding` of the windows are those of `lucid.ops.pooling.pooling`. `indices` are those that
pooling gives with `return_indices`, int64, in the shape of `input`; `output_size`, what was pooled, is needed where
several sizes give as many windows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.base.arrays import zeros_beside
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.promotion import only_tensors
from lucid.ops.base.scalars import as_int, is_single
from lucid.ops.index.scatter import scatter
from lucid.ops.layers.windows import shape_of, sizes_for
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.ops.base.dims import Sizes
    from lucid.tensor import Tensor


def unpooled(
    name: str,
    count: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    output_size: Sequence[int] | None,
) -> Any:
    """Return zeros with the elements of `input` at `indices`, counted over all pooled dimensions."""
    input = wide_in_autocast(input, cpu=True, cuda=False)
    only_tensors(input, indices)
    shape, places = shape_of(name, input, count), indices.array
    if places.dtype != np.int64:
        raise DtypeError(f"{name}: expected indices of int64, got {places.dtype.name}")
    if places.shape != shape:
        raise ShapeError(f"{name}: expected indices of the shape of input, got shapes {places.shape} and {shape}")
    lead, size = shape[:-count], shape[-count:]
    kernel = sizes_for(name, "kernel_size", kernel_size, count, least=1)
    strides = kernel if stride is None else sizes_for(name, "stride", stride, count, least=1)
    before = sizes_for(name, "padding", padding, count, least=0)
    usual = tuple([(n - 1) * s + k - 2 * p for n, s, k, p in zip(size, strides, kernel, before, strict=True)])
    wanted = usual
    if output_size is not None:
        entries: Any = (output_size,) if is_single(output_size) else output_size
        sizes = tuple([as_int(n, "output_size") for n in entries])
        wanted = sizes[2:] if len(sizes) == count + 2 else sizes
        if len(wanted) != count or any(abs(n - u) >= s for n, u, s in zip(wanted, usual, strides, strict=True)):
            raise ShapeError(
                f"{name}: expected output_size of {count} numbers (or {count + 2} with batch and channels), less than "
                f"the stride {strides} from {usual}, got {sizes}"
            )
    if min(wanted) < 0:
        raise ShapeError(f"{name}: the output would have size {wanted}; the windows are of {kernel}, padding {before}")
    row = (*lead, math.prod(size))
    out = wrap(zeros_beside(input.array, (*lead, math.prod(wanted))))
    return reshape(scatter(out, -1, reshape(indices, row), reshape(input, row)), (*lead, *wanted))


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return sequences, shape (batch, channels, length), of zeros with the elements of `input` at `indices`.

    >>> import lucid
    >>> from lucid.nn import functional as F
    >>> values, indices = F.max_pool1d(lucid.tensor([[1.0, 3.0, 2.0, 0.0]]), 2, return_indices=True)
    >>> F.max_unpool1d(values, indices, 2)
    tensor([[0., 3., 2., 0.]])
    """
    return unpooled("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return images, shape (batch, channels, height, width), of zeros with the elements of `input` at `indices`.

    >>> import lucid
    >>> from lucid.nn import functional as F
    >>> values, indices = F.max_pool2d(lucid.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2, return_indices=True)
    >>> F.max_unpool2d(values, indices, 2)
    tensor([[[0., 0.],
             [4., 0.]]])
    """
    return unpooled("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Return volumes, (batch, channels, depth, height, width), of zeros with the elements of `input` at `indices`.

    >>> import lucid
    >>> from lucid.nn import functional as F
    >>> values, indices = F.max_pool3d(lucid.ones(1, 2, 4, 6), 2, return_indices=True)
    >>> F.max_unpool3d(values, indices, 2).shape
    lucid.Size([1, 2, 4, 6])
    """
    return unpooled("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)
