"""State dicts of optimisers: packed in PyTorch's form, and read with everything checked before anything changes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lucid.autograd.base import TensorBase, wrap
from lucid.base.arrays import asarray, astype, to_device
from lucid.base.device import CPU, Device, device_of
from lucid.base.dtype import can_cast, dtype_of, float32
from lucid.errors import LucidError, StateDictError, warn
from lucid.optim.base.entries import Entries
from lucid.optim.base.slots import counts_on_device

if TYPE_CHECKING:
    from lucid.optim.optimizer import Group, Optimizer
    from lucid.tensor import Tensor


def packed(state: Mapping[Any, Any], groups: list[Group]) -> dict[str, Any]:
    """Return the state dict: parameters are numbers, counted through all groups; other keys of the state stay.

    Raises
    ------
    StateDictError
        If there is state of a tensor in no group, or under a number, which in a state dict stands for a parameter.
    """
    numbers: dict[Tensor, int] = {}
    packed_groups: list[Group] = []
    start = 0
    for group in groups:
        params = group["params"]
        # one that an earlier group has as well keeps its number
        numbers.update({param: number for number, param in enumerate(params, start) if param not in numbers})
        start += len(params)
        packed_groups.append({**group, "params": [numbers[param] for param in params]})
    entries: dict[Any, Any] = {}
    for key, entry in state.items():
        if key not in numbers and isinstance(key, TensorBase | int):
            what = f"the number {key}" if isinstance(key, int) else f"a tensor of shape {tuple(key.array.shape)}"
            raise StateDictError(
                f"state_dict: expected state of parameters, or under names, got state of {what}, which is in no group"
            )
        entries[numbers.get(key, key)] = dict(entry) if type(entry) is Entries else entry
    return {"state": entries, "param_groups": packed_groups}


class _Slot(NamedTuple):
    """A parameter, its group, and its position, in words."""

    param: Tensor
    group: Group
    name: str


def loaded(
    optimizer: Optimizer, state_dict: Mapping[str, Any], keeps: Callable[[Tensor], bool]
) -> tuple[dict[Any, Any], list[Group]]:
    """Return state and groups from `state_dict`, for the parameters of `optimizer`, without changing that.

    Of parameters of which it `keeps` none, state is passed over.

    Raises
    ------
    StateDictError
        If something does not fit; the message names group and parameter.
    """
    if not (isinstance(state_dict.get("state"), Mapping) and isinstance(state_dict.get("param_groups"), list | tuple)):
        raise StateDictError(
            "load_state_dict: expected a dict 'state' and a list 'param_groups', as an optimizer's state_dict() has "
            f"them, got the keys {[*state_dict]}"
        )
    groups, slots = _groups(optimizer, state_dict["param_groups"])
    state: dict[Any, Any] = {}
    for number, entries in state_dict["state"].items():
        if not isinstance(number, int):
            # what belongs to no parameter, under a name of the optimiser's own
            state[number] = copy.deepcopy(entries)
            continue
        if number not in slots:
            raise StateDictError(
                f"load_state_dict: expected state of the parameters {sorted(slots)} that the groups name, got state "
                f"of {number!r}"
            )
        slot = slots[number]
        if keeps(slot.param):
            state[slot.param] = _entries(entries, optimizer, slot)
    return state, groups


def _groups(optimizer: Optimizer, saved_groups: Any) -> tuple[list[Group], dict[Any, _Slot]]:
    """Return the saved groups with this optimiser's parameters, and the slots of the saved numbers."""
    if len(saved_groups) != len(optimizer.param_groups):
        raise StateDictError(
            "loaded state dict has a different number of parameter groups: expected "
            f"{len(optimizer.param_groups)}, got {len(saved_groups)}"
        )
    groups: list[Group] = []
    slots: dict[Any, _Slot] = {}
    for number, (own, saved) in enumerate(zip(optimizer.param_groups, _by_name(optimizer, saved_groups), strict=True)):
        where = f"parameter group {number}"
        # dicts that were saved before there was this setting lack it
        missing = sorted({"params", *optimizer.defaults}.difference(saved, {"capturable"}))
        if missing:
            raise StateDictError(
                f"load_state_dict: {where} lacks {missing}: expected the state of {type(optimizer).__name__}, got the "
                f"keys {[*saved]}"
            )
        if len(saved["params"]) != len(own["params"]):
            raise StateDictError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                f"{where} has {len(own['params'])} parameters, got {len(saved['params'])}"
            )
        settings = copy.deepcopy({key: value for key, value in saved.items() if key != "params"})
        group: Group = {**{key: _setting(value) for key, value in settings.items()}, "params": own["params"]}
        if "capturable" in optimizer.defaults:
            group.setdefault("capturable", own["capturable"])
        if "param_names" in own:
            group.setdefault("param_names", own["param_names"])
        try:
            optimizer.check_group(group)
        except (TypeError, ValueError) as error:
            raise StateDictError(f"load_state_dict: {where}: {error}") from error
        groups.append(group)
        names = group.get("param_names")
        for position, (saved_number, param) in enumerate(zip(saved["params"], own["params"], strict=True)):
            name = f"{where}, parameter {position}" + (f" ({names[position]})" if names else "")
            if saved_number in slots and slots[saved_number].param is not param:
                raise StateDictError(f"load_state_dict: {name}: number {saved_number} stands for another one already")
            slots[saved_number] = _Slot(param, group, name)
    return groups, slots


def _by_name(optimizer: Optimizer, saved_groups: Any) -> list[Any]:
    """Return the saved groups in the order of this optimizer's, and so their parameters, if both have names.

    Where the names are others everything stays at its place, as in PyTorch, with a warning.
    """
    saved_groups = list(saved_groups)
    own: list[Any] = [group.get("param_names") for group in optimizer.param_groups]
    saved: list[Any] = [group.get("param_names") for group in saved_groups]
    if None in own or None in saved or own == saved:
        return saved_groups
    known, names_of_saved = ([name for names in each for name in names] for each in (own, saved))
    if len(set(known)) < len(known) or sorted(known) != sorted(names_of_saved):
        only_own, only_saved = sorted({*known} - {*names_of_saved}), sorted({*names_of_saved} - {*known})
        warn(
            f"load_state_dict: the optimizer and the state dict name other parameters, so state goes by position: "
            f"only the optimizer has {only_own}, only the state dict {only_saved}",
            UserWarning,
        )
        return saved_groups
    of_names = {frozenset(names): group for names, group in zip(saved, saved_groups, strict=True)}
    groups: list[Any] = [of_names.get(frozenset(names)) for names in own]
    if None in groups:
        warn(
            "load_state_dict: the parameters of the state dict are in other groups: state goes by name, and settings "
            f"of groups by position: expected the groups {own}, got {saved}",
            UserWarning,
        )
        groups = saved_groups
    numbers = [number for group in saved_groups for number in group["params"]]
    number_of = dict(zip(names_of_saved, numbers, strict=True))
    return [
        {**group, "params": [number_of[name] for name in names], "param_names": names}
        for names, group in zip(own, groups, strict=True)
    ]


def _setting(value: Any) -> Any:
    """Return a saved setting; another library's tensor, such as a learning rate, becomes a tensor."""
    if isinstance(value, tuple | list):
        return type(cast("Any", value))(map(_setting, cast("list[Any]", value)))
    foreign = hasattr(value, "__array__") and not isinstance(value, TensorBase | Real)
    return wrap(asarray(value)) if foreign else value


def _entries(entries: Any, optimizer: Optimizer, slot: _Slot) -> dict[str, Any]:
    """Return the state of one parameter, copied and checked."""
    if not isinstance(entries, Mapping):
        raise StateDictError(f"load_state_dict: {slot.name}: expected a dict of state, got {type(entries).__name__}")
    saved, names = cast("Mapping[str, Any]", entries), optimizer.state_names(slot.group)
    if names is None:
        # a user's own optimizer, whose steps are what it makes of them
        return {name: _value(value, slot, name) for name, value in saved.items()}
    device = device_of(slot.param.array) if counts_on_device(optimizer, slot.group) else CPU
    values = {
        name: _value(value, slot, name, device if name in optimizer.scalars else None)
        for name, value in saved.items()
        if value is not None
    }
    if not values:
        return values
    missing = sorted(set(names).difference(values))
    if missing:
        raise StateDictError(f"load_state_dict: {slot.name} lacks {missing}: got the state {sorted(values)}")
    shape = tuple(slot.param.shape)
    for name in names:
        value = values[name]
        if not isinstance(value, TensorBase):
            raise StateDictError(
                f"load_state_dict: {slot.name}: expected {name} as a tensor, got {type(value).__name__}"
            )
        expected = () if name in optimizer.scalars else shape
        if value.array.shape != expected:
            raise StateDictError(
                f"load_state_dict: {slot.name}: expected {name} of shape {expected}, got {tuple(value.array.shape)}"
            )
    return values


def _value(value: Any, slot: _Slot, name: str, scalar_on: Device | None = None) -> Any:
    """Return one entry of a parameter's state: a tensor beside the parameter, a list of such, or a copy of the value.

    A number of a declared state becomes a tensor of float32 on the device `scalar_on`.
    """
    if scalar_on is not None and isinstance(value, int | float):
        value = np.array(value, np.float32)
    if isinstance(value, list):
        return [_value(each, slot, name) for each in cast("list[Any]", value)]
    if isinstance(value, TensorBase):
        array = value.array
    elif hasattr(value, "__array__") or hasattr(value, "__cuda_array_interface__"):
        array = asarray(value)
    else:
        return copy.deepcopy(value)
    dtype, device = dtype_of(array), CPU
    if scalar_on is not None:
        dtype, device = float32, scalar_on
    elif name != "step":
        device = device_of(slot.param.array)
        wanted = dtype_of(slot.param.array)
        # a real number beside a complex parameter, as a norm, stays real
        if dtype.is_complex or (dtype.is_floating_point and not wanted.is_complex):
            dtype = wanted
    if not can_cast(dtype_of(array), dtype):
        raise StateDictError(f"load_state_dict: {slot.name}: expected {name} that fits {dtype}, got {dtype_of(array)}")
    try:
        moved = to_device(array, device)
        return wrap(astype(moved, dtype, copy=moved is array))
    except LucidError as error:
        raise StateDictError(f"load_state_dict: {slot.name}: {name}: {error}") from error
