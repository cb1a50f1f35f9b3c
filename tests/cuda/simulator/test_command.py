"""``python -m lucid.cuda.simulator`` runs scripts that know nothing of lucid, as Python would."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.pieces.children import python
from tests.pieces.children import simulator as run

pytestmark = pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy: pip install '.[simulator]'")

SCRIPT = r"""
import warnings
import numpy as np
import cupy
from cupyx import jit

warnings.simplefilter("ignore", FutureWarning)
x = cupy.arange(1000, dtype=cupy.float32) - 300
host = x.get()

scale = cupy.RawKernel('''
extern "C" __global__ void scale(const float* x, float* y, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
}''', "scale")
y = cupy.empty_like(x)
scale((4,), (256,), (x, y, cupy.float32(3), cupy.int32(x.size)))
np.testing.assert_array_equal(y.get(), 3 * host)

squared = cupy.ElementwiseKernel("T a, T b", "T c", "c = (a - b) * (a - b)", "squared")
np.testing.assert_array_equal(squared(x[:, None], x[:7]).get(), (host[:, None] - host[:7]) ** 2)

norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
rows = x.reshape(4, 250)
np.testing.assert_allclose(norm(rows, axis=1).get(), np.sqrt((rows.get() ** 2).sum(1)), rtol=1e-5)

@cupy.fuse
def fused(a, b):
    return cupy.where(a > b, a, -b) + 1

np.testing.assert_array_equal(fused(x, x[::-1]).get(), np.where(host > host[::-1], host, -host[::-1]) + 1)

one_more = cupy.vectorize(lambda a: a * a + 1)
np.testing.assert_array_equal(one_more(x).get(), host * host + 1)

@jit.rawkernel()
def doubled(a, b, n):
    i = jit.threadIdx.x + jit.blockDim.x * jit.blockIdx.x
    if i < n:
        b[i] = a[i] * 2

doubled((4,), (256,), (x, y, x.size))
np.testing.assert_array_equal(y.get(), 2 * host)

order = cupy.argsort(x % 7)
np.testing.assert_array_equal(order.get(), np.argsort(host % 7, kind="stable"))
np.testing.assert_array_equal(cupy.sort(x[::-1].copy()).get(), host)

a, b = x[:600].reshape(20, 30), x[:300].reshape(30, 10)
np.testing.assert_allclose((a @ b).get(), a.get() @ b.get(), rtol=1e-5)

stream, other = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
with stream:
    z = x + 1
    event = stream.record()
other.wait_event(event)
with other:
    z *= 2
other.synchronize()
assert event.done
np.testing.assert_array_equal(z.get(), (host + 1) * 2)

import sys
assert "lucid" not in globals()
print(cupy.cuda.runtime.getDeviceCount(), sys.argv[1:], __name__)
"""

FAULTY = r"""import cupy

KERNEL = cupy.RawKernel('''
extern "C" __global__ void fill(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) x[i] = i;
}''', "fill")


def fill():
    x = cupy.empty(100, cupy.float32)
    KERNEL((1,), (128,), (x, cupy.int32(100)))


fill()
"""


@pytest.fixture
def script(tmp_path):
    """Return a function that writes a script and gives its path."""

    def write(text):
        path = tmp_path / "script.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_script_that_knows_nothing_of_lucid(script):
    """Kernels of each kind, fusion, sorts, products, streams and events give what NumPy does; options are its own."""
    ran = run("--devices", "2", script(SCRIPT), "a", "--devices", "7")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "2 ['a', '--devices', '7'] __main__\n"


def test_a_write_out_of_range_is_told_with_its_line(script):
    """The last line of the traceback names kernel, thread, block of memory and line; no frame is the command's."""
    ran = run(script(FAULTY))
    assert ran.returncode == 1
    first, place, *_, last = ran.stderr.splitlines()
    assert first == "Traceback (most recent call last):"
    assert place.endswith('script.py", line 15, in <module>')
    assert "fill: block (0, 0, 0), thread (100, 0, 0): out-of-range write of 4 bytes at 0x" in last
    assert last.endswith(", just behind an allocation of 400 bytes (kernel.cu:4)")
    assert "runpy" not in ran.stderr
    assert "simulator" not in ran.stderr


@pytest.mark.parametrize(
    ("given", "found"), [({}, 1), ({"LUCID_CUDA_SIMULATOR": "3"}, 3), ({"LUCID_CUDA_SIMULATOR": "0"}, 1)]
)
def test_how_many_devices(given, found):
    """As many as the environment says, else one."""
    ran = run("-c", "import cupy; print(cupy.cuda.runtime.getDeviceCount())", **given)
    assert ran.stdout == f"{found}\n", ran.stderr


def test_the_option_comes_before_the_environment():
    """--devices wins, and processes that the script starts get the same number."""
    code = "import cupy, os; print(cupy.cuda.runtime.getDeviceCount(), os.environ['LUCID_CUDA_SIMULATOR'])"
    ran = run("--devices", "2", "-c", code, LUCID_CUDA_SIMULATOR="3")
    assert ran.stdout == "2 2\n", ran.stderr


@pytest.mark.parametrize("how", ["script", "module", "code"])
def test_as_python_runs_it(script, tmp_path, how):
    """Arguments, name, folder of imports, the module __main__ and exit status are those that Python gives."""
    (tmp_path / "neighbour.py").write_text("here = True\n", encoding="utf-8")
    text = (
        "import sys, __main__\nimport neighbour\nprint(sys.argv, __name__, sys.path[0])\n"
        "print(__main__.__dict__ is globals(), globals().get('__file__'), __package__)\nsys.exit(5)\n"
    )
    path = script(text)
    arguments = {"script": [path], "module": ["-m", "script"], "code": ["-c", text]}[how]
    ours, pythons = (way(*arguments, "-x", "y", settings={"cwd": tmp_path}) for way in (run, python))
    assert pythons.returncode == 5
    assert (ours.returncode, ours.stderr) == (5, "")
    # runpy gives a package where Python gives none
    assert ours.stdout.replace(" \n", " None\n") == pythons.stdout.replace(" \n", " None\n")


def test_errors_are_those_of_the_script(script):
    """Syntax errors and messages of sys.exit look and end as they do under Python."""
    path = script("x = (\n")
    ours, pythons = run(path), python(path)
    assert (ours.returncode, ours.stderr) == (pythons.returncode, pythons.stderr)
    ours = run("-c", "import sys; sys.exit('enough')")
    assert (ours.returncode, ours.stderr) == (1, "enough\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--device", "2", "script.py"], "unrecognized arguments: --device"),
        (["--devices", "0", "script.py"], "--devices: expected a whole number of 1 to 64, got '0'"),
        (["--devices", "65", "script.py"], "--devices: expected a whole number of 1 to 64, got '65'"),
        (["--devices", "two", "script.py"], "--devices: expected a whole number of 1 to 64, got 'two'"),
        ([], "name a script"),
        (["missing.py"], "can't open file 'missing.py'"),
    ],
)
def test_what_cannot_be_run(tmp_path, arguments, words):
    """A wrong option, a wrong number and a missing script end with a sentence and status 2."""
    ran = run(*arguments, settings={"cwd": tmp_path})
    assert ran.returncode == 2
    assert words in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_machine_that_cannot(script):
    """What the devices lack is told in a sentence."""
    ran = run(script(SCRIPT), CXX="missing")
    assert ran.returncode == 1
    assert ran.stderr.startswith("python -m lucid.cuda.simulator: kernels of the simulated CUDA device")
    assert ran.stderr.count("\n") == 1


INTERRUPTED = r"""
import inspect
import os
import signal
import threading
import time

import lucid

signal.signal(signal.SIGINT, signal.default_int_handler)  # also in a background job
x = lucid.ones(4, device="cuda")
stream = lucid.cuda.Stream()  # with a second one, each launch asks Python where it is
x.add_(1)
frame, calls = inspect.currentframe, []

def interrupted():
    calls.append(1)
    inspect.currentframe = frame
    raise KeyboardInterrupt

inspect.currentframe = interrupted
try:
    x.add_(1)
    time.sleep(10)
except KeyboardInterrupt:
    calls.append(2)
assert calls == [1, 2], calls

waits = threading.Event()

def send():
    while True:
        waits.wait()
        waits.clear()
        time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

def launch():
    end = time.monotonic() + 30
    while time.monotonic() < end:  # not in the block below: since Python 3.12 its jump lies outside of all handlers
        x.add_(1)

threading.Thread(target=send, daemon=True).start()
for _ in range(200):
    try:
        waits.set()
        launch()
        raise AssertionError("a Ctrl-C was lost")
    except KeyboardInterrupt:
        pass
print("went on", x.isfinite().all().item())
"""


def test_ctrl_c_while_the_simulator_asks_python(script):
    """It comes out of the launch that asked, wherever in the answer it falls, and the process goes on."""
    ran = run(script(INTERRUPTED))
    assert (ran.returncode, ran.stdout) == (0, "went on True\n"), ran.stderr[-2000:]
