"""The decoder of a Transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.nn import functional as F
from lucid.nn.layers.attention.encoder import activation_of, copies
from lucid.nn.layers.attention.multihead import MultiheadAttention
from lucid.nn.layers.dropout import Dropout
from lucid.nn.layers.linear import Linear
from lucid.nn.layers.normalisation.features import LayerNorm
from lucid.nn.module.module import Module
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


class TransformerDecoderLayer(Module):
    """Returns a target sequence that has looked at itself, then at `memory`, then passed two linear layers.

    After each of the three comes what is added to its input, normalised; with `norm_first` the norms stand before. The
    settings are those of :class:`TransformerEncoderLayer`; shapes and masks: `help` of `lucid.nn.layers.attention`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.TransformerDecoderLayer(8, 2)(lucid.ones(5, 3, 8), memory=lucid.ones(4, 3, 8)).shape
    lucid.Size([5, 3, 8])
    """

    activation: Callable[[Tensor], Tensor]

    @ranged
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-05,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        function = activation_of(activation)
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **place)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **place)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = function

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        x, first = tgt, self.norm_first
        seen = self.norm1(x) if first else x
        seen, _ = self.self_attn(seen, seen, seen, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)
        x = x + self.dropout1(seen)
        x = x if first else self.norm1(x)
        seen, _ = self.multihead_attn(
            self.norm2(x) if first else x,
            memory,
            memory,
            memory_key_padding_mask,
            False,
            memory_mask,
            is_causal=memory_is_causal,
        )
        x = x + self.dropout2(seen)
        x = x if first else self.norm2(x)
        inner = self.linear1(self.norm3(x) if first else x)
        x = x + self.dropout3(self.linear2(self.dropout(self.activation(inner))))
        return x if first else self.norm3(x)


class TransformerDecoder(Module):
    """Returns a target after `num_layers` copies of `decoder_layer`, one after the other, and then `norm`.

    The copies begin with the same parameters; each looks at the same memory.

    >>> import lucid
    >>> from lucid import nn
    >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 3)
    >>> decoder(lucid.ones(5, 2, 8), memory=lucid.ones(4, 2, 8)).shape
    lucid.Size([5, 2, 8])
    """

    norm: Module | None

    @ranged
    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal is True,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)
