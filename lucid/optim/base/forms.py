"""The form of a step, from an inspection of the parameters of a group: the next step only checks that it holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from lucid.autograd.base import INFERENCE, versions_of
from lucid.autograd.recording.mutation import keep_saved
from lucid.base import gpu
from lucid.base.capture import capture_of_this_thread
from lucid.cuda.launch.multi_tensor import Table, dense, step_on_device, step_tables
from lucid.cuda.steps.numbers import RowNumbers, StepSettings
from lucid.optim.base.capturing import refuse_without_kernels
from lucid.optim.base.loops import Rows
from lucid.optim.base.settings import numbers_of, step_settings
from lucid.optim.base.slots import Counts, check_devices, moved
from lucid.settings.optimizers import flag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lucid.base.arrays import Array
    from lucid.optim.base.elementwise import ElementwiseOptimizer
    from lucid.optim.optimizer import Group
    from lucid.tensor import Tensor

StateNumbers: TypeAlias = list[tuple[float, ...]]
"""The numbers of the state of each batch, as they are before a step."""


_ON_CPU = np.zeros(0)


class Asked(NamedTuple):
    """The requirements of a step: the names of the state, the place of its numbers, and whether it is captured."""

    names: tuple[str, ...]
    on_device: bool
    captured: bool


class _Batch(NamedTuple):
    """Rows with the same numbers, computed by the host: those of tables, and those that the formula changes."""

    counts: Counts
    positions: list[int]
    tables: list[Table]
    others: list[int]
    rows: Rows


class Form:
    """How parameters, gradients and state of a group lie, each parameter once, and the launches that change them.

    It is made by a look at everything, which changes nothing yet, and holds no gradients, and no tensors but those of
    state that is still to be kept. A copy of it is None, since it holds addresses.

    Parameters
    ----------
    optimizer : ElementwiseOptimizer
        Whose step it is.
    params : list of Tensor
        Those with gradients, of which each has the shape of its own, and of its state.
    group : dict
        Their group.
    asked : Asked
        What its settings ask for.

    Attributes
    ----------
    before : list of tuple of float
        The numbers of each batch when it was made.
    apart : bool
        Whether it is known that nothing which its step reads is changed by the steps of other groups.

    Raises
    ------
    KeyError
        If state is missing that only a first step makes.
    DeviceError
        If a parameter, its gradient and its state lie on several devices.
    GraphError
        If a parameter is an inference tensor.
    CaptureError
        If the step is captured, and kernels do not do all of it.
    """

    def __init__(self, optimizer: ElementwiseOptimizer, params: list[Tensor], group: Group, asked: Asked) -> None:
        self._asked = asked
        self._versions = versions_of(params)
        self._arrays = [param.array for param in params]
        grads: list[Array] = [param.stored_grad.array for param in params]
        # state that is missing or elsewhere is kept by the step, all of it or none
        self._made = optimizer.missing_state(params, group, asked.names)
        new = set(map(id, self._made))
        made_by = optimizer.numbers_kernel if asked.on_device or asked.captured else None
        resident = [made_by is not None and type(array) is not np.ndarray for array in self._arrays]
        states = self._states_of(optimizer, params, resident)
        scalars = [name for name in asked.names if name in optimizer.scalars]
        held = [[state[name] for name in scalars] for state in states]
        self._state = _columns(states, [name for name in asked.names if name not in scalars])
        whole = list(map(list, zip(grads, self._arrays, *self._state.values(), strict=True)))
        names = ["its gradient", "itself", *[f"its {name}" for name in self._state]]
        for row in whole:
            check_devices(row[1], zip(names, row, strict=True))
        count = len(optimizer.formula_numbers)
        self._step = optimizer.kernel_steps[tuple(self._state)]

        counted = [position for position, on_device in enumerate(resident) if on_device]
        tables, remaining = step_tables(self._step.kernel, whole, counted, count, empty=True)
        size = len(step_settings(group, optimizer.ranges, write=False).values) if tables else 0
        self._tables_on_device: list[tuple[Table, RowNumbers]] = []
        if made_by is not None:
            for table in tables:
                numbers = [[tensor.array for tensor in held[position]] for position in table.positions]
                with gpu.use_device(table.device):
                    self._tables_on_device.append((table, RowNumbers(made_by, numbers, size)))
        of_host = sorted([*(position for position, on_device in enumerate(resident) if not on_device), *remaining])
        if of_host and asked.captured:
            refuse_without_kernels(optimizer, group)
        grouped: dict[tuple[float, ...], list[int]] = {}
        for position in of_host:
            before = tuple([tensor.array.item() for tensor in held[position]])
            grouped.setdefault(before or (0.0 if id(params[position]) in new else np.inf,), []).append(position)
        self.before: StateNumbers = list(grouped)
        self._batches = [self._batch(optimizer, whole, held, *batch) for batch in grouped.items()]

        self._changed = [*self._versions, *_one_version([state[name] for state in states for name in asked.names])]

        # what the next step compares
        self._counts = _columns(states, scalars)
        # its own attribute takes a tenth of the time of `flags.c_contiguous`; on the CPU it does not matter
        self._grads = [(grad.dtype, grad.shape, getattr(grad, "_c_contiguous", True)) for grad in grads]
        self._dense = False not in [contiguous for _, _, contiguous in self._grads]
        devices = {None if type(array) is np.ndarray else array.data.device_id for array in (*grads, *self._arrays)}
        # several devices, and batches that are one from the next step on, are looked at each time
        one = len(devices) == 1 and (bool(scalars) or len(self._batches) <= 1)
        self._device = devices.pop() if one else -1
        self._repeated = False
        self.apart = False

    def _states_of(
        self, optimizer: ElementwiseOptimizer, params: list[Tensor], resident: list[bool]
    ) -> list[Mapping[str, Tensor]]:
        """Return the state of each parameter as the step will have it."""
        states: list[Mapping[str, Tensor]] = [optimizer.state.get(param) or {} for param in params]
        if self._made:
            states = [{**state, **self._made.get(param, {})} for param, state in zip(params, states, strict=True)]
        scalars = [name for name in self._asked.names if name in optimizer.scalars]
        if True not in resident and {type(state[name].array) for name in scalars for state in states} <= {np.ndarray}:
            return states
        for position, state in enumerate(states):
            if resident[position] or not self._asked.on_device:
                elsewhere = moved(state, scalars, self._arrays[position] if resident[position] else _ON_CPU)
                if elsewhere:
                    param = params[position]
                    self._made[param] = {**self._made.get(param, {}), **elsewhere}
                    states[position] = {**state, **elsewhere}
        return states

    def _batch(
        self,
        optimizer: ElementwiseOptimizer,
        whole: list[list[Array]],
        held: list[list[Tensor]],
        before: tuple[float, ...],
        positions: list[int],
    ) -> _Batch:
        """Return a batch of rows."""
        on_cuda = [position for position in positions if type(self._arrays[position]) is not np.ndarray]
        tables, others = step_tables(self._step.kernel, whole, on_cuda, len(optimizer.formula_numbers))
        others += [position for position in positions if type(self._arrays[position]) is np.ndarray]
        counts = Counts([held[position] for position in positions], before[0])
        rows = Rows(
            self._step, [[row[column] for row in map(whole.__getitem__, others)] for column in range(len(whole[0]))]
        )
        return _Batch(counts, positions, tables, others, rows)

    def grads(self, params: list[Tensor], state: Mapping[Tensor, Any], asked: Asked) -> list[Array] | None:
        """Return the gradients of the parameters if everything is as inspected, else None."""
        device = self._device
        if asked != self._asked or len(params) != len(self._arrays) or device == -1:
            return None
        try:
            grads: list[Any] = [param.stored_grad.array for param in params]
            for param, array, version in zip(params, self._arrays, self._versions, strict=True):
                if param.array is not array or param.version is not version:
                    return None
            if asked.names:
                states: list[Any] = list(map(state.get, params))
                for name, column in (*self._state.items(), *self._counts.items()):
                    for entries, array in zip(states, column, strict=True):
                        if entries[name].array is not array:
                            return None
            if device is None:
                for grad, (dtype, shape, _) in zip(grads, self._grads, strict=True):
                    if type(grad) is not np.ndarray or grad.dtype is not dtype or grad.shape != shape:
                        return None
                return grads
            for grad, (dtype, shape, contiguous) in zip(grads, self._grads, strict=True):
                if (
                    grad.dtype is not dtype
                    or grad.data.device_id != device
                    or grad._c_contiguous is not contiguous  # noqa: SLF001
                    or grad.shape != shape
                ):
                    return None
        except (AttributeError, KeyError, TypeError):
            # something is missing, or no tensor
            return None
        return grads

    def numbers(self, params: list[Tensor], state: Mapping[Tensor, Any]) -> StateNumbers | None:
        """Return the numbers of each batch; None if a batch has several."""
        if not self._repeated:
            # only what is used again pays for this; a Ctrl-C on the way leaves a form that fits nothing
            device, self._device = self._device, -1
            # nothing may hold what is to lie elsewhere
            names, self._counts = list(self._counts), {}
            for batch in self._batches if names else ():
                tensors = [state[params[position]][name] for position in batch.positions for name in names]
                batch.counts.lay_side_by_side(tensors)
            self._counts, self._repeated = _columns(list(map(state.get, params)), names), True
            self._device = device
        before = [batch.counts.read() for batch in self._batches]
        return None if None in before else before  # pyright: ignore[reportReturnType]

    def step(
        self,
        optimizer: ElementwiseOptimizer,
        group: Group,
        grads: list[Array],
        before: StateNumbers,
        overflow: Array | None,
    ) -> Callable[[], None]:
        """Return the function of a step that changes nothing if `overflow`, a flag on the device, is set.

        All that may be refused is computed before.
        """
        batches, skipped = self._batches, False
        if overflow is not None and (optimizer.scalars or any(batch.others for batch in batches)) and batches:
            # what the host counts or changes, only the host can leave out
            skipped = bool(overflow.item())
            if skipped and optimizer.scalars:
                batches = []
                if not self._tables_on_device:
                    return _nothing
        settings = numbers_of(group) if batches else {}
        numbers = [optimizer.numbers_of_step(settings, each) for _, each in zip(batches, before, strict=False)]
        device_settings = None
        if self._tables_on_device:
            write = not self._asked.captured or capture_of_this_thread() is None
            device_settings = step_settings(group, optimizer.ranges, write=write)
        if not self._dense:
            grads = [grad if type(grad) is np.ndarray else dense(grad) for grad in grads]
        steps = [
            batch.rows.step(self._step.chain(numbers), [grads[at] for at in batch.others], numbers)
            if batch.others and not skipped
            else None
            for batch, (_, numbers) in zip(batches, numbers, strict=True)
        ]
        work = list(zip(batches, numbers, steps, strict=True))
        return partial(self._take, optimizer, group, grads, work, device_settings, overflow)

    def _take(
        self,
        optimizer: ElementwiseOptimizer,
        group: Group,
        grads: list[Any],
        work: list[tuple[_Batch, tuple[list[float], dict[str, Any]], Callable[[], None] | None]],
        device_settings: StepSettings | None,
        overflow: Array | None,
    ) -> None:
        for param, state in self._made.items():
            optimizer.state[param].update(state)
        self._made = {}
        keep_saved(*self._changed)
        for version in self._changed:
            version[0] += 1
        at = 0 if overflow is None else overflow.data.ptr
        addresses: list[int] = []
        if self._tables_on_device or any(batch.tables for batch, *_ in work):
            try:
                addresses = [grad.data.ptr for grad in grads]
            except AttributeError:
                # others are on the CPU
                addresses = [getattr(grad.data, "ptr", 0) for grad in grads]
        if device_settings is not None:
            names = optimizer.formula_numbers
            flags = [group[name] if optimizer.ranges.get(name) is flag else 0.0 for name in names]
            for table, made in self._tables_on_device:
                step_on_device(table, made, addresses, device_settings, at, flags)
        for batch, (counts, numbers), step in work:
            batch.counts.write(counts)
            for table in batch.tables:
                table.launch(addresses, at, 0, *numbers.values())
            if step is not None:
                step()

    def write(self, values: Sequence[float]) -> None:
        """Write changed settings to every device that computes numbers from them."""
        for _, numbers in self._tables_on_device:
            numbers.write(values)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


def _columns(states: Sequence[Any], names: Iterable[str]) -> dict[str, list[Array]]:
    """Return by name the arrays of the state of each parameter."""
    return {name: [state[name].array for state in states] for name in names}


def _one_version(state: Iterable[Any]) -> list[list[int]]:
    """Return the version counters of the state that a step changes: one for all that have none yet."""
    shared, others = [0], dict[int, list[int]]()
    for tensor in state:
        version = getattr(tensor, "version", None)
        if version is None:
            tensor.version = shared
        elif version is not INFERENCE:
            others[id(version)] = version
    return [shared, *others.values()]


def _nothing() -> None:
    """Leave a step out."""
