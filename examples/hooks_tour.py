"""A tour of lucid's hooks: each stop is a few lines of code and what they print.

    python examples/hooks_tour.py

Hooks watch and change what flows through a model: gradients of tensors, arguments and results of modules, what a state
dict holds. Each returns None to leave things as they are, or what shall take their place.
"""

from __future__ import annotations

# ruff: noqa: ARG001, ARG005, D401 - hooks take what they are given; docstrings are titles
import argparse
from typing import TYPE_CHECKING

from rich.console import Console

import lucid
from lucid import nn
from lucid.autograd import Function
from lucid.nn.modules.module import register_module_full_backward_hook

if TYPE_CHECKING:
    from collections.abc import Callable

STOPS: list[Callable[[], None]] = []


def stop(function: Callable[[], None]) -> Callable[[], None]:
    """Put a function on the tour, under its docstring as title."""
    STOPS.append(function)
    return function


# ---- tensors ----


@stop
def tensor_hook() -> None:
    """A tensor's hook sees its gradient, until its handle is removed."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    handle = x.register_hook(lambda g: print("grad =", g))
    (x * x).sum().backward()
    handle.remove()
    (x * x).sum().backward()
    print("x.grad after two passes =", x.grad)


@stop
def tensor_hook_in_a_block() -> None:
    """As a context manager: the hook doubles the gradient inside the block only."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    with x.register_hook(lambda g: g * 2) as handle:
        (x * x).sum().backward()
    print("x.grad =", x.grad)
    handle.remove()  # a second removal is harmless


@stop
def custom_function() -> None:
    """A function with a backward of its own."""

    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.shape = x.shape
            return x * x

        @staticmethod
        def backward(ctx, grad_out):
            (x,) = ctx.saved_tensors
            return 2 * x * grad_out

    x = lucid.tensor([3.0, -1.0], requires_grad=True)
    Square.apply(x).sum().backward()
    print("x.grad =", x.grad)


# ---- modules: forward ----


@stop
def forward_pre_hook() -> None:
    """A forward pre-hook changes the arguments."""

    class Scale(nn.Module):
        def forward(self, x):
            return x * 2

    def pre_hook(module, args):
        (x,) = args
        return (x + 1,)

    m = Scale()
    remove = m.register_forward_pre_hook(pre_hook)
    x = lucid.ones((2, 2))
    print("with the hook:", m(x).tolist())
    remove()
    print("without:      ", m(x).tolist())


@stop
def forward_hook() -> None:
    """A forward hook changes the result."""

    class LinearBias(nn.Module):
        def __init__(self):
            super().__init__()
            self.b = nn.Parameter(lucid.ones((1,)))

        def forward(self, x):
            return x + self.b

    def post_hook(module, args, output):
        return output * 3

    m = LinearBias()
    remove = m.register_forward_hook(post_hook)
    x = lucid.ones((1,))
    print("with the hook:", m(x).item())
    remove()
    print("without:      ", m(x).item())


# ---- modules: backward ----


@stop
def backward_hook() -> None:
    """A backward hook on a module's output."""

    class Square(nn.Module):
        def forward(self, x):
            return x * x

    def grad_hook(tensor, grad):
        print("grad:", grad)

    m = Square()
    m.register_backward_hook(grad_hook)
    x = lucid.ones((1,), requires_grad=True)
    y = m(x)
    y.backward()


@stop
def full_backward_pre_hook() -> None:
    """A full backward pre-hook sees the gradients that reach the module."""

    class Add(nn.Module):
        def forward(self, x, y):
            return x + y

    def pre_full_backward(module, grad_out):
        print("grad_out:", grad_out)
        return grad_out

    m = Add()
    m.register_full_backward_pre_hook(pre_full_backward)
    x = lucid.ones((1,), requires_grad=True)
    y = lucid.ones((1,), requires_grad=True)
    out = m(x, y)
    out.backward()


@stop
def full_backward_hook() -> None:
    """A full backward hook sees those that come in and those that go on."""

    class Mul(nn.Module):
        def forward(self, x, y):
            return x * y

    def full_backward(module, grad_in, grad_out):
        print("grad_in:", grad_in)
        print("grad_out:", grad_out)

    m = Mul()
    m.register_full_backward_hook(full_backward)
    x = lucid.ones((1,), requires_grad=True)
    y = lucid.ones((1,), requires_grad=True)
    out = m(x, y)
    out.backward()


@stop
def full_backward_order() -> None:
    """Full backward hooks: global first, then prepended, then as registered."""

    def say(name):
        return lambda module, grad_input, grad_output: print(f"{name}: {type(module).__name__}")

    m = nn.Linear(2, 1)
    m.register_full_backward_hook(say("registered first"))
    m.register_full_backward_hook(say("prepended"), prepend=True)
    with register_module_full_backward_hook(say("global")):
        m(lucid.ones((1, 2), requires_grad=True)).sum().backward()


@stop
def full_backward_replaces() -> None:
    """A full backward hook may replace gradients; in-place changes are refused."""
    m = nn.Linear(2, 1)
    m.register_full_backward_hook(lambda module, grad_in, grad_out: tuple(lucid.zeros_like(g) for g in grad_in))
    x = lucid.ones((1, 2), requires_grad=True)
    y = m(x)
    y.sum().backward()
    print("x.grad =", x.grad)
    try:
        y.mul_(2)
    except RuntimeError as error:
        print(type(error).__name__, "on y.mul_(2)")


# ---- state dicts ----


@stop
def state_dict_pre_hook() -> None:
    """A state-dict pre-hook runs before a module is saved."""

    def pre_state(module, prefix, keep_vars):
        print("saving with prefix:", repr(prefix))

    m = nn.Module()
    m.register_state_dict_pre_hook(pre_state)
    m.state_dict()


@stop
def state_dict_hook() -> None:
    """A state-dict hook adds to what is saved."""

    def post_state(module, state_dict, prefix, keep_vars):
        state_dict[prefix + "note"] = "custom"

    m = nn.Module()
    m.register_state_dict_hook(post_state)
    sd = m.state_dict()
    print(dict(sd))


@stop
def load_state_dict_pre_hook() -> None:
    """A load-state-dict pre-hook clears away an old key."""

    def pre_load(module, state_dict, strict):
        state_dict.pop("legacy_key", None)

    m = nn.Module()
    m.register_load_state_dict_pre_hook(pre_load)
    print(m.load_state_dict({"legacy_key": lucid.ones(1)}))


@stop
def load_state_dict_post_hook() -> None:
    """A load-state-dict post-hook reports what was missing."""

    def post_load(module, missing, unexpected, strict):
        if missing:
            print("missing:", missing)

    m = nn.Linear(1, 1)
    m.register_load_state_dict_post_hook(post_load)
    m.load_state_dict({}, strict=False)


# ---- hooks that own themselves ----


@stop
def hook_object() -> None:
    """A Hook owns a pre-hook and a post-hook, here for training only."""

    def prehook(module, args):
        print("before", type(module).__name__, "in", "training" if module.training else "evaluation")

    def posthook(module, args, output):
        print("after: the output is doubled")
        return output * 2

    m = nn.Identity()
    hook = nn.Hook(prehook, posthook, eval_update=False)
    hook.register(m)
    print("training:  ", m(lucid.ones(1)).item())
    m.eval()
    print("evaluation:", m(lucid.ones(1)).item())
    m.train()
    hook.deregister()
    print("off again: ", m(lucid.ones(1)).item())


@stop
def hook_object_is_weak() -> None:
    """A Hook leaves the module when it is deleted."""
    m = nn.Identity()
    hook = nn.Hook(posthook=lambda module, args, output: output + 1)
    hook.register(m)
    print("with the Hook:", m(lucid.ones(1)).item())
    del hook
    print("without:      ", m(lucid.ones(1)).item())


def main() -> None:
    """Print every stop of the tour."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False).parse_args()
    console = Console(highlight=False)
    for number, function in enumerate(STOPS, 1):
        if number > 1:
            console.print()
        console.print(f"[bold cyan]{number:2}[/]  [bold]{function.__doc__.rstrip('.')}[/]")
        function()


if __name__ == "__main__":
    main()
