"""The stand-in for CuPy: names and parameters are CuPy's, arrays are of their own kind, and mistakes raise as there."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest

import lucid
from lucid.backend import gpu
from lucid.cuda.simulator import counters

simulated = pytest.mark.skipif(not gpu.is_simulated(), reason="about the stand-in: needs LUCID_CUDA_SIMULATOR")


@pytest.fixture
def cupy():
    """Give the stand-in."""
    return gpu.cupy()


def parameters(signature):
    """Return the names of the parameters in the text of a signature, without types, defaults and marks."""
    inside = signature.partition("(")[2].rpartition(")")[0]
    names = [part.strip().split("=")[0].split(":")[0].split(" ")[-1] for part in inside.split(",")]
    return [name for name in names if name not in {"", "/", "*", "self"} and name[0] not in "[("]


def test_names_and_parameters_are_those_of_cupy():
    """Each function, method and ufunc of the stand-in exists in CuPy 14, with these parameters in this order."""
    real = pytest.importorskip("cupy", reason="compares with an installed CuPy, which needs no GPU for it")
    from lucid.cuda.simulator import functions, modules

    for spec in functions.FUNCTIONS.strip().splitlines():
        name, own = spec.partition("(")[0], parameters(spec)
        theirs = list(inspect.signature(getattr(real, name)).parameters)
        assert [p.strip("*") for p in own] == [p for p in theirs if p in {o.strip("*") for o in own}], spec
        assert own[:2] == ["*args"] or [p.strip("*") for p in own] == theirs[: len(own)] or "*" in own[0], spec
    for spec in functions.METHODS.strip().splitlines():
        name, own = spec.partition("(")[0], parameters(spec)
        theirs = parameters(getattr(real.ndarray, name).__doc__.strip().splitlines()[0].partition("->")[0])
        assert own == theirs[: len(own)], (spec, theirs)
    for name in functions.UFUNCS.split():
        assert isinstance(getattr(real, name), real.ufunc), name
    made = modules.build()
    for module in made.values():
        check_module(module, real if module.__name__ == "cupy" else None)
    for name in vars(type(made["cupy"].empty)):
        assert name
    for name in vars(made["cupy"].ndarray):
        assert hasattr(real.ndarray, name) or name in {"values", "memory", "__weakref__", "__module__"}, name


def check_module(own, real):
    """Fail if a module of the stand-in has a name that the real one, if it can be imported, has not."""
    for name, value in vars(own).items():
        if real is None or name.startswith("__"):
            continue
        assert hasattr(real, name), f"{own.__name__}.{name}"
        if isinstance(value, types.ModuleType):
            check_module(value, getattr(real, name))
        elif isinstance(value, types.FunctionType) and value.__name__ != "<lambda>":
            text = getattr(real, name).__doc__ or ""
            try:
                theirs = list(inspect.signature(getattr(real, name)).parameters)
            except ValueError:
                theirs = parameters(text.strip().splitlines()[0])
            assert list(inspect.signature(value).parameters) == theirs, f"{own.__name__}.{name}"


@simulated
class TestArrays:
    def test_it_is_no_numpy_array(self, cupy):
        """NumPy neither takes it for its own nor converts it silently, and mixing the two raises."""
        x = cupy.arange(3)
        assert not isinstance(x, np.ndarray)
        with pytest.raises(TypeError, match=r"Implicit conversion .*\.get\(\)"):
            np.asarray(x)
        for mixed in (lambda: x + np.ones(3), lambda: np.ones(3) + x, lambda: cupy.add(np.ones(3), x)):
            with pytest.raises(TypeError, match="Unsupported type <class 'numpy"):
                mixed()
        with pytest.raises(TypeError):
            cupy.stack([x, np.arange(3)])
        with pytest.raises(TypeError):
            x[:] = np.arange(3)
        assert (x + np.float64(0.5)).dtype == np.float64

    def test_its_memory_has_addresses(self, cupy):
        """Views point into the memory of their base at the offset of their first element."""
        x = cupy.arange(12, dtype=np.float32).reshape(3, 4)
        assert x.data.ptr % 512 == 0
        view = x[1:, ::-2]
        assert view.data.ptr == x.data.ptr + 4 * (4 + 3)
        assert view.data.mem is x.data.mem
        assert view.base is not None
        assert (view.strides, view.flags.c_contiguous, x.T.flags.f_contiguous) == ((16, -8), False, True)
        assert x.data.device_id == x.device.id == 0
        assert cupy.empty(0).data.ptr == 0

    def test_views_share_and_copies_do_not(self, cupy):
        """What CuPy gives as a view shares memory; arithmetic, fancy indexing and copies have their own."""
        x = cupy.arange(6.0).reshape(2, 3)
        for view in (x.T, x[0], x.reshape(3, 2), x.ravel(), x.squeeze(), cupy.broadcast_to(x, (2, 2, 3)), x[None]):
            assert view.data.mem is x.data.mem
        for copy in (x + 0, x.copy(), x[[0, 1]], x.T.reshape(6), x.astype(np.float32), x[x > 1], x.sum(0)):
            assert copy.data.mem is not x.data.mem
            assert copy.flags.c_contiguous

    def test_reductions_and_elements_are_arrays(self, cupy):
        """Where NumPy gives a scalar CuPy gives an array of no dimension, which stays on the device."""
        x = cupy.arange(6.0)
        counters.reset()
        for made in (x.sum(), x[2], x.max(), cupy.dot(x, x), x.argmax(), cupy.all(x > -1), x[2] * 2):
            assert type(made) is cupy.ndarray
            assert made.shape == ()
        assert counters.synchronisations == 0

    def test_garbage_is_not_zero(self, cupy):
        """Memory without values makes NaN of every floating-point number, also where an array was freed."""
        for dtype in ("float16", "float32", "float64", lucid.bfloat16.numpy):
            cupy.zeros(100, dtype)
            assert np.isnan(cupy.empty(100, dtype).get().astype(np.float64)).all()
        assert cupy.empty(3, bool).get().dtype == bool

    def test_indices_out_of_range_wrap(self, cupy):
        """Index arrays wrap around silently, as on a GPU; Python's integers are checked on the host."""
        x = cupy.arange(5)
        at = cupy.asarray([7, -6, 4])
        assert x[at].tolist() == x.take(at).tolist() == cupy.take_along_axis(x, at, 0).tolist() == [2, 4, 4]
        cupy.add.at(x, at, 10)
        assert x.tolist() == [0, 1, 12, 3, 24]
        with pytest.raises(IndexError):
            x[5]
        with pytest.raises(TypeError, match="bfloat16"):
            cupy.add.at(cupy.zeros(3, lucid.bfloat16.numpy), at, 1)

    def test_numbers_are_weak(self, cupy):
        """Python's numbers take the array's dtype, bfloat16 too, where NumPy would widen it."""
        for dtype in ("float16", lucid.bfloat16.numpy, "float32"):
            x = cupy.ones(2, dtype)
            assert (x * 0.5).dtype == (2 - x).dtype == cupy.add(x, 1).dtype == np.dtype(dtype)

    def test_unknown_names_say_what_this_is(self, cupy):
        """A name or a parameter that the stand-in lacks is an error that names it."""
        with pytest.raises(AttributeError, match=r"stand-in for CuPy has no cupy\.fftshift"):
            cupy.fftshift
        with pytest.raises(TypeError, match="unexpected keyword argument 'where'"):
            cupy.sum(cupy.ones(2), where=True)

    def test_interchange(self, cupy):
        """DLPack and CUDA's array interface hand the memory over; NumPy is told that it is not the host's."""
        for dtype in ("float32", lucid.bfloat16.numpy, "int64"):
            x = cupy.arange(6).astype(dtype).reshape(2, 3).T
            y = cupy.from_dlpack(x)
            assert (y.dtype, y.data.ptr, y.strides) == (x.dtype, x.data.ptr, x.strides)
            assert x.__dlpack_device__() == (2, 0)
            with pytest.raises((BufferError, RuntimeError)):
                np.from_dlpack(x)
        lends = types.SimpleNamespace(__cuda_array_interface__=cupy.arange(3.0).__cuda_array_interface__)
        x = cupy.arange(4.0)[::2]
        lends = types.SimpleNamespace(__cuda_array_interface__=x.__cuda_array_interface__)
        y = cupy.asarray(lends)
        assert (y.data.ptr, y.tolist()) == (x.data.ptr, [0.0, 2.0])
        with pytest.raises(TypeError, match="CPU arrays"):
            cupy.from_dlpack(np.ones(2))

    def test_pickles_and_copies(self, cupy):
        """Pickling takes the values along."""
        x = cupy.arange(3.0)
        assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()


@simulated
class TestCounts:
    def test_what_waits_is_counted(self, cupy):
        """Reading a value, or a size that depends on values, waits for the device; everything else does not."""
        x = cupy.asarray([3.0, 1.0, 2.0])
        waits = [
            x.get, x[0].item, lambda: float(x[0]), lambda: bool(x[0]), lambda: int(x[0]), x.tolist, lambda: repr(x),
            lambda: f"{x[0]:.2f}", lambda: x[x > 1], lambda: cupy.nonzero(x), lambda: cupy.unique(x),
            lambda: cupy.where(x > 1), cupy.cuda.Stream().synchronize, cupy.cuda.Device().synchronize,
            cupy.cuda.runtime.deviceSynchronize, lambda: cupy.bincount(x.astype(int)),
        ]  # fmt: skip
        for act in waits:
            counters.reset()
            act()
            assert counters.synchronisations == 1, inspect.getsource(act) if callable(act) else act
        counters.reset()
        (x * 2 + x.sum()).sort()
        x[x > 1] = 0
        x[cupy.asarray([0, 1])] = 5
        cupy.where(x > 1, x, 0)
        cupy.allclose(x, x)
        assert counters.synchronisations == 0

    def test_work_is_counted(self, cupy):
        """Calls, allocations and bytes between host and device are counted."""
        host = np.arange(8.0)
        counters.reset()
        x = cupy.asarray(host)
        assert (counters.to_device, counters.allocations) == (64, 1)
        y = x + x
        y += 1
        assert (counters.library, counters.allocations) == (2, 2)
        assert (counters.bytes_loaded, counters.bytes_stored) == (3 * 64, 2 * 64)
        y[2:4] = x[:2]
        assert (counters.library, counters.bytes_loaded, counters.bytes_stored) == (3, 3 * 64 + 16, 2 * 64 + 16)
        y[:2].get()
        assert counters.to_host == 16


@simulated
class TestMemory:
    def test_the_pool_keeps_what_is_freed(self, cupy):
        """Sizes are rounded up to 512 bytes; freed memory is kept until `free_all_blocks`."""
        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.used_bytes(), pool.total_bytes()
        x = cupy.empty(1, np.float32)
        assert (pool.used_bytes() - before[0], pool.total_bytes() - before[1]) == (512, 512)
        view = x[:0]
        del x
        assert pool.used_bytes() - before[0] == 512
        del view
        assert (pool.used_bytes(), pool.total_bytes() - before[1]) == (before[0], 512)
        pool.free_all_blocks()
        assert pool.total_bytes() == before[1]

    def test_the_limit_holds(self, cupy):
        """An allocation beyond the limit raises and takes nothing; kept memory is given up before."""
        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        held = pool.used_bytes()
        pool.set_limit(size=held + 4096)
        try:
            cupy.empty(2048, np.uint8)
            full = cupy.empty(4096, np.uint8)
            with pytest.raises(cupy.cuda.memory.OutOfMemoryError, match="Out of memory allocating 512 bytes"):
                cupy.empty(1)
            assert pool.used_bytes() == held + full.nbytes
        finally:
            pool.set_limit(size=0)

    def test_hooks_hear_of_every_array(self, cupy):
        """A memory hook is told of allocations and releases of its thread while it is entered."""
        heard = []

        class Hook(cupy.cuda.MemoryHook):
            name = "test"

            def malloc_postprocess(self, **event):
                heard.append(event["mem_size"])

            def free_postprocess(self, **event):
                heard.append(-event["mem_size"])

        with Hook():
            x = cupy.empty(200)
            del x
        cupy.empty(3)
        assert heard == [2048, -2048]


# Two devices need a process of their own: their number is read from the environment.
TWO_DEVICES = """
import numpy as np, pytest, lucid
from lucid.backend import gpu
from lucid.errors import DeviceError
from tests.samples import all_samples
from tests.gradients import tensors_of
cupy = gpu.cupy()
assert lucid.cuda.device_count() == 2
x = cupy.ones(2)
with cupy.cuda.Device(1):
    y = cupy.ones(2)
    assert y.device.id == 1
    with pytest.raises(ValueError, match="different from the current device"):
        x + y
    stream = cupy.cuda.Stream()
    event = cupy.cuda.Event()
with pytest.raises(ValueError, match="different from the current device"):
    y.sum()
with pytest.raises(RuntimeError, match="belongs to device 1"):
    stream.use()
with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
    event.record()
with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
    cupy.cuda.Device(2).use()
rng = np.random.default_rng(0)
# these read no element of one tensor together with another: shapes, counts that the host reads, a view of each
SHAPES_ONLY = {
    "view_as", "reshape_as", "expand_as", "broadcast_tensors", "meshgrid", "meshgrid:xy", "repeat_interleave:each"
}
tried = 0
for sample in all_samples():
    arrays = sample.inputs(rng)
    if len(arrays) < 2 or sample.name in SHAPES_ONLY:
        continue
    for mixed in (("cpu", "cuda:0"), ("cuda:0", "cuda:1"), ("cuda:1", "cpu")):
        tensors = [
            tensors_of([a], device=mixed[place % 2], requires_grad=False)[0] for place, a in enumerate(arrays)
        ]
        before = [t.tolist() for t in tensors]
        tried += 1
        try:
            sample.op(*tensors)
            print(sample.name, mixed, "runs")
        except DeviceError as error:
            if not (mixed[0] in str(error) or mixed[1] in str(error)):
                print(sample.name, mixed, "names no device:", error)
        except Exception as error:
            print(sample.name, mixed, type(error).__name__, error)
        if [t.tolist() for t in tensors] != before:
            print(sample.name, mixed, "has changed its operands")
print("tried", tried)
"""


def test_devices_do_not_mix():
    """Every op of several tensors refuses those of two devices, naming one, before anything has changed."""
    environment = os.environ | {"LUCID_CUDA_SIMULATOR": "2", "LUCID_TEST_DEVICE": "cpu"}
    run = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 0, run.stderr[-3000:]
    *wrong, tried = run.stdout.splitlines()
    assert wrong == []
    assert int(tried.split()[-1]) > 100
