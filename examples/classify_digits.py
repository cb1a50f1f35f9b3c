"""Train a small ViT or ResNet of `examples/models` on the digits that scikit-learn ships.

    python examples/classify_digits.py
    python examples/classify_digits.py --model resnet --device cuda --epochs 30

Every fifth digit is held out.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from models.resnet import ResNet, ResNetConfig
from models.vit import ViT, ViTConfig
from rich.console import Console
from rich.progress import track

import lucid
from lucid import nn
from lucid.nn import functional

try:
    from sklearn.datasets import load_digits
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing: pip install 'lucid-cupy[examples]'")

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCH = 64


def images(device: str) -> tuple[lucid.Tensor, lucid.Tensor]:
    """Return the digits as pictures of three equal colours (n, 3, 8, 8), from -1 to 1, and which digits they are."""
    data = load_digits()
    pictures = lucid.tensor(data.images / 8 - 1, dtype=lucid.float32, device=device)
    return pictures[:, None].expand(-1, 3, -1, -1), lucid.tensor(data.target, device=device)


def made(name: str) -> nn.Module:
    """Return a model for pictures of 8 x 8: a ViT with patches of 2 x 2, a ResNet whose stem does not shrink them."""
    if name == "vit":
        return ViT(ViTConfig(classes=10, size=8, patch=2, layers=4, heads=4, width=64))
    config = ResNetConfig(classes=10, width=16, blocks=(2, 2, 2))
    model = ResNet(config)
    model.conv1 = nn.Conv2d(3, config.width, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


def train(options: argparse.Namespace, console: Console) -> float:
    """Return the share of the digits held out that the trained model names."""
    lucid.manual_seed(options.seed)
    pictures, targets = images(options.device)
    held_out = lucid.arange(len(pictures), device=options.device) % 5 == 0
    known = lucid.utils.data.TensorDataset(pictures[~held_out], targets[~held_out])
    loader = lucid.utils.data.DataLoader(known, BATCH, shuffle=True)
    model = made(options.model).to(options.device)
    optimizer = lucid.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    steps = options.epochs * len(loader)
    schedule = lucid.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps, pct_start=0.2)
    for _ in track(range(options.epochs), "training", console=console):
        for some, digits in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(some), digits, label_smoothing=0.1).backward()
            optimizer.step()
            schedule.step()
    with lucid.no_grad():
        named = model.eval()(pictures[held_out]).argmax(1)
    return (named == targets[held_out]).float().mean().item()


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, and print how many of the digits held out are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="vit", choices=("vit", "resnet"))
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error(f"expected --epochs of at least 1, got {options.epochs}")
    if options.device == "cuda" and not lucid.cuda.is_available():
        parser.error("--device cuda, and there is no CUDA device")
    console = Console()
    console.print(f"held out: {train(options, console):.1%} named")
    return 0


if __name__ == "__main__":
    sys.exit(main())
