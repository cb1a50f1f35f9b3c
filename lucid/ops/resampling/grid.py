"""Images at the points of a grid. Common rules of resampling: `lucid.ops.resampling`.

The numbers of a point are those of the last dimension first, x, y and then z: -1 and 1 are the ends of each. With
`align_corners` they are the centres of the elements there, otherwise their outer edges; None is False.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import among
from lucid.autograd.base import wrap
from lucid.autograd.modes.autocast import casting_on
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.modes.state import unusual
from lucid.base.arrays import namespace, on
from lucid.base.memory import check_size
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.base.dims import sizes_in
from lucid.ops.base.promotion import only_tensors, promote
from lucid.ops.base.scalars import as_bool
from lucid.ops.layers.windows import check_floating
from lucid.ops.linalg.matrices import same_dtype
from lucid.ops.linalg.products import matmul
from lucid.ops.resampling.grid_primitives import MOST_ORDERS, Sampling, grid_sampled
from lucid.ops.shape.axes import transpose
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.tensor import Tensor

PADDINGS = ("zeros", "border", "reflection")


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Return `input`, of two or three dimensions (depth, height, width), at the points of `grid`.

    `grid` has the shape (batch, *sizes, 2 or 3), and the result (batch, channels, *sizes). `mode` is ``"bilinear"``
    (in three dimensions trilinear), ``"nearest"``, or of images ``"bicubic"``; `padding_mode` says what is outside:
    ``"zeros"``, the elements at the ``"border"``, or a ``"reflection"``.

    >>> import lucid
    >>> x = lucid.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> lucid.nn.functional.grid_sample(x, lucid.tensor([[[[0.0, 0.0], [0.5, -0.5]]]]), align_corners=False)
    tensor([[[[2.5000, 2.0000]]]])
    """
    only_tensors(input, grid)
    if unusual and casting_on():
        input, grid = promote(*[wide_in_autocast(x, cpu=True, cuda=False) for x in (input, grid)])
    same_dtype("grid_sample", input, grid)
    check_floating("grid_sample", input)
    if not among(mode, MOST_ORDERS):
        raise SettingError(f"grid_sample: expected a mode of {', '.join(MOST_ORDERS)}, got {mode!r}")
    if not among(padding_mode, PADDINGS):
        raise SettingError(f"grid_sample: expected a padding_mode of {', '.join(PADDINGS)}, got {padding_mode!r}")
    aligned = align_corners is not None and as_bool(align_corners, "align_corners")
    x, points = input.array.shape, grid.array.shape
    count = len(x) - 2
    if count not in {2, 3} or len(points) != count + 2 or points[-1] != count or points[0] != x[0]:
        raise ShapeError(
            f"grid_sample: expected input of shape (batch, channels, height, width) and grid of shape (batch, height, "
            f"width, 2), or with a depth and 3, got {x} and {points}"
        )
    if not all(x[2:]):
        raise ShapeError(f"grid_sample: expected input with elements in each dimension, got {x}")
    if mode == "bicubic" and count == 3:
        raise SettingError("grid_sample: mode 'bicubic' is for images, got input of three dimensions")
    return grid_sampled(input, grid, how=Sampling(mode, padding_mode, aligned), orders=(0,) * count)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the grid of points for images of a `size`, (batch, channels, *sizes), moved by the matrices `theta`.

    Those have the shape (batch, 2, 3), in three dimensions (batch, 3, 4): a point (x, y, 1) becomes
    ``theta @ (x, y, 1)``. What comes out, shape (batch, *sizes, 2 or 3), is for `grid_sample`.

    >>> import lucid
    >>> lucid.nn.functional.affine_grid(lucid.tensor([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2))
    tensor([[[[0., 0.],
              [1., 0.]]]])
    """
    only_tensors(theta)
    sizes = sizes_in((size,))
    aligned = align_corners is not None and as_bool(align_corners, "align_corners")
    count = len(sizes) - 2
    if theta.array.dtype.kind not in "fV":
        raise DtypeError(
            f"affine_grid: expected a floating-point theta, got {theta.array.dtype}; convert it with .to(dtype)"
        )
    if count not in {2, 3} or min(sizes) < 1 or theta.array.shape != (sizes[0], count, count + 1):
        raise ShapeError(
            f"affine_grid: expected a size of 4 or 5 numbers above 0, and theta of shape (size[0], 2, 3) or "
            f"(size[0], 3, 4), got {sizes} and {theta.array.shape}"
        )
    check_size("affine_grid", (sizes[0], *sizes[2:], count + 1), 8)
    with on(theta.array):
        points = wrap(base_points(namespace(theta.array), sizes[2:], theta.array.dtype, aligned=aligned))
    return reshape(matmul(points, transpose(theta, 1, 2)), (sizes[0], *sizes[2:], count))


def base_points(xp: Any, sizes: tuple[int, ...], dtype: Any, *, aligned: bool) -> Any:
    """Return the points of a grid that moves nothing, with a 1 behind each: shape (points, dimensions + 1)."""
    along: list[Any] = []
    for size in sizes:
        if aligned:
            along.append(np.linspace(-1, 1, size) if size > 1 else np.zeros(1))
        else:
            along.append((2 * np.arange(size) + 1) / size - 1)
    points = np.stack([*np.meshgrid(*along, indexing="ij")[::-1], np.ones(sizes)], -1)
    return xp.asarray(points.reshape(-1, len(sizes) + 1).astype(dtype))
