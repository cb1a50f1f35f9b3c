"""Train a variational autoencoder on the digits that scikit-learn ships, and draw new ones.

    python examples/vae_digits.py
    python examples/vae_digits.py --device cuda --epochs 200 --out out/vae

The picture shows held-out digits, what the autoencoder makes of them, and digits decoded from random codes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.progress import track

import lucid
from lucid import nn
from lucid.nn import functional

try:
    from matplotlib.figure import Figure
    from sklearn.datasets import load_digits
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing: pip install 'lucid-cupy[examples]'")

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid import Tensor

PIXELS, BATCH, SHOWN = 64, 64, 12


class VAE(nn.Module):
    """Encode pictures to the mean and log variance of a normal distribution, and decode what is drawn from it."""

    def __init__(self, codes: int, hidden: int = 128) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, hidden), nn.ReLU(), nn.Linear(hidden, 2 * codes))
        self.decoder = nn.Sequential(nn.Linear(codes, hidden), nn.ReLU(), nn.Linear(hidden, PIXELS))

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores of the pixels, and mean and log variance of the codes."""
        mean, log_variance = self.encoder(pictures).chunk(2, dim=1)
        codes = mean + (0.5 * log_variance).exp() * lucid.randn_like(mean) if self.training else mean
        return self.decoder(codes), mean, log_variance


def negative_bound(scores: Tensor, pictures: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return the negative evidence lower bound of a picture, in nats: reconstruction and divergence from N(0, 1)."""
    missed = functional.binary_cross_entropy_with_logits(scores, pictures, reduction="sum")
    divergence = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum()
    return (missed + divergence) / len(pictures)


def train(options: argparse.Namespace, console: Console) -> tuple[VAE, Tensor, float]:
    """Return the model, the digits held out, and their bound."""
    lucid.manual_seed(options.seed)
    digits = lucid.tensor(load_digits().data / 16, dtype=lucid.float32, device=options.device)
    held_out = lucid.arange(len(digits), device=options.device) % 5 == 0
    loader = lucid.utils.data.DataLoader(lucid.utils.data.TensorDataset(digits[~held_out]), BATCH, shuffle=True)
    model = VAE(options.codes).to(options.device)
    optimizer = lucid.optim.Adam(model.parameters(), lr=2e-3)
    for _ in track(range(options.epochs), "training", console=console):
        for (pictures,) in loader:
            optimizer.zero_grad()
            scores, mean, log_variance = model(pictures)
            negative_bound(scores, pictures, mean, log_variance).backward()
            optimizer.step()
    with lucid.no_grad():
        scores, mean, log_variance = model.eval()(digits[held_out])
        bound = negative_bound(scores, digits[held_out], mean, log_variance).item()
    return model, digits[held_out], bound


@lucid.no_grad()
def drawn(model: VAE, pictures: Tensor, codes: int) -> Figure:
    """Return rows of digits, of what they are decoded to, and of random codes decoded."""
    made = model.decoder(lucid.randn(SHOWN, codes, device=pictures.device)).sigmoid()
    rows = {"held out": pictures[:SHOWN], "decoded": model(pictures[:SHOWN])[0].sigmoid(), "random codes": made}
    figure = Figure(figsize=(SHOWN * 0.8, 2.8), layout="constrained")
    axes = figure.subplots(len(rows), SHOWN, squeeze=False)
    for line, (name, row) in zip(axes, rows.items(), strict=True):
        for axis, picture in zip(line, row.cpu().numpy().reshape(-1, 8, 8), strict=True):
            axis.imshow(picture, cmap="gray_r", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    return figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print the bound of the digits held out, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--codes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/vae"))
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not lucid.cuda.is_available():
        parser.error("--device cuda, and there is no CUDA device")
    if options.codes < 1 or options.epochs < 1:
        parser.error(f"expected --codes and --epochs of at least 1, got {options.codes} and {options.epochs}")
    console = Console()
    model, pictures, bound = train(options, console)
    if not np.isfinite(bound):
        console.print("[red]the loss is not finite")
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    drawn(model, pictures, options.codes).savefig(options.out / "digits.png", dpi=120)
    console.print(f"held out: {bound:.2f} nats a picture; {options.out / 'digits.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
