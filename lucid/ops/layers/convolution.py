"""Convolutions and transposed convolutions over one to three dimensions, and their common rules.

- `input` has the shape (batch, channels, *sizes), or the same without batch, and so has the result. `weight` has the
  shape (out channels, channels / groups, *kernel), transposed (channels, out channels / groups, *kernel). `bias`, one
  number for each output channel, is added. All have one dtype, but not bool.
- `stride` is the distance between windows, `dilation` that between the elements of a window, `padding` how many zeros
  surround the input: one number, or one for each dimension. Padding may be "valid", which is none, or "same", as many
  as keep the size, one more at the end where their number is odd: that needs stride 1.
- `groups` divides the channels; each group of output channels sees its group of input channels.
- A size becomes ``(size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1``.
- The transposed convolution is the derivative of the convolution of the same settings with respect to its input: each
  element adds a scaled kernel to its window. `padding`, a number or one for each dimension, is cut off the result;
  `output_padding`, less than stride or dilation, is added at its end. A size becomes
  ``(size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.
- Sums of half types are taken in float32 and rounded once. What does not fit raises a ShapeError, also where nothing of
  the result would be left; dtypes that differ a DtypeError, devices a DeviceError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.base.dtype import dtype_of
from lucid.errors import ShapeError
from lucid.ops.base.promotion import cast_to
from lucid.ops.base.scalars import as_int
from lucid.ops.elementwise.arithmetic import add
from lucid.ops.layers.convolution_primitives import convolution, convolution_input_grad
from lucid.ops.layers.windows import shape_of, sizes_for
from lucid.ops.linalg.matrices import same_dtype
from lucid.ops.shape.reshape import reshape, squeeze, unsqueeze

if TYPE_CHECKING:
    from lucid.ops.base.dims import Sizes
    from lucid.tensor import Tensor


def checked(
    name: str, count: int, input: Tensor, weight: Tensor, bias: Tensor | None, groups: int, *, transposed: bool
) -> int:
    """Return `groups` as an int, and refuse operands of a convolution over `count` dimensions that do not fit."""
    same_dtype(name, input, weight, bias=bias)
    groups = as_int(groups, "groups")
    x, w = shape_of(name, input, count), weight.array.shape
    if len(w) != count + 2:
        raise ShapeError(f"{name}: expected weight of {count + 2} dimensions, got shape {w}")
    if groups < 1 or w[0] % groups:
        raise ShapeError(
            f"{name}: expected groups to be positive and to divide the first size of weight, {w[0]}, got {groups}"
        )
    wanted = w[0] if transposed else w[1] * groups
    if x[-count - 1] != wanted:
        raise ShapeError(
            f"{name}: expected input with {wanted} channels (weight has shape {w}, groups is {groups}), "
            f"got {x[-count - 1]} in input of shape {x}"
        )
    made = w[1] * groups if transposed else w[0]
    if bias is not None and bias.array.shape != (made,):
        raise ShapeError(f"{name}: expected bias of shape ({made},), got {bias.array.shape}")
    return groups


def convolve(
    name: str,
    count: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: str | Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """Return the convolution over the last `count` dimensions; see :func:`conv2d`."""
    groups = checked(name, count, input, weight, bias, groups, transposed=False)
    strides = sizes_for(name, "stride", stride, count, least=1)
    dilations = sizes_for(name, "dilation", dilation, count, least=1)
    size, kernel = input.array.shape[-count:], weight.array.shape[2:]
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    if isinstance(padding, str) and padding == "same":
        if any(s != 1 for s in strides):
            raise ShapeError(f"{name}: padding='same' needs stride 1, got {stride!r}")
        before = tuple([(span - 1) // 2 for span in spans])
        padded = [n + span - 1 for n, span in zip(size, spans, strict=True)]
    elif isinstance(padding, str) and padding != "valid":
        raise ShapeError(f"{name}: expected padding to be 'same', 'valid', an int or a tuple of int, got {padding!r}")
    else:
        before = sizes_for(name, "padding", 0 if isinstance(padding, str) else padding, count, least=0)
        padded = [n + 2 * p for n, p in zip(size, before, strict=True)]
    if any(n < span for n, span in zip(padded, spans, strict=True)):
        raise ShapeError(
            f"{name}: the kernel spans {tuple(spans)} elements, the padded input has only {tuple(padded)} "
            f"(input has shape {input.array.shape}, weight {weight.array.shape})"
        )
    out = tuple([(n - span) // s + 1 for n, span, s in zip(padded, spans, strides, strict=True)])
    batched = input.array.ndim == count + 2
    y = convolution(
        input if batched else unsqueeze(input, 0), weight, bias,
        out=out, stride=strides, before=before, dilation=dilations, groups=groups,
    )  # fmt: skip
    return y if batched else squeeze(y, 0)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: str | Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of sequences, shape (batch, channels, length), with kernels; see `conv2d`.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 2.0, 4.0, 8.0]])
    >>> lucid.nn.functional.conv1d(x, lucid.tensor([[[-1.0, 1.0]]]))
    tensor([[1., 2., 4.]])
    """
    return convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: str | Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of images, shape (batch, channels, height, width), with kernels.

    ``out[n, o, y, x] = bias[o] + sum_cij weight[o, c, i, j] * input[n, c, stride * y + dilation * i - padding, ...]``

    >>> import lucid
    >>> x = lucid.ones(1, 3, 3)
    >>> lucid.nn.functional.conv2d(x, lucid.ones(1, 1, 3, 3), padding=1)
    tensor([[[4., 6., 4.],
             [6., 9., 6.],
             [4., 6., 4.]]])
    """
    return convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: str | Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of volumes, (batch, channels, depth, height, width), with kernels; see `conv2d`.

    >>> import lucid
    >>> lucid.nn.functional.conv3d(lucid.ones(1, 3, 4, 5), lucid.ones(2, 1, 3, 3, 3), padding="same").shape
    lucid.Size([2, 3, 4, 5])
    """
    return convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def convolve_transposed(
    name: str,
    count: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Any:
    """Return the transposed convolution over the last `count` dimensions; see :func:`conv_transpose2d`."""
    groups = checked(name, count, input, weight, bias, groups, transposed=True)
    strides = sizes_for(name, "stride", stride, count, least=1)
    dilations = sizes_for(name, "dilation", dilation, count, least=1)
    before = sizes_for(name, "padding", padding, count, least=0)
    more = sizes_for(name, "output_padding", output_padding, count, least=0)
    if any(extra >= max(s, d) for extra, s, d in zip(more, strides, dilations, strict=True)):
        raise ShapeError(
            f"{name}: expected output_padding to be smaller than stride or dilation, got output_padding {more}, "
            f"stride {strides}, dilation {dilations}"
        )
    settings = zip(input.array.shape[-count:], weight.array.shape[2:], strides, before, dilations, more, strict=True)
    size = tuple([(n - 1) * s - 2 * p + d * (k - 1) + extra + 1 for n, k, s, p, d, extra in settings])
    if min(size) < 1:
        raise ShapeError(f"{name}: the output would have size {size}; input has shape {input.array.shape}")
    batched = input.array.ndim == count + 2
    y = convolution_input_grad(
        input if batched else unsqueeze(input, 0), weight,
        size=size, stride=strides, before=before, dilation=dilations, groups=groups,
    )  # fmt: skip
    if bias is not None:
        y = add(y, cast_to(reshape(bias, (-1, *[1] * count)), dtype_of(y.array)))
    return y if batched else squeeze(y, 0)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transposed convolution of sequences, shape (batch, channels, length); see `conv_transpose2d`.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 2.0]])
    >>> lucid.nn.functional.conv_transpose1d(x, lucid.tensor([[[1.0, -1.0]]]), stride=2)
    tensor([[ 1., -1.,  2., -2.]])
    """
    return convolve_transposed(
        "conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transposed convolution of images: each element of `input` adds a scaled kernel to its window.

    >>> import lucid
    >>> x = lucid.tensor([[[1.0, 2.0]]])
    >>> lucid.nn.functional.conv_transpose2d(x, lucid.ones(1, 1, 2, 2), stride=2)
    tensor([[[1., 1., 2., 2.],
             [1., 1., 2., 2.]]])
    """
    return convolve_transposed(
        "conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transposed convolution of volumes, shape (batch, channels, depth, height, width).

    See `conv_transpose2d`.

    >>> import lucid
    >>> lucid.nn.functional.conv_transpose3d(lucid.ones(1, 3, 4, 5), lucid.ones(1, 2, 3, 3, 3), stride=2).shape
    lucid.Size([2, 7, 9, 11])
    """
    return convolve_transposed(
        "conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )
