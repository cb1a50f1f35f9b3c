"""Launch plans: the launches for arrays of one form, repeated for others of that form without their launcher.

A launcher looks at dtypes, shapes, strides and alignment, chooses kernels, grids and layouts, makes outputs, and
launches. All of it is the same for the next arrays of that form but the addresses. So the first call is noted: the
arrays that were made, by `empty`, and the launches with their values, of which those that are pointers are noted as
"the third array, and so many bytes on". Later calls make such arrays, fill the addresses in, and launch.

A launcher may be `planned` if it does nothing to arrays but by launches, and looks at nothing but its arguments and
`allow_tf32`: at no values, other switches or random numbers. What holds an address that no array explains, as of a copy
that CuPy made, is not planned, but asked each time.
"""

from __future__ import annotations

import functools
import struct
import weakref
from dataclasses import dataclass, field
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from lucid.backends.cuda import matmul
from lucid.base import gpu
from lucid.base.memory import byte_bounds, check_size

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from lucid.base.arrays import Array


F = TypeVar("F", bound="Callable[..., Any]")
K = TypeVar("K")
V = TypeVar("V")

# Plans and layouts of each kind that are remembered, before they are made anew: by shapes, strides and what else they
# depend on.
REMEMBERED = 1024
# Arrays are aligned to this or to less.
ALIGNMENT = 16

Slot = tuple[int, int, int]
"""A value that is an address: its position among the values, the number of the array, bytes from its first."""
LaunchPlans: TypeAlias = "dict[tuple[Any, ...], LaunchPlan | None]"
"""By the form of arguments the plan, None where none can be made."""
Bind: TypeAlias = "Callable[..., Callable[..., None]]"
"""``bind(values, slots)`` gives the same launch with other addresses: called with those of all arrays."""


@dataclass(slots=True, eq=False)
class LaunchPlan:
    """The arrays made and the launches for arrays of one form.

    Attributes
    ----------
    made : tuple of (shape, dtype)
        The arrays that are made, numbered after those given.
    steps : tuple of callable
        The launches, called with the addresses of all arrays.
    result : int or tuple of int
        Which arrays come out; None for None.
    alone : tuple or None
        Shape, dtype and launch, where one launch makes the only array, which comes out.
    tied : tuple of (int, int, int)
        Pairs of arrays that overlap, and how many bytes the second begins behind the first: a plan is for no others.
    recorded : dict
        For whoever records an op that is done so: what follows from the form, by the operands that require grad.
    """

    made: tuple[tuple[tuple[int, ...], Any], ...]
    steps: tuple[Callable[[Sequence[int]], None], ...]
    result: Any
    alone: tuple[Any, ...] | None
    tied: tuple[tuple[int, int, int], ...]
    recorded: dict[int, Any] = field(default_factory=dict[int, Any])

    def fits(self, addresses: Sequence[int]) -> bool:
        """Return whether those of the arrays that overlap do so as they did when the plan was made."""
        return all(addresses[second] - addresses[first] == distance for first, second, distance in self.tied)

    def run(self, operands: list[Any], addresses: list[int], make: Callable[[Any, Any], Any]) -> Any:
        """Return the results for arrays that lie at these addresses, in arrays that `make` makes."""
        if self.alone is not None:
            # most plans: one array is made, by one launch
            shape, dtype, step = self.alone
            array = make(shape, dtype)
            addresses.append(array.data.ptr)
            step(addresses)
            return array
        for shape, dtype in self.made:
            array = make(shape, dtype)
            operands.append(array)
            addresses.append(array.data.ptr)
        for step in self.steps:
            step(addresses)
        result = self.result
        if type(result) is int:
            return operands[result]
        return tuple([None if number is None else operands[number] for number in result])


class NotPlannedError(Exception):
    """A launcher's work cannot be repeated from a note."""


class Recording:
    """The work of a launcher, noted while it is done."""

    def __init__(self, operands: Sequence[Array]) -> None:
        self.arrays: list[Array] = list(operands)
        self.spans: list[tuple[int, int]] = []
        self.made: list[tuple[tuple[int, ...], Any]] = []
        self.steps: list[Callable[[Sequence[int]], None]] = []
        self.tied: set[tuple[int, int, int]] = set()
        self.broken = False

    def plan(self, result: Array | tuple[Array | None, ...]) -> LaunchPlan | None:
        """Return the plan of the noted work, None if it cannot be repeated."""
        if self.broken:
            return None
        several = isinstance(result, tuple)
        results: tuple[Any, ...] = cast("Any", result) if several else (result,)
        try:
            numbered = [self.number(array) for array in results]
            self.shape(numbered, results)
        except NotPlannedError:
            return None
        numbers: Any = tuple(numbered) if several else numbered[0]
        alone = None
        if len(self.made) == len(self.steps) == 1 and numbers == len(self.arrays) - 1:
            alone = (*self.made[0], self.steps[0])
        return LaunchPlan(tuple(self.made), tuple(self.steps), numbers, alone, tuple(self.tied))

    def number(self, array: Array | None) -> int | None:
        """Return the number of an array, or of the made one that it is in another shape."""
        if array is None:
            return None
        for number, known in enumerate(self.arrays):
            if known is array:
                return number
        for number, known in enumerate(self.arrays):
            if number >= len(self.arrays) - len(self.made) and known.size and _is_all_of(array, known):
                return number
        raise NotPlannedError

    def shape(self, numbers: Sequence[int | None], results: Sequence[Any]) -> None:
        """Make arrays in the shapes of the results."""
        first = len(self.arrays) - len(self.made)
        for number, array in zip(numbers, results, strict=True):
            if number is not None and self.arrays[number] is not array:
                if numbers.count(number) > 1:
                    raise NotPlannedError
                self.made[number - first] = array.shape, array.dtype

    def slot(self, position: int, address: int) -> Slot:
        """Return the array of an address, and the offset in it."""
        holders = self.holders(address)
        if not holders:
            raise NotPlannedError
        first, *others = holders
        start = self.arrays[first].data.ptr
        # of operands that overlap, which others of the form may do elsewhere
        self.tied.update([(first, other, self.arrays[other].data.ptr - start) for other in others])
        return position, first, address - start

    def holders(self, address: int) -> list[int]:
        """Return the numbers of the arrays around an address."""
        self.spans += map(byte_bounds, self.arrays[len(self.spans) :])
        return [number for number, (first, end) in enumerate(self.spans) if first <= address < end]

    def note(self, values: tuple[Any, ...], pointers: Collection[int], bind: Bind) -> None:
        """Note a launch; see `note`."""
        try:
            slots = tuple([self.slot(position, values[position]) for position in pointers if values[position]])
            for position, value in enumerate(values):
                if position not in pointers:
                    self.check(value)
        except NotPlannedError:
            self.broken = True
            return
        self.steps.append(bind(values, slots))

    def check(self, value: object) -> None:
        """Raise if a value that is no pointer may hide an address."""
        if isinstance(value, bytes):
            for (word,) in struct.iter_unpack("=Q", value[: len(value) // 8 * 8]):
                self.check(word)
        elif isinstance(value, int) and self.holders(value):
            raise NotPlannedError


def _is_all_of(array: Array, known: Array) -> bool:
    """Return whether an array is the whole of one that is known, read from first to last."""
    return (
        array.data.ptr == known.data.ptr
        and array.dtype == known.dtype
        and array.size == known.size
        and bool(array.flags.c_contiguous and known.flags.c_contiguous)
    )


recordings: dict[int, Recording] = {}
"""By the thread: what is noted now. Empty nearly always, so that a launch asks no more than that."""


def note(values: tuple[Any, ...], pointers: Collection[int], bind: Bind) -> None:
    """Note a launch if a plan is being made in this thread.

    Parameters
    ----------
    values : tuple
        What it was called with.
    pointers : collection of int
        The positions of those that are addresses, or 0.
    bind : callable
        ``bind(values, slots)`` gives the same launch with other addresses: called with those of all arrays, in a list.
    """
    recording = recordings.get(get_ident())
    if recording is not None:
        recording.note(values, pointers, bind)


_maker = functools.cache(gpu.array_maker)


def empty(shape: Any, dtype: Any) -> Any:
    """Return a CUDA array without values, as `cupy.empty` does, for a launcher to write to."""
    check_size("empty", (shape,) if hasattr(shape, "__index__") else shape, np.dtype(dtype).itemsize)
    made = _maker()(shape, dtype)
    if recordings and (recording := recordings.get(get_ident())) is not None:
        recording.arrays.append(made)
        recording.made.append((made.shape, made.dtype))
    return made


def not_planned() -> None:
    """Make no plan of the launcher that is noted in this thread: it does something else than launches."""
    if recordings and (recording := recordings.get(get_ident())) is not None:
        recording.broken = True


def off_plan(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of CUDA arrays, such as one of CuPy's, that does more than launches that are noted."""

    def run(*arrays: Any, **settings: Any) -> Any:
        not_planned()
        return function(*arrays, **settings)

    return run


def remember(table: dict[K, V], key: K, value: V, most: int | None = None) -> V:
    """Return a value after keeping it in a table that begins anew if it is full: of `REMEMBERED` by default."""
    if len(table) >= (most or REMEMBERED):
        table.clear()
    table[key] = value
    return value


PYTHON_NUMBERS = frozenset((bool, int, float))


def number_form(number: float) -> tuple[type, object]:
    """Return the key of a number in a form: 1 and 1.0 differ, as do both zeros, and all NaNs are one."""
    return type(number), number if number < 0 or number > 0 else repr(number)


def planned(launcher: F) -> F:
    """Return a launcher that notes its launches, by the form of its arguments, and repeats them."""
    run = with_plan(launcher)

    @functools.wraps(launcher)
    def call(*arguments: Any, **settings: Any) -> Any:
        return run(arguments, settings)[0]

    return launches_only(call)  # type: ignore[return-value]


def launches_only(launcher: F) -> F:
    """Return a launcher that may be part of a plan, though it has none of its own."""
    _noted.add(launcher)
    return launcher


_noted: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()


def can_be_noted(launcher: Callable[..., Any]) -> bool:
    """Return whether all that a launcher, or the one that it calls with further arguments, does can be in a plan."""
    while isinstance(launcher, functools.partial):
        launcher = launcher.func
    return launcher in _noted


def with_plan(
    launcher: Callable[..., Any], plans: LaunchPlans | None = None
) -> Callable[[Sequence[Any], Mapping[str, Any]], tuple[Any, LaunchPlan | None]]:
    """Return the function of arguments and settings that gives a launcher's result and the plan that made it.

    None stands for the plan where there is none, and at the call with which it is made. They are kept in `plans`: by
    `matmul.allow_tf32`, the settings, and of each array dtype, shape, strides and place, as `device_path` has it too.
    """
    plans = {} if plans is None else plans
    ndarray: Any = None
    make: Any = None

    def run(arguments: Sequence[Any], settings: Mapping[str, Any]) -> tuple[Any, LaunchPlan | None]:
        nonlocal ndarray, make
        if ndarray is None:
            make = gpu.array_maker()
            ndarray = gpu.cupy().ndarray
        operands: list[Any] = []
        addresses: list[int] = []
        key: list[Any] = [matmul.allow_tf32, *settings.items()] if settings else [matmul.allow_tf32]
        for argument in arguments:
            if type(argument) is ndarray:
                address = argument.data.ptr
                if address not in addresses:
                    operands.append(argument)
                    addresses.append(address)
                    place = address % ALIGNMENT
                else:
                    # one array twice is another form than two
                    place = ~addresses.index(address)
                # where elements lie in order, steps of dimensions of one element are all that strides still say
                strides = None if argument._c_contiguous else argument.strides  # noqa: SLF001
                key += (argument.dtype, argument.shape, strides, place)
            else:
                key.append(number_form(argument) if type(argument) in PYTHON_NUMBERS else argument)
        form = tuple(key)
        try:
            plan = plans.get(form)
        except TypeError:
            return launcher(*arguments, **settings), None
        thread = get_ident() if recordings or plan is None else 0
        if thread and (thread in recordings or (plan is None and form in plans)):
            return launcher(*arguments, **settings), None
        if plan is not None:
            if plan.tied and not plan.fits(addresses):
                return launcher(*arguments, **settings), None
            return plan.run(operands, addresses, make), plan
        recording = recordings[thread] = Recording(operands)
        try:
            result = launcher(*arguments, **settings)
        finally:
            del recordings[thread]
        if result is not NotImplemented:
            remember(plans, form, recording.plan(result))
        return result, None

    return run
