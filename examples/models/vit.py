"""ViT: a Transformer encoder over patches of images.

The names of parameters are those of timm, with a class token and learned positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import lucid
from lucid import nn
from lucid.nn import functional


@dataclass(frozen=True)
class ViTConfig:
    """Sizes; the defaults are those of ViT-Tiny for images of 224 x 224 in patches of 16 x 16."""

    classes: int = 1000
    size: int = 224
    patch: int = 16
    layers: int = 12
    heads: int = 3
    width: int = 192


class Attention(nn.Module):
    """Attention of several heads, whose queries, keys and values come from one product."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.proj = nn.Linear(config.width, config.width)

    def forward(self, x: lucid.Tensor) -> lucid.Tensor:
        """Return what each patch sees of all: (batch, patches, width)."""
        batch, count, width = x.shape
        q, k, v = self.qkv(x).view(batch, count, 3 * self.heads, width // self.heads).transpose(1, 2).chunk(3, 1)
        seen = functional.scaled_dot_product_attention(q, k, v)
        return self.proj(seen.transpose(1, 2).reshape(batch, count, width))


class MLP(nn.Module):
    """Two linear layers with GELU between them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: lucid.Tensor) -> lucid.Tensor:
        """Return a tensor of the shape of `x`."""
        return self.fc2(functional.gelu(self.fc1(x)))


class Block(nn.Module):
    """Attention and two linear layers, each behind a normalisation and beside a residual connection."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width, eps=1e-6)
        self.attn = Attention(config)
        self.norm2 = nn.LayerNorm(config.width, eps=1e-6)
        self.mlp = MLP(config.width)

    def forward(self, x: lucid.Tensor) -> lucid.Tensor:
        """Return a tensor of the shape of `x`."""
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """The network: images of shape (batch, 3, size, size) to the logits of each class."""

    def __init__(self, config: ViTConfig | None = None) -> None:
        super().__init__()
        config = config or ViTConfig()
        patches = (config.size // config.patch) ** 2
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, config.width, config.patch, stride=config.patch)})
        self.cls_token = nn.Parameter(lucid.zeros(1, 1, config.width))
        self.pos_embed = nn.Parameter(lucid.zeros(1, patches + 1, config.width))
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(config.width, eps=1e-6)
        self.head = nn.Linear(config.width, config.classes)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        nn.init.normal_(self.cls_token, std=1e-6)

    def forward(self, images: lucid.Tensor) -> lucid.Tensor:
        """Return the logits, shape (batch, classes)."""
        patches = self.patch_embed["proj"](images).flatten(2).transpose(1, 2)
        token = self.cls_token.expand(patches.shape[0], -1, -1)
        x = self.blocks(lucid.cat([token, patches], 1) + self.pos_embed)
        return self.head(self.norm(x)[:, 0])
