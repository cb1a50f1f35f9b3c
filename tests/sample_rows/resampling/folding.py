"""Windows of images as columns, and sums of columns."""

from __future__ import annotations

import functools

import numpy as np

from lucid.ops.resampling.folding import fold, unfold
from tests.sample_rows.linalg.products import normal
from tests.samples import Sample


def places(size, kernel, dilation, padding, stride):
    """Return where the windows of an image begin, in the padded image, row by row, and what lies in one from there."""
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel, dilation, padding, stride)]
    begins = [(y * stride[0], x * stride[1]) for y, x in np.ndindex(*counts)]
    return begins, [(i * dilation[0], j * dilation[1]) for i, j in np.ndindex(*kernel)]


def unfolded(x, kernel_size, dilation=(1, 1), padding=(0, 0), stride=(1, 1)):
    """Return the columns, one element of one window at a time."""
    begins, inside = places(x.shape[-2:], kernel_size, dilation, padding, stride)
    padded = np.pad(x, ((0, 0),) * (x.ndim - 2) + ((padding[0],) * 2, (padding[1],) * 2))
    columns = [np.stack([padded[..., y + i, x + j] for i, j in inside], -1) for y, x in begins]
    return np.stack(columns, -1).reshape(*x.shape[:-3], -1 if x.size else 0, len(begins))


def folded(x, output_size, kernel_size, dilation=(1, 1), padding=(0, 0), stride=(1, 1)):
    """Return the images, to which one element of one window is added at a time."""
    begins, inside = places(output_size, kernel_size, dilation, padding, stride)
    parts = x.reshape(*x.shape[:-2], x.shape[-2] // len(inside), len(inside), len(begins))
    out = np.zeros((*parts.shape[:-2], output_size[0] + 2 * padding[0], output_size[1] + 2 * padding[1]))
    for column, (y, x) in enumerate(begins):
        for row, (i, j) in enumerate(inside):
            out[..., y + i, x + j] += parts[..., row, column]
    return out[..., padding[0] : padding[0] + output_size[0], padding[1] : padding[1] + output_size[1]]


def row(function, reference, name, *shape, empty=None, **settings):
    """Return the row of one setting."""
    public = function.__name__
    return Sample(
        f"{public}:{name}",
        functools.partial(function, **settings),
        normal(shape),
        functools.partial(reference, **settings),
        lambda torch, x: getattr(torch.nn.functional, public)(x, **settings),
        empty=None if empty is None else normal(empty),
    )


ROWS = [
    row(unfold, unfolded, "small", 2, 3, 4, 5, kernel_size=(2, 3)),
    row(
        unfold, unfolded, "all settings", 2, 7, 6,
        kernel_size=(3, 2), dilation=(2, 1), padding=(2, 1), stride=(1, 3),
    ),
    row(unfold, unfolded, "padding before", 1, 6, 6, kernel_size=(2, 2), padding=(1, 1), stride=(4, 4)),
    row(fold, folded, "small", 2, 8, 6, output_size=(3, 4), kernel_size=(2, 2), empty=(0, 8, 6)),
    row(
        fold, folded, "all settings", 12, 16,
        output_size=(7, 6), kernel_size=(3, 2), dilation=(2, 1), padding=(2, 1), stride=(2, 2),
    ),
]  # fmt: skip
