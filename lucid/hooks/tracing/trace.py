"""Times of each module, forward and backward, and the memory that its forward keeps for backward."""

from __future__ import annotations

import json
import weakref
from bisect import bisect_right
from math import hypot
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.autograd.engine.node import AccumulateGrad, Node, sequences
from lucid.autograd.engine.passes import sequence_of
from lucid.autograd.hooks.functions import Call, FunctionHook
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.modes.state import no_grad
from lucid.autograd.profiler import begin_range, end_range
from lucid.autograd.recording.views import recorded_since
from lucid.errors import SettingError
from lucid.hooks.functions.memory import bytes_made
from lucid.hooks.functions.timer import device_mark
from lucid.hooks.listing import table
from lucid.hooks.points import called
from lucid.hooks.printing import printed, rich_table
from lucid.hooks.tracing.page import page
from lucid.hooks.watching import watching
from lucid.ops.decomposition.matrix_norms import vector_norm

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from rich.table import Table as RichTable

    from lucid.nn.module.module import Module

MICRO = 1e-3  # microseconds of a nanosecond
OUTSIDE = "outside"
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


class ModuleCall:
    """A call of a module that has not ended."""

    __slots__ = ("begin", "inner", "mark", "number", "path")

    def __init__(self, path: str, number: int, mark: Any) -> None:
        self.path = path
        self.number = number  # which nodes that it records are above
        self.mark = mark
        self.inner = 0
        self.begin = perf_counter_ns()


class Ops(FunctionHook):
    """Tells a trace of each op, or only of those that backward runs."""

    def __init__(self, owner: trace, phases: tuple[str, ...]) -> None:
        super().__init__()
        self.phases = phases
        self._owner = owner

    def before(self, call: Call) -> None:
        """Take the time."""
        mark = self._owner.mark() if "forward" in self.phases else None
        call.data[self] = perf_counter_ns(), mark

    def after(self, call: Call, output: Any) -> None:
        """Note the time since `before`."""
        end = perf_counter_ns()
        begin, mark = call.data.pop(self)
        owner = self._owner
        if call.node is None:
            owner.op(call, output, begin, end, mark)
        elif not isinstance(call.node, AccumulateGrad):
            owner.op_of_backward(call.node, call.name, begin, end, mark)


class trace(watching):
    """A block that notes the times of each module of a model, forward and backward, and the memory kept by its forward.

    Parameters
    ----------
    model : Module
        What is watched.
    pattern : str or iterable of str
        Which of its modules, as `points` reads it; by default all.
    backward : bool
        Whether the backward of what is recorded inside of each module is timed; the default.
    ops : bool
        Whether each op has a span of its own, with its time on the device, and the bytes are counted that it makes.
    nvtx : bool
        Whether each call of a module is a range of its path for NVIDIA's profilers.

    Attributes
    ----------
    spans : list of Span
        In the order in which they ended.
    regions : dict of str to Region
        Sums by path, which `print` shows as a table.

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

    def __init__(
        self,
        model: Module,
        pattern: str | Iterable[str] = "**",
        *,
        backward: bool = True,
        ops: bool = False,
        nvtx: bool = False,
    ) -> None:
        modules = called(model, pattern)
        super().__init__(modules)
        self._model = weakref.ref(model)
        self._kinds = {path: type(module).__name__ for path, module in modules.items()}
        self._title = f"Trace of {type(model).__name__}"
        tensors = [*model.parameters(), *model.buffers()]
        self._own = {id(tensor.array) for tensor in tensors}
        self._on_device = any(tensor.is_cuda for tensor in tensors)
        phases = (("forward",) if ops else ()) + (("backward",) if backward else ())
        self._ops = Ops(self, phases) if phases else None
        self._nvtx = nvtx
        self._marks: list[tuple[int, Any, Any, bool]] = []
        # at which numbers of nodes which module began, or went on after one inside
        self._numbers: list[int] = []
        self._paths: list[str] = []
        self._began = 0
        self.spans: list[Span] = []
        self.regions: dict[str, Region] = {}

    def _begin(self) -> None:
        self._began = perf_counter_ns()
        super()._begin()

    def __exit__(self, *exception: object) -> bool | None:
        super().__exit__(*exception)
        for place, begin, end, summed in self._marks:
            end.synchronize()  # they may lie in several streams
            took = begin.elapsed_time(end) * 1e3
            self.spans[place] = span = self.spans[place]._replace(device=took)
            if span.phase == "forward" and summed:
                region = self.regions[span.path]
                region.device = took + (region.device or 0.0)
        self._marks.clear()
        self._take_norms()

    def _take_norms(self) -> None:
        """Take the norms of the gradients that are there, of all in one look."""
        grads: list[Any] = []
        regions: list[Region] = []
        for path, region in self.regions.items():
            module = self._modules.get(path)
            for parameter in () if module is None else module.parameters(recurse=False):
                if parameter.grad is not None:
                    grads.append(parameter.grad)
                    regions.append(region)
        with no_grad():
            norms = [vector_norm(grad) for grad in grads]
        for region, norm in zip(regions, norms, strict=True):
            region.grad = hypot(region.grad or 0.0, norm.item())

    def mark(self) -> Any:
        """Return a mark in the device's stream; None on the CPU."""
        return device_mark() if self._on_device else None

    def _call_begins(self, path: str, module: Module) -> ModuleCall:
        if self._nvtx:
            begin_range(path or self._kinds[path])
        self._note(path)
        return ModuleCall(path, self._numbers[-1], self.mark())

    def _call_returns(self, call: ModuleCall, output: Any) -> None:
        end, depth = perf_counter_ns(), len(self._calls) - 1
        took = end - call.begin
        if depth:
            self._calls[-2][1].inner += took
        path = call.path
        region = self._region(path)
        region.calls += 1
        region.own += (took - call.inner) * MICRO
        # of a module that calls itself the outer call has the time of the inner ones
        summed = not depth or not self._is_inside_itself()
        if summed:
            region.forward += took * MICRO
        self.add(path, self._kinds[path], "forward", call.begin, end, depth, call.mark, summed=summed)
        if not depth:
            self._count_kept(call, output)

    def _call_ends(self, call: ModuleCall) -> None:
        if self._nvtx:
            end_range()
        around = self._innermost()
        self._note(OUTSIDE if around is None else around.path)

    def _note(self, path: str) -> None:
        """Note that nodes from now on belong to a path."""
        self._numbers.append(next(sequences))
        self._paths.append(path)

    def path_of(self, node: Node) -> str:
        """Return the path of the module that recorded a node."""
        place = bisect_right(self._numbers, node.sequence) - 1
        return self._paths[place] if place >= 0 else OUTSIDE

    def _count_kept(self, call: ModuleCall, output: Any) -> None:
        """Add up the memory kept by the nodes that a call has recorded in its output's graph."""
        if self._ops is None or "backward" not in self._ops.phases:
            return
        leaves: list[Any] = []
        map_leaves(output, leaves.append)
        counted: set[int] = set()
        for node in sorted(recorded_since(leaves, call.number), key=sequence_of):
            region = self._region(self.path_of(node))
            for array in node.kept[1] or ():
                # a view keeps the whole of what it is a view of, which others may keep, too
                base = getattr(array, "base", None)
                whole = array if base is None or not hasattr(base, "nbytes") else base
                if hasattr(whole, "nbytes") and id(whole) not in counted and not self._own & {id(array), id(whole)}:
                    counted.add(id(whole))
                    region.kept += whole.nbytes

    def _region(self, path: str) -> Region:
        """Return the sums of a path, made when it comes up first."""
        region = self.regions.get(path)
        if region is None:
            region = self.regions[path] = Region(path, self._kinds.get(path, ""))
        return region

    def op(self, call: Call, output: Any, begin: int, end: int, mark: Any) -> None:
        """Note an op, and the bytes that it has made."""
        around = self._innermost()
        path = OUTSIDE if around is None else around.path
        region = self._region(path)
        region.made = (region.made or 0) + bytes_made(call, output)
        self.add(path, call.name, "op", begin, end, len(self._calls), mark)

    def op_of_backward(self, node: Node, name: str, begin: int, end: int, mark: Any) -> None:
        """Note the backward of an op."""
        path = self.path_of(node)
        self._region(path).backward += (end - begin) * MICRO
        self.add(path, name, "backward", begin, end, 0, mark)

    def add(
        self, path: str, name: str, phase: str, begin: int, end: int, depth: int, mark: Any, *, summed: bool = True
    ) -> None:
        """Note a span; `summed` says whether its time on the device counts among the sums of its path."""
        if mark is not None:
            self._marks.append((len(self.spans), mark, self.mark(), summed))
        began = self._began
        self.spans.append(Span(path, name, phase, (begin - began) * MICRO, (end - began) * MICRO, depth, None))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file, in the format of the ending.

        Parameters
        ----------
        path : path
            ``.json`` for Chrome's trace format, which chrome://tracing and Perfetto show; ``.html`` for a page of its
            own with the timeline, the modules and the hooks that are on the model.

        Raises
        ------
        SettingError
            If the name has another ending.
        """
        file = Path(path)
        if file.suffix == ".json":
            text = json.dumps(chrome_events(self.spans))
        elif file.suffix == ".html":
            model = self._model()
            rows = [self.regions[path] for path in (*self._kinds, OUTSIDE) if path in self.regions]
            text = page(self._title, self.spans, rows, table() if model is None else table(model))
        else:
            raise SettingError(f"trace.save: expected a file name that ends in .json or .html, got {file.name!r}")
        file.write_text(text, encoding="utf-8")

    def __rich__(self) -> RichTable:
        """Return the table for rich: a row for each path, times in microseconds, those of most time first."""
        return table_of(self.regions.values())

    def __str__(self) -> str:
        return printed(self)


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
