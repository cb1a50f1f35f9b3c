"""Transformers of :class:`MultiheadAttention`: the layers of encoders and decoders, and a model of both."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

from lucid.arguments import unfit
from lucid.errors import SettingError, ShapeError
from lucid.nn import functional as F
from lucid.nn import init
from lucid.nn.layers.attention.multihead import MultiheadAttention
from lucid.nn.layers.container import ModuleList
from lucid.nn.layers.dropout import Dropout
from lucid.nn.layers.linear import Linear
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

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def activation_of(activation: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return the activation of a name, or itself if it is a callable; a SettingError lists the names."""
    if isinstance(activation, str):
        if activation not in ACTIVATIONS:
            raise SettingError(f"activation: expected 'relu', 'gelu' or a callable, got {activation!r}")
        return ACTIVATIONS[activation]
    if not callable(activation):
        raise unfit(activation, "'relu', 'gelu' or a callable", "activation")
    return activation


def copies(layer: Module, count: int) -> ModuleList:
    """Return `count` copies of a layer, each with its own copy of the parameters."""
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoderLayer(Module):
    """Returns ``y = norm1(x + attention(x))``, then ``norm2(y + linear2(activation(linear1(y))))``, of one shape.

    With `norm_first` the norms stand before what is added. `d_model` is the number of features, `nhead` of heads,
    `dim_feedforward` of features between the linear layers; `dropout`, in [0, 1), acts on the attention's weights, the
    activation and what is added; `activation` is "relu", "gelu" or a callable; `layer_norm_eps` and `bias` are those of
    the norms and of all layers. Shapes and masks: `help` of `lucid.nn.layers.attention`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.TransformerEncoderLayer(8, 2, batch_first=True)(lucid.ones(3, 5, 8)).shape
    lucid.Size([3, 5, 8])
    """

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
        self.linear1 = Linear(d_model, dim_feedforward, bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **place)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **place)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = function

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        x = src
        seen = self.norm1(x) if self.norm_first else x
        seen, _ = self.self_attn(seen, seen, seen, src_key_padding_mask, False, src_mask, is_causal=is_causal)
        x = x + self.dropout1(seen)
        x = x if self.norm_first else self.norm1(x)
        inner = self.linear1(self.norm2(x) if self.norm_first else x)
        x = x + self.dropout2(self.linear2(self.dropout(self.activation(inner))))
        return x if self.norm_first else self.norm2(x)


class TransformerEncoder(Module):
    """Returns a sequence after `num_layers` copies of `encoder_layer`, one after the other, and then `norm`.

    The copies begin with the same parameters. `enable_nested_tensor` and `mask_check` are there for PyTorch's sake and
    do nothing: padded keys are computed and masked.

    >>> import lucid
    >>> from lucid import nn
    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 3, nn.LayerNorm(8))
    >>> encoder(lucid.ones(5, 2, 8)).shape
    lucid.Size([5, 2, 8])
    """

    @ranged
    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=is_causal is True, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoderLayer(Module):
    """Returns a target sequence that has looked at itself, then at `memory`, then passed two linear layers.

    After each of the three comes what is added to its input, normalised; with `norm_first` the norms stand before. The
    settings are those of :class:`TransformerEncoderLayer`; shapes and masks: `help` of `lucid.nn.layers.attention`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.TransformerDecoderLayer(8, 2)(lucid.ones(5, 3, 8), memory=lucid.ones(4, 3, 8)).shape
    lucid.Size([5, 3, 8])
    """

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
        seen = self.norm2(x) if first else x
        seen, _ = self.multihead_attn(
            seen, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
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
