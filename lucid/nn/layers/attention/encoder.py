"""The encoder of a Transformer, and functions that the decoder uses too."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from lucid.arguments import unfit
from lucid.errors import SettingError
from lucid.nn import functional as F
from lucid.nn.layers.attention.multihead import MultiheadAttention
from lucid.nn.layers.container import ModuleList
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

    norm: Module | None

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
