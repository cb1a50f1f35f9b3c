"""A fused operation of one's own: y = x * sigmoid(x) + residual, one kernel forward and one backward.

    python examples/custom_kernel.py

runs on the GPU if there is one, else on lucid's simulated device (pip install '.[simulator]'), which builds the same
source with g++ and checks every load and store.
"""

from __future__ import annotations

import argparse
import os
import shutil

if "LUCID_CUDA_SIMULATOR" not in os.environ and shutil.which("nvidia-smi") is None:
    os.environ["LUCID_CUDA_SIMULATOR"] = "1"  # lucid reads it when it is imported

import lucid
from lucid.cuda.launch.kernels import C_TYPES

KERNELS = lucid.cuda.compile(
    r"""
#include "lucid.cuh"

template <typename T>
__device__ T sigmoid(T x) {
    return 1 / (1 + exp(-x));
}

// y = x * sigmoid(x) + residual
template <typename T>
__global__ void forward(const T* x, const T* residual, T* y, long long n) {
    LUCID_FOR(i, n) {
        const auto value = lucid::to_real(x[i]);
        y[i] = lucid::from_real<T>(value * sigmoid(value) + lucid::to_real(residual[i]));
    }
}

// dx = g * (s + x * s * (1 - s)) with s = sigmoid(x); the gradient of the residual is g itself
template <typename T>
__global__ void backward(const T* g, const T* x, T* dx, long long n) {
    LUCID_FOR(i, n) {
        const auto value = lucid::to_real(x[i]), s = sigmoid(value);
        dx[i] = lucid::from_real<T>(lucid::to_real(g[i]) * (s + value * s * (1 - s)));
    }
}
""",
    name="silu_add.cu",
)


def launch(name, *arrays, out):
    """Launch the kernel of that name for the dtype of `out`, one thread for each element."""
    n = out.numel()
    if n:
        KERNELS[f"{name}<{C_TYPES[out.dtype.numpy]}>"]((n + 255) // 256, 256, (*arrays, out, n))
    return out


class SiluAdd(lucid.autograd.Function):
    """x * sigmoid(x) + residual, of one shape and dtype."""

    @staticmethod
    def forward(ctx, x, residual):
        """Save only x."""
        x, residual = x.contiguous(), residual.contiguous()
        ctx.save_for_backward(x)
        return launch("forward", x, residual, out=lucid.empty_like(x))

    @staticmethod
    def backward(ctx, g):
        """Give the gradients of both arguments."""
        (x,) = ctx.saved_tensors
        return launch("backward", g.contiguous(), x, out=lucid.empty_like(x)), g


def main():
    """Compare with the operation made of lucid's own, and the derivative with finite differences."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False).parse_args()
    lucid.manual_seed(0)
    x, residual = (lucid.randn(37, 11, device="cuda", requires_grad=True) for _ in range(2))
    y = SiluAdd.apply(x, residual)
    composed = x * lucid.sigmoid(x) + residual
    print(f"forward: largest difference {(y - composed).abs().max().item():.1e}")

    g = lucid.randn_like(y)
    fused = lucid.autograd.grad(y, (x, residual), g)
    expected = lucid.autograd.grad(composed, (x, residual), g)
    worst = max((a - b).abs().max().item() for a, b in zip(fused, expected, strict=True))
    print(f"backward: largest difference {worst:.1e}")

    inputs = [lucid.randn(3, 5, dtype=lucid.float64, device="cuda", requires_grad=True) for _ in range(2)]
    print(f"gradcheck: {lucid.autograd.gradcheck(SiluAdd.apply, inputs)}")


if __name__ == "__main__":
    main()
