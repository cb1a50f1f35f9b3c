"""Hooks that keep tensors and graphs alive."""

from __future__ import annotations

import gc
import time
import types
from itertools import chain
from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase
from lucid.autograd.engine.node import AccumulateGrad, Extra, Node
from lucid.autograd.hooks.firing import StandIn
from lucid.autograd.hooks.registration import HookList
from lucid.autograd.hooks.table import HookTable
from lucid.hooks.listing import Row, Table, kind_of, node_path, shared_tables
from lucid.nn.module.module import Module
from lucid.nn.module.paths import module_path
from lucid.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Iterator

# More objects than these behind one hook are not looked at: it holds a program, rather than tensors.
MOST_OBJECTS = 10_000
# What belongs to others, or to the program.
UNSEEN = (type, types.ModuleType, types.FrameType, types.CodeType, Module, Optimizer, Node)


class Leak(Row):
    """A hook that holds tensors.

    Attributes
    ----------
    tensors : int
        How many of them, those of modules and optimizers that it holds left out.
    bytes : int
        What their arrays take, each counted once.
    graph : bool
        Whether one of them was recorded, so that its graph is held, too, with all that this keeps for backward.
    age : float or None
        Seconds since the hook was registered.
    """

    __slots__ = ("age", "bytes", "graph", "tensors")

    tensors: int
    bytes: int
    graph: bool
    age: float | None

    def __repr__(self) -> str:
        graph = " and a graph" if self.graph else ""
        return f"{super().__repr__()[:-1]}, holds {self.tensors} tensors of {self.bytes:,} bytes{graph}>"


def leaks() -> Table:
    """Return a table of the hooks of this process that hold tensors, those of most bytes first.

    A hook holds what its function closes over, its default and bound arguments, and what the object holds whose method
    it is, a list whose ``append`` it is, or a generator. Whatever it holds lives as long as the hook is registered: an
    activation that a hook of a parameter closes over, for one, keeps the whole graph of its step.

    Returns
    -------
    Table
        Of `Leak` rows; they keep nothing alive themselves. The path of a hook on a module is its class and its place in
        its model.

    Notes
    -----
    It collects garbage and looks at every object of the process, but for those that `gc.freeze` has set aside: seconds
    in a large one.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks
    >>> weight = lucid.ones(2, requires_grad=True)
    >>> activation = weight * 2
    >>> _ = weight.register_hook(lambda grad, kept=activation: grad * kept.detach())
    >>> leak = hooks.leaks().filter(file="*doctest*")[0]
    >>> leak.kind, leak.tensors, leak.bytes, leak.graph
    ('tensor hook', 1, 8, True)
    """
    gc.collect()
    rows: list[Leak] = []
    now = time.monotonic()
    objects = chain((each for _, each in shared_tables()), gc.get_objects())
    containers: dict[int, HookTable | HookList] = {
        id(each): each for each in objects if is_a(each, HookTable | HookList)
    }
    for container in containers.values():
        if not container:
            continue
        hooks: list[tuple[int, Any]] = (
            [*container.items()] if isinstance(container, HookTable) else [(-1, hook) for hook in container]
        )
        path = kind = ""
        for number, (key, hook) in enumerate(hooks):
            tensors = held_by(hook)
            if not tensors:
                continue
            if not kind:
                path, kind = owner_of(container)
            row = Leak(path, kind, number, hook, container, key)
            row.tensors = len(tensors)
            arrays = {id(array): array for tensor in tensors for array in [tensor.array]}
            row.bytes = sum(array.nbytes for array in arrays.values())
            row.graph = any(t.edge is not None and not isinstance(t.edge[0], AccumulateGrad) for t in tensors)
            registration = row.registration()
            row.age = None if registration is None else now - registration.time
            rows.append(row)
    rows.sort(key=lambda row: -row.bytes)
    return Table(rows)


def is_a(value: Any, kinds: Any) -> bool:
    """Return whether a value is of some classes, without a question to itself: other libraries' may warn, or raise."""
    return issubclass(type(value), kinds)


def held_by(hook: Any) -> list[TensorBase]:
    """Return the tensors that a hook keeps alive, but for those of modules and optimizers."""
    waiting, seen, tensors = [hook], set[int](), list[TensorBase]()
    while waiting and len(seen) < MOST_OBJECTS:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_a(value, TensorBase):
            tensors.append(value)
        else:
            waiting += parts_of(value)
    return tensors


def parts_of(value: Any) -> Iterator[Any]:
    """Yield the objects that a hook's function, or one of its objects, holds."""
    if is_a(value, types.FunctionType):  # not the names of its file, which hold the program
        yield from value.__defaults__ or ()
        yield from (value.__kwdefaults__ or {}).values()
        for cell in value.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # a name that has no value yet
                continue
    elif is_a(value, StandIn):
        yield getattr(value, "func", None)
    elif not is_a(value, UNSEEN):
        yield from gc.get_referents(value)


def owner_of(container: HookTable | HookList) -> tuple[str, str]:
    """Return in words the owner of a table or list of hooks, and their kind."""
    if isinstance(container, HookTable):
        for path, shared in shared_tables():
            if shared is container:
                return path, kind_of(container.kind)
        for owner in owners_of(container, (Module, Optimizer)):
            path = module_path(owner) if isinstance(owner, Module) else type(owner).__name__
            return path.removeprefix("module "), kind_of(container.kind)
        return "unknown", kind_of(container.kind)
    for extra in owners_of(container, (Extra,)):
        kinds = {id(extra.prehooks): "node prehook", id(extra.posthooks): "node posthook"}
        kind = kinds.get(id(container)) or ("post-accumulate hook" if extra.accumulated is container else "tensor hook")
        for node in owners_of(extra, (Node,)):
            return node_path(node), kind
    return "a node that is gone", "tensor hook"


def owners_of(value: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    """Give the objects of some classes that hold a value as an attribute, or in a dictionary that is one."""
    for referrer in gc.get_referrers(value):
        if is_a(referrer, kinds):
            yield referrer
        elif type(referrer) is dict:
            yield from (each for each in gc.get_referrers(referrer) if is_a(each, kinds))  # pyright: ignore[reportUnknownArgumentType]
