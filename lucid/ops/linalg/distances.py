"""Distances between vectors, pairs of them or all with all.

What holds for all of them as for products says `lucid.ops.linalg`. A distance of order `p` is the norm
``sum(|a - b| ** p) ** (1 / p)`` of a difference; where it is 0, so is its gradient.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.arguments import among
from lucid.autograd.modes.casting import wide_in_autocast
from lucid.autograd.recording.namespace import CUDA
from lucid.autograd.recording.primitive import primitive
from lucid.base import gpu
from lucid.base.arrays import astype
from lucid.base.device import device_of
from lucid.base.dtype import dtype_of
from lucid.base.memory import check_size
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, Kernel
from lucid.cuda.launch.plans import empty
from lucid.cuda.source.signature import constant
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.ops.base.dims import common_shape
from lucid.ops.base.promotion import accumulation_dtype, array_of
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.creation.ranges import triu_indices
from lucid.ops.elementwise.arithmetic import add, sub
from lucid.ops.index.index_select import index_select
from lucid.ops.linalg.matrices import same_dtype
from lucid.ops.reduction.norms import norm, norm_of, norm_rule
from lucid.ops.shape.broadcasting import broadcast_to
from lucid.ops.shape.reshape import reshape

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# By the name of a way to compute: whether distances of order 2 come from a product of matrices; None for where it pays.
MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}
# Rows from which on it pays, PyTorch's number.
MANY_ROWS = 25
# Elements of differences that are held at once on the CPU.
MOST_DIFFERENCES = 1 << 20

_DISTANCES = Kernel("distances", "lucid::distances", EACH_FLOAT)
_GRAD = Kernel("distances", "lucid::distances_grad", EACH_FLOAT)
# The orders that need no powers, by the kernels' numbers.
_ORDERS = {0.0: 0, 1.0: 1, 2.0: 2, math.inf: 3}
_POWER = 4
_BLOCK, _MOST_BLOCKS = 256, 1 << 16


@primitive
def _cdist(xp: ModuleType, a: Array, b: Array, *, p: float, product: bool) -> Array:
    """Return the distances of stacks (n, i, k) and (n, j, k).

    With `product` those of order 2 are ``|a|^2 - 2 a.b + |b|^2``, of which small ones lose digits.
    """
    work: Any = accumulation_dtype(a.dtype)
    one, other = a.astype(work, copy=False), b.astype(work, copy=False)
    if product:
        squares = xp.sum(xp.square(one), -1)[..., :, None] + xp.sum(xp.square(other), -1)[..., None, :]
        return astype(xp.sqrt(xp.maximum(squares - 2 * xp.matmul(one, other.swapaxes(-1, -2)), 0)), a.dtype)
    out = xp.zeros((*a.shape[:2], b.shape[1]), work)
    if a.shape[2]:
        step = max(MOST_DIFFERENCES // max(other.size, 1), 1)
        for start in range(0, a.shape[1], step):
            here = slice(start, start + step)
            out[:, here] = norm_of(xp, one[:, here, None] - other[:, None], p, (3,), False)
    return astype(out, a.dtype)


@_cdist.cuda
def _cdist_cuda(a: Array, b: Array, *, p: float, product: bool) -> Any:
    if product:
        squares = [CUDA.sum(CUDA.square(x), dim=(2,), keepdim=True, dtype=x.dtype) for x in (a, b)]
        both = CUDA.add(squares[0], CUDA.swap_last(squares[1]))
        rest = CUDA.sub(both, CUDA.mul(CUDA.matmul(a, CUDA.swap_last(b)), 2.0))
        return CUDA.sqrt(CUDA.maximum(rest, 0.0))
    out = empty((*a.shape[:2], b.shape[1]), a.dtype)
    if not out.size:
        return out
    tile = constant("distances.cu", "DISTANCE_TILE")
    a, b = (gpu.cupy().ascontiguousarray(x) for x in (a, b))
    tiles = -(-a.shape[1] // tile) * -(-b.shape[1] // tile)
    _DISTANCES[C_TYPES[a.dtype]](
        len(a) * tiles, (tile, tile), a.data.ptr, b.data.ptr, out.data.ptr, a.shape[1], b.shape[1], a.shape[2],
        0.0 if math.isinf(p) else p, _ORDERS.get(p, _POWER),
    )  # fmt: skip
    return out


def _gradient_cuda(grad: Array, a: Array, b: Array, distances: Array, p: float, steps: tuple[int, int]) -> Any:
    out = empty(a.shape, a.dtype)
    if out.size:
        arrays = [gpu.cupy().ascontiguousarray(x) for x in (grad, distances, a, b)]
        _GRAD[C_TYPES[a.dtype]](
            min(-(-out.size // _BLOCK), _MOST_BLOCKS), _BLOCK, *[x.data.ptr for x in arrays], out.data.ptr, out.size,
            a.shape[1], b.shape[1], a.shape[2], *steps, 0.0 if math.isinf(p) else p, _ORDERS.get(p, _POWER),
        )  # fmt: skip
    return out


def _cdist_a_cuda(grad: Array, a: Array, b: Array, out: Array, p: float) -> Any:
    return _gradient_cuda(grad, a, b, out, p, (b.shape[1], 1))


def _cdist_b_cuda(grad: Array, a: Array, b: Array, out: Array, p: float) -> Any:
    return _gradient_cuda(grad, b, a, out, p, (1, b.shape[1]))


@_cdist.vjp("a", cuda=_cdist_a_cuda)
def _cdist_a(m: Namespace, grad: Array, a: Array, b: Array, out: Array, p: float) -> Any:
    n, i, k = a.shape
    return m.reshape(m.sum_to(_slopes(m, grad, a, b, out, p), shape=(n, i, 1, k)), shape=a.shape)


@_cdist.vjp("b", cuda=_cdist_b_cuda)
def _cdist_b(m: Namespace, grad: Array, a: Array, b: Array, out: Array, p: float) -> Any:
    n, j, k = b.shape
    return m.neg(m.reshape(m.sum_to(_slopes(m, grad, a, b, out, p), shape=(n, 1, j, k)), shape=b.shape))


def _slopes(m: Namespace, grad: Array, a: Array, b: Array, out: Array, p: float) -> Any:
    """Return the gradient of each difference (n, i, j, k)."""
    return norm_rule(m, grad, m.sub(m.unsqueeze(a, dim=2), m.unsqueeze(b, dim=1)), out, p, (3,), keepdim=False)


def _order(name: str, p: float) -> float:
    order = float(as_number(p, "p"))
    if not order >= 0:
        raise SettingError(f"{name}: only supports non-negative p values, got p = {p}")
    return order


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Return the distances of each row of `x1` (..., i, k) to each of `x2` (..., j, k), of shape (..., i, j).

    The dimensions before broadcast. `p` is from 0, which counts where rows differ, to infinity, for the largest
    difference. For 2, `compute_mode` says whether a product of matrices is used, which is faster and less exact:
    ``"use_mm_for_euclid_dist"``, ``"donot_use_mm_for_euclid_dist"``, or ``"use_mm_for_euclid_dist_if_necessary"``, for
    more than 25 rows.

    >>> import lucid
    >>> lucid.cdist(lucid.tensor([[0.0, 0.0], [3.0, 0.0]]), lucid.tensor([[3.0, 4.0]]))
    tensor([[5.],
            [4.]])
    """
    order = _order("cdist", p)
    x1, x2 = wide_in_autocast(x1, cpu=True), wide_in_autocast(x2, cpu=True)
    if not among(compute_mode, MODES):
        raise SettingError(f"cdist: expected compute_mode to be one of {', '.join(MODES)}, got {compute_mode!r}")
    a, b = array_of(x1).shape, array_of(x2).shape
    same_dtype("cdist", x1, x2)
    if not dtype_of(x1.array).is_floating_point:
        raise DtypeError(f"cdist only supports floating-point dtypes, got {dtype_of(x1.array)}; convert them first")
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-1]:
        raise ShapeError(
            f"cdist: expected x1 and x2 of at least two dimensions and with the same number of columns, got shapes "
            f"{list(a)} and {list(b)}"
        )
    batch = common_shape(a[:-2], b[:-2])
    check_size("cdist", (*batch, a[-2], b[-2]), x1.array.itemsize)
    product = MODES[compute_mode]
    if product is None:
        product = (a[-2] > MANY_ROWS or b[-2] > MANY_ROWS) and x1.array.dtype.itemsize > 2
    stacks = [
        reshape(broadcast_to(x, (*batch, *x.array.shape[-2:])), (math.prod(batch), *x.array.shape[-2:]))
        for x in (x1, x2)
    ]
    return reshape(_cdist(*stacks, p=order, product=product and order == 2), (*batch, a[-2], b[-2]))


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the distances of all pairs of rows of a matrix, as the part of `cdist` above the diagonal, row by row.

    `p` is as for `cdist`.

    >>> import lucid
    >>> lucid.pdist(lucid.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]]))
    tensor([5., 4., 3.])
    """
    order = _order("pdist", p)
    x = array_of(input)
    if x.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {x.ndim}D")
    if not dtype_of(x).is_floating_point:
        raise DtypeError(f"pdist only supports floating-point dtypes, got {dtype_of(x)}; convert it first")
    rows = len(x)
    distances = cdist(input, input, order, "donot_use_mm_for_euclid_dist")
    places = triu_indices(rows, rows, 1, device=device_of(x))
    return index_select(reshape(distances, (rows * rows,)), 0, places[0] * rows + places[1])


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Return the norm of order `p` of ``input - other``, after broadcasting, as one vector.

    >>> import lucid
    >>> lucid.dist(lucid.tensor([3.0, 0.0]), lucid.tensor([0.0, 4.0]))
    tensor(5.)
    """
    return norm(sub(wide_in_autocast(input), wide_in_autocast(other)), as_number(p, "p"))


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the norms of order `p` of ``x1 - x2 + eps`` along the last dimension; `x1` and `x2` broadcast.

    With `keepdim` that dimension stays, of size 1. `eps` keeps the gradient of equal vectors from being zero.

    >>> import lucid
    >>> lucid.nn.functional.pairwise_distance(lucid.tensor([[3.0, 4.0]]), lucid.tensor([[0.0, 0.0]]), eps=0.0)
    tensor([5.])
    """
    return norm(add(sub(x1, x2), as_number(eps, "eps")), as_number(p, "p"), -1, as_bool(keepdim, "keepdim"))
