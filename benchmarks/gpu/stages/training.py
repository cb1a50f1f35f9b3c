"""The step that `capture` and `steps` do: a GPT with dropout, its loss, clipping and AdamW, in either library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.measure import Peer


class Size(NamedTuple):
    """Layers, batch, tokens of a sequence, width, heads, and words."""

    layers: int
    batch: int
    context: int
    width: int
    heads: int
    words: int


SIMULATED = Size(1, 2, 8, 16, 2, 96)
SMALL = Size(4, 8, 256, 256, 4, 4096)
HALF_OF_GPT_2 = Size(6, 8, 1024, 768, 12, 50304)


class Training(NamedTuple):
    """A model, the step that trains it, and what the step is given."""

    model: Any
    step: Callable[..., Any]
    given: tuple[Any, ...]


def gpt(peer: Peer, size: Size) -> Any:
    """Return the model; its weights are drawn on the device, since on the CPU that takes seconds."""
    lib = peer.lib
    nn, functional, width = lib.nn, lib.nn.functional, size.width

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.project_in, self.project_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            heads = (*x.shape[:2], size.heads, width // size.heads)
            q, k, v = (part.reshape(heads).transpose(1, 2) for part in self.project_in(self.norm_1(x)).split(width, 2))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
            x = x + functional.dropout(self.project_out(y), 0.1)
            return x + self.down(functional.gelu(self.up(self.norm_2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(size.words, width), nn.Embedding(size.context, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(size.layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, size.words, bias=False)

        def forward(self, tokens, positions):
            return self.head(self.norm(self.blocks(self.token(tokens) + self.position(positions))))

    lib.manual_seed(0)
    lib.set_default_device(peer.device)
    try:
        return GPT()
    finally:
        lib.set_default_device("cpu")


def training(peer: Peer, size: Size, dtype: str, *, capturable: bool) -> Training:
    """Return a model of a dtype and its step, on the same text for both libraries."""
    lib = peer.lib
    model = gpt(peer, size).to(getattr(lib, dtype))
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-4, capturable=capturable)
    text = np.random.default_rng(0).integers(0, size.words, (size.batch, size.context + 1))
    tokens, targets = (peer.tensor(part.copy()) for part in (text[:, :-1], text[:, 1:].reshape(-1)))

    def step(tokens, positions, targets):
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(tokens, positions).reshape(-1, size.words), targets)
        loss.backward()
        lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return Training(model, step, (tokens, peer.tensor(np.arange(size.context)), targets))
