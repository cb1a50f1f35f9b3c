"""Train a small GPT on the source of Python's standard library, character by character, and let it write.

    python examples/train_gpt.py
    python examples/train_gpt.py --device cuda --steps 5000 --layers 8 --width 512 --context 256

Every tenth file is held out. Texts are drawn by the seed, so that two runs of one seed end alike.
"""

from __future__ import annotations

import argparse
import math
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from models.gpt import GPT, GPTConfig
from rich.console import Console
from rich.markup import escape
from rich.progress import track

import lucid
from lucid import nn
from lucid.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence

CHARACTERS = "".join(map(chr, range(32, 127))) + "\n"
NUMBERS = np.full(128, CHARACTERS.index("?"))
NUMBERS[[ord(each) for each in CHARACTERS]] = np.arange(len(CHARACTERS))
BATCH = 16


def sources(files: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the standard library's first modules as numbers of characters, to train on and held out."""
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:files]
    parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for index, path in enumerate(paths):
        text = path.read_text(encoding="ascii", errors="replace").replace("\t", "    ")
        parts[index % 10 == 9].append(NUMBERS[np.minimum(np.frombuffer(text.encode("utf-16-le"), np.uint16), 127)])
    return np.concatenate(parts[0]), np.concatenate(parts[1])


def batch(text: np.ndarray, context: int, random: np.random.Generator, device: str) -> tuple[lucid.Tensor, ...]:
    """Return pieces of a text (BATCH, context), and the same one character on."""
    starts = random.integers(0, len(text) - context, BATCH)
    pieces = lucid.tensor(text[starts[:, None] + np.arange(context + 1)], device=device)
    return pieces[:, :-1], pieces[:, 1:]


def loss_of(model: GPT, inputs: lucid.Tensor, targets: lucid.Tensor) -> lucid.Tensor:
    """Return the mean cross-entropy of the next character, in nats."""
    return functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def train(options: argparse.Namespace, console: Console) -> tuple[GPT, float]:
    """Return the trained model, and its loss on the text that was held out."""
    lucid.manual_seed(options.seed)
    random = np.random.default_rng(options.seed)
    text, held_out = sources(options.files)
    config = GPTConfig(len(CHARACTERS), options.context, options.layers, options.heads, options.width, dropout=0.0)
    model = GPT(config).to(options.device)
    optimizer = lucid.optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = lucid.optim.lr_scheduler.OneCycleLR(optimizer, options.lr, total_steps=options.steps, pct_start=0.1)
    for _ in track(range(options.steps), "training", console=console):
        optimizer.zero_grad()
        loss_of(model, *batch(text, options.context, random, options.device)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    with lucid.no_grad():
        losses = [loss_of(model, *batch(held_out, options.context, random, options.device)).item() for _ in range(8)]
    return model, float(np.mean(losses))


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print the loss on what was held out and a sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    for name, default in (("steps", 400), ("files", 100), ("context", 64), ("layers", 2), ("heads", 4), ("width", 96)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prompt", default="def ")
    options = parser.parse_args(arguments)
    for name in ("steps", "files", "context", "layers", "heads", "width"):
        if getattr(options, name) < 1:
            parser.error(f"expected --{name} of at least 1, got {getattr(options, name)}")
    if options.files < 10:
        parser.error(f"expected --files of at least 10, of which the last is held out, got {options.files}")
    if not 0 < options.lr < math.inf:
        parser.error(f"expected --lr above 0 and finite, got {options.lr}")
    if options.width % options.heads:
        parser.error(f"expected --width as a multiple of --heads, got {options.width} and {options.heads}")
    if unknown := set(options.prompt) - set(CHARACTERS):
        parser.error(f"expected --prompt of ASCII characters, got {''.join(sorted(unknown))}")
    if not options.prompt:
        parser.error("expected --prompt of at least one character, got none")
    if options.device == "cuda" and not lucid.cuda.is_available():
        parser.error("--device cuda, and there is no CUDA device")
    console = Console()
    model, loss = train(options, console)
    console.print(f"held out: {loss:.3f} nats a character, {loss / np.log(2):.2f} bits")
    start = lucid.tensor([[CHARACTERS.index(each) for each in options.prompt]], device=options.device)
    written = model.sample(start, 200, temperature=0.8)[0].tolist()
    console.print(escape("".join(CHARACTERS[number] for number in written)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
