"""What a small GPT has learned, asked by capturing and editing its activations.

    python examples/hooks/interpret_gpt.py

The model is trained here to go on with texts that repeat: after ``a b c | a b`` comes ``c``. Then five questions are
put to it, each in a few lines of `lucid.hooks`: which layer carries the answer (activation patching), whether noise on
the input can be repaired there (causal tracing), which parts are needed (ablation), which direction turns one answer
into another (a steering vector), and which words the answer depends on (attribution).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import lucid
from lucid import hooks
from lucid.nn import functional as F

sys.path.insert(0, str(Path(__file__).parents[1]))
from models.gpt import GPT, GPTConfig

WORDS, LENGTH = 12, 6


def texts(count: int) -> lucid.Tensor:
    """Return texts of different words, each followed by itself."""
    first = lucid.stack([lucid.randperm(WORDS)[:LENGTH] for _ in range(count)])
    return lucid.cat([first, first], 1)


def trained(steps: int) -> GPT:
    """Return a GPT of two layers that has learned to repeat."""
    config = GPTConfig(vocabulary=WORDS, context=2 * LENGTH, layers=2, heads=4, width=32, dropout=0.0)
    model = GPT(config)
    optimizer = lucid.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(steps):
        batch = texts(64)
        logits = model(batch[:, :-1])[:, LENGTH - 1 :]
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, LENGTH:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0 or step == steps - 1:
            print(f"step {step:4}: loss {loss.item():.3f}")
    return model.eval()


@lucid.no_grad()
def patching(model: GPT, clean: lucid.Tensor, other: lucid.Tensor) -> None:
    """Print how much of the answer of one text each block carries over into another at the last word."""
    right = clean[0, -1]
    with hooks.capture(model, "h.*") as kept:
        full = model(clean[:, :-1])[0, -1, right]
    low = model(other[:, :-1])[0, -1, right]
    for path in hooks.points(model, "h.*"):
        with hooks.edit(model, {path: lambda output, path=path: lucid.cat([output[:, :-1], kept[path][:, -1:]], 1)}):
            got = model(other[:, :-1])[0, -1, right]
        print(f"patching: the last word in {path} carries {((got - low) / (full - low)).item():5.0%} of the answer")


@lucid.no_grad()
def tracing(model: GPT, clean: lucid.Tensor) -> None:
    """Print how likely the answer is with noise on the words, and with the clean output of each block restored."""
    right = clean[0, -1]
    with hooks.capture(model, ["wte", "h.*"]) as kept:
        model(clean[:, :-1])
    noise = {"wte": lambda output: output + 2 * lucid.randn(output.shape, device=output.device)}
    for path in ("", *hooks.points(model, "h.*")):
        restored = {path: lambda _, path=path: kept[path]} if path else {}
        with hooks.edit(model, {**noise, **restored}):
            chance = model(clean[:, :-1])[0, -1].softmax(0)[right]
        print(f"tracing: with noise{' and a clean ' + path if path else ''} the answer has {chance.item():.0%}")


@lucid.no_grad()
def ablation(model: GPT, batch: lucid.Tensor) -> None:
    """Print how often the model is right without what the attention, or the MLP, of each block adds."""
    for path in hooks.points(model, ["h.*.attn", "h.*.mlp.c_proj"]):
        with hooks.edit(model, {path: lambda output: output * 0}):
            right = model(batch[:, :-1])[:, LENGTH:].argmax(-1) == batch[:, LENGTH + 1 :]
        print(f"ablation: without {path} {right.float().mean().item():4.0%} are right")


@lucid.no_grad()
def steering(model: GPT, batch: lucid.Tensor) -> None:
    """Print how likely word 3 gets for all texts when the direction in which it lies is added to the last block."""
    with hooks.capture(model, "h.1") as kept:
        model(batch[:, :-1])
    ends, answers = kept["h.1"][:, -1], batch[:, -1]
    direction = ends[answers == 3].mean(0) - ends[answers != 3].mean(0)
    for strength in (0.0, 1.0, 2.0):
        with hooks.edit(model, {"h.1": lambda output, strength=strength: output + strength * direction}):
            chance = model(batch[:, :-1])[:, -1].softmax(1)[:, 3].mean()
        print(f"steering: with {strength} of the direction word 3 has {chance.item():4.0%}")


def attribution(model: GPT, clean: lucid.Tensor) -> None:
    """Print which words the answer depends on: the gradient of its logit by each embedding, times the embedding."""
    with hooks.capture(model, "wte", what=("output", "grad")) as kept:
        model(clean[:, :-1])[0, -1, clean[0, -1]].backward()
    shares = (kept["wte", "output"] * kept["wte", "grad"]).sum(-1)[0].abs()
    shares = shares / shares.sum()
    print(
        "attribution:",
        " ".join(f"{word}:{share:.0%}" for word, share in zip(clean[0, :-1].tolist(), shares.tolist(), strict=True)),
    )


def main() -> None:
    """Train, and ask."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=800, help="of the training")
    options = parser.parse_args()
    lucid.manual_seed(0)
    model = trained(options.steps)
    clean, other, batch = texts(1), texts(1), texts(200)
    patching(model, clean, other)
    tracing(model, clean)
    ablation(model, batch)
    steering(model, batch)
    attribution(model, clean)


if __name__ == "__main__":
    main()
