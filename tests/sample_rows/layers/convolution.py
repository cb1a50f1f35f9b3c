"""Convolutions and transposed convolutions."""

from __future__ import annotations

import functools

import numpy as np

from lucid.ops.layers.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from tests.sample_rows.linalg.products import normal
from tests.samples import Sample


def images(x, w, stride=1, padding=0, dilation=1):
    """Return the batch of images of `x`, and the settings as one number for each dimension of a window."""
    count = w.ndim - 2
    settings = [(value,) * count if isinstance(value, int) else value for value in (stride, padding, dilation)]
    return (x if x.ndim == w.ndim else x[None]), *settings


def window(place, stride, dilation, kernel):
    """Return the elements of one window."""
    return tuple(
        slice(i * s, i * s + d * (k - 1) + 1, d) for i, s, d, k in zip(place, stride, dilation, kernel, strict=True)
    )


def convolved(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """Return the cross-correlation by its definition: one product of numbers at a time, window by window."""
    batch, stride, padding, dilation = images(x, w, stride, padding, dilation)
    padded = np.pad(batch, ((0, 0), (0, 0), *[(p, p) for p in padding]))
    kernel = w.shape[2:]
    sizes = [
        (n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(padded.shape[2:], dilation, kernel, stride, strict=True)
    ]
    out = np.zeros((len(batch), len(w), *sizes), np.result_type(x, w))
    per_group, made = w.shape[1], len(w) // groups
    for o in range(len(w)):
        channels = padded[:, o // made * per_group : (o // made + 1) * per_group]
        for place in np.ndindex(*sizes):
            inside = channels[:, :, *window(place, stride, dilation, kernel)] * w[o]
            out[:, o, *place] = inside.sum((*range(1, w.ndim),)) + (0 if b is None else b[o])
    return out if x.ndim == w.ndim else out[0]


def same(x, w, b, padding, dilation, groups):
    """Return the convolution to as many elements: of an odd number of zeros the larger half comes behind, as said."""
    assert padding == "same"
    around = [d * (k - 1) for d, k in zip(dilation, w.shape[2:], strict=True)]
    padded = np.pad(x, ((0, 0), (0, 0), *[(n // 2, n - n // 2) for n in around]))
    return convolved(padded, w, b, dilation=dilation, groups=groups)


def spread(x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Return the transposed convolution by its definition: each element adds a scaled kernel."""
    batch, stride, padding, dilation = images(x, w, stride, padding, dilation)
    size, kernel = batch.shape[2:], w.shape[2:]
    more = (output_padding,) * len(size) if isinstance(output_padding, int) else output_padding
    full = [
        (n - 1) * s + d * (k - 1) + 1 + extra
        for n, s, d, k, extra in zip(size, stride, dilation, kernel, more, strict=True)
    ]
    per_group, made = len(w) // groups, w.shape[1]
    out = np.zeros((len(batch), made * groups, *full), np.result_type(x, w))
    for c in range(len(w)):
        target = out[:, c // per_group * made : (c // per_group + 1) * made]
        for place in np.ndindex(*size):
            scale = batch[:, c, *place].reshape(-1, *[1] * (w.ndim - 1))
            target[:, :, *window(place, stride, dilation, kernel)] += scale * w[c]
    out = out[:, :, *[slice(p, n - p) for p, n in zip(padding, full, strict=True)]]
    out = out if b is None else out + b.reshape(-1, *[1] * len(size))
    return out if x.ndim == w.ndim else out[0]


def flat(reference):
    """Return the reference over one dimension: images of height 1."""

    def one(x, w, b=None, **settings):
        settings = {
            name: (1 if name in {"stride", "dilation"} else 0, value) if name != "groups" else value
            for name, value in settings.items()
        }
        return reference(x[..., None, :], w[:, :, None], b, **settings)[..., 0, :]

    return one


def row(name, op, reference, *shapes, kind=float, empty=None, expected=None, **settings):
    """Return the row of a convolution with settings."""
    public = op.__name__
    return Sample(
        f"{public}:{name}",
        functools.partial(op, **settings),
        normal(*shapes, kind=kind),
        functools.partial(reference, **(settings if expected is None else expected)),
        lambda torch, *operands: getattr(torch.nn.functional, public)(*operands, **settings),
        empty=None if empty is None else normal(*empty),
    )


X, W, B = (2, 4, 6, 7), (6, 4, 3, 2), (6,)
VOLUMES = (2, 2, 3, 4, 3), (3, 2, 2, 3, 2), (3,)
ROWS = [
    row("plain", conv2d, convolved, X, W, B, empty=((0, 4, 6, 7), W, B)),
    row("without bias", conv2d, convolved, X, W),
    row("stride", conv2d, convolved, X, W, B, stride=2),
    row("padding", conv2d, convolved, X, W, B, padding=1),
    row("everything", conv2d, convolved, X, (6, 2, 3, 2), B, stride=(2, 3), padding=(2, 1), dilation=(1, 2), groups=2),
    row("padding larger than the image", conv2d, convolved, (1, 1, 2, 2), (1, 1, 2, 2), padding=4),
    row("windows that miss elements", conv2d, convolved, X, (6, 4, 1, 2), B, stride=3),
    row("valid", conv2d, convolved, X, W, padding="valid", expected={}),
    row(
        "same", conv2d, convolved, X, (6, 4, 3, 3), B,
        padding="same", dilation=2, expected={"padding": 2, "dilation": 2},
    ),
    row("same, even", conv2d, same, X, (6, 2, 4, 2), B, padding="same", dilation=(1, 3), groups=2),
    row("depthwise", conv2d, convolved, X, (8, 1, 3, 2), groups=4),
    row("pointwise", conv2d, convolved, X, (6, 4, 1, 1), B),
    row("pointwise groups", conv2d, convolved, X, (6, 2, 1, 1), B, groups=2),
    row("pointwise steps", conv2d, convolved, X, (6, 4, 1, 1), B, stride=2, padding=1),
    row("one image", conv2d, convolved, (4, 6, 7), W, B),
    row("complex", conv2d, convolved, X, W, B, kind=complex, padding=1),
    row("complex depthwise", conv2d, convolved, X, (4, 1, 3, 3), (4,), kind=complex, padding=1, groups=4),
    row("plain", conv1d, flat(convolved), (3, 4, 9), (6, 4, 3), B),
    row("everything", conv1d, flat(convolved), (3, 4, 9), (6, 2, 3), B, stride=2, padding=1, dilation=2, groups=2),
    row("one sequence", conv1d, flat(convolved), (4, 9), (6, 4, 3), B),
    row("plain", conv3d, convolved, *VOLUMES, empty=((0, 2, 3, 4, 3), *VOLUMES[1:])),
    row(
        "everything", conv3d, convolved, (2, 2, 4, 3, 5), (4, 1, 2, 3, 2), (4,),
        stride=(2, 1, 3), padding=(1, 2, 0), dilation=(2, 1, 3), groups=2,
    ),
    row("depthwise", conv3d, convolved, (2, 3, 3, 4, 3), (3, 1, 2, 1, 3), padding=1, groups=3),
    row("pointwise", conv3d, convolved, (2, 2, 2, 3, 4), (3, 2, 1, 1, 1), (3,)),
    row("one volume", conv3d, convolved, (2, 3, 4, 3), (3, 2, 3, 3, 2), (3,), padding=1),
    row(
        "everything", conv_transpose3d, spread, (2, 4, 2, 3, 2), (4, 2, 2, 3, 2), (4,),
        stride=(2, 1, 3), padding=(1, 0, 2), output_padding=(1, 1, 2), groups=2, dilation=(1, 2, 1),
    ),
    row("one volume", conv_transpose3d, spread, (2, 2, 3, 2), (2, 3, 2, 1, 3)),
    row("plain", conv_transpose2d, spread, (2, 4, 5, 4), (4, 3, 3, 2), (3,)),
    row("stride", conv_transpose2d, spread, (2, 4, 5, 4), (4, 3, 3, 2), (3,), stride=2, output_padding=1),
    row(
        "everything", conv_transpose2d, spread, (2, 4, 5, 4), (4, 3, 3, 3), (6,),
        stride=(2, 3), padding=(2, 1), dilation=(1, 2), output_padding=(1, 2), groups=2,
    ),
    row("one image", conv_transpose2d, spread, (4, 5, 4), (4, 3, 3, 2)),
    row("plain", conv_transpose1d, flat(spread), (2, 4, 5), (4, 3, 3), (3,)),
    row("stride", conv_transpose1d, flat(spread), (4, 5), (4, 3, 1), (3,), stride=2, output_padding=1),
]  # fmt: skip
