"""Layers that declare and show their settings, and parameters with their first values."""

from __future__ import annotations

import inspect
import linecache
import math
import sys
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

import numpy as np

from lucid.autograd.base import wrap
from lucid.base.arrays import to_device
from lucid.base.device import Device, as_device, get_default_device
from lucid.base.dtype import as_dtype, get_default_dtype
from lucid.nn import init
from lucid.nn.module.module import Module
from lucid.nn.parameter import Parameter
from lucid.ops.creation.filling import shape_of
from lucid.settings.checks import ranged

if TYPE_CHECKING:
    from types import FunctionType

    from lucid.base.dtype import dtype as Dtype

K = TypeVar("K")


class Layer(Module):
    """The base of layers that show settings: the attributes named in `_shown`."""

    _shown: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        values = [getattr(self, name) for name in self._shown]
        # NumPy's numbers as Python's: their repr names the type
        shown = [repr(value) if isinstance(value, str) else str(value) for value in values]
        return ", ".join(f"{name}={value}" for name, value in zip(self._shown, shown, strict=True))


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


def per_axis(size: int | Sequence[int], axes: int = 1) -> tuple[int, ...]:
    """Return one number for each axis; a single one is repeated for all."""
    sizes = tuple(size) if isinstance(size, Iterable) else (size,)
    return sizes * axes if len(sizes) == 1 else sizes


def draw_uniform(weight: Parameter, bias: Parameter | None) -> None:
    """Draw parameters from [-k, k), k = 1 / sqrt(n) with the number n of inputs that an output sums."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = init.fans(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


def draw_within(module: Module, features: int) -> None:
    """Draw the parameters anew, uniform in [-k, k), k = 1 / sqrt(features)."""
    bound = 1 / math.sqrt(features)
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


def empty_tensor(shape: tuple[int, ...], device: Device = None, dtype: Dtype | None = None, fill: float = 0.0) -> Any:
    """Return a tensor of one value, of the default dtype and on the default device unless they are given."""
    wanted = get_default_dtype() if dtype is None else as_dtype(dtype)
    target = get_default_device() if device is None else as_device(device)
    return wrap(to_device(np.full(shape_of((shape,), "parameter or buffer", wanted.numpy), fill, wanted.numpy), target))


def empty_parameter(
    shape: tuple[int, ...], device: Device = None, dtype: Dtype | None = None, fill: float = 0.0
) -> Parameter:
    """Return a parameter of one value, of the default dtype and on the default device unless they are given."""
    return Parameter(empty_tensor(shape, device, dtype, fill))
