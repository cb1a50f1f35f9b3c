"""Runs the steps of a program on one of the two libraries, and notes everything that happens.

A step is a kind of act and four numbers. What the numbers select is decided while the program runs, by what is the same
on both sides; so every list of steps is a program, and a failing one can be shortened by leaving steps out.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any, NamedTuple

import numpy as np

from tests.parity.programs.acts.checkpoints import Checkpoints
from tests.parity.programs.acts.forwards import Forwards
from tests.parity.programs.acts.modes import Modes
from tests.parity.programs.acts.module_hooks import ModuleHooks
from tests.parity.programs.acts.passes import Passes
from tests.parity.programs.acts.training import Training
from tests.parity.programs.functions import COMPLETE
from tests.parity.programs.parts import STRUCTURED, function_of, parts
from tests.parity.programs.structures import values_of

LEAVES = 3


class Step(NamedTuple):
    """One act: what kind, and four numbers that select operands and settings."""

    kind: str
    a: int = 0
    b: int = 0
    c: int = 0
    d: int = 0


class Event(NamedTuple):
    """One hook call, or how an act ended: a name, and the values that were seen; `said` is not compared."""

    name: str
    seen: Any = ()
    said: str = ""


class Raised(NamedTuple):
    """The classes of an error, to those who know no library."""

    classes: tuple[str, ...]


def raised(error):
    """Return what is compared of an error: one of lucid's may belong to several classes, PyTorch's among them."""
    known = {"builtins", "tests.parity.programs.structures"}
    return Raised(tuple(c.__name__ for c in type(error).__mro__ if c.__module__ in known))


class Machine(Forwards, Passes, Training, Modes, ModuleHooks):
    """Runs programs; the methods named after a kind of step are the acts."""

    def __init__(self, lib, program):
        self.lib = lib
        self.program = program
        self.shape = program.shape
        self.rng = np.random.default_rng(program.seed)
        self.events = []
        self.script = []
        self.checkpoints = Checkpoints(mixed=program.mixed)
        self.parts = parts(lib, program, self.rng, self.note_part, self.checkpoints)
        self.net = self.parts[-1]
        kinds = {part.kind for part in self.parts}
        self.structured = bool(kinds & STRUCTURED)
        # the numbers of parts that a checkpoint runs again
        repeating = [part for part in self.parts if part.kind in {"checkpointed", "by_keyword", "segments"}]
        self.repeated = {p.number for part in repeating for p in part.modules() if p is not part}
        # to what is not used, or is no parameter of theirs
        nones = [spec for spec in program.specs if spec.kind == "function" and function_of(spec) not in COMPLETE]
        self.returns_none = bool(nones) or "reentrant" in kinds
        self.forwards = 0
        self.muted = False
        self.names = {}
        self.pool = []
        # by id: the first tensor on the same memory; and what must stay as it is
        self.memory = {}
        self.frozen = set()
        # by id: outputs of operations that have several
        self.shared = set()
        for _ in range(LEAVES):
            self.put(self.leaf(), "leaf")
        self.put(self.leaf(()), "number")
        self.put(self.values(self.shape), "constant")
        self.init_modes()
        self.init_hooks()
        self.new_optimizer()

    # Running

    def run(self, steps):
        """Run all steps; an error that one raises is noted, and the next goes on."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                for number, step in enumerate(steps):
                    act = functools.partial(getattr(self, step.kind), *step[1:])
                    if step.kind != "mode":
                        act = self.in_modes(act)
                    self.attempt(f"step {number} ({step.kind})", act)
            finally:
                self.remove_global_hooks()

    def attempt(self, name, act, *args):
        """Return what an act gives, or None and note what it raised."""
        try:
            return act(*args)
        except Exception as error:  # noqa: BLE001  whatever an act raises is what is compared
            said = f"{type(error).__name__}: {str(error)[:300].splitlines()[0] if str(error) else ''}"
            self.events.append(Event(f"{name} raises", raised(error), said))
            self.say(f"# raises {said}")
            self.forget_refused()
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

    def values(self, shape, **options):
        """Return a tensor of random values, in mixed programs of either dtype in turn."""
        dtype = self.lib.float32 if self.program.mixed and len(self.pool) % 2 else self.lib.float64
        return self.lib.tensor(self.rng.uniform(-1.0, 1.0, shape), dtype=dtype, **options)

    def leaf(self, shape=None):
        return self.values(self.shape if shape is None else shape, requires_grad=True)

    def put(self, tensor, name, of=None):
        """Add a tensor to the pool, once, and return its name; `of` is what it may share memory with."""
        if of is not None and of is not tensor:
            self.memory[id(tensor)] = self.owner(of)
            if tensor._base is not None and getattr(of, "of_other_nodes", False):
                # PyTorch takes it again: what a linear layer without bias makes of a vector was changed in place
                tensor.of_other_nodes = True
        if id(tensor) not in self.names:
            self.pool.append(tensor)
            self.names[id(tensor)] = f"{name}{len(self.names)}"
        return self.name(tensor)

    def owner(self, tensor):
        """Return the id of the first tensor of the program on the memory of this one."""
        return self.memory.get(id(tensor), id(tensor))

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
        # a view is none, and one that may not be used any more refuses to say so
        return self.parameters() + [t for t in self.pool if t._base is None and t.is_leaf and t.requires_grad]

    def forget_graph(self):
        """Keep only the leaves: the graph of the others is used up, or its saved tensors were changed."""
        self.kept += [t for t in self.pool if not t.is_leaf]
        self.pool = [t for t in self.pool if t.is_leaf]

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
