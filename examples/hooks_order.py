"""The order of everything that fires in one training step, as a table and a picture, recorded in a real run.

    python examples/hooks_order.py                      # prints the table
    python examples/hooks_order.py --write docs/users   # the tables in hooks.md, and hooks_order.svg

A hook of every kind is put on a small model, which then takes one step and is saved and loaded.
"""

from __future__ import annotations

# ruff: noqa: ARG005, SLF001 - hooks take what they are given; PyTorch keeps its callbacks behind an underscore
import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure

import lucid

if TYPE_CHECKING:
    from collections.abc import Callable

BEGIN, END = "<!-- recorded by examples/hooks_order.py -->", "<!-- end of the record -->"
HANDLE, MODULE, FUNCTION, HOOK, FULL = (
    "RemovableHandle document", "Module Hooks document", "FunctionCtx document", "Hook document",
    "register_full_backward_hook document",
)  # fmt: skip


class Kind(NamedTuple):
    """A kind of hook: how it is registered, what it is called with, what it may return, and whose rule it follows."""

    registered: str
    called: str
    returns: str
    rule: str
    lane: str


class Event(NamedTuple):
    """One call: when in the step, of which kind, on what."""

    phase: str
    kind: str
    on: str


KINDS = {
    "global forward pre-hook": Kind(
        "nn.register_module_forward_pre_hook", "module, args", "args", "PyTorch", "all modules"
    ),
    "forward pre-hook": Kind("register_forward_pre_hook", "module, args", "args", MODULE, "modules"),
    "Hook: prehook": Kind("nn.Hook(prehook=...).register", "module, args", "args", HOOK, "modules"),
    "Function.forward": Kind("Function.apply", "ctx, inputs", "outputs", FUNCTION, "nodes"),
    "pack hook": Kind("saved_tensors_hooks(pack, ...)", "tensor", "anything", "PyTorch", "saved tensors"),
    "global forward hook": Kind(
        "nn.register_module_forward_hook", "module, args, output", "output", "PyTorch", "all modules"
    ),
    "forward hook": Kind("register_forward_hook", "module, args, output", "output", MODULE, "modules"),
    "Hook: posthook": Kind("nn.Hook(posthook=...).register", "module, args, output", "output", HOOK, "modules"),
    "tensor hook": Kind("Tensor.register_hook", "grad", "grad", HANDLE, "tensors"),
    "node prehook": Kind("Node.register_prehook", "grad_outputs", "grad_outputs", "PyTorch", "nodes"),
    "node posthook": Kind("Node.register_hook", "grad_inputs, grad_outputs", "grad_inputs", "PyTorch", "nodes"),
    "backward hook": Kind("register_backward_hook", "tensor, grad", "nothing", MODULE, "modules"),
    "global full backward pre-hook": Kind(
        "nn.register_module_full_backward_pre_hook", "module, grad_output", "grad_output", "PyTorch", "all modules"
    ),
    "full backward pre-hook": Kind(
        "register_full_backward_pre_hook", "module, grad_output", "grad_output", MODULE, "modules"
    ),
    "unpack hook": Kind("saved_tensors_hooks(..., unpack)", "packed", "tensor", "PyTorch", "saved tensors"),
    "Function.backward": Kind("Function.apply", "ctx, grad_outputs", "grad_inputs", FUNCTION, "nodes"),
    "post-accumulate hook": Kind(
        "Tensor.register_post_accumulate_grad_hook", "tensor", "nothing", "PyTorch", "tensors"
    ),
    "multi-grad hook": Kind("register_multi_grad_hook", "grads", "nothing", "PyTorch", "tensors"),
    "global full backward hook": Kind(
        "nn.register_module_full_backward_hook", "module, grad_input, grad_output", "grad_input", FULL, "all modules"
    ),
    "full backward hook": Kind(
        "register_full_backward_hook", "module, grad_input, grad_output", "grad_input", FULL, "modules"
    ),
    "callback at the end": Kind("queue_callback", "", "nothing", "PyTorch", "nodes"),
    "step pre-hook": Kind(
        "Optimizer.register_step_pre_hook", "optimizer, args, kwargs", "args, kwargs", "PyTorch", "optimizer"
    ),
    "step post-hook": Kind(
        "Optimizer.register_step_post_hook", "optimizer, args, kwargs", "nothing", "PyTorch", "optimizer"
    ),
    "state-dict pre-hook": Kind(
        "register_state_dict_pre_hook", "module, prefix, keep_vars", "nothing", MODULE, "modules"
    ),
    "state-dict hook": Kind(
        "register_state_dict_hook", "module, state_dict, prefix, keep_vars", "nothing", MODULE, "modules"
    ),
    "load-state-dict pre-hook": Kind(
        "register_load_state_dict_pre_hook", "module, state_dict, strict", "nothing", MODULE, "modules"
    ),
    "load-state-dict post-hook": Kind(
        "register_load_state_dict_post_hook",
        "module, missing_keys, unexpected_keys, strict",
        "nothing",
        MODULE,
        "modules",
    ),
}
PHASES = ("forward", "backward", "optimizer step", "saving", "loading")


def record(framework: Any = lucid) -> list[Event]:
    """Return the events of one training step of lucid, or of PyTorch without the kinds that it does not have."""
    nn, graph = framework.nn, framework.autograd.graph
    events: list[Event] = []
    phase = ""

    def watch(kind: str, on: str, result: Callable[..., Any] = lambda *_: None) -> Callable[..., Any]:
        def hook(*args: Any) -> Any:
            events.append(Event(phase, kind, on))
            return result(*args)

        return hook

    class Square(framework.autograd.Function):
        """The middle of the model."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            watch("Function.forward", "Square")()
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            watch("Function.backward", "Square")()
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    class Net(nn.Module):
        """A linear layer and a square."""

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            x = self.linear(x)
            # around the Function alone: what the linear layer saves is each library's own affair
            with saving:
                return Square.apply(x)

    saving = graph.saved_tensors_hooks(
        watch("pack hook", "what Square saves", lambda t: t), watch("unpack hook", "what Square saved", lambda t: t)
    )
    net = Net()
    optimizer = framework.optim.SGD(net.parameters(), lr=0.1)
    names = {net: "net", net.linear: "net.linear"}
    x, weight = framework.ones(4, 3, requires_grad=True), net.linear.weight
    everywhere = nn.modules.module
    handles: list[Any] = []
    for name in ("forward_pre", "forward", "full_backward_pre", "full_backward"):
        kind = f"{name.replace('_', ' ').replace(' pre', ' pre-hook')}{'' if 'pre' in name else ' hook'}"

        def of_all(module: Any, *_: Any, kind: str = kind) -> None:
            watch(f"global {kind}", names[module])()

        handles.append(getattr(everywhere, f"register_module_{name}_hook")(of_all))
        for module, on in names.items():
            getattr(module, f"register_{name}_hook")(watch(kind, on))
    if framework is lucid:
        net.register_backward_hook(lambda tensor, grad: watch("backward hook", "net")())
        owner = nn.Hook(watch("Hook: prehook", "net.linear"), watch("Hook: posthook", "net.linear"))
        owner.register(net.linear)
        for module, on in names.items():
            watch_state(module, on, watch)
    x.register_hook(watch("tensor hook", "x"))
    weight.register_hook(watch("tensor hook", "net.linear.weight"))
    weight.register_post_accumulate_grad_hook(watch("post-accumulate hook", "net.linear.weight"))
    node = graph.get_gradient_edge(weight).node
    node.register_prehook(watch("node prehook", "AccumulateGrad of net.linear.weight"))
    node.register_hook(watch("node posthook", "AccumulateGrad of net.linear.weight"))
    optimizer.register_step_pre_hook(watch("step pre-hook", "SGD"))
    optimizer.register_step_post_hook(watch("step post-hook", "SGD"))

    phase = "forward"
    y = net(x)
    y.register_hook(watch("tensor hook", "y = net(x)"))
    loss = y.sum()
    loss.register_hook(watch("tensor hook", "loss = y.sum()"))
    at_end = watch("callback at the end", "this pass")
    loss.register_hook(lambda grad: framework.autograd.Variable._execution_engine.queue_callback(at_end))
    loss.grad_fn.register_prehook(watch("node prehook", loss.grad_fn.name()))
    loss.grad_fn.register_hook(watch("node posthook", loss.grad_fn.name()))
    graph.register_multi_grad_hook((x, weight), watch("multi-grad hook", "x and net.linear.weight"))
    phase = "backward"
    loss.backward()
    phase = "optimizer step"
    optimizer.step()
    for handle in handles:
        handle.remove()
    if framework is lucid:
        phase = "saving"
        state = net.state_dict()
        phase = "loading"
        net.load_state_dict(state)
    return events


def watch_state(module: Any, on: str, watch: Callable[..., Any]) -> None:
    """Put a hook of every kind that saving and loading have on `module`."""
    module.register_state_dict_pre_hook(watch("state-dict pre-hook", on))
    module.register_state_dict_hook(watch("state-dict hook", on))
    before, after = watch("load-state-dict pre-hook", on), watch("load-state-dict post-hook", on)
    module.register_load_state_dict_pre_hook(lambda module, state_dict, strict: before())
    module.register_load_state_dict_post_hook(lambda module, missing, unexpected, strict: after())


def table(events: list[Event]) -> str:
    """Return the events as a Markdown table for each phase."""
    lines: list[str] = []
    number = 0
    for phase in PHASES:
        lines += ["", f"### {phase.capitalize()}", "", "| | fires | on | called with | may return | follows |"]
        lines += ["|---|---|---|---|---|---|"]
        for event in events:
            if event.phase == phase:
                number += 1
                kind = KINDS[event.kind]
                called = f"`{kind.called}`" if kind.called else "nothing"
                returns = f"`{kind.returns}`" if kind.returns not in {"nothing", "anything"} else kind.returns
                lines.append(f"| {number} | {event.kind} | {event.on} | {called} | {returns} | {kind.rule} |")
    return "\n".join(lines).strip() + "\n"


LANES = ("all modules", "modules", "nodes", "tensors", "saved tensors", "optimizer")
COLORS = dict(zip(LANES, ("#8c564b", "#1f5fa8", "#6b6b6b", "#b8431c", "#2c7a4b", "#7a3fa0"), strict=True))
BANDS = dict(zip(PHASES, ("#eef4fb", "#fdf1ec", "#f5eefa", "#eef7f1", "#f7f7f2"), strict=True))


def picture(events: list[Event], path: Path) -> None:
    """Draw the events from top to bottom, each in the column of what it hangs on."""
    rows = len(events)
    with rc_context({"svg.hashsalt": "lucid", "font.size": 8.5}):
        figure = Figure(figsize=(13, 0.25 * rows + 1.1), layout="constrained")
        axes = figure.add_subplot(xlim=(-0.35, len(LANES) + 0.15), ylim=(rows + 0.2, -1.6))
        axes.set_axis_off()
        for phase in PHASES:
            places = [n for n, event in enumerate(events) if event.phase == phase]
            axes.axhspan(places[0] - 0.5, places[-1] + 0.5, color=BANDS[phase], zorder=0)
            middle = (places[0] + places[-1]) / 2
            word = phase.split()[-1]
            axes.text(-0.27, middle, word, rotation=90, ha="center", va="center", weight="bold", color="#444444")
        columns = [LANES.index(KINDS[event.kind].lane) for event in events]
        axes.plot(columns, range(rows), color="#cfcfcf", linewidth=0.8, zorder=1)
        for number, (event, column) in enumerate(zip(events, columns, strict=True)):
            color = COLORS[LANES[column]]
            axes.plot(column, number, "o", color=color, markersize=5, zorder=3)
            axes.text(
                column + 0.05, number, f"{number + 1}  {event.kind}: {event.on}", va="center", color=color, zorder=4,
                bbox={"facecolor": BANDS[event.phase], "edgecolor": "none", "pad": 0.6},
            )  # fmt: skip
        for column, lane in enumerate(LANES):
            axes.text(column, -1.1, lane, weight="bold", color=COLORS[lane], ha="left", va="center")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)


def document(text: str, record: str) -> str:
    """Return a document with the record between its two marks replaced."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{record}\n{END}{tail}"


def main() -> None:
    """Print the table, or write it and the picture into a folder of documents."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where hooks.md is, and the picture goes")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the picture there: .svg, .png, .pdf")
    arguments = parser.parse_args()
    if arguments.write is not None and not (arguments.write / "hooks.md").is_file():
        parser.error(f"--write: expected a folder with a hooks.md, got {arguments.write}")
    if arguments.picture is not None and arguments.picture.suffix not in {".svg", ".png", ".pdf"}:
        parser.error(f"--picture: expected a file .svg, .png or .pdf, got {arguments.picture}")
    events = record()
    if arguments.write is not None:
        page = arguments.write / "hooks.md"
        page.write_text(document(page.read_text(encoding="utf-8"), table(events)), encoding="utf-8")
        picture(events, arguments.write / "hooks_order.svg")
    elif arguments.picture is not None:
        picture(events, arguments.picture)
    else:
        print(table(events), end="")


if __name__ == "__main__":
    main()
