"""Convolutions by cuDNN; NotImplemented if it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.base.functions import cupy_functions
from lucid.cuda.libraries import cudnn

if TYPE_CHECKING:
    from lucid.base.arrays import Array


def _two(values: Any, neutral: int) -> tuple[int, ...]:
    """Return one number for each of two dimensions, or of three."""
    return (neutral, *values) if len(values) == 1 else tuple(values)


def _image(x: Array) -> Array:
    """Return a view with four dimensions or five, a sequence as an image of height 1."""
    return x[:, :, None] if x.ndim == 3 else x


def _padding_after(size: Any, out: Any, kernel: Any, stride: Any, before: Any, dilation: Any) -> tuple[int, ...] | None:
    """Return the padding behind the last element that gives `out` windows; None if there is none."""
    after: list[int] = []
    for n, windows, k, s, p, d in zip(size, out, kernel, stride, before, dilation, strict=True):
        span = d * (k - 1) + 1
        least = max(0, (windows - 1) * s + span - n - p)
        if (n + p + least - span) // s + 1 != windows:
            return None
        after.append(least)
    return tuple(after)


def _run(
    operation: str, inputs: dict[str, Array], shape: Any, sizes: tuple[Any, Any, Any], windows: tuple[Any, Any, Any]
) -> Any:
    """Return the output of an operation on two arrays."""
    if not cudnn.is_able():
        return NotImplemented
    stride, before, dilation = windows
    after = _padding_after(*sizes, stride, before, dilation)
    first, second = inputs.values()
    if after is None or first.dtype != second.dtype:
        return NotImplemented
    out = cupy_functions().empty(shape, first.dtype)
    settings = {
        "pre_padding": _two(before, 0),
        "post_padding": _two(after, 0),
        "stride": _two(stride, 1),
        "dilation": _two(dilation, 1),
    }
    images = {name: _image(x) for name, x in inputs.items()}
    return out if cudnn.run(operation, images, (_image(out),), settings) else NotImplemented


def forward(x: Array, weight: Array, shape: Any, *, stride: Any, before: Any, dilation: Any) -> Any:
    """Return the convolution of images with kernels, of shape `shape`."""
    sizes = x.shape[2:], shape[2:], weight.shape[2:]
    return _run("conv_fprop", {"image": x, "weight": weight}, shape, sizes, (stride, before, dilation))


def input_grad(g: Array, weight: Array, shape: Any, *, stride: Any, before: Any, dilation: Any) -> Any:
    """Return the gradient of images of shape `shape`."""
    sizes = shape[2:], g.shape[2:], weight.shape[2:]
    return _run("conv_dgrad", {"loss": g, "filter": weight}, shape, sizes, (stride, before, dilation))


def weight_grad(g: Array, x: Array, shape: Any, *, stride: Any, before: Any, dilation: Any) -> Any:
    """Return the gradient of kernels of shape `shape`."""
    sizes = x.shape[2:], g.shape[2:], shape[2:]
    return _run("conv_wgrad", {"image": x, "loss": g}, shape, sizes, (stride, before, dilation))
