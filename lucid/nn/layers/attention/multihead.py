"""Attention of several heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.errors import SettingError
from lucid.nn import functional as F
from lucid.nn import init
from lucid.nn.layers.layer import empty_parameter
from lucid.nn.layers.linear import Linear
from lucid.nn.module.module import Module
from lucid.ops.layers.multi_head_attention import each_once
from lucid.ops.shape.axes import transpose
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.nn.parameter import Parameter
    from lucid.tensor import Tensor


class MultiheadAttention(Module):
    """Returns the attention of `num_heads` heads of the queries to the values, and the weights or None, as a tuple.

    `embed_dim`, a multiple of `num_heads`, is the number of features of queries and results, `kdim` and `vdim` those of
    keys and values, the same if None. `dropout`, in [0, 1), is the share of weights dropped in training. `add_bias_kv`
    adds a learned key and value, `add_zero_attn` zeros. Shapes and masks: `help` of `lucid.nn.layers.attention`.
    `need_weights=False` is faster and takes less memory.

    >>> import lucid
    >>> from lucid import nn
    >>> x = lucid.ones(5, 3, 8)
    >>> out, weights = nn.MultiheadAttention(8, 2)(x, x, x)
    >>> out.shape, weights.shape
    (lucid.Size([5, 3, 8]), lucid.Size([3, 5, 5]))
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    @ranged
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise SettingError(
                "MultiheadAttention: expected embed_dim that is a multiple of num_heads, "
                f"got embed_dim={embed_dim} and num_heads={num_heads}"
            )
        if not 0 <= dropout < 1:
            raise SettingError(f"MultiheadAttention: expected dropout in [0, 1), got {dropout}")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        packed = self.kdim == self.vdim == embed_dim

        def register(name: str, *shape: int, learned: bool) -> None:
            self.register_parameter(name, empty_parameter(shape, device, dtype) if learned else None)

        names = ["q_proj_weight", "k_proj_weight", "v_proj_weight"]
        for name, features in zip(names, (embed_dim, self.kdim, self.vdim), strict=True):
            register(name, embed_dim, features, learned=not packed)
        register("in_proj_weight", 3 * embed_dim, embed_dim, learned=packed)
        register("in_proj_bias", 3 * embed_dim, learned=bias)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        register("bias_k", 1, 1, embed_dim, learned=add_bias_kv)
        register("bias_v", 1, 1, embed_dim, learned=add_bias_kv)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for more in (self.bias_k, self.bias_v):
            if more is not None:
                init.xavier_normal_(more)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        turned = self.batch_first and query.dim() == key.dim() == value.dim() == 3
        if turned:
            query, key, value = each_once(lambda x: transpose(x, 0, 1), query, key, value)
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            None,
            None,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            self.in_proj_weight is None,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        # not by the function, which would call none of its hooks
        return self.out_proj(transpose(out, 0, 1) if turned else out), weights
