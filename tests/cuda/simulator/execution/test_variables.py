"""Variables of kernels have an address, a size and bounds, are the module's own, and constants cannot be written."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from lucid.base import gpu

NUMBERS = count(32)

pytestmark = pytest.mark.usefixtures("simulated")

CODE = r"""
extern "C" {
__constant__ float factors[4] = {1, 2, 3, 4};
__device__ int counted = 5, others[3];
static __device__ __align__(16) double wide;
__device__ float* kept;
__device__ const int three = 3;

__device__ float scaled(float x, int i) { return x * factors[i]; }

__global__ void scale(float* x) { x[threadIdx.x] = scaled(x[threadIdx.x], threadIdx.x); }
__global__ void count(int i) {
    int* p = &counted;
    if (i) p[i] = 0; else atomicAdd(p, three);
}
__global__ void keep(float* x) { kept = x; wide = 0.5; }
__global__ void use() { kept[0] = wide; }
__global__ void write(int i) {
    float* p = (float*)&factors[0];
    p[i] = 0;
}
}
"""


@pytest.fixture
def cupy():
    """Give CuPy, on device 0."""
    with gpu.use_device(0):
        yield gpu.cupy()


@pytest.fixture
def load(cupy):
    """Return a function that loads the source as a module of its own: CuPy keeps those of the same options."""
    return lambda: cupy.RawModule(code=CODE, options=(f"--maxrregcount={next(NUMBERS)}",))


def variable(cupy, module, name, shape, dtype):
    """Return a variable as an array."""
    return cupy.ndarray(shape, dtype, module.get_global(name))


def test_constants_are_written_by_copies(cupy, load):
    """Kernels read what was declared, then what a copy has put there, which ends at the variable's last byte."""
    module = load()
    x = cupy.ones(4, np.float32)
    module.get_function("scale")((1,), (4,), (x,))
    assert x.get().tolist() == [1, 2, 3, 4]
    factors = variable(cupy, module, "factors", 4, np.float32)
    factors[...] = cupy.arange(4, dtype=np.float32)
    module.get_function("scale")((1,), (4,), (x,))
    assert x.get().tolist() == [0, 2, 6, 12]
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="over the end of the variable factors of 16"):
        cupy.cuda.runtime.memset(factors.data.ptr, 0, 17)
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="CUDA_ERROR_NOT_FOUND"):
        module.get_global("nothing")


def test_kernels_write_variables_of_the_device(cupy, load):
    """Values stay from one launch to the next, of pointers and aligned variables too."""
    module = load()
    counted = variable(cupy, module, "counted", (), np.int32)
    for _ in range(2):
        module.get_function("count")((1,), (10,), (np.int32(0),))
    assert int(counted) == 5 + 2 * 10 * 3
    x = cupy.zeros(1, np.float32)
    module.get_function("keep")((1,), (1,), (x,))
    module.get_function("use")((1,), (1,), ())
    assert x.get().tolist() == [0.5]


def test_bounds_of_variables(cupy, load):
    """A write outside of all variables, and any to a constant, is refused with the line and the name."""
    module = load()
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match=r"4 bytes at .*kernel\.cu:14"):
        module.get_function("count")((1,), (1,), (np.int32(1 << 18),))
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match=r"__constant__ variable factors \(kernel\.cu:20"):
        module.get_function("write")((1,), (1,), (np.int32(3),))
    assert variable(cupy, module, "factors", 4, np.float32)[3] == 4


def test_each_module_has_its_own(cupy, load):
    """Two modules of one source, and one module on two devices, share no variable."""
    first, second = load(), load()
    addresses = {module.get_global("counted").ptr for module in (first, second)}
    assert len(addresses) == 2
    variable(cupy, first, "counted", (), np.int32)[...] = np.int32(9)
    assert int(variable(cupy, second, "counted", (), np.int32)) == 5
    if cupy.cuda.runtime.getDeviceCount() > 1:
        with gpu.use_device(1):
            assert int(variable(cupy, first, "counted", (), np.int32)) == 5
            assert cupy.cuda.runtime.pointerGetAttributes(first.get_global("counted").ptr).device == 1
