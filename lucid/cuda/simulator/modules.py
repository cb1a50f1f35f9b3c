"""The stand-in's modules: `cupy`, `cupyx` and the parts of CuPy that lucid asks for by name."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.cuda.simulator import cublas, places, pool
from lucid.cuda.simulator.arrays import around, call, foreign, ndarray, new
from lucid.cuda.simulator.counting import counters
from lucid.cuda.simulator.functions import functions
from lucid.cuda.simulator.interchange import add_interchange, from_dlpack
from lucid.cuda.simulator.memory import SPARSE

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["load"]


class StandIn(types.ModuleType):
    """A module that says what it is when it is asked for what it does not have."""

    def __init__(self, name: str, contents: dict[str, Any]) -> None:
        super().__init__(name, f"lucid's stand-in for {name}: arrays of simulated devices.")
        self.__dict__.update(contents)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"lucid's stand-in for CuPy has no {self.__name__}.{name}; it has what lucid uses, "
            "in lucid/cuda/simulator/functions.py"
        )


def filled(shape: Any, value: Any, dtype: Any, order: str) -> ndarray:
    """Return a new array of one number."""
    array = ndarray(shape, dtype, order=order)
    counters.library_call(0, array.nbytes)
    # sparse memory is zero already
    if array.memory.size < SPARSE or np.any(value):
        with np.errstate(all="ignore"):
            array.values[...] = value
    return array


def like(a: ndarray, dtype: Any, order: str, shape: Any) -> ndarray:
    """Return a new array without values, laid out as another one."""
    form = a.dtype if dtype is None else np.dtype(dtype)
    if shape is not None or order not in {"K", "A"}:
        return ndarray(a.shape if shape is None else shape, form, order="C" if order in {"K", "A"} else order)
    made = ndarray(a.shape, form)
    strides = np.empty_like(a.values, form).strides
    made.values = np.ndarray(a.shape, form, made.memory.bytes, 0, strides)
    return made


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Without values: NaN in floating-point dtypes."""
    return ndarray(shape, dtype, order=order)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Zeros."""
    return filled(shape, 0, dtype, order)


def ones(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Ones."""
    return filled(shape, 1, dtype, order)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    """One number everywhere."""
    value = fill_value.values if isinstance(fill_value, ndarray) else fill_value
    return filled(shape, value, np.asarray(value).dtype if dtype is None else dtype, order)


def empty_like(
    prototype: ndarray, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None
) -> ndarray:
    """Without values, in the form of another array."""
    return like(prototype, dtype, order, shape)


def zeros_like(a: ndarray, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    """Zeros in the form of another array."""
    return full_like(a, 0, dtype, order, subok, shape)


def ones_like(a: ndarray, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    """Ones in the form of another array."""
    return full_like(a, 1, dtype, order, subok, shape)


def full_like(
    a: ndarray, fill_value: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None
) -> ndarray:
    """One number everywhere, in the form of another array."""
    made = like(a, dtype, order, shape)
    # sparse memory is zero already
    if made.memory.size < SPARSE or fill_value != 0:
        made[...] = fill_value
    return made


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    """Numbers at equal distances."""
    return call(np.arange, (0, start, step) if stop is None else (start, stop, step), {"dtype": dtype})


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """So many numbers at equal distances."""
    return call(
        np.linspace, (start, stop, num), {"endpoint": endpoint, "retstep": retstep, "dtype": dtype, "axis": axis}
    )


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, order: str = "C") -> ndarray:
    """Ones on a diagonal."""
    return call(np.eye, (N, M, k, dtype), {})


# NumPy's stubs do not know every order that CuPy's callers pass on.
_numpy_array: Any = np.array
_numpy_empty: Any = np.empty


def array(
    obj: Any, dtype: Any = None, copy: bool = True, order: str = "K", subok: bool = False, ndmin: int = 0, *,
    blocking: bool = False,
) -> ndarray:  # fmt: skip
    """Make an array of a simulated array, a NumPy array, numbers, or lists of the first or the last."""
    if not isinstance(obj, ndarray) and hasattr(obj, "__cuda_array_interface__"):
        obj = foreign(obj)
    if isinstance(obj, ndarray):
        made = obj.astype(obj.dtype if dtype is None else dtype, order, copy=copy)
    elif isinstance(obj, list | tuple) and holds_arrays(obj):
        made = call(np.array, (obj,), {"dtype": dtype})
    else:
        with np.errstate(all="ignore"):
            values: Any = _numpy_array(obj, dtype, order=order)
        if values.dtype.kind not in "biufcV":
            raise ValueError(f"Unsupported dtype {values.dtype}")
        counters.to_device += values.nbytes if isinstance(obj, np.ndarray | list | tuple) else 0
        # a copy from pageable memory is staged, and the host goes on; it waits where it was told to
        counters.synchronisations += blocking
        made = new(values, keep=True)
    return made if made.ndim >= ndmin else made.reshape((1,) * (ndmin - made.ndim) + made.shape)


def holds_arrays(data: Any) -> bool:
    """Whether a sequence holds simulated arrays; what is mixed with others raises when it is read."""
    return any(isinstance(part, ndarray) or (isinstance(part, list | tuple) and holds_arrays(part)) for part in data)


def asarray(
    a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None, blocking: bool = False
) -> ndarray:
    """Make an array of what is there, without a copy where it can be."""
    return array(a, dtype, bool(copy), order or "K", blocking=blocking)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """Laid out by rows."""
    made = asarray(a, dtype)
    if not made.flags.c_contiguous:
        made = made.copy()
    return made if made.ndim else made.reshape(1)


def asfortranarray(a: Any, dtype: Any = None) -> ndarray:
    """Laid out by columns."""
    made = asarray(a, dtype)
    return made if made.flags.f_contiguous else made.copy("F")


def copy(a: ndarray, order: str = "K") -> ndarray:
    """Copy an array."""
    return a.copy(order)


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> Any:
    """Return a NumPy array with the elements."""
    return a.get(stream, order, out, blocking) if isinstance(a, ndarray) else np.asarray(a)


def as_strided(x: ndarray, shape: Any = None, strides: Any = None) -> ndarray:
    """Return a view with any shape and strides."""
    return around(np.lib.stride_tricks.as_strided(x.values, shape, strides), x.memory, x)


def norm(x: ndarray, ord: Any = None, axis: Any = None, keepdims: bool = False) -> ndarray:
    """Norm of vectors or matrices."""
    return call(np.linalg.norm, (x, ord, axis, keepdims), {})


class PinnedMemoryPointer:
    """Page-locked memory of the host: here, any memory of the host."""

    def __init__(self, size: int) -> None:
        self._bytes = np.empty(size, np.uint8)
        self.ptr = int(self._bytes.ctypes.data)

    def size(self) -> int:
        """Bytes."""
        return self._bytes.nbytes

    def __buffer__(self, flags: int, /) -> memoryview:
        view: Any = self._bytes
        return memoryview(view)


def empty_pinned(shape: Any, dtype: Any = float, order: str = "C") -> np.ndarray[Any, Any]:
    """Without values, in page-locked memory of the host: here, in any."""
    return _numpy_empty(shape, dtype, order)


def get_array_module(*args: Any) -> Any:
    """Return the stand-in if one of the arguments is its array, else NumPy."""
    return load("cupy") if any(isinstance(arg, ndarray) for arg in args) else np


DTYPES = "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
SHARED = f"{DTYPES} dtype newaxis pi e inf nan finfo iinfo can_cast promote_types broadcast_shapes"


def build() -> dict[str, Any]:
    """Return the modules by name."""
    memory = StandIn(
        "cupy.cuda.memory",
        {"OutOfMemoryError": pool.OutOfMemoryError, "MemoryPointer": pool.MemoryPointer, "MemoryPool": pool.MemoryPool},
    )
    cuda = StandIn(
        "cupy.cuda",
        {
            "Device": places.Device,
            "Event": places.Event,
            "MemoryHook": pool.MemoryHook,
            "MemoryPointer": pool.MemoryPointer,
            "MemoryPool": pool.MemoryPool,
            "Stream": places.Stream,
            "alloc_pinned_memory": PinnedMemoryPointer,
            "device": StandIn(
                "cupy.cuda.device", {"Device": places.Device, "get_cublas_handle": cublas.get_cublas_handle}
            ),
            "get_current_stream": places.get_current_stream,
            "get_elapsed_time": places.get_elapsed_time,
            "memory": memory,
            "runtime": places.runtime,
        },
    )
    made: dict[str, Callable[..., Any]] = {
        f.__name__: f
        for f in (
            arange, array, asarray, ascontiguousarray, asfortranarray, asnumpy, copy, empty, empty_like, eye, full,
            full_like, get_array_module, linspace, ones, ones_like, zeros, zeros_like,
        )
    }  # fmt: skip
    cupy = StandIn(
        "cupy",
        {
            **functions(),
            **made,
            **{name: getattr(np, name) for name in SHARED.split()},
            "cuda": cuda,
            "from_dlpack": from_dlpack,
            "get_default_memory_pool": lambda: pool.pool,
            "lib": StandIn(
                "cupy.lib", {"stride_tricks": StandIn("cupy.lib.stride_tricks", {"as_strided": as_strided})}
            ),
            "linalg": StandIn("cupy.linalg", {"norm": norm}),
            "ndarray": ndarray,
        },
    )
    add_interchange()
    cupyx = StandIn("cupyx", {"empty_pinned": empty_pinned})
    products = StandIn(
        "cupy_backends.cuda.libs.cublas",
        {"CUBLASError": cublas.CUBLASError, "gemmStridedBatchedEx": cublas.gemmStridedBatchedEx},
    )
    return {module.__name__: module for module in (cupy, cupyx, products)}


_modules: dict[str, Any] = {}


def load(name: str) -> Any:
    """Return a module of CuPy's by its dotted name."""
    if not _modules:
        _modules.update(build())
    return _modules[name]
