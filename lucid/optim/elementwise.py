"""Optimizers whose step is a formula on elements, declared: settings, state, formula and kernel."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from lucid.autograd.base import version_of, wrap
from lucid.backend import gpu
from lucid.backend.arrays import namespace
from lucid.cuda.launch import multi_tensor
from lucid.optim.blocks import update_in_blocks
from lucid.optim.optimizer import Optimizer
from lucid.optim.settings import check_implementation, rate_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lucid.backend.arrays import Array
    from lucid.cuda.launch.kernels import Kernel
    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor


class ElementwiseOptimizer(Optimizer):
    """An optimizer whose step changes each element by a formula, from the element's own gradient and state.

    A subclass declares what is particular to it; checks of settings, making and loading of state, and the step on
    either device follow. `lucid/optim/adam.py` has one of everything.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        As for `Optimizer`.
    given : dict
        The arguments of the subclass's constructor: its ``locals()``.

    Attributes
    ----------
    ranges : dict
        Of each setting the check of its values, out of ``lucid/optim/settings.py``.
    slots : dict
        The state of a parameter: zeros like it, and under ``"step"`` the number of steps that it has made. Beside each
        the setting without which, being 0 or False, a parameter has no such state; or "".
    formula : callable
        A static method that changes a parameter and its state in place, by ufuncs and ``out=``. It gets the array
        module, two arrays to write into, the gradient (which stays), the parameter and its state in the order of
        `slots`; by keyword the numbers that its own parameters name: settings, or what
        `numbers` makes of them. Complex numbers come as pairs of real ones, and half types in float32.
    kernel : str
        The kernel ``lucid::NAME<T, DEPTH>`` of ``NAME.cu`` that does the same to rows of `DEPTH` arrays:
        gradient, parameter, and state in the order of `slots`. It takes the formula's numbers in the formula's order.
        Without one, the formula runs on CUDA devices too.
    """

    ranges: ClassVar[Mapping[str, Callable[[Any, str], None]]]
    slots: ClassVar[Mapping[str, str]] = {}
    formula: ClassVar[Callable[..., None]]
    kernel: ClassVar[str]
    _numbers: ClassVar[list[str]]
    _step_kernel: ClassVar[Kernel | None]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "formula" in vars(cls):
            cls._numbers = inspect.getfullargspec(cls.formula).kwonlyargs
            # what is inherited would do what the inherited formula does
            cls._step_kernel = cls._declare_kernel() if "kernel" in vars(cls) else None

    @classmethod
    def _declare_kernel(cls) -> Kernel:
        """Return the kernel, for as many arrays in a row as the slots may ask for."""
        arrays = [setting for name, setting in cls.slots.items() if name != "step"]
        return multi_tensor.step_kernel(cls.kernel, range(2 + arrays.count(""), 3 + len(arrays)))

    def __init__(self, params: Params, given: dict[str, Any]) -> None:
        check_implementation(given)
        super().__init__(params, {name: _frozen(given[name]) for name in self.ranges})

    def check_group(self, group: Group) -> None:
        """Raise if a setting of `group` is out of its range."""
        for name, check in self.ranges.items():
            check(group[name], name)

    def state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the state that a parameter of `group` has."""
        return tuple(name for name, setting in self.slots.items() if not setting or group[setting])

    def numbers(self, settings: Mapping[str, Any], step: float) -> dict[str, Any]:
        """Return the numbers that the formula takes at the given step of a parameter and that are no settings.

        Parameters
        ----------
        settings : dict
            Those of a group, the learning rate as a number.
        step : float
            1 at the first step, when the parameter's state has just been made. Then its number, or infinity where the
            state has no ``"step"``, which is what corrections for the first steps converge to.
        """
        return {}

    def update(self, params: list[Tensor], group: Group) -> None:
        """Change the parameters of one group; each has a gradient."""
        names = self.state_names(group)
        slots = [name for name in names if name != "step"]
        counted = "step" in names
        settings = {**group, "lr": rate_of(group)}
        new = self._make_state(params, names)
        by_step: dict[float, list[list[Array]]] = {}
        for param in params:
            version_of(param)[0] += 1
            row, step = [param.stored_grad.array, param.array], math.inf
            if names:
                state = self.state[param]
                row += [state[name].array for name in slots]
                if counted:
                    # two thirds of the time of `+= 1`
                    count = state["step"].array
                    count.fill(count.item() + 1)
                    step = count.item()
                elif param in new:
                    step = 1
            by_step.setdefault(step, []).append(row)
        for step, rows in by_step.items():
            given = {**settings, **self.numbers(settings, step)}
            self._change(rows, {name: given[name] for name in self._numbers})

    def _update_groups(self, given: list[list[Tensor]]) -> None:
        if "_tables" not in vars(self):
            self._tables = multi_tensor.Tables()
        self._tables.begin()
        super()._update_groups(given)

    def _make_state(self, params: list[Tensor], names: tuple[str, ...]) -> dict[Tensor, dict[str, Tensor]]:
        """Return the state, by name, that parameters lacked and now have.

        What a setting asks for may be missing at any step, since settings change; the rest at the first one only.
        """
        made: dict[Tensor, dict[str, Tensor]] = {}
        wanted = frozenset(names)
        for param in params if names else ():
            state = self.state.get(param, {})
            if state.keys() >= wanted:
                continue
            missing = [name for name in names if name not in state]
            if state and not all(map(self.slots.get, missing)):
                raise KeyError(f"the state of a parameter of shape {param.shape} has {list(state)} and lacks {missing}")
            if missing:
                made[param] = {name: _zeros(name, param) for name in missing}
        # all of it before any is kept, so that a device without room for it leaves the state as it was
        for param, state in made.items():
            self.state[param].update(state)
        return made

    def _change(self, rows: list[list[Array]], numbers: dict[str, Any]) -> None:
        """Change rows of gradient, parameter and state in place."""
        on_cuda = [row for row in rows if type(row[0]) is not np.ndarray]
        if on_cuda:
            rows = [row for row in rows if type(row[0]) is np.ndarray]
            rows += self._tables.step(self._step_kernel, on_cuda, *numbers.values())
        for row in rows:
            update_in_blocks(self.formula, row, numbers)


def _frozen(value: object) -> Any:
    """Return a setting, as a tuple if it is a list, which its owner could change."""
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def _zeros(name: str, param: Tensor) -> Tensor:
    """Return new state of a parameter: a number under "step", and otherwise like the parameter."""
    if name == "step":
        # on the CPU whatever the parameter's device: reading it back from there would wait for the device
        return wrap(np.zeros((), np.float32))
    array = param.array
    if not param.is_cuda:
        return wrap(np.zeros(array.shape, array.dtype))
    with gpu.use_device(gpu.device_index(array)):
        return wrap(namespace(array).zeros(array.shape, array.dtype))
