"""The modules that random programs are made of: one class, whose `forward` is a function of either library.

Tensors have the shape (2, 3) and are float64 wherever one part hands them to another, so that any part fits any other.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

SHAPE = (2, 3)
LARGE = 10.0


class Spec(NamedTuple):
    """One part: its kind, the numbers of its children among the parts before it, and a number that selects details."""

    kind: str
    children: tuple[int, ...] = ()
    a: int = 0


class Pair(NamedTuple):
    """What a part of the kind `named_tuple` returns."""

    left: Any
    right: Any


class PlannedError(Exception):
    """What parts and hooks of a program raise on purpose."""


def mapped(function, value):
    """Return nested tuples, lists and dictionaries with `function` of each leaf."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(function, v) for v in value))
    if isinstance(value, tuple | list):
        return type(value)([mapped(function, v) for v in value])
    if isinstance(value, dict):
        return {key: mapped(function, v) for key, v in value.items()}
    return function(value)


def leaves_of(value):
    """Return the leaves of a nested structure, in order."""
    found: list[Any] = []
    mapped(found.append, value)
    return found


def tensors_of(lib, value):
    """Return the tensors in a nested structure, in order."""
    return [leaf for leaf in leaves_of(value) if isinstance(leaf, lib.Tensor)]


def merged(lib, value):
    """Return the sum of the tensors in what a part returned."""
    first, *others = tensors_of(lib, value)
    for other in others:
        first = first + other
    return first


def feed(lib, child, x):
    """Return what a part makes of x, called in the way of its kind."""
    hooks = list(child.output_hooks.values())
    try:
        out = fed(lib, child, x)
        fires = hooks and isinstance(out, lib.Tensor) and lib.is_grad_enabled()
        return hooked_output(out, child.seen_args, hooks) if fires else out
    finally:
        child.seen_args = ()


def hooked_output(out, args, hooks):
    """Return the output of a part with hooks on it: in PyTorch's terms what lucid's `register_backward_hook` does."""
    if not out.requires_grad:
        return out
    if out.is_leaf or any(out is a for a in args):
        # the hooks belong to the call
        out = out.expand_as(out)
    for hook in hooks:
        out.register_hook(lambda grad, hook=hook: hook(None, grad))
    return out


def fed(lib, child, x):
    """Return what `feed` does, without hooks of the output."""
    kind = child.kind
    if kind == "two":
        return child(x, x if child.a % 3 == 0 else x * 0.5)
    if kind == "mixed":
        return child(x, child.a % 2 == 0, x.detach() if child.a % 3 == 0 else x + 0.25, scale=x * 0.5)
    if kind == "by_name":
        return child(value=x)
    if kind == "gathered":
        return child([x, {"twice": x * 2.0, "by": 3.0}], rest=(x * 0.5, None))
    return child(x)


def passed(self, index, x):
    """Return the tensor that child number `index` makes of x, of moderate size, so that rounding stays harmless."""
    y = merged(self.lib, feed(self.lib, self.child(index), x))
    return y.tanh() if float(y.detach().abs().max()) > LARGE else y


# The bodies, by kind: `self` is the part, `self.lib` the library, `self.a` the number that selects details


def affine(self, x):
    return x * self.weight + self.bias


def elementwise(self, x):
    return getattr(x, ("sin", "tanh", "sigmoid", "neg", "cos", "abs")[self.a % 6])()


def square(self, x):
    return (x * x).tanh()


def identity(self, x):
    return x


def parameter(self, x):
    # what a reentrant checkpoint returns gets its node: in PyTorch the parameter itself, which then never ends
    return self.weight * 1.0 if self.in_reentrant and not self.lib.is_grad_enabled() else self.weight


def detached(self, x):
    return x.detach() * self.weight


def island(self, x):
    with self.lib.no_grad():
        y = x.sin() * 2.0
    return x * y + y


def inplace(self, x):
    y = x * 2.0
    if self.a % 5 == 0:
        y.add_(x)
    elif self.a % 5 == 1:
        y.mul_(self.weight)
    elif self.a % 5 == 2:
        y[0].mul_(3.0)
    elif self.a % 5 == 3:
        y[:, 1:].add_(self.weight[:, 1:])
    else:
        y.neg_().mul_(0.5)
    return y


def change_input(self, x):
    # which use of an argument that a checkpoint has changed is refused differs, in reentrant ones and in one in another
    kept = self.in_checkpoints or (self.in_reentrant and not self.lib.is_grad_enabled())
    return x * 0.5 if kept else x.mul_(0.5)


def pair(self, x):
    return x * 2.0, x.sin()


def text(self, x):
    return x * 2.0, "text", None, x.cos(), 3


def named_tuple(self, x):
    return Pair(x * 2.0, x.tanh())


def half_detached(self, x):
    return x.detach() * 2.0, x * 3.0


def dictionary(self, x):
    return {"a": x * 2.0, "b": x.sin(), "c": "text"}


def listed(self, x):
    return [x * 2.0, x.sin()]


def collect(self, x):
    return tuple(feed(self.lib, self.child(index), x) for index in range(len(self.spec.children)))


def two(self, x, y):
    return x * y + x


def mixed(self, x, flag, y, *, scale):
    return x * scale + y if flag else (x + scale) * y


def by_name(self, *, value):
    return value * self.weight


def gathered(self, values, *, rest):
    x, named = values
    return {"out": [x * named["by"], (named["twice"].sin(), "text")], "rest": rest[0] + named["twice"]}


def views(self, x):
    if self.a % 4 == 0:
        return x - x[0]
    if self.a % 4 == 1:
        return x + x[:, :1].expand(2, 3)
    if self.a % 4 == 2:
        return self.lib.cat((x[1:] * 2.0, x[:1]))
    return x.transpose(0, 1).sin().transpose(0, 1)


def mean(self, x):
    return x - x.mean(0)


def function(self, x):
    return self.scaled.apply(x, self.weight, 0.5)


def packed(self, x):
    """Save what a Function needs through a pair of hooks."""

    def pack(tensor):
        self.note("pack", tensor)
        return tensor.detach() * 2.0

    def unpack(halved):
        self.note("unpack", halved)
        return halved * 0.5

    with self.lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        return self.scaled.apply(x, self.weight, 0.5)


def by_mode(self, x):
    return x * (2.0 if self.training else 3.0)


def fails(self, x):
    self.calls += 1
    if self.calls == 1 + self.a % 4:
        raise PlannedError
    return x * 0.5


def chain(self, x):
    for index in range(len(self.spec.children)):
        x = passed(self, index, x)
    return x


def residual(self, x):
    return x + passed(self, 0, x)


def branch(self, x):
    return merged(self.lib, [feed(self.lib, self.child(index), x) for index in range(len(self.spec.children))])


def product(self, x):
    return passed(self, 0, x).tanh() * passed(self, -1, x).sigmoid()


def repeat(self, x):
    return passed(self, 0, passed(self, 0, x))


def checkpointed(self, x):
    if x.is_leaf and x.requires_grad:
        # of a checkpoint in a checkpoint lucid keeps an argument that is a leaf, PyTorch runs the outer one for it
        x = x * 1.0
    # a gradient taken inside of the first run makes lucid recompute what it needs, and PyTorch all without early stop
    return self.lib.utils.checkpoint.checkpoint(
        lambda x: passed(self, 0, x), x, use_reentrant=False, early_stop=self.a % 2 == 0 or self.differentiates
    )


def by_keyword(self, x):
    """Checkpoint a child with an argument that is no tensor, and one by name."""
    if x.is_leaf and x.requires_grad:
        x = x * 1.0
    return self.lib.utils.checkpoint.checkpoint(
        lambda x, times, *, shift: passed(self, 0, x) * times + shift, x, 0.5, shift=x * 0.25, use_reentrant=False,
        early_stop=self.a % 2 == 0 or self.differentiates,
    )  # fmt: skip


def segments(self, x):
    """Checkpoint the children in two segments."""
    if x.is_leaf and x.requires_grad:
        x = x * 1.0
    functions = [lambda x, index=index: passed(self, index, x) for index in range(len(self.spec.children))]
    return self.lib.utils.checkpoint.checkpoint_sequential(functions, 2, x, use_reentrant=False)


def reentrant(self, x):
    # the argument always gets a gradient: what happens for the None of one that is not used differs
    return self.lib.utils.checkpoint.checkpoint(lambda x: passed(self, 0, x) + x * 0.5, x, use_reentrant=True)


def inner(self, x):
    """Differentiate a child inside of forward, and use its gradient as a number."""
    with self.lib.enable_grad():
        y = x.detach().requires_grad_()
        out = passed(self, 0, y)
        (grad,) = self.lib.autograd.grad(out.sum(), y, allow_unused=True) if out.requires_grad else (None,)
    return x if grad is None else x * grad


BODIES = {
    body.__name__: body
    for body in (
        *(affine, elementwise, square, identity, parameter, detached, island, inplace, change_input, pair, text),
        *(named_tuple, half_detached, dictionary, listed, two, mixed, by_name, gathered, views, mean, function, packed),
        *(by_mode, fails, collect, chain, residual, branch, product, repeat, checkpointed, by_keyword, segments),
        *(reentrant, inner),
    )
}
CHECKPOINTS = frozenset({"checkpointed", "by_keyword", "segments", "reentrant"})
# PyTorch fires no backward hook for tensors in the arguments or outputs of these, lucid does (contract 5.8)
STRUCTURED = frozenset({"dictionary", "listed", "collect", "gathered"})


def parts(lib, specs, rng, note):
    """Return the modules of a program, in the order of their specs; `note` takes what they note."""

    def values(*shape):
        return lib.tensor(rng.uniform(-1.0, 1.0, shape))

    class Scaled(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, factor):
            ctx.save_for_backward(x, weight)
            ctx.factor = factor
            return x * weight * factor

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad * weight * ctx.factor, grad * x * ctx.factor, None

    class Part(lib.nn.Module):
        def __init__(self, spec, children):
            super().__init__()
            self.spec, self.kind, self.a = spec, spec.kind, spec.a
            self.calls = 0
            for index, child in enumerate(children):
                setattr(self, f"c{index}", child)
            if not children:
                self.weight = lib.nn.Parameter(values(*SHAPE))
                self.bias = lib.nn.Parameter(values(3))

        def child(self, index):
            return getattr(self, f"c{index % len(self.spec.children)}")

        def forward(self, *args, **kwargs):
            return BODIES[self.kind](self, *args, **kwargs)

    # of the class, so that copies share them
    Part.lib, Part.scaled, Part.note = lib, Scaled, staticmethod(note)
    Part.in_reentrant = any(spec.kind == "reentrant" for spec in specs)
    Part.in_checkpoints = sum(spec.kind in CHECKPOINTS for spec in specs) > 1
    Part.differentiates = any(spec.kind == "inner" for spec in specs)
    made = []
    for number, spec in enumerate(specs):
        if spec.kind == "linear":
            part = lib.nn.Linear(3, 3, bias=spec.a % 3 != 0, dtype=lib.float64)
            with lib.no_grad():
                for p in part.parameters():
                    p.copy_(values(*p.shape))
        elif spec.kind == "activation":
            part = (lib.nn.Tanh, lib.nn.ReLU, lib.nn.Sigmoid)[spec.a % 3]()
        else:
            part = Part(spec, [made[child] for child in spec.children])
            if spec.kind == "affine" and spec.a % 3 == 0:
                tied = [m for m in made if m.kind == "affine"]
                if tied:
                    part.weight = tied[spec.a % len(tied)].weight
        part.kind, part.a, part.number = spec.kind, spec.a, number
        part.output_hooks, part.seen_args = OrderedDict(), ()
        made.append(part)
    return made


def values_of(value):
    """Return a copy of the elements of each tensor in a nested structure, everything else as it is."""
    return mapped(
        lambda leaf: np.array(leaf.numpy(force=True), copy=True) if hasattr(leaf, "requires_grad") else leaf, value
    )
