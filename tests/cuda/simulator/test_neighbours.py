"""Under LUCID_SIMULATOR_SANITIZE=1 no array lies directly behind another that CuPy's default pool gives."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.pieces.children import simulated

pytestmark = pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'")

BEGIN = """
import threading
import cupy
import lucid

pool = cupy.get_default_memory_pool()
"""

OVERRUN = r"""
kernel = cupy.RawKernel('''
extern "C" __global__ void f(int* x, int i) {
    x[i] = 1;
}''', "f")


def overrun():
    whole = cupy.empty(1 << 16, cupy.uint8).data.ptr
    first, second = cupy.zeros(128, cupy.int32), cupy.zeros(128, cupy.int32)
    assert first.data.ptr == whole
    nothing = cupy.zeros(0, cupy.int32)
    print(second.data.ptr - first.data.ptr, pool.used_bytes(), flush=True)
    kernel((1,), (1,), (first, cupy.int32(127)))
    kernel((1,), (1,), (first, cupy.int32(128)))
    assert second[0] == 1


"""


def run(code, sanitize):
    """Run Python code with a simulated device."""
    return simulated(code, LUCID_SIMULATOR_SANITIZE=sanitize)


@pytest.mark.parametrize("begin", [BEGIN, BEGIN.replace("import cupy\nimport lucid", "import lucid\nimport cupy")])
@pytest.mark.parametrize("act", ["overrun()", "t = threading.Thread(target=overrun); t.start(); t.join()"])
def test_a_write_into_the_neighbour(begin, act):
    """One element too far is told with its line and the exact size, in pieces that the pool cuts, from any thread."""
    ran = run(begin + OVERRUN + act, "1")
    assert ran.stdout == "1024 2048\n", ran.stderr
    last = ran.stderr.splitlines()[-1]
    assert "out-of-range write of 4 bytes" in last
    assert last.endswith("just behind an allocation of 512 bytes (kernel.cu:3)")


def test_code_that_allocates_while_the_pool_does():
    """Such as what a collection of garbage runs: the size of the array that was asked for first stays exact."""
    nested = """
class Nested(cupy.cuda.MemoryHook):
    name, inside = "nested", False

    def malloc_preprocess(self, **_):
        if not self.inside:
            self.inside = True
            self.kept = cupy.empty(100, cupy.int32)

cupy.empty(1)  # the first use of the device
with Nested():
    x = cupy.empty(128, cupy.int32)
kernel((1,), (1,), (x, cupy.int32(128)))
"""
    last = run(BEGIN + OVERRUN + nested, "1").stderr.splitlines()[-1]
    assert last.endswith("just behind an allocation of 512 bytes (kernel.cu:3)")


def test_as_on_a_gpu_without_the_setting():
    """The pool's figures are CuPy's own, and it puts arrays side by side."""
    ran = run(BEGIN + OVERRUN + "overrun()", "0")
    assert (ran.returncode, ran.stdout) == (0, "512 1024\n"), ran.stderr


def test_another_allocator_stays():
    """What the program has chosen before it uses the device is left alone, inside of `using_allocator` too."""
    chosen = "mine = cupy.cuda.MemoryPool()\ncupy.cuda.set_allocator(mine.malloc)\n"
    within = "with cupy.cuda.using_allocator(pool.malloc): cupy.zeros(128, cupy.int32)\n"
    told = "x = cupy.zeros(128, cupy.int32); print(cupy.cuda.get_allocator() == mine.malloc, mine.used_bytes())"
    ran = run(BEGIN + chosen + within + told, "1")
    assert ran.stdout == "True 512\n", ran.stderr
    ran = run(BEGIN + within, "1")
    assert (ran.returncode, ran.stderr) == (0, "")
