"""Which variables of a source are the device's: wherever and by whatever their declarations begin."""

from __future__ import annotations

import numpy as np
import pytest

from lucid.base import gpu
from lucid.cuda.simulator import compilation
from lucid.cuda.simulator.source import declarations
from lucid.cuda.simulator.source.declarations import marked
from tests.cuda.simulator.launching import launcher

# Declarations of `n`, an int of the value 5 that a kernel reaches by that name.
VARIABLES = {
    "alone": "__device__ int n = 5;",
    "behind another": "__device__ int first; __device__ int n = 5;",
    "behind a function": "__device__ int one() { return 1; } __device__ int n = 5;",
    "in one line with its namespace": "namespace a { __device__ int n = 5; } using a::n;",
    "behind its type": "int __device__ n = 5;",
    "behind static": "static int __device__ n = 5;",
    "behind a comment": "/* the */ __device__ /* const */ int n = 5;",
    "behind a comment that says const": "// of const values\n__device__ int n = 5;",
    "in braces": "__device__ int n{5};",
    "a macro": "#define GLOBAL __device__\nGLOBAL int n = 5;",
    "a macro of several words": "#define GLOBAL static __device__\nGLOBAL int n = 5;",
    "one of two macros": "#ifdef OTHER\n#define GLOBAL\n#else\n# define  GLOBAL __device__\n#endif\nGLOBAL int n = 5;",
    "a macro with parameters": "#define VARIABLE(t, name) __device__ t name = 5;\nVARIABLE(int, n)",
    "a macro without the end": "#define VARIABLE(t, name) __device__ t name\nVARIABLE(int, n) = 5;",
    "a macro of lines": "#define VARIABLE(t, name) \\\n  __device__ t name = \\\n 5;\nVARIABLE(int, n)",
    "aligned": "__device__ alignas(16) int n = 5;",
    "of a list": "__device__ int first = 1, n = 5;",
    "behind a list in braces": "__device__ int first[2] = {1, 2}, n = 5;",
    "of a type that is defined there": "__device__ struct P { int a; } p = {5};\n#define n p.a",
    "a pointer": "__device__ int kept = 5; __device__ int* const at = &kept; __device__ const int* q;\n#define n kept",
    "without a word": "int n = 5;",
    "static": "static int n = 5;",
    "in a namespace without a word": "namespace a { int n = 5; } using a::n;",
    "a template": "template <class T> __device__ T of = 5;\n#define n of<int>",
}
# What begins as one and is none.
OTHERS = {
    "a function": "__device__ int f(int a = 5);",
    "a function of a condition": "template <int N> __device__ typename A<N == 2, int>::type f() { return 5; }",
    "a function without a name": "auto f = [] __device__ (int a) { int b = a; return b; };",
    "an operator": "struct S { int v; __device__ S& operator=(int a) { v = a; return *this; } };",
    "constant": "__device__ const int n = 5;",
    "constant before": "const __device__ int n = 5; static constexpr int __device__ m = 5;",
    "shared": "__device__ void f() { static __shared__ int s[5]; }",
    "a comment": "// __device__ int n = 5;\n/* __device__ int m; */",
    "the host's": "static int n = 5;",
}


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("declared", VARIABLES.values(), ids=VARIABLES)
def test_variables_of_the_device(device, declared):
    """A kernel reads it and writes it, and finds at the next launch what it has written."""
    put, get = device
    run = launcher(f'{declared}\nextern "C" __global__ void f(int* x) {{ x[0] = n; n += 2; x[1] = n; }}', "P")
    x = put(np.zeros(2, np.int32))
    for value in (5, 7):
        run(1, 1, x)
        assert get(x).tolist() == [value, value + 2]


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_is_none(text):
    """Functions, constants and the host's own stay as they are."""
    assert marked(text) == text


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("declared", ["__device__ int n;", "#define GLOBAL __device__\nGLOBAL int n;"])
def test_a_variable_that_no_kernel_writes(declared):
    """What the host copies into it is read, and no constant in its place."""
    with gpu.use_device(0):
        cupy = gpu.cupy()
        module = cupy.RawModule(code=f'{declared}\nextern "C" __global__ void f(int* x) {{ x[0] = n; }}')
        x = cupy.zeros(1, np.int32)
        cupy.ndarray(1, np.int32, module.get_global("n"))[...] = cupy.full(1, 7, np.int32)
        module.get_function("f")((1,), (1,), (x,))
        assert x.get().tolist() == [7]


@pytest.mark.usefixtures("simulated")
def test_a_variable_of_a_header(tmp_path):
    """One in a header of the user's own is refused, and never a constant because no kernel writes it."""
    (tmp_path / "tables.h").write_text("__device__ float table[2] = {1, 2};\n")
    text = '#include <tables.h>\nextern "C" __global__ void f(float* x) { x[0] = table[1]; }'
    with gpu.use_device(0):
        cupy = gpu.cupy()
        function = cupy.RawModule(code=text, options=(f"-I{tmp_path}",)).get_function("f")
        with pytest.raises(cupy.cuda.driver.CUDADriverError, match="out-of-range read of 4 bytes"):
            function((1,), (1,), (cupy.zeros(1, np.float32),))


@pytest.mark.usefixtures("simulated")
def test_a_variable_of_a_header_without_a_name_outside(tmp_path):
    """One of a nameless namespace of a header is the device's: kernels read it and write it."""
    (tmp_path / "counts.h").write_text("namespace { __device__ int counts[2] = {1, 2}; }\n")
    text = '#include <counts.h>\nextern "C" __global__ void f(int* x) { x[0] = counts[1]; x[1] = counts[1] += 5; }'
    with gpu.use_device(0):
        cupy = gpu.cupy()
        x = cupy.zeros(2, np.int32)
        cupy.RawModule(code=text, options=(f"-I{tmp_path}",)).get_function("f")((1,), (1,), (x,))
        assert x.get().tolist() == [2, 7]


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize(
    ("text", "used", "names"),
    [
        ("", "1", []),
        ("__device__ int one() { return 1; }", "one()", []),
        ("__device__ int n;", "n", [b"n"]),
        ("namespace { int n = 5; }", "n++", [b"(anonymous namespace)::n"]),
        ("template <class T> __device__ T of = 5;", "of<int>++", [b"of<int>"]),
        ("__constant__ int n;", "n", [b"n"]),
        ("__shared__ int s[3];", "s[0]", [b"s"]),
    ],
)
def test_symbols_of_a_library(text, used, names):
    """Those of a block and of the device are named, and nm is asked for a library that has one, and for no other."""
    outside, inside = ("", text) if "__shared__" in text else (text, "")
    kernel = f"{outside}\n__global__ void f(int* x) {{ {inside}\n x[0] = {used}; }}"
    library = compilation.compiled(kernel, ["f"], [], [])
    known = declarations.symbols(library)
    assert [name for _, _, name in (*known.shared, *known.others)] == names
    assert declarations._has_variables(library.read_bytes()) == bool(names)


@pytest.mark.usefixtures("simulated")
def test_static_variables_of_functions(device):
    """Each keeps its value from one call to the next, as on a GPU."""
    put, get = device
    run = launcher(
        "__device__ int next() { static int counted = 5; if (true) { static int m; ++m; } return counted++; }\n"
        'extern "C" __global__ void f(int* x) { x[0] = next(); x[1] = next(); }',
        "P",
    )
    x = put(np.zeros(2, np.int32))
    run(1, 1, x)
    assert get(x).tolist() == [5, 6]
    run(1, 1, x)
    assert get(x).tolist() == [7, 8]
