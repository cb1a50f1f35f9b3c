"""Optimizers whose step is a formula on elements, declared: settings, state, formula and kernel."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lucid.autograd.base import version_of
from lucid.backend import gpu
from lucid.backend.capture import capture_of_this_thread
from lucid.cuda.launch import multi_tensor
from lucid.optim.base.blocks import update_in_blocks
from lucid.optim.base.capturing import check_capture, refresh
from lucid.optim.base.declared import DeclaredOptimizer
from lucid.optim.base.settings import flag, given_of, numbers_of
from lucid.optim.base.slots import bring_scalars, counts_there, move_scalars, put

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lucid.backend.arrays import Array
    from lucid.cuda.launch.kernels import Kernel
    from lucid.cuda.steps.numbers import NumbersKernel
    from lucid.optim.base.slots import Slot
    from lucid.optim.optimizer import Group
    from lucid.tensor import Tensor


class ElementwiseOptimizer(DeclaredOptimizer):
    """An optimizer whose step changes each element by a formula, from the element's own gradient and state.

    A subclass declares what is particular to it; checks of settings, making and loading of state, and the step on
    either device follow. `lucid/optim/adam.py` has one of everything.

    Attributes
    ----------
    slots : dict of Slot
        The state of a parameter, by name. Who has numbers there has ``"step"`` as the first of them, and a setting
        ``"capturable"``, the last of its ranges: whether they lie, and steps are counted, on the parameter's device.
    formula : callable
        A static method that changes a parameter and its state in place, by ufuncs and ``out=``. It gets the array
        module, two arrays to write into, the gradient (which stays), the parameter and the arrays of its state in the
        order of `slots`; by keyword the numbers that its own parameters name: settings, or what
        `numbers` makes of them. Complex numbers come as pairs of real ones, and half types in float32.
    kernel : str
        The kernel ``lucid::NAME<T, DEPTH>`` of ``NAME.cu`` that does the same to rows of `DEPTH` arrays: gradient,
        parameter, and arrays of the state in the order of `slots`. It takes the formula's numbers in the formula's
        order, those that are no flags as a struct, by value or on the device. There ``lucid::NAME_numbers`` of the same
        file computes them, as `numbers` does, from the settings in the order of `ranges` (pairs are two numbers, flags
        0 or 1) and the numbers of the state in the order of `slots`. Without a kernel, the formula runs on CUDA devices
        too, and in no CUDA graph.
    """

    slots: ClassVar[Mapping[str, Slot]] = {}
    formula: ClassVar[Callable[..., None]]
    kernel: ClassVar[str]
    _numbers: ClassVar[list[str]]
    step_kernel: ClassVar[Kernel | None]
    _numbers_kernel: ClassVar[NumbersKernel | None]
    # while a step is taken: whether it is recorded, and the flag on the device that makes it change nothing
    _captured = False
    _found: Array | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.scalars = tuple([name for name, slot in cls.slots.items() if slot.scalar])
        if "formula" in vars(cls):
            cls._numbers = inspect.getfullargspec(cls.formula).kwonlyargs
            # what is inherited would do what the inherited formula does
            cls.step_kernel = cls._declare_kernel() if "kernel" in vars(cls) else None
            plain = [name for name in cls._numbers if cls.ranges.get(name) is not flag]
            made_by = cls.step_kernel and multi_tensor.numbers_kernel(cls.kernel, len(plain), len(cls.scalars))
            cls._numbers_kernel = made_by
        elif not vars(cls).keys().isdisjoint({"numbers", "ranges"}):
            # for the same reason
            cls._numbers_kernel = None

    @classmethod
    def _declare_kernel(cls) -> Kernel:
        """Return the kernel, for as many arrays in a row as the slots may ask for."""
        asked_by = [slot.asked_by for slot in cls.slots.values() if not slot.scalar]
        return multi_tensor.step_kernel(cls.kernel, range(2 + asked_by.count(""), 3 + len(asked_by)))

    def state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the state that a parameter of `group` has."""
        return tuple(name for name, slot in self.slots.items() if not slot.asked_by or group[slot.asked_by])

    def numbers(self, settings: Mapping[str, Any], step: float) -> dict[str, Any]:
        """Return the numbers that the formula takes at the given step of a parameter and that are no settings.

        Of the numbers of the state, beside ``"step"``, they are those of after the step.

        Parameters
        ----------
        settings : dict
            Those of a group, the learning rate as a number, and the numbers of the state as they are before the step.
        step : float
            1 at the first step, when the parameter's state has just been made. Then its number, or infinity where the
            state has no ``"step"``, which is what corrections for the first steps converge to.
        """
        return {}

    def update(self, params: list[Tensor], group: Group) -> None:
        """Change the parameters of one group; each has a gradient."""
        there = counts_there(self, group)
        if (self._captured or there) and self.has_numbers_kernel:
            params = self._update_there(params, group)
            if not params:
                return
        if self.scalars and self._found is not None and self._found.item():
            return
        names = self.state_names(group)
        new = self.make_state(params, group, names)
        settings = numbers_of(group)
        for turn in _turns(params):
            self._update_once(turn, names, settings, new, there=there)
            new = {}

    def _update_once(
        self,
        params: list[Tensor],
        names: tuple[str, ...],
        settings: dict[str, Any],
        new: dict[Tensor, dict[str, Tensor]],
        *,
        there: bool,
    ) -> None:
        """Change parameters of which none is given twice, those whose state has the same numbers together."""
        _, scalars = self._apart(names)
        for param in params:
            version_of(param)[0] += 1
        rows, held = self.rows(params, names)
        if not there and not {type(array) for each in held for array in each} <= {np.ndarray}:
            for param in params:
                bring_scalars(self.state[param], scalars)
            rows, held = self.rows(params, names)
        if scalars:
            begun = [tuple([array.item() for array in each]) for each in held]
        else:
            begun = [(0.0 if param in new else math.inf,) for param in params]
        write = put if there else np.ndarray.fill
        # by those numbers, as they are before the step: the numbers that the formula takes, and the rows
        alike: dict[tuple[float, ...], tuple[dict[str, Any], list[list[Array]]]] = {}
        for before, row, counted in zip(begun, rows, held, strict=True):
            batch = alike.get(before)
            if batch is None:
                step = before[0] + 1
                given = {**settings, **dict(zip(scalars, before, strict=False)), "step": step}
                batch = alike[before] = {**given, **self.numbers(given, step)}, []
            batch[1].append(row)
            for name, array in zip(scalars, counted, strict=True):
                write(array, batch[0][name])
        for given, batch in alike.values():
            self._change(batch, {name: given[name] for name in self._numbers})

    def _apart(self, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
        """Return which of the names of state are arrays, and which numbers."""
        return [name for name in names if name not in self.scalars], [name for name in names if name in self.scalars]

    @property
    def has_numbers_kernel(self) -> bool:
        """Whether a device can make the numbers of a step, as `numbers` does."""
        return self._numbers_kernel is not None

    def _update_there(self, params: list[Tensor], group: Group) -> list[Tensor]:
        """Change parameters by numbers that their devices compute; returns those on the CPU or without a kernel."""
        there = [param for param in params if param.is_cuda]
        if not there:
            return params
        names = self.state_names(group)
        if not self._captured:
            self.make_state(there, group, names)
            for param in there if self.scalars else ():
                move_scalars(self.state[param], self.scalars, param)
        rows, scalars = self.rows(there, names)
        given = given_of(group, self.ranges, write=not self._captured or capture_of_this_thread() is None)
        flags = [group[name] if self.ranges.get(name) is flag else 0.0 for name in self._numbers]
        for param in there:
            version_of(param)[0] += 1
        # a graph has tables of its own: what they hold lives as long as it, and is written when it is launched
        tables = multi_tensor.Tables() if self._captured else self._tables
        found = 0 if self._found is None else self._found.data.ptr
        left = tables.step_there(self.step_kernel, self._numbers_kernel, rows, scalars, given, flags, found)
        if self._captured:
            refresh(self, group, tables)
        others = set(map(id, left))
        rest = [param for param in params if not param.is_cuda]
        return rest + [param for param, row in zip(there, rows, strict=True) if id(row) in others]

    def rows(self, params: list[Tensor], names: tuple[str, ...]) -> tuple[list[list[Array]], list[list[Array]]]:
        """Return gradient, parameter and arrays of the state of each, and the numbers of each state."""
        arrays, scalars = self._apart(names)
        states = [self.state[param] for param in params] if names else []
        columns = [[param.stored_grad.array for param in params], [param.array for param in params]]
        columns += [[state[name].array for state in states] for name in arrays]
        rows = [list(row) for row in zip(*columns, strict=True)]
        if len(scalars) == 1:
            return rows, [[state[scalars[0]].array] for state in states]
        return rows, [[state[name].array for name in scalars] for state in states] if scalars else [[] for _ in params]

    def _update_groups(self, given: list[list[Tensor]]) -> None:
        attributes = vars(self)
        if "_tables" not in attributes:
            self._tables = multi_tensor.Tables()
        if gpu.is_capturing():
            check_capture(self, given)
            attributes["_captured"] = True
        else:
            self._tables.begin()
        try:
            super()._update_groups(given)
        finally:
            attributes.pop("_captured", None)

    def make_state(self, params: list[Tensor], group: Group, names: tuple[str, ...]) -> dict[Tensor, dict[str, Tensor]]:
        """Return the state, by name, that parameters lacked and now have.

        What a setting asks for may be missing at any step, since settings change; the rest at the first one only.
        """
        made: dict[Tensor, dict[str, Tensor]] = {}
        wanted, there = frozenset(names), counts_there(self, group)
        for param in params if names else ():
            state = self.state.get(param, {})
            if state.keys() >= wanted:
                continue
            missing = [name for name in names if name not in state]
            if state and not all(self.slots[name].asked_by for name in missing):
                raise KeyError(
                    f"the state of a parameter of shape {tuple(param.shape)} has {list(state)} and lacks {missing}"
                )
            if missing:
                made[param] = {name: self.slots[name].made(param, group, there=there) for name in missing}
        # all of it before any is kept, so that a device without room for it leaves the state as it was
        for param, state in made.items():
            self.state[param].update(state)
        return made

    def _change(self, rows: list[list[Array]], numbers: dict[str, Any]) -> None:
        """Change rows of gradient, parameter and state in place."""
        on_cuda = [row for row in rows if type(row[0]) is not np.ndarray]
        if on_cuda:
            found = self._found
            rows = [row for row in rows if type(row[0]) is np.ndarray]
            at = 0 if found is None else found.data.ptr
            left = self._tables.step(self.step_kernel, on_cuda, *numbers.values(), found=at)
            if left and (found is None or not found.item()):
                rows += left
        for row in rows:
            update_in_blocks(self.formula, row, numbers)


def _turns(params: list[Tensor]) -> list[list[Tensor]]:
    """Return the parameters in lists that have none twice: one that is given twice makes two steps."""
    if len(set(map(id, params))) == len(params):
        return [params]
    turns: list[list[Tensor]] = []
    times: dict[int, int] = {}
    for param in params:
        turn = times[id(param)] = times.get(id(param), -1) + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(param)
    return turns
