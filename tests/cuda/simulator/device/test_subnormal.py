"""CuPy compiles every kernel with -ftz=true: subnormal float32 are zeros where it computes with them, no others."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid.base import gpu

pytestmark = pytest.mark.skipif(not gpu.is_simulated(), reason="needs LUCID_CUDA_SIMULATOR")

TINY = {"float16": 2.0**-20, "float32": 2.0**-130, "float64": 2.0**-1030}
KEPT = {"float16", "float64"}


@pytest.fixture
def cupy():
    """Give CuPy."""
    return gpu.cupy()


@pytest.mark.parametrize("dtype", TINY)
def test_kernels_of_cupy(cupy, dtype):
    """Operands and results that are subnormal float32 become zeros; halves and doubles keep theirs."""
    tiny = cupy.array([TINY[dtype]], dtype)
    least = cupy.array([np.finfo(dtype).smallest_normal], dtype)
    kept = dtype in KEPT
    assert float((tiny * 2).get()[0]) == (2 * TINY[dtype] if kept else 0)
    assert float((least / 4).get()[0]) == (float(least.get()[0]) / 4 if kept else 0)
    assert bool((tiny == 0).get()[0]) is not kept
    # what only moves stays
    assert tiny.copy().get()[0] == TINY[dtype]


@pytest.mark.parametrize("dtype", [*TINY, "bfloat16"])
def test_kernels_of_lucid(dtype):
    """As CuPy's; bfloat16 has the range of float32, and is computed in it."""
    tiny = TINY.get(dtype, TINY["float32"])
    x = lucid.tensor([tiny], dtype=getattr(lucid, dtype), device="cuda")
    assert float((x * 2).item()) == (2 * tiny if dtype in KEPT else 0)
    assert float((x + x).item()) == (2 * tiny if dtype in KEPT else 0)


def test_what_users_compile(cupy):
    """Raw kernels are compiled so too, whatever option is given before; one that leads to doubles keeps subnormals."""
    code = r"""
template <class T> __global__ void twice(T* x) { x[0] = x[0] * 2; }
extern "C" __global__ void scale(float* x, double factor) { x[0] = x[0] * (float)factor; }
"""
    module = cupy.RawModule(code=code, options=("-ftz=false",), name_expressions=["twice<float>", "twice<double>"])
    for dtype in ("float32", "float64"):
        x = cupy.array([TINY[dtype]], dtype)
        module.get_function("twice<float>" if dtype == "float32" else "twice<double>")((1,), (1,), (x,))
        assert float(x.get()[0]) == (2 * TINY[dtype] if dtype in KEPT else 0)
    x = cupy.array([TINY["float32"]], np.float32)
    module.get_function("scale")((1,), (1,), (x, np.float64(2)))
    assert float(x.get()[0]) == 0


def test_the_host_keeps_subnormal_numbers(cupy):
    """After a launch, and after one that failed, the processor computes as before."""
    tiny = np.float32(TINY["float32"])
    x = cupy.array([tiny])
    (x * 2).get()
    assert tiny * np.float32(2) == np.float32(2.0**-129)
    fails = cupy.RawKernel('extern "C" __global__ void f(float* x) { x[1] = x[0] * 2; }', "f")
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="out-of-range"):
        fails((1,), (1,), (x,))
    assert tiny * np.float32(2) == np.float32(2.0**-129)
