"""Normalisation over features and over groups of channels, and the common rules of all normalisation.

- It returns ``(x - mean) / sqrt(var + eps) * weight + bias``, of the shape and dtype of `input`, which is real and
  floating-point. The variance is the mean square deviation, not corrected; `eps` is added to it.
- `weight` and `bias`, scale and offset, are one number for each feature or channel; without them there is none. They
  have the dtype of `input`, or for half types float32: in that these are computed.
- Features are the elements of the last dimensions, of sizes `normalized_shape`; channels are dimension 1 of at least 2.
- A shape that does not fit raises a ShapeError, a dtype a DtypeError.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.modes.state import unusual
from lucid.base.dtype import dtype_of, float32
from lucid.base.limits import finfo
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.base.dims import sizes_in
from lucid.ops.base.one_device import check_one_device
from lucid.ops.base.operands import tensor_operand
from lucid.ops.base.promotion import accumulation_dtype, array_of
from lucid.ops.base.scalars import as_int, as_number
from lucid.ops.layers.norms.primitives import normalise
from lucid.ops.pooling.pooling import avg_pool2d
from lucid.ops.shape.padding import pad
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from lucid.ops.base.dims import Sizes
    from lucid.tensor import Tensor


def real_operand(name: str, input: Tensor) -> Any:
    """Return the tensor that is normalised; a DtypeError if it is not of a real floating-point type."""
    x = tensor_operand(input)
    if not dtype_of(x.array).is_floating_point:
        raise DtypeError(f"{name}: expected a real floating-point tensor, got {dtype_of(x.array)}")
    return x


def check_affine(name: str, x: Tensor, shape: tuple[int, ...], why: str, **parameters: Tensor | None) -> None:
    """Refuse weights and biases of another shape, or neither of the dtype of the input nor, for half types, float32."""
    dtype = x.array.dtype
    for role, parameter in parameters.items():
        if parameter is None:
            continue
        array = array_of(parameter)
        if array.dtype is dtype and array.shape == shape:
            continue
        if array.shape != shape:
            raise ShapeError(
                f"{name}: expected {role} of shape {list(shape)}, {why}, got shape {list(parameter.array.shape)}"
            )
        own, wanted = dtype_of(parameter.array), dtype_of(x.array)
        if own is not wanted and not (own is float32 and wanted.itemsize == 2):
            raise DtypeError(f"{name}: expected {role} of the dtype of the input, {wanted}, got {own}")


def _features(name: str, x: Tensor, normalized_shape: Sizes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return `normalized_shape` as a tuple and the dimensions that it stands for; a ShapeError if there are none."""
    features = sizes_in((normalized_shape,))
    shape = x.array.shape
    first = len(shape) - len(features)
    if not features or first < 0 or shape[first:] != features:
        raise ShapeError(
            f"{name}: Given normalized_shape={list(features)}, expected input with shape "
            f"[*{''.join(f', {size}' for size in features)}], but got input of size {list(shape)}"
        )
    return features, tuple(range(first, first + len(features)))


def layer_norm(
    input: Tensor, normalized_shape: Sizes, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    """Return `input` normalised by mean and variance over its last dimensions (Ba, Kiros and Hinton, 2016).

    >>> import lucid
    >>> lucid.nn.functional.layer_norm(lucid.tensor([[1.0, 3.0], [0.0, 4.0]]), 2)
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    if unusual:
        input, weight, bias = map(wide_in_autocast, (input, weight, bias))
    x = real_operand("layer_norm", input)
    features, dim = _features("layer_norm", x, normalized_shape)
    check_affine("layer_norm", x, features, "that of normalized_shape", weight=weight, bias=bias)
    eps = as_number(eps, "eps")
    return normalise(x, weight, bias, dim=dim, eps=eps, center=True, broadcast=features)[0]


def rms_norm(input: Tensor, normalized_shape: Sizes, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Return ``x / sqrt(mean(x**2) + eps) * weight``, the mean over the last dimensions (Zhang and Sennrich, 2019).

    `eps` is by default the distance from 1 to the next larger number of the dtype that is computed in.

    >>> import lucid
    >>> lucid.nn.functional.rms_norm(lucid.tensor([[3.0, 4.0]]), 2)
    tensor([[0.8485, 1.1314]])
    """
    if unusual:
        input, weight = map(wide_in_autocast, (input, weight))
    x = real_operand("rms_norm", input)
    features, dim = _features("rms_norm", x, normalized_shape)
    check_affine("rms_norm", x, features, "that of normalized_shape", weight=weight)
    added = finfo(accumulation_dtype(x.array.dtype)).eps if eps is None else as_number(eps, "eps")
    return normalise(x, weight, None, dim=dim, eps=added, center=False, broadcast=features)[0]


def channels_of(name: str, x: Tensor, parameters: dict[str, Tensor | None]) -> tuple[int, tuple[int, ...]]:
    """Return the number of channels, and the shape that broadcasts one value for each of them to the input.

    An input of fewer than two dimensions, or a running statistic of another size, raises a ShapeError; one on another
    device a DeviceError, since what follows would change the other before it fails.
    """
    shape = x.array.shape
    if len(shape) < 2:
        raise ShapeError(f"{name}: expected an input of at least 2 dimensions, (N, C, ...), got shape {list(shape)}")
    for role, parameter in parameters.items():
        if parameter is not None and array_of(parameter).shape != (shape[1],):
            raise ShapeError(
                f"{name}: {role} should contain {shape[1]} elements, one for each channel of the input of shape "
                f"{list(shape)}, got shape {list(parameter.array.shape)}"
            )
    check_one_device(name, x, *parameters.values())
    return shape[1], (1, shape[1], *(1,) * (len(shape) - 2))


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    """Return `input` normalised by mean and variance of each sample and group of channels (Wu and He, 2018).

    The channels are split into `num_groups` groups of neighbours, of one size.

    >>> import lucid
    >>> lucid.nn.functional.group_norm(lucid.tensor([[1.0, 3.0, 0.0, 4.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    if unusual:
        input, weight, bias = map(wide_in_autocast, (input, weight, bias))
    x = real_operand("group_norm", input)
    channels, _ = channels_of("group_norm", x, {})
    shape = x.array.shape
    num_groups, eps = as_int(num_groups, "num_groups"), as_number(eps, "eps")
    if num_groups < 1 or channels % num_groups:
        raise ShapeError(
            f"group_norm: Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(shape)} and num_groups={num_groups}"
        )
    check_affine("group_norm", x, (channels,), "one for each channel", weight=weight, bias=bias)
    grouped = (shape[0], num_groups, channels // num_groups, math.prod(shape[2:]))
    broadcast = (1, num_groups, channels // num_groups, 1)
    out = normalise(reshape(x, grouped), weight, bias, dim=(2, 3), eps=eps, center=True, broadcast=broadcast)[0]
    return reshape(out, shape)


def local_response_norm(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Return ``x / (k + alpha * mean(x**2)) ** beta``, the mean over neighbouring channels (Krizhevsky et al., 2012).

    The neighbours are `size` channels around each, of even sizes one more before it; those beyond the first and the
    last channel are zero. The factor `alpha`, the exponent `beta` and the offset `k` are numbers. `input` has at least
    3 dimensions.

    >>> import lucid
    >>> lucid.nn.functional.local_response_norm(lucid.tensor([[[1.0], [2.0], [0.0]]]), 3, alpha=3.0, beta=1.0)
    tensor([[[0.1667],
             [0.3333],
             [0.0000]]])
    """
    # on the CPU PyTorch averages sequences and images by functions that are on no list, and on one
    x = real_operand("local_response_norm", wide_in_autocast(input, cpu=array_of(input).ndim > 3))
    size, alpha = as_int(size, "size"), as_number(alpha, "alpha")
    beta, k = as_number(beta, "beta"), as_number(k, "k")
    shape = x.array.shape
    if len(shape) < 3:
        raise ShapeError(
            f"local_response_norm: expected an input of at least 3 dimensions, (N, C, ...), got shape {list(shape)}"
        )
    if size < 1:
        raise SettingError(f"local_response_norm: expected a size of at least 1 channel, got {size}")
    if not x.array.size:
        return x
    squares = reshape(x * x, (shape[0], 1, shape[1], math.prod(shape[2:])))
    squares = pad(squares, (0, 0, size // 2, (size - 1) // 2))
    means = reshape(avg_pool2d(squares, (size, 1), 1), shape)
    return x / (means * alpha + k) ** beta
