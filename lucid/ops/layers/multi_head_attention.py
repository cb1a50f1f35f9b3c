"""Attention of several heads, with the products before and after it.

What holds for it as for all layers says `lucid.ops.layers`, and this of its parameters:

- `query`, `key` and `value` have the shapes (queries, batch, `embed_dim_to_check`), (keys, batch, features of keys) and
  (keys, batch, features of values), or are without the batch. `num_heads` divides `embed_dim_to_check`.
- `in_proj_weight`, shape (3 * embed, embed), holds the weights of queries, keys and values, unless
  `use_separate_proj_weight` says that `q_proj_weight`, `k_proj_weight` and `v_proj_weight` do, each of shape (embed,
  features); `in_proj_bias` has the shape (3 * embed,), `out_proj_weight` (embed, embed), `out_proj_bias` (embed,).
  Without these two what comes out is that of the heads, on which a layer may be called.
- `bias_k` and `bias_v`, shape (1, 1, embed), are one more key and value for all, and with `add_zero_attn` so are zeros.
  `static_k` and `static_v`, of shape (batch * num_heads, keys, embed / num_heads), stand for projected keys and values.
- `attn_mask`, of shape (queries, keys) or (batch * num_heads, queries, keys), and `key_padding_mask`, (batch, keys) or
  (keys,), are True where a query may not look, or are added to the scores, of their dtype or float32. `is_causal` is a
  hint that `attn_mask`, given all the same, hides later keys from each query: it may be left unread.
- `dropout_p`, in [0, 1), is the share of weights that are dropped in `training`.
- Without `need_weights` they take no memory; `average_attn_weights` returns their mean over the heads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lucid.arguments import checked
from lucid.errors import ArgumentError, ShapeError
from lucid.ops.activation.softmax import softmax
from lucid.ops.base.one_device import on_one_device
from lucid.ops.base.promotion import cast_to
from lucid.ops.base.scalars import as_int, as_number
from lucid.ops.creation.filling import zeros
from lucid.ops.elementwise.arithmetic import add, mul
from lucid.ops.index.masked_select import masked_fill
from lucid.ops.layers.attention import check_added, scaled_dot_product_attention
from lucid.ops.layers.dropout import dropout
from lucid.ops.layers.linear import linear
from lucid.ops.linalg.products import matmul
from lucid.ops.reduction.sums import mean
from lucid.ops.shape.axes import permute, transpose
from lucid.ops.shape.broadcasting import expand
from lucid.ops.shape.joining import cat
from lucid.ops.shape.padding import pad
from lucid.ops.shape.reshape import reshape, squeeze, unsqueeze
from lucid.ops.shape.splitting import chunk, split

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor

NAME = "multi_head_attention_forward"


@checked
@on_one_device
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor | None,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return ``concat(softmax(q_h @ k_h.T / sqrt(d)) @ v_h) @ W.T + b`` over the heads h, and the weights or None.

    q, k and v are the projected inputs, and d their features per head. The weights have the shape (batch, queries,
    keys), or with each head's own (batch, heads, queries, keys). (Vaswani and others, 2017.)

    >>> import lucid
    >>> x, w = lucid.ones(2, 1, 4), lucid.ones(4, 4)
    >>> settings = (4, 2, lucid.ones(12, 4), None, None, None, False, 0.0, w, None)
    >>> lucid.nn.functional.multi_head_attention_forward(x, x, x, *settings)[1]
    tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]])
    """
    embed, heads = as_int(embed_dim_to_check, "embed_dim_to_check"), as_int(num_heads, "num_heads")
    dropped = as_number(dropout_p, "dropout_p")
    if not 0 <= dropped < 1:
        raise ShapeError(f"{NAME}: expected dropout_p in [0, 1), got {dropped!r}")
    if is_causal and attn_mask is None:
        raise ShapeError(f"{NAME}: expected attn_mask together with is_causal=True, which is a hint about it")
    if out_proj_weight is None and out_proj_bias is not None:
        raise ArgumentError(f"{NAME}: out_proj_weight: expected a Tensor with out_proj_bias, got None")
    _check_inputs(query, key, value, embed, heads, same_width=not use_separate_proj_weight)
    batched = len(query.array.shape) == 3
    if not batched:
        query, key, value = each_once(lambda x: unsqueeze(x, 1), query, key, value)
        key_padding_mask = None if key_padding_mask is None else unsqueeze(key_padding_mask, 0)
    if use_separate_proj_weight:
        separate = _required(q_proj_weight=q_proj_weight, k_proj_weight=k_proj_weight, v_proj_weight=v_proj_weight)
        biases = [None] * 3 if in_proj_bias is None else chunk(in_proj_bias, 3)
        parts = [linear(*each) for each in zip((query, key, value), separate, biases, strict=True)]
    else:
        (weight,) = _required(in_proj_weight=in_proj_weight)
        parts = _projected(query, key, value, weight, in_proj_bias)
    if bias_k is not None or bias_v is not None:
        if static_k is not None or static_v is not None:
            raise ShapeError(f"{NAME}: expected no bias_k and bias_v together with static_k or static_v")
        for i, bias in enumerate(_required(bias_k=bias_k, bias_v=bias_v), 1):
            parts[i] = cat([parts[i], expand(bias, 1, query.array.shape[1], embed)])
    q, k, v = (_heads(x, heads) for x in parts)
    k = k if static_k is None else _static("static_k", static_k, k)
    v = v if static_v is None else _static("static_v", static_v, v)
    if add_zero_attn:
        k, v = (pad(x, (0, 0, 0, 1)) for x in (k, v))
    added = (bias_k is not None) + add_zero_attn
    causal = is_causal and key_padding_mask is None and not need_weights and not added
    mask = _merged(attn_mask, key_padding_mask, query, (*q.array.shape[:-1], k.array.shape[-2] - added), added)
    dropped = dropped if training else 0.0
    if need_weights:
        # by one name, so that no memory is kept for scores
        weights = matmul(mul(q, 1 / math.sqrt(max(1, q.array.shape[-1]))), transpose(k, -2, -1))
        weights = softmax(weights if mask is None else add(weights, cast_to(mask, weights.dtype)), -1)
        weights = dropout(weights, dropped) if dropped else weights
        out = matmul(weights, v)
        weights = mean(weights, 1) if average_attn_weights else weights
        weights = weights if batched else squeeze(weights, 0)
    else:
        out = scaled_dot_product_attention(q, k, v, None if causal else mask, dropped, causal)
        weights = None
    out = reshape(permute(out, 2, 0, 1, 3), query.array.shape)
    if out_proj_weight is not None:
        out = linear(out, out_proj_weight, out_proj_bias)
    return (out if batched else squeeze(out, 1)), weights


def each_once(function: Callable[[Tensor], Tensor], *tensors: Tensor) -> list[Tensor]:
    """Return the results of a function for each tensor; a tensor given twice has one result, twice."""
    made = {id(x): function(x) for x in tensors}
    return [made[id(x)] for x in tensors]


def _required(**tensors: Tensor | None) -> list[Tensor]:
    for name, tensor in tensors.items():
        if tensor is None:
            raise ArgumentError(f"{NAME}: {name}: expected a Tensor with the other arguments as they are, got None")
    return [tensor for tensor in tensors.values() if tensor is not None]


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, embed: int, heads: int, *, same_width: bool) -> None:
    q, k, v = (x.array.shape for x in (query, key, value))
    if heads < 1 or embed % heads:
        raise ShapeError(f"{NAME}: expected num_heads that divides embed_dim_to_check, got {heads} and {embed}")
    if len(q) not in {2, 3} or q[-1] != embed:
        raise ShapeError(f"{NAME}: expected query of shape (queries[, batch], {embed}), got shape {q}")
    if not len(q) == len(k) == len(v) or k[:-1] != v[:-1] or k[1:-1] != q[1:-1] or (same_width and k[-1] != v[-1]):
        raise ShapeError(
            f"{NAME}: expected key and value of one length, with the batch of query, got query {q}, key {k}, value {v}"
        )


def _projected(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None) -> list[Tensor]:
    """Return queries, keys and values, of as few products as there are inputs."""
    embed = query.array.shape[-1]
    if weight.array.shape != (3 * embed, embed):
        raise ShapeError(f"{NAME}: expected in_proj_weight of shape {(3 * embed, embed)}, got {weight.array.shape}")
    if query is key is value:
        return [*chunk(linear(query, weight, bias), 3, -1)]
    sizes = [embed, 2 * embed] if key is value else [embed] * 3
    weights = split(weight, sizes)
    biases = [None] * len(sizes) if bias is None else split(bias, sizes)
    first, *rest = (linear(*each) for each in zip((query, key, value), weights, biases, strict=False))
    return [first, *(chunk(rest[0], 2, -1) if key is value else rest)]


def _heads(x: Tensor, heads: int) -> Tensor:
    """Return (batch, heads, length, features) of (length, batch, heads * features)."""
    length, batch, embed = x.array.shape
    return permute(reshape(x, length, batch, heads, embed // heads), 1, 2, 0, 3)


def _static(name: str, x: Tensor, projected: Tensor) -> Tensor:
    batch, heads, _, features = projected.array.shape
    shape = x.array.shape
    if len(shape) != 3 or shape[0] != batch * heads or shape[2] != features:
        raise ShapeError(f"{NAME}: expected {name} of shape {(batch * heads, 'keys', features)}, got {shape}")
    return reshape(x, batch, heads, shape[1], features)


def _merged(
    attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor, shape: tuple[int, ...], added: int
) -> Tensor | None:
    """Return the sum of the masks, with the last `added` keys visible; None if there are none.

    `shape` is that of the scores without those keys, (batch, heads, queries, keys).
    """
    batch, heads, queries, keys = shape
    masks: list[Tensor] = []
    for name, mask, shapes in (
        ("attn_mask", attn_mask, {(queries, keys): (queries, keys), (batch * heads, queries, keys): shape}),
        ("key_padding_mask", key_padding_mask, {(batch, keys): (batch, 1, 1, keys)}),
    ):
        if mask is None:
            continue
        if mask.array.shape not in shapes:
            wanted = " or ".join(map(str, shapes))
            raise ShapeError(f"{NAME}: expected {name} of shape {wanted}, got {mask.array.shape}")
        summand = mask
        if mask.array.dtype.kind != "b":
            check_added(NAME, name, mask, query)
        else:
            summand = masked_fill(zeros(mask.array.shape, dtype=query.dtype, device=query.device), mask, -math.inf)
        masks.append(reshape(summand, shapes[mask.array.shape]))
    if not masks:
        return None
    merged = masks[0] if len(masks) == 1 else add(*masks)
    return pad(merged, (0, added)) if added else merged
