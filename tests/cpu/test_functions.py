"""How functions in C++ are declared, compiled, kept, and called with addresses of arrays."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import lucid
from lucid.cpu import compiler, functions
from lucid.cpu.functions import BUILD, LOOK, Function, Unit, address, dense, first_element
from lucid.cuda import cache
from lucid.nn import functional as F
from lucid.ops.base.formula.formulas import Formula

TEXT = """\
#include "cpu.h"
namespace lucid {
template <class T> __global__ void twice(T* out_n, long long n, const T* x_n) {
    for (long long i = 0; i < n; ++i) out_n[i] = 2 * x_n[i];
}
}
"""


def declared(name, instances=(("float",), ("double",))):
    """Return a function of a text of its own, that nothing was compiled of."""
    return Function(Unit(f"{name}.cpp", lambda: TEXT), "twice", instances)


@pytest.fixture
def _nothing_kept(monkeypatch, tmp_path):
    """Give the process an empty cache of compiled code."""
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)


# ---- addresses ----


def test_addresses_are_those_that_numpy_tells():
    """An address is that of the first element: of views, of empty arrays, and of arrays of a class that inherits."""
    whole = np.arange(12.0).reshape(3, 4)
    for array in (whole, whole[1:], whole[:0], np.zeros(()), whole.view(np.matrix), np.float32([1])):
        assert address(array) == array.__array_interface__["data"][0]
    for array in (whole.T, whole[:, 1:], whole[::-1]):
        assert first_element(array) == array.__array_interface__["data"][0]


@pytest.mark.parametrize("array", [np.zeros((3, 4)).T, np.zeros((3, 4))[:, ::2], np.zeros(4)[::-1]])
def test_strided_arrays_have_no_address(array):
    """A loop that knows no strides is not given the address of an array that has others than C's."""
    with pytest.raises(ValueError, match="expected an array in the order of C, and aligned"):
        address(array)
    np.testing.assert_array_equal(dense(array), array)
    address(dense(array))


def test_misaligned_arrays_have_no_address():
    """Vectors are loaded from multiples of the size of an element."""
    array = np.zeros(41, np.uint8)[1:].view(np.float64)
    with pytest.raises(ValueError, match="aligned"):
        address(array)
    assert dense(array).flags.aligned


@pytest.mark.parametrize("number", [np.float32(1.5), 1.5])
def test_numbers_have_no_address(number):
    """A number of NumPy's is no array: where it lies, no elements begin."""
    with pytest.raises((TypeError, AttributeError)):
        first_element(number)
    if isinstance(number, np.generic):
        assert type(dense(number)) is np.ndarray


@pytest.mark.parametrize("name", ["sigmoid", "silu", "gelu", "softplus", "mish", "elu", "tanh", "logsigmoid", "selu"])
@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float16, lucid.bfloat16])
@pytest.mark.cpu("arrays of no dimension become numbers of NumPy's")
def test_backward_of_one_number(name, dtype):
    """Gradients of tensors of no dimension, which NumPy gives as numbers, are those of one element, to second order."""
    results = []
    for shape in ((), (1,)):
        x = lucid.full(shape, 0.7, dtype=dtype, device="cpu").requires_grad_()
        y = getattr(F, name)(x) * 3
        (once,) = lucid.autograd.grad(y.sum(), x, create_graph=True)
        (twice,) = lucid.autograd.grad((once * once).sum(), x)
        results.append([each.item() for each in (y, once, twice)])
    assert results[0] == results[1]


# ---- compilation ----


@pytest.mark.usefixtures("_nothing_kept")
def test_a_library_is_compiled_when_it_is_worth_it(monkeypatch):
    """Few elements compile nothing; so many compile the functions of one dtype, and no others."""
    made = []
    library = compiler.library
    monkeypatch.setattr(compiler, "library", lambda *a, make: made.append(make) or library(*a, make=make))
    function = declared("worth")
    assert function(LOOK - 1, "float") is None
    assert made == []
    assert function(1, "float") is None
    assert made == [False]
    assert function(BUILD, "float") is not None
    assert made == [False, True]
    assert function(1, "double") is None
    x, out = np.arange(3, dtype=np.float32), np.empty(3, np.float32)
    function(1, "float")(address(out), 3, address(x))
    assert out.tolist() == [0, 2, 4]


@pytest.mark.usefixtures("_nothing_kept")
def test_other_threads_wait_for_a_compilation():
    """Threads that call a formula while the first of them compiles it get the same bits."""
    x = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
    formula = Formula(lambda m, x: m.exp(x) * 1.25 + m.tanh(x))
    barrier, results = threading.Barrier(4), []

    def run():
        barrier.wait()
        results.append(formula.apply(np, x))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each.tobytes() for each in results} == {formula.apply(np, x).tobytes()}


@pytest.mark.usefixtures("_nothing_kept")
def test_an_interrupted_compilation_is_tried_again(monkeypatch):
    """Ctrl-C while a library is compiled ends that call alone."""
    function = declared("interrupted")

    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(compiler, "library", interrupted)
        with pytest.raises(KeyboardInterrupt):
            function(BUILD, "float")
    assert function(BUILD, "float") is not None


def test_errors_of_the_compiler_leave_the_work_to_numpy(caplog):
    """Code that does not compile is told to the log once, and never called."""
    unit = Unit("wrong.cpp", lambda: '#include "cpu.h"\nnamespace lucid { __global__ void f(int n) { nonsense } }')
    function = Function(unit, "f")
    with caplog.at_level("INFO", "lucid.cpu"):
        assert function(BUILD) is None
        assert function(BUILD) is None
    (record,) = [each for each in caplog.records if each.name == "lucid.cpu"]
    assert "wrong.cpp is not compiled, and NumPy does its work" in record.getMessage()
    assert "nonsense" in record.getMessage()


CALLS = """\
import sys, lucid
from lucid.nn import functional as F
for name in sys.argv[1:]:
    getattr(F, name)(lucid.ones(3))
from lucid.cpu.functions import UNITS
print(sum(each._loaded is not None for unit in UNITS for each in unit.libraries.values()))
"""


def called(folder, *names, **environment):
    """Return what a process prints that calls functions with that cache."""
    # a simulated device would need the compiler
    own = {name: value for name, value in os.environ.items() if "SIMULATOR" not in name}
    environment = {**own, "LUCID_CACHE_DIR": str(folder), **environment}
    ran = subprocess.run(
        [sys.executable, "-c", CALLS, *names], env=environment, capture_output=True, text=True, check=True
    )
    return int(ran.stdout)


def test_what_is_kept_does_not_hang_on_the_order(tmp_path):
    """Libraries are found again whatever is called first, and by processes without a compiler."""
    assert called(tmp_path, "silu", "softplus", "mish") == 3
    before = sorted(tmp_path.glob("*.so"))
    assert called(tmp_path, "mish", "softplus", "silu") == 3
    assert called(tmp_path, "softplus", "mish", CXX="/nonexistent") == 2
    assert sorted(tmp_path.glob("*.so")) == before
    assert called(tmp_path, "selu", CXX="/nonexistent") == 0


@pytest.mark.parametrize(("value", "compiled"), [("0", False), ("1", True), ("", True)])
def test_the_environment_switches_loops_off(value, compiled):
    """`LUCID_CPU_COMPILED` is 0, 1 or nothing."""
    code = "import lucid; print(lucid.backends.cpu.compiled)"
    environment = {**os.environ, "LUCID_CPU_COMPILED": value}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(compiled)


def test_other_values_of_the_environment_are_refused():
    """Any other value is an error, and no guess."""
    environment = {**os.environ, "LUCID_CPU_COMPILED": "no"}
    ran = subprocess.run([sys.executable, "-c", "import lucid"], env=environment, capture_output=True, text=True)
    assert "LUCID_CPU_COMPILED: expected 0, so that NumPy computes without loops in C++, or 1, got 'no'" in ran.stderr


def test_every_declared_function_stands_in_its_file():
    """What is declared of files in `kernels/cpu` can be read there, with the codes that ctypes takes."""
    for unit in functions._FILES.values():
        for arguments, library in unit.libraries.items():
            for name in library.instances.values():
                plain, _, rest = name.partition("<")
                codes = unit.source.signature(plain, tuple(filter(None, rest.rstrip(">").split(", "))))
                assert set(codes) <= set(functions._TYPES), (unit.file, name, arguments)
