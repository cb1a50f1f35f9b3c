"""The graph of a backward pass as a picture, in the language of graphviz."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase
from lucid.autograd.engine.node import AccumulateGrad
from lucid.autograd.recording.views import live_edge
from lucid.errors import LucidError, SettingError
from lucid.hooks.listing import rows_of_node
from lucid.nn.module.module import Module

if TYPE_CHECKING:
    import os

    from lucid.autograd.engine.node import Node

LARGEST = 2000


class DotMissingError(LucidError, RuntimeError):
    """A picture was asked for, but graphviz's ``dot`` is not installed, or fails."""


class Graph:
    """A picture of a graph.

    Attributes
    ----------
    dot : str
        Its text in the language DOT, which graphviz draws, as do many editors and web pages.
    """

    def __init__(self, dot: str) -> None:
        self.dot = dot

    def __str__(self) -> str:
        return self.dot

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, in the format of the ending: ``.dot`` as text, ``.svg``, ``.png``, ``.pdf``.

        Raises
        ------
        DotMissingError
            If graphviz's ``dot``, which draws all but the text, is not there or fails.
        SettingError
            If the name has no ending.
        """
        file = Path(path)
        if not file.suffix:
            raise SettingError(f"Graph.save: expected a file name with an ending, such as .svg, got {file.name!r}")
        if file.suffix in {".dot", ".gv"}:
            file.write_text(self.dot, encoding="utf-8")
        else:
            file.write_bytes(self._drawn(file.suffix[1:]))

    def _drawn(self, form: str) -> bytes:
        program = shutil.which("dot")
        if program is None:
            raise DotMissingError(
                "Graph: graphviz's dot is not installed, which draws pictures: install graphviz, or save a .dot file"
            )
        command, text = [program, f"-T{form}"], self.dot.encode()
        ran = subprocess.run(command, input=text, capture_output=True, check=False)  # noqa: S603 - the user's graphviz
        if ran.returncode:
            raise DotMissingError(f"Graph: dot cannot draw {form!r}: {ran.stderr.decode(errors='replace').strip()}")
        return ran.stdout

    def _repr_svg_(self) -> str | None:
        """Return the picture for notebooks; None if it cannot be drawn, and they show the text."""
        try:
            return self._drawn("svg").decode()
        except DotMissingError:
            return None


def graph(*tensors: TensorBase, model: Module | None = None) -> Graph:
    r"""Return a picture of the graph that backward from some tensors walks, with the hooks on it marked.

    Parameters
    ----------
    *tensors : Tensor
        The roots, each of which requires grad.
    model : Module, optional
        By whose paths parameters are named.

    Returns
    -------
    Graph
        An op is an ellipse, a leaf a box with its shape; arrows lead the way that values took. What has hooks is drawn
        bold, and its label says how many of which kind.

    Raises
    ------
    SettingError
        If there is no tensor, one does not require grad, or the graph has more than 2,000 nodes.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn, viz
    >>> model = nn.Linear(2, 1)
    >>> _ = model.weight.register_hook(lambda grad: grad)
    >>> picture = viz.graph(model(lucid.ones(1, 2)).sum(), model=model)
    >>> print(picture)
    digraph {
      rankdir=TB; node [fontname="sans-serif" fontsize=10]
      n0 [label="SumBackward0"]
      n1 [label="LinearBackward0"]
      n2 [label="bias (1,)" shape=box]
      n3 [label="weight (1, 2)\n1 tensor hook" shape=box style=bold]
      n1 -> n0
      n2 -> n1
      n3 -> n1
    }
    """
    if model is not None and not isinstance(model, Module):
        raise unfit(model, "a Module", "model")
    if not tensors:
        raise SettingError("viz.graph: expected at least one tensor, got none")
    names = {} if model is None else {id(tensor): name for name, tensor in model.named_parameters()}
    numbers: dict[Node, int] = {}
    waiting: list[Node] = []
    for tensor in tensors:
        if not isinstance(tensor, TensorBase):
            raise unfit(tensor, "a Tensor", "tensors")
        edge = live_edge(tensor)
        if edge is None:
            raise SettingError("viz.graph: a tensor does not require grad, so that it has no graph")
        waiting.append(edge[0])
    while waiting:
        node = waiting.pop(0)
        if node in numbers:
            continue
        numbers[node] = len(numbers)
        if len(numbers) > LARGEST:
            raise SettingError(f"viz.graph: expected a graph of at most {LARGEST:,} nodes, got more; take a part of it")
        waiting += [following for following, _ in node.next_functions if following is not None]
    lines = [line_of(node, number, names) for node, number in numbers.items()]
    lines += [
        f"  n{numbers[before]} -> n{number}"
        for node, number in numbers.items()
        for before, _ in node.next_functions
        if before is not None
    ]
    head = 'digraph {\n  rankdir=TB; node [fontname="sans-serif" fontsize=10]\n'
    return Graph(head + "\n".join(lines) + "\n}")


def line_of(node: Node, number: int, names: dict[int, str]) -> str:
    """Return the line that draws a node."""
    leaf: Any = node.variable if isinstance(node, AccumulateGrad) else None
    label = node.name() if leaf is None else f"{names.get(id(leaf), 'leaf')} {tuple(leaf.array.shape)}"
    hooks = Counter(row.kind for row in rows_of_node("", node))
    label += "".join(f"\\n{count} {kind}{'s' if count > 1 else ''}" for kind, count in hooks.items())
    quoted = label.replace('"', '\\"')
    return f'  n{number} [label="{quoted}"{" shape=box" if leaf is not None else ""}{" style=bold" if hooks else ""}]'
