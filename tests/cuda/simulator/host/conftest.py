"""What tests of streams, capture and memory share: CuPy, and a kernel that writes to what it reads."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.base import gpu


@pytest.fixture
def cupy():
    """Return CuPy with nothing under way."""
    module = gpu.cupy()
    module.cuda.Device().synchronize()
    return module


@pytest.fixture
def increase(cupy):
    """Return a function that adds one to the elements of an array, on a stream."""
    kernel = cupy.RawKernel(
        'extern "C" __global__ void increase(float* x, int n) {'
        "const int i = threadIdx.x + blockIdx.x * blockDim.x; if (i < n) x[i] += 1; }",
        "increase",
    )

    def run(stream, x):
        with stream:
            kernel((4,), (128,), (x, np.int32(x.size)))

    return run
