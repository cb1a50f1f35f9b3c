"""Attention on a CUDA device: through cuDNN if it can, else by matrix products or over tiles.

Where the scores of one head fit (`LONGEST`), matrix products are faster than anything made by hand: scores are stored
for as many heads at a time as fit `BLOCK`, and one kernel lies between two products. Beyond, kernels go over tiles of
queries and keys and store no scores at all, forward or backward.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.base.functions import cupy_functions
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel
from lucid.cuda.libraries import blas, cudnn_attention
from lucid.cuda.source.signature import constant

if TYPE_CHECKING:
    from lucid.base.arrays import Array


# Scores, in bytes: of as many heads as are computed at a time, and of one head beyond which none are stored.
BLOCK, LONGEST = 128 << 20, 64 << 20

_THREADS = 256
_WARP = 32


class Tiles(NamedTuple):
    """The shape of the tiles, as template arguments of kernels/layers/attention_tiles.cu.

    Attributes
    ----------
    features : int
        What the features are filled up to.
    rows, columns : int
        Queries and keys of a block's own rows, and of what it passes over.
    """

    features: int
    rows: int
    columns: int

    def key(self, name: str) -> tuple[str, ...]:
        """Return the template arguments for a dtype."""
        return (name, *map(str, self))

    def bytes(self, itemsize: int, operands: int) -> int:
        """Return the shared memory that a kernel takes: the forward one of one operand, those of gradients of two."""
        each = _elements(self.rows + self.columns, self.features)
        return itemsize * (operands * each + _elements(self.rows, self.columns))


@cache
def _elements(rows: int, columns: int) -> int:
    """Return how many elements a tile takes in shared memory."""
    return rows * constant("attention_tiles.cu", f"pitch({columns})")


def _tiles(forward: int, rows: int, bytes_each: int) -> dict[int, Tiles]:
    """Return tiles by features: `forward` elements and `rows` rows for float32, half as many for float64."""
    unit = bytes_each // 4
    return {f: Tiles(f, (rows or forward // f) // unit, forward // f // unit) for f in (64, 128)[: 3 - unit]}


# By the bytes of what scores are computed in. All fit 48 KiB of shared memory.
_FORWARD = {size: _tiles(4096, 32, size) for size in (4, 8)}
_BACKWARD = {size: _tiles(2048, 0, size) for size in (4, 8)}


def _instances(tiles: dict[int, dict[int, Tiles]]) -> tuple[tuple[str, ...], ...]:
    return tuple(t.key(name) for name in FLOATS for t in tiles[8 if name == "double" else 4].values())


_weights = Kernel("attention", "lucid::attention_weights", EACH_FLOAT)
_weights_grad = Kernel("attention", "lucid::attention_weights_grad", EACH_FLOAT)
_delta = Kernel("attention", "lucid::attention_delta", EACH_FLOAT)
_forward = Kernel("attention_tiles", "lucid::attention_forward", _instances(_FORWARD))
_query_grad = Kernel("attention_tiles", "lucid::attention_query_grad", _instances(_BACKWARD))
_key_grad = Kernel("attention_tiles", "lucid::attention_key_grad", _instances(_BACKWARD))


def leading_indices(q: Array, k: Array, itemsize: int, limit: int) -> Any:
    """Return indices of leading dimensions, as few as leave scores that fit a limit in bytes."""
    lead, each = q.shape[:-2], q.shape[-2] * k.shape[-2] * itemsize
    depth = 0
    while depth < len(lead) and math.prod(lead[depth:]) * each > limit:
        depth += 1
    return np.ndindex(*lead[:depth])


class Heads(NamedTuple):
    """One attention, with every array as (batch, heads, rows, features).

    Attributes
    ----------
    name : str
        The dtype in C.
    wide : dtype
        What scores are computed in.
    q, k, v : Array
        Queries, keys, values.
    problem : tuple
        The members of Problem.
    """

    name: str
    wide: Any
    q: Array
    k: Array
    v: Array
    problem: tuple[Any, ...]

    @property
    def rows(self) -> int:
        """Queries of all heads."""
        return math.prod(self.q.shape[:-1])

    @property
    def stored(self) -> bool:
        """Whether the scores of one head are stored; they must be if there are no tiles."""
        scores = self.q.shape[-2] * self.k.shape[-2] * self.wide.itemsize
        return scores <= LONGEST or max(self.q.shape[-1], self.v.shape[-1]) > max(_FORWARD[self.wide.itemsize])

    def blocks(self) -> Any:
        """Return indices of leading dimensions, as few as leave scores that fit `BLOCK`."""
        return leading_indices(self.q, self.k, self.wide.itemsize, BLOCK)

    def first_row(self, block: tuple[int, ...]) -> int:
        """Return the first row of a block."""
        index = (*block, 0, 0)[:2]
        return (index[0] * self.q.shape[1] + index[1]) * self.q.shape[2]

    def tiles(self, kinds: dict[int, dict[int, Tiles]]) -> Tiles:
        """Return the smallest tiles that hold the features."""
        most = max(self.q.shape[-1], self.v.shape[-1])
        return next(t for features, t in kinds[self.wide.itemsize].items() if features >= most)


def _as_heads(x: Array) -> Array:
    """Return an array of two or more dimensions with four; a view if it has no more than four, or is dense."""
    if x.ndim > 4:
        return x.reshape(-1, *x.shape[-3:])
    return x[(None,) * (4 - x.ndim)]


def _steps(x: Array) -> tuple[int, ...]:
    """Return the distance between neighbours, in elements, along four dimensions; 0 for a repeated element."""
    itemsize: int = x.dtype.itemsize
    steps = [0 if size == 1 else stride // itemsize for size, stride in zip(x.shape, x.strides, strict=True)]
    return (*[0] * (4 - len(steps)), *steps)


def _mask(x: Array | None, lead: tuple[int, ...]) -> Any:
    """Return a mask and its steps; None if two steps cannot tell its leading dimensions."""
    if x is None:
        return 0, (0, 0, 0, 0)
    if len(lead) <= 2:
        return x.data.ptr, _steps(x)
    if math.prod(x.shape[:-2]) == 1:
        return x.data.ptr, (0, 0, *_steps(x)[-2:])
    if x.shape[:-2] == lead and x.flags.c_contiguous:
        return x.data.ptr, _steps(_as_heads(x))
    return None


def _heads(
    q: Array, k: Array, v: Array, bias: Array | None, keep: Array | None, scale: float, drop: float, *, causal: bool
) -> Heads | None:
    """Return the arrays as heads; None without a kernel."""
    name = C_TYPES.get(q.dtype)
    if name not in FLOATS or not (q.size and k.size and v.size):
        return None
    wide = q.dtype if name == "double" else np.dtype(np.float32)
    bias_at, keep_at = _mask(bias, q.shape[:-2]), _mask(keep, q.shape[:-2])
    if bias_at is None or keep_at is None or (bias is not None and bias.dtype not in {q.dtype, wide}):
        return None
    wide_bias = bias is not None and bias.dtype == wide
    q, k, v = _as_heads(q), _as_heads(k), _as_heads(v)
    sizes = q.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3]
    problem = (
        bias_at[0], keep_at[0], *bias_at[1], *keep_at[1], scale, 1 / (1 - drop), *sizes, int(causal), int(wide_bias), 0
    )  # fmt: skip
    return Heads(name, wide, q, k, v, problem)


def _dots(heads: Heads, a: Array, b: Array) -> Array:
    """Return the products of the rows of `a` and `b` in the dtype of scores."""
    dots = cupy_functions().empty((*a.shape[:-1], b.shape[-2]), heads.wide)
    return blas.matmul(a, b.swapaxes(-1, -2), dots)


def _row_threads(keys: int) -> int:
    return min(_THREADS, max(_WARP, 1 << (keys - 1).bit_length()))


def attention(
    q: Array, k: Array, v: Array, bias: Array | None, keep: Array | None, *, scale: float, drop: float, causal: bool
) -> Any:
    """Return attention and the logarithms of the softmax's denominators; NotImplemented without a kernel."""
    heads = _heads(q, k, v, bias, keep, scale, drop, causal=causal)
    if heads is None:
        return NotImplemented
    xp = cupy_functions()
    out = xp.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    total = xp.empty(q.shape[:-1], heads.wide)
    if bias is None and keep is None:
        made = heads.q, heads.k, heads.v, _as_heads(out), _as_heads(total[..., None])
        if cudnn_attention.forward(*made, scale=scale, causal=causal):
            return out, total
    if heads.stored:
        _by_products(heads, _as_heads(out), total)
        return out, total
    tiles = heads.tiles(_FORWARD)
    blocks = -(-heads.q.shape[2] // tiles.rows)
    _forward[tiles.key(heads.name)](
        blocks * heads.q.shape[0] * heads.q.shape[1], 4 * tiles.rows,
        heads.q.data.ptr, heads.k.data.ptr, heads.v.data.ptr, out.data.ptr, total.data.ptr, blocks,
        *_steps(heads.q), *_steps(heads.k), *_steps(heads.v), *heads.problem,
        shared=tiles.bytes(heads.wide.itemsize, 1),
    )  # fmt: skip
    return out, total


def _by_products(heads: Heads, out: Array, total: Array) -> None:
    for block in heads.blocks():
        dots = _dots(heads, heads.q[block], heads.k[block])
        weights = dots if heads.wide == out.dtype else cupy_functions().empty(dots.shape, out.dtype)
        _weights[heads.name](
            math.prod(dots.shape[:-1]), _row_threads(dots.shape[-1]),
            dots.data.ptr, weights.data.ptr, total.data.ptr, heads.first_row(block), *heads.problem,
        )  # fmt: skip
        blas.matmul(weights, heads.v[block], out[block])


def attention_grad(
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    keep: Array | None,
    out: Array,
    total: Array,
    *,
    scale: float,
    drop: float,
    causal: bool,
    needs: tuple[bool, ...],
) -> Any:
    """Return the gradients of queries, keys and values; NotImplemented without a kernel, as for a mask's gradient."""
    heads = _heads(q, k, v, bias, keep, scale, drop, causal=causal)
    if heads is None or needs[3] or g.dtype != q.dtype or not (out.flags.c_contiguous and total.flags.c_contiguous):
        return NotImplemented
    xp = cupy_functions()
    grads = [xp.empty(x.shape, x.dtype) if need else None for x, need in zip((q, k, v), needs, strict=False)]
    g, as_heads = _as_heads(g), [None if x is None else _as_heads(x) for x in grads]
    if bias is None and keep is None:
        made = heads.q, heads.k, heads.v, _as_heads(out), _as_heads(total[..., None])
        if cudnn_attention.backward(g, *made, as_heads, scale=scale, causal=causal):
            return (*grads, None)
    delta = xp.empty(total.shape, heads.wide)
    threads = min(_THREADS, _WARP * heads.rows)
    _delta[heads.name](
        -(-heads.rows * _WARP // threads), threads,
        g.data.ptr, out.data.ptr, delta.data.ptr, heads.rows, *_steps(g), *heads.problem,
    )  # fmt: skip
    if heads.stored:
        _grads_by_products(heads, g, total, delta, as_heads)
        return (*grads, None)
    tiles = heads.tiles(_BACKWARD)
    steps = (*_steps(heads.q), *_steps(heads.k), *_steps(heads.v), *_steps(g))
    count = heads.q.shape[0] * heads.q.shape[1]
    read = [x.data.ptr for x in (heads.q, heads.k, heads.v, g, total, delta)]
    shared = tiles.bytes(heads.wide.itemsize, 2)
    q_grad, k_grad, v_grad = grads
    if q_grad is not None:
        blocks = -(-heads.q.shape[2] // tiles.rows)
        _query_grad[tiles.key(heads.name)](
            blocks * count, 4 * tiles.rows, *read, q_grad.data.ptr, blocks, *steps, *heads.problem, shared=shared
        )
    if k_grad is not None or v_grad is not None:
        blocks = -(-heads.k.shape[2] // tiles.rows)
        k_made = xp.empty(k.shape, k.dtype) if k_grad is None else k_grad
        v_made = xp.empty(v.shape, v.dtype) if v_grad is None else v_grad
        _key_grad[tiles.key(heads.name)](
            blocks * count, 4 * tiles.rows, *read, k_made.data.ptr, v_made.data.ptr, blocks, *steps, *heads.problem,
            shared=shared,
        )  # fmt: skip
    return (*grads, None)


def _grads_by_products(heads: Heads, g: Array, total: Array, delta: Array, grads: list[Any]) -> None:
    q_grad, k_grad, v_grad = grads
    dtype = heads.q.dtype
    for block in heads.blocks():
        q, k, v, g_block = heads.q[block], heads.k[block], heads.v[block], g[block]
        dots, grad_dots = _dots(heads, q, k), _dots(heads, g_block, v)
        same = heads.wide == dtype
        weights = dots if same else cupy_functions().empty(dots.shape, dtype)
        ds = grad_dots if same else cupy_functions().empty(dots.shape, dtype)
        _weights_grad[heads.name](
            math.prod(dots.shape[:-1]), _row_threads(dots.shape[-1]),
            dots.data.ptr, grad_dots.data.ptr, total.data.ptr, delta.data.ptr, weights.data.ptr, ds.data.ptr,
            heads.first_row(block), *heads.problem,
        )  # fmt: skip
        if v_grad is not None:
            blas.matmul(weights.swapaxes(-1, -2), g_block, v_grad[block])
        if q_grad is not None:
            blas.matmul(ds, k, q_grad[block])
        if k_grad is not None:
            blas.matmul(ds.swapaxes(-1, -2), q, k_grad[block])
