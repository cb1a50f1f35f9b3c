"""When each module ran, forward and backward, and what its forward keeps for backward."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.autograd.recording.attach import node_creation_hook
from lucid.cuda.streams import Event
from lucid.hooks.points import points
from lucid.hooks.printing import printed
from lucid.hooks.scoping import scope

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from rich.table import Table as RichTable

    from lucid.autograd.engine.node import Node
    from lucid.nn.module.module import Module

MICRO = 1e-3  # microseconds of a nanosecond
COLUMNS = ("path", "kind", "calls", "forward", "own", "device", "backward", "kept")


class Span(NamedTuple):
    """One call of a module, or the backward of one op that it recorded.

    Attributes
    ----------
    path : str
        Of the module; of an op that was recorded outside of all traced ones ``"outside"``.
    name : str
        The module's class, or the node's name.
    phase : {"forward", "backward"}
        Which of them.
    begin, end : float
        Microseconds of the host's clock since the trace began.
    depth : int
        How many traced calls it lay in.
    device : float or None
        Microseconds between two marks in the device's stream around a call; None on the CPU, and of backward.
    """

    path: str
    name: str
    phase: str
    begin: float
    end: float
    depth: int
    device: float | None


class Region:
    """What is summed up of one module."""

    __slots__ = ("backward", "calls", "device", "forward", "kept", "kind", "own", "path")

    def __init__(self, path: str, kind: str) -> None:
        self.path = path
        self.kind = kind
        self.calls = self.kept = 0
        self.forward = self.own = self.backward = 0.0
        self.device: float | None = None


class Call:
    """A call of a module that has not ended."""

    __slots__ = ("begin", "inner", "mark", "module", "path")

    def __init__(self, path: str, module: Module, mark: Any) -> None:
        self.path = path
        self.module = module
        self.mark = mark
        self.inner = 0
        self.begin = perf_counter_ns()


class Ran:
    """The hooks of one node, which take the time of its backward."""

    __slots__ = ("begin", "name", "path", "trace")

    def __init__(self, trace: trace, path: str, name: str) -> None:
        self.trace = trace
        self.path = path
        self.name = name
        self.begin = 0

    def before(self, _grads: Any) -> None:
        """Take the time."""
        self.begin = perf_counter_ns()

    def after(self, _grad_inputs: Any, _grad_outputs: Any) -> None:
        """Note what has passed since."""
        self.trace.add(self.path, self.name, "backward", self.begin, perf_counter_ns(), 0, None)


class trace(scope):
    """A block that notes when each module of a model ran, forward and backward, and what its forward keeps.

    Parameters
    ----------
    model : Module
        What is watched.
    pattern : str or iterable of str
        Which of its modules, as `points` reads it; by default all.
    backward : bool
        Whether the ops that are recorded inside of each module are timed in backward, and the bytes counted that they
        keep for it; the default. Each op then takes the longer way of recording, and hooks of its node.

    Attributes
    ----------
    spans : list of Span
        In the order in which they ended.
    regions : dict of str to Region
        Sums by path, in microseconds and bytes: ``calls``; ``forward``, and ``own``, less what inner modules took;
        ``device``, or None on the CPU; ``backward``; ``kept``, of arrays that backward needs, each counted once and
        parameters and buffers left out.

    Raises
    ------
    SettingError
        If a pattern matches no module.

    Notes
    -----
    Times are those of the host's clock: on a CUDA device a call ends when its work is queued. What the device took
    comes from marks in its stream, which are read once, at the end of the block. In a captured step only the capture
    is seen. It belongs to the thread that enters it.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks, nn
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    >>> with hooks.trace(model) as seen:
    ...     model(lucid.ones(2, 4)).sum().backward()
    >>> [(region.path, region.calls, region.kept) for region in seen.regions.values()]
    [('0', 1, 32), ('1', 1, 64), ('2', 1, 0), ('', 1, 0), ('outside', 0, 0)]
    """

    def __init__(self, model: Module, pattern: str | Iterable[str] = "**", *, backward: bool = True) -> None:
        super().__init__()
        self._modules = points(model, pattern)
        self._own = {id(tensor.array) for tensor in (*model.parameters(), *model.buffers())}
        self._on_device = any(tensor.is_cuda for tensor in model.parameters())
        self._calls: list[Call] = []
        self._kept: set[int] = set()
        self._marks: list[tuple[int, Any, Any]] = []
        self._creation = node_creation_hook(self._created) if backward else None
        self._began = 0
        self.spans: list[Span] = []
        self.regions: dict[str, Region] = {}

    def _begin(self) -> None:
        self._began = perf_counter_ns()
        if self._creation is not None:
            self._creation.__enter__()
        for path, module in self._modules.items():
            module.register_forward_pre_hook(self._entering(path), prepend=True)
            module.register_forward_hook(self._leaving(path))

    def __exit__(self, *exception: object) -> bool | None:
        if self._creation is not None:
            self._creation.__exit__(None, None, None)
        ended = super().__exit__(*exception)
        self._calls.clear()
        self._kept.clear()
        if self._marks:
            for place, begin, end in self._marks:
                end.synchronize()  # they may lie in several streams
                took = begin.elapsed_time(end) * 1e3
                self.spans[place] = span = self.spans[place]._replace(device=took)
                region = self.regions[span.path]
                region.device = took + (region.device or 0.0)
            self._marks.clear()
        return ended

    def _mark(self) -> Any:
        if not self._on_device:
            return None
        event = Event(enable_timing=True)
        event.record()
        return event

    def _entering(self, path: str) -> Any:
        def enter(module: Module, _args: Any) -> None:
            if not self._calls:
                self._kept.clear()  # arrays of an earlier call may be gone, and others in their places
            self._calls.append(Call(path, module, self._mark()))

        return enter

    def _leaving(self, path: str) -> Any:
        def leave(module: Module, _args: Any, _output: Any) -> None:
            end = perf_counter_ns()
            while self._calls:  # those above it have raised
                call = self._calls.pop()
                if call.path == path and call.module is module:
                    break
            else:
                return
            took = end - call.begin
            if self._calls:
                self._calls[-1].inner += took
            region = self.region(path, type(module).__name__)
            region.calls += 1
            region.own += (took - call.inner) * MICRO
            if call.mark is not None:
                self._marks.append((len(self.spans), call.mark, self._mark()))
            self.add(path, region.kind, "forward", call.begin, end, len(self._calls), None)

        return leave

    def _created(self, node: Node) -> None:
        path = self._calls[-1].path if self._calls else "outside"
        region = self.region(path, type(self._calls[-1].module).__name__ if self._calls else "")
        for array in node.kept[1] or ():
            # a view keeps the whole of what it is a view of, which others may keep, too
            base = getattr(array, "base", None)
            whole = array if base is None or not hasattr(base, "nbytes") else base
            if hasattr(whole, "nbytes") and id(whole) not in self._kept and not self._own & {id(array), id(whole)}:
                self._kept.add(id(whole))
                region.kept += whole.nbytes
        ran = Ran(self, path, node.name())
        node.register_prehook(ran.before)
        node.register_hook(ran.after)

    def region(self, path: str, kind: str) -> Region:
        """Return the sums of a path, made when it comes up first."""
        found = self.regions.get(path)
        if found is None:
            found = self.regions[path] = Region(path, kind)
        return found

    def add(self, path: str, name: str, phase: str, begin: int, end: int, depth: int, device: float | None) -> None:
        """Note a span, and add it to the sums of its path."""
        begun, ended = (begin - self._began) * MICRO, (end - self._began) * MICRO
        self.spans.append(Span(path, name, phase, begun, ended, depth, device))
        region = self.regions[path]
        if phase == "forward":
            region.forward += ended - begun
        else:
            region.backward += ended - begun

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the spans to a file of Chrome's trace format, JSON that chrome://tracing and Perfetto show."""
        events = [
            {
                "name": f"{span.path} {span.name}".strip(),
                "cat": span.phase,
                "ph": "X",
                "ts": round(span.begin, 3),
                "dur": round(span.end - span.begin, 3),
                "pid": 0,
                "tid": span.phase,
                "args": {} if span.device is None else {"device": round(span.device, 3)},
            }
            for span in self.spans
        ]
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")

    def __rich__(self) -> RichTable:
        """Return what rich prints: a row for each path, times in microseconds, those of most time first."""
        from rich.table import Table as Rich  # noqa: PLC0415  # only who prints a table needs it

        made = Rich()
        for column in COLUMNS:
            made.add_column(column, justify="left" if column in {"path", "kind"} else "right")
        for region in sorted(self.regions.values(), key=lambda region: -(region.own + region.backward)):
            values = [getattr(region, column) for column in COLUMNS]
            made.add_row(*["" if v is None else f"{v:,.0f}" if isinstance(v, float | int) else v for v in values])
        return made

    def __str__(self) -> str:
        return printed(self)
