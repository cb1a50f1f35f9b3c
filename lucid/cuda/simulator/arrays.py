"""The stand-in's array: NumPy's behaviour and CuPy's rules, on memory of a simulated device."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.cuda.simulator.counting import counters
from lucid.cuda.simulator.memory import SPARSE
from lucid.cuda.simulator.places import Device, current_device, get_current_stream
from lucid.cuda.simulator.pool import Memory, MemoryPointer, pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["around", "call", "foreign", "host", "ndarray", "new", "wait"]

_PLAIN = frozenset((int, float, bool, complex, str, type(None), slice, type(Ellipsis), type))


class Flags:
    """How an array lies in memory."""

    __slots__ = ("c_contiguous", "f_contiguous", "owndata")

    def __init__(self, array: ndarray) -> None:
        self.c_contiguous: bool = array.values.flags.c_contiguous
        self.f_contiguous: bool = array.values.flags.f_contiguous
        self.owndata = array.base is None

    def __getitem__(self, name: str) -> bool:
        return getattr(self, name.lower())


class ndarray:
    """An array on a simulated device. NumPy's arrays never mix with it, and neither do those of another device.

    Operators and most methods are put here by `functions`, reading and writing elements by `indexing`.

    Attributes
    ----------
    values : numpy.ndarray
        The elements as the host sees them. CuPy has no such attribute: it is for the simulator alone.
    memory : Memory
        What they lie in, likewise.
    """

    __slots__ = ("__weakref__", "base", "memory", "values")

    __array_priority__ = 100
    __hash__: Any = None

    values: np.ndarray[Any, Any]
    memory: Memory
    base: ndarray | None

    def __new__(  # noqa: D102, PYI034 - CuPy's own signature; nothing derives from it
        cls, shape: Any, dtype: Any = float, memptr: MemoryPointer | None = None, strides: Any = None, order: str = "C"
    ) -> ndarray:
        form: np.dtype[Any] = np.dtype(dtype)
        sizes = (operator.index(shape),) if np.ndim(shape) == 0 else tuple([operator.index(n) for n in shape])
        if any(n < 0 for n in sizes):
            raise ValueError("Negative dimensions are not allowed")
        if memptr is None:
            memory, offset = pool.lend(math.prod(sizes) * form.itemsize), 0
            if form.kind == "b" and memory.size < SPARSE:
                # all bits set, as memory comes, is no bool
                memory.bytes.fill(1)
        else:
            memory, offset = memptr.mem, memptr.ptr - memptr.mem.ptr
        return around(laid_out(sizes, form, memory, offset, strides, order), memory, None)

    if TYPE_CHECKING:
        # what `functions` and `indexing` put here
        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, key: Any) -> Any: ...
        def __setitem__(self, key: Any, value: Any) -> None: ...
        def __mod__(self, other: Any) -> Any: ...

    shape: Any = property(operator.attrgetter("values.shape"))
    strides: Any = property(operator.attrgetter("values.strides"))
    dtype: Any = property(operator.attrgetter("values.dtype"))
    ndim: Any = property(operator.attrgetter("values.ndim"))
    size: Any = property(operator.attrgetter("values.size"))
    itemsize: Any = property(operator.attrgetter("values.itemsize"))
    nbytes: Any = property(operator.attrgetter("values.nbytes"))
    flags: Any = property(Flags)

    @property
    def data(self) -> MemoryPointer:
        """Address of the first element."""
        return MemoryPointer(self.memory, address(self.values) - self.memory.ptr if self.memory.ptr else 0)

    @property
    def device(self) -> Device:
        """The device that holds it."""
        return Device(self.memory.device_id)

    @property
    def T(self) -> ndarray:
        """View with the axes reversed."""
        return around(self.values.T, self.memory, self)

    @property
    def mT(self) -> ndarray:
        """View with the last two axes swapped."""
        return around(self.values.swapaxes(-1, -2), self.memory, self)

    @property
    def real(self) -> ndarray:
        """Real part; the array itself if it is real."""
        return around(self.values.real, self.memory, self) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        call(np.copyto, (self.real, value), {})

    @property
    def imag(self) -> ndarray:
        """Imaginary part; zeros if it is real."""
        if self.dtype.kind == "c":
            return around(self.values.imag, self.memory, self)
        return new(np.zeros(self.shape, self.dtype))

    @imag.setter
    def imag(self, value: Any) -> None:
        call(np.copyto, (self.imag, value), {})

    def view(self, dtype: Any = None, type: Any = None) -> ndarray:
        """View of the same memory, of another dtype if one is given."""
        return around(self.values.view() if dtype is None else self.values.view(dtype), self.memory, self)

    # what the host sees of it

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        """Return a NumPy array with the elements; whichever device is current."""
        counters.synchronisations += blocking
        counters.to_host += self.nbytes
        if out is None:
            return np.array(self.values, order=order)  # type: ignore[call-overload]
        if not is_numpy(out) or out.dtype != self.dtype or out.shape != self.shape:
            raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray, of its shape and dtype")
        out[...] = self.values
        return out

    def set(self, arr: Any, stream: Any = None) -> None:
        """Copy a NumPy array of its shape and dtype into it."""
        used(self)
        if not is_numpy(arr):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not (self.flags.c_contiguous or self.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        counters.to_device += self.nbytes
        self.values[...] = arr

    def item(self) -> Any:
        """Return the only element as a Python number."""
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.get().item()

    def tolist(self) -> Any:
        """Return the elements as nested lists."""
        return self.get().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """Return the bytes of the elements."""
        return self.get().tobytes(order)

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __complex__(self) -> complex:
        return complex(self.get())

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    def __format__(self, spec: str) -> str:
        return format(self.get(), spec)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[ndarray]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (around(self.values[i, ...], self.memory, self) for i in range(len(self.values)))

    # copies

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True
    ) -> ndarray:
        """Copy in another dtype; the array itself if nothing changes and `copy` is False."""
        if not copy and self.dtype == np.dtype(dtype) and order in {"K", "A"}:
            return self
        return call(np.ndarray.astype, (self, dtype), {"order": order, "copy": True}, keep=True)

    def copy(self, order: str = "C") -> ndarray:
        """Copy on the current device, which may be another one."""
        if self.memory.device_id != current_device():
            return new(self.values)
        return call(np.ndarray.copy, (self,), {"order": order}, keep=True)

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, _: Any) -> ndarray:
        with self.device:
            return self.copy()

    def __reduce__(self) -> Any:
        return _loaded, (self.get(),)

    def flatten(self, order: str = "C") -> ndarray:
        """Copy of one dimension."""
        return call(np.ndarray.flatten, (self,), {"order": order})

    def fill(self, value: Any) -> None:
        """Set every element to a number."""
        if isinstance(value, ndarray) and value.ndim:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        call(np.copyto, (self, value), {"casting": "unsafe"})

    # protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        own: Any = known.get(ufunc.__name__)
        if own is None or method not in {"__call__", "at", "reduce"}:
            return NotImplemented
        out: Any = kwargs.get("out")
        if is_sequence(out) and len(out) == 1:
            kwargs["out"] = out[0]
        return (own if method == "__call__" else getattr(own, method))(*inputs, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        own = known.get(function.__name__)
        return NotImplemented if own is None else own(*args, **kwargs)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "stream": get_current_stream().ptr or 1,
            "version": 3,
            "strides": None if self.flags.c_contiguous else self.strides,
            "data": (self.data.ptr, False),
        }


# CuPy's functions by name, for NumPy functions that are called on arrays; `functions` fills it.
known: dict[str, Callable[..., Any]] = {}


def is_numpy(value: Any) -> bool:
    """Return whether `value` is a NumPy array, in words that leave its type alone."""
    return isinstance(value, np.ndarray)


def is_sequence(value: Any) -> bool:
    """Return whether `value` is a list or a tuple, likewise."""
    return isinstance(value, list | tuple)


def is_scalar(value: Any) -> bool:
    """Return whether `value` is a NumPy scalar or dtype, likewise."""
    return isinstance(value, np.generic | np.dtype)


def rebuilt(kind: Any, parts: list[Any]) -> Any:
    """Return a sequence of the given class, likewise."""
    return kind(parts)


def class_of(value: Any) -> Any:
    """Return the class of `value`, likewise."""
    return value.__class__


def _loaded(values: Any) -> ndarray:
    """Return an unpickled array, on the current device."""
    counters.to_device += values.nbytes
    return new(values)


def address(values: np.ndarray[Any, Any]) -> int:
    """Return the address of the first element."""
    return values.__array_interface__["data"][0]


def laid_out(
    shape: tuple[int, ...], dtype: Any, memory: Memory, offset: int = 0, strides: Any = None, order: str = "C"
) -> np.ndarray[Any, Any]:
    """Return the host's view of an array in memory."""
    by_columns: Any = "F" if order in {"F", "f"} else "C"
    return np.ndarray(shape, dtype, memory.bytes, offset, strides, by_columns)  # type: ignore[arg-type]


def around(values: np.ndarray[Any, Any], memory: Memory, base: ndarray | None) -> ndarray:
    """Return the array around values that lie in `memory`."""
    array = object.__new__(ndarray)
    array.values = values
    array.memory = memory
    array.base = None if base is None else base if base.base is None else base.base
    return array


def new(values: np.ndarray[Any, Any], *, keep: bool = False) -> ndarray:
    """Return a copy of host values in new memory of the current device; with `keep`, laid out as they are."""
    memory = pool.lend(values.nbytes)
    strides = None
    if keep and not values.flags.c_contiguous:
        strides = np.empty_like(values).strides
    made = laid_out(values.shape, values.dtype, memory, 0, strides)
    made[...] = values
    return around(made, memory, None)


def used(array: ndarray) -> np.ndarray[Any, Any]:
    """Return the values of an array that is used on the current device.

    Raises
    ------
    ValueError
        If it is on another one.
    """
    place, current = array.memory.device_id, current_device()
    if place != current:
        raise ValueError(
            f"The device where the array resides ({place}) is different from the current device ({current}). "
            "Peer access is unavailable between these devices."
        )
    return array.values


def host(value: Any, device: int, lent: list[ndarray]) -> Any:
    """Return an argument as NumPy takes it; arrays are noted in `lent`.

    Raises
    ------
    TypeError
        If it is, or holds, a NumPy array.
    ValueError
        If it is, or holds, an array of another device.
    """
    kind: Any = class_of(value)
    if kind is ndarray:
        lent.append(value)
        return used(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return rebuilt(kind, [host(part, device, lent) for part in value])
    if is_numpy(value):
        if value.ndim == 0:
            return value[()]
        raise TypeError(f"Unsupported type {type(value)}")
    if not is_scalar(value) and hasattr(value, "__cuda_array_interface__"):
        return host(foreign(value), device, lent)
    return value


def given(result: Any, lent: list[ndarray], *, keep: bool) -> Any:
    """Return a result of NumPy's as CuPy gives it: a view of what was lent, or a new array, of no dimension too."""
    if is_numpy(result):
        if result.size and (result.base is not None or any(result is array.values for array in lent)):
            start = address(result)
            for array in lent:
                if array.memory.ptr <= start < array.memory.ptr + array.memory.size:
                    return around(result, array.memory, array)
        return new(result, keep=keep)
    if is_scalar(result):
        return new(np.asarray(result))
    if is_sequence(result):
        made = [given(part, lent, keep=keep) for part in result]
        return made if class_of(result) is list else tuple(made)
    return result


def call(function: Callable[..., Any], args: Any, kwargs: dict[str, Any], *, keep: bool = False) -> Any:
    """Call a function of NumPy's with arrays of the current device; what it gives is there too."""
    device = current_device()
    lent: list[ndarray] = []
    raw = [host(arg, device, lent) for arg in args]
    loaded = sum(array.nbytes for array in lent)
    named = {name: host(value, device, lent) for name, value in kwargs.items()}
    with np.errstate(all="ignore"):
        result = function(*raw, **named)
    made: Any = kwargs.get("out")
    if made is None:
        made = given(result, lent, keep=keep)
        first = made[0] if type(made) in {tuple, list} and made else made
        if isinstance(first, ndarray) and first.base is not None:
            return made  # a view costs the device nothing
    written = made if type(made) in {tuple, list} else [made]
    counters.library_call(loaded, sum(x.nbytes for x in written if isinstance(x, ndarray)))
    return made


def wait() -> None:
    """Count that the host waits for the device."""
    counters.synchronisations += 1


def foreign(source: Any) -> ndarray:
    """Return an array on the memory of an object that describes it in `__cuda_array_interface__`."""
    told: dict[str, Any] = source.__cuda_array_interface__
    values = described({n: told.get(n) for n in ("shape", "typestr", "data", "strides")})
    own = pool.holding(told["data"][0])
    if own is not None:
        return around(values, own, None)
    low, high = np.lib.array_utils.byte_bounds(values)
    whole = described({"shape": (high - low,), "typestr": "|u1", "data": (low, False)})
    return around(values, Memory(pool, whole, current_device(), 0, owner=source), None)


def described(interface: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Return the host's view of memory that NumPy's array interface describes."""
    return np.asarray(type("Described", (), {"__array_interface__": interface | {"version": 3}})())
