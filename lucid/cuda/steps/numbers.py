"""The numbers of optimizers' steps in device memory, so that a graph reads values that change between launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lucid.base import gpu
from lucid.base.arrays import to_device
from lucid.base.device import device_of
from lucid.cuda.launch.kernels import Kernel
from lucid.cuda.launch.plans import empty
from lucid.cuda.memory import array_apart
from lucid.cuda.source.signature import constant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.base.arrays import Array


_THREADS = 128

_write_settings = Kernel("numbers", "lucid::write_settings", [()])


class NumbersKernel(NamedTuple):
    """The kernel ``lucid::NAME_numbers`` of an optimizer.

    Attributes
    ----------
    kernel : Kernel
    made : int
        How many numbers of each row it makes.
    scalars : int
        How many of a row's state it is given, at least 1.
    """

    kernel: Kernel
    made: int
    scalars: int


class StepSettings(NamedTuple):
    """The settings of a group as numbers, and those of them that lie on a device instead.

    Attributes
    ----------
    values : list of float
        In the order in which the optimizer declares its settings; 0 for one that lies on a device.
    on_device : list of (int, Array)
        Positions and arrays of one element.
    write : bool
        Whether values that have changed are written when numbers are computed; otherwise `RowNumbers.write` is called
        before.
    """

    values: list[float]
    on_device: list[tuple[int, Array]]
    write: bool


class SettingsMemory:
    """Settings in float64 on the current device, for graphs: a replay reads those that were written last.

    Attributes
    ----------
    array : Array
    """

    def __init__(self, size: int) -> None:
        self._device = gpu.current_device()
        # what is written outside of a graph under capture stays anyway
        make = array_apart if gpu.is_capturing() else empty
        self.array: Array = make(size, np.float64)
        self._written: list[float] | None = None

    def write(self, values: Sequence[float]) -> None:
        """Write the settings to the device, if they are others than those that were written last."""
        if values == self._written:
            return
        padding = [0.0] * (constant("numbers.cu", "MOST_SETTINGS") - len(values))
        launch = _write_settings[()]
        gpu.run_on(self._device, launch, 1, 32, *values, *padding, len(values), self.array.data.ptr)
        self._written = list(values)

    def take(self, settings: StepSettings) -> None:
        """Copy the settings that lie on a device, and write the others if they are to be written now."""
        if settings.write:
            self.write(settings.values)
        for position, array in settings.on_device:
            near = array if gpu.device_index(array) == self._device else to_device(array, device_of(self.array))
            self.array[position : position + 1] = near.reshape(1)


class RowNumbers:
    """The numbers of some rows, computed on the current device from the settings of a group and each row's own step.

    Parameters
    ----------
    made_by : NumbersKernel
        What computes them.
    scalars : list of list of Array
        The numbers of each row's state, float32 on the device; none where nothing is counted.
    size : int
        How many settings there are.
    """

    def __init__(self, made_by: NumbersKernel, scalars: list[list[Array]], size: int) -> None:
        # launches know where they lie
        self._held = scalars
        self._settings = SettingsMemory(size)
        self._numbers = empty((len(scalars), made_by.made), np.float64)
        self._launches: list[Callable[..., None]] = []
        most = constant("numbers.cuh", f"most_counted({made_by.scalars})")
        for start in range(0, len(scalars), most):
            here = scalars[start : start + most]
            addresses: list[int] = []
            for number in range(made_by.scalars):
                addresses += [held[number].data.ptr if held else 0 for held in here] + [0] * (most - len(here))
            values = (*addresses, len(here), 0, self._settings.array.data.ptr, self.address(start))
            # the flag is another array each time
            slots = [(len(addresses) + 1, 0, 0)]
            grid = -(-len(here) // _THREADS)
            self._launches.append(made_by.kernel[()].bound(grid, _THREADS, values, slots))

    def address(self, row: int) -> int:
        """Return the address of the numbers of a row."""
        return self._numbers.data.ptr + row * self._numbers.strides[0]

    def write(self, values: Sequence[float]) -> None:
        """Write the settings to the device, if they are others than those that were written last."""
        self._settings.write(values)

    def compute(self, settings: StepSettings, overflow: int) -> None:
        """Count a step of each row, unless the flag at the address `overflow` is set, and compute the numbers of it."""
        self._settings.take(settings)
        for launch in self._launches:
            launch([overflow])
