"""A language model of LSTM layers, as of Zaremba, Sutskever, Vinyals, Recurrent neural network regularization (2014).

Embeddings that are also the output weights are of Press, Wolf, Using the output embedding to improve language models
(2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import lucid
from lucid import nn
from lucid.nn import functional

# What a text leaves behind for the next: output and cell of each layer.
State = tuple[lucid.Tensor, lucid.Tensor]


@dataclass(frozen=True)
class LSTMConfig:
    """Sizes; the defaults are those of the medium model of the Penn treebank, of 20 million parameters."""

    vocabulary: int = 10000
    width: int = 650
    layers: int = 2
    dropout: float = 0.5
    tied: bool = False


class LSTMLanguageModel(nn.Module):
    """Scores of the next token at each position."""

    def __init__(self, config: LSTMConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.drop = nn.Dropout(config.dropout)
        between = config.dropout if config.layers > 1 else 0.0
        self.lstm = nn.LSTM(config.width, config.width, config.layers, batch_first=True, dropout=between)
        self.linear = nn.Linear(config.width, config.vocabulary)
        if config.tied:
            self.linear.weight = self.embedding.weight
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.05, 0.05)

    def forward(self, tokens: lucid.Tensor) -> lucid.Tensor:
        """Return scores (batch, length, vocabulary) for tokens (batch, length)."""
        return self.go_on(tokens)[0]

    def go_on(self, tokens: lucid.Tensor, state: State | None = None) -> tuple[lucid.Tensor, State]:
        """Return the scores for tokens that follow those that left `state`, and what they leave themselves."""
        out, after = self.lstm(self.drop(self.embedding(tokens)), state)
        return self.linear(self.drop(out)), after

    @lucid.no_grad()
    def sample(
        self, tokens: lucid.Tensor, length: int, temperature: float = 1.0, generator: lucid.Generator | None = None
    ) -> lucid.Tensor:
        """Return `tokens` (batch, n) with `length` more, each drawn by the scores at `temperature`."""
        was_training = self.training
        self.eval()
        text: list[lucid.Tensor] = [tokens]
        state: State | None = None
        for _ in range(length):
            scores, state = self.go_on(text[-1], state)
            chances = functional.softmax(scores[:, -1] / temperature, -1)
            text.append(lucid.multinomial(chances, 1, generator=generator))
        self.train(was_training)
        return lucid.cat(text, 1)
