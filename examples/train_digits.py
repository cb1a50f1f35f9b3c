"""Train a small convolutional network on the 1,797 handwritten digits that scikit-learn ships.

    python examples/train_digits.py
    python examples/train_digits.py --device cuda --epochs 40 --seed 7 --out out/gpu
    python examples/train_digits.py --resume out/digits/checkpoint.safetensors --epochs 60

Every fifth digit is held out, whatever the seed. Hooks on the parameters gather gradient norms, which a table shows at
the end. After each epoch a checkpoint is written; a run that is resumed from it ends bitwise as one that was never
interrupted.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import lucid
from lucid import nn
from lucid.base.random.generator import get_rng_states, set_rng_states
from lucid.errors import CheckpointError, LucidError
from lucid.nn import functional

try:
    from matplotlib.figure import Figure
    from sklearn.datasets import load_digits
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing: pip install 'lucid-cupy[examples]'")

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lucid import Tensor

FORMAT = "train_digits 1"
BATCH = 64
LEARNING_RATE, DECAY = 3e-3, 0.92


class DigitNet(nn.Module):
    """Two convolutions and two linear layers: from pictures of 1 x 8 x 8 to scores of ten digits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.hidden = nn.Linear(32 * 4 * 4, 128)
        self.dropout = nn.Dropout(0.5)
        self.output = nn.Linear(128, 10)

    def forward(self, pictures: Tensor) -> Tensor:
        """Return scores of shape (N, 10)."""
        x = functional.relu(self.conv1(pictures))
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.hidden(x.flatten(1)))
        return self.output(self.dropout(x))


class GradientNorms:
    """The gradient norm of each layer, gathered by a hook on every parameter; nothing waits for the device."""

    def __init__(self, model: nn.Module) -> None:
        self.squares: dict[str, Any] = {}
        for name, layer in model.named_children():
            for parameter in layer.parameters():
                parameter.register_post_accumulate_grad_hook(partial(self.add, name))

    def add(self, layer: str, parameter: Tensor) -> None:
        """Add the squared norm of one parameter's gradient: a hook, called once `.grad` is complete."""
        self.squares[layer] = self.squares.get(layer, 0) + (parameter.grad**2).sum()

    def take(self, steps: int) -> dict[str, float]:
        """Return the root of the mean squared norm over the last `steps` steps, by layer from first to last."""
        norms = {layer: (square.item() / steps) ** 0.5 for layer, square in reversed(self.squares.items())}
        self.squares.clear()
        return norms


class Run:
    """A model in training: everything that a checkpoint must hold."""

    def __init__(self, seed: int, device: str) -> None:
        lucid.manual_seed(seed)
        self.seed = seed
        self.device = device
        self.model = DigitNet().to(device)
        # Drawing the weights has moved the stream of the CPU alone: masks come from a place common to all devices.
        lucid.manual_seed((seed + 1) % 2**64)
        self.optimizer = lucid.optim.Adam(self.model.parameters(), lr=LEARNING_RATE)
        self.order = lucid.Generator(seed=seed)
        self.norms = GradientNorms(self.model)
        self.history: list[dict[str, Any]] = []

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        lucid.save(
            {
                "format": FORMAT,
                "seed": self.seed,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "order": self.order.get_state(),
                "generators": get_rng_states(),
                "history": self.history,
            },
            path,
        )

    @classmethod
    def resume(cls, path: Path, device: str) -> Run:
        """Return a run that continues from a checkpoint.

        Raises
        ------
        LucidError
            If the file is truncated, or no checkpoint of this program.
        OSError
            If it cannot be read.
        """
        saved = lucid.load(path, map_location="cpu")
        if not isinstance(saved, dict) or saved.get("format") != FORMAT:
            found = sorted(map(str, saved)) if isinstance(saved, dict) else type(saved).__name__
            raise CheckpointError(
                f"{path} is not a checkpoint of this program: expected one of format {FORMAT!r}, found {found}"
            )
        run = cls(saved["seed"], device)
        run.model.load_state_dict(saved["model"])
        run.optimizer.load_state_dict(saved["optimizer"])
        run.order.set_state(saved["order"])
        set_rng_states(saved["generators"])
        run.history = saved["history"]
        return run

    def train(self, pictures: Tensor, labels: Tensor) -> Iterator[None]:
        """Train for one epoch, yielding after each step, and enter it into the history."""
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * DECAY ** len(self.history)
        permutation = lucid.randperm(len(labels), generator=self.order, device="cpu").to(self.device)
        batches = permutation.split(BATCH)
        total = lucid.zeros((), device=self.device)
        for batch in batches:
            self.optimizer.zero_grad()
            loss = functional.cross_entropy(self.model(pictures[batch]), labels[batch])
            loss.backward()
            self.optimizer.step()
            total += loss.detach() * len(batch)
            yield
        self.history.append({"loss": total.item() / len(labels), "norms": self.norms.take(len(batches))})

    @lucid.no_grad()
    def evaluate(self, pictures: Tensor, labels: Tensor) -> dict[str, Any]:
        """Return the last epoch's entry of the history, after loss and accuracy on held-out digits were added."""
        self.model.eval()
        scores = self.model(pictures)
        correct = (scores.argmax(1) == labels).sum().item()
        self.history[-1].update(
            held_out_loss=functional.cross_entropy(scores, labels).item(), accuracy=correct / len(labels)
        )
        return self.history[-1]


def digits(device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return pictures and labels to train on, then those held out: every fifth."""
    data = load_digits()
    pictures = lucid.tensor(data.images[:, None] / 16, dtype=lucid.float32, device=device)
    labels = lucid.tensor(data.target, dtype=lucid.int64, device=device)
    held_out = lucid.arange(len(labels), device=device) % 5 == 0
    return pictures[~held_out], labels[~held_out], pictures[held_out], labels[held_out]


def gradient_table(run: Run) -> Table:
    """Return the table of gradient norms: what the hooks saw in the first, a middle and the last epoch."""
    epochs = sorted({1, (1 + len(run.history)) // 2, len(run.history)})
    table = Table(title="Gradient norm per layer", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("layer")
    table.add_column("parameters", justify="right")
    for epoch in epochs:
        table.add_column(f"epoch {epoch}", justify="right")
    for name in run.history[-1]["norms"]:
        count = sum(parameter.numel() for parameter in getattr(run.model, name).parameters())
        table.add_row(name, f"{count:,}", *[f"{run.history[epoch - 1]['norms'][name]:.4f}" for epoch in epochs])
    return table


def draw_learning_curve(history: Sequence[dict[str, Any]], path: Path) -> None:
    """Write a picture of loss, accuracy and gradient norms by epoch."""
    epochs = range(1, len(history) + 1)
    figure = Figure(figsize=(12, 3.8), dpi=120, layout="constrained")
    loss, accuracy, norms = figure.subplots(1, 3)
    loss.plot(epochs, [entry["loss"] for entry in history], marker=".", label="training")
    loss.plot(epochs, [entry["held_out_loss"] for entry in history], marker=".", label="held out")
    loss.set(title="Cross-entropy", yscale="log")
    accuracy.plot(epochs, [100 * entry["accuracy"] for entry in history], color="C1", marker=".", label="held out")
    accuracy.axhline(98, color="0.6", linestyle=":", label="98 %")
    accuracy.set(title="Accuracy (%)")
    for name in history[-1]["norms"]:
        norms.plot(epochs, [entry["norms"][name] for entry in history], marker=".", label=name)
    norms.set(title="Gradient norm per layer", yscale="log")
    for axes in (loss, accuracy, norms):
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.savefig(path)


def positive(text: str) -> int:
    """Return a number of at least 1, for an option."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def seed(text: str) -> int:
    """Return a number that a generator takes as its seed, for an option."""
    try:
        lucid.Generator(seed=int(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected a whole number in [-2**63, 2**64), got {text!r}") from error
    return int(text)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    parser.add_argument(
        "--epochs", type=positive, default=30, help="epochs in all, resumed ones included (default: 30)"
    )
    parser.add_argument(
        "--seed", type=seed, help="of weights, data order and dropout (default: 0, or the checkpoint's)"
    )
    parser.add_argument("--resume", type=Path, metavar="PATH", help="a checkpoint to continue from")
    parser.add_argument("--out", type=Path, default=Path("out/digits"), metavar="DIR", help="default: out/digits")
    options = parser.parse_args(arguments)
    if options.resume is not None and options.seed is not None:
        parser.error("--seed cannot be combined with --resume: the checkpoint has its own")
    return options


def train(options: argparse.Namespace, console: Console) -> None:
    """Train as the options say, and show and save what came of it."""
    pictures, labels, *held_out = digits(options.device)
    if options.resume is None:
        run = Run(options.seed or 0, options.device)
    else:
        run = Run.resume(options.resume, options.device)
    done = len(run.history)
    if done >= options.epochs:
        raise CheckpointError(
            f"{options.resume} has {done} epochs already: ask for more than that in all, as in --epochs {done + 10}"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    checkpoint, picture = options.out / "checkpoint.safetensors", options.out / "learning_curve.png"
    size = sum(parameter.numel() for parameter in run.model.parameters())
    console.print(
        f"{len(labels):,} digits to train on, {len(held_out[1])} held out; {size:,} parameters on {options.device}; "
        f"seed {run.seed}" + (f"; resumed after epoch {done}" if done else ""),
        highlight=False,
    )

    started = time.perf_counter()
    columns = (
        TextColumn("epoch {task.fields[epoch]:>{task.fields[width]}}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
    )
    steps = -(-len(labels) // BATCH)
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(
            "", total=steps * options.epochs, completed=steps * done, epoch=f"{done}/{options.epochs}",
            width=len(f"{options.epochs}/{options.epochs}"), figures="",
        )  # fmt: skip
        for epoch in range(done + 1, options.epochs + 1):
            progress.update(task, epoch=f"{epoch}/{options.epochs}")
            for _ in run.train(pictures, labels):
                progress.advance(task)
            last = run.evaluate(*held_out)
            progress.update(task, figures=f"loss {last['loss']:.4f}  held out {100 * last['accuracy']:.1f} %")
            run.save(checkpoint)
    seconds = time.perf_counter() - started

    draw_learning_curve(run.history, picture)
    accuracy = run.history[-1]["accuracy"]
    wrong = round((1 - accuracy) * len(held_out[1]))
    console.print(gradient_table(run))
    console.print(f"checkpoint      {checkpoint}", highlight=False, soft_wrap=True)
    console.print(f"learning curve  {picture}", highlight=False, soft_wrap=True)
    console.print(
        f"[bold]held-out accuracy {100 * accuracy:.2f} %[/] ({wrong} of {len(held_out[1])} wrong) after "
        f"{options.epochs} epochs, {seconds:.1f} s",
        highlight=False,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 after a run, 1 after an error, which is printed."""
    options = options_of(arguments)
    problem = None
    try:
        train(options, Console())
    except (LucidError, OSError) as error:
        problem = str(error)
    except KeyboardInterrupt:
        problem = f"interrupted: --resume {options.out / 'checkpoint.safetensors'} continues after the last whole epoch"
    if problem is not None:
        Console(stderr=True).print(f"[bold red]error:[/] {escape(problem)}", highlight=False, soft_wrap=True)
    return 0 if problem is None else 1


if __name__ == "__main__":
    sys.exit(main())
