"""The simulated device runs CUDA threads as the hardware would, and stops a kernel that does what it may not."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from lucid.cuda import kernels
from lucid.cuda.kernels import Launcher, Unit
from lucid.cuda.simulator import builder, driver, memory, runtime
from lucid.cuda.simulator.counting import counters
from lucid.cuda.sources import paste
from lucid.errors import KernelError

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "__half": np.dtype(np.float16),
    "__nv_bfloat16": BFLOAT16,
}
SEEDS = 0, 1, 2, 3


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    """Run kernels on the simulated device, whatever device there is, in the order of their threads."""
    runtime.set_seed(0)
    monkeypatch.setattr(kernels, "_make_driver", driver.SimulatedDriver)
    monkeypatch.setattr(kernels, "_driver", None)
    yield
    runtime.set_seed(0)


@pytest.fixture
def device():
    """Return a function that copies an array to the device, and one that copies it back."""
    held = {}

    def put(values):
        values = np.ascontiguousarray(values)
        address = memory.allocate(values.nbytes)
        ctypes.memmove(address, values.ctypes.data, values.nbytes)
        held[address] = values.dtype, values.shape
        return address

    def get(address):
        dtype, shape = held[address]
        values = np.empty(shape, dtype)
        ctypes.memmove(values.ctypes.data, address, values.nbytes)
        return values

    yield put, get
    for address in held:
        memory.free(address)


def launcher(source, signature, name="f"):
    """Compile a source and return its kernel."""
    found = kernels.load(Unit("test.cu", "test", paste(source, "test.cu"), {name: signature}))
    return Launcher(name, signature, found.__getitem__)


def refused(run, *words):
    """Say what the device reports when it stops a launch; all the words are in it."""
    with pytest.raises(KernelError) as error:
        run()
    for word in words:
        assert word in str(error.value), error.value
    return str(error.value)


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
    """Sum, max and min of a block by the shared header equal NumPy's in float64, for every thread."""
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
            sum = block_sum(sum), most = block_max(most), least = block_min(least);
            double* mine = out + 3 * (blockIdx.x * blockDim.x * blockDim.y + thread_of_block());
            mine[0] = sum, mine[1] = most, mine[2] = least;
        }""",
        "PPq",
        f"f<{name}>",
    )
    runtime.set_seed(seed)
    x = rng.standard_normal((3, 1000)).astype(DTYPES[name])
    exact = x.astype(np.float64)
    out = put(np.zeros((3, block, 3)))
    run(3, (block // 2, 2), put(x), out, 1000)
    expected = np.stack([exact.sum(1), exact.max(1), exact.min(1)], -1)[:, None]
    np.testing.assert_allclose(get(out), np.broadcast_to(expected, (3, block, 3)), rtol=1e-5, atol=1e-4)


def test_argmax_by_shuffled_structs(device, rng):
    """A struct of several words travels through shuffles; of equal values the first wins, and a NaN over all."""
    put, get = device
    run = launcher(
        """#include "lucid.cuh"
        using namespace lucid;
        extern "C" __global__ void f(const float* x, long long* out, int n) {
            Place<float> best = {Limits<float>::least(), 0x7fffffffffffffffLL};
            for (long long i = threadIdx.x; i < n; i += blockDim.x)
                best = FirstMax()(best, Place<float>{x[blockIdx.x * n + i], i});
            best = block_reduce(best, Place<float>{Limits<float>::least(), 0x7fffffffffffffffLL}, FirstMax());
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


def test_atomics_and_half_types(device, rng):
    """Atomic additions of every floating dtype add up, and the half types round like NumPy's and ml_dtypes'."""
    put, get = device
    for name, dtype in DTYPES.items():
        run = launcher(
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


# ---- what is reported ----


def test_missing_barrier_shows(device):
    """Without its barrier a reversal in shared memory comes out wrong, with it right, in every order of threads."""
    put, get = device
    source = """extern "C" __global__ void f(const float* x, float* y) {
        __shared__ float s[64]; s[threadIdx.x] = x[threadIdx.x]; %s y[threadIdx.x] = s[63 - threadIdx.x]; }"""
    x = np.arange(64, dtype=np.float32)
    for seed in SEEDS:
        runtime.set_seed(seed)
        for barrier, right in (("__syncthreads();", True), ("", False)):
            y = put(np.zeros(64, np.float32))
            launcher(source % barrier, "PP")(1, 64, put(x), y)
            assert np.array_equal(get(y), x[::-1]) is right


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
    gone = memory.allocate(400)
    memory.free(gone)
    refused(lambda: run(1, 32, gone, 0, 0), "out-of-range read")


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


def test_device_goes_on_after_an_error(device):
    """A launch after a stopped one works as if that had not been."""
    put, get = device
    run = launcher(
        'extern "C" __global__ void f(int* x, int bad) { __shared__ int s[64]; s[threadIdx.x] = threadIdx.x;'
        " __syncthreads(); if (bad && threadIdx.x == 9) x[1 << 20] = 0; __syncthreads();"
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
        refused(lambda grid=grid, block=block: run(grid, block), "launch of f, grid (", "block (")
    refused(lambda: run(0, 1), "at least one block")
    refused(lambda: run(2**32 + 1, 1), "4,294,967,297 blocks")
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


# ---- building ----


def test_errors_of_the_compiler_name_the_file():
    """What g++ refuses is reported with the file and line of the source, also in a header of ours."""
    source = '#include "lucid.cuh"\n\nextern "C" __global__ void f(float* x) {\n    x[0] = missing;\n}'
    refused(lambda: launcher(source, "P"), "test.cu:4", "missing")
    refused(lambda: launcher('#include "lucid.cuh"\n__global__ void f() { lucid::to_real<int>(f); }', ""), "test.cu:2")


def test_built_once(tmp_path, monkeypatch, caplog):
    """A library is built once per text and folder, said in the log, and found again by other processes."""
    caplog.set_level("INFO", "lucid.cuda")
    monkeypatch.setattr(builder, "cache_folder", lambda: tmp_path)
    source = 'extern "C" __global__ void f() {}'
    for _ in range(2):
        kernels.drive(driver.SimulatedDriver)
        launcher(source, "")(1, 1)
    assert [r.message.split(" in ")[0] for r in caplog.records] == ["built test.cu"]
    assert len(list(tmp_path.glob("*.so"))) == 1


def test_processes_build_at_once(tmp_path):
    """Processes that need the same library at the same time all get one that works."""
    text = (
        "from lucid.cuda.simulator.builder import build\nimport ctypes\n"
        "p = build('t', '', ['-shared', '-fPIC'], what='t', source='extern \"C\" int f() { return 42; }')\n"
        "assert ctypes.CDLL(str(p)).f() == 42\n"
    )
    environment = {**os.environ, "LUCID_CACHE_DIR": str(tmp_path)}
    running = [subprocess.Popen([sys.executable, "-c", text], env=environment) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert len(list(tmp_path.glob("*.so"))) == 1
    assert not list(tmp_path.glob("*.so.*"))


def test_folder_that_cannot_be_written(tmp_path, monkeypatch, caplog):
    """Where the cache folder cannot be written, libraries go to a temporary one, with a warning."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LUCID_CACHE_DIR", str(tmp_path / "file" / "cache"))
    folder = builder.cache_folder.__wrapped__()
    assert folder.is_dir()
    assert "are lost" in caplog.text
    folder.rmdir()


def test_without_a_compiler(monkeypatch):
    """Without g++ the error says what to install."""
    monkeypatch.setattr(builder.shutil, "which", lambda _: None)
    with pytest.raises(KernelError, match="apt-get install"):
        builder._compiler.__wrapped__()


def test_device_variables_are_refused():
    """A __device__ variable would be taken for shared memory, so the simulated device refuses it by name."""
    refused(lambda: launcher('__device__ int counter = 0;\nextern "C" __global__ void f() {}', ""), "int counter")


# ---- memory ----


def test_memory():
    """Allocations begin at multiples of 512 as NaN; lent memory may overlap; what is not there cannot be freed."""
    address = memory.allocate(1000)
    assert address % 512 == 0
    assert np.isnan(np.frombuffer(ctypes.string_at(address, 1000), np.float16)).all()
    memory.free(address)
    with pytest.raises(ValueError, match="no allocation"):
        memory.free(address)
    run = launcher('extern "C" __global__ void f(int* x, int i) { x[i] = i; }', "Pi")
    host = np.zeros(8, np.int32)
    refused(lambda: run(1, 1, host.ctypes.data, 3), "out-of-range")
    memory.lend(host.ctypes.data, 32)
    memory.lend(host[2:].ctypes.data, 8)
    run(1, 1, host.ctypes.data, 7)
    memory.forget(host[2:].ctypes.data)
    run(1, 1, host.ctypes.data, 3)
    np.testing.assert_array_equal(host, [0, 0, 0, 3, 0, 0, 0, 7])
    memory.forget(host.ctypes.data)
    refused(lambda: run(1, 1, host.ctypes.data, 3), "out-of-range")
    with pytest.raises(ValueError, match="lent"):
        memory.forget(host.ctypes.data)


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

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 1, 2, 3]
    assert counters.launches - before == counters.kernels["f"] - named == 400
