"""Layers that declare their settings: the constructor follows from the annotations of the class."""

from __future__ import annotations

import inspect
import linecache
import sys
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from types import FunctionType

K = TypeVar("K")


@dataclass_transform(eq_default=False)
def declared(kind: type[K]) -> type[K]:
    """Return a class of layers with the constructor that its annotations declare, in the form of a dataclass.

    Each annotated name is a parameter, in the order of the class, with its value there as the default. Parameters of
    the base's constructor are passed to it, all others are stored under their names, and are the settings that `repr`
    shows unless `_shown` names others. ``InitVar[...]`` marks a parameter that is no attribute. Arguments are checked
    as by `ranged`; `__post_init__` of the class, if it has one, is called last, with the parameters so marked.

    A base is not declared itself: type checkers would put its parameters first.
    """
    space = dict(vars(kind))
    notes: dict[str, str] = {
        name: note for name, note in space["__annotations__"].items() if not note.startswith("ClassVar")
    }
    init_only = {name: note[len("InitVar[") : -1] for name, note in notes.items() if note.startswith("InitVar[")}
    base = inspect.unwrap(super(kind, kind).__init__).__code__
    taken: tuple[str, ...] = base.co_varnames[1 : base.co_argcount + base.co_kwonlyargcount]
    # those in front by place, which is quicker than by name
    leading = list(takewhile(lambda name: name in notes, taken[: base.co_argcount - 1]))
    passed = [*leading, *(f"{name}={name}" for name in notes if name in taken and name not in leading)]
    stored = tuple(name for name in notes if name not in taken and name not in init_only)
    lines = [
        f"def __init__(self, {', '.join(notes)}):",
        f"    super().__init__({', '.join(passed)})",
        *(f"    self.{name} = {name}" for name in stored),
        f"    __class__.__post_init__({', '.join(['self', *init_only])})" if "__post_init__" in space else "",
    ]
    # as it would be written by hand: calls, errors, signatures and tracebacks are those of any constructor
    module = vars(sys.modules[kind.__module__])
    source, file = "\n    ".join([f"class {kind.__name__}:", *lines]), f"{module['__file__']}: {kind.__qualname__}"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    made: dict[str, type[object]] = {}
    exec(compile(source, file, "exec"), module, made)  # noqa: S102 - names of the class
    init: FunctionType = vars(made[kind.__name__])["__init__"]
    # what `super` means, whatever the name of the class stands for later
    for of_class in init.__closure__ or ():
        of_class.cell_contents = kind
    init.__qualname__ = f"{kind.__qualname__}.__init__"
    init.__code__ = init.__code__.replace(co_qualname=init.__qualname__)
    init.__annotations__ = {**notes, **init_only, "return": "None"}
    init.__defaults__ = tuple(space[name] for name in notes if name in space) or None
    for name in notes.keys() & space.keys():
        delattr(kind, name)
    layer: Any = kind
    if getattr(kind, "_shown", None) == ():
        layer._shown = stored  # noqa: SLF001 - an attribute of `Layer`
    layer.__init__ = ranged(init)
    return kind
