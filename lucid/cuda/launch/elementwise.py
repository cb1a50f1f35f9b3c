"""Elementwise functions on a CUDA device: one kernel each, whatever the strides of its operands."""

from __future__ import annotations

import itertools
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lucid.base import gpu
from lucid.base.memory import byte_bounds
from lucid.cuda.launch.copying import transposed
from lucid.cuda.launch.kernels import C_TYPES, FLOATS, VECTOR_BYTES, Kernel
from lucid.cuda.launch.layout import layouts_of
from lucid.cuda.launch.plans import PYTHON_NUMBERS, empty, recordings, remember
from lucid.cuda.source import signature
from lucid.cuda.source.sources import make

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.base.arrays import Array
    from lucid.cuda.launch.layout import Form


# Dtypes that a function has kernels for, as C names them.
BOOL = ("bool",)
INTEGERS = tuple(name for name in C_TYPES.values() if name not in FLOATS + BOOL)
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + BOOL

# Kernels by the number of operands.
KINDS = {1: "unary", 2: "binary", 3: "ternary", 4: "quaternary", 8: "octonary"}

# Operands whose dtype is not that of the function.
_BOOL = np.dtype(np.bool_)
_FIXED = {"M": _BOOL, "W": np.dtype(np.float32), "I": np.dtype(np.int32)}

# A kernel's launch, None where there is nothing to do, and the struct with the layout that it takes first.
Launch = tuple["Callable[..., None] | None", bytes]
# Shape and dtype of the output, and the launches for aligned data and for any, which take addresses alone.
Bound: TypeAlias = "tuple[tuple[int, ...], np.dtype[Any], Callable[..., None] | None, Callable[..., None] | None]"


class Elementwise:
    """A function of elements, by one kernel: ``out[i] = functor(a[i], b[i], ...)``.

    Parameters
    ----------
    stem : str
        The file in `kernels`.
    functor : str
        The struct there, ``{T}`` standing for the dtype where it is a template.
    operands : str
        One letter for each: T an array of the dtype of the function, or a number of that dtype; M a mask of bools; I
        an array of int32, W one of float32, whatever T is; S a setting: a number in the precision that the function
        computes in.
    out : str
        ``"T"`` or another C type.
    dtypes : tuple of str
        The C types that T may be.
    text : callable, optional
        ``text(functor)`` gives the struct, if it does not stand in the file; asked for when it is first compiled.
    """

    def __init__(
        self,
        stem: str,
        functor: str,
        operands: str = "T",
        *,
        out: str = "T",
        dtypes: tuple[str, ...] = FLOATS,
        text: Callable[[str], str] | None = None,
    ) -> None:
        if text is not None:
            make(f"{stem}.cu", functor, lambda: text(functor))
        self.operands = operands
        self.out = None if out == "T" else signature.NUMBERS[out].dtype
        # by dtype, shapes and strides: shape and dtype of the output, and the launches for aligned data and for any
        self.launches: dict[Any, tuple[tuple[int, ...], np.dtype[Any], Launch, Launch]] = {}
        self.in_place: dict[Any, Bound] = {}
        self.dtypes = _dtypes_of(dtypes)
        self._functor = functor, out
        self.kernel = Kernel(
            stem, KINDS[len(operands)], lambda: itertools.chain(*self.instances.values()), packed=("Layout",)
        )

    @cached_property
    def instances(self) -> dict[np.dtype[Any], tuple[tuple[str, ...], ...]]:
        """By dtype: the instances for packs and for single elements."""
        functor, out = self._functor
        instances: dict[np.dtype[Any], tuple[tuple[str, ...], ...]] = {}
        for dtype, t in self.dtypes.items():
            types = {"T": t, "M": "bool", "I": "int", "W": "float", "S": "Setting"}
            of_values = [types.get(out, out), *[types[operand] for operand in self.operands]]
            instances[dtype] = tuple((t, functor.replace("{T}", t), packed, *of_values) for packed in ("true", "false"))
        return instances

    def __call__(self, *operands: Any, out: Any = None) -> Any:
        """Return the function of arrays and numbers; NotImplemented if it has no kernel for them.

        Parameters
        ----------
        *operands : Array or number
            Arrays broadcast against each other.
        out : Array, optional
            Where to write: of the broadcast shape, any strides; it may be one of the operands.

        Raises
        ------
        ValueError
            If the shapes do not fit each other.
        """
        dtype = out.dtype if self.out is None and out is not None else None
        layouts: list[Any] = [None] if out is None else [out.shape, out.strides]
        values: list[Any] = []
        addresses = 0
        fractions = False
        for operand, kind in zip(operands, self.operands, strict=True):
            if kind == "S":
                values.append(operand)
            elif type(operand) in PYTHON_NUMBERS:
                fractions = fractions or type(operand) is float
                layouts.append(None)
                values += (0, operand)
            else:
                try:
                    address = operand.data.ptr
                except AttributeError:
                    return NotImplemented
                if kind != "T":
                    if operand.dtype != _FIXED[kind]:
                        return NotImplemented
                elif dtype is None:
                    dtype = operand.dtype
                elif operand.dtype != dtype:
                    return NotImplemented
                addresses |= address
                layouts += (operand.shape, operand.strides)
                values += (address, 0)
        if dtype is None and out is not None:
            dtype = out.dtype
        if dtype is None or dtype not in self.dtypes or (fractions and dtype.kind in "biu"):
            return NotImplemented
        key = (dtype, *layouts)
        known = self.launches.get(key) or self._prepare(key, operands, out)
        if known is None:
            return NotImplemented
        shape, made, aligned, general = known
        if out is None:
            out = empty(shape, made)
        target = out.data.ptr
        launch, layout = general if (addresses | target) % VECTOR_BYTES else aligned
        if launch is not None:
            launch(layout, target, *values)
        return out

    def straight(self) -> Callable[..., Any] | None:
        """Return `__call__` of up to three arrays in straight-line code; None for other operands.

        It raises TypeError where there is no kernel for them, where their device is not the current one, and while a
        plan is being made, which has to note what is done; of three it asks `__call__` then. One of two may be a
        number. Launches are found by shapes alone where elements lie in order: steps of dimensions of one element do
        not matter.
        """
        makers = {"T": self._of_one, "TT": self._of_two, "TTT": self._of_three, "MTT": self._of_three}
        return makers[self.operands]() if self.operands in makers else None

    def _of_one(self) -> Callable[[Any], Any]:
        bound: dict[Any, Bound] = {}
        make, device = gpu.array_maker(), gpu.cupy().cuda.runtime.getDevice

        def run(x: Any) -> Any:
            memory = x.data
            if recordings or memory.device_id != device():
                raise TypeError
            key = x.dtype, x.shape, None if x._c_contiguous else x.strides  # noqa: SLF001
            shape, made, aligned, general = bound.get(key) or self._bind(bound, key, (x,))
            out = make(shape, made)
            address, target = memory.ptr, out.data.ptr
            launch = general if (address | target) % VECTOR_BYTES else aligned
            if launch is not None:
                launch((target, address))
            return out

        return run

    def _of_two(self) -> Callable[[Any, Any], Any]:
        bound: dict[Any, Bound] = {}
        make, device, ndarray = gpu.array_maker(), gpu.cupy().cuda.runtime.getDevice, gpu.cupy().ndarray

        def with_number(x: Any, y: Any) -> Any:
            first = type(x) is ndarray
            array, number = (x, y) if first else (y, x)
            if type(array) is not ndarray or type(number) not in PYTHON_NUMBERS:
                raise TypeError
            dtype, memory = array.dtype, array.data
            if recordings or memory.device_id != device() or (dtype.kind in "biu" and type(number) is float):
                raise TypeError
            form = dtype, array.shape, None if array._c_contiguous else array.strides, first  # noqa: SLF001
            shape, made, aligned, general = bound.get(form) or self._bind(bound, form, (x, y))
            out = make(shape, made)
            address, target = memory.ptr, out.data.ptr
            launch = general if (address | target) % VECTOR_BYTES else aligned
            if launch is not None and first:
                launch((target, address), number)
            elif launch is not None:
                launch((target,), number, address, 0)
            return out

        def run(x: Any, y: Any) -> Any:
            if type(x) is not ndarray or type(y) is not ndarray:
                return with_number(x, y)
            dtype, memory, other = x.dtype, x.data, y.data
            index = memory.device_id
            if recordings or index != other.device_id or y.dtype is not dtype or index != device():
                raise TypeError
            if x._c_contiguous and y._c_contiguous:  # noqa: SLF001
                key = dtype, x.shape, y.shape
            else:
                key = dtype, x.shape, x.strides, y.shape, y.strides
            shape, made, aligned, general = bound.get(key) or self._bind(bound, key, (x, y))
            out = make(shape, made)
            a, b, target = memory.ptr, other.ptr, out.data.ptr
            launch = general if (a | b | target) % VECTOR_BYTES else aligned
            if launch is not None:
                launch((target, a, b))
            return out

        return run

    def _of_three(self) -> Callable[[Any, Any, Any], Any]:
        bound: dict[Any, Bound] = {}
        make, device, ndarray = gpu.array_maker(), gpu.cupy().cuda.runtime.getDevice, gpu.cupy().ndarray
        mask = self.operands[0] == "M"

        def run(x: Any, y: Any, z: Any) -> Any:
            if type(x) is not ndarray or type(y) is not ndarray or type(z) is not ndarray or recordings:
                return self(x, y, z)
            one, two, three, dtype = x.data, y.data, z.data, y.dtype
            index = device()
            if (
                one.device_id != index
                or two.device_id != index
                or three.device_id != index
                or z.dtype is not dtype
                or x.dtype is not (_BOOL if mask else dtype)
            ):
                return self(x, y, z)
            if x._c_contiguous and y._c_contiguous and z._c_contiguous:  # noqa: SLF001
                key = dtype, x.shape, y.shape, z.shape
            else:
                key = dtype, x.shape, x.strides, y.shape, y.strides, z.shape, z.strides
            shape, made, aligned, general = bound.get(key) or self._bind(bound, key, (x, y, z))
            out = make(shape, made)
            a, b, c, target = one.ptr, two.ptr, three.ptr, out.data.ptr
            launch = general if (a | b | c | target) % VECTOR_BYTES else aligned
            if launch is not None:
                launch((target, a, b, c))
            return out

        return run

    def change(self, x: Array, y: Array) -> None:
        """Write the function of two arrays of one dtype, on the current device, to the first.

        Raises
        ------
        TypeError
            If there is no kernel for them.
        ValueError
            If `y` does not broadcast to the shape of `x`.
        """
        if x._c_contiguous and y._c_contiguous:  # noqa: SLF001
            key = x.dtype, x.shape, y.shape
        else:
            key = x.dtype, x.shape, x.strides, y.shape, y.strides
        _, _, aligned, general = self.in_place.get(key) or self._bind(self.in_place, key, (x, y), x)
        a, b = x.data.ptr, y.data.ptr
        launch = general if (a | b) % VECTOR_BYTES else aligned
        if launch is not None:
            launch((a, a, b))

    def _bind(self, bound: dict[Any, Bound], key: Any, operands: Sequence[Any], out: Any = None) -> Bound:
        """Find the launches for arrays of one form, bound to all but addresses, and remember them.

        One operand may be a number: each launch gets it, and all values behind it, after the addresses.
        """
        chosen = self._find(key[0], operands, out)
        if chosen is None:
            raise TypeError
        shape, made, choices = chosen
        values = [0] * (2 * len(operands))
        ahead = next((k for k, operand in enumerate(operands) if not hasattr(operand, "strides")), len(operands))
        last = max(2 * (len(operands) - ahead) - 1, 0)
        slots = [(1, 0, 0), *[(2 + 2 * k, 1 + k, 0) for k in range(ahead)]]
        aligned, general = (
            launcher.bound(layout.grid, layout.block, (layout.parameter, 0, *values), slots, last)
            if layout.grid
            else None
            for launcher, layout in choices
        )
        return remember(bound, key, (shape, made, aligned, general))

    def _prepare(self, key: tuple[Any, ...], operands: Sequence[Any], out: Any) -> Any:
        """Find the launches for a key and remember them."""
        chosen = self._find(key[0], operands, out)
        if chosen is None:
            return None
        shape, made, choices = chosen
        aligned, general = (
            (launcher.shaped(layout.grid, layout.block) if layout.grid else None, layout.parameter)
            for launcher, layout in choices
        )
        return remember(self.launches, key, (shape, made, aligned, general))

    def _find(self, dtype: np.dtype[Any], operands: Sequence[Any], out: Any) -> Any:
        """Return shape and dtype of the output, and kernel and layout for aligned data and for any; None if none."""
        if dtype not in self.dtypes:
            return None
        width = VECTOR_BYTES // dtype.itemsize
        made = self.out or dtype
        walked = layouts_of([_form(x) for x in operands], _form(out), made.itemsize, width)
        if walked is None:
            return None
        shape, *layouts = walked
        packed, single = self.instances[dtype]
        return shape, made, [(self.kernel[packed if layout.packed else single], layout) for layout in layouts]


def _form(operand: Any) -> Form | None:
    return (operand.shape, operand.strides, operand.itemsize) if hasattr(operand, "strides") else None


@cache
def _dtypes_of(names: tuple[str, ...]) -> dict[np.dtype[Any], str]:
    return {dtype: t for dtype, t in C_TYPES.items() if t in names}


_CASTS = {dtype: Elementwise("cast", "Same", out=name, dtypes=ALL) for dtype, name in C_TYPES.items()}


def converted(x: Any, dtype: Any, out: Array | None = None) -> Any:
    """Return a copy of `x`, in C order and in another dtype; NotImplemented if there is no kernel for them.

    Parameters
    ----------
    x : Array or number
        Of any strides.
    dtype : numpy.dtype
        Of the copy.
    out : Array of that dtype, optional
        Where to write, of any strides; it may share memory with `x`.
    """
    if out is None and getattr(x, "dtype", None) == dtype:
        copy = transposed(x)
        if copy is not NotImplemented:
            return copy
    cast = _CASTS.get(np.dtype(dtype))
    if cast is None:
        return NotImplemented
    if out is not None and type(x) is type(out) and overlap(x, out):
        x = cast(x)
    return cast(x, out=out)


def overlap(a: Array, b: Array) -> bool:
    """Return whether the memory between the first and the last element of two arrays is partly the same."""
    if not (a.size and b.size):
        return False
    (a_first, a_last), (b_first, b_last) = byte_bounds(a), byte_bounds(b)
    return a_first < b_last and b_first < a_last
