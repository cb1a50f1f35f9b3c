"""Checks of a module that several processes train, and the sharing of its first state."""

from __future__ import annotations

import weakref
import zlib
from itertools import chain
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase
from lucid.autograd.engine.retain import register_hook
from lucid.autograd.modes.state import thread
from lucid.base.device import device_of
from lucid.collectives.numbers import all_gathered
from lucid.collectives.sharing import share
from lucid.errors import DeviceError, DistributedError, SettingError, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lucid.collectives.group import ProcessGroup
    from lucid.nn.module.module import Module
    from lucid.nn.parallel.joining import JoinableModel
    from lucid.nn.parallel.reducer import Reducer
    from lucid.nn.parameter import Parameter


_TABLES = itemgetter("_modules", "_parameters")
_VALUES = cast("Callable[[Any], Iterable[object]]", cast("Any", dict).values)
_END = (object(),)
reducers: weakref.WeakSet[Reducer] = weakref.WeakSet()
"""Those that are in use."""


def check_parameters(module: Module, named: dict[str, Parameter], device_ids: Any, output_device: Any) -> None:
    """Raise unless parameters are on one device, the one that is named, and of no other wrapped module."""
    if not named:
        raise SettingError(
            "DistributedDataParallel: expected a module with a parameter that requires grad: processes have nothing to "
            "put together"
        )
    devices = {str(device_of(parameter.array)) for parameter in module.parameters()}
    if len(devices) > 1:
        raise DeviceError(
            f"DistributedDataParallel: expected parameters on one device, got {', '.join(sorted(devices))}"
        )
    (device,) = devices
    if not isinstance(device_ids, list | tuple | None):
        raise unfit(device_ids, "a list of the module's device, or None", "device_ids")
    requested = list(cast("list[Any]", device_ids or []))
    for each in (*requested, *([] if output_device is None else [output_device])):
        name = f"cuda:{each}" if isinstance(each, int) else str(each)
        if len(requested) > 1 or device not in {name, f"{name}:0"}:
            raise SettingError(
                f"DistributedDataParallel: device_ids and output_device: expected the module's device {device}, or "
                f"None, got {device_ids} and {output_device}"
            )
    ours = {id(parameter) for parameter in named.values()}
    if any(ours & {id(parameter) for parameter in reducer.parameters} for reducer in reducers if not reducer.closed):
        raise SettingError(
            "DistributedDataParallel: a parameter belongs to another DistributedDataParallel already, and its gradient "
            "would be put together twice: wrap the outermost module once"
        )


class Form:
    """The parameters and modules of a module when it is wrapped, and those parameters that require no grad then."""

    def __init__(self, module: Module) -> None:
        self._tables = _tables(module)
        self._remember(module)
        self._frozen = {name: each for name, each in module.named_parameters() if not each.requires_grad}

    def _remember(self, module: Module) -> None:
        """Keep the entries to compare in each forward: while each table holds the same, a walk would find the same."""
        self._modules = list(module.modules())
        self._entries = list(_entries(self._modules))

    def check(self, module: Module) -> None:
        """Raise `DistributedError` if one would now have a gradient that is not put together."""
        if module is not self._modules[0] or not same(_entries(self._modules), self._entries):
            # a module without parameters, say, may be replaced
            if _tables(module) != self._tables:
                raise DistributedError(
                    "DistributedDataParallel: a parameter or a module was added, removed or replaced since the module "
                    "was wrapped, and would take no part: change the module before, or wrap it anew in all processes: "
                    "module = model.module; del model"
                )
            self._remember(module)
        for name, parameter in self._frozen.items():
            if parameter.edge is not None:
                raise DistributedError(
                    f"DistributedDataParallel: {name} requires grad, and did not when the module was wrapped: each "
                    "process would have its own gradient. Wrap the module while it requires grad, and freeze it then, "
                    "or wrap the module anew in all processes: module = model.module; del model"
                )


def same(now: Iterable[object], before: Iterable[object]) -> bool:
    """Return whether both are the very same objects, in a loop that runs outside of Python."""
    return all(map(is_, chain(now, _END), chain(before, _END)))  # the shorter one ends with what the other has not


def _entries(modules: Iterable[Module]) -> Iterator[object]:
    """Yield the entries of the tables of modules and parameters."""
    return chain.from_iterable(map(_VALUES, chain.from_iterable(map(_TABLES, map(vars, modules)))))


def _tables(module: Module) -> list[Any]:
    tables = [vars(each) for each in module.modules()]
    return [(len(table["_modules"]), *map(id, table["_parameters"].values())) for table in tables]


def check_replicas(module: Module, group: ProcessGroup) -> None:
    """Raise `DistributedError` in all processes if names, shapes or dtypes of parameters and buffers differ."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    words = [f"{name} of shape {tuple(tensor.array.shape)}, {tensor.array.dtype.name}" for name, tensor in tensors]
    mine = np.array([len(words), zlib.crc32("\n".join(words).encode())], np.int64)
    everyone = all_gathered(group, mine, "forms of modules")
    if (everyone == everyone[0]).all():
        return
    count = int(everyone[:, 0].min())
    each = np.array([zlib.crc32(word.encode()) for word in words[:count]], np.int64)
    rows = all_gathered(group, each, "parameters of modules")
    unlike = [index for index in range(count) if len(set(rows[:, index])) > 1]
    place = words[unlike[0]] if unlike else f"numbers of parameters and buffers, {[int(n) for n in everyone[:, 0]]}"
    raise DistributedError(
        f"DistributedDataParallel: the processes' modules differ; in rank {group.ranks[group.rank()]} the first that "
        f"does is {place}: expected the same module in all"
    )


def share_buffers(model: JoinableModel, root: int) -> None:
    """Take one process's buffers, in training."""
    if model.broadcast_buffers and model.training and thread.state.recording:
        share(list(model.module.buffers()), model.process_group, root, "DistributedDataParallel", spare_equal=True)


def watch_for_grad(output: Any, reducer: Reducer) -> None:
    """Say once, before anything was put together, that `autograd.grad` puts nothing together."""
    if not isinstance(output, TensorBase) or output.edge is None:
        return
    this = weakref.ref(reducer)

    def passes(_: Any) -> None:
        reducer = this()
        running = thread.state.passes
        if reducer is None or reducer.warned or not running:
            return
        captured = running[-1].captures  # in the place of being accumulated
        if any(parameter.edge is not None and parameter.edge[0] in captured for parameter in reducer.parameters):
            reducer.warned = True
            warn(
                "DistributedDataParallel: autograd.grad accumulates no gradients of parameters, and so puts none "
                "together: each process has its own"
            )

    register_hook(output, passes)
