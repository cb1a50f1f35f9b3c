"""A CuPy script that knows nothing of lucid, to be run on a simulated CUDA device: a moving average in shared memory.

    python -m lucid.cuda.simulator examples/moving_average.py
    python -m lucid.cuda.simulator examples/moving_average.py --bug bounds
    python -m lucid.cuda.simulator examples/moving_average.py --bug barrier

The first is right. The others may well look right on a GPU; here they stop with a report that names thread and line.
"""

from __future__ import annotations

import argparse

import numpy as np

KERNEL = r"""
// y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3, with 0 beyond both ends
extern "C" __global__ void moving_average(const float* x, float* y, int n) {
    __shared__ float tile[130];  // the elements of a block of 128 threads, and one on each side
    const int i = blockIdx.x * 128 + threadIdx.x, place = threadIdx.x + 1;
    tile[place] = i < n ? x[i] : 0;
    if (place == 1) tile[0] = i > 0 ? x[i - 1] : 0;
    if (place == 128) tile[129] = i + 1 < n ? x[i + 1] : 0;
    __syncthreads();
    if (i < n) y[i] = (tile[place - 1] + tile[place] + tile[place + 1]) / 3;
}
"""

# What is left out of the kernel: that the last block is not full, or to wait for the neighbours.
BUGS = {"bounds": "if (i < n) ", "barrier": "__syncthreads();"}


def main():
    """Average 1,000 numbers and compare with NumPy."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--bug", choices=BUGS, help="run a kernel with this mistake")
    bug = parser.parse_args().bug

    import cupy  # noqa: PLC0415 - a wrong option is told without it

    source = KERNEL.replace(BUGS[bug], "") if bug else KERNEL
    x = cupy.arange(1000, dtype=cupy.float32) % 7
    y = cupy.empty_like(x)
    cupy.RawKernel(source, "moving_average")((8,), (128,), (x, y, np.int32(x.size)))

    expected = np.convolve(x.get(), [1 / 3] * 3, mode="same")
    print(f"largest difference from NumPy: {np.abs(y.get() - expected).max():.1e}")


if __name__ == "__main__":
    main()
