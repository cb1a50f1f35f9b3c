"""Records of a trace: spans of time, and the sums of each module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.hooks.printing import rich_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table as RichTable

COLUMNS = ("path", "kind", "calls", "forward", "own", "device", "backward", "kept", "made", "grad")


class Span(NamedTuple):
    """One call of a module, one op, or the backward of one op.

    Attributes
    ----------
    path : str
        Of the module; of an op that of the module in which it ran, or was recorded, and ``"outside"`` where that is
        none of the traced ones.
    name : str
        The module's class, the op's or the node's name.
    phase : {"forward", "op", "backward"}
        Which of the three.
    begin, end : float
        Microseconds of the host's clock since the trace began.
    depth : int
        How many traced calls it lay in.
    device : float or None
        Microseconds between two marks in the device's stream around it; None on the CPU.
    """

    path: str
    name: str
    phase: str
    begin: float
    end: float
    depth: int
    device: float | None


class Region:
    """Sums of one module.

    Attributes
    ----------
    path, kind : str
        Its path and its class; ``"outside"`` for what was recorded in none of the traced ones.
    calls : int
        How often it was called.
    forward, own : float
        Microseconds of its calls, and those less what traced modules inside took.
    device : float or None
        Microseconds of its calls on the device; None on the CPU.
    backward : float
        Microseconds of the backward of what was recorded in it, and in no traced module inside.
    kept : int
        Bytes of the arrays that backward needs of it, each counted once, parameters and buffers left out.
    made : int or None
        Bytes of new arrays of its ops; None where ops are not traced.
    grad : float or None
        The norm of the gradients of its own parameters at the end of the block; None where it has none.
    """

    __slots__ = COLUMNS

    def __init__(self, path: str, kind: str) -> None:
        self.path = path
        self.kind = kind
        self.calls = self.kept = 0
        self.forward = self.own = self.backward = 0.0
        self.device: float | None = None
        self.made: int | None = None
        self.grad: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all of it by name, for other programs."""
        return {column: getattr(self, column) for column in COLUMNS}


def table_of(regions: Iterable[Region]) -> RichTable:
    """Return the table for rich: a row for each path, those of most time first."""
    rows: list[Iterable[Any]] = []
    for region in sorted(regions, key=lambda region: -(region.own + region.backward)):
        grad = None if region.grad is None else f"{region.grad:.3g}"
        rows.append({**region.to_dict(), "grad": grad}.values())
    return rich_table(COLUMNS, rows, {"path", "kind"})


def chrome_events(spans: Iterable[Span]) -> dict[str, Any]:
    """Return the spans in Chrome's trace format, for chrome://tracing and Perfetto."""
    events = [
        {
            "name": f"{span.path} {span.name}".strip(),
            "cat": span.phase,
            "ph": "X",
            "ts": round(span.begin, 3),
            "dur": round(span.end - span.begin, 3),
            "pid": 0,
            "tid": "backward" if span.phase == "backward" else "forward",
            "args": {} if span.device is None else {"device": round(span.device, 3)},
        }
        for span in spans
    ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}
