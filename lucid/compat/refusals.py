"""PyTorch's names that only refuse, with a remedy: `lucid.fx` and `lucid.onnx`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.errors import LucidError
from lucid.nn.module.module import Module

if TYPE_CHECKING:
    from typing import NoReturn

_INSTEAD = (
    "lucid traces no Python: hooks of modules see what goes through them, lucid.autograd.graph the graph of a result, "
    "and lucid.cuda.graphed_step captures a training step"
)


class GraphModule(Module):
    """A module made of traced operations; there are none, and making one is refused by a LucidError."""

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        raise LucidError(f"GraphModule: {_INSTEAD}")


class _Refused:
    """Results and means of tracing; making one is refused by a LucidError."""

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        raise LucidError(f"{type(self).__name__}: {_INSTEAD}")


class Graph(_Refused):
    """The operations of a traced module."""


class Node(_Refused):
    """One operation of a traced module."""


class Tracer(_Refused):
    """Tracer of modules."""


def symbolic_trace(*_args: object, **_kwargs: object) -> NoReturn:
    """Refuse to trace a module by a LucidError with the remedy."""
    raise LucidError(f"symbolic_trace: {_INSTEAD}")


def export(*_args: object, **_kwargs: object) -> NoReturn:
    """Refuse to write a model as ONNX by a LucidError with the remedy."""
    raise LucidError(
        "onnx.export: lucid writes no ONNX files: save the state_dict() by lucid.save, whose files safetensors reads, "
        "and export from a PyTorch model that has loaded it"
    )
