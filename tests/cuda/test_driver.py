"""Kernels come from an archive, from the user's cache or from the compiler, and compute the same."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import lucid
from lucid.base import gpu
from lucid.cuda import cache, driver
from lucid.cuda.build import archive
from lucid.cuda.build.image import Image, key_of
from lucid.cuda.build.nvrtc import Compiler
from lucid.cuda.launch import kernels
from lucid.cuda.launch.kernels import Launcher, Unit
from lucid.cuda.simulator.compilation import FOLDER
from lucid.cuda.simulator.wheels import installed
from lucid.errors import CudaUnavailableError, KernelError
from tests.pieces import raising

pytestmark = pytest.mark.gpu

TEXT = """
template <typename T> __global__ void scale(const T* x, T* y, T a, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"""
UNIT = Unit("scale.cu for float", "scale", TEXT, {"scale<float>": "PPfq"}, declared=True)


@pytest.fixture
def compiled():
    """Return the units that were compiled."""
    return []


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch, tmp_path, compiled):
    """Drive the device by what drives a GPU; on a simulated one its NVRTC compiles."""

    class Driver(driver.CudaDriver):
        def _compiler(self):
            if gpu.is_simulated():
                made = Compiler(installed()[1].soname("nvrtc"), FOLDER / "toolkit" / "include")
            else:
                made = real(self)
            compile = made.compile
            made.compile = lambda unit, architecture: compiled.append(unit.name) or compile(unit, architecture)
            return made

    real = driver.CudaDriver._compiler
    if gpu.is_simulated():
        lucid.ones(1, device="cuda")  # its libraries are in the usual cache
    monkeypatch.setenv("LUCID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("LUCID_BUILT_KERNELS", "0")
    for remembered in (cache._lasting, cache._refuse, archive._checked, archive._fitting):
        remembered.cache_clear()
    monkeypatch.setattr(archive, "_told", set())
    monkeypatch.setattr(kernels, "_make_driver", Driver)
    monkeypatch.setattr(kernels, "_driver", None)
    yield
    cache._lasting.cache_clear()


def scaled(unit=UNIT):
    """Run the kernel in a driver of its own, as a new process would, and compare with NumPy."""
    kernels._driver = None
    x = lucid.arange(1000, dtype=lucid.float32, device="cuda")
    y = lucid.zeros(1000, device="cuda")
    run = Launcher("scale<float>", "PPfq", lambda name: kernels.driver().load(unit)[name])
    run(4, 256, x.data_ptr(), y.data_ptr(), 2.5, 1000)
    np.testing.assert_array_equal(y.cpu().numpy(), 2.5 * np.arange(1000, dtype=np.float32))


@pytest.fixture
def build(compiled, monkeypatch, tmp_path):
    """Return what writes an archive for the device with one unit, from which kernels are taken from then on."""

    def write(unit=UNIT, **more):
        capability = str(gpu.cupy().cuda.Device().compute_capability)
        image = kernels.driver()._compiler().compile(unit, f"sm_{capability}")
        archive.write(tmp_path / "built" / f"sm_{capability}.zip", [(unit, Image(**{**vars(image), **more}))])
        compiled.clear()
        monkeypatch.setenv("LUCID_BUILT_KERNELS", str(tmp_path / "built"))

    return write


def test_what_was_compiled_is_kept(compiled, caplog):
    """The second process takes it from the cache; another text, or other kernels of it, are others."""
    caplog.set_level(logging.INFO, "lucid.cuda")
    scaled()
    scaled()
    assert compiled == [UNIT.name]
    said = [each.split(",")[0] for each in caplog.messages if "scale" in each and "built" not in each]
    assert said == [f"compiled {UNIT.name} (scale<float>)", f"took {UNIT.name} (scale<float>)"]
    scaled(UNIT._replace(source=TEXT + "// changed"))
    scaled(UNIT._replace(signatures={**UNIT.signatures, "scale<double>": "PPdq"}))
    assert len(compiled) == 3


def test_a_broken_file_is_compiled_again(compiled, caplog):
    """One that was cut off is named, and the next process finds a whole one."""
    scaled()
    (path,) = cache.folder().glob("scale-*.cubin")
    path.write_bytes(path.read_bytes()[:-1])
    scaled()
    assert f"{path} is not loaded" in caplog.text
    scaled()
    assert len(compiled) == 2


def test_another_versions_file_is_compiled_again(compiled):
    """Whole, and of a form that this lucid does not know: it is replaced."""
    scaled()
    (path,) = cache.folder().glob("scale-*.cubin")
    cache.keep(path.name, b"something else")
    scaled()
    assert len(compiled) == 2


def test_a_full_disk_is_no_end(compiled, monkeypatch, caplog):
    """What cannot be kept is used all the same; a warning says so."""
    monkeypatch.setattr(cache, "keep", raising(OSError(28, "No space left on device")))
    scaled()
    assert "is not kept in the cache: [Errno 28] No space left on device" in caplog.text


def test_what_was_built_is_not_compiled(compiled, build):
    """Neither the compiler nor the cache is asked for kernels that an archive holds; for others they are."""
    both = UNIT._replace(signatures={**UNIT.signatures, "scale<double>": "PPdq"})
    build(both)
    scaled()
    assert compiled == []
    assert not [*cache.folder().glob("scale-*.cubin")]
    one = kernels.driver()
    assert one.load(UNIT) == one.load(UNIT)  # one module, loaded once
    kernels.driver().load(UNIT._replace(signatures={"scale<int>": "PPiq"}))
    assert compiled == [UNIT.name]


def test_what_was_built_is_loaded_on_each_device(monkeypatch, build, two_devices):
    """Code is of the device on which it was loaded: another that runs the same archive loads it, too, once."""
    build()
    loaded, load = [], driver.CudaDriver._module
    monkeypatch.setattr(
        kernels._make_driver, "_module", lambda self, image: loaded.append(self.device()) or load(self, image)
    )
    one = kernels.driver()
    found = {}
    for index in (0, 1, 0, 1):
        with lucid.cuda.device(index):
            handles = one.load(UNIT)
            assert found.setdefault(index, handles) == handles
    assert loaded == [0, 1]


def test_what_was_loaded_stays(monkeypatch):
    """A launch has no more than a handle: the driver holds the code, which would be unloaded otherwise."""
    loaded, load = [], driver.CudaDriver._module

    class Code:
        def __init__(self, module):
            self.module = module
            loaded.append(weakref.ref(self))

        def get_function(self, name):
            return SimpleNamespace(ptr=self.module.get_function(name).ptr, code=self)

    monkeypatch.setattr(kernels._make_driver, "_module", lambda self, image: Code(load(self, image)))
    scaled()
    gc.collect()
    assert [code() is None for code in loaded] == [False]


def test_ranks_that_start_together_compile_once(compiled, monkeypatch):
    """Who waited for another's compilation takes what that one has kept."""
    both_miss, alone = threading.Barrier(2, timeout=60), cache.alone

    def together(name):
        both_miss.wait()
        return alone(name)

    monkeypatch.setattr(cache, "alone", together)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: kernels._make_driver().load(UNIT), range(2)))
    assert [each.keys() for each in found] == [UNIT.signatures.keys()] * 2
    assert compiled == [UNIT.name]


STALE = {"unit": UNIT._replace(source=TEXT.replace("a * x", "a + x"))}
NEWER = {"code": b"\x7fELF of tomorrow", "compiler": "99.1"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(STALE, "was built from another text of scale.cu", id="another text"),
        pytest.param(NEWER, "is not loaded by this driver, which may be older than NVRTC 99.1", id="a newer NVRTC"),
    ],
)
def test_an_archive_that_is_not_used(compiled, build, caplog, given, words):
    """A warning says why, with what is to blame, and the kernels are compiled instead, and compute what they say."""
    build(**given)
    scaled()
    assert compiled == [UNIT.name]
    assert words in caplog.text


def test_kept_code_that_the_driver_refuses(monkeypatch):
    """Where the compiler itself is too new, the error says whose fault it is and what to do."""
    wrong = Image(key_of(UNIT), "99.1", {"scale<float>": "scale"}, b"\x7fELF of tomorrow")
    monkeypatch.setattr(driver, "_kept", lambda file: wrong)
    with pytest.raises(KernelError, match=r"the driver does not load scale\.cu for float, compiled by NVRTC 99\.1"):
        scaled()


def test_other_errors_of_the_driver_come_out(build, monkeypatch, tmp_path):
    """As of a device that is full or has failed before: they are no fault of the code, and stay what they are."""

    class DriverError(RuntimeError):
        status = 2

    build()
    monkeypatch.setattr(kernels._make_driver, "_module", raising(DriverError("out of memory")))
    for folder in (str(tmp_path / "built"), "0"):
        monkeypatch.setenv("LUCID_BUILT_KERNELS", folder)
        with pytest.raises(DriverError, match="out of memory"):
            scaled()


def test_a_device_that_the_compiler_does_not_know(monkeypatch):
    """The error says what the compiler knows, and what to do; the newest older one of the generation will do."""
    capability = str(gpu.cupy().cuda.Device().compute_capability)
    one = kernels.driver()._compiler()
    monkeypatch.setattr(kernels._make_driver, "_compiler", lambda self: one)
    one.architectures = ("sm_50", f"sm_{int(capability) + 10}")
    said = rf"compiles for sm_50, sm_\d+, and for no device of compute capability {capability[:-1]}\.{capability[-1]}"
    with pytest.raises(KernelError, match=f"{said}; install a newer one"):
        scaled()
    one.architectures = (*one.architectures, f"sm_{capability[:-1]}0")
    scaled()


def test_a_thread_that_has_not_used_the_device():
    """Its first work there may be to load a kernel."""
    kernels.driver()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: kernels.driver().load(UNIT)).result().keys() == UNIT.signatures.keys()


def test_without_a_compiler_of_ours_cupy_compiles(monkeypatch, caplog):
    """Where CuPy finds NVRTC and lucid does not, kernels come through CuPy; the log says why."""
    caplog.set_level(logging.INFO, "lucid.cuda")

    monkeypatch.setattr(kernels._make_driver, "_compiler", raising(CudaUnavailableError("no NVRTC")))
    scaled()
    assert "compiled one at a time, by CuPy: no NVRTC" in caplog.text


def test_users_own_sources_are_never_taken_from_an_archive(compiled, build, monkeypatch):
    """They may have the name of one of lucid's; CuPy compiles them, with its headers."""
    build()
    monkeypatch.setattr(archive, "find", None)
    scaled(UNIT._replace(declared=False))
    assert compiled == []
