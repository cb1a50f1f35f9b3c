"""The Transformer: an encoder and a decoder."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.errors import ShapeError
from lucid.nn import functional as F
from lucid.nn import init
from lucid.nn.layers.attention.decoder import TransformerDecoder, TransformerDecoderLayer
from lucid.nn.layers.attention.encoder import TransformerEncoder, TransformerEncoderLayer
from lucid.nn.layers.normalisation.features import LayerNorm
from lucid.nn.module.module import Module
from lucid.ops.creation.filling import full
from lucid.ops.shape.diagonal import triu
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


class Transformer(Module):
    """Returns the output of the decoder for a target `tgt`, with the encoder's output for a source `src` as its memory.

    Each is a stack of `num_encoder_layers` or `num_decoder_layers` and a LayerNorm, or `custom_encoder` and
    `custom_decoder`; the other settings are those of :class:`TransformerEncoderLayer`. Parameters of two dimensions or
    more are drawn by `nn.init.xavier_uniform_`. Shapes and masks: `help` of `lucid.nn.layers.attention`.

    >>> import lucid
    >>> from lucid import nn
    >>> model = nn.Transformer(8, 2, 1, 1, 16)
    >>> mask = model.generate_square_subsequent_mask(3)
    >>> model(lucid.ones(5, 2, 8), lucid.ones(3, 2, 8), tgt_mask=mask).shape
    lucid.Size([3, 2, 8])
    """

    @ranged
    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-05,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        settings = (dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        if custom_encoder is None:
            layer = TransformerEncoderLayer(d_model, nhead, *settings)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(d_model, nhead, *settings)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        one_batch = src.dim() == tgt.dim() and (src.dim() != 3 or src.shape[batch] == tgt.shape[batch])
        if not one_batch or src.shape[-1:] != (self.d_model,) or tgt.shape[-1:] != (self.d_model,):
            raise ShapeError(
                f"Transformer: expected src and tgt of one batch and {self.d_model} features, "
                f"got shapes {src.shape} and {tgt.shape}"
            )
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Device = None, dtype: Dtype | None = None) -> Tensor:
        """Return a mask of shape (sz, sz): minus infinity for keys later than the query, else 0."""
        return triu(full((sz, sz), -math.inf, device=device, dtype=dtype), 1)
