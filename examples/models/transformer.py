"""The Transformer of "Attention is all you need": an encoder that reads a text, a decoder that writes another."""

from __future__ import annotations

from dataclasses import dataclass

import lucid
from lucid import nn


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes; the defaults are those of the paper's base model. Both texts share a vocabulary; token 0 is padding."""

    vocabulary: int = 37000
    context: int = 1024
    layers: int = 6
    heads: int = 8
    width: int = 512
    inner: int = 2048
    dropout: float = 0.1


class Translator(nn.Module):
    """Scores of the next token at each position of the text that is written."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        nn.init.normal_(self.embedding.weight, std=config.width**-0.5)
        angles = lucid.arange(config.context)[:, None] * 1e4 ** (lucid.arange(0, config.width, 2) / -config.width)
        waves = lucid.stack((lucid.sin(angles), lucid.cos(angles)), -1).reshape(config.context, config.width)
        self.register_buffer("positions", waves, persistent=False)
        self.dropout = nn.Dropout(config.dropout)
        self.transformer = nn.Transformer(
            config.width, config.heads, config.layers, config.layers, config.inner, config.dropout, batch_first=True
        )

    def _embedded(self, tokens: lucid.Tensor) -> lucid.Tensor:
        """Return the sum of embeddings and positions, (batch, length, width)."""
        scaled = self.embedding(tokens) * self.config.width**0.5
        return self.dropout(scaled + self.positions[: tokens.shape[1]])

    def forward(self, source: lucid.Tensor, target: lucid.Tensor) -> lucid.Tensor:
        """Return scores (batch, n, vocabulary) for tokens (batch, m) to read and (batch, n) written so far."""
        padding = source == 0
        length = target.shape[1]
        later = lucid.ones(length, length, dtype=lucid.bool, device=target.device).triu(1)
        written = self.transformer(
            self._embedded(source),
            self._embedded(target),
            tgt_mask=later,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return nn.functional.linear(written, self.embedding.weight)

    @lucid.no_grad()
    def translate(self, source: lucid.Tensor, target: lucid.Tensor, length: int) -> lucid.Tensor:
        """Return `target` (batch, n) with `length` more tokens, each the one of the highest score."""
        was_training = self.training
        self.eval()
        for _ in range(length):
            target = lucid.cat([target, self(source, target)[:, -1:].argmax(-1)], 1)
        self.train(was_training)
        return target
