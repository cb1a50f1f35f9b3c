"""Work on many arrays in a few launches, whatever their number: optimizer steps, gradient norm, clipping, unscaling.

Addresses and sizes of the arrays travel by value in a launch's parameters (``tensors.cuh``), so nothing is
copied to the device before, and nothing waits for it. A row is a list of arrays of one shape and dtype that belong
together, such as gradient, parameter and state.

The functions that change rows in place return those rows that they have no kernel for, untouched: of another dtype,
strided where they would be written, or given twice, which one launch would change in no order.
"""

from __future__ import annotations

import operator
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from lucid.backend import gpu
from lucid.cuda.launch.kernels import C_TYPES, FLOATS, Kernel
from lucid.cuda.source.signature import constant
from lucid.cuda.steps.numbers import NumbersKernel, RowNumbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lucid.backend.arrays import Array
    from lucid.cuda.steps.numbers import Given

Row: TypeAlias = list[Any]

# Elements that one block works on: many, so that finding its row costs little beside them, but few enough that a small
# model still spreads over the device.
_LARGEST_CHUNK, _SMALLEST_CHUNK = 1 << 16, 1 << 11
_BLOCKS_WANTED = 1 << 9
_THREADS = 256

_NORM_ORDERS = {1.0: "1", 2.0: "2", float("inf"): "0"}


def _instances(*arguments: str) -> list[tuple[str, ...]]:
    """Return the instances of each dtype: with each of these template arguments behind it, or alone without any."""
    return [(t, *more) for t in FLOATS for more in ([(each,) for each in arguments] or [()])]


_norm_partial = Kernel("gradients", "lucid::norm_partial", _instances(*_NORM_ORDERS.values()))
_norm_total = Kernel("gradients", "lucid::norm_total", _instances(*_NORM_ORDERS.values()))
_clip_by_norm = Kernel("gradients", "lucid::clip_by_norm", _instances(*FLOATS))
_clip_by_value = Kernel("gradients", "lucid::clip_by_value", _instances())
_unscale = Kernel("gradients", "lucid::unscale", _instances())


# ---- rows into tables ----


@cache
def _kind_of(dtype: np.dtype[Any]) -> tuple[str | None, int]:
    """Return the C name of a floating dtype, or of the parts of a complex one, which a step works on alike; its bytes.

    None stands for the name of other dtypes.
    """
    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    name = C_TYPES.get(real)
    return name if name in FLOATS else None, real.itemsize


def _name_of(dtype: np.dtype[Any]) -> str:
    """Return the C name of the dtype of rows that kernels can take."""
    return _kind_of(dtype)[0] or ""


def _sorted_out(
    rows: Iterable[Row], *, empty: bool = False
) -> tuple[dict[tuple[int, np.dtype[Any]], list[Row]], list[Row]]:
    """Return the rows that kernels can take, by device and dtype, and the others; without elements only if `empty`.

    The first of several arrays is only read, and so made contiguous where it is strided.
    """
    groups: dict[tuple[int, np.dtype[Any]], list[Row]] = {}
    others: list[Row] = []
    seen: set[int] = set()
    for row in rows:
        last = row[-1]
        if not (last.size or empty):
            continue
        dtype, shape, memory = last.dtype, last.shape, last.data
        name, _ = _kind_of(dtype)
        address = memory.ptr
        # its own attribute takes a tenth of the time of `flags.c_contiguous`
        fits = name is not None and (address not in seen or not last.size) and last._c_contiguous  # noqa: SLF001
        for array in row[:-1] if fits else ():
            if array.dtype != dtype or array.shape != shape or not (array._c_contiguous or array is row[0]):  # noqa: SLF001
                fits = False
        if not fits:
            others.append(row)
            continue
        seen.add(address)
        device = memory.device_id
        if not row[0]._c_contiguous:  # noqa: SLF001
            with gpu.use_device(device):
                row = [gpu.cupy().ascontiguousarray(row[0]), *row[1:]]  # noqa: PLW2901
        groups.setdefault((device, dtype), []).append(row)
    return groups, others


def _tables(rows: list[Row]) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return grid, block and the first values of each of the launches that rows of one dtype and depth need."""
    whole = rows[0][0].itemsize // _kind_of(rows[0][0].dtype)[1]
    sizes = [row[0].size * whole for row in rows]
    chunk = _LARGEST_CHUNK
    while chunk > _SMALLEST_CHUNK and sum(sizes) < chunk * _BLOCKS_WANTED:
        chunk //= 2
    depth = len(rows[0])
    capacity = constant("tensors.cuh", f"table_capacity({depth})")
    tables: list[tuple[int, int, tuple[int, ...]]] = []
    for start in range(0, len(rows), capacity):
        here, count = sizes[start : start + capacity], min(capacity, len(rows) - start)
        padding = [0] * (capacity - count)
        values: list[int] = []
        for d in range(depth):
            values += [row[d].data.ptr for row in rows[start : start + capacity]]
            values += padding
        ends = list(accumulate(-(-size // chunk) for size in here))
        threads = min(-(-min(max(here), chunk) // 32) * 32, _THREADS)
        tables.append((ends[-1], threads, (*values, *here, *padding, *ends, *padding, count, chunk)))
    return tables


def _change(kernel: Kernel, rows: Iterable[Row], *settings: Any, arguments: tuple[str, ...] = ()) -> list[Row]:
    """Launch a kernel over rows; returns those that it cannot take."""
    groups, others = _sorted_out(rows)
    for (device, dtype), group in groups.items():
        with gpu.use_device(device):
            name = _name_of(dtype)
            launch = kernel[name, *arguments] if arguments else kernel[name]
            for grid, block, values in _tables(group):
                launch(grid, block, *values, *settings)
    return others


# ---- steps of optimizers ----


def step_kernel(name: str, depths: Iterable[int]) -> Kernel:
    """Declare ``lucid::name<T, DEPTH>`` of ``name.cu`` for these numbers of arrays in a row."""
    return Kernel(name, f"lucid::{name}", _instances(*map(str, depths)))


def numbers_kernel(name: str, count: int, scalars: int) -> NumbersKernel:
    """Declare ``lucid::name_numbers`` of ``name.cu``: so many numbers of each row, from so many of its state."""
    return NumbersKernel(Kernel(name, f"lucid::{name}_numbers", [()]), count, max(scalars, 1))


class Table(NamedTuple):
    """The launches that change rows of one device and dtype, whose arrays stay the same but for the first.

    Attributes
    ----------
    kept : list of Array
        The arrays of all rows, without the first of each.
    shapes : list of tuple of int
        Of the rows.
    launches : list of (callable, int, int)
        What is called with the addresses of the first arrays of some rows, that of a flag if there is one, and the
        settings; from which row to which.
    flagged : bool
        Whether nothing is to change where a flag on the device is set.
    numbers : RowNumbers or None
        Where the numbers of the rows lie on the device; None where they are among the settings.
    """

    kept: list[Any]
    shapes: list[tuple[int, ...]]
    dtype: Any
    device: int
    launches: list[tuple[Callable[..., None], int, int]]
    flagged: bool
    numbers: RowNumbers | None

    def counts(self, scalars: list[list[Array]]) -> bool:
        """Return whether the numbers of the rows are computed on the device, from these numbers of their state."""
        return self.numbers is not None and self.numbers.fits(scalars)

    def change(self, rows: list[Row], settings: Sequence[float], found: int = 0, given: Given | None = None) -> bool:
        """Change these rows, if they are those of the table and their first arrays are fit to be read."""
        kept = self.kept
        if not all(map(operator.is_, [array for row in rows for array in row[1:]], kept)) or len(rows) * (
            len(rows[0]) - 1
        ) != len(kept):
            return False
        dtype, device = self.dtype, self.device
        addresses: list[int] = []
        for (first, *_), shape in zip(rows, self.shapes, strict=True):
            memory = first.data
            if (
                first.dtype is not dtype
                or memory.device_id != device
                or not first._c_contiguous  # noqa: SLF001  a tenth of the time of `flags.c_contiguous`
                or first.shape != shape
            ):
                return False
            addresses.append(memory.ptr)
        with gpu.use_device(device):
            if self.numbers is not None and given is not None:
                self.numbers.compute(given, found)
            for launch, start, stop in self.launches:
                here = addresses[start:stop]
                if self.flagged:
                    here.append(found)
                launch(here, *settings)
        return True


class Tables:
    """The tables of an optimizer's rows, kept from one step to the next.

    A copy of it is empty: tables hold addresses.
    """

    def __init__(self) -> None:
        self._before: dict[int, Table] = {}
        self._now: dict[int, Table] = {}

    def begin(self) -> None:
        """Begin a step; what it does not use is forgotten at the next one."""
        self._before, self._now = self._now, {}

    def step(self, kernel: Kernel | None, rows: list[Row], *settings: float, found: int = 0) -> list[Row]:
        """Change rows of gradient, parameter and state; returns the rows that have no kernel.

        Nothing changes where a float32 flag on their device, at the address `found`, is not 0.
        """
        if kernel is None:
            return rows
        key, depth = id(rows[0][1]), str(len(rows[0]))
        table = self._before.get(key)
        # of numbers on the device the table is `step_there`'s
        if table is None or table.numbers or table.flagged != bool(found) or not table.change(rows, settings, found):
            table = _table(kernel, rows, settings, flagged=bool(found))
            if table is None or not table.change(rows, settings, found):
                return _change(kernel, rows, found, 0, *settings, arguments=(depth,))
        self._now[key] = table
        return []

    def step_there(
        self,
        kernel: Kernel | None,
        made_by: NumbersKernel | None,
        rows: list[Row],
        scalars: list[list[Array]],
        given: Given,
        settings: Sequence[float],
        found: int,
    ) -> list[Row]:
        """Change rows as `step` does, by numbers that are computed on the device; returns those that have no kernel.

        Parameters
        ----------
        kernel, made_by : Kernel, NumbersKernel
            What changes rows, and what computes their numbers.
        rows : list of list of Array
            Gradient, parameter and state.
        scalars : list of list of Array
            Of each row the numbers of its state, of which the first counts steps; or none.
        given : Given
            The settings that numbers are computed from.
        settings : sequence of float
            What the kernel takes by value: of the numbers on the device anything.
        found : int
            Address of a flag, or 0.
        """
        if kernel is None or made_by is None:
            return rows
        table = self._before.get(key := id(rows[0][1]))
        if table is not None and table.counts(scalars) and table.change(rows, settings, found, given):
            self._now[key] = table
            return []
        scalars_of = {id(row[1]): held for row, held in zip(rows, scalars, strict=True)}
        groups, others = _sorted_out(rows, empty=True)
        for (device, _), group in groups.items():
            held, key = [scalars_of[id(row[1])] for row in group], id(group[0][1])
            table = self._before.get(key)
            if table is None or not table.counts(held) or not table.change(group, settings, found, given):
                with gpu.use_device(device):
                    numbers = RowNumbers(made_by, held, len(given.values))
                    table = _table_of(kernel, group, settings, flagged=True, numbers=numbers)
                table.change(group, settings, found, given)
            self._now[key] = table
        return others

    def write(self, values: Sequence[float]) -> None:
        """Write settings to every device where numbers are computed from them, if they have changed."""
        for table in self._now.values():
            if table.numbers is not None:
                table.numbers.write(values)

    def __reduce__(self) -> tuple[type[Tables], tuple[()]]:
        return Tables, ()


def unfit_for_kernels(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that kernels cannot take."""
    return _sorted_out(rows, empty=True)[1]


def _table(kernel: Kernel, rows: list[Row], settings: Sequence[float], *, flagged: bool) -> Table | None:
    """Return the table of rows, None if they need more than one."""
    groups, others = _sorted_out(rows)
    if others or len(groups) != 1:
        return None
    (group,) = groups.values()
    return None if len(group) != len(rows) else _table_of(kernel, rows, settings, flagged=flagged, numbers=None)


def _table_of(
    kernel: Kernel, rows: list[Row], settings: Sequence[float], *, flagged: bool, numbers: RowNumbers | None
) -> Table:
    """Return the table of rows of one device and dtype."""
    first = rows[0][0]
    launcher = kernel[_name_of(first.dtype), str(len(rows[0]))]
    launches: list[tuple[Callable[..., None], int, int]] = []
    start = 0
    for grid, block, values in _tables(rows):
        count = values[-2]
        start += count
        if not grid:
            continue
        slots = [(number, number, 0) for number in range(count)]
        if flagged:
            slots.append((len(values), count, 0))
        beside = (0, 0 if numbers is None else numbers.address(start - count))
        bound = launcher.bound(grid, block, (*values, *beside, *settings), slots, len(settings))
        launches.append((bound, start - count, start))
    kept = [array for row in rows for array in row[1:]]
    shapes = [row[0].shape for row in rows]
    return Table(kept, shapes, first.dtype, first.data.device_id, launches, flagged, numbers)


# ---- gradients ----


def total_norm(arrays: list[Array], order: float, wanted: np.dtype[Any]) -> Array:
    """Return the norm of all arrays as one vector, of no dimension and the dtype `wanted`.

    Returns NotImplemented if there is no kernel for it: another order than 1, 2 and infinity, another dtype, or arrays
    on several devices.
    """
    number = _NORM_ORDERS.get(order)
    if number is None:
        return NotImplemented
    rows: dict[str, list[Row]] = {}
    module = gpu.cupy()
    dtype = name = None
    with gpu.use_device(gpu.device_index(arrays[0])):
        device = arrays[0].data.device_id
        for array in arrays:
            if array.dtype is not dtype:
                dtype = array.dtype
                name = None if dtype.kind == "c" else _kind_of(dtype)[0]
            if name is None or array.data.device_id != device:
                return NotImplemented
            if array.size:
                dense = array if array._c_contiguous else module.ascontiguousarray(array)  # noqa: SLF001
                rows.setdefault(name, []).append([dense])
        tables = {name: _tables(group) for name, group in rows.items()}
        count = sum(grid for launches in tables.values() for grid, _, _ in launches)
        partial = module.empty((count,), np.float64)
        address = partial.data.ptr
        for name, launches in tables.items():
            for grid, block, values in launches:
                _norm_partial[name, number](grid, block, *values, address)
                address += partial.itemsize * grid
        out = module.empty((), wanted)
        threads = min(max(-(-count // 32), 1) * 32, 1024)
        _norm_total[C_TYPES[out.dtype], number](1, threads, partial.data.ptr, out.data.ptr, count)
    return out


def clip_by_norm(arrays: list[Array], total: Array, max_norm: float) -> list[Array]:
    """Scale arrays in place to ``max_norm / (total + 1e-6)`` of themselves where that is below 1.

    Returns the arrays that have no kernel, or are on another device than `total`.
    """
    name = C_TYPES.get(total.dtype)
    if name not in FLOATS:
        return arrays
    device = total.data.device_id
    near = [[array] for array in arrays if array.data.device_id == device]
    far = [array for array in arrays if array.data.device_id != device]
    rest = _change(_clip_by_norm, near, total.data.ptr, max_norm, arguments=(name,))
    return far + [array for (array,) in rest]


def clip_by_value(arrays: list[Array], limit: float) -> list[Array]:
    """Limit arrays in place to ``[-limit, limit]``; returns those that have no kernel."""
    rest = _change(_clip_by_value, [[array] for array in arrays if array.dtype.kind != "c"], limit)
    return [array for array in arrays if array.dtype.kind == "c"] + [array for (array,) in rest]


def unscale(arrays: list[Array], factor: float, found: Array, scale: Array | None = None) -> list[Array]:
    """Multiply arrays in place by `factor`; a float32 number on their device, `found`, becomes 1 if one is not finite.

    Instead of the factor, a float64 number on that device may be given, `scale`, by which they are divided: multiplied
    by what 1 divided by it is. Returns the arrays that have no kernel, or are on another device than `found`.
    """
    device = found.data.device_id
    near = [[array] for array in arrays if array.data.device_id == device]
    far = [array for array in arrays if array.data.device_id != device]
    at = 0 if scale is None else scale.data.ptr
    return far + [array for (array,) in _change(_unscale, near, factor, at, found.data.ptr)]
