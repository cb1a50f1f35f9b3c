"""Elementwise optimizers as declarations: settings, state and formula."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from lucid.base import gpu
from lucid.cuda.launch import multi_tensor
from lucid.cuda.source.sources import make
from lucid.optim.base.algebra import HOST, Step, loops, source_of, state_forms
from lucid.optim.base.capturing import check_capture, refresh
from lucid.optim.base.declared import DeclaredOptimizer
from lucid.optim.base.forms import Asked, Form
from lucid.optim.base.slots import Slot, counts_on_device
from lucid.settings.optimizers import flag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lucid.base.arrays import Array
    from lucid.cuda.steps.numbers import NumbersKernel
    from lucid.ops.base.formula.trace import Node, Tracer
    from lucid.optim.optimizer import Group
    from lucid.tensor import Tensor


class ElementwiseOptimizer(DeclaredOptimizer):
    """The base of optimizers with an elementwise step: a formula of the element's own gradient and state.

    A subclass declares what is particular to it; checks of settings, making and loading of state, and the step on
    either device follow. `lucid/optim/adam.py` has one of everything.

    Attributes
    ----------
    slots : dict of Slot
        The state of a parameter, by name. Who has numbers there has ``"step"`` as the first of them, and a setting
        ``"capturable"``, the last of its ranges: whether they lie, and steps are counted, on the parameter's device.
    formula : callable
        A static method, ``formula(m, grad, param, *state, **numbers)``, that returns a parameter and its state after a
        step, a tuple: algebra of operators and, by the names of primitives, of `m`, as in `lucid.ops.base.formula`. It
        gets the arrays of the state in the order of `slots`, None for what no setting asks for; by keyword alone the
        numbers that its own parameters name: settings, or what `numbers` makes of them, at last those that are
        flags. A choice by numbers alone, such as ``m.where(weight_decay, a, b)``, is made before on the CPU, which
        computes one side. Complex numbers come as pairs of real ones, and half types in float32.
    kernel : str
        What the kernels are called that are made of `formula` and `numbers`: ``lucid::NAME<T>``, and, where state is
        asked for, ``lucid::NAME_momentum_buffer<T>`` and the like, of rows of gradient, parameter, and arrays of the
        state; they take the formula's numbers in its order, those that are no flags as a struct, by value or on the
        device. There ``lucid::NAME_numbers`` computes them from the settings in the order of `ranges` (pairs are two
        numbers, flags 0 or 1) and the numbers of the state in the order of `slots`. Without a kernel, the formula runs
        on CUDA devices by CuPy, and in no CUDA graph.
    """

    slots: ClassVar[Mapping[str, Slot]] = {}
    formula: ClassVar[Callable[..., tuple[Node | None, ...]]]
    kernel: ClassVar[str]
    formula_numbers: ClassVar[list[str]]
    # by the names of the arrays that a state has
    kernel_steps: ClassVar[Mapping[tuple[str, ...], Step]]
    numbers_kernel: ClassVar[NumbersKernel | None]
    # while a step is taken: the flag on the device that makes it change nothing
    _overflow: Array | None = None
    # by the id of a group, what its last step found
    _forms: dict[int, Form | None]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.scalars = tuple([name for name, slot in cls.slots.items() if slot.scalar])
        if "formula" in vars(cls):
            cls.formula_numbers = inspect.getfullargspec(cls.formula).kwonlyargs
            # kernels that are inherited would do what the inherited formula does
            cls._declare_kernels(f"optim_{cls.kernel}" if "kernel" in vars(cls) else "")
        elif not vars(cls).keys().isdisjoint({"numbers", "ranges"}):
            # for the same reason
            cls.numbers_kernel = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        # what was found would keep the state that goes
        vars(self).pop("_forms", None)
        super().__setstate__(state)

    @classmethod
    def _declare_kernels(cls, stem: str) -> None:
        """Declare steps and their kernels, in a file of this name; without one there are none."""
        cls.numbers_kernel = None
        own = loops(cls) if stem else {}
        cls.kernel_steps = {
            names: Step(cls.formula, absent, multi_tensor.step_kernel(stem, name) if stem else None, own.get(name))
            for names, absent, name in state_forms(cls)
        }
        if stem:
            flags = [name for name in cls.formula_numbers if cls.ranges.get(name) is flag]
            plain = [name for name in cls.formula_numbers if name not in flags]
            cls.numbers_kernel = multi_tensor.numbers_kernel(stem, cls.kernel, len(plain), len(cls.scalars))
            make(f"{stem}.cu", cls.kernel, partial(source_of, cls, plain, flags), header="steps.cuh")

    def state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the state that a parameter of `group` has."""
        return tuple(name for name, slot in self.slots.items() if not slot.asked_by or group[slot.asked_by])

    @staticmethod
    def numbers(m: Tracer, settings: Group, step: float) -> dict[str, Any]:
        """Return the numbers that the formula takes at the given step of a parameter and that are no settings.

        Of the numbers of the state, beside ``"step"``, they are those of after the step.

        Parameters
        ----------
        m : Tracer
            The namespace of what is no operator. The host gives numbers, and gets numbers; a kernel is made of what
            comes of symbols. Both sides of a choice by ``m.where`` are computed.
        settings : dict
            Those of a group, the learning rate as a number, and the numbers of the state as they are before the step.
        step : float
            1 at the first step, when the parameter's state has just been made. Then its number, or infinity where the
            state has no ``"step"``, which is what corrections for the first steps converge to.
        """
        return {}

    def update(self, params: list[Tensor], group: Group) -> None:
        """Change the parameters of one group; each has a gradient."""
        self._step_of(params, group)()

    def _check_devices(self, params: list[Tensor], group: Group) -> None:
        """Raise `DeviceError` if a step would; arrays of the last step are known to lie together."""
        form = vars(self).get("_forms", {}).get(id(group))
        asked = Asked(self.state_names(group), counts_on_device(self, group), captured=False)
        if form is None or form.grads(params, self.state, asked) is None:
            super()._check_devices(params, group)

    def _prepared(self, by_group: list[list[Tensor]]) -> Callable[[], None]:
        attributes = vars(self)
        known: dict[int, Form | None] = attributes.get("_forms", {})
        groups = self.param_groups
        # forms of groups that are gone, or have no gradients now, would keep their arrays
        attributes["_forms"] = {
            id(group): known.get(id(group)) for params, group in zip(by_group, groups, strict=True) if params
        }
        if type(self).update is not ElementwiseOptimizer.update:
            return super()._prepared(by_group)
        if gpu.is_capturing():
            check_capture(self, by_group)
        steps = [self._step_of(params, group) for params, group in zip(by_group, groups, strict=True) if params]
        if len(steps) > 1 and not self._are_apart(by_group):
            # each group then begins with what the ones before it leave
            return partial(self._update_groups, by_group)
        return partial(_take, steps)

    def _are_apart(self, by_group: list[list[Tensor]]) -> bool:
        """Return whether no parameter, and no number of the state, is in several groups."""
        forms = [form for form in self._forms.values() if form is not None]
        if len(forms) == sum(map(bool, by_group)) and all(form.apart for form in forms) and not gpu.is_capturing():
            return True
        seen: set[int] = set()
        for params in by_group:
            states = [self.state.get(param) or {} for param in params]
            own = {id(state[name]) for state in states for name in self.scalars if name in state}
            own.update(map(id, params))
            if not seen.isdisjoint(own):
                return False
            seen |= own
        for form in forms:
            form.apart = True
        return True

    def _step_of(self, params: list[Tensor], group: Group) -> Callable[[], None]:
        """Return the update of the parameters of a group, after all checks that may refuse it."""
        asked = Asked(self.state_names(group), counts_on_device(self, group), gpu.is_capturing())
        forms: dict[int, Form | None] = vars(self).setdefault("_forms", {})
        form, grads, before = None if asked.captured else forms.get(id(group)), None, None
        if form is not None:
            grads = form.grads(params, self.state, asked)
            before = None if grads is None else form.numbers(params, self.state)
        if form is None or grads is None or before is None:
            self._check_shapes(params, group)
            turns = _turns(params)
            if len(turns) > 1 and not asked.captured:
                first = self._step_of(turns[0], group)
                return partial(_take, [first, *[partial(self.update, turn, group) for turn in turns[1:]]])
            form = Form(self, params, group, asked)
            grads, before = [param.stored_grad.array for param in params], form.before
        if asked.captured:
            # a graph has a form of its own, which lives as long as it
            step = form.step(self, group, grads, before, self._overflow)
            return partial(_take, [step, partial(refresh, self, group, form, self.ranges)])
        forms[id(group)] = form
        return form.step(self, group, grads, before, self._overflow)

    def numbers_of_step(
        self, settings: Mapping[str, Any], before: tuple[float, ...]
    ) -> tuple[list[float], dict[str, Any]]:
        """Return the numbers of the state after a step, given those before it, and those that the formula takes."""
        step = before[0] + 1
        numbers = {**settings, **dict(zip(self.scalars, before, strict=False)), "step": step}
        numbers.update(self.numbers(HOST, numbers, step))
        return [numbers[name] for name in self.scalars], {name: numbers[name] for name in self.formula_numbers}

    def missing_state(
        self, params: list[Tensor], group: Group, names: tuple[str, ...]
    ) -> dict[Tensor, dict[str, Tensor]]:
        """Return the state, by name, that parameters lack, newly made.

        What a setting asks for may be missing at any step, since settings change; the rest at the first one only.
        """
        made: dict[Tensor, dict[str, Tensor]] = {}
        wanted, on_device = frozenset(names), counts_on_device(self, group)
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
                made[param] = {name: self.slots[name].made(param, group, on_device=on_device) for name in missing}
        return made


def _take(steps: list[Callable[[], None]]) -> None:
    """Take steps that were looked at before."""
    for step in steps:
        step()


def _turns(params: list[Tensor]) -> list[list[Tensor]]:
    """Return the parameters in lists that have none twice: one that is given twice makes two steps."""
    turns: list[list[Tensor]] = []
    times: dict[int, int] = {}
    for param in params:
        turn = times[id(param)] = times.get(id(param), -1) + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(param)
    return turns
