"""Tomography: a slice through a body, from few X-ray pictures with noise, as smooth as it may be between its edges.

    python examples/from_cupy/tomography.py
    python examples/from_cupy/tomography.py --device cuda --out out/tomography

`project` and `misfit` are a program of CuPy's. A comment marks each line that was changed, with what it was before.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from matplotlib.figure import Figure

import lucid  # changed
import lucid.numpy as cp  # changed: import cupy as cp

SIDE, ANGLES, SMOOTHNESS = 64, 45, 2.0


def paths(side, angles):
    """Return where each ray runs: for each of its points the four pixels about it, and their weights."""
    angle = cp.linspace(0, cp.pi, angles, endpoint=False)[:, None, None]
    across = (cp.arange(side) - (side - 1) / 2)[:, None]
    along = cp.arange(side) - (side - 1) / 2
    x = across * cp.cos(angle) - along * cp.sin(angle) + (side - 1) / 2
    y = across * cp.sin(angle) + along * cp.cos(angle) + (side - 1) / 2
    left, low = cp.floor(x), cp.floor(y)
    places, weights = [], []
    for column in (left, left + 1):
        for row in (low, low + 1):
            inside = (column >= 0) & (column < side) & (row >= 0) & (row < side)
            places.append(cp.where(inside, row * side + column, 0).astype(int))
            weights.append(inside * (1 - abs(x - column)) * (1 - abs(y - row)))
    return cp.stack(places), cp.stack(weights)


def project(image, places, weights):
    """Return the sum along each ray, by angle and distance from the middle."""
    return cp.sum(cp.ravel(image)[places] * weights, axis=(0, 3))


def misfit(image, places, weights, seen, smoothness):
    """Return the mean square of what is seen otherwise, and the total variation of the image."""
    across, down = cp.diff(image, axis=1)[:-1], cp.diff(image, axis=0)[:, :-1]
    variation = cp.mean(cp.sqrt(across**2 + down**2 + 1e-6))
    return cp.mean((project(image, places, weights) - seen) ** 2) + smoothness * variation


def phantom(side):
    """Return a slice through a head: an ellipse with a rim, and others in it."""
    y, x = cp.meshgrid(cp.linspace(1, -1, side), cp.linspace(-1, 1, side), indexing="ij")
    image = cp.zeros((side, side))
    for value, a, b, x0, y0, turn in (
        (1.0, 0.69, 0.92, 0, 0, 0), (-0.8, 0.66, 0.87, 0, -0.02, 0), (-0.2, 0.11, 0.31, 0.22, 0, -0.31),
        (-0.2, 0.16, 0.41, -0.22, 0, 0.31), (0.2, 0.21, 0.25, 0, 0.35, 0), (0.3, 0.09, 0.09, 0, -0.5, 0),
    ):  # fmt: skip
        u = (x - x0) * cp.cos(turn) + (y - y0) * cp.sin(turn)
        v = (y - y0) * cp.cos(turn) - (x - x0) * cp.sin(turn)
        image += value * ((u / a) ** 2 + (v / b) ** 2 < 1)
    return image


def fit(start, arguments, steps):
    """Return the image that explains what was seen, and the misfit at each step."""
    image = lucid.tensor(start, requires_grad=True)  # changed: image = start
    optimizer = lucid.optim.Adam([image], lr=0.1)  # changed
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()  # changed
        loss = misfit(image, *arguments)
        loss.backward()  # changed
        optimizer.step()  # changed
        losses.append(loss.item())
    image = cp.asarray(image.detach())  # changed
    return image, losses


def picture(path, true, seen, found, losses):
    """Draw the slice, what was seen of it, what was found, and the misfit."""
    figure = Figure(figsize=(9.5, 2.6), layout="constrained")
    *images, right = figure.subplots(1, 4)
    for axes, image, title in zip(images, (true, seen.T, found), ("True", "Seen", "Found"), strict=True):
        axes.imshow(image, cmap="gray", vmin=0, vmax=image.max(), aspect="auto")
        axes.set(title=title, xticks=[], yticks=[])
    images[1].set(xlabel="angle", ylabel="distance from the middle")
    right.semilogy(losses)
    right.set(title="Misfit", xlabel="steps")
    figure.savefig(path, dpi=72, pil_kwargs={"optimize": True})


def main():
    """Project with noise, fit, print what was found, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=Path("out/from_cupy"))
    options = parser.parse_args()
    lucid.set_default_device(options.device)  # changed

    cp.random.seed(0)
    true = phantom(SIDE)
    places, weights = paths(SIDE, ANGLES)
    clean = project(true, places, weights)
    seen = clean + 0.01 * clean.max() * cp.random.standard_normal(clean.shape)
    found, losses = fit(cp.zeros((SIDE, SIDE)), (places, weights, seen, SMOOTHNESS), steps=250)
    print(f"misfit {losses[0]:.1f} at the start, {losses[-1]:.3f} at the end")
    error = ((found - true) ** 2).mean() / (true**2).mean()
    print(f"relative error of the image: 1.000, then {error**0.5:.3f}")
    options.out.mkdir(parents=True, exist_ok=True)
    on_host = [x.get() if hasattr(x, "get") else x for x in (true, seen, found)]
    picture(options.out / "tomography.png", *on_host, losses)


if __name__ == "__main__":
    main()
