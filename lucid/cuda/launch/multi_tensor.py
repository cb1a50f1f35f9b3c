"""Work on many arrays in a few launches, whatever their number: optimizer steps, gradient norm, clipping, unscaling.

Addresses and sizes of the arrays travel by value in a launch's parameters (``tensors.cuh``), so nothing is
copied to the device before, and nothing waits for it. A row is a list of arrays of one shape and dtype that belong
together, such as gradient, parameter and state. What is kept is the table: all of a launch but the address of each
row's first array, the gradient, which is another one each time.

No kernel takes rows of another dtype, those that are strided where they would be written, and those that are given
twice, which one launch would change in no order.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import accumulate, product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from lucid.base import gpu
from lucid.cuda.launch.kernels import C_TYPES, EACH_FLOAT, FLOATS, Kernel, address_of
from lucid.cuda.launch.plans import remember
from lucid.cuda.source.signature import constant
from lucid.cuda.steps.numbers import NumbersKernel, RowNumbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lucid.base.arrays import Array
    from lucid.cuda.steps.numbers import StepSettings

Row: TypeAlias = list[Any]

# Elements that one block works on: many, so that finding its row costs little beside them, but few enough that a small
# model still spreads over the device.
_LARGEST_CHUNK, _SMALLEST_CHUNK = 1 << 16, 1 << 11
_BLOCKS_WANTED = 1 << 9
_THREADS = 256

_NORM_ORDERS = {1.0: "1", 2.0: "2", float("inf"): "0"}


_norm_partial = Kernel("gradients", "lucid::norm_partial", list(product(FLOATS, _NORM_ORDERS.values())))
_norm_total = Kernel("gradients", "lucid::norm_total", list(product(FLOATS, _NORM_ORDERS.values())))
_clip_by_norm = Kernel("gradients", "lucid::clip_by_norm", list(product(FLOATS, FLOATS)))
_clip_by_value = Kernel("gradients", "lucid::clip_by_value", EACH_FLOAT)
_unscale = Kernel("gradients", "lucid::unscale", EACH_FLOAT)


# ---- rows into tables ----


@cache
def _kind_of(dtype: np.dtype[Any]) -> tuple[str | None, int]:
    """Return the C name and bytes of a floating dtype, or of the parts of a complex one.

    None stands for the name of other dtypes.
    """
    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    name = C_TYPES.get(real)
    return name if name in FLOATS else None, real.itemsize


def _sorted_out(
    rows: Sequence[Row], which: Iterable[int], *, empty: bool = False, again: bool = False
) -> tuple[dict[tuple[int, np.dtype[Any]], list[int]], list[int]]:
    """Return the rows that kernels can take, by device and dtype, and the others.

    Those without elements are among them only if `empty`, and those that are given twice if `again`. The first of
    several arrays is only read, so that it may be strided: `dense` makes it fit.
    """
    groups: dict[tuple[int, np.dtype[Any]], list[int]] = {}
    others: list[int] = []
    seen: set[int] = set()
    for position in which:
        row = rows[position]
        last = row[-1]
        if not (last.size or empty):
            continue
        dtype, shape, memory = last.dtype, last.shape, last.data
        name, _ = _kind_of(dtype)
        address = memory.ptr
        # its own attribute takes a tenth of the time of `flags.c_contiguous`
        fits = name is not None and (again or address not in seen or not last.size) and last._c_contiguous  # noqa: SLF001
        for array in row[:-1] if fits else ():
            if array.dtype != dtype or array.shape != shape or not (array._c_contiguous or array is row[0]):  # noqa: SLF001
                fits = False
        if fits:
            seen.add(address)
            groups.setdefault((memory.device_id, dtype), []).append(position)
        else:
            others.append(position)
    return groups, others


def dense(array: Array) -> Array:
    """Return an array as kernels read it: itself, or a contiguous copy."""
    if array._c_contiguous:  # noqa: SLF001
        return array
    return gpu.run_on(gpu.device_index(array), gpu.cupy().ascontiguousarray, array)


class Table(NamedTuple):
    """The launches of a kernel over rows of one device and dtype, called with the addresses of the first arrays.

    Attributes
    ----------
    positions : list of int
        Which rows these are of all.
    dtype : dtype
    device : int
    launches : list of (callable, int, int, int)
        What is called with the addresses of some rows and the values behind the table; from which row to which; how
        many blocks the launches before it have.
    blocks : int
        How many all launches have.
    """

    positions: list[int]
    dtype: Any
    device: int
    launches: list[tuple[Callable[..., None], int, int, int]]
    blocks: int

    def own(self, of_all: list[Any]) -> list[Any]:
        """Return the entries of the table's rows."""
        return of_all if len(of_all) == len(self.positions) else [of_all[position] for position in self.positions]

    def launch(self, addresses: list[int], *behind: float) -> None:
        """Launch the kernel, given the addresses of all first arrays and the values behind the table."""
        addresses = self.own(addresses)
        with gpu.use_device(self.device):
            for launch, start, stop, _ in self.launches:
                launch(addresses[start:stop], *behind)


def _tables(
    kernel: Kernel, rows: list[Row], which: Iterable[int], behind: int, arguments: tuple[str, ...], **kinds: bool
) -> tuple[list[Table], list[int]]:
    """Return the tables of some rows, for a kernel with so many values behind a table, and the rows left over."""
    groups, others = _sorted_out(rows, which, **kinds)
    tables = [
        _table(kernel, [rows[position] for position in positions], positions, behind, arguments)
        for positions in groups.values()
    ]
    return tables, others


def _table(kernel: Kernel, rows: list[Row], positions: list[int], behind: int, arguments: tuple[str, ...]) -> Table:
    """Return the table of rows of one device and dtype."""
    array, depth = rows[0][-1], len(rows[0])
    name, nbytes = _kind_of(array.dtype)
    launcher = kernel[(name or "", *arguments)]
    sizes = [row[-1].size * (array.itemsize // nbytes) for row in rows]
    chunk = _LARGEST_CHUNK
    while chunk > _SMALLEST_CHUNK and sum(sizes) < chunk * _BLOCKS_WANTED:
        chunk //= 2
    capacity = constant("tensors.cuh", f"table_capacity({depth})")
    launches: list[tuple[Callable[..., None], int, int, int]] = []
    blocks = 0
    for start in range(0, len(rows), capacity):
        here, count = sizes[start : start + capacity], min(capacity, len(rows) - start)
        ends = list(accumulate(-(-size // chunk) for size in here))
        if not ends[-1]:
            continue
        padding = [0] * (capacity - count)
        values = [0] * capacity
        for d in range(1, depth):
            values += [row[d].data.ptr for row in rows[start : start + capacity]]
            values += padding
        values += [*here, *padding, *ends, *padding, count, chunk, *[0] * behind]
        threads = min(-(-min(max(here), chunk) // 32) * 32, _THREADS)
        slots = [(number, number, 0) for number in range(count)]
        launches.append((launcher.bound(ends[-1], threads, tuple(values), slots, behind), start, start + count, blocks))
        blocks += ends[-1]
    return Table(positions, array.dtype, array.data.device_id, launches, blocks)


# ---- steps of optimizers ----


def step_kernel(stem: str, name: str) -> Kernel:
    """Declare ``lucid::name<T>`` of ``stem.cu``."""
    return Kernel(stem, f"lucid::{name}", EACH_FLOAT)


def step_tables(
    kernel: Kernel | None, rows: list[Row], which: list[int], settings: int, *, empty: bool = False
) -> tuple[list[Table], list[int]]:
    """Return the tables of some rows of gradient, parameter and state, and the positions of those without a kernel.

    Behind a table come the address of a flag, a float32 number on the device where nothing changes if it is not 0, that
    of the rows' numbers there, which are else among the settings, and so many settings; without flag or numbers 0.
    """
    if kernel is None or not which:
        return [], list(which)
    return _tables(kernel, rows, which, 2 + settings, (), empty=empty)


def step_on_device(
    table: Table,
    numbers: RowNumbers,
    addresses: list[int],
    step: StepSettings,
    overflow: int,
    settings: Sequence[float],
) -> None:
    """Change the rows of a table by numbers that are computed on the device, from step settings."""
    addresses = table.own(addresses)
    with gpu.use_device(table.device):
        numbers.compute(step, overflow)
        for launch, start, stop, _ in table.launches:
            launch(addresses[start:stop], overflow, numbers.address(start), *settings)


def numbers_kernel(stem: str, name: str, count: int, scalars: int) -> NumbersKernel:
    """Declare ``lucid::name_numbers`` of ``stem.cu``: so many numbers of each row, from so many of its state."""
    return NumbersKernel(Kernel(stem, f"lucid::{name}_numbers", [()]), count, max(scalars, 1))


# ---- gradients ----


class _Layout:
    """The layout of arrays of one step, and its tables; it keeps no array alive."""

    def __init__(self, arrays: list[Array]) -> None:
        self.dtypes = list(dict.fromkeys(array.dtype for array in arrays))
        self.devices = list(dict.fromkeys(array.data.device_id for array in arrays))
        self._tables: dict[tuple[Kernel, tuple[str, ...]], tuple[list[Table], list[int]]] = {}

    def tables(
        self, kernel: Kernel, arrays: list[Array], behind: int, arguments: tuple[str, ...]
    ) -> tuple[list[Table], list[int]]:
        """Return the tables of a kernel over such arrays, and the positions of those that it cannot take."""
        known = self._tables.get((kernel, arguments))
        if known is None:
            # a row of one array has no address that stays
            rows = [[array] for array in arrays]
            known = _tables(kernel, rows, range(len(rows)), behind, arguments, again=True)
            self._tables[kernel, arguments] = known
        return known


# begun anew when there are many
_layouts: dict[tuple[Any, ...], _Layout] = {}
_MOST_LAYOUTS = 64


class Arrays:
    """Arrays on CUDA devices that are worked on together, looked at once whatever is done with them.

    The methods that change them return the positions of those that stay as they are: they have no kernel, or are on
    another device than an array that is given. No memory may be given twice to these.

    Attributes
    ----------
    dtypes, devices : list
        Those that there are, each once; devices by index.
    """

    def __init__(self, arrays: list[Array]) -> None:
        self._arrays = arrays
        memories = [array.data for array in arrays]
        self._addresses = [memory.ptr for memory in memories]
        key = tuple(
            [
                (array.dtype, array.shape, array._c_contiguous, memory.device_id)  # noqa: SLF001
                for array, memory in zip(arrays, memories, strict=True)
            ]
        )
        self._layout = layout = _layouts.get(key) or remember(_layouts, key, _Layout(arrays), _MOST_LAYOUTS)
        self.dtypes, self.devices = layout.dtypes, layout.devices

    def repetitions(self) -> set[int]:
        """Return the positions of the arrays at an address that came before."""
        addresses = self._addresses
        if len(set(addresses)) == len(addresses):
            return set()
        first: dict[int, int] = {}
        return {
            position
            for position, (address, array) in enumerate(zip(addresses, self._arrays, strict=True))
            if array.size and first.setdefault(address, position) != position
        }

    def total_norm(self, order: float, wanted: np.dtype[Any]) -> Array:
        """Return the norm of all arrays as one vector, of no dimension and the dtype `wanted`.

        Returns NotImplemented if there is no kernel for it: another order than 1, 2 and infinity, another dtype,
        arrays on several devices, or none in one that is looked through for the largest.
        """
        number = _NORM_ORDERS.get(order)
        if number is None or len(self.devices) != 1:
            return NotImplemented
        if order == math.inf and 0 in [array.size for array in self._arrays]:
            return NotImplemented  # nothing is the largest of no elements, which is refused elsewhere
        if any(dtype.kind == "c" or _kind_of(dtype)[0] is None for dtype in self.dtypes):
            return NotImplemented
        known, strided = self._layout.tables(_norm_partial, self._arrays, 1, (number,))
        if strided:
            return Arrays([dense(array) for array in self._arrays]).total_norm(order, wanted)
        module = gpu.cupy()
        with gpu.use_device(self.devices[0]):
            count = sum([table.blocks for table in known])
            partial = module.empty((count,), np.float64)
            address = partial.data.ptr
            for table in known:
                addresses = table.own(self._addresses)
                for launch, start, stop, before in table.launches:
                    launch(addresses[start:stop], address + partial.itemsize * before)
                address += partial.itemsize * table.blocks
            out = module.empty((), wanted)
            threads = min(max(-(-count // 32), 1) * 32, 1024)
            _norm_total[C_TYPES[out.dtype], number](1, threads, partial.data.ptr, out.data.ptr, count)
        return out

    def _change(
        self, fits: Callable[[Table], bool], kernel: Kernel, *behind: float, arguments: tuple[str, ...] = ()
    ) -> list[int]:
        """Launch a kernel with the values behind the table over the arrays with tables for it."""
        known, rest = self._layout.tables(kernel, self._arrays, len(behind), arguments)
        for table in known:
            if fits(table):
                table.launch(self._addresses, *behind)
            else:
                rest = rest + table.positions
        return rest

    def clip_by_norm(self, total: Array, max_norm: float) -> list[int]:
        """Scale arrays in place by ``min(max_norm / (total + 1e-6), 1)``."""
        name = C_TYPES.get(total.dtype)
        if name not in FLOATS:
            return list(range(len(self._arrays)))
        device = total.data.device_id
        values = total.data.ptr, max_norm
        return self._change(lambda table: table.device == device, _clip_by_norm, *values, arguments=(name,))

    def clip_by_value(self, limit: float) -> list[int]:
        """Limit arrays in place to ``[-limit, limit]``."""
        return self._change(lambda table: table.dtype.kind != "c", _clip_by_value, limit)

    def unscale(self, factor: float, overflow: Array, scale: Array | None = None) -> list[int]:
        """Multiply arrays in place by `factor`; a float32 number, `found`, becomes 1 if an element is not finite.

        Instead of the factor, a float64 number on their device may be given, `scale`, by which they are divided:
        multiplied by what 1 divided by it is.
        """
        device, flag = overflow.data.device_id, overflow.data.ptr
        return self._change(lambda table: table.device == device, _unscale, factor, address_of(scale), flag)
