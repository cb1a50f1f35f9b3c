"""A launch that CUDA would refuse is refused here, and none ends the process or runs beyond a Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from lucid.base import gpu
from tests.pieces.children import ROOT, simulated

pytestmark = [
    pytest.mark.usefixtures("simulated"),
    pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'"),
]

KIB = 1 << 10


@pytest.fixture
def cupy():
    """Give CuPy, on device 0."""
    with gpu.use_device(0):
        yield gpu.cupy()


def kernel(cupy, bounds="", body="", before=""):
    """Return a kernel of these launch bounds and this body."""
    code = f'{before}\nextern "C" __global__ void {bounds} f(float* x) {{ extern __shared__ float s[]; {body} }}'
    return cupy.RawKernel(code, "f")


def refused(cupy, run, *words):
    """Find the words in CUDA's error."""
    with pytest.raises(cupy.cuda.driver.CUDADriverError, match="CUDA_ERROR_INVALID_VALUE: ") as error:
        run()
    for word in words:
        assert word in str(error.value)


def test_dynamic_shared_memory_is_asked_for(cupy):
    """Beyond 48 KiB, with the static, a kernel has to be allowed it; the limit is its own and can be read."""
    x = cupy.zeros(1, np.float32)
    for body, own in (("", 0), ("__shared__ float t[1024]; t[0] = x[0]; x[0] = t[0];", 4 * KIB)):
        run = kernel(cupy, body=body)
        assert (run.shared_size_bytes, run.max_dynamic_shared_size_bytes) == (own, 48 * KIB - own)
        run((1,), (1,), (x,), shared_mem=48 * KIB - own)
        refused(cupy, lambda run=run: run((1,), (1,), (x,), shared_mem=49 * KIB),
                f"{49 * KIB} bytes of dynamic shared memory for f, which may have {48 * KIB - own}")  # fmt: skip
        run.max_dynamic_shared_size_bytes = 100 * KIB
        assert run.max_dynamic_shared_size_bytes == 100 * KIB
        run((1,), (1,), (x,), shared_mem=100 * KIB)
        refused(cupy, lambda run=run: run((1,), (1,), (x,), shared_mem=101 * KIB), f"may have {100 * KIB}")
        for most in (228 * KIB - own, -1):
            with pytest.raises(cupy.cuda.driver.CUDADriverError, match="INVALID_VALUE"):
                run.max_dynamic_shared_size_bytes = most


@pytest.mark.parametrize(
    ("bounds", "before"),
    [
        ("__launch_bounds__(128)", ""),
        ("__launch_bounds__(128, 2)", ""),
        ("__launch_bounds__(MOST)", "#define MOST 128"),
        ("__launch_bounds__(MOST)", "constexpr int MOST = 128;"),
    ],
)
def test_launch_bounds(cupy, bounds, before):
    """A block of more threads is refused with both numbers, and the kernel tells its own."""
    run, x = kernel(cupy, bounds, before=before), cupy.zeros(1, np.float32)
    assert run.max_threads_per_block == 128
    run((1,), (128,), (x,))
    refused(cupy, lambda: run((1,), (129,), (x,)), "a block of 129 threads for f, whose __launch_bounds__ are 128")


def test_static_shared_memory(cupy):
    """A kernel has at most 48 KiB of it, in one variable or several."""
    most = kernel(cupy, body="__shared__ float t[12288]; t[0] = x[0]; x[0] = t[0];")
    most((1,), (1,), (cupy.zeros(1, np.float32),))
    two = "__shared__ float t[12288], u[1]; t[0] = x[0]; u[0] = t[0]; x[0] = u[0];"
    for body, size in (("__shared__ float t[20480]; t[0] = x[0]; x[0] = t[0];", "81,920"), (two, "49,1")):
        words = f"f has {size}.* bytes of static shared memory, of which CUDA takes 49,152"
        with pytest.raises(cupy.cuda.compiler.CompileException, match=words):
            kernel(cupy, body=body).compile()


def test_too_few_arguments_of_a_function(cupy):
    """What lies behind the last one is no memory: an error with the numbers, and not the end of the process."""
    code = """import ctypes, lucid, cupy
kernel = cupy.RawKernel('extern "C" __global__ void f(int a, int b) {}', 'f').kernel
x = cupy.zeros(1)
value, given = ctypes.c_int(), (ctypes.c_void_p * 2)()
given[0] = ctypes.addressof(value)
launch = ctypes.CDLL("libcuda.so.1").cuLaunchKernel
where = [ctypes.c_void_p(kernel.ptr), *[1] * 6, 0, None, given, None]
for last in (0, 1 << 40):
    given[1] = last
    print(launch(*where), flush=True)
"""
    ran = simulated(code)
    assert ran.stdout == "1\n1\n", ran.stderr


# A program in the background of a shell is started with Ctrl-C ignored. The kernels end by themselves, after minutes.
WAITING = """import lucid, cupy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
kernel = cupy.RawKernel('''extern "C" __global__ void f(volatile int* x, long long most) {
    for (long long i = 0; i < most && !x[0]; ++i) { }
}''', "f")
x = cupy.zeros(1, cupy.int32)
kernel((1,), (1,), (x, 1))
"""


def interrupted(code):
    """Run code that says when it begins to wait, press Ctrl-C then, and return what it printed."""
    environment = os.environ | {"LUCID_CUDA_SIMULATOR": "1", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", WAITING + code],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout.readline() == "begins\n", program.stderr.read()
        program.send_signal(signal.SIGINT)
        return program.communicate()


def test_ctrl_c_ends_a_kernel_that_waits_for_another_block():
    """Which would never come: the program ends by it as by any other."""
    printed, said = interrupted("print('begins', flush=True)\nkernel((2,), (1,), (x, 1 << 31))\nprint('went on')")
    assert (printed, said.splitlines()[-1]) == ("", "KeyboardInterrupt"), said


def test_a_program_with_its_own_answer_to_ctrl_c():
    """Its kernels run to their end, and its answer comes while they do."""
    code = "signal.signal(signal.SIGINT, lambda *_: print('answered', flush=True))\nprint('begins', flush=True)\n"
    printed, said = interrupted(code + "kernel((1,), (1,), (x, 1 << 25))\nprint('went on')")
    assert printed == "answered\nwent on\n", said


def test_who_asks_for_a_whole_driver_sees_no_device():
    """As numba, by its name, and cuda-python, by addresses of functions: no device, and no function that is missing."""
    ran = simulated("""import ctypes, lucid, cupy
driver = ctypes.CDLL("libcuda.so.1")
print(cupy.cuda.runtime.getDeviceCount(), driver.cuInit(0), driver.cuDriverGetVersion(ctypes.byref(ctypes.c_int())))
for name in b"cuInit", b"cuDeviceGetCount", b"cuMemAlloc":
    found = ctypes.c_void_p()
    code = driver.cuGetProcAddress_v2(name, ctypes.byref(found), 12000, ctypes.c_uint64(0), None)
    print(code, ctypes.CFUNCTYPE(ctypes.c_int)(found.value)())
""")
    assert ran.stdout == "1 100 0\n0 100\n0 100\n0 100\n", ran.stderr


def test_fused_kernels_that_wait_for_all_blocks(cupy, rng):
    """CuPy's fusion with reductions, whose kernels stride over the grid, gives what its parts give."""

    def weighted(x, y):
        return (x - x.sum()) * cupy.sum(y, axis=0)

    x, y = (cupy.asarray(rng.normal(size=(300, 40))) for _ in range(2))
    a, b = x.get(), y.get()
    np.testing.assert_allclose(cupy.fuse(weighted)(x, y).get(), (a - a.sum()) * b.sum(0), rtol=1e-9, atol=1e-9)
