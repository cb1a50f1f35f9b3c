"""Parameters, structs and constants are read from the source of kernels as compilers understand it."""

from __future__ import annotations

import shutil
import struct
import subprocess

import pytest

from lucid.cuda.launch.kernels import VECTOR_BYTES
from lucid.cuda.simulator.compilation import FOLDER, source_for_host
from lucid.cuda.source import sources
from lucid.cuda.source.signature import NUMBERS, Declared, Source, constant, declared, packer, source
from lucid.errors import KernelError
from tests.kernels.assertions import asserted, assertions, of_struct
from tests.kernels.declared import KERNELS

STEMS = sorted({kernel.stem for kernel in KERNELS})


def compiled(text):
    """Return what g++ says of CUDA C++ whose kernels nobody calls."""
    command = [
        shutil.which("g++"),
        "-std=c++17",
        "-fsyntax-only",
        "-w",
        f"-I{FOLDER}",
        f"-I{FOLDER}/toolkit/include",
        "-xc++",
        "-",
    ]
    given = source_for_host(text, [])
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False).stderr


# ---- all kernels ----


@pytest.mark.parametrize("stem", STEMS)
def test_kernels_have_the_parameters_that_are_read(stem):
    """g++ finds in each kernel the parameters, and in each struct the members, that are read from the text."""
    text = sources.joined(f"{stem}.cu")
    said = compiled(text + assertions(stem))
    assert "error" not in said, said


def test_assertions_see_what_is_read_wrongly():
    """g++ says so if a parameter, a member, a size or an offset is another one than is read."""
    text, right = sources.joined("product.cu"), assertions("product")
    assert "error" not in compiled(text + right)
    for wanted, wrong in {
        "sizeof(Matrix) == 32": "sizeof(Matrix) == 40",
        "alignof(Matrix) == 8": "alignof(Matrix) == 4",
        "(row_step, Matrix) == 16": "(row_step, Matrix) == 8",
        "::row_step)>::type, long long>": "::row_step)>::type, double>",
        "void(void*, void*, void*, Matrix,": "void(void*, void*, long long, Matrix,",
        "double, double)>": "double)>",
    }.items():
        assert wanted in right
        assert "static assertion failed" in compiled(text + right.replace(wanted, wrong)), wrong


def test_a_vector_has_its_bytes():
    """What launchers know of the hardware's widest load is what kernels load at once."""
    said = compiled(sources.joined("cast.cu") + f"static_assert(sizeof(lucid::Pack<float>) == {VECTOR_BYTES});")
    assert "error" not in said, said


# ---- structs of any members ----


def drawn_struct(rng, name, known):
    """Return the text of a struct of drawn members, and their names."""
    types = [*NUMBERS, *known, "float*", "const void *", "float**", "const double *const *"]
    lines, names = [], []
    for number in range(rng.integers(1, 6)):
        kind = types[rng.integers(len(types))]
        extents = "".join(f"[{size}]" for size in rng.integers(1, 5, rng.integers(0, 3)))
        names.append(f"m{number}")
        lines.append(f"    {kind} m{number}{extents};  // {{ ; }}")
        if rng.integers(3) == 0 and "*" not in kind:
            names.append(f"n{number}")
            lines[-1] = lines[-1].replace(";", f", n{number};", 1)
        if rng.integers(3) == 0:
            lines.append(f"    __device__ int f{number}(int i) const {{ if (i) {{ return 1; }} return i; }}")
    return f"struct {name} {{\n" + "\n".join(lines) + "\n};\n", names


def test_structs_of_any_members(rng):
    """Size, alignment and members of drawn structs, one inside another, are those that g++ gives them."""
    text, checks, known = "", [], {}
    for number in range(60):
        name = f"S{number}"
        body, names = drawn_struct(rng, name, list(known)[-3:])
        text += body
        known[name] = names
    source = Source(text, "drawn")
    for name, names in known.items():
        layout = source.layout(name)
        assert struct.calcsize(f"@{layout.codes}") == layout.size
        assert [member.name for member in source.members(name)] == names
        checks += of_struct(source, name, set())
    said = compiled("namespace lucid {\n" + text + "}\n" + asserted(checks))
    assert "error" not in said, said


def test_stars_are_counted():
    """A pointer to pointers has two stars, however they and what is const stand; the next name has its own."""
    found = declared("const float *const * x, **y[3], *z, n")
    assert found == [
        Declared("float", 2, "x", []),
        Declared("float", 2, "y", ["3"]),
        Declared("float", 1, "z", []),
        Declared("float", 0, "n", []),
    ]


def test_a_template_has_as_many_arguments_as_parameters():
    """One less and one more are refused, of a kernel that is no template too."""
    read = Source("template <typename T, int N> __global__ void f(T* x) {} __global__ void g(int n) {}", "mine.cu")
    for kernel, arguments in (("f", []), ("f", ["float"]), ("f", ["float", "2", "3"]), ("g", ["float"])):
        with pytest.raises(KernelError, match=f"{kernel} is a template <"):
            read.signature(kernel, arguments)
    assert read.signature("f", ["float", "2"]) + read.signature("g") == "Pi"


def test_parameters_are_packed_as_the_struct_module_packs():
    """Structs begin at their alignment and end filled up, of templates, aliases and specialisations alike."""
    text = """
    constexpr int COUNT = 2, TWICE = 2 * COUNT;  // constexpr int COUNT = 9;
    template <typename T> struct RealOf { typedef T type; };
    template <> struct RealOf<__half> { typedef float type; };
    template <typename T> using Real = typename RealOf<T>::type;
    __host__ __device__ constexpr int rows(int depth) { return 10 / depth; }
    struct Pair { int a; double b; short c; };
    template <typename T, int DEPTH> struct Table {
        static constexpr int ROWS = rows(DEPTH);
        T* at[DEPTH][ROWS];
        Real<T> number;
        struct Inner { int unused; };
        bool flags[TWICE];
    };
    template <typename T>
    __global__ void f(const __grid_constant__ Pair pair, const T* __restrict__ x, Table<T, 4> table, Real<T> last,
                      unsigned count[2]) {}
    """
    read = Source(text, "mine.cu")
    pair, table = "idh6x", "PPPPPPPPf4?"
    assert read.layout("Pair") == (pair, 24, 8)
    assert read.signature("f", ["__half"]) == f"{pair}P8Pf4?fP"
    assert read.signature("f", ["double"]) == f"{pair}P8Pd4?4xdP"
    assert read.signature("f", ["__half"], packed=["Table"]) == f"{pair}P72sfP"
    assert struct.calcsize(f"@{table}") == 72


# By the code of each number other names of it.
SPELLED = {
    "e": ["half"],
    "b": ["char", "signed char", "int8_t"],
    "B": ["unsigned char", "uint8_t"],
    "h": ["short int", "int16_t"],
    "H": ["nv_bfloat16", "unsigned short int", "uint16_t"],
    "i": ["int32_t"],
    "I": ["unsigned", "uint32_t"],
    "q": ["long", "long int", "long long int", "ptrdiff_t", "int64_t"],
    "Q": ["unsigned long", "unsigned long int", "unsigned long long int", "size_t", "uint64_t"],
}


def test_numbers_have_several_names():
    """Each is read as the number that g++ takes it for: its size, and whether it goes below zero."""
    checks = "#include <cstdint>\n#include <cstddef>\n"
    for code, kinds in SPELLED.items():
        for kind in kinds:
            text = f"__global__ void f({kind} x, const {kind}* y, {kind} w) {{}}"
            assert Source(text, "mine.cu").signature("f") == f"{code}P{code}"
            if kind not in {"half", "nv_bfloat16"}:
                checks += f"static_assert(sizeof({kind}) == {struct.calcsize(code)});\n"
                checks += f"static_assert((({kind})-1 < 0) == {int(code.islower())});\n"
    said = compiled(checks)
    assert "error" not in said, said


# ---- constants ----


def test_constants():
    """Constants are arithmetic of others, of functions, of variable templates, of sizes; enumerators count."""
    text = """
    constexpr int TILE = 32, SIDE = TILE / 4;
    enum Edge { REFLECT, CIRCULAR, REPLICATE };
    template <typename T> constexpr int items = 64 / (int)sizeof(T);
    __device__ constexpr int pitch(int columns, int more) { return columns + SIDE * more; }
    __device__ void f() { constexpr int HERE = 5; constexpr int WIDTH = 1; }
    __device__ void g() { if constexpr (TILE > 3) { constexpr int WIDTH = 2; } }
    constexpr bool YES = TILE > 3;
    """
    read = Source(text, "mine.cu")
    wanted = {
        "TILE": 32,
        "SIDE": 8,
        "REPLICATE": 2,
        "items<double>": 8,
        "pitch(3, 2)": 19,
        "pitch(1 + 1, SIDE)": 66,
        "HERE": 5,
        "TILE % 5 - 1": 1,
    }
    assert {expression: read.value(expression) for expression in wanted} == wanted
    for expression, words in {
        "MISSING": r"mine\.cu defines no constants 'MISSING'",
        "pitch(3)": r"mine\.cu defines no constants 'pitch\(3\)'",
        "WIDTH": r"mine\.cu defines 2 constants 'WIDTH'",
        "YES": r"mine\.cu: '\(TILE > 3\)' is not arithmetic",
        "items<None>": r"mine\.cu has no number and no struct 'None'",
    }.items():
        with pytest.raises(KernelError, match=words):
            read.value(expression)


def test_constants_as_they_are_written():
    """Casts say nothing of a value, what a function gives is one number, and defaults of templates are left out."""
    text = """
    constexpr int SIZE = (int)sizeof(double), MORE = (size_t)3 + (long long)SIZE + (unsigned)1;
    __device__ constexpr int more(int x) { return x + 1; }
    template <typename T, int N = 2> constexpr int twice = N * (int)sizeof(T);
    """
    read = Source(text, "mine.cu")
    wanted = {"MORE": 12, "2 * more(3)": 8, "twice<float, 5>": 20}
    assert {expression: read.value(expression) for expression in wanted} == wanted


def test_kernels_and_structs_as_they_are_written():
    """Without parameters, static, with friends, constants of its own and members that hold nothing."""
    text = """
    struct Empty {};
    struct Both { Empty first; friend struct Empty; double second; enum { A, B }; static const int C = 3; char third; };
    template <int N = 3> __global__ void one(float x[N]) {}
    __global__ static void none(void) {}
    __global__ void several(Empty/* nothing */empty, Both both) {}  // a comment is a space
    """
    read = Source(text, "mine.cu")
    assert read.layout("Both") == ("1xdb7x", 24, 8)
    assert [member.name for member in read.members("Both")] == ["first", "second", "third"]
    assert read.signature("none") == ""
    assert read.signature("one", ["4"]) == "P"
    assert read.signature("several") == "1x7x1xdb7x"
    said = compiled(f"{text} static_assert(sizeof(Both) == 24 && sizeof(Empty) == 1 && alignof(Both) == 8);")
    assert "error" not in said, said


def test_files_are_named():
    """A file, a kernel, a struct or a constant that is not there is named, with the file it was sought in."""
    assert constant("reduction.cuh", "MAX_AXES") == packer("reduction.cuh", "Axes").size // 16
    for call, words in (
        (lambda: constant("none.cuh", "MAX_AXES"), r"no file 'none\.cuh' in .*kernels"),
        (lambda: constant("reduction.cuh", "NONE"), r"kernels/reduction/reduction\.cuh defines no constants 'NONE'"),
        (
            lambda: packer("reduction.cuh", "None"),
            r"kernels/reduction/reduction\.cuh has no number and no struct 'None'",
        ),
        (lambda: source("softmax.cu").signature("none"), r"kernels/activation/softmax\.cu has no kernel 'none'"),
    ):
        with pytest.raises(KernelError, match=words):
            call()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("struct S : Base { int a; };", "no number and no struct 'S', without bases"),
        ("template <typename T> struct S {};", "no struct 'S'"),
        ("struct alignas(16) S { int a; };", "no struct 'S'"),
        ("struct S { alignas(16) int a; };", "alignas"),
        ("struct S { int a : 3; };", "'int a : 3' in S is more than is read"),
        ("struct S { void (*f)(int); };", "more than is read"),
        ("struct S { Missing m; };", "no struct 'Missing'"),
        ("struct S { struct T { int a; } t; };", "no struct ''"),
        ("struct T { int a; }; struct S { struct T t; };", "more than is read"),
        ("struct S { public: int a; };", "more than is read"),
        ("struct S { virtual void g() {} int a; };", "virtual void g"),
        ("struct S { int& a; };", "no struct 'int&'"),
        ("union S { int a; };", "no struct 'S'"),
        ("struct S { int a[", "no struct 'S'"),
        ("typedef Missing S;", "no struct 'Missing'"),
        ("template <class T> struct Of {}; template <class T> struct Of<T*> {}; using S = Of<int>;", "partial"),
        (
            "template <typename T> struct Of { typedef T type; }; typedef typename Of<int>::none S;",
            "no struct 'Of<int>::none'",
        ),
        ("template <class A, class B> using Of = A; using S = Of<int>;", "no struct 'Of<int>'"),
        ("template <class A, class B = int> using Of = A; using S = Of<int>;", "no struct 'Of<int>'"),
        ("template <class A> using Of = A; using S = Of<int, int>;", "no struct 'Of<int, int>'"),
        ("template <class A, int N = 2> struct Of { A a[N]; }; using S = Of<int>;", "no struct 'Of<int>'"),
        ("template <int N> struct Of { int a[N]; }; using S = Of<2, 3>;", "no struct 'Of<2, 3>'"),
    ],
)
def test_what_is_not_read_is_refused(text, words):
    """A struct that is more than members is an error, never a layout that is wrong."""
    with pytest.raises(KernelError, match=words):
        Source(f"{text} __global__ void f(S s) {{}}", "mine.cu").signature("f")
