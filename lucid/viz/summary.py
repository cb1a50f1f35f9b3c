"""Table of a model's modules and the costs of its forward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.modes.state import no_grad
from lucid.hooks.functions import FlopHook
from lucid.hooks.points import points
from lucid.hooks.printing import cells, printed
from lucid.hooks.watching import watching

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from lucid.nn.module.module import Module


class Line(NamedTuple):
    """One module.

    Attributes
    ----------
    path, kind : str
        Its path in the model, and its class.
    calls : int
        How often its forward ran.
    outputs : list of tuple of int
        Shapes of the tensors that its last call returned.
    parameters, trained : int
        How many numbers its parameters hold, those of inner modules included and shared ones once, and how many of them
        require grad.
    flops : int
        Of products in its calls, as `hooks.FlopHook` counts them, those of inner modules included.
    bytes : int
        Of the arrays that its calls returned.
    """

    path: str
    kind: str
    calls: int
    outputs: list[tuple[int, ...]]
    parameters: int
    trained: int
    flops: int
    bytes: int


class Summary(Sequence[Line]):
    """Result of `summary`: a line for each module, the model itself first; printed, a table."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = tuple(lines)

    def __getitem__(self, index: int | slice[Any, Any, Any]) -> Any:
        return self._lines[index]

    def __len__(self) -> int:
        return len(self._lines)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the lines as dictionaries of plain values, for other programs."""
        return [line._asdict() for line in self._lines]

    def __rich__(self) -> RichTable:
        """Return the table for rich: modules stand further in the deeper they are."""
        from rich.table import Table as Rich  # noqa: PLC0415  # only who prints a table needs it

        made = Rich("module", "outputs", caption=self._caption())
        for column in ("parameters", "flops", "bytes"):
            made.add_column(column, justify="right")
        for line in self._lines:
            depth, _, name = line.path.rpartition(".")
            name = "  " * (bool(line.path) + bool(depth) + depth.count(".")) + (name or line.path)
            title = f"{name}: {line.kind}" if line.path else line.kind
            if line.calls != 1:
                title += f" ({line.calls} calls)"
            numbers = [f"{value:,}" if value else "" for value in (line.parameters, line.flops, line.bytes)]
            made.add_row(*cells(title, " ".join(map(str, line.outputs)), *numbers))
        return made

    def _caption(self) -> str:
        whole = self._lines[0]
        return f"{whole.parameters:,} parameters, {whole.trained:,} trained; {whole.flops:,} operations in products"

    def __str__(self) -> str:
        return printed(self)

    def __repr__(self) -> str:
        return f"<summary of {len(self)} modules>"


class _Watch(watching):
    """Counts calls, operations and outputs of all modules of a model."""

    def __init__(self, modules: dict[str, Module], counted: FlopHook) -> None:
        super().__init__(modules)
        self._counted = counted
        self.calls = dict.fromkeys(modules, 0)
        self.flops = dict.fromkeys(modules, 0)
        self.bytes = dict.fromkeys(modules, 0)
        self.outputs: dict[str, list[tuple[int, ...]]] = {path: [] for path in modules}

    def _call_begins(self, path: str, module: Module) -> tuple[str, int]:
        return path, self._counted.total

    def _call_returns(self, call: tuple[str, int], output: Any) -> None:
        path, before = call
        self.calls[path] += 1
        if not self._is_inside_itself():  # which has counted it as part of the outer call
            self.flops[path] += self._counted.total - before
        self.outputs[path] = []
        map_leaves(output, lambda leaf: self._returned(path, leaf))

    def _returned(self, path: str, leaf: Any) -> None:
        if isinstance(leaf, TensorBase):
            self.outputs[path].append(tuple(leaf.array.shape))
            self.bytes[path] += leaf.array.nbytes


def summary(model: Module, *args: Any, **kwargs: Any) -> Summary:
    """Return a table of a model's modules: shapes of outputs, parameters, operations and bytes of one forward.

    Parameters
    ----------
    model : Module
        What is called once, in evaluation mode and without recording; it is as before afterwards, also after an error.
    *args, **kwargs
        What it is called with, on its device.

    Returns
    -------
    Summary
        A line for each module in the order of `named_modules`.

    Raises
    ------
    ArgumentError
        If `model` is no module. What its forward raises comes out as it is.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn, viz
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    >>> found = viz.summary(model, lucid.zeros(2, 4))
    >>> [(line.path, line.outputs, line.parameters, line.flops) for line in found]
    [('', [(2, 1)], 49, 160), ('0', [(2, 8)], 40, 128), ('1', [(2, 8)], 0, 0), ('2', [(2, 1)], 9, 32)]
    """
    modules = points(model)
    counted = FlopHook()
    watch = _Watch(modules, counted)
    training = {module: module.training for module in modules.values()}
    try:
        model.eval()
        with no_grad(), counted, watch:
            model(*args, **kwargs)
    finally:
        for module, was in training.items():
            module.training = was
    return Summary(
        [
            Line(
                path,
                type(module).__name__,
                watch.calls[path],
                watch.outputs[path],
                sum(tensor.numel() for tensor in module.parameters()),
                sum(tensor.numel() for tensor in module.parameters() if tensor.requires_grad),
                watch.flops[path],
                watch.bytes[path],
            )
            for path, module in modules.items()
        ]
    )
