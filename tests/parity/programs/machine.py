"""Runs the steps of a program on one of the two libraries, and notes everything that happens.

A step is a kind of act and four numbers. What the numbers select is decided while the program runs, by what is the same
on both sides; so every list of steps is a program, and a failing one can be shortened by leaving steps out.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any, NamedTuple

import numpy as np

from tests.parity.programs.module_hooks import ModuleHooks
from tests.parity.programs.parts import CHECKPOINTS, LARGE, SHAPE, STRUCTURED, feed, parts, tensors_of, values_of

LEAVES = 3


class Step(NamedTuple):
    """One act: what kind, and four numbers that select operands and settings."""

    kind: str
    a: int = 0
    b: int = 0
    c: int = 0
    d: int = 0


class Event(NamedTuple):
    """One hook call, or how an act ended: a name, and the values that were seen."""

    name: str
    seen: Any = ()


def builtin_class(error):
    """Return the name of the class that an error is to those who know no library."""
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ in {"builtins", "tests.parity.programs.parts"})


class Machine(ModuleHooks):
    """Runs programs; the methods named after a kind of step are the acts."""

    def __init__(self, lib, program):
        self.lib = lib
        self.rng = np.random.default_rng(program.seed)
        self.events = []
        self.script = []
        self.parts = parts(lib, program.specs, self.rng, self.note_part)
        self.net = self.parts[-1]
        kinds = {spec.kind for spec in program.specs}
        self.structured = bool(kinds & STRUCTURED)
        self.has_reentrant = "reentrant" in kinds
        self.has_checkpoint = bool(kinds & CHECKPOINTS)
        self.changes_input = "change_input" in kinds
        self.forwards = 0
        self.muted = False
        self.names = {}
        self.pool = []
        for _ in range(LEAVES):
            self.put(self.leaf(), "leaf")
        self.init_hooks()
        self.optimizer = lib.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9) if self.parameters() else None

    # Running

    def run(self, steps):
        """Run all steps; an error that one raises is noted, and the next goes on."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                for number, step in enumerate(steps):
                    self.attempt(f"step {number} ({step.kind})", getattr(self, step.kind), *step[1:])
            finally:
                self.remove_global_hooks()

    def attempt(self, name, act, *args):
        """Return what an act gives, or None and note what it raised."""
        try:
            return act(*args)
        except Exception as error:  # noqa: BLE001  whatever an act raises is what is compared
            self.events.append(Event(f"{name} raises {builtin_class(error)}"))
            self.say(f"# raises {type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''}")
            self.error = error
            return None

    def note(self, name, *seen):
        """Note that something happened, and the values that it saw."""
        self.events.append(Event(name, values_of(seen)))

    def note_part(self, name, *seen):
        """Note what a part has to say, but for a pass through derivatives."""
        if not self.muted:
            self.note(name, *seen)

    def say(self, line):
        """Add a line to the readable form of the program."""
        self.script.append(line)

    def leaf(self):
        return self.lib.tensor(self.rng.uniform(-1.0, 1.0, SHAPE), requires_grad=True)

    def put(self, tensor, name):
        """Add a tensor to the pool, once, and return its name."""
        if id(tensor) not in self.names:
            self.pool.append(tensor)
            self.names[id(tensor)] = f"{name}{len(self.names)}"
        return self.name(tensor)

    def name(self, tensor):
        return self.names.get(id(tensor), "?")

    def pick(self, number, keep=lambda tensor: True):
        """Return a tensor of the pool that `keep` accepts, the newest for 0; None if there is none."""
        fitting = [tensor for tensor in self.pool if keep(tensor)]
        return fitting[-1 - number % len(fitting)] if fitting else None

    def distinct(self, numbers, keep):
        """Return a tensor for each number, each tensor once."""
        chosen = [self.pick(number, keep) for number in numbers]
        return list({id(tensor): tensor for tensor in chosen if tensor is not None}.values())

    def parameters(self):
        return list(self.net.parameters())

    def leaves(self):
        """Return what accumulates: the parameters and the leaves of the pool."""
        return self.parameters() + [t for t in self.pool if t.is_leaf and t.requires_grad]

    def forget_graph(self):
        """Keep only the leaves: the graph of the others is used up, or its saved tensors were changed."""
        self.kept += [t for t in self.pool if not t.is_leaf]
        self.pool = [t for t in self.pool if t.is_leaf]

    # Forward

    def call(self, part, x, how):
        """Add what a part makes of x to the pool."""
        self.forwards += 1
        given = x * 1.0 if how % 3 == 0 else x
        if float(x.detach().abs().max()) > LARGE:
            given = x.tanh()
        self.say(f"{self.name(x)} -> m{part.number}({'copy' if how % 3 == 0 else ''})")
        out = feed(self.lib, part, given)
        tensors = tensors_of(self.lib, out)
        self.say(f"   = {[self.put(t, 'y') for t in tensors]}")
        self.note("output", out, [(t.requires_grad, t.is_leaf) for t in tensors])

    def forward(self, a, b, c, d):
        part = self.parts[b % len(self.parts)] if c % 3 == 0 else self.net
        self.call(part, self.pick(a, lambda t: tuple(t.shape) == SHAPE), d)

    def quiet_forward(self, a, b, c, d):
        with self.lib.no_grad():
            self.forward(a, b, c, d)

    def direct_forward(self, a, b, c, d):
        """Call `forward` itself, which fires no hooks of the module."""
        part = self.parts[b % len(self.parts)]
        if part.kind not in {"two", "mixed", "by_name", "gathered"}:
            x = self.pick(a, lambda t: tuple(t.shape) == SHAPE)
            self.say(f"m{part.number}.forward({self.name(x)})")
            out = part.forward(x)
            self.say(f"   = {[self.put(t, 'y') for t in tensors_of(self.lib, out)]}")

    def unary(self, a, b, c, d):
        x = self.pick(a)
        y = (x.sin, x.tanh, x.clone, lambda: x * 2.0, x.detach, lambda: x[0].expand(2, 3), lambda: x.sum())[b % 7]()
        self.say(f"{self.put(y, 'u')} = unary {b % 7} of {self.name(x)}")

    def binary(self, a, b, c, d):
        x, y = self.pick(a), self.pick(b)
        z = x + y if c % 2 else x * y
        self.say(f"{self.put(z, 'b')} = {self.name(x)} {'+' if c % 2 else '*'} {self.name(y)}")

    def change_copy(self, a, b, c, d):
        """Change a copy, which nothing has saved, in place."""
        x = self.pick(a) * 1.0
        y = self.pick(b, lambda t: t.shape == x.shape)
        if d % 2:
            self.say(f"{self.put(x, 'c')} will be changed in place")
            if d % 4 == 1 and x.requires_grad:
                self.tensor_hook(0, b, c, d)
        (lambda: x.mul_(0.5), lambda: x.add_(y), lambda: x.mul_(y), lambda: x[:1].neg_())[c % 4]()
        self.say(f"{self.put(x, 'c')} changed in place (way {c % 4}) with {self.name(y)}")

    def change_output(self, a, b, c, d):
        """Change something of the pool in place: refused for leaves and at the boundary of hooked modules."""
        x = self.pick(a)
        # PyTorch takes a view of a changed base for a leaf unless its node was brought up to date
        _ = x.grad_fn
        # a change of a view: PyTorch forgets hooks of what it was
        if x._base is not None and (self.output_hooked or id(x) in self.hooked):
            return
        self.say(f"{self.name(x)}.mul_(0.5)")
        x.mul_(0.5)

    # Backward

    def is_watched(self, t):
        """Tell whether a multi-grad hook waits for a tensor, or for another output of its node."""
        # only outputs of a module share a node
        return id(t) in self.watched or (
            not t.is_leaf and self.at_boundary(t.grad_fn) and any(t.grad_fn is node for node in self.watched_nodes)
        )

    def roots(self, numbers):
        """Return up to two tensors that require grad, with a random gradient for each."""
        chosen = self.distinct(numbers, lambda t: t.requires_grad and not self.is_watched(t))
        if not chosen:
            chosen = [self.leaf() * 1.0]
        if len(chosen) > 1:
            # in which order PyTorch reaches several leaves that are roots is no rule
            chosen = [t if t.grad_fn is not None else t * 1.0 for t in chosen]
        return chosen, [self.lib.tensor(self.rng.standard_normal(tuple(t.shape))) for t in chosen]

    def fresh_roots(self, numbers):
        """Return copies as roots: PyTorch fires the hooks of a root that leads to no input, lucid does not."""
        roots, grads = self.roots(numbers)
        return [root * 1.0 for root in roots], grads

    def backward(self, a, b, c, d):
        roots, grads = self.roots((a, b) if c % 2 else (a,))
        times = 1 + (d % 3 == 0)
        self.say(f"backward({[self.name(t) for t in roots]}) x {times}")
        try:
            for time in range(times):
                self.lib.autograd.backward(roots, grads, retain_graph=time + 1 < times or d % 4 == 0)
                self.note("gradients", [t.grad for t in self.leaves()])
        except Exception:
            self.forget_graph()
            raise
        if d % 4:
            self.forget_graph()

    def inputs(self, numbers):
        # PyTorch runs the node of an input that is no leaf, and its hooks, though nobody gets what it gives; and it
        # refuses multi-grad hooks on inputs of autograd.grad
        found = self.distinct(numbers, lambda t: t.is_leaf and t.requires_grad) + self.parameters()[: numbers[0] % 3]
        return [t for t in found if id(t) not in self.watched]

    def backward_to_inputs(self, a, b, c, d):
        roots, grads = self.fresh_roots((a,))
        inputs = self.inputs((b, c))
        self.say(f"backward({[self.name(t) for t in roots]}, inputs={[self.name(t) for t in inputs]})")
        try:
            self.lib.autograd.backward(roots, grads, inputs=inputs)
        finally:
            self.forget_graph()
        self.note("gradients", [t.grad for t in self.leaves()])

    def grad(self, a, b, c, d):
        roots, grads = self.fresh_roots((a,))
        inputs = self.inputs((b, c))
        if d % 2 and not self.has_reentrant:
            # a hook on an input that is no leaf: PyTorch returns what the hook was given if another input lies below
            inputs += self.distinct(
                (d,), lambda t: t.requires_grad and not t.is_leaf and id(t) not in self.hooked | self.watched
            )
        inputs = list({id(t): t for t in inputs}.values()) or [self.leaf()]
        self.say(f"autograd.grad({[self.name(t) for t in roots]}, {[self.name(t) for t in inputs]})")
        try:
            self.note("grad", self.lib.autograd.grad(roots, inputs, grads, allow_unused=True))
        finally:
            self.forget_graph()

    def double(self, a, b, c, d):
        """Differentiate by the leaves twice.

        The second pass goes through the recorded derivatives, and how these use intermediate tensors is each side's own
        affair: only hooks of leaves act there, and only what reaches leaves is compared.
        """
        if self.has_reentrant:
            # refused by lucid, wrong in PyTorch
            return
        # as in `inputs`
        leaves = [t for t in self.leaves() if id(t) not in self.watched] or [self.leaf()]
        roots, grads = self.fresh_roots((a, b) if c % 2 else (a,))
        self.say(f"double backward of {[self.name(t) for t in roots]}")
        try:
            first = self.lib.autograd.grad(roots, leaves, grads, create_graph=True, allow_unused=True)
            self.note("first", first)
            total = sum((g * g).sum() for g in first if g is not None and g.requires_grad)
            if isinstance(total, self.lib.Tensor) and total.requires_grad:
                self.muted = True
                total.backward()
            for note in sorted(self.unordered, key=lambda note: note[0]):
                self.note(*note)
        finally:
            self.unordered.clear()
            self.muted = False
            self.forget_graph()
        zero = self.lib.zeros(SHAPE)
        self.note("second", [zero if t.grad is None else t.grad for t in leaves])
        for t in leaves:
            t.grad = None

    # Training

    def zero_grad(self, a, b, c, d):
        if a % 3 == 0 and self.optimizer:
            self.say(f"optimizer.zero_grad({b % 2 == 0})")
            self.optimizer.zero_grad(set_to_none=b % 2 == 0)
        else:
            self.say(f"net.zero_grad({b % 2 == 0})")
            self.net.zero_grad(set_to_none=b % 2 == 0)
        self.note("zeroed", [p.grad for p in self.parameters()])

    def optimizer_step(self, a, b, c, d):
        if self.optimizer:
            self.say("optimizer.step()")
            self.optimizer.step()
            self.forget_graph()
            self.note("stepped", self.parameters())

    def optimizer_hook(self, a, b, c, d):
        """Register a hook of the optimizer's step; it goes with the optimizer."""
        if not self.optimizer:
            return
        plan = self.plan("optimizer_hook", b)
        # PyTorch walks the living tables
        plan.fixed = True
        plan.act = "observe" if plan.act == "remove itself" else plan.act

        def hook(optimizer, args, kwargs):
            self.fire(plan, [len(args), kwargs, [p.grad for p in self.parameters()]], lambda: None)

        register = self.optimizer.register_step_post_hook if a % 2 else self.optimizer.register_step_pre_hook
        self.keep(plan, register(hook), "the optimizer" + (" after" if a % 2 else " before"))

    def assign(self, a, b, c, d):
        """Store a new parameter or buffer in a part that has some of its own."""
        fitting = [part for part in self.parts if hasattr(part, "scaled") and not part.spec.children]
        if not fitting:
            return
        part = fitting[a % len(fitting)]
        value = self.lib.tensor(self.rng.uniform(-1.0, 1.0, SHAPE))
        self.forget_graph()
        if c % 3:
            self.say(f"m{part.number}.weight = Parameter")
            part.weight = self.lib.nn.Parameter(value)
        else:
            self.say(f"m{part.number}.register_buffer")
            part.register_buffer("state", value)
        self.note("stored", *[value for _, value in sorted(part.state_dict().items())])

    def mode(self, a, b, c, d):
        self.say(f"net.train({a % 2 == 0})")
        self.net.train(a % 2 == 0)

    def state_dict(self, a, b, c, d):
        part = self.parts[b % len(self.parts)] if a % 2 else self.net
        self.say(f"m{part.number}.load_state_dict(m{part.number}.state_dict())")
        state = part.state_dict()
        self.note("state", dict(state))
        part.load_state_dict({key: value * 0.5 for key, value in state.items()}, strict=c % 2 == 0)
        for note in self.after_load:
            self.note(*note)
        self.after_load.clear()
        self.forget_graph()
        self.note("loaded", self.parameters())

    def deepcopy(self, a, b, c, d):
        """Go on with a copy of the net."""
        self.say("net = deepcopy(net)")
        self.forget_graph()
        # the hooks' handles are those of the original
        self.originals.append(self.parts)
        copied = copy.deepcopy(self.parts)
        self.parts, self.net = copied, copied[-1]
        self.optimizer = self.lib.optim.SGD(self.parameters(), lr=0.1) if self.parameters() else None
        self.note("copied", [(p, p.grad) for p in self.parameters()])

    def end(self):
        """Note what is left at the end of the program."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.note_rest()

    def note_rest(self):
        for t in self.pool:
            self.note(self.name(t), t, t.requires_grad)
        for t in [*self.pool, *self.kept]:
            self.attempt(self.name(t), self.note_kept, t)
        self.note("gradients", [p.grad for p in self.parameters()])

    def note_kept(self, t):
        """Note the gradient of a tensor that keeps it."""
        # PyTorch looks at whether a view can still be used only when asked for its node
        _ = t.grad_fn
        if t.is_leaf or t.retains_grad:
            self.note(f"gradient of {self.name(t)}", t.grad)
