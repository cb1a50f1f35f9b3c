"""Train an LSTM language model on the source of Python's standard library, and let it write.

    python examples/train_lstm.py
    python examples/train_lstm.py --device cuda --steps 5000 --layers 2 --width 1024

The text is read in order, in parallel streams: what a piece leaves in the cells is where the next one begins, and
gradients reach back to the beginning of the piece. Every tenth file is held out.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import numpy as np
from models.lstm import LSTMConfig, LSTMLanguageModel
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from train_gpt import CHARACTERS, sources

import lucid
from lucid import nn
from lucid.nn import functional

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from models.lstm import State

STREAMS = 32


def pieces(text: np.ndarray, length: int, device: str) -> Iterator[tuple[lucid.Tensor, lucid.Tensor]]:
    """Yield pieces (STREAMS, length) of so many parallel streams, and the same one character on, to their end."""
    longest = (len(text) - 1) // STREAMS
    inputs, targets = (lucid.tensor(text[shift:][: longest * STREAMS].reshape(STREAMS, -1)) for shift in (0, 1))
    for start in range(0, longest - length + 1, length):
        yield inputs[:, start : start + length].to(device), targets[:, start : start + length].to(device)


def loss_of(
    model: LSTMLanguageModel, inputs: lucid.Tensor, targets: lucid.Tensor, state: State | None
) -> tuple[lucid.Tensor, State]:
    """Return the mean cross-entropy of the next character, in nats, and the state after the piece."""
    scores, state = model.go_on(inputs, state)
    return functional.cross_entropy(scores.flatten(0, 1), targets.flatten()), state


def train(options: argparse.Namespace, console: Console) -> tuple[LSTMLanguageModel, float]:
    """Return the trained model, and its loss on the text that was held out."""
    lucid.manual_seed(options.seed)
    text, held_out = sources(options.files)
    longest = min(len(text), len(held_out)) // STREAMS - 1
    if options.length > longest:
        sys.exit(f"expected --length of at most {longest}, of {options.files} files, got {options.length}")
    config = LSTMConfig(len(CHARACTERS), options.width, options.layers, dropout=0.1, tied=True)
    model = LSTMLanguageModel(config).to(options.device)
    optimizer = lucid.optim.Adam(model.parameters(), lr=options.lr)
    schedule = lucid.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    reading, state = pieces(text, options.length, options.device), None
    for _ in track(range(options.steps), "training", console=console):
        if (piece := next(reading, None)) is None:
            reading, state = pieces(text, options.length, options.device), None
            piece = next(reading)
        optimizer.zero_grad()
        loss, state = loss_of(model, *piece, state)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        state = tuple(part.detach() for part in state)
    losses, state = [], None
    with lucid.no_grad():
        model.eval()
        for piece, _ in zip(pieces(held_out, options.length, options.device), range(20), strict=False):
            loss, state = loss_of(model, *piece, state)
            losses.append(loss.item())
    return model, float(np.mean(losses))


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print the loss on what was held out and a sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    for name, default in (("steps", 400), ("files", 100), ("length", 32), ("layers", 1), ("width", 128)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    for name in ("steps", "files", "length", "layers", "width"):
        if getattr(options, name) < 1:
            parser.error(f"expected --{name} of at least 1, got {getattr(options, name)}")
    if options.files < 10:
        parser.error(f"expected --files of at least 10, of which the last is held out, got {options.files}")
    if not 0 < options.lr < np.inf:
        parser.error(f"expected --lr above 0 and finite, got {options.lr}")
    if options.device == "cuda" and not lucid.cuda.is_available():
        parser.error("--device cuda, and there is no CUDA device")
    console = Console()
    model, loss = train(options, console)
    console.print(f"held out: {loss:.3f} nats a character, perplexity {np.exp(loss):.2f}")
    start = lucid.tensor([[CHARACTERS.index(each) for each in "def "]], device=options.device)
    written = model.sample(start, 200, temperature=0.8)[0].tolist()
    console.print(escape("".join(CHARACTERS[number] for number in written)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
