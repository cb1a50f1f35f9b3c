"""Scaled dot-product attention, with the weights computed block by block and never kept.

What holds for it as for all layers says `lucid.ops.layers`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import wrap
from lucid.autograd.modes.casting import dtype_within
from lucid.autograd.recording.namespace import GRAPH
from lucid.autograd.recording.primitive import primitive
from lucid.base.arrays import namespace
from lucid.base.device import device_of
from lucid.base.dtype import float32, float64
from lucid.base.random.draws import bernoulli, default_generator_for
from lucid.errors import DtypeError, ShapeError
from lucid.ops.base.core import sum_to_array
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.promotion import accumulation_dtype, array_of, cast_to
from lucid.ops.base.scalars import as_bool, as_number
from lucid.ops.layers import attention_cuda as on_cuda
from lucid.ops.linalg.matrices import broadcast_to_shape, product, same_dtype

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.autograd.recording.namespace import Namespace
    from lucid.base.arrays import Array
    from lucid.tensor import Tensor

# Weights of one block of heads, in bytes: on the CPU what stays in the cache, on a GPU what is worth a launch.
CPU_BLOCK, CUDA_BLOCK = 4 << 20, 256 << 20
LARGE = 32
# Fewest queries of a band: products of fewer rows take as long as these.
BAND = 128


def blocks(xp: ModuleType, q: Array, k: Array, itemsize: int) -> Any:
    """Return indices of leading dimensions, as few as leave weights that fit a block."""
    return on_cuda.leading_indices(q, k, itemsize, CPU_BLOCK if xp is np else CUDA_BLOCK)


def broadcast_mask(xp: ModuleType, x: Array | None, q: Array, k: Array) -> Array | None:
    """Return a mask as a view of the shape of the weights."""
    return None if x is None else xp.broadcast_to(x, (*q.shape[:-1], k.shape[-2]))


def later_keys(xp: ModuleType, queries: int, keys: int, dtype: np.dtype[Any]) -> Array:
    """Return a mask of minus infinity for each key later than the query, and 0 for the others."""
    rows, columns = xp.arange(queries)[:, None], xp.arange(keys)
    return xp.where(columns > rows, dtype.type(-math.inf), dtype.type(0))


def bands(xp: ModuleType, q: Array, k: Array, itemsize: int, *, causal: bool) -> list[tuple[slice, slice]]:
    """Return the queries and keys of each band of the weights of a head; the first band has all keys.

    On the CPU a band stays in the cache, and goes without the keys that are later than all of its queries.
    """
    queries, keys = q.shape[-2], k.shape[-2]
    rows = max(queries, 1)
    if xp is np and (causal or queries * keys * itemsize > CPU_BLOCK):
        rows = BAND if causal else max(BAND, CPU_BLOCK // (keys * itemsize))
    parts = [slice(start, min(start + rows, queries)) for start in range(0, max(queries, 1), rows)]
    ends = [min(part.stop, keys) if causal else keys for part in parts[:-1]] + [keys]
    return [(part, slice(0, end)) for part, end in zip(parts, ends, strict=True)][::-1]


def part_of(x: Array | None, rows: slice, columns: slice) -> Any:
    """Return the rows and columns of a mask, or of its gradient: all of a dimension of one."""
    if x is None:
        return None
    return x[..., rows if x.shape[-2] > 1 else slice(None), columns if x.shape[-1] > 1 else slice(None)]


def scores(
    xp: ModuleType, q: Array, k: Array, bias: Array | None, scale: float, dtype: np.dtype[Any], first: int | None
) -> Array:
    """Return the scaled and masked products of queries and keys; under a causal mask `first` is the first query."""
    s = product(xp, q.astype(dtype) * dtype.type(scale), k.astype(dtype, copy=False).swapaxes(-1, -2))
    if bias is not None:
        s += bias
    if first is not None and first < s.shape[-1]:
        # the keys before the first query are seen by all
        s[..., first:] += later_keys(xp, s.shape[-2], s.shape[-1] - first, dtype)
    return s


def moderate(x: Array) -> bool:
    """Return whether x has digits enough behind the point, everywhere."""
    return bool(np.abs(x).max(initial=0) < LARGE)


def weights_of(
    xp: ModuleType, q: Array, k: Array, bias: Array | None, scale: float, dtype: np.dtype[Any], first: int | None
) -> tuple[Array, Array]:
    """Return the softmax of the scaled and masked products, and the logarithms of its denominators."""
    s = scores(xp, q, k, bias, scale, dtype, first)
    top = s.max(-1, keepdims=True) if s.shape[-1] else xp.zeros((*s.shape[:-1], 1), dtype)
    top = xp.where(top == -math.inf, dtype.type(0), top)
    s -= top
    xp.exp(s, out=s)
    sums = s.sum(-1, keepdims=True)
    sums = xp.where(sums == 0, dtype.type(1), sums)
    s /= sums
    return s, (top + xp.log(sums))[..., 0]


@primitive(outputs=("out", "total"))
def attention(
    xp: ModuleType,
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    keep: Array | None,
    *,
    scale: float,
    drop: float,
    causal: bool,
) -> tuple[Array, Array]:
    """Return ``softmax(scale * q @ k.T + bias) @ v`` and the logarithm of the softmax's denominators.

    A row whose scores are all minus infinity has weights of zero.
    """
    dtype = accumulation_dtype(q.dtype)
    if not k.shape[-2]:
        return xp.zeros((*q.shape[:-1], v.shape[-1]), q.dtype), xp.zeros(q.shape[:-1], dtype)
    out = xp.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
    total = xp.empty(q.shape[:-1], dtype)
    bias = broadcast_mask(xp, bias, q, k)
    keep = broadcast_mask(xp, keep, q, k)
    for block in blocks(xp, q, k, dtype.itemsize):
        some = [None if x is None else x[block] for x in (bias, keep)]
        for rows, columns in bands(xp, q, k, dtype.itemsize, causal=causal):
            bias_part, keep_part = (part_of(x, rows, columns) for x in some)
            queries, keys = q[block][..., rows, :], k[block][..., columns, :]
            first = rows.start if causal else None
            s, total[block][..., rows] = weights_of(xp, queries, keys, bias_part, scale, dtype, first)
            if keep_part is not None:
                s *= keep_part
                s *= dtype.type(1 / (1 - drop))
            out[block][..., rows, :] = product(xp, s, v[block][..., columns, :].astype(dtype, copy=False))
    return out, total


attention.cuda(on_cuda.attention)


@attention.vjp("q", "k", "v", "bias")
def attention_vjp(
    m: Namespace,
    grad: Array,
    q: Array,
    k: Array,
    v: Array,
    bias: Array,
    keep: Array | None,
    out: Array,
    total: Array,
    scale: float,
    drop: float,
    causal: bool,
    needs: tuple[bool, ...],
) -> Any:
    """Return the gradients of queries, keys, values and mask."""
    return m.attention_grad(
        grad[0], q, k, v, bias, keep, out, total, scale=scale, drop=drop, causal=causal, needs=needs
    )


def add_band(sums: dict[int, Array], number: int, columns: slice, part: Array) -> None:
    """Add the part of a band to the gradient of keys or values: the first one has all keys."""
    if number in sums:
        sums[number][..., columns, :] += part
    else:
        sums[number] = part


@primitive(outputs=("q_grad", "k_grad", "v_grad", "bias_grad"), differentiable=(0, 1, 2, 3))
def attention_grad(
    xp: ModuleType,
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
) -> tuple[Array | None, ...]:
    """Return the gradients of :func:`attention`, with the weights computed anew; None for those not needed."""
    dtype = accumulation_dtype(q.dtype)
    grads = [xp.empty(x.shape, x.dtype) if need else None for x, need in zip((q, k, v), needs, strict=False)]
    q_grad = grads[0]
    bias_grad = xp.zeros(bias.shape, dtype) if needs[3] and bias is not None else None
    bias_mask = broadcast_mask(xp, bias, q, k)
    keep = broadcast_mask(xp, keep, q, k)
    factor = dtype.type(scale)
    for block in blocks(xp, q, k, dtype.itemsize):
        # a large `total` has few digits behind the point, and so has a rounded `out`, of which a difference is taken
        exact = xp is np and out.dtype == dtype and moderate(total[block]) and moderate(out[block])
        some = [None if x is None else x[block] for x in (bias_mask, keep)]
        target = None
        if bias_grad is not None:
            target = bias_grad.reshape((1,) * (q.ndim - bias_grad.ndim) + bias_grad.shape)
            target = target[tuple([i if size > 1 else 0 for i, size in zip(block, target.shape, strict=False)])]
        sums: dict[int, Array] = {}
        for rows, columns in bands(xp, q, k, dtype.itemsize, causal=causal):
            bias_part, kept = (part_of(x, rows, columns) for x in some)
            queries, keys = q[block][..., rows, :], k[block][..., columns, :]
            first = rows.start if causal else None
            if exact:
                weights = scores(xp, queries, keys, bias_part, scale, dtype, first)
                weights -= total[block][..., rows, None]
                xp.exp(weights, out=weights)
            else:
                weights, _ = weights_of(xp, queries, keys, bias_part, scale, dtype, first)
            upstream = g[block][..., rows, :].astype(dtype, copy=False)
            if kept is not None:
                kept = kept * dtype.type(1 / (1 - drop))
            if needs[2]:
                used = weights if kept is None else weights * kept
                add_band(sums, 2, columns, product(xp, used.swapaxes(-1, -2), upstream))
            if not (needs[0] or needs[1] or bias_grad is not None):
                continue
            s = product(xp, upstream, v[block][..., columns, :].astype(dtype, copy=False).swapaxes(-1, -2))
            if kept is not None:
                s *= kept
            s -= (upstream * out[block][..., rows, :] if exact else weights * s).sum(-1, keepdims=True)
            s *= weights
            if q_grad is not None:
                q_grad[block][..., rows, :] = product(xp, s, keys.astype(dtype, copy=False)) * factor
            if needs[1]:
                add_band(sums, 1, columns, product(xp, s.swapaxes(-1, -2), queries.astype(dtype, copy=False)) * factor)
            if target is not None:
                part = part_of(target, rows, columns)
                part += sum_to_array(xp, s, part.shape)
        for number, gradient in sums.items():
            whole: Any = grads[number]
            whole[block] = gradient
    if bias is not None and bias_grad is not None:
        bias_grad = bias_grad.astype(bias.dtype, copy=False)
    return (*grads, bias_grad)


attention_grad.cuda(on_cuda.attention_grad)


@on_one_device
def attention_grad_recorded(
    g: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    keep: Tensor | None,
    _out: Tensor,
    total: Tensor,
    *,
    scale: float,
    drop: float,
    causal: bool,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """Return the gradients of :func:`attention_grad`, recorded op by op, so that they can be differentiated again."""
    m = GRAPH
    dtype = q.array.dtype
    wide = accumulation_dtype(dtype)
    if wide != dtype:
        g, q, k, v = (m.cast(x, dtype=wide) for x in (g, q, k, v))
    s = m.mul(m.matmul(q, m.swap_last(k)), scale)
    if bias is not None:
        s = m.add(s, bias)
    if causal:
        s = m.add(s, wrap(later_keys(namespace(q.array), q.array.shape[-2], k.array.shape[-2], wide)))
    column = (*q.array.shape[:-1], 1)
    weights = m.exp(m.sub(s, m.reshape(total, shape=column)))
    # 1 up to rounding, and for a row of weights of zero 0; its derivative is what matters
    sums = m.sum_to(weights, shape=column)
    weights = m.div(weights, m.add(sums, wrap((sums.array == 0).astype(wide))))
    kept = None if keep is None else wrap(keep.array.astype(wide) * wide.type(1 / (1 - drop)))
    used = weights if kept is None else m.mul(weights, kept)
    p = m.matmul(g, m.swap_last(v))
    if kept is not None:
        p = m.mul(p, kept)
    s = m.mul(weights, m.sub(p, m.sum_to(m.mul(weights, p), shape=column)))
    return (
        m.mul(m.matmul(s, k), scale) if needs[0] else None,
        m.mul(m.matmul(m.swap_last(s), q), scale) if needs[1] else None,
        m.matmul(m.swap_last(used), g) if needs[2] else None,
        m.sum_to(s, shape=bias.array.shape) if needs[3] and bias is not None else None,
    )


attention_grad.call = attention_grad_recorded


@on_one_device
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return ``softmax(scale * query @ key.T + mask) @ value``, with weights that take no memory.

    `query`, `key` and `value` have the shapes (..., queries, features), (..., keys, features) and (..., keys, out), one
    floating-point dtype, and broadcast in front. `attn_mask`, broadcastable to (..., queries, keys), is True where a
    query may look, or is added, also in float32; `is_causal` masks keys behind the query. Who may look at nothing has
    weights of zero. `dropout_p`, below 1, drops weights, always. `scale` is ``1/sqrt(features)`` if None. `enable_gqa`
    lets key and value have fewer heads (dimension -3), each for several neighbours.

    >>> import lucid
    >>> x = lucid.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> lucid.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)[0]
    tensor([1., 0.])
    """
    is_causal = as_bool(is_causal, "is_causal")
    enable_gqa = as_bool(enable_gqa, "enable_gqa")
    name = "scaled_dot_product_attention"
    same_dtype(name, query, key, value)
    if query.array.dtype.kind not in "fV":
        raise DtypeError(f"{name}: expected floating-point operands, got {query.array.dtype}; convert them first")
    dropout_p = as_number(dropout_p, "dropout_p")
    if not 0 <= dropout_p < 1:
        raise ShapeError(f"{name}: expected dropout_p in [0, 1), got {dropout_p!r}")
    if enable_gqa:
        key, value = (repeated_heads(name, x, query.array.shape) for x in (key, value))
    query, key, value = fitted(name, query, key, value)
    q, k = query.array.shape, key.array.shape
    shape = (*q[:-1], k[-2])
    xp = namespace(query.array)
    bias = attn_mask
    if attn_mask is not None:
        if is_causal:
            raise ShapeError(f"{name}: expected no attn_mask together with is_causal=True; put both into one mask")
        broadcast_to_shape(name, "attn_mask", array_of(attn_mask).shape, shape)
        if attn_mask.array.dtype.kind == "b":
            wide = accumulation_dtype(query.array.dtype)
            bias = wrap(xp.where(attn_mask.array, wide.type(0), wide.type(-math.inf)))
        else:
            check_added(name, "attn_mask", attn_mask, query)
            bias = cast_to(attn_mask, query.dtype) if query.dtype is float64 else attn_mask
    keep = None
    if dropout_p:
        keep = wrap(bernoulli(default_generator_for(str(device_of(query.array))), 1 - dropout_p, shape, xp))
    factor = 1 / math.sqrt(max(1, q[-1])) if scale is None else float(as_number(scale, "scale"))
    return attention(query, key, value, bias, keep, scale=factor, drop=float(dropout_p), causal=is_causal)[0]


def check_added(name: str, argument: str, mask: Tensor, query: Tensor) -> None:
    """Raise a DtypeError unless a mask of numbers has the dtype of scores: of `query`, or float32."""
    if dtype_within(mask) not in {dtype_within(query), float32.numpy}:
        wanted = " or ".join(dict.fromkeys(("bool", str(float32), str(query.dtype))))
        raise DtypeError(f"{name}: expected {argument} of {wanted}, got {mask.dtype}")


def fitted(name: str, *tensors: Tensor) -> tuple[Any, ...]:
    """Return queries, keys and values with their leading dimensions broadcast; a ShapeError if they do not fit."""
    q, k, v = shapes = [tensor.array.shape for tensor in tensors]
    if min(len(q), len(k), len(v)) < 2 or q[-1] != k[-1] or k[-2] != v[-2]:
        raise ShapeError(
            f"{name}: expected query (..., queries, features), key (..., keys, features) and "
            f"value (..., keys, out features), got shapes {q}, {k} and {v}"
        )
    try:
        lead = np.broadcast_shapes(*[shape[:-2] for shape in shapes])
    except ValueError:
        raise ShapeError(f"{name}: leading dimensions of {q}, {k} and {v} cannot be broadcast") from None
    return tuple(
        x if x.array.shape[:-2] == lead else GRAPH.expand(x, shape=(*lead, *x.array.shape[-2:])) for x in tensors
    )


def repeated_heads(name: str, x: Tensor, q: tuple[int, ...]) -> Any:
    """Return keys or values with each head repeated for the heads of the queries that share it.

    A number of heads that does not divide that of the queries raises a ShapeError.
    """
    shape = x.array.shape
    if len(shape) < 3 or len(q) < 3 or not shape[-3] or q[-3] % shape[-3]:
        raise ShapeError(
            f"{name}: expected heads (dimension -3) that divide those of query, got shapes {shape} and {q}"
        )
    times = q[-3] // shape[-3]
    wide = GRAPH.expand(GRAPH.unsqueeze(x, dim=len(shape) - 2), shape=(*shape[:-2], times, *shape[-2:]))
    return GRAPH.reshape(wide, shape=(*shape[:-3], q[-3], *shape[-2:]))
