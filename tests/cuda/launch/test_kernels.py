"""Kernels are found, joined, grouped and launched as declared; a user's own are checked against their source."""

from __future__ import annotations

import ctypes
import math
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import lucid
from lucid.base import dtype as dtypes
from lucid.base import gpu
from lucid.base.locks import Once
from lucid.cuda import driver
from lucid.cuda.launch import kernels
from lucid.cuda.launch.kernels import C_TYPES, FLOATS, Kernel, Launcher, Unit
from lucid.cuda.simulator.builder import build
from lucid.cuda.source import sources
from lucid.cuda.source.signature import Source
from lucid.errors import DeviceError, DtypeError, KernelError
from tests.pieces import in_threads
from tests.pieces.children import python


@pytest.fixture
def declared(monkeypatch):
    """Keep what a test declares from the table of kernels, and give it a source of its own."""
    monkeypatch.setattr(kernels, "KERNELS", [])
    monkeypatch.setattr(kernels, "joined", lambda file: DECLARED)
    monkeypatch.setattr(kernels, "source", lambda file: Source(DECLARED, f"kernels/{file}"))


DECLARED = """
template <typename T> __global__ void one(T* x, long long n) {}
template <typename T, int N> __global__ void two(const T* x, double value) {}
__global__ void three(void* x) {}
template <class T> __global__ void late(T* x) {}
"""


# ---- sources ----


def test_folder(tmp_path, monkeypatch):
    """Kernels are found inside an installed package, else beside it, and only where the shared header is."""
    assert (sources.folder() / "lucid.cuh").is_file()
    package = tmp_path / "lucid"
    (package / "cuda").mkdir(parents=True)
    monkeypatch.setattr(sources, "__file__", str(package / "cuda" / "source" / "sources.py"))
    find = sources.folder.__wrapped__
    (tmp_path / "kernels").mkdir()
    (package / "kernels").mkdir()
    with pytest.raises(KernelError, match="incomplete"):
        find()
    (tmp_path / "kernels" / "lucid.cuh").touch()
    assert find() == tmp_path / "kernels"
    (package / "kernels" / "lucid.cuh").touch()
    assert find() == package / "kernels"


def test_headers_are_pasted_once(tmp_path, monkeypatch):
    """Headers of ours are pasted where first included, those of CUDA included at the top, lines keep their numbers."""
    (tmp_path / "lucid.cuh").write_text("#include <cuda_fp16.h>\nshared\n")
    (tmp_path / "more.cuh").write_text('#include "lucid.cuh"\nmore\n')
    monkeypatch.setattr(sources, "folder", lambda: tmp_path)
    text = sources.paste('// first\n#include "more.cuh"\n  #include "lucid.cuh"\nlast\n', "mine.cu")
    lines = text.splitlines()
    assert lines[0] == "#include <cuda_fp16.h>"
    where, numbered = None, []
    for line in lines[1:]:
        if line.startswith("#line"):
            _, number, name = line.split()
            where = [int(number), name.strip('"')]
            continue
        if line in {"shared", "more", "// first", "last"}:
            numbered.append((line, *where))
        where[0] += 1
    assert numbered == [
        ("// first", 1, "mine.cu"), ("shared", 2, "kernels/lucid.cuh"), ("more", 2, "kernels/more.cuh"),
        ("last", 4, "mine.cu"),
    ]  # fmt: skip
    with pytest.raises(KernelError, match=r'mine\.cu includes "none\.cuh"'):
        sources.paste('#include "none.cuh"', "mine.cu")


def test_types():
    """Every real dtype of lucid has a name in CUDA C++; the half types and float and double are the floating ones."""
    known = {dtype.numpy for dtype in dtypes.DTYPES.values() if not dtype.is_complex}
    assert set(C_TYPES) == known
    assert [C_TYPES[np.dtype(t)] for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)] == list(FLOATS)


# ---- declarations ----


@pytest.mark.parametrize("whole", [False, True], ids=["alone", "with its unit"])
def test_what_is_compiled_is_what_is_launched(declared, monkeypatch, whole):
    """A first launch compiles its kernel, once; where a driver wants that, all that its file declares for its dtype."""
    loaded = []

    class Driver:
        launch = staticmethod(lambda *call: None)
        device = staticmethod(lambda: 0)
        stream = staticmethod(lambda: SimpleNamespace(ptr=0))
        whole_units = whole

        def load(self, unit):
            loaded.append((unit.name, dict(unit.signatures)))
            return dict.fromkeys(unit.signatures, 1)

    monkeypatch.setattr(kernels, "_driver", Driver())
    monkeypatch.setattr(kernels, "_loaded", Once())
    one = Kernel("a", "one", [("float",), ("double",)])
    two = Kernel("a", "two", [("float", "4"), ("float", "8")])
    three = Kernel("a", "three", [()])
    Kernel("b", "one", [("float",)])
    assert loaded == []
    one["float"](1, 1, 0, 0)
    two["float", "8"](1, 1, 0, 0.0)
    one["float"](2, 1, 0, 0)
    first = [("a.cu for float", {"one<float>": "Pq"}), ("a.cu for float", {"two<float, 8>": "Pd"})]
    together = [("a.cu for float", {"one<float>": "Pq", "two<float, 4>": "Pd", "two<float, 8>": "Pd"})]
    assert loaded == (together if whole else first)
    loaded.clear()
    three[()](1, 1, 0)
    one["double"](1, 1, 0, 0)
    assert loaded == [("a.cu", {"three": "P"}), ("a.cu for double", {"one<double>": "Pq"})]
    late = Kernel("a", "late", [("double",)])
    late["double"](1, 1, 0)
    assert loaded[2:] == [("a.cu for double", {"late<double>": "P"})]
    assert one["float"] is one["float"]


def test_threads_compile_at_once(declared, monkeypatch):
    """Kernels of one file are compiled side by side; who asks for one that is under way waits, and gets the same."""
    both, loaded = threading.Barrier(2, timeout=60), []

    class Driver:
        device = staticmethod(lambda: 0)
        whole_units = False

        def load(self, unit):
            loaded.append(list(unit.signatures))
            both.wait()  # breaks unless two kernels are under way
            return {name: int(name[-2]) for name in unit.signatures}

    monkeypatch.setattr(kernels, "_driver", Driver())
    monkeypatch.setattr(kernels, "_loaded", Once())
    Kernel("a", "two", [("float", "4"), ("float", "8")])
    names = ["two<float, 4>", "two<float, 8>"] * 3
    with ThreadPoolExecutor(len(names)) as pool:
        handles = [*pool.map(lambda name: kernels._handle("a", "float", name), names)]
    assert sorted(loaded) == [["two<float, 4>"], ["two<float, 8>"]]
    assert handles == [4, 8] * 3


def test_undeclared_instances_are_refused(declared):
    """An instance that is not declared is an error that lists those that are; so is a kernel that is in no source."""
    kernel = Kernel("a", "one", [("float",), ("double",)])
    with pytest.raises(KernelError, match=r"one<int> is not declared.*one<float>, one<double>"):
        kernel["int"]
    with pytest.raises(KernelError, match=r"kernels/a\.cu has no kernel 'none'; it has one, two, three, late"):
        Kernel("a", "lucid::none", [("float",)])["float"]
    with pytest.raises(KernelError, match=r"two is a template <typename T, int N>, got 'two<float>'"):
        Kernel("a", "two", [("float",)])["float"]


def test_declaring_reads_nothing():
    """What lucid declares at import is read when it is launched first: until then no file of kernels is opened."""
    script = """
import sys
opened = []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
import lucid
from lucid.cuda.launch.kernels import KERNELS
assert len(KERNELS) > 100
assert not [name for name in opened if name.endswith((".cu", ".cuh"))]
KERNELS[0].signature(KERNELS[0].instances[0])
assert [name for name in opened if name.endswith(".cuh")]
"""
    ran = python("-c", script)
    assert ran.returncode == 0, ran.stderr


# ---- the path to the driver ----

LIBCUDA = """
#include <cstring>
extern "C" {
unsigned long long seen[11];
unsigned char packed[64];
int answers[2];
int asked, without_context;
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** parameters, void** extra) {
    const unsigned long long now[11] = {(unsigned long long)f, gx, gy, gz, bx, by, bz, shared,
        (unsigned long long)stream, (unsigned long long)parameters, *(unsigned long long*)extra[3]};
    memcpy(seen, now, sizeof now);
    if (extra[0] != (void*)1 || extra[2] != (void*)2 || extra[4] != 0) return 1;
    memcpy(packed, extra[1], now[10]);
    const int answer = answers[0];
    answers[0] = answers[1], answers[1] = 0;
    return answer;
}
int cuFuncSetAttribute(void* f, int attribute, int value) {
    ++asked;
    if (without_context) return --without_context, 201;
    return attribute == 8 && value <= 200000 ? 0 : 1;
}
int cuGetErrorName(int code, const char** to) { *to = code == 1 ? "CUDA_ERROR_INVALID_VALUE" : "OTHER"; return 0; }
int cuGetErrorString(int code, const char** words) { *words = "invalid argument"; return 0; }
}
"""
ADDRESS = 0x7F12_3456_7890_ABCD


@pytest.fixture
def libcuda(monkeypatch):
    """Stand in for libcuda and CuPy: what is launched can be read from the library that is returned."""
    library = ctypes.CDLL(
        str(build("libcuda", LIBCUDA, ["-shared", "-fPIC"], what="a stand-in for libcuda", source=lambda: LIBCUDA))
    )
    library.freed = 0
    compiled = library.compiled = []

    class RawModule:
        def __init__(self, *, code, options, name_expressions):
            compiled.append((code, options, name_expressions))

        def compile(self):
            if "error" in compiled[-1][0]:
                raise CompileError("k.cu(3): error: no such thing")

        def get_function(self, name):
            return SimpleNamespace(kernel=SimpleNamespace(ptr=ADDRESS))

    class CompileError(Exception):
        pass

    def free(address):
        library.freed += 1

    class DriverError(RuntimeError):
        def __init__(self, status):
            self.status = status

    def launch(handle, *rest):
        *sizes, stream, parameters, extra = rest
        pointers = [ctypes.c_void_p(address) for address in (stream, parameters, extra)]
        if code := library.cuLaunchKernel(ctypes.c_void_p(handle), *sizes, *pointers):
            raise DriverError(code)

    runtime = SimpleNamespace(getDevice=lambda: library.device, free=free)
    cuda = SimpleNamespace(
        runtime=runtime,
        get_current_stream=lambda: SimpleNamespace(ptr=library.stream + library.device),
        compiler=SimpleNamespace(CompileException=CompileError),
        Device=lambda: SimpleNamespace(compute_capability="90"),
    )
    library.device, library.stream = 0, ADDRESS
    monkeypatch.setattr(gpu, "cupy", lambda: SimpleNamespace(cuda=cuda, RawModule=RawModule))
    monkeypatch.setattr(gpu, "part", lambda name: SimpleNamespace(launchKernel=launch))
    monkeypatch.setattr(driver.ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(kernels, "_make_driver", driver.CudaDriver)
    monkeypatch.setattr(kernels, "_driver", None)
    (ctypes.c_int * 2).in_dll(library, "answers")[:] = [0, 0]
    library.asked_for_shared = ctypes.c_int.in_dll(library, "asked")
    library.without_context = ctypes.c_int.in_dll(library, "without_context")
    library.asked_for_shared.value = library.without_context.value = 0
    return library


def kernel_of(unit):
    return Launcher("f", unit.signatures["f"], lambda name: kernels.driver().load(unit)[name])


UNIT = Unit("k.cu for float", "k", "source", {"f": "Piqfd"})


def test_a_launch_reaches_the_driver(libcuda, caplog):
    """The driver gets handle, sizes and stream whole, and the parameters where the C ABI puts them; NVRTC runs once."""
    caplog.set_level("INFO", "lucid.cuda")
    run = kernel_of(UNIT)
    for _ in range(2):
        run((2**31 - 1, 3), (32, 4, 2), ADDRESS, -5, -(2**60), 1.5, 0.1, shared=1000)
    seen = list((ctypes.c_ulonglong * 11).in_dll(libcuda, "seen"))
    assert seen == [ADDRESS, 2**31 - 1, 3, 1, 32, 4, 2, 1000, ADDRESS, 0, 40]
    packed = bytes((ctypes.c_ubyte * 40).in_dll(libcuda, "packed"))
    assert struct.unpack("=Qi4xqf4xd", packed) == (ADDRESS, -5, -(2**60), 1.5, 0.1)
    assert libcuda.compiled == [("source", ("--std=c++17",), ("f",))]
    (said,) = caplog.messages
    assert said.startswith("compiled k.cu for float (f), sm_90, or found in CuPy's cache, in 0.")


def test_a_bound_launch(libcuda):
    """Of a launch with its values only addresses change, and the last values where so many are given each time."""
    run = kernel_of(UNIT)
    values = 0, -5, -(2**60), 1.5, 0.1
    for last in range(5):
        again = run.bound(1, 32, values, [(0, 1, 3)], last)
        for given in (values[5 - last :], [2 * value for value in values[5 - last :]]):
            again([0, ADDRESS], *given)
            packed = bytes((ctypes.c_ubyte * 40).in_dll(libcuda, "packed"))
            expected = (ADDRESS + 3, *values[1 : 5 - last], *given)
            assert struct.unpack("=Qi4xqf4xd", packed) == pytest.approx(expected, rel=1e-7)
            assert (ctypes.c_ulonglong * 11).in_dll(libcuda, "seen")[10] == 40


def test_each_device_and_stream_has_its_own(libcuda):
    """A kernel is loaded once for each device, and goes to the stream that is current there."""
    run = kernel_of(UNIT)
    for index in (0, 1, 0, 1):
        libcuda.device = index
        run(1, 1, 0, 0, 0, 0.0, 0.0)
        assert (ctypes.c_ulonglong * 11).in_dll(libcuda, "seen")[8] == ADDRESS + index
    assert len(libcuda.compiled) == 2


def test_errors_of_the_driver(libcuda):
    """Codes become words with kernel, grid and block; a missing context is made current and the launch repeated."""
    run, answers = kernel_of(UNIT), (ctypes.c_int * 2).in_dll(libcuda, "answers")
    answers[0] = 1
    with pytest.raises(
        KernelError, match=r"launch of f, grid \(0, 1, 1\), block \(32, 1, 1\): CUDA_ERROR_INVALID_VALUE .*at least one"
    ):
        run(0, 32, 0, 0, 0, 0.0, 0.0)
    answers[0] = 201
    run(1, 32, 0, 0, 0, 0.0, 0.0)
    assert libcuda.freed == 1
    answers[:] = [201, 201]
    with pytest.raises(KernelError, match="OTHER"):
        run(1, 32, 0, 0, 0, 0.0, 0.0)
    run(1, 32, 0, 0, 0, 0.0, 0.0, shared=100_000)
    with pytest.raises(KernelError, match="300,000 bytes of shared memory"):
        run(1, 32, 0, 0, 0, 0.0, 0.0, shared=300_000)
    with pytest.raises(KernelError, match=r"NVRTC cannot compile k\.cu"):
        kernel_of(Unit("k.cu", "k", "error", {"f": ""}))(1, 1)


def test_shared_memory_is_asked_for_once(libcuda):
    """A kernel's limit is raised when it is too low, also in a thread that has not used the device, and not again."""
    run = kernel_of(UNIT)
    libcuda.without_context.value = 1
    for size in (60_000, 60_000, 50_000, 100_000, 60_000, 40_000):
        run(1, 32, 0, 0, 0, 0.0, 0.0, shared=size)
    # once without a context and once with it, then for the larger size
    assert (libcuda.asked_for_shared.value, libcuda.freed) == (3, 1)
    for refused in (300_000, 300_000):
        with pytest.raises(KernelError, match=f"{refused:,} bytes of shared memory are refused"):
            run(1, 32, 0, 0, 0, 0.0, 0.0, shared=refused)
    libcuda.without_context.value = 2
    with pytest.raises(KernelError, match="OTHER"):
        run(1, 32, 0, 0, 0, 0.0, 0.0, shared=150_000)
    run(1, 32, 0, 0, 0, 0.0, 0.0, shared=150_000)


@pytest.mark.parametrize("address", [0, 2, ADDRESS])
def test_streams(address, libcuda):
    """The driver gets the address of the current stream, which is 0 of the default one."""
    libcuda.stream = address
    kernel_of(UNIT)(1, 1, 0, 0, 0, 0.0, 0.0)
    assert (ctypes.c_ulonglong * 11).in_dll(libcuda, "seen")[8] == address


def test_threads_launch_at_once(libcuda):
    """Threads that launch one kernel at the same time compile it once for each device and lose no launch."""
    run = kernel_of(UNIT)
    run(1, 1, 0, 0, 0, 0.0, 0.0)
    failed = []

    def work():
        try:
            for i in range(500):
                run(1, 1, i, i, i, 0.0, 0.0)
        except KernelError as error:
            failed.append(error)

    in_threads(*[work] * 4)
    assert failed == []
    assert len(libcuda.compiled) == 1


# ---- kernels of the user's own ----

SOURCE = r"""
#include "lucid.cuh"

// __global__ void not_this(int x)
extern "C" __global__ void __launch_bounds__(256) saxpy(const float* __restrict__ x, float *y, float a, long long n) {
    LUCID_FOR(i, n) y[i] += a * x[i];
}
__global__ void numbers(double* out, bool b, signed char c, unsigned short s, unsigned u, size_t q, __half h,
                        __nv_bfloat16 w, double d) {
    const double value[8] = {(double)b, (double)c, (double)s, (double)u, (double)q, __half2float(h), (float)w, d};
    for (int i = 0; i < 8; ++i) out[i] = value[i];
}
template <typename T, int FACTOR>
__global__ void scaled(const T* x, T* y, T shift, unsigned int n) {
    LUCID_FOR(i, n) y[i] = lucid::from_real<T>(lucid::to_real(x[i]) * FACTOR + lucid::to_real(shift));
}
"""


@pytest.fixture(scope="module")
def module():
    """Compile the source for the device, simulated or not."""
    return lucid.cuda.compile(SOURCE)


@pytest.mark.gpu
def test_a_kernel_of_ones_own(module, rng):
    """It takes tensors and numbers, converts numbers to its types, and launches in order with lucid's operations."""
    x, y = (lucid.tensor(rng.standard_normal(1000).astype(np.float32), device="cuda") for _ in range(2))
    expected = (2 * y.cpu() + 2.5 * x.cpu()) * 3
    z = y * 2
    assert module["saxpy"]((4,), (256,), (x, z, np.float64(2.5), np.int64(1000))) is None
    np.testing.assert_allclose((z * 3).cpu().numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
    out = lucid.empty(8, dtype=lucid.float64, device="cuda")
    values = (True, -7, 65535, 2**32 - 1, 2**63, 0.1, 0.1, 0.1)
    module.get_function("numbers")(1, 1, (out, *values))
    rounded = [1, -7, 65535, 2**32 - 1, 2.0**63, np.float16(0.1), ml_dtypes.bfloat16(0.1), 0.1]
    assert out.tolist() == [float(value) for value in rounded]
    module["numbers"](1, 1, (out.data_ptr(), *values))
    module["numbers"](1, 1, (out, *values[:5], 70000.0, 1e39, -1e39))
    assert out.tolist()[5:] == [math.inf, math.inf, -1e39]
    with pytest.raises(OverflowError, match="int too large to convert to float"):
        module["numbers"](1, 1, (out, *values[:7], 10**400))


@pytest.mark.gpu
def test_numbers_that_no_float_holds():
    """An operation raises what it raises on the CPU, at its first call and where its launch is known."""
    number = 10**400
    for device in ("cpu", "cuda"):
        x = lucid.ones(3, device=device)
        for call in (
            lambda x, n: x + n, lambda x, n: n + x, lambda x, n: x < n, lambda x, n: lucid.clamp(x, max=n),
            lambda x, n: x.add_(n), lambda x, n: lucid.where(x > 0, x, n),
        ):  # fmt: skip
            for _ in range(2):
                with pytest.raises(OverflowError, match="int too large to convert to float"):
                    call(x, number)
                call(x, 0)
        assert x.tolist() == [1.0] * 3


@pytest.mark.gpu
@pytest.mark.parametrize("name", FLOATS)
def test_templates_of_ones_own(module, rng, name):
    """A template is compiled for the arguments in its name, and its parameters are checked for those."""
    dtype = next(d for d, c in C_TYPES.items() if c == name)
    values = rng.standard_normal(100).astype(dtype)
    x = lucid.from_numpy(values).cuda()
    y = lucid.empty_like(x)
    module[f"scaled<{name}, 4>"](1, 128, (x, y, 0.5, 100))
    real = values.astype(np.float64 if name == "double" else np.float32)
    np.testing.assert_array_equal(y.cpu().numpy(), (real * 4 + 0.5).astype(dtype))
    with pytest.raises(DtypeError, match="x points to"):
        module[f"scaled<{name}, 4>"](1, 128, (x.to(lucid.int32), y, 0.5, 100))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        (
            lambda x, y: (x, y, 1.0),
            KernelError,
            r"takes 4 arguments \(float\* x, float\* y, float a, long long n\), got 3",
        ),
        (lambda x, y: (x.double(), y, 1.0, 8), DtypeError, "points to float32, got an array of float64"),
        (lambda x, y: (x.cpu(), y, 1.0, 8), DeviceError, "on the CPU"),
        (lambda x, y: (x[::2], y, 1.0, 8), KernelError, "not contiguous"),
        (lambda x, y: ("x", y, 1.0, 8), DtypeError, r"float\* x needs a CUDA tensor, got str"),
        (lambda x, y: (x, y, "a", 8), DtypeError, "float a needs a number"),
        (lambda x, y: (x, y, 1.0, 8.0), DtypeError, "long long n needs a number, got float"),
        (lambda x, y: (x, y, 1.0, 2**63), DtypeError, "long long n holds"),
        (lambda x, y: (x, y, x[0], 8), DtypeError, "float a needs a number, got Tensor"),
    ],
)
def test_arguments_that_do_not_fit(module, args, error, words):
    """What does not fit the declared parameter is refused before the launch, with kernel and parameter."""
    x, y = lucid.ones(8, device="cuda"), lucid.zeros(8, device="cuda")
    with pytest.raises(error, match=words) as raised:
        module["saxpy"](1, 8, args(x, y))
    assert "saxpy" in str(raised.value)
    assert y.tolist() == [0.0] * 8


@pytest.mark.gpu
def test_sources_that_are_refused(module):
    """Sources without kernels, with structs by value or with errors, and kernels that are not there, are named."""
    with pytest.raises(KernelError, match="declares no kernel"):
        lucid.cuda.compile("__device__ void f() {}")
    with pytest.raises(KernelError, match="f: S s is passed by value"):
        lucid.cuda.compile("struct S { int a; }; __global__ void f(S s) {}")
    with pytest.raises(KernelError, match=r"mine\.cu.3"):
        lucid.cuda.compile("__global__ void f(int n) {\n\n  n = missing;\n}", name="mine.cu")
    with pytest.raises(KernelError, match=r"no kernel 'axpy'; it has saxpy, numbers, scaled<typename T, int FACTOR>"):
        module["axpy"]
    with pytest.raises(KernelError, match=r"scaled is a template <typename T, int FACTOR>"):
        module["scaled"]
    with pytest.raises(KernelError, match=r"scaled is a template <typename T, int FACTOR>, got"):
        module["scaled<float>"]
    assert repr(module) == "Module('custom.cu': saxpy, numbers, scaled<...>)"
    assert repr(module["saxpy"]) == "Function(saxpy(float* x, float* y, float a, long long n))"
