"""What the parts of a program do, by kind.

`self` is the part, `self.lib` the library, and `self.a` the number that selects details.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from tests.parity.programs.functions import DIRTY, GIVES_NONE, UNREPEATABLE, VIEWS
from tests.parity.programs.structures import NEAR, PlannedError, apart, flat, largest, merged, refused

LARGE = 10.0


class Pair(NamedTuple):
    """What a part of the kind `named_tuple` returns."""

    left: Any
    right: Any


def feed(lib, child, x):
    """Return what a part makes of x, called in the way of its kind."""
    hooks = list(child.output_hooks.values())
    if not hooks:
        return fed(lib, child, child, x)
    seen = []
    # for this call only: a forward hook added inside of a call fires at once if there is another, and else not yet
    looking = child.register_forward_hook(lambda module, args, output: seen.append(args))
    try:
        out = fed(lib, child, child, x)
    finally:
        looking.remove()
    return hooked_output(out, seen[-1], hooks) if isinstance(out, lib.Tensor) and lib.is_grad_enabled() else out


def hooked_output(out, args, hooks):
    """Return the output of a part with hooks on it: in PyTorch's terms what lucid's `register_backward_hook` does."""
    if not out.requires_grad:
        return out
    if out.is_leaf or any(out is a for a in args):
        # the hooks belong to the call
        out = out.clone() if out.is_inference() else out.expand_as(out)
    for hook in hooks:
        out.register_hook(lambda grad, hook=hook: hook(None, grad))
    return out


def fed(lib, child, call, x):
    """Return what `call` makes of x, with the arguments that a part of its kind takes."""
    kind = child.kind
    if (child.mixed or (kind == "linear" and x.ndim != 2)) and x.is_leaf and x.requires_grad:
        # a leaf that is cast first, or that PyTorch makes a matrix first, is reached after one that is not
        x = x * 1.0
    if x.is_inference() and any(p.is_inference() for p in child.parameters(recurse=False)):
        # PyTorch records no op on inference tensors alone; what is computed outside of their mode is none
        x = x * 1.0
    if kind in {"activation", "elementwise"} and not x.is_floating_point():
        # lucid squares no bools, and PyTorch has another error for a softplus of them
        x = x.double()
    if kind == "linear":
        # nor does it record how a linear layer transposes such a weight
        recorded = x.requires_grad or not child.weight.is_inference()
        with contextlib.nullcontext() if recorded else lib.no_grad():
            out = call(x)
        if x.ndim != 2 and not lib.is_grad_enabled():
            # a view in PyTorch, which where nothing is recorded may not be changed later
            out = out.clone()
        # one node in lucid, several in PyTorch
        out.of_other_nodes = True
        return out
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
    # in a checkpoint always: run again without a hook that was taken off, it might be of another size
    return y.tanh() if "plain" in self.checkpoints.inside or largest(y) > LARGE else y


def alone(parameter):
    """Return a parameter that meets no other tensor: PyTorch records no op on inference tensors alone."""
    return parameter.detach() if parameter.is_inference() else parameter


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
    weight = alone(self.weight)
    return weight * 1.0 if "reentrant" in self.checkpoints.inside or weight is not self.weight else weight


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
        # casts what it computed in lucid, by a node of its own
        y.of_other_nodes = y.dtype != self.weight.dtype
        y.mul_(self.weight)
    elif self.a % 5 == 2 and y.ndim:
        y[0].mul_(3.0)
    elif self.a % 5 == 3 and y.ndim > 1:
        y[:, 1:].add_(self.bias[1:])
    else:
        y.neg_().mul_(0.5)
    return y


def is_view(x):
    """Tell whether x is a view in either library, as at times what a linear layer returns in PyTorch."""
    return x._base is not None or getattr(x, "of_other_nodes", False)


def change_input(self, x):
    # a view may have hooks, which PyTorch forgets
    kept = is_view(x) or self.checkpoints.keep(x) or refused(self.lib, [x])
    # a retained gradient of a further output breaks an assertion of PyTorch's
    return x * 0.5 if kept or (x.retains_grad and x.output_nr) else x.mul_(0.5)


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
        return (y[0] + y[1].sin(), flat(y)[:1].sum() * x, y.sum(0), x.reshape(-1).view(x.shape) * 0.5)[self.a % 4]
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
    if "plain" in self.checkpoints.inside and name in UNREPEATABLE:
        name = "Plain"
    if name in GIVES_NONE and self.checkpoints.differ_for_none(self.lib, x):
        name = "Plain"
    if name in VIEWS and (not self.lib.is_grad_enabled() or x.is_inference()):
        # PyTorch's views taken under no_grad claim to require grad; those of inference tensors never do
        given, weight = x.detach(), weight.detach()
    if name in DIRTY:
        # mostly a copy, as leaves cannot be changed, and views beside no other output in PyTorch, where what retains
        # its gradient and is returned twice breaks an assertion
        kept = is_view(x) or x.is_leaf or x.retains_grad or self.checkpoints.keep(x) or refused(self.lib, [x])
        if kept or self.a % 4 != 1:
            given = x * 1.0
        if name == "Dirty" and x.numel() and x.ndim and self.a % 3 == 0:
            given = given[:1]
    with unrecorded_in_inference_mode(self.lib):
        return self.functions[name].apply(given, weight, self)


def unrecorded_in_inference_mode(lib):
    """Return the mode for what saves: with gradients enabled inside of inference mode PyTorch refuses to."""
    return lib.no_grad() if lib.is_inference_mode_enabled() else contextlib.nullcontext()


def correction(count):
    """Return the setting of a variance of `count` elements that has derivatives: of one, PyTorch's are constant."""
    return {"correction": 0} if count < 2 else {}


def filled(x):
    """Return x, of which a variance may be taken: without history if it is empty, as PyTorch's are constant then."""
    return x if x.numel() else x.detach()


def mean_and_spread(lib, x):
    """Return what gives the mean of x along its first dimension and its spread.

    PyTorch's second derivative of the deviation of equal elements is NaN: of these it is the variance.
    """
    with lib.no_grad():
        deviates = x.ndim > 0 and len(x) > 1 and bool((x.amax(0) > x.amin(0) + NEAR).all())
    return lib.std_mean if deviates else lib.var_mean


def outputs(self, x):
    """Use some of the outputs of an operation that has several."""
    mean_and = mean_and_spread(self.lib, x)
    if x.ndim == 0:
        x = x.expand(3)
    several = (
        lambda: x.unbind(0),
        lambda: x.split(1),
        lambda: self.lib.var_mean(filled(x * 1.0), **correction(x.numel())),
        lambda: mean_and(filled(x + alone(self.weight).sum() * 3.0), 0, **correction(len(x))),
        lambda: x.chunk(2, -1),
        lambda: (x.max(0).values, x.min(0).values) if apart(x, 0) else (x.mean(0), x.sum(0)),
    )[self.a % 6]()
    return several[0].sin() + several[-1] if self.a % 5 else several[self.a % 2].sin()


def number(self, x):
    """Return a tensor of no dimension, by a way of its own kind."""
    ways = (
        lambda: x.sum() * alone(self.bias).sum(),
        lambda: (x * x).mean(),
        lambda: x.sum().exp().tanh(),
        lambda: self.lib.stack([x.sum(), alone(self.bias).sum() * 0.5]).unbind(0)[1] * x.sum(),
        lambda: x.reshape(-1)[0] * 0.5 if x.numel() else x.sum(),
    )
    return ways[self.a % 5]()


def spread_out(self, x):
    """Return the shape of the program from a number."""
    return x.sum() * self.weight + alone(self.bias).sum() * 0.5


def packed(self, x):
    """Save what a Function needs through a pair of hooks."""

    def pack(tensor):
        self.note("pack", tensor)
        return tensor.detach() * 2.0

    def unpack(halved):
        self.note("unpack", halved)
        return halved * 0.5

    with self.lib.autograd.graph.saved_tensors_hooks(pack, unpack), unrecorded_in_inference_mode(self.lib):
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
        *(by_mode, fails, collect, chain, residual, branch, product, repeat, inner),
    )
}
