"""CUDA kernels from the files in ``kernels/``: declared, compiled on first use, launched in a few microseconds.

A kernel is declared at module level by the name of its file, its own name and the template arguments that it is
compiled for; the source says what parameters it has. Nothing is read or compiled before the first launch, and then
only what is launched; threads that ask for different kernels do not wait for each other. The logger ``lucid.cuda`` says
what is compiled.
"""

from __future__ import annotations

import struct
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from lucid.base.locks import Once, new_lock, new_rlock
from lucid.cuda.launch.parameters import Parameters, check_numbers, last_packer
from lucid.cuda.launch.plans import note, recordings, remember
from lucid.cuda.source.signature import NUMBERS, source
from lucid.cuda.source.sources import joined
from lucid.errors import KernelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np

    from lucid.base.arrays import Array
    from lucid.cuda.launch.plans import Bind, Slot


FLOATS = ("float", "double", "__half", "__nv_bfloat16")
EACH_FLOAT = tuple((name,) for name in FLOATS)
"""The instances of a kernel of one floating-point dtype."""

C_TYPES: Mapping[np.dtype[Any], str] = {
    number.dtype: name for name, number in NUMBERS.items() if number.dtype.kind != "u" or number.dtype.itemsize == 1
}
"""The dtypes that kernels know, and their names in CUDA C++."""

VECTOR_BYTES = 16
"""What a thread loads or stores at once at the most, where it is aligned: of the hardware, `Pack` of ``lucid.cuh``."""

Extent = int | tuple[int, ...]

# Above this a kernel must be allowed its dynamic shared memory beforehand.
_PLAIN_SHARED = 48 << 10
# Larger numbers would lose their upper bits on the way to the driver.
_MOST_BLOCKS, _MOST_BESIDE = 2**31 - 1, 65_535


class Unit(NamedTuple):
    """A compilation unit: kernels of one source."""

    name: str
    """For messages, such as ``softmax.cu for float``."""
    stem: str
    """The beginning of file names."""
    source: str
    """CUDA C++, complete."""
    signatures: dict[str, str]
    """Codes of the parameters of each kernel, by its C++ name with template arguments."""
    declared: bool = False
    """Whether it is of a file in ``kernels/``, and so may have been built beforehand, with others of that name."""


class Driver(Protocol):
    """A driver of kernels: CUDA's, or the simulator's."""

    launch: Callable[..., None]
    """``cuLaunchKernel`` of integers; it raises a RuntimeError with the driver's code as `status`."""
    device: Callable[[], int]
    """Gives the index of the current device."""
    stream: Callable[[], Any]
    """Gives the current stream of CuPy."""
    whole_units: bool
    """Whether all instances of a file for one dtype are compiled together, or each when it is launched."""

    def compile(self, unit: Unit) -> None:
        """Compile ahead of `load`, without the lock: other threads go on meanwhile."""
        ...

    def load(self, unit: Unit) -> dict[str, int]:
        """Compile if need be, and return the handles of the kernels by their C++ names."""
        ...

    def allow_shared(self, handle: int, nbytes: int) -> None:
        """Let a kernel have more than 48 KiB of dynamic shared memory."""
        ...

    def recovers(self, code: int) -> bool:
        """Whether the reason of a failed launch is now out of the way."""
        ...

    def failure(self, code: int) -> str:
        """Say in words why a launch failed."""
        ...


_CUDA = "lucid.cuda.driver"


def _cuda() -> Driver:
    # imported late: with what compiles and keeps kernels it would be a tenth of `import lucid`
    return import_module(_CUDA).CudaDriver()


_make_driver: Callable[[], Driver] = _cuda
_driver: Driver | None = None
_lock = new_rlock()
# By device, file, first template argument, and name where each kernel is compiled when it is launched.
_loaded: Once[tuple[int, str, str | None, str | None], dict[str, int]] = Once()


def drive(make: Callable[[], Driver]) -> None:
    """Run kernels by another driver than CUDA's, made when it is first needed."""
    global _driver, _make_driver
    _driver, _make_driver = None, make


def driver() -> Driver:
    """Return the driver of kernels."""
    global _driver
    with _lock:
        if _driver is None:
            _driver = _make_driver()
        return _driver


class Launcher:
    """One instance of a kernel.

    Parameters
    ----------
    name : str
        C++ name with template arguments.
    signature : str
        Codes of the parameters.
    find : callable
        Gives the handle on the current device of the kernel of a C++ name, compiling if need be.
    """

    __slots__ = ("_codes", "_find", "_handles", "_lock", "_parameters", "_shapes", "name")

    def __init__(self, name: str, signature: str, find: Callable[[str], int]) -> None:
        self.name = name
        self._codes = signature
        self._find = find
        self._handles: dict[int, int] = {}
        self._shapes: dict[tuple[Extent, Extent, int], tuple[Callable[..., None], Bind]] = {}
        self._parameters = Parameters(signature)
        # held from packing to the end of the launch
        self._lock = new_lock()

    def __call__(self, grid: Extent, block: Extent, *values: Any, shared: int = 0) -> None:
        """Queue the kernel on the current stream.

        Parameters
        ----------
        grid, block : int or tuple of up to three int
            Blocks of the launch, threads of a block.
        *values
            Numbers for the parameters, in order; addresses for pointers.
        shared : int
            Bytes of dynamic shared memory of a block.

        Raises
        ------
        KernelError
            If the launch is refused; on the simulated device also if the kernel does what it may not.
        """
        (self._shapes.get((grid, block, shared)) or self._shape(grid, block, shared))[0](*values)

    def shaped(self, grid: Extent, block: Extent) -> Callable[..., None]:
        """Return the launch of this shape, a function of the values: it is checked once.

        Raises
        ------
        KernelError
            If a grid has no room for so many blocks.
        """
        return (self._shapes.get((grid, block, 0)) or self._shape(grid, block, 0))[0]

    def bound(
        self, grid: Extent, block: Extent, values: tuple[Any, ...], slots: Sequence[Slot], last: int = 0
    ) -> Callable[..., None]:
        """Return the launch of this shape with these values, a function of the addresses and last values.

        That is a list of addresses, of which the slots say what lies where, and so many of the last values.

        Raises
        ------
        KernelError
            If a grid has no room for so many blocks.
        """
        return (self._shapes.get((grid, block, 0)) or self._shape(grid, block, 0))[1](values, slots, last)

    def _shape(self, grid: Extent, block: Extent, shared: int) -> tuple[Callable[..., None], Bind]:
        """Return the launch of a shape, and the function that binds it."""
        gx, gy, gz = (grid, 1, 1) if isinstance(grid, int) else (*grid, 1, 1)[:3]
        bx, by, bz = (block, 1, 1) if isinstance(block, int) else (*block, 1, 1)[:3]
        if gx > _MOST_BLOCKS or gy > _MOST_BESIDE or gz > _MOST_BESIDE:
            raise KernelError(
                f"launch of {self.name}: {gx:,} x {gy:,} x {gz:,} blocks, and a grid has at most {_MOST_BLOCKS:,} "
                f"along x and {_MOST_BESIDE:,} along y and z"
            )
        handles, own, lock = self._handles, self._parameters, self._lock
        pack, words, start, extra = own.pack, own.words, own.start, own.extra

        def find() -> int:
            # before a lock is taken: to compile takes long, and logs
            runs = _driver or driver()
            handle = handles.get(runs.device())
            if handle is None:
                handle = handles[runs.device()] = self._find(self.name)
            if shared > _PLAIN_SHARED:
                runs.allow_shared(handle, shared)
            return handle

        def retry(error: RuntimeError, handle: int, extra: int) -> None:
            runs = _driver or driver()
            if not hasattr(error, "status"):
                raise error
            code = int(getattr(error, "status", 0))
            if runs.recovers(code):
                try:
                    return runs.launch(handle, gx, gy, gz, bx, by, bz, shared, runs.stream().ptr, 0, extra)
                except RuntimeError as second:
                    code = int(getattr(second, "status", code))
            words = runs.failure(code)
            if min(gx, gy, gz, bx, by, bz) < 1:
                words += "; a launch has at least one block and one thread"
            more = f", {shared} bytes of shared memory" if shared else ""
            raise KernelError(f"launch of {self.name}, grid {(gx, gy, gz)}, block {(bx, by, bz)}{more}: {words}")

        def launch(*values: Any) -> None:
            handle = find()
            runs = _driver or driver()
            with lock:
                try:
                    pack(words, start, *values)
                except struct.error as error:
                    check_numbers(values)
                    raise KernelError(f"{self.name} takes parameters of types {self._codes!r}: {error}") from error
                try:
                    runs.launch(handle, gx, gy, gz, bx, by, bz, shared, runs.stream().ptr, 0, extra)
                except RuntimeError as error:
                    retry(error, handle, extra)
            if recordings:
                note(values, own.places, bind)

        plain = shared <= _PLAIN_SHARED

        def bind(values: tuple[Any, ...], slots: Sequence[Slot], last: int = 0) -> Callable[..., None]:
            # parameters of its own, in which nothing else changes
            bound = Parameters(self._codes)
            bound.pack(bound.words, bound.start, *values)
            words, extra = bound.words, bound.extra
            places = tuple([(bound.places[position], number, offset) for position, number, offset in slots])
            pack_last = last_packer(self._codes, last) if last else None

            def again(addresses: Sequence[int], *last_values: Any) -> None:
                runs = _driver or driver()
                handle = (plain and handles.get(runs.device())) or find()
                with lock:
                    for place, number, offset in places:
                        words[place] = addresses[number] + offset
                    if pack_last is not None:
                        pack_last(words, *last_values)
                    try:
                        runs.launch(handle, gx, gy, gz, bx, by, bz, shared, runs.stream().ptr, 0, extra)
                    except RuntimeError as error:
                        retry(error, handle, extra)

            return again

        return remember(self._shapes, (grid, block, shared), (launch, bind))

    def __repr__(self) -> str:
        return f"Launcher({self.name!r})"


class Kernel:
    """A ``__global__`` template of a file in ``kernels/``, with the template arguments that it is compiled for.

    Parameters
    ----------
    stem : str
        The file's name without ``.cu``; it may be one that is made (``make`` in `lucid.cuda.source.sources`).
    name : str
        The kernel's name, with its namespace.
    instances : sequence of tuple of str, or callable
        C++ template arguments of each instance; the first is the dtype by which instances are compiled together.
        ``()`` stands for a kernel that is no template. Of many instances a function that gives them, when they are
        first asked for.
    packed : tuple of str
        Structs that a launch gets as bytes, which :func:`lucid.cuda.source.signature.packer` made before, for many
        launches. The members of other structs that are passed by value are values of their own.

    Notes
    -----
    Its parameters are read from the source when the first instance is asked for.

    Examples
    --------
    >>> softmax = Kernel("softmax", "softmax_rows", [(dtype,) for dtype in FLOATS])  # doctest: +SKIP
    >>> softmax["float"](rows, 256, x.data.ptr, y.data.ptr, columns)  # doctest: +SKIP
    """

    def __init__(
        self,
        stem: str,
        name: str,
        instances: Sequence[tuple[str, ...]] | Callable[[], Iterable[tuple[str, ...]]],
        *,
        packed: tuple[str, ...] = (),
    ) -> None:
        self.stem = stem
        self.name = name
        self._declared = instances
        self.packed = packed
        self._launchers: dict[str | tuple[str, ...], Launcher] = {}
        KERNELS.append(self)

    @cached_property
    def instances(self) -> tuple[tuple[str, ...], ...]:
        """Template arguments of each instance."""
        return tuple(self._declared() if callable(self._declared) else self._declared)

    def __getitem__(self, arguments: str | tuple[str, ...]) -> Launcher:
        """Launcher of one instance: ``kernel["float"]``, ``kernel["float", "Exp"]``, ``kernel[()]``.

        Raises
        ------
        KernelError
            If the kernel is not declared for these template arguments.
        """
        return self._launchers.get(arguments) or self._prepare(arguments)

    def expression(self, instance: tuple[str, ...]) -> str:
        """C++ name of an instance.

        Examples
        --------
        >>> softmax.expression(("float", "16"))  # doctest: +SKIP
        'softmax_rows<float, 16>'
        """
        return f"{self.name}<{', '.join(instance)}>" if instance else self.name

    def signature(self, instance: tuple[str, ...]) -> str:
        """Codes of the parameters of an instance, read from the source.

        Raises
        ------
        KernelError
            If the source has no such kernel, or not with so many template arguments.
        """
        return source(f"{self.stem}.cu").signature(self.name.rpartition("::")[2], instance, self.packed)

    def _prepare(self, arguments: str | tuple[str, ...]) -> Launcher:
        instance = (arguments,) if isinstance(arguments, str) else arguments
        if instance not in self.instances:
            raise KernelError(
                f"{self.expression(instance)} is not declared: {self.stem}.cu is compiled for "
                f"{', '.join(map(self.expression, self.instances))}"
            )
        group = instance[0] if instance else None
        launcher = Launcher(
            self.expression(instance), self.signature(instance), lambda name: _handle(self.stem, group, name)
        )
        return self._launchers.setdefault(arguments, launcher)


KERNELS: list[Kernel] = []
"""Every kernel that was declared."""


def unit(stem: str, group: str | None, name: str | None = None) -> Unit:
    """Return the unit of a file for one first template argument; None: the kernels that are no templates.

    With the name of one of these it holds that kernel alone.
    """
    signatures = {
        expression: kernel.signature(instance)
        for kernel in KERNELS
        if kernel.stem == stem
        for instance in kernel.instances
        if (instance[0] if instance else None) == group
        and (expression := kernel.expression(instance)) == (name or expression)
    }
    what = f"{stem}.cu" + (f" for {group}" if group else "")
    return Unit(what, stem, joined(f"{stem}.cu"), signatures, declared=True)


def _handle(stem: str, group: str | None, name: str) -> int:
    """Return the handle of a kernel on the current device."""
    runs = driver()

    def handles(which: str | None) -> dict[str, int]:
        return _loaded((runs.device(), stem, group, which), lambda: runs.load(unit(stem, group, which)))

    if runs.whole_units and (handle := handles(None).get(name)) is not None:
        return handle
    # A kernel that was declared after its unit was compiled is missing there.
    return handles(name)[name]


def address_of(x: Array | None) -> int:
    """Return a kernel's argument for an array; 0 for none."""
    return 0 if x is None else x.data.ptr
