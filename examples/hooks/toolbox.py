"""The tools of `lucid.hooks`, each in a few lines, and what they print.

python examples/hooks/toolbox.py
"""

from __future__ import annotations

# ruff: noqa: ARG001, ARG005, D401 - hooks take what they are given; docstrings are titles
import argparse
from typing import TYPE_CHECKING

from rich.console import Console

import lucid
from lucid import hooks, nn, viz

if TYPE_CHECKING:
    from collections.abc import Callable


def model() -> nn.Module:
    """Return a small model."""
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Sequential(nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 1))


def clumsy_library(net: nn.Module) -> None:
    """Leave hooks behind."""
    activations: list[lucid.Tensor] = []
    for module in net.modules():
        module.register_forward_hook(lambda module, args, output: activations.append(output))
    next(net.parameters()).register_hook(lambda grad: None)


def listing() -> None:
    """A table of every hook, what they hold, and an end to what a library left behind."""
    net = model()
    clumsy_library(net)
    net(lucid.ones(2, 4))
    found = hooks.table(net)
    print(
        len(found), "hooks;", "the first:", found[0].kind, "registered by line", found[0].registered.rpartition(":")[2]
    )
    print("they hold", max(leak.bytes for leak in hooks.leaks()), "bytes and a graph")
    found.filter(file=__file__).remove()
    print("left:", len(hooks.table(net)))
    print(hooks.explain(net))


def counting() -> None:
    """How often each hook is called, and how long that takes."""
    net = model()
    clumsy_library(net)
    with hooks.counting(net) as found:
        for _ in range(3):
            net(lucid.ones(2, 4)).sum().backward()
    print("calls of each:", [row.calls for row in found])


def note(module: nn.Module, args: object, output: lucid.Tensor, context: hooks.HookContext) -> None:
    """Note the mean of what a call returns, for its backward."""
    context.data["mean"] = output.mean().item()


def recall(module: nn.Module, grad_input: object, grad_output: object, context: hooks.HookContext) -> None:
    """Print what the forward of the same call has noted."""
    print(f"{context.phase} of call {context.call} of {context.path!r}, whose mean was {context.data['mean']:.2f}")


def contexts() -> None:
    """A hook that asks for context is told of the call, and a backward of its forward."""
    layer = nn.Linear(3, 3)
    net = nn.Sequential(layer, nn.Tanh(), layer)
    layer.register_forward_hook(note, with_context=True)
    layer.register_full_backward_hook(recall, with_context=True)
    net(lucid.ones(1, 3, requires_grad=True)).sum().backward()


def scopes() -> None:
    """What is registered in a scope goes with it, whoever registers it."""
    net = model()
    mine = net.register_forward_hook(lambda module, args, output: None)
    with hooks.scope() as inside:
        clumsy_library(net)
        print("inside:", len(inside))
    print("after:", len(hooks.table(net)), "which is mine")
    mine.remove()


def capturing() -> None:
    """Activations and gradients by path; a tap names any other value."""
    net = model()
    with hooks.capture(net, ["*", "2.**"], what=("output", "grad"), taps="loss*") as kept:
        hooks.tap("loss", net(lucid.ones(2, 4)).square().mean()).backward()
    for key in list(kept)[:4]:
        print(*key, tuple(kept[key].shape))
    print("the tap's gradient:", kept["loss", "grad"].item())


def editing() -> None:
    """Outputs, gradients of outputs, and gradients of parameters, replaced by path."""
    net, x = model(), lucid.ones(2, 4, requires_grad=True)
    with hooks.edit(
        net, {"1": lambda output: output * 0}, parameters={"**.bias": lambda grad: grad.clamp(-0.125, 0.125)}
    ):
        net(x).sum().backward()
    print("nothing passes a zero:", x.grad.abs().sum().item())
    print(
        "no bias beyond 0.125:",
        max(p.grad.abs().max().item() for p in hooks.parameters(net, "**.bias").values()) <= 0.125,
    )


def guarding() -> None:
    """The first number that is not finite is an error that names its module."""
    net = model()
    with lucid.no_grad():
        net[2][0].weight[0, 0] = float("inf")
    try:
        with hooks.guard(net):
            net(lucid.ones(2, 4))
    except hooks.NotFiniteError as error:
        print(error)


def stepping() -> None:
    """Each parameter is stepped as its gradient comes, which is freed then."""
    net = model()
    hooks.step_in_backward(net, lambda parameters: lucid.optim.AdamW(parameters, lr=0.01))
    for _ in range(30):
        loss = (net(lucid.ones(2, 4)) - 3).square().mean()
        loss.backward()
    print(f"loss {loss.item():.2f}; gradients in memory: {sum(p.grad is not None for p in net.parameters())}")


def drawing() -> None:
    """The graph of a backward pass, for graphviz."""
    net = model()
    net[0].weight.register_hook(lambda grad: None)
    picture = viz.graph(net(lucid.ones(2, 4)).sum(), model=net)
    print(*[line.strip() for line in str(picture).splitlines() if "bold" in line], sep="\n")


def tracing() -> None:
    """When each module ran, forward and backward, and what its forward keeps."""
    net = model()
    with hooks.trace(net, ops=True) as seen:
        net(lucid.ones(2, 4)).sum().backward()
    for region in seen.regions.values():
        print(
            f"{region.path or 'the model'}: {region.calls} calls, keeps {region.kept} bytes, makes {region.made or 0}"
        )
    print(sum(span.phase == "backward" for span in seen.spans), "spans of backward")


class Halves(hooks.FunctionHook):
    """Halves what every exponential returns."""

    def after(self, call: hooks.Call, output: lucid.Tensor) -> lucid.Tensor | None:
        """Return half of the output of `exp`."""
        return output / 2 if call.name == "exp" else None


def functions() -> None:
    """Every op of a block: counted, timed, and replaced."""
    net = model()
    with hooks.FlopHook() as arithmetic, hooks.MemoryHook() as memory, hooks.TimerHook() as timer, Halves():
        print("half of e:", lucid.ones(1).exp().item())
        net(lucid.ones(2, 4)).sum().backward()
    print(arithmetic.total, "operations in products,", memory.made.total(), "bytes of new arrays")
    print("ops that took time:", sum(took > 0 for took in timer.host.values()))


def summing_up() -> None:
    """What a model is made of."""
    print(viz.summary(model(), lucid.ones(2, 4)))


SHOWN: list[Callable[[], None]] = [
    listing, counting, contexts, scopes, capturing, editing, guarding, stepping, tracing, functions, drawing,
    summing_up,
]  # fmt: skip


def main() -> None:
    """Show each tool."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False).parse_args()
    lucid.manual_seed(0)
    console = Console(highlight=False)
    for show in SHOWN:
        console.print(f"[bold]{show.__doc__.rstrip('.')}[/]")
        show()
        console.print()


if __name__ == "__main__":
    main()
