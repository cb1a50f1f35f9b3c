"""The namespaces that derivative rules are written against: raw forms on each device, and the recording ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import is_numpy

if TYPE_CHECKING:
    from lucid.autograd.recording.primitive import Primitive

PRIMITIVES: dict[str, Primitive] = {}


class Namespace:
    """The primitives by name, in one form: the `m` of derivative rules.

    A rule calls ``m.mul(grad, b)`` and runs on raw arrays or on tensors, as the pass wants it.
    """

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no primitive is named {name!r}", name=name, obj=self)


class LaterNamespace(Namespace):
    """A form that primitives have as an attribute, looked up when a rule asks: until then CuPy is not imported."""

    def __init__(self, form: str) -> None:
        self._form = form

    def __getattr__(self, name: str) -> Any:
        if name not in PRIMITIVES:
            raise AttributeError(f"no primitive is named {name!r}", name=name, obj=self)
        function = getattr(PRIMITIVES[name], self._form)
        setattr(self, name, function)
        return function

    # for "Did you mean" at the end of a traceback
    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *PRIMITIVES]


CPU: Any = Namespace()
CUDA: Any = LaterNamespace("gpu")
HALVES: Any = LaterNamespace("of_halves")
"""The raw forms on NumPy's arrays of half types."""
GRAPH: Any = Namespace()


def namespace_of(grad: Any) -> Namespace:
    """Return the namespace for rules of a raw gradient."""
    return CPU if is_numpy(grad) else CUDA
