"""Steps in a capture: the refusal of steps that cannot be recorded, and the update of settings before each replay."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from lucid.autograd.base import wrap
from lucid.base import gpu
from lucid.base.capture import capture_of_this_thread
from lucid.cuda.steps.numbers import SettingsMemory
from lucid.errors import CaptureError
from lucid.optim.base.entries import as_state
from lucid.optim.base.settings import numbers_of, step_settings
from lucid.optim.base.slots import counts_on_device
from lucid.settings.optimizers import flag

if TYPE_CHECKING:
    from collections.abc import Collection

    from lucid.optim.base.declared import DeclaredOptimizer
    from lucid.optim.base.elementwise import ElementwiseOptimizer
    from lucid.optim.base.forms import Form
    from lucid.optim.optimizer import Group
    from lucid.tensor import Tensor


def check_capture(optimizer: DeclaredOptimizer, by_group: list[list[Tensor]]) -> None:
    """Raise unless a step of these parameters, some of each group, can be recorded by a CUDA graph.

    Raises
    ------
    CaptureError
        If one cannot; the message says what to do. Nothing is changed then.
    """
    # past `__setattr__`, as nothing is lost by it
    vars(optimizer)["state"] = as_state(optimizer.state)
    what = f"{type(optimizer).__name__}.step() in a capture of a CUDA graph"
    for number, (params, group) in enumerate(zip(by_group, optimizer.param_groups, strict=True)):
        names = optimizer.state_names(group)
        if names is None:
            if params:
                raise CaptureError(
                    f"{what}: its steps are counted on the host, once for all replays: let the capture end with "
                    "backward, and take the step after each replay"
                )
            continue
        counted, by = not set(names).isdisjoint(optimizer.scalars), optimizer.counted_by
        if params and counted and not counts_on_device(optimizer, group):
            raise CaptureError(
                f"{what}: parameter group {number} has {by}={group[by]}, so that its steps are counted on the host, "
                f"once for all replays: make the optimizer with {by}=True"
            )
        for param in params:
            if not param.is_cuda:
                raise CaptureError(
                    f"{what}: a parameter of shape {tuple(param.shape)} is on the CPU, where nothing is recorded: "
                    "move it to the CUDA device, or step its optimizer outside of the capture"
                )
            state: dict[str, Any] = optimizer.state.get(param, {})
            if not state.keys() >= set(names) or (counted and type(state["step"].array) is np.ndarray):
                raise CaptureError(
                    f"{what}: a parameter of shape {tuple(param.shape)} has no {[*names]} on its device yet, and each "
                    "replay would begin with new state: take a step before the capture"
                )


def refuse_without_kernels(optimizer: ElementwiseOptimizer, group: Group) -> NoReturn:
    """Raise the error of a captured step of a group with parameters that no kernel changes."""
    number = next(number for number, own in enumerate(optimizer.param_groups) if own is group)
    raise CaptureError(
        f"{type(optimizer).__name__}.step() in a capture of a CUDA graph: parameter group {number} has parameters that "
        "no kernel changes: expected floating or complex ones that are contiguous, each in the group once, and an "
        "optimizer with a kernel"
    )


def followed(optimizer: DeclaredOptimizer, group: Group, names: Collection[str]) -> dict[str, Any]:
    """Return settings as numbers, or in a capture as float64 scalars on the device, written before each replay.

    The other settings of the group cannot change between replays.
    """
    if not gpu.is_capturing():
        numbers = numbers_of(group)
        return {name: numbers[name] for name in names}
    memory = SettingsMemory(len(names))
    memory.take(step_settings(group, names, write=capture_of_this_thread() is None))
    refresh(optimizer, group, memory, names)
    return {name: wrap(memory.array[position]) for position, name in enumerate(names)}


def refresh(optimizer: DeclaredOptimizer, group: Group, place: SettingsMemory | Form, names: Collection[str]) -> None:
    """Have the capture of this thread write the changed settings of a group, those named, before each replay.

    A capture that CuPy began itself is told nothing: settings are recorded as they are.
    """
    capture = capture_of_this_thread()
    if capture is None:
        vars(optimizer).setdefault("_recorded", []).append(place)
        return
    captured = _form(optimizer, group, names)
    before: list[Any] = []
    counts = len(optimizer.param_groups), len(group["params"])

    def write() -> None:
        nonlocal before
        if (len(optimizer.param_groups), len(group["params"])) != counts:
            raise CaptureError(
                f"replay of a step of {type(optimizer).__name__}: a parameter or group was added or removed since the "
                "graph was captured, which knows nothing of it: capture anew, a graphed step by its reset()"
            )
        # what was loaded has groups of its own; the state of before is not held here, so that it can go
        loaded = all(own is not group for own in optimizer.param_groups)
        now = [group[name] for name in optimizer.ranges]
        if before and not loaded and all(map(operator.is_, now, before)):
            return
        if loaded or _form(optimizer, group, names) != captured:
            what = "" if loaded else f"; now it is {_form(optimizer, group, names)[0]}"
            raise CaptureError(
                f"replay of a step of {type(optimizer).__name__}: the graph was captured with {captured[0]}{what}: "
                "capture anew (a graphed step by its reset()) after load_state_dict(), after a change of such settings "
                "and of the tensor that holds the learning rate; that tensor's value may be changed in place"
            )
        place.write(step_settings(group, names, write=False).values)
        # of what can change in place, such as a tensor, it is no sign that it is the same
        before = now if all(map(_is_constant, now)) else []

    capture.kept += [place, step_settings(group, names, write=False).on_device]
    capture.before.append(write)


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, cast("tuple[object, ...]", value)))
    return value is None or isinstance(value, int | float | str)


def _form(
    optimizer: DeclaredOptimizer, group: Group, names: Collection[str]
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Return the parts of a group that a graph depends on: flags, other settings, state, addresses."""
    fixed = {name: group[name] for name, check in optimizer.ranges.items() if check is flag or name not in names}
    settings = step_settings(group, names, write=False)
    addresses = [(position, array.data.ptr) for position, array in settings.on_device]
    return {**fixed, "state": optimizer.state_names(group)}, addresses
