"""Full waveform inversion in one dimension: the speed of sound along a line, from what receivers on it have heard.

    python examples/from_cupy/waveform.py
    python examples/from_cupy/waveform.py --device cuda --out out/waveform

`record` and `misfit` are a program of CuPy's. A comment marks each line that was changed, with what it was before.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import lucid  # changed
import lucid.numpy as cp  # changed: import cupy as cp

CELLS, STEPS, CELL, STEP = 200, 400, 0.01, 0.002  # of 10 m and 2 ms
SOURCES, RECEIVERS = range(20, 181, 32), slice(10, 191, 10)
PULSE = 8.0  # Hz


def record(speed):
    """Return the pressure at the receivers after each step, of one shot for each source."""
    cells = cp.arange(CELLS)
    at_source = STEP**2 * (cells == cp.array(SOURCES)[:, None])
    t = (STEP * cp.arange(STEPS) - 1 / PULSE) * cp.pi * PULSE
    pulse = 1e4 * (1 - 2 * t**2) * cp.exp(-(t**2))
    edge = cp.clip(20 - cp.minimum(cells, CELLS - 1 - cells), 0, 20)
    damping = cp.exp(-((0.015 * edge) ** 2))  # waves die out at both ends

    factor = (speed * STEP / CELL) ** 2
    before = now = cp.zeros((len(SOURCES), CELLS))
    heard = []
    for k in range(STEPS):
        bend = cp.roll(now, 1, axis=1) - 2 * now + cp.roll(now, -1, axis=1)
        after = damping * (2 * now - before + factor * bend + pulse[k] * at_source)
        before, now = damping * now, after
        heard.append(now[:, RECEIVERS])
    return cp.stack(heard)


def misfit(speed, heard):
    """Return the share of what was heard that is heard otherwise."""
    return cp.sum((record(speed) - heard) ** 2) / cp.sum(heard**2)


def true_speed():
    """Return the speed in each cell, in km/s: a slow layer and a fast one."""
    place = cp.arange(CELLS) / CELLS
    return 2.0 - 0.3 * ((place > 0.25) & (place < 0.4)) + 0.5 * ((place > 0.55) & (place < 0.75))


def fit(heard, start, steps):
    """Return the speed that explains what was heard, and the misfit at each evaluation."""
    speed = lucid.tensor(start, requires_grad=True)  # changed: speed = start
    optimizer = lucid.optim.LBFGS([speed], lr=1.0, max_iter=steps, line_search_fn="strong_wolfe")  # changed
    losses = []

    def evaluate():
        optimizer.zero_grad()  # changed
        loss = misfit(speed, heard)
        loss.backward()  # changed
        losses.append(loss.item())
        return loss

    optimizer.step(evaluate)  # changed: evaluate()
    speed = cp.asarray(speed.detach())  # changed
    return speed, losses


def picture(path, true, start, found, heard, losses):
    """Draw the speeds, what was heard of the shot in the middle, and the misfit."""
    figure = Figure(figsize=(9.5, 2.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(4, 3, 3))
    for values, style, name in ((true, "k-", "true"), (start, "C7:", "start"), (found, "C3-", "found")):
        left.plot(np.arange(CELLS) * CELL, values, style, label=name)
    left.set(title="Speed of sound", xlabel="place (km)", ylabel="km/s")
    left.legend(frameon=False)
    shot = heard[:, len(SOURCES) // 2]
    middle.imshow(shot, cmap="RdBu_r", vmin=-0.3, vmax=0.3, aspect="auto", extent=(0.1, 1.9, 0.8, 0))
    middle.set(title="Pressure after one shot", xlabel="receiver (km)", ylabel="time (s)")
    right.semilogy(losses)
    right.set(title="Misfit", xlabel="evaluations")
    figure.savefig(path, dpi=72, pil_kwargs={"optimize": True})


def main():
    """Record, fit, print what was found, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=Path("out/from_cupy"))
    options = parser.parse_args()
    lucid.set_default_device(options.device)  # changed

    true = true_speed()
    heard = record(true)
    start = cp.full(CELLS, 2.0)
    found, losses = fit(heard, start, steps=20)
    print(f"misfit {losses[0]:.3f} at the start, {losses[-1]:.1e} at the end")
    print(f"mean error of the speed: {abs(start - true).mean():.3f} km/s, then {abs(found - true).mean():.3f}")
    options.out.mkdir(parents=True, exist_ok=True)
    on_host = [x.get() if hasattr(x, "get") else x for x in (true, start, found, heard)]
    picture(options.out / "waveform.png", *on_host, losses)


if __name__ == "__main__":
    main()
