"""Phase retrieval: a thing, from how bright its diffraction patterns behind a few random masks are.

    python examples/from_cupy/phase.py
    python examples/from_cupy/phase.py --device cuda --out out/phase

`diffract` and `misfit` are a program of CuPy's. A comment marks each line that was changed, with what it was before.
Gradients and optimizer have the names of HIPS/autograd.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import lucid  # changed
import lucid.numpy as cp  # changed: import cupy as cp
from lucid.numpy.autograd import value_and_grad  # changed
from lucid.numpy.autograd.misc.optimizers import adam  # changed

SIDE, MASKS = 64, 3


def diffract(thing, masks):
    """Return the amplitude of the light far behind each mask, on twice as many pixels as the thing has."""
    side = thing.shape[0]
    return cp.abs(cp.fft.fft2(masks * thing, (2 * side, 2 * side))) / side


def misfit(thing, masks, seen):
    """Return the mean square of the difference in amplitude."""
    return cp.mean((diffract(thing, masks) - seen) ** 2)


def flower(side):
    """Return a picture of a flower."""
    y, x = cp.meshgrid(cp.linspace(-1, 1, side), cp.linspace(-1, 1, side), indexing="ij")
    radius, angle = cp.hypot(x, y), cp.arctan2(y, x)
    petals = (radius < 0.55 + 0.35 * cp.cos(7 * angle)) * (0.7 + 0.3 * cp.cos(14 * angle))
    return cp.where(radius < 0.25, 0.2, petals)


def fit(thing, masks, seen, steps):
    """Return the thing that explains what was seen, and the misfit at each step."""
    losses = []
    evaluate = value_and_grad(misfit)  # changed: evaluate = misfit

    def step(thing, _):
        loss, gradient = evaluate(thing, masks, seen)  # changed: loss = evaluate(thing, masks, seen)
        losses.append(float(loss))
        return gradient  # changed

    thing = adam(step, thing, num_iters=steps, step_size=0.02)  # changed: step(thing, 0)
    return thing, losses


def picture(path, true, seen, found, losses):
    """Draw the thing, the middle of one of its patterns, what was found, and the misfit."""
    figure = Figure(figsize=(9.5, 2.6), layout="constrained")
    *images, right = figure.subplots(1, 4)
    middle = np.fft.fftshift(seen[0])[SIDE - 16 : SIDE + 16, SIDE - 16 : SIDE + 16]
    for axes, image, title in zip(images, (true, middle, found), ("True", "Seen, the middle", "Found"), strict=True):
        axes.imshow(image, cmap="magma")
        axes.set(title=title, xticks=[], yticks=[])
    right.semilogy(losses)
    right.set(title="Misfit", xlabel="steps")
    figure.savefig(path, dpi=72, pil_kwargs={"optimize": True})


def main():
    """Diffract with noise, fit, print what was found, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=Path("out/from_cupy"))
    options = parser.parse_args()
    lucid.set_default_device(options.device)  # changed

    cp.random.seed(0)
    true = flower(SIDE)
    masks = cp.sign(cp.random.standard_normal((MASKS, SIDE, SIDE)))
    clean = diffract(true, masks)
    seen = abs(clean + 0.01 * cp.random.standard_normal(clean.shape))
    found, losses = fit(cp.full((SIDE, SIDE), 0.1), masks, seen, steps=200)
    print(f"misfit {losses[0]:.3f} at the start, {losses[-1]:.1e} at the end")
    print(f"largest error of a pixel: {abs(found - true).max():.3f}")
    options.out.mkdir(parents=True, exist_ok=True)
    on_host = [x.get() if hasattr(x, "get") else x for x in (true, seen, found)]
    picture(options.out / "phase.png", *on_host, losses)


if __name__ == "__main__":
    main()
