"""Kernels for the simulated device are built once, by any number of processes, and errors of the compiler are told."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from lucid.base import gpu
from lucid.cuda import cache
from lucid.cuda.simulator import bootstrap, builder, compilation, runtime
from lucid.errors import KernelError, SettingError
from tests.cuda.simulator.launching import launcher, refused
from tests.pieces.children import python

needs_cupy = pytest.mark.skipif(not gpu.is_simulated(), reason="needs CuPy, which LUCID_CUDA_SIMULATOR has found")


@pytest.mark.usefixtures("simulated")
def test_errors_of_the_compiler_name_the_file():
    """What g++ refuses is reported with the file and line of the source, also in a header of ours."""
    source = '#include "lucid.cuh"\n\nextern "C" __global__ void f(float* x) {\n    x[0] = missing;\n}'
    refused(lambda: launcher(source, "P"), "test.cu:4", "missing")
    refused(lambda: launcher('#include "lucid.cuh"\n__global__ void f() { lucid::to_real<int>(f); }', ""), "test.cu:2")


SOURCES = {
    "header": (
        "#include <cooperative_groups.h>\nKERNEL {}",
        "has no header cooperative_groups.h: of CUDA's it has cuda.h",
    ),
    "function": (
        "KERNEL { x[0] = __isShared(x) + other(); }",
        "does not know __isShared, other: if that is a function",
    ),
    "PTX of registers": ('KERNEL { int r; asm("mov.u32 %0, %laneid;" : "=r"(r)); x[0] = r; }', "has no PTX: write"),
    "PTX alone": ('KERNEL { asm volatile("membar.gl;"); }', "has no PTX: write"),
    "header of the host": ("#include <cmath>\nKERNEL {}", "cmath is a header of the host, which NVRTC does not have"),
}


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize(("source", "words"), SOURCES.values(), ids=SOURCES)
def test_what_cuda_has_and_the_simulator_has_not(source, words):
    """Behind g++'s words stands what to do about it; nothing where the mistake may be anybody's."""
    source = source.replace("KERNEL", 'extern "C" __global__ void f(float* x)')
    with pytest.raises(KernelError) as caught:
        launcher(source, "P")
    assert words in str(caught.value).splitlines()[-1]
    assert str(caught.value).count("simulated device") == ("header of the host" not in str(caught.value))
    with pytest.raises(KernelError) as caught:
        launcher('extern "C" __global__ void f(float* x) { x[0] = ; }', "P")
    assert "simulated device" not in str(caught.value)


@needs_cupy
@pytest.mark.usefixtures("gpp_alone")
def test_headers_that_declare_what_is_there():
    """Headers of the toolkit may be included, and CUDA's constants have their values."""
    cupy = gpu.cupy()
    headers = [path.name for path in sorted(compilation.FOLDER.glob("toolkit/include/*.h"))]
    source = "".join(f"#include <{name}>\n" for name in headers)
    source += """extern "C" __global__ void f(double* x, float* y) {
        x[0] = CUDART_PI, x[1] = CUDART_L2E, x[2] = CUDART_INF, x[3] = make_double3(1, 2, 3).z;
        y[0] = CUDART_PI_F, y[1] = CUDART_LN2_F, y[2] = CUDART_MAX_NORMAL_F;
    }"""
    x, y = cupy.zeros(4), cupy.zeros(3, "float32")
    cupy.RawKernel(source, "f")((1,), (1,), (x, y))
    assert x.get().tolist() == [math.pi, math.log2(math.e), math.inf, 3.0]
    assert y.get().tolist() == np.float32([math.pi, math.log(2), np.finfo("float32").max]).tolist()


@needs_cupy
def test_constants_of_both_precisions():
    """Each constant of single precision is the one of double precision, rounded."""
    cupy = gpu.cupy()
    text = (compilation.FOLDER / "toolkit/include/math_constants.h").read_text()
    names = [name for name in re.findall(r"#define (CUDART_\w+) ", text) if f"#define {name}_F " in text]
    names = [name for name in names if name not in {"CUDART_NAN", "CUDART_MIN_DENORM", "CUDART_MAX_NORMAL"}]
    source = "".join(f"x[{n}] = (float){name} == {name}_F;" for n, name in enumerate(names))
    x = cupy.zeros(len(names), "int32")
    kernel = f'#include <math_constants.h>\nextern "C" __global__ void f(int* x) {{ {source} }}'
    cupy.RawKernel(kernel, "f")((1,), (1,), (x,))
    assert [name for name, same in zip(names, x.get(), strict=True) if not same] == []


@needs_cupy
@pytest.mark.usefixtures("gpp_alone")
def test_headers_of_the_host_beside_cudas():
    """A header of the host that declares what CUDA has too, such as clock, does not hide it or clash with it."""
    cupy = gpu.cupy()
    x = cupy.zeros(1)
    kernel = '#include <ctime>\nextern "C" __global__ void f(double* x) { x[0] = clock64() > 0; }'
    cupy.RawKernel(kernel, "f")((1,), (1,), (x,))
    assert x.get()[0] == 1.0


def test_built_once(tmp_path, monkeypatch, caplog):
    """A library is built once per text and folder, and said in the log."""
    caplog.set_level("INFO", "lucid.cuda")
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    first, second = (compilation.compiled('extern "C" __global__ void f() {}', [], [], []) for _ in range(2))
    assert [r.message.split(" in ")[0] for r in caplog.records] == ["built headers", "built f"]
    assert first == second
    assert list(tmp_path.glob("*.so")) == [first]


def test_headers_are_read_once(tmp_path, monkeypatch):
    """What sources begin with is kept as g++ made it, for each set of folders; where it cannot be used g++ reads it.

    Under definitions of one's own, of which there are many, it is not kept.
    """
    runs, run = [], subprocess.run

    def recorded(command, **settings):
        if "-x" in command:
            runs.append(["-include" in command, "c++-header" in command])
        return run(command, **settings)

    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    monkeypatch.setattr(builder.subprocess, "run", recorded)
    source = '#include <cuda_fp16.h>\nextern "C" __global__ void f(__half* x) { *x = %d; }'
    folders = [compilation.FOLDER / "toolkit/include"]
    with_headers, headers, alone = [True, False], [False, True], [False, False]
    for value, options, wanted in (
        (1, [], [headers, with_headers]),
        (2, [], [with_headers]),
        (3, ["-DA=1"], [alone]),
        (4, ["-Ielsewhere"], [headers, with_headers]),
        (5, ["-Ielsewhere"], [with_headers]),
    ):
        runs.clear()
        compilation.compiled(source % value, [], options, folders)
        assert runs == wanted, options
    for kept in tmp_path.glob("includes-*"):
        cache.keep(kept.name, b"of another compiler")
    runs.clear()
    compilation.compiled(source % 6, [], [], folders)
    assert runs == [with_headers, alone]
    with pytest.raises(KernelError, match=r"kernel\.cu:2:.*missing"):
        compilation.compiled(source.replace("%d", "missing"), [], [], folders)


def test_installations_share_libraries(tmp_path, monkeypatch):
    """Where CuPy's headers are makes no other library, but of which version they are does."""
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    text, names = 'extern "C" __global__ void f() {}', []
    for place, version in (("here", "1"), ("elsewhere", "1"), ("here", "2")):
        folder = tmp_path / place
        folder.mkdir(exist_ok=True)
        options = [f"-I{folder}/cub"]
        names.append(compilation.compiled(text, [], options, [folder], version))
    assert names[0] == names[1] != names[2]


def test_what_a_library_depends_on(tmp_path, monkeypatch):
    """Another text, name, flush, option or translation makes another library; the same is looked up by its text."""
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    text = 'template <class T> __global__ void f(T* x) { *x = 1; }\nextern "C" __global__ void g() {}'
    first = {"text": text, "names": ["f<int>"], "options": [], "folders": []}
    others = [{"text": text + "\n"}, {"names": ["f<float>"]}, {"names": ["f<int>", "f<float>"]}]
    others += [{"options": ["-ftz=true"]}, {"options": ["-DA=1"]}]
    made = [compilation.compiled(**first | other) for other in [{}, *others]]
    with monkeypatch.context() as never:
        never.setattr(compilation, "source_for_host", None)
        assert [compilation.compiled(**first | other) for other in [{}, *others]] == made
    monkeypatch.setattr(compilation, "_translation", lambda: "newer")
    assert len({*made, compilation.compiled(**first)}) == 1 + len(others) + 1


def test_processes_build_at_once(tmp_path):
    """Processes that need the same library at the same time all get one that works."""
    text = (
        "from lucid.cuda.simulator.builder import build\nimport ctypes\n"
        "p = build('t', 'f', ['-shared', '-fPIC'], what='t', source=lambda: 'extern \"C\" int f() { return 42; }')\n"
        "assert ctypes.CDLL(str(p)).f() == 42\n"
    )
    environment = {**os.environ, "LUCID_CACHE_DIR": str(tmp_path), "LUCID_CUDA_SIMULATOR": "0"}
    running = [subprocess.Popen([sys.executable, "-c", text], env=environment) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert len(list(tmp_path.glob("*.so"))) == 1
    assert not list(tmp_path.glob("*.so.*"))


def test_without_a_compiler(monkeypatch):
    """Without g++ the error says what to install."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(builder.shutil, "which", lambda _: None)
    with pytest.raises(KernelError, match="apt-get install"):
        builder._compiler.__wrapped__()


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("/bin/false", "/bin/false is no C++ compiler.*exit status 1"),
        ("/bin/true", "/bin/true is no C++ compiler|/bin/true cannot build t:\nit made no library, and said nothing"),
        ("missing", "'missing' was not found.*CXX"),
        ("g++; true", "'g++; true' was not found.*one program in CXX"),
        ("/bin/echo", "/bin/echo cannot build t"),
    ],
)
def test_compilers_that_are_none(tmp_path, monkeypatch, named, words):
    """A program in CXX that is missing or no compiler is named, and no other is taken in its place."""
    monkeypatch.setenv("CXX", named)
    monkeypatch.setattr(builder, "_compiler", builder._compiler.__wrapped__)
    with pytest.raises(KernelError, match=words.replace("+", r"\+")):
        builder.build("t", "", ["-shared"], what="t", source=str)


@pytest.mark.parametrize("text", ["abc", "1e3", "2.5", "-1", "65", " 1", "\u0663"])
def test_settings_that_are_no_numbers(monkeypatch, text):
    """Another value of the environment than a whole number is told by the variable's name, its bounds and its value."""
    monkeypatch.setenv("LUCID_CUDA_SIMULATOR", text)
    monkeypatch.setattr(bootstrap, "_state", None)
    with pytest.raises(SettingError, match="LUCID_CUDA_SIMULATOR holds a whole number of 0 to 64, got " + repr(text)):
        bootstrap.start()
    if text != "65":
        monkeypatch.setenv("LUCID_SIMULATOR_SEED", text)
        with pytest.raises(SettingError, match="LUCID_SIMULATOR_SEED holds a whole number of 0 to 18,446"):
            runtime._driver.__wrapped__()


@pytest.mark.parametrize(
    ("text", "status"), [("abc", 1), ("-1", 1), ("", 0), ("0", 0), pytest.param("2", 2, marks=needs_cupy)]
)
def test_what_the_number_of_devices_does(text, status):
    """A wrong number stops the import of lucid, none and 0 simulate nothing."""
    code = "import sys, lucid\nfrom lucid.base import gpu\nsys.exit(gpu.is_simulated() and lucid.cuda.device_count())"
    ran = python("-c", code, LUCID_CUDA_SIMULATOR=text)
    assert ran.returncode == status
    assert ("SettingError: the environment variable LUCID_CUDA_SIMULATOR" in ran.stderr) == (status == 1)
