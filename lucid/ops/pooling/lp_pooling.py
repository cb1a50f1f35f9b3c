"""Pooling by norms, between sums and maxima of windows.

`kernel_size`, `stride` and `ceil_mode` of the windows are those of `lucid.ops.pooling.pooling`. The result is
``sum(x ** norm_type) ** (1 / norm_type)`` over each window, or the largest or smallest magnitude for a `norm_type` of
infinity or minus infinity; 0 is refused. Where a sum is 0 its gradient is 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base.dtype import as_dtype, dtype_of
from lucid.errors import SettingError
from lucid.ops.activation.relu import relu
from lucid.ops.base.promotion import accumulation_dtype, cast_to, only_tensors
from lucid.ops.base.scalars import as_number
from lucid.ops.elementwise.arithmetic import mul, neg
from lucid.ops.elementwise.complex import abs as magnitude
from lucid.ops.elementwise.complex import sign
from lucid.ops.elementwise.power import pow as power
from lucid.ops.layers.windows import check_floating, sizes_for
from lucid.ops.pooling.pooling import averaged, max_pooled

if TYPE_CHECKING:
    from lucid.ops.base.dims import Sizes
    from lucid.tensor import Tensor


def normed(
    name: str, count: int, input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None, ceil_mode: bool
) -> Any:
    """Return the norm of each window."""
    only_tensors(input)
    check_floating(name, input)
    norm = as_number(norm_type, "norm_type")
    if norm == 0:
        raise SettingError(f"{name}: expected norm_type other than 0, got {norm_type!r}")
    if math.isinf(norm):
        largest = max_pooled(
            name, count, mul(magnitude(input), math.copysign(1.0, norm)), kernel_size, stride, 0, 1, ceil_mode, False
        )
        return largest if norm > 0 else neg(largest)
    positions = math.prod(sizes_for(name, "kernel_size", kernel_size, count, least=1))
    wide = cast_to(input, as_dtype(accumulation_dtype(input.array.dtype)))
    mean = averaged(name, count, power(wide, norm), kernel_size, stride, 0, ceil_mode, True)
    # the mean itself, but through relu, whose gradient at 0 is 0 whatever comes
    mean = mul(sign(mean), relu(magnitude(mean)))
    return cast_to(power(mul(mean, positions), 1 / norm), dtype_of(input.array))


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """Return the norm of each window of sequences, shape (batch, channels, length).

    >>> import lucid
    >>> lucid.nn.functional.lp_pool1d(lucid.tensor([[3.0, 4.0, 0.0, 2.0]]), 2, 2)
    tensor([[5., 2.]])
    """
    return normed("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """Return the norm of each window of images, shape (batch, channels, height, width).

    >>> import lucid
    >>> lucid.nn.functional.lp_pool2d(lucid.ones(1, 2, 4), 2, 2)
    tensor([[[2., 2.]]])
    """
    return normed("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """Return the norm of each window of volumes, shape (batch, channels, depth, height, width).

    >>> import lucid
    >>> lucid.nn.functional.lp_pool3d(lucid.ones(1, 2, 2, 2), 2, 2)
    tensor([[[[2.8284]]]])
    """
    return normed("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)
