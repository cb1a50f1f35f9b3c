"""GPT-2: a decoder of pre-normalised blocks, with learned positions and the embedding as output weights.

The names of parameters are those of the GPT-2 checkpoints, with linear layers of shape (out, in).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import lucid
from lucid import nn
from lucid.nn import functional


@dataclass(frozen=True)
class GPTConfig:
    """Sizes; the defaults are those of GPT-2 small, of 124 million parameters."""

    vocabulary: int = 50257
    context: int = 1024
    layers: int = 12
    heads: int = 12
    width: int = 768
    dropout: float = 0.1


class Attention(nn.Module):
    """Causal attention of several heads, whose queries, keys and values come from one product."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.heads, self.dropout = config.heads, config.dropout
        self.c_attn = nn.Linear(config.width, 3 * config.width)
        self.c_proj = nn.Linear(config.width, config.width)

    def forward(self, x: lucid.Tensor) -> lucid.Tensor:
        """Return what each position sees of itself and those before it: (batch, length, width)."""
        batch, length, width = x.shape
        q, k, v = self.c_attn(x).view(batch, length, 3 * self.heads, width // self.heads).transpose(1, 2).chunk(3, 1)
        dropout = self.dropout if self.training else 0.0
        seen = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.c_proj(seen.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention and two linear layers, each behind a normalisation and beside a residual connection."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.width)
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config.width)
        self.mlp = nn.ModuleDict(
            {
                "c_fc": nn.Linear(config.width, 4 * config.width),
                "c_proj": nn.Linear(4 * config.width, config.width),
            }
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: lucid.Tensor) -> lucid.Tensor:
        """Return the block's output, of the shape of `x`."""
        x = x + self.dropout(self.attn(self.ln_1(x)))
        inner = functional.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        return x + self.dropout(self.mlp["c_proj"](inner))


class GPT(nn.Module):
    """Scores of the next token at each position."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocabulary, config.width)
        self.wpe = nn.Embedding(config.context, config.width)
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.ln_f = nn.LayerNorm(config.width)
        self.apply(self._initialise)

    def _initialise(self, module: nn.Module) -> None:
        """Draw weights as GPT-2 does: deviation 0.02, less for what is added to the residual stream."""
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)
        if isinstance(module, Block):
            for layer in (module.attn.c_proj, module.mlp["c_proj"]):
                nn.init.normal_(layer.weight, std=0.02 / math.sqrt(2 * self.config.layers))

    def forward(self, tokens: lucid.Tensor) -> lucid.Tensor:
        """Return scores (batch, length, vocabulary) for tokens (batch, length)."""
        positions = lucid.arange(tokens.shape[1], device=tokens.device)
        x = self.drop(self.wte(tokens) + self.wpe(positions))
        for block in self.h:
            x = block(x)
        return functional.linear(self.ln_f(x), self.wte.weight)

    @lucid.no_grad()
    def sample(
        self, tokens: lucid.Tensor, length: int, temperature: float = 1.0, generator: lucid.Generator | None = None
    ) -> lucid.Tensor:
        """Return `tokens` (batch, n) with `length` more, each drawn by the scores at `temperature`."""
        was_training = self.training
        self.eval()
        for _ in range(length):
            scores = self(tokens[:, -self.config.context :])[:, -1] / temperature
            drawn = lucid.multinomial(functional.softmax(scores, -1), 1, generator=generator)
            tokens = lucid.cat([tokens, drawn], 1)
        self.train(was_training)
        return tokens
