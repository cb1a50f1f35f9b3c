"""The simulated device runs CUDA threads as the hardware would, and gives them memory."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np
import pytest

from lucid.base import gpu
from lucid.cuda.simulator import runtime
from lucid.cuda.simulator.counting import counters
from tests.cuda.simulator.launching import SEEDS, launcher, refused
from tests.pieces import in_threads

pytestmark = pytest.mark.usefixtures("simulated")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "__half": np.dtype(np.float16),
    "__nv_bfloat16": BFLOAT16,
}


# ---- threads ----


@pytest.mark.parametrize("seed", SEEDS)
def test_threads_know_where_they_are(device, seed):
    """Each thread of each block runs once, with its indices and the sizes of block and grid."""
    put, get = device
    run = launcher(
        """extern "C" __global__ void f(int* out) {
            const int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
            const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
            out[b * blockDim.x * blockDim.y * blockDim.z + t] += 1000 * b + t;
        }""",
        "P",
    )
    runtime.set_seed(seed)
    out = put(np.zeros((2 * 3 * 4, 5 * 3 * 2), np.int32))
    run((2, 3, 4), (5, 3, 2), out)
    np.testing.assert_array_equal(get(out), 1000 * np.arange(24)[:, None] + np.arange(30))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("block", [32, 96, 256, 1024])
def test_block_reductions(device, rng, name, block, seed):
    """Two sums in a row, max and min of a block by the shared header equal NumPy's in float64, for every thread."""
    put, get = device
    run = launcher(
        """#include "lucid.cuh"
        using namespace lucid;
        template <typename T> __global__ void f(const T* x, double* out, long long n) {
            typedef Real<T> R;
            R sum = 0, most = Limits<R>::least(), least = Limits<R>::greatest();
            for (long long i = thread_of_block(); i < n; i += blockDim.x * blockDim.y) {
                const R value = to_real(x[blockIdx.x * n + i]);
                sum += value, most = value > most ? value : most, least = value < least ? value : least;
            }
            sum = block_sum(sum);
            const R threads = block_sum((R)1);
            most = block_max(most), least = block_reduce(least, Limits<R>::greatest(), Min());
            double* mine = out + 4 * (blockIdx.x * blockDim.x * blockDim.y + thread_of_block());
            mine[0] = sum, mine[1] = most, mine[2] = least, mine[3] = threads;
        }""",
        "PPq",
        f"f<{name}>",
    )
    runtime.set_seed(seed)
    x = rng.standard_normal((3, 1000)).astype(DTYPES[name])
    exact = x.astype(np.float64)
    out = put(np.zeros((3, block, 4)))
    run(3, (block // 2, 2), put(x), out, 1000)
    expected = np.stack([exact.sum(1), exact.max(1), exact.min(1), np.full(3, block)], -1)[:, None]
    np.testing.assert_allclose(get(out), np.broadcast_to(expected, (3, block, 4)), rtol=1e-5, atol=1e-4)


def test_argmax_by_shuffled_structs(device, rng):
    """A struct of several words travels through shuffles; of equal values the first wins, and a NaN over all."""
    put, get = device
    run = launcher(
        """#include "lucid.cuh"
        using namespace lucid;
        extern "C" __global__ void f(const float* x, long long* out, int n) {
            Place<float> best = {Limits<float>::least(), 0x7fffffffffffffffLL};
            for (long long i = threadIdx.x; i < n; i += blockDim.x)
                best = First<true>()(best, Place<float>{x[blockIdx.x * n + i], i});
            best = block_reduce(best, Place<float>{Limits<float>::least(), 0x7fffffffffffffffLL}, First<true>());
            if (threadIdx.x == 0) out[blockIdx.x] = best.index;
        }""",
        "PPi",
    )
    x = rng.integers(0, 5, (6, 300)).astype(np.float32)
    x[2, [17, 250]] = np.nan
    out = put(np.zeros(6, np.int64))
    run(6, 128, put(x), out, 300)
    np.testing.assert_array_equal(get(out), np.argmax(x, 1))


WARP = """extern "C" __global__ void f(int* out) {
    const int lane = threadIdx.x, value = 100 + lane;
    int* mine = out + lane;
    mine[0] = __shfl_sync(~0u, value, 3, 8);
    mine[32] = __shfl_up_sync(~0u, value, 2, 16);
    mine[64] = __shfl_down_sync(~0u, value, 3);
    mine[96] = __shfl_xor_sync(~0u, value, 5);
    mine[128] = __ballot_sync(~0u, lane % 3 == 0);
    mine[160] = __any_sync(~0u, lane == 7) + 2 * __all_sync(~0u, lane < 31);
    mine[192] = __match_any_sync(~0u, lane % 4);
    mine[224] = __syncthreads_count(lane < 11) + 100 * __syncthreads_or(lane == 5) + 1000 * __syncthreads_and(lane > 0);
}"""


@pytest.mark.parametrize("seed", SEEDS)
def test_warp_operations(device, seed):
    """Shuffles, votes, matches and counting barriers give each lane what CUDA's definition says."""
    put, get = device
    runtime.set_seed(seed)
    out = put(np.zeros((8, 32), np.int32))
    launcher(WARP, "P")(1, 32, out)
    lane = np.arange(32)
    expected = np.stack(
        [
            100 + lane // 8 * 8 + 3,
            100 + np.where(lane % 16 >= 2, lane - 2, lane),
            100 + np.where(lane + 3 < 32, lane + 3, lane),
            100 + (lane ^ 5),
            np.full(32, sum(1 << i for i in range(0, 32, 3))),
            np.full(32, 1),
            [sum(1 << i for i in range(32) if i % 4 == k % 4) for k in lane],
            np.full(32, 11 + 100 + 0),
        ]
    )
    np.testing.assert_array_equal(get(out).view(np.uint32), expected.astype(np.uint32))


def test_parts_of_a_warp_meet_on_their_own(device):
    """Lanes of different masks exchange independently, and lanes that have ended are not waited for."""
    put, get = device
    run = launcher(
        """extern "C" __global__ void f(int* out) {
            const int lane = threadIdx.x;
            if (lane >= 24) return;
            const unsigned mask = lane < 16 ? 0xffffu : 0xff0000u;
            int value = lane;
            for (int o = 1; o < (lane < 16 ? 16 : 8); o *= 2) value += __shfl_xor_sync(mask, value, o);
            __syncwarp();
            __syncthreads();
            out[lane] = value;
        }""",
        "P",
    )
    out = put(np.zeros(32, np.int32))
    run(1, 32, out)
    np.testing.assert_array_equal(get(out), [120] * 16 + [156] * 8 + [0] * 8)


@pytest.mark.parametrize("seed", SEEDS)
def test_lanes_that_go_on_first(device, seed):
    """What a lane takes from a shuffle is not changed by the others' next one, which may come before it runs on."""
    put, get = device
    runtime.set_seed(seed)
    run = launcher(
        """extern "C" __global__ void f(int* out) {
            const int lane = threadIdx.x;
            const int value = __shfl_xor_sync(~0u, lane, 1);
            __ballot_sync(lane < 7 ? 0x7fu : ~0x7fu, 1);
            out[lane] = value;
        }""",
        "P",
    )
    out = put(np.zeros(32, np.int32))
    run(1, 32, out)
    np.testing.assert_array_equal(get(out), np.arange(32) ^ 1)


def test_atomics_and_half_types(device, rng):
    """Atomic additions of every floating dtype add up, and the half types round like NumPy's and ml_dtypes'."""
    put, get = device
    for name, dtype in DTYPES.items():
        run = launcher(
            "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"
            "template <typename T> __global__ void f(T* sum, const T* x, T* product, T* narrow, const double* wide) {"
            " const int i = blockIdx.x * blockDim.x + threadIdx.x;"
            " atomicAdd(sum, T(1)); product[i] = x[i] * x[i] + x[i]; narrow[i] = T(wide[i]); }",
            "PPPPP",
            f"f<{name}>",
        )
        x = rng.standard_normal(128).astype(dtype)
        wide = rng.standard_normal(128) * 10.0 ** rng.integers(-50, 5, 128)
        total, product, narrow = put(np.zeros(1, dtype)), put(np.empty_like(x)), put(np.empty_like(x))
        run(2, 64, total, put(x), product, narrow, put(wide))
        assert get(total)[0] == 128
        np.testing.assert_array_equal(get(product), x * x + x)
        if dtype != BFLOAT16:  # ml_dtypes rounds by way of float32, twice
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(get(narrow), wide.astype(dtype))


def test_shared_memory_begins_as_garbage(device):
    """Shared memory, dynamic or not, is NaN at the start of each block, and of dynamic size as asked."""
    put, get = device
    run = launcher(
        """extern "C" __global__ void f(float* out) {
            extern __shared__ float dynamic[];
            __shared__ float fixed[32];
            float* mine = out + 2 * (blockIdx.x * 32 + threadIdx.x);
            mine[0] = dynamic[threadIdx.x], mine[1] = fixed[threadIdx.x];
            dynamic[threadIdx.x] = fixed[threadIdx.x] = 1.0f;
        }""",
        "P",
    )
    out = put(np.zeros((3, 32, 2), np.float32))
    run(3, 32, out, shared=128)
    assert np.isnan(get(out)).all()


def test_constant_tables_and_structs_by_value(device):
    """Tables keep their values, and a struct passed by value arrives member by member."""
    put, get = device
    run = launcher(
        """struct Shape { int rows; long long columns; float scale[3]; };
        __constant__ float outer[2] = {10.0f, 20.0f};
        extern "C" __global__ void f(Shape shape, double* out, int last) {
            static const float inner[2] = {1.0f, 2.0f};
            const int i = threadIdx.x;
            out[i] = shape.rows + shape.columns + shape.scale[2] + outer[i % 2] + inner[i % 2] + last;
        }""",
        "iqfff4xPi",
    )
    out = put(np.zeros(4))
    run(1, 4, 100, 2000, 0.0, 0.0, 0.5, out, 30000)
    np.testing.assert_array_equal(get(out), [32111.5, 32122.5] * 2)


# ---- memory ----


def test_memory(device):
    """Blocks begin at multiples of 512 as NaN; the host's memory is reached while it is registered, or page-locked."""
    cupy, runtime = gpu.cupy(), gpu.cupy().cuda.runtime
    x = cupy.empty(500, np.float16)
    assert x.data.ptr % 512 == 0
    assert np.isnan(x.get()).all()
    run = launcher('extern "C" __global__ void f(int* x, int i) { x[i] = i; }', "Pi")
    host = np.zeros(8, np.int32)
    for _ in range(2):
        refused(lambda: run(1, 1, host.ctypes.data, 3), "out-of-range")
        runtime.hostRegister(host.ctypes.data, 32, 0)
        run(1, 1, host.ctypes.data, 7)
        refused(lambda: run(1, 1, host.ctypes.data, 8), "just behind memory of the host of 32 bytes")
        runtime.hostUnregister(host.ctypes.data)
    refused(lambda: run(1, 1, host.ctypes.data, 3), "out-of-range")
    np.testing.assert_array_equal(host, [0] * 7 + [7])
    locked = gpu.part("cupyx").zeros_pinned(4, np.int32)
    run(1, 1, locked.ctypes.data, 3)
    np.testing.assert_array_equal(locked, [0, 0, 0, 3])
    address = runtime.malloc(1000)
    runtime.free(address)
    for free in (lambda: runtime.free(address), lambda: runtime.hostUnregister(host.ctypes.data)):
        with pytest.raises(runtime.CUDARuntimeError, match="invalid argument"):
            free()


def test_bytes_are_counted(device):
    """Each access of an array counts with its size, vectors as one; shared memory, stacks and parameters do not."""
    put, _ = device
    run = launcher(
        """struct alignas(16) Four { float at[4]; };
        extern "C" __global__ void f(const Four* x, double* sum, unsigned int* count, int n) {
            __shared__ float part[32];
            const Four own = x[threadIdx.x];
            part[threadIdx.x] = own.at[0] + own.at[threadIdx.x % n];
            __syncthreads();
            if (threadIdx.x % 2) sum[threadIdx.x / 2] = part[threadIdx.x - 1];
            if (threadIdx.x == 0) atomicAdd(count, 1u);
        }""",
        "PPPi",
    )
    x, total, count = put(np.ones(128, np.float32)), put(np.zeros(16)), put(np.zeros(1, np.uint32))
    counters.reset()
    run(1, 32, x, total, count, 4)
    assert (counters.bytes_loaded, counters.bytes_stored) == (32 * 16 + 4, 16 * 8 + 4)
    run(1, 32, x, total, count, 4)
    assert (counters.bytes_loaded, counters.bytes_stored) == (2 * (32 * 16 + 4), 2 * (16 * 8 + 4))


def test_threads_of_the_host(device):
    """Launches of several host threads do not mix: arguments, results, counts and reports are each its own."""
    put, get = device
    run = launcher(
        'extern "C" __global__ void f(int* x, int i, int value) { __syncthreads(); x[i + threadIdx.x] = value; }', "Pii"
    )
    before, named, found = counters.launches, counters.kernels["f"], {}

    def work(k):
        x = put(np.zeros(64, np.int32))
        for value in range(50):
            run(1, 64, x, 0, 1000 * k + value)
            assert (get(x) == 1000 * k + value).all()
            refused(lambda: run(1, 1, x, 65 + k, 1), f" {4 * (k + 1)} bytes behind")
        found[k] = True

    in_threads(*[partial(work, k) for k in range(4)])
    assert sorted(found) == [0, 1, 2, 3]
    assert counters.launches - before == counters.kernels["f"] - named == 400
