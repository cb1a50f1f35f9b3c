"""An ordinary differential equation: how hares and lynxes breed, hunt and die, from noisy counts in many valleys.

    python examples/from_cupy/ode.py
    python examples/from_cupy/ode.py --device cuda --out out/ode

A RawKernel of CuPy's makes a step of time; on the CPU, where there is none, NumPy does. A comment marks each line that
was changed, with what it was before; `GRADIENTS` are those of the kernel, `g_` is that of a result.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import lucid  # changed
import lucid.numpy as cp  # changed: import cupy as cp

VALLEYS, STEPS, STEP, EVERY = 4096, 300, 0.05, 10
RATES = (1.0, 0.5, 0.8, 0.3)  # of birth, hunt, death and food
KERNEL = r"""
extern "C" __global__ void step(const double* hares, const double* lynxes, const double* birth, const double* hunt,
                                const double* death, const double* food, double* more, double* later, double h, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    more[i] = hares[i] + h * (birth[i] - hunt[i] * exp(lynxes[i]));
    later[i] = lynxes[i] + h * (food[i] * exp(more[i]) - death[i]);
}
"""
G = "(g_more + g_later * h * food * exp(more))"  # changed
GRADIENTS = {  # changed
    "hares": G,  # changed
    "lynxes": f"g_later - {G} * h * hunt * exp(lynxes)",  # changed
    "birth": f"{G} * h",  # changed
    "hunt": f"-{G} * h * exp(lynxes)",  # changed
    "death": "-g_later * h",  # changed
    "food": "g_later * h * exp(more)",  # changed
}  # changed


def step_on_cpu(hares, lynxes, birth, hunt, death, food):
    """Return the logarithms of the numbers of animals after one step of time, hares first."""
    more = hares + STEP * (birth - hunt * cp.exp(lynxes))
    return more, lynxes + STEP * (food * cp.exp(more) - death)


def kernel_step():
    """Return the same step as a function that launches the kernel."""
    import cupy  # noqa: PLC0415  only with a GPU

    kernel = cupy.RawKernel(KERNEL, "step")
    kernel = lucid.cuda.derivative(kernel, writes=("more", "later"), **GRADIENTS)  # changed

    def step(hares, lynxes, *rates):
        n = hares.shape[0]
        more = lucid.empty(n, dtype=lucid.float64)  # changed: more = cp.empty(n)
        later = lucid.empty(n, dtype=lucid.float64)  # changed: later = cp.empty(n)
        kernel((n // 128 + 1,), (128,), (hares, lynxes, *rates, more, later, cp.float64(STEP), cp.int32(n)))
        return more, later

    return step


def grow(step, hares, lynxes, rates):
    """Return the logarithms of the numbers of hares and lynxes in each valley at each count."""
    rates = [rate * cp.ones(len(hares)) for rate in rates]
    counts = []
    for k in range(STEPS):
        hares, lynxes = step(hares, lynxes, *rates)
        if (k + 1) % EVERY == 0:
            counts.append(cp.stack([hares, lynxes]))
    return cp.stack(counts)


def misfit(step, hares, lynxes, rates, seen):
    """Return the mean square of the difference in logarithms."""
    return cp.mean((grow(step, hares, lynxes, rates) - seen) ** 2)


def fit(step, hares, lynxes, seen, start, steps):
    """Return the rates that explain what was counted, and the misfit at each evaluation."""
    rates = lucid.tensor(start, requires_grad=True)  # changed: rates = start
    optimizer = lucid.optim.LBFGS([rates], max_iter=steps, line_search_fn="strong_wolfe")  # changed
    losses = []

    def evaluate():
        optimizer.zero_grad()  # changed
        loss = misfit(step, hares, lynxes, rates, seen)
        loss.backward()  # changed
        losses.append(loss.item())
        return loss

    optimizer.step(evaluate)  # changed: evaluate()
    rates = cp.asarray(rates.detach())  # changed
    return rates, losses


def picture(path, seen, curves, losses):
    """Draw the counts of one valley with what the rates at the start and at the end make of them, and the misfit."""
    figure = Figure(figsize=(9.5, 2.8), layout="constrained")
    *sides, right = figure.subplots(1, 3, width_ratios=(4, 4, 3))
    time = STEP * EVERY * np.arange(1, STEPS // EVERY + 1)
    for k, (axes, title) in enumerate(zip(sides, ("Hares", "Lynxes"), strict=True)):
        axes.plot(time, np.exp(seen[:, k, 0]), "k.", label="counted")
        for curve, style, name in zip(curves, ("C7:", "C3-"), ("start", "found"), strict=True):
            axes.plot(time, np.exp(curve[:, k, 0]), style, label=name)
        axes.set(title=f"{title} in one valley", xlabel="time")
    sides[1].legend(frameon=False)
    right.semilogy(losses)
    right.set(title="Misfit", xlabel="evaluations")
    figure.savefig(path, dpi=72, pil_kwargs={"optimize": True})


def main():
    """Count with noise, fit, print what was found, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=Path("out/from_cupy"))
    options = parser.parse_args()
    lucid.set_default_device(options.device)  # changed

    step = kernel_step() if options.device == "cuda" else step_on_cpu
    cp.random.seed(0)
    hares, lynxes = cp.random.uniform(0, 1, VALLEYS), cp.random.uniform(-1, 0.5, VALLEYS)
    clean = grow(step, hares, lynxes, cp.array(RATES))
    seen = clean + 0.2 * cp.random.standard_normal(clean.shape)
    start = cp.array([1.3, 0.7, 0.6, 0.2])
    found, losses = fit(step, hares, lynxes, seen, start, steps=16)
    noise = ((clean - seen) ** 2).mean()
    print(f"misfit {losses[0]:.4f} at the start, {losses[-1]:.4f} at the end, of which noise {noise:.4f}")
    print("rates of birth, hunt, death and food:", *[f"{rate:.4f}" for rate in found.tolist()])
    curves = [grow(step, hares, lynxes, rates) for rates in (start, found)]
    options.out.mkdir(parents=True, exist_ok=True)
    seen, *curves = [x.get() if hasattr(x, "get") else x for x in (seen, *curves)]
    picture(options.out / "ode.png", seen, curves, losses)


if __name__ == "__main__":
    main()
