"""Attention by cuDNN: its kernels multiply tiles on tensor cores and store no scores.

It is asked only for what it is documented to do on every device that has it: half types, no mask but the causal one,
no dropout, features that fill 16 bytes, up to 128 of them, and rows that begin at multiples of 16 bytes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.base.functions import cupy_functions
from lucid.cuda.launch.kernels import C_TYPES
from lucid.cuda.libraries import cudnn
from lucid.cuda.switches import are_deterministic_algorithms_enabled

if TYPE_CHECKING:
    from lucid.base.arrays import Array


_HALVES = {"__half", "__nv_bfloat16"}
_ALIGNED = 16
_MOST_FEATURES = 128
_LARGEST_GRID = 65_535


def _lies_well(x: Array) -> bool:
    """Whether features lie side by side, every row begins at a multiple of 16 bytes, and no row is read twice."""
    rows = zip(x.shape[:-1], x.strides[:-1], strict=True)
    aligned = x.data.ptr % _ALIGNED == 0 and x.strides[-1] == x.dtype.itemsize
    return aligned and all(size == 1 or (stride > 0 and stride % _ALIGNED == 0) for size, stride in rows)


def _able(q: Array, k: Array, v: Array, scale: float, *others: Array) -> bool:
    """Whether cuDNN can compute the attention of these heads, given in four dimensions."""
    features = q.shape[-1]
    if C_TYPES.get(q.dtype) not in _HALVES or not 0 < scale < math.inf or max(q.shape[:2]) > _LARGEST_GRID:
        return False
    if features != v.shape[-1] or features % (_ALIGNED // q.dtype.itemsize) or features > _MOST_FEATURES:
        return False
    # a single query or key is where cuDNN's versions differ
    return min(q.shape[-2], k.shape[-2]) > 1 and all(_lies_well(x) for x in (q, k, v, *others))


def _settings(scale: float, *, causal: bool) -> dict[str, Any]:
    """Return the settings of both directions: the corner of the causal mask is the first key with the first query."""
    return {"attn_scale": scale, **({"diagonal_band_right_bound": 0} if causal else {})}


def forward(q: Array, k: Array, v: Array, out: Array, total: Array, *, scale: float, causal: bool) -> bool:
    """Write attention and the logarithms of the softmax's denominators; return whether cuDNN could.

    All have the dimensions (batch, heads, rows, features), `total` with one feature.
    """
    settings = {**_settings(scale, causal=causal), "generate_stats": True}
    return _able(q, k, v, scale) and cudnn.run("sdpa", {"q": q, "k": k, "v": v}, (out, total), settings)


def backward(
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    total: Array,
    grads: list[Array | None],
    *,
    scale: float,
    causal: bool,
) -> bool:
    """Write the gradients of queries, keys and values that are not None; return whether cuDNN could."""
    if not _able(q, k, v, scale, g, out):
        return False
    pairs = zip((q, k, v), grads, strict=True)
    made = tuple([cupy_functions().empty(x.shape, x.dtype) if grad is None else grad for x, grad in pairs])
    fixed = are_deterministic_algorithms_enabled()
    settings = {**_settings(scale, causal=causal), "use_deterministic_algorithm": fixed}
    inputs = {"q": q, "k": k, "v": v, "o": out, "dO": g, "stats": total}
    return cudnn.run("sdpa_backward", inputs, made, settings, repeatable=fixed)
