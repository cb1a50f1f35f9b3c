"""Every registered hook with its place: a table that switches hooks off, takes them off, and counts their calls."""

from __future__ import annotations

import fnmatch
import functools
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase
from lucid.autograd.engine.node import AccumulateGrad, Node
from lucid.autograd.hooks.firing import Counted, hook_name, without
from lucid.autograd.hooks.handle import Handle
from lucid.autograd.hooks.owning import KINDS
from lucid.autograd.hooks.registration import Caller, HookList, Registration, changing
from lucid.autograd.recording.views import live_edge
from lucid.hooks.points import matches
from lucid.hooks.printing import printed, rich_table
from lucid.hooks.scoping import take_off
from lucid.nn.hooking.tables import global_tables
from lucid.nn.module.module import Module
from lucid.optim.base import stepping
from lucid.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from lucid.autograd.hooks.table import HookTable

# Tables that say more about the hooks of another.
MARKS = ("_with_kwargs", "_always_called", "_with_context")
COLUMNS = ("path", "kind", "number", "name", "registered", "enabled")
COUNTS = ("calls", "time")  # where they are counted


@functools.cache
def kind_of(name: str) -> str:
    """Return in words the kind of hooks in tables of a name: ``forward hook`` for ``_forward_hooks``."""
    words = name.strip("_").replace("_", " ").removeprefix("optimizer ").partition(" of all")[0]
    return words.replace("pre hook", "pre-hook").replace("post hook", "post-hook").removesuffix("s")


class Row(Handle):
    """One hook, as it was when the table was made; a handle that takes it off, and switches it off for a while.

    It keeps neither the hook nor what that hangs on alive.

    Attributes
    ----------
    path : str
        Of the module in its model, of the parameter or buffer, of the node as ``MulBackward0 12``, with its number in
        the order of recording; ``all modules`` and ``all optimizers`` for hooks of these, the class of an optimizer.
    kind : str
        Such as ``forward hook``, ``tensor hook``, ``post-accumulate hook``, ``node prehook``.
    number : int
        Its place among the hooks of this kind there, in the order of firing.
    name : str
        The function's qualified name, with the file and line where it is defined.
    registered, file : str
        File and line of the call that registered it, and the file alone; ``unknown`` for what a copied or loaded module
        brought along.
    tags : tuple of str
        Of the groups and scopes in which it was registered.
    calls : int or None
        How often it was called in the block of `counting` that gave this row; None for rows of `table`.
    time : float or None
        Microseconds of the host that these calls took.
    """

    __slots__ = ("_caller", "_container", "_count", "_key", "_name", "_registration", "kind", "number", "path", "tags")

    def __init__(self, path: str, kind: str, number: int, hook: Any, container: Any, key: int) -> None:
        self.path = path
        self.kind = kind
        self.number = number
        self._name = hook_name(hook)
        self._count: Counted | None = None
        self._container = weakref.ref(container)
        self._key = key
        in_list = isinstance(container, HookList)
        registration: Any = container.registrations[number] if in_list else container.registrations.get(key)
        self._registration = None if registration is None else weakref.ref(registration)
        self._caller: Caller | None = None if registration is None else registration.caller
        self.tags: tuple[str, ...] = () if registration is None else registration.tags

    def remove(self) -> None:
        """Take the hook off; nothing happens if it is off already."""
        if self._registration is not None:
            registration = self.registration()
            if registration is not None:
                take_off(registration)
            return
        with changing:
            table = self._container()
            if table is not None and self._key in table:
                del table[self._key]

    def _place(self) -> tuple[Any, int] | None:
        """Return the container of the hook, and its key or index; None once it is off."""
        container = self._container()
        if container is None:
            return None
        if not isinstance(container, HookList):
            return (container, self._key) if self._key in container else None
        index = container.index_of(self.registration())
        return None if index is None else (container, index)

    def registration(self) -> Registration | None:
        """Return the record of the hook's registration; None once it is off, or without a record."""
        return None if self._registration is None else self._registration()

    @property
    def name(self) -> str:
        """The function's qualified name, with the file and line of its definition."""
        return self._name

    @property
    def registered(self) -> str:
        """File and line of the call that registered it, or ``unknown``."""
        return "unknown" if self._caller is None else str(self._caller)

    @property
    def file(self) -> str:
        """The file of the call that registered it, or ``unknown``."""
        return "unknown" if self._caller is None else self._caller.file

    def begin_counting(self) -> None:
        """Count the hook's calls from now on."""
        with changing:
            place = self._place()
            if place is not None:
                container, key = place
                container[key] = self._count = Counted(container[key])

    def end_counting(self) -> None:
        """Count no more; `calls` and `time` stay as they are."""
        with changing:
            place = self._place()
            if place is not None and self._count is not None:
                container, key = place
                container[key] = without(container[key], self._count)

    def _counted(self) -> Counted | None:
        return self._count or super()._counted()

    def __repr__(self) -> str:
        state = "" if self.enabled else ", off"
        return f"<{self.kind} {self.number} of {self.path or 'the model'}: {self.name}, from {self.registered}{state}>"


class Table(Sequence[Row]):
    """The hooks that `table` found: a sequence of rows; printed, a table.

    Its methods act on all rows; `filter` gives a smaller table.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)

    def __getitem__(self, index: int | slice[Any, Any, Any]) -> Any:
        return Table(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def filter(self, path: str = "**", kind: str = "*", name: str = "*", file: str = "*", tag: str = "*") -> Table:
        """Return the table of the rows that match all of these.

        Parameters
        ----------
        path : str
            A pattern of paths, as `points` reads it.
        kind, name : str
            Patterns as of file names, of the kind, and of the function's qualified name.
        file : str
            A pattern of the file whose call registered the hook.
        tag : str
            A pattern of the tag of a group or scope in which it was registered; but for ``"*"`` it leaves out what has
            none.
        """

        def fits(row: Row) -> bool:
            return (
                matches(row.path, path)
                and fnmatch.fnmatchcase(row.kind, kind)
                and fnmatch.fnmatchcase(row.name.partition(" (")[0], name)
                and fnmatch.fnmatchcase(row.file, file)
                and (tag == "*" or any(fnmatch.fnmatchcase(each, tag) for each in row.tags))
            )

        return Table([row for row in self._rows if fits(row)])

    def remove(self) -> None:
        """Take all these hooks off."""
        for row in self._rows:
            row.remove()

    def disable(self) -> None:
        """Let all these hooks rest: they stay in their places, and are not called."""
        for row in self._rows:
            row.enabled = False

    def enable(self) -> None:
        """Let all these hooks be called again."""
        for row in self._rows:
            row.enabled = True

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of plain values, for other programs."""
        counted = () if all(row.calls is None for row in self._rows) else COUNTS
        return [{column: getattr(row, column) for column in (*COLUMNS, *counted)} for row in self._rows]

    def __rich__(self) -> RichTable:
        """Return the table for rich."""
        dicts = self.to_dicts()
        columns = list(dicts[0]) if dicts else COLUMNS
        # of numbers microseconds alone are shown by thousands
        rows = [[v if v is None or isinstance(v, float) else str(v) for v in each.values()] for each in dicts]
        return rich_table(columns, rows, columns)

    def __str__(self) -> str:
        return printed(self)

    def __repr__(self) -> str:
        return f"<table of {len(self)} hooks>"


def _of_table(path: str, table: HookTable) -> Iterator[Row]:
    kind = kind_of(table.kind)
    for number, (key, hook) in enumerate(list(table.items())):
        yield Row(path, kind, number, hook, table, key)


def rows_of_node(path: str, node: Node, output: int | None = None) -> Iterator[Row]:
    """Give the rows of one output of a node, or of all, and of the node."""
    extra = node.extra
    if extra is None:
        return
    lists = [("tensor hook", hooks) for number, hooks in [*extra.tensor_hooks.items()] if output in {None, number}]
    lists += [
        ("node prehook", extra.prehooks),
        ("post-accumulate hook", extra.accumulated),
        ("node posthook", extra.posthooks),
    ]
    for kind, hooks in lists:
        for number, hook in enumerate(list(hooks) if hooks else ()):
            yield Row(path, kind, number, hook, hooks, -1)


def _of_owner(path: str, owner: Any) -> Iterator[Row]:
    """Give the rows of a module's or an optimizer's own tables."""
    state: dict[str, Any] = owner.__dict__
    for kind in sorted(KINDS & state.keys()):
        if not kind.endswith(MARKS):
            yield from _of_table(path, state[kind])


def _of_module(model: Module) -> Iterator[Row]:
    for path, module in model.named_modules():
        yield from _of_owner(path, module)
    for path, tensor in (*model.named_parameters(), *model.named_buffers()):
        edge = live_edge(tensor)
        if edge is not None:
            yield from rows_of_node(path, edge[0], edge[1])


def shared_tables() -> Iterator[tuple[str, HookTable]]:
    """Give the tables of the hooks of all modules and of all optimizers, each with the path of its rows."""
    for shared in vars(global_tables).values():
        if not shared.kind.endswith(MARKS):
            yield "all modules", shared
    for shared in (stepping.pre_hooks, stepping.post_hooks):
        yield "all optimizers", shared


def node_path(node: Node) -> str:
    """Return how a table calls a node of the graph."""
    leaf = node.variable if isinstance(node, AccumulateGrad) else None
    return f"{node.name()} {node.sequence}" if leaf is None else f"leaf of shape {tuple(leaf.array.shape)}"


def _of_graph(tensor: Any) -> Iterator[Row]:
    """Yield the rows of all nodes of a tensor's graph, in the order of a pass."""
    edge = live_edge(tensor)
    # in the order in which they are found
    waiting, seen = [] if edge is None else [edge[0]], dict[Node, None]()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen[node] = None
            waiting += [next_node for next_node, _ in node.next_functions if next_node is not None]
    for node in sorted(seen, key=lambda node: -node.sequence):
        yield from rows_of_node(node_path(node), node)


def table(*objects: Module | TensorBase | Optimizer) -> Table:
    """Return a table of every hook on some objects, and of those that hold for all modules and all optimizers.

    Parameters
    ----------
    *objects : Module, Tensor or Optimizer
        Of a module all modules in it are looked through, with their parameters and buffers; of a tensor the graph from
        which it was computed; of an optimizer its own hooks.

    Returns
    -------
    Table
        Rows in the order of the objects, those for all modules and optimizers last. Rows do not keep anything alive.

    Raises
    ------
    ArgumentError
        If an object is none of these.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks, nn
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> def twice(module, args, output):
    ...     return output * 2
    >>> _ = model[0].register_forward_hook(twice)
    >>> _ = model[0].weight.register_hook(lambda grad: None)
    >>> found = hooks.table(model)
    >>> [(row.path, row.kind) for row in found]
    [('0', 'forward hook'), ('0.weight', 'tensor hook')]
    >>> found.filter("0").disable()
    >>> model[0]._forward_hooks and found[0].enabled
    False
    >>> found.remove()
    >>> len(hooks.table(model))
    0
    """
    rows: list[Row] = []
    with changing:
        for each in objects:
            if isinstance(each, Module):
                rows += _of_module(each)
            elif isinstance(each, TensorBase):
                rows += _of_graph(each)
            elif isinstance(each, Optimizer):
                rows += _of_owner(type(each).__name__, each)
            else:
                raise unfit(each, "a Module, a Tensor or an Optimizer", "objects")
        for path, shared in shared_tables():
            rows += _of_table(path, shared)
    return Table(rows)


class counting:
    """A block that counts the calls of hooks; its value, after ``as``, is their table, with calls and times.

    Parameters
    ----------
    *objects : Module, Tensor or Optimizer
        As for `table`: the hooks on them as the block begins. What is registered later is not counted.

    Raises
    ------
    ArgumentError
        If an object is none of these.

    Notes
    -----
    A hook that is counted has another in its place, which calls it: none costs anything outside of such blocks.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks, nn
    >>> model = nn.Linear(2, 2)
    >>> handle = model.register_forward_hook(lambda module, args, output: None)
    >>> with hooks.counting(model) as found:
    ...     for _ in range(3):
    ...         _ = model(lucid.ones(1, 2))
    ...     handle.calls
    3
    >>> found[0].calls, handle.calls
    (3, None)
    """

    def __init__(self, *objects: Module | TensorBase | Optimizer) -> None:
        self._objects = objects
        self._tables: list[Table] = []

    def __enter__(self) -> Table:
        rows = table(*self._objects)
        self._tables.append(rows)
        for row in rows:
            row.begin_counting()
        return rows

    def __exit__(self, *exception: object) -> None:
        for row in self._tables.pop():
            row.end_counting()
