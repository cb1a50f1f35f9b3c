"""What the parts of a program do, by kind.

`self` is the part, `self.lib` the library, and `self.a` the number that selects details.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.parity.programs.functions import DIRTY, UNREPEATABLE, VIEWS
from tests.parity.programs.structures import PlannedError, largest, merged, refused

LARGE = 10.0


class Pair(NamedTuple):
    """What a part of the kind `named_tuple` returns."""

    left: Any
    right: Any


def feed(lib, child, x):
    """Return what a part makes of x, called in the way of its kind."""
    hooks = list(child.output_hooks.values())
    try:
        out = fed(child, child, x)
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


def fed(child, call, x):
    """Return what `call` makes of x, with the arguments that a part of its kind takes."""
    kind = child.kind
    if kind == "two":
        return call(x, x if child.a % 3 == 0 else x * 0.5)
    if kind == "mixed":
        return call(x, child.a % 2 == 0, x.detach() if child.a % 3 == 0 else x + 0.25, scale=x * 0.5)
    if kind == "by_name":
        return call(value=x)
    if kind == "gathered":
        return call([x, {"twice": x * 2.0, "by": 3.0}], rest=(x * 0.5, None))
    return call(x)


def passed(self, index, x):
    """Return the tensor that child number `index` makes of x, of moderate size, so that rounding stays harmless."""
    y = merged(self.lib, feed(self.lib, self.child(index), x))
    return y.tanh() if largest(y) > LARGE else y


def affine(self, x):
    return x * self.weight + self.bias


def elementwise(self, x):
    return getattr(x, ("sin", "tanh", "sigmoid", "neg", "cos", "square")[self.a % 6])()


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
    elif self.a % 5 == 2 and y.ndim:
        y[0].mul_(3.0)
    elif self.a % 5 == 3 and y.ndim > 1:
        y[:, 1:].add_(self.bias[1:])
    else:
        y.neg_().mul_(0.5)
    return y


def change_input(self, x):
    # PyTorch sees no change of what a checkpoint has saved, and which use of its arguments is refused differs
    return x * 0.5 if self.in_checkpoint or refused(self.lib, [x]) else x.mul_(0.5)


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
    if x.ndim < 2:
        # of few dimensions: all views of one element or row
        y = x.unsqueeze(0).expand(2, *x.shape)
        return (y[0] + y[1].sin(), y.view(-1)[:1].sum() * x, y.sum(0), x.reshape(-1).view(x.shape) * 0.5)[self.a % 4]
    if self.a % 4 == 0:
        # PyTorch subtracts no bools
        return x - x[0] if x.is_floating_point() else x
    if self.a % 4 == 1:
        return x + x[:, :1].expand(*x.shape)
    if self.a % 4 == 2:
        return self.lib.cat((x[1:] * 2.0, x[:1]))
    return x.transpose(0, 1).sin().transpose(0, 1)


def mean(self, x):
    return x - (x.mean(0) if x.ndim else x.mean() * 0.5)


def function(self, x):
    name, given, weight = self.function, x, self.weight
    if self.in_checkpoint and name in UNREPEATABLE:
        name = "Plain"
    if name in VIEWS and (not self.lib.is_grad_enabled() or x.is_inference()):
        # PyTorch's views taken under no_grad claim to require grad; those of inference tensors never do
        given, weight = x.detach(), weight.detach()
    if name in DIRTY:
        # a copy, as leaves cannot be changed; or a view of one, beside which PyTorch allows no other output
        given = x * 1.0
        if name == "Dirty" and x.ndim and self.a % 3 == 0:
            given = given[:1]
    return self.functions[name].apply(given, weight, self)


def correction(count):
    """Return the setting of a variance of `count` elements that has derivatives: of one, PyTorch's are constant."""
    return {"correction": 0} if count < 2 else {}


def outputs(self, x):
    """Use some of the outputs of an operation that has several."""
    if x.ndim == 0:
        x = x.expand(3)
    several = (
        lambda: x.unbind(0),
        lambda: x.split(1),
        lambda: self.lib.var_mean(x * 1.0, **correction(x.numel())),
        lambda: self.lib.std_mean(x + self.weight.sum() * 3.0, 0, **correction(len(x))),
        lambda: x.chunk(2, -1),
        lambda: (x.max(0).values, x.min(0).values),
    )[self.a % 6]()
    return several[0].sin() + several[-1] if self.a % 5 else several[self.a % 2].sin()


def number(self, x):
    """Return a tensor of no dimension, by a way of its own kind."""
    ways = (
        lambda: x.sum() * self.bias.sum(),
        lambda: (x * x).mean(),
        lambda: x.sum().exp().tanh(),
        lambda: self.lib.stack([x.sum(), self.bias.mean()]).unbind(0)[1] * x.sum(),
        lambda: x.reshape(-1)[0] * 0.5 if x.numel() else x.sum(),
    )
    return ways[self.a % 5]()


def spread_out(self, x):
    """Return the shape of the program from a number."""
    return x.sum() * self.weight + self.bias.mean()


def packed(self, x):
    """Save what a Function needs through a pair of hooks."""

    def pack(tensor):
        self.note("pack", tensor)
        return tensor.detach() * 2.0

    def unpack(halved):
        self.note("unpack", halved)
        return halved * 0.5

    with self.lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        return self.functions["Plain"].apply(x, self.weight, self)


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
    if self.lib.is_inference_mode_enabled():
        return x * 0.5
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
        *(outputs, number, spread_out),
        *(by_mode, fails, collect, chain, residual, branch, product, repeat, checkpointed, by_keyword, segments),
        *(reentrant, inner),
    )
}
