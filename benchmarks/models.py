"""Whole training steps: forward, loss, backward, optimizer, on the same random data for both peers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.measure import Row, looped

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.measure import Peer, Sampler

VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS = 65, 64, 128, 4, 4


def training_step(optimizer: Any, loss: Callable[[], Any]) -> Callable[[], None]:
    """Return the call that does one step."""

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def classify(peer: Peer, model: Any, shape: tuple[int, ...], classes: int) -> Callable[[], Any]:
    """Return the call that gives the cross-entropy of a model on one batch of noise and random labels."""
    random = np.random.default_rng(0)
    inputs = peer.tensor(random.standard_normal(shape, np.float32))
    labels = peer.tensor(random.integers(0, classes, shape[0]))
    return lambda: peer.lib.nn.functional.cross_entropy(model(inputs), labels)


def mlp(peer: Peer) -> Callable[[], None]:
    nn = peer.lib.nn
    model = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(
        peer.device
    )
    return training_step(peer.lib.optim.Adam(model.parameters(), lr=1e-3), classify(peer, model, (128, 784), 10))


def lenet(peer: Peer) -> Callable[[], None]:
    nn = peer.lib.nn
    model = nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    ).to(peer.device)  # fmt: skip
    optimizer = peer.lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training_step(optimizer, classify(peer, model, (64, 3, 32, 32), 10))


def residual(peer: Peer) -> Callable[[], None]:
    nn = peer.lib.nn
    body = nn.Sequential(
        nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64),
    ).to(peer.device)  # fmt: skip
    x = peer.tensor(np.random.default_rng(0).standard_normal((32, 64, 32, 32), np.float32))
    optimizer = peer.lib.optim.SGD(body.parameters(), lr=0.01)

    def loss() -> Any:
        return (nn.functional.relu(body(x) + x) ** 2).mean()

    return training_step(optimizer, loss)


def blocks(peer: Peer, count: int, context: int, width: int, heads: int) -> Any:
    """Return blocks of a GPT in a row, attention written out."""
    nn, functional = peer.lib.nn, peer.lib.nn.functional
    future = peer.tensor(np.triu(np.ones((context, context), bool), 1))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.project_in = nn.Linear(width, 3 * width)
            self.project_out = nn.Linear(width, width)

        def forward(self, x):
            batch = x.shape[0]
            parts = self.project_in(x).reshape(batch, context, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            q, k, v = parts[0], parts[1], parts[2]
            scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(width // heads))
            weights = functional.softmax(scores.masked_fill(future, -math.inf), dim=-1)
            return self.project_out((weights @ v).transpose(1, 2).reshape(batch, context, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_1, self.attention, self.norm_2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.attention(self.norm_1(x))
            return x + self.mlp(self.norm_2(x))

    return nn.Sequential(*(Block() for _ in range(count))).to(peer.device)


def gpt_parts(peer: Peer) -> tuple[Any, tuple[Any, Any], Callable[[Any], Any]]:
    """Return a GPT, its inputs, and the loss of its output."""
    nn, functional = peer.lib.nn, peer.lib.nn.functional

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = blocks(peer, LAYERS, CONTEXT, WIDTH, HEADS)
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens, positions):
            return self.head(self.norm(self.blocks(self.token(tokens) + self.position(positions))))

    random = np.random.default_rng(0)
    text = random.integers(0, VOCABULARY, (8, CONTEXT + 1))
    tokens, targets = peer.tensor(text[:, :-1].copy()), peer.tensor(text[:, 1:].reshape(-1))
    positions = peer.tensor(np.arange(CONTEXT))

    def loss(output: Any) -> Any:
        return functional.cross_entropy(output.reshape(-1, VOCABULARY), targets)

    return GPT().to(peer.device), (tokens, positions), loss


def gpt(peer: Peer) -> Callable[[], None]:
    model, inputs, loss = gpt_parts(peer)
    return training_step(peer.lib.optim.AdamW(model.parameters(), lr=1e-3), lambda: loss(model(*inputs)))


STEPS = {"mlp": mlp, "gpt": gpt, "lenet": lenet, "residual": residual}


def step_row(name: str, budget: float, which: str) -> Row:
    """Return the row that times a whole step."""

    def build(peer: Peer) -> Sampler:
        return looped(peer, STEPS[which](peer))

    return Row(name, budget, build, most_rounds=30)


ROWS = [
    step_row("MLP step, Adam (784-1024-1024-10, batch 128)", 1.4, "mlp"),
    step_row("small GPT step, AdamW (4 layers, d 128, T 64, batch 8)", 2.5, "gpt"),
    step_row("LeNet step, SGD, batch of 64 x 3x32x32", 3.0, "lenet"),
    step_row("residual block step, SGD (32 x 64x32x32)", 4.0, "residual"),
]
