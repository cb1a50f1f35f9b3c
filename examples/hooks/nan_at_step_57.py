"""A training whose loss is NaN from step 57 on: which op, which line, which numbers, and what was wrong.

python examples/hooks/nan_at_step_57.py [--out FOLDER]

docs/users/hooks-debugging.md explains what it prints. With --out the page of a trace and the graph are written, too.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import lucid
from lucid import hooks, nn, viz

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS, BATCH, FEATURES, CLASSES = 80, 16, 12, 4
GLITCH = 57


def batch(step: int) -> tuple[lucid.Tensor, lucid.Tensor]:
    """Return the measurements of a step and their classes; in one of them a sensor has gone mad."""
    lucid.manual_seed(step)
    x = lucid.randn(BATCH, FEATURES)
    target = x[:, :CLASSES].argmax(-1)
    if step == GLITCH:
        x[3] *= 1e4
    return x, target


class Classifier(nn.Module):
    """Returns the probability of each class."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES))

    def forward(self, x: lucid.Tensor) -> lucid.Tensor:
        """Return probabilities, (batch, classes)."""
        return self.body(x).softmax(-1)


class Loss(nn.Module):
    """Mean negative logarithm of the probability of the right class."""

    def forward(self, probabilities: lucid.Tensor, target: lucid.Tensor) -> lucid.Tensor:
        """Return the loss."""
        wanted = nn.functional.one_hot(target, CLASSES)
        return -(probabilities.log() * wanted).sum(-1).mean()


class Fixed(nn.Module):
    """The same of what has not been made a probability yet."""

    def forward(self, logits: lucid.Tensor, target: lucid.Tensor) -> lucid.Tensor:
        """Return the loss."""
        return nn.functional.cross_entropy(logits, target)


class Task(nn.Module):
    """A model with its loss, so that tools name both."""

    def __init__(self, model: Callable[..., lucid.Tensor], loss: nn.Module) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, x: lucid.Tensor, target: lucid.Tensor) -> lucid.Tensor:
        """Return the loss of a batch."""
        return self.loss(self.model(x), target)


def train(task: nn.Module, upto: int = STEPS) -> int | None:
    """Train until a step, and return the first one whose loss is no number."""
    optimizer = lucid.optim.SGD(task.parameters(), lr=0.1)
    for step in range(upto):
        loss = task(*batch(step))
        if loss.isnan():
            return step
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return None


def main() -> None:
    """Tell the story."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--out", type=Path, help="where the page and the graph go")
    options = parser.parse_args()

    lucid.manual_seed(0)
    task = Task(Classifier(), Loss())
    print("the loss is NaN at step", train(task))

    print("\nWhich module?")
    try:
        with hooks.guard(task):
            task(*batch(GLITCH))
    except hooks.NotFiniteError as error:
        print(error)

    print("\nWhich op, where, and of what numbers?")
    try:
        with hooks.guard(task, ops=True):
            task(*batch(GLITCH))
    except hooks.NotFiniteError as error:
        print(error)

    print("\nWhat came before it?")
    with hooks.capture(task, "model.body.*") as kept:
        loss = task(*batch(GLITCH))
    for key, value in kept.items():
        print(f"{key.path}: up to {value.abs().max().item():,.0f}; in the step before", end=" ")
        with hooks.capture(task, key.path) as before:
            task(*batch(GLITCH - 1))
        print(f"{before[key.path].abs().max().item():,.1f}")

    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        viz.graph(loss, model=task).save(options.out / "graph.dot")
        with hooks.trace(task, ops=True) as seen:
            task(*batch(GLITCH - 1)).backward()
        seen.save(options.out / "trace.html")
        print("\nwritten:", *sorted(path.name for path in options.out.iterdir()))

    print("\nMended: the loss takes what the last layer gives, and no probability is rounded to 0.")
    lucid.manual_seed(0)
    task = Task(Classifier().body, Fixed())
    print("the loss is NaN at step", train(task))


if __name__ == "__main__":
    main()
