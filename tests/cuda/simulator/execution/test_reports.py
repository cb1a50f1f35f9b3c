"""The simulated device stops a kernel that does what it may not, and says which, where and why."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.base import gpu
from lucid.cuda.simulator import runtime
from tests.cuda.simulator.launching import launcher, refused

pytestmark = pytest.mark.usefixtures("simulated")


def test_order_of_threads_follows_the_seed(device):
    """Seed 0 runs threads in their order, another seed in a permutation of it that it determines."""
    put, get = device
    run = launcher('extern "C" __global__ void f(int* n, int* out) { out[atomicAdd(n, 1)] = threadIdx.x; }', "PP")

    def order(seed):
        runtime.set_seed(seed)
        out = put(np.zeros(64, np.int32))
        run(1, 64, put(np.zeros(1, np.int32)), out)
        return get(out).tolist()

    assert order(0) == list(range(64))
    assert order(5) == order(5) != order(6)
    assert sorted(order(5)) == list(range(64)) != order(5)


def test_divergent_barrier():
    """Barriers at different places, and threads that wait for ones that never come, are named with their lines."""
    source = 'extern "C" __global__ void f() {\n if (threadIdx.x < 40)\n%s;\n else\n%s;\n}'
    run = launcher(source % ("__syncthreads()", "__syncthreads()"), "")
    refused(lambda: run(1, 64), "launch of f", "divergent barrier", "test.cu:3", "test.cu:5", "thread (40, 0, 0)")
    run = launcher(source % ("__syncthreads()", "__syncwarp()"), "")
    refused(lambda: run(2, 64), "deadlock", "block (0, 0, 0)", "thread (0, 0, 0) is at __syncthreads (test.cu:3)",
            "thread (40, 0, 0) is at __syncwarp with mask 0xffffffff (test.cu:5)")  # fmt: skip
    run = launcher(source % ("__shfl_xor_sync(~0u, 1, 1)", "__ballot_sync(~0u, 1)"), "")
    refused(lambda: run(1, 64), "divergent warp operations", "__shfl_xor_sync", "__ballot_sync")
    run = launcher('extern "C" __global__ void f() { __syncwarp(1u); }', "")
    refused(lambda: run(1, 64), "not in the mask", "thread (1, 0, 0)", "0x00000001")


def test_out_of_range_accesses(device):
    """A read or write beyond an allocation, before it, after its release, or at null is named with its place."""
    put, _ = device
    source = 'extern "C" __global__ void f(float* x, long long i, int write) {\n if (threadIdx.x == 5) {\n'
    run = launcher(source + "  if (write) x[i] = 1.0f;\n  else x[0] = x[i];\n }\n}", "Pqi")
    x = put(np.zeros(100, np.float32))
    run(1, 32, x, 99, 0)
    run(1, 32, x, 99, 1)
    seen = []
    for i, write, words in (
        (100, 1, "write of 4 bytes"), (100, 0, "read of 4 bytes"), (-1, 0, "4 bytes before an allocation of 400 bytes"),
        (103, 0, "12 bytes behind an allocation of 400 bytes"), (10**12, 1, "far from all memory"),
    ):  # fmt: skip
        seen.append(refused(lambda i=i, write=write: run(3, 32, x, i, write), "out-of-range", words))
        assert f"(test.cu:{3 if write else 4})" in seen[-1]
    assert "block (0, 0, 0), thread (5, 0, 0)" in seen[0]
    refused(lambda: run(1, 32, 0, 1, 0), "a null pointer")
    gone = gpu.cupy().empty(100, np.float32).data.ptr
    refused(lambda: run(1, 32, gone, 0, 0), "out-of-range read")


def test_memory_that_was_given_back(device):
    """An address that was kept, far from what there is, is told by what was there."""
    pool = gpu.cupy().get_default_memory_pool()
    run = launcher('extern "C" __global__ void f(float* x) { x[1 << 20] = 1.0f; }', "P")
    gone = gpu.cupy().empty(1 << 21, np.float32).data.ptr
    pool.free_all_blocks()
    refused(lambda: run(1, 1, gone), "in memory that was given back, of 8,388,608 bytes")


def test_a_vector_that_straddles_the_end(device):
    """A 16-byte load of which only a part lies in the allocation is refused."""
    put, _ = device
    run = launcher('extern "C" __global__ void f(float4* x) { x[0] = x[1]; }', "P")
    refused(lambda: run(1, 1, put(np.zeros(6, np.float32))), "read of 16 bytes", "over the end of an allocation of 24")


def test_out_of_range_shared_memory(device):
    """An index beyond a shared array, beyond dynamic shared memory or beyond a local array is refused by name."""
    put, _ = device
    body = "float* p = s; x[0] = p[i]; p[i] = x[0];"
    run = launcher(
        f'extern "C" __global__ void f(float* x, int i) {{ __shared__ float s[20], t[20]; t[0] = 1; {body} }}', "Pi"
    )
    x = put(np.zeros(4, np.float32))
    run(1, 1, x, 19)
    refused(lambda: run(1, 1, x, 20), "out-of-range read", "just behind the shared variable s of 80 bytes")
    for far in (-1, -100, 100, 1000):
        refused(lambda far=far: run(1, 1, x, far), "out-of-range read")
    run = launcher(
        "template <class T> __device__ T* buffer() { __shared__ T s[20]; return s; }\n"
        f'extern "C" __global__ void f(float* x, int i) {{ float* s = buffer<float>(); {body} }}',
        "Pi",
    )
    run(1, 1, x, 19)
    refused(lambda: run(1, 1, x, 20), "just behind the shared variable s of 80 bytes")
    run = launcher(f'extern "C" __global__ void f(float* x, int i) {{ extern __shared__ float s[]; {body} }}', "Pi")
    run(1, 1, x, 19, shared=80)
    refused(lambda: run(1, 1, x, 20, shared=80), "just behind the dynamic shared memory of 80 bytes")
    run = launcher('extern "C" __global__ void f(float* x, int i) { float s[4] = {x[0], x[1]}; x[0] = s[i]; }', "Pi")
    run(1, 1, x, 3)
    refused(lambda: run(1, 1, x, 4), "index 4 is out of range for 'float [4]'", "test.cu:1")


def test_misaligned_division_assertion(device):
    """A vector load at an odd address, an integer division by zero and a failed assert are refused with their line."""
    put, _ = device
    x = put(np.zeros(8, np.float32))
    run = launcher('extern "C" __global__ void f(float* x) { *(float4*)x = *(float4*)(x + 1); }', "P")
    refused(lambda: run(1, 1, x), "misaligned", "float4", "no multiple of 16", "test.cu:1")
    run = launcher('extern "C" __global__ void f(int* x, int n) { x[0] = 7 / n; }', "Pi")
    run(1, 1, x, 2)
    refused(lambda: run(1, 1, x, 0), "division by zero", "test.cu:1")
    run = launcher('extern "C" __global__ void f(int n) { assert(n > 0); }', "i")
    run(1, 1, 1)
    refused(lambda: run(1, 1, 0), "assert(n > 0) failed", "test.cu:1")


@pytest.mark.parametrize(
    ("body", "right", "wrong", "words"),
    [
        ("i[0] = i[1] + n;", -1, 2**31 - 1, "2147483647 + 2147483647 overflows 'int'"),
        ("i[0] = i[1] * n;", -1, 2, "overflows 'int'"),  # of either order
        ("i[0] = -n;", 5, -(2**31), "overflows 'int'"),
        ("i[0] = i[2] / n;", 5, -1, "-2147483648 / -1 overflows 'int'"),
        ("i[0] = 1 << n;", 30, 32, "shift of 1 of 'int' by 32"),
        ("i[0] = (int)(x[0] * n);", 1, 2**30, "3.22122547e+09 is out of range for 'int'"),
        ("i[0] = (int)((double)x[0] / n);", 1, 0, "inf is out of range for 'int'"),
        ("struct Two { float a, b; }; x[0] = (n ? (Two*)x : nullptr)->b;", 1, 0, "'struct Two' by a null pointer"),
        ("bool b; *(char*)&b = n; i[0] = b;", 1, 2, "2 is no value of 'bool'"),
    ],
)
def test_undefined_behaviour(device, monkeypatch, body, right, wrong, words):
    """Under LUCID_SIMULATOR_SANITIZE what C++ leaves undefined stops the launch, with the numbers and the line."""
    put, _ = device
    source = f'extern "C" __global__ void f(int* i, float* x, int n) {{\n{body} }}'
    i, x = put(np.array([0, 2**31 - 1, -(2**31)], np.int32)), put(np.array([3, 4], np.float32))
    monkeypatch.setenv("LUCID_SIMULATOR_SANITIZE", "1")
    run = launcher(source, "PPi")
    run(1, 1, i, x, right)
    refused(lambda: run(1, 1, i, x, wrong), words, "test.cu:2")


@pytest.mark.parametrize(
    "added",
    [
        "template <> struct std::is_floating_point<Mine> { static constexpr bool value = true; };",
        "namespace std { template <> struct is_floating_point<Mine> { static constexpr bool value = true; }; }",
    ],
)
@pytest.mark.usefixtures("gpp_alone")
def test_what_a_source_adds_to_the_standard_library(device, added):
    """It may specialise what the library has, as CuPy's filters of images do."""
    put, get = device
    source = f"""#include <type_traits>
struct Mine {{}};
{added}
__device__ int both(int value) {{ __shared__ int s[2]; s[threadIdx.x] = value; __syncthreads(); return s[0] + s[1]; }}
extern "C" __global__ void f(int* x) {{ x[threadIdx.x] = both(std::is_floating_point<Mine>::value + threadIdx.x); }}"""
    x = put(np.zeros(2, np.int32))
    launcher(source, "P")(1, 2, x)
    assert get(x).tolist() == [3, 3]


@pytest.mark.parametrize("type_", ["int", "long long"])
def test_the_least_integer_divided_by_minus_one(device, type_):
    """It gives itself again, and no remainder, as on a GPU, where the host's processor would stop the process."""
    put, get = device
    source = f"""extern "C" __global__ void f({type_}* x, const {type_}* by, {type_} factor) {{
        {type_} least = x[0];
        x[0] = least / by[0];
        x[1] = least % by[threadIdx.x];
        x[2] = (least + 7) / by[0];
        x[3] = least / factor;
    }}"""
    dtype = np.int32 if type_ == "int" else np.int64
    least = np.iinfo(dtype).min
    x, by = put(np.array([least, 5, 5, 5], dtype)), put(np.array([-1], dtype))
    launcher(source, "PPi" if type_ == "int" else "PPq")(1, 1, x, by, -1)
    assert get(x).tolist() == [least, 0, -(least + 7), least]


def test_device_goes_on_after_an_error(device):
    """A launch after a stopped one works as if that had not been."""
    put, get = device
    run = launcher(
        'extern "C" __global__ void f(int* x, int bad) { __shared__ int s[64]; s[threadIdx.x] = threadIdx.x;'
        " __syncthreads(); if (bad && threadIdx.x == 9) x[1LL << 40] = 0; __syncthreads();"
        " x[threadIdx.x] = s[63 - threadIdx.x]; }",
        "Pi",
    )
    x = put(np.zeros(64, np.int32))
    for _ in range(3):
        refused(lambda: run(4, 64, x, 1), "thread (9, 0, 0)")
        run(4, 64, x, 0)
        np.testing.assert_array_equal(get(x), np.arange(63, -1, -1))


def test_launches_that_no_device_takes():
    """An empty grid, an empty or too large block and too much shared memory are refused, with their numbers."""
    run = launcher('extern "C" __global__ void f() {}', "")
    for grid, block in ((0, 32), (1, 0), ((1, 0), 32), (1, 1025), (1, (32, 33)), (1, (1, 1, 65)), ((1, 65536), 1)):
        refused(lambda grid=grid, block=block: run(grid, block), "launch of f")
    refused(lambda: run(0, 1), "at least one block")
    refused(lambda: run(2**32 + 1, 1), "4,294,967,297 x 1 x 1 blocks")
    run(1, 1, shared=200 << 10)
    refused(lambda: run(1, 1, shared=228 << 10), "shared memory")


def test_declared_parameters_are_those_of_the_source():
    """A kernel declared with other parameters than its source has is refused when it is compiled."""
    source = 'extern "C" __global__ void f(float* x, long long n, double a) {}'
    launcher(source, "Pqd")
    for signature in ("Pqf", "Pid", "qPd", "Pq", "Pqdi"):
        refused(lambda signature=signature: launcher(source, signature), "f is declared", "'Pqd'")


def test_arguments_are_checked():
    """A wrong number of arguments, or one that does not fit its type, is an error that names the kernel."""
    run = launcher('extern "C" __global__ void f(int n, double a) {}', "id")
    run(1, 1, 3, 1.0)
    for values in ((3,), (3, 1.0, 2), (3.5, 1.0), (2**31, 1.0)):
        refused(lambda values=values: run(1, 1, *values), "f takes parameters", "'id'")
