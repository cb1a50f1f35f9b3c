"""A kernel of CuPy's with a derivative: strength of gravity and friction, from the swings of 16 pendulums.

    python examples/own_kernel.py

One ElementwiseKernel makes a step of time. `lucid.cuda.derivative` finds its gradients, and backward goes through all
steps. It runs on the GPU if there is one, else on lucid's simulated device (pip install '.[simulator]').
"""

from __future__ import annotations

import argparse
import os
import shutil

if "LUCID_CUDA_SIMULATOR" not in os.environ and shutil.which("nvidia-smi") is None:
    os.environ["LUCID_CUDA_SIMULATOR"] = "1"  # lucid reads it when it is imported

import lucid

STEPS, STEP = 25, 0.1
TRUE = (4.0, 0.3)


def pendulum():
    """Return one step of Euler's method, as a function of Tensors: speed first, then angle."""
    import cupy  # noqa: PLC0415  after lucid, which may simulate the device

    speed = "(v - h * (gravity * sin(angle) + friction * v))"
    kernel = cupy.ElementwiseKernel(
        "T angle, T v, T gravity, T friction, T h",
        "T next_angle, T next_v",
        f"next_angle = angle + h * {speed}; next_v = {speed}",
        "pendulum",
    )
    return lucid.cuda.derivative(kernel)


def swing(step, angle, gravity, friction):
    """Return the angles after each step."""
    v, angles = lucid.zeros_like(angle), []
    for _ in range(STEPS):
        angle, v = step(angle, v, gravity, friction, STEP)
        angles.append(angle)
    return lucid.stack(angles)


def main():
    """Print the gradients that were found, check them, and fit both constants."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False).parse_args()
    lucid.manual_seed(0)
    step = pendulum()
    for name, text in step.gradients.items():
        print(f"{name}: {text}")

    inputs = [lucid.rand(3, dtype=lucid.float64, device="cuda", requires_grad=True) for _ in range(4)]
    print(f"gradcheck: {lucid.autograd.gradcheck(lambda *args: step(*args, STEP), inputs)}")
    print(f"gradgradcheck: {lucid.autograd.gradgradcheck(lambda *args: step(*args, STEP), inputs)}")

    start = lucid.linspace(0.2, 2.5, 16, device="cuda")
    with lucid.no_grad():
        seen = swing(step, start, *(lucid.tensor(value, device="cuda") for value in TRUE))
    guess = [lucid.tensor(value, device="cuda", requires_grad=True) for value in (3.0, 0.0)]
    optimizer = lucid.optim.LBFGS(guess, max_iter=12, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        error = (swing(step, start, *guess) - seen).square().mean()
        error.backward()
        return error

    optimizer.step(loss)
    print(f"gravity {guess[0].item():.3f}, friction {guess[1].item():.3f}; loss {loss().item():.1e}")


if __name__ == "__main__":
    main()
