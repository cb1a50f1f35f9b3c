"""The modules that random programs are made of: one class, whose `forward` is a function of either library.

Whatever one part hands to another has the shape of the program, or no dimension, so that any part fits any other.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from tests.parity.programs.acts.checkpoints import CHECKPOINTED
from tests.parity.programs.bodies import BODIES
from tests.parity.programs.functions import NAMES, functions

# PyTorch fires no backward hook for tensors in the arguments or outputs of these, lucid does (contract 5.8)
STRUCTURED = frozenset({"dictionary", "listed", "collect", "gathered"})


class Spec(NamedTuple):
    """One part: its kind, the numbers of its children among the parts before it, and a number that selects details."""

    kind: str
    children: tuple[int, ...] = ()
    a: int = 0


def function_of(spec):
    """Return the name of the Function that a part of the kind `function` applies."""
    return NAMES[spec.a % len(NAMES)]


def parts(lib, program, rng, note, checkpoints):
    """Return the modules of a program, in the order of their specs; they note in the last two what they do."""
    specs, shape = program.specs, program.shape

    def values(spec, *shape):
        dtype = lib.float32 if program.mixed and spec.a % 3 == 1 else lib.float64
        return lib.tensor(rng.uniform(-1.0, 1.0, shape), dtype=dtype)

    class Part(lib.nn.Module):
        def __init__(self, spec, children):
            super().__init__()
            self.spec, self.kind, self.a = spec, spec.kind, spec.a
            self.calls = 0
            for index, child in enumerate(children):
                setattr(self, f"c{index}", child)
            if not children:
                self.weight = lib.nn.Parameter(values(spec, *(() if spec.a % 4 == 1 else shape)))
                self.bias = lib.nn.Parameter(values(spec, *shape[-1:]))

        @property
        def function(self):
            return function_of(self.spec)

        @property
        def early_stop(self):
            # a gradient taken inside of the first run makes lucid recompute what it needs, and PyTorch all without it
            return self.a % 2 == 0 or any(part.kind == "inner" for part in self.modules())

        def child(self, index):
            return getattr(self, f"c{index % len(self.spec.children)}")

        def forward(self, *args, **kwargs):
            return (BODIES | CHECKPOINTED)[self.kind](self, *args, **kwargs)

    # of the class, so that copies share them
    Part.lib, Part.functions, Part.note = lib, functions(lib), staticmethod(note)
    Part.checkpoints = checkpoints
    made = []
    for number, spec in enumerate(specs):
        if spec.kind == "linear" and shape:
            sizes = shape[-1], shape[-1]
            part = lib.nn.Linear(*sizes, bias=spec.a % 3 != 0, dtype=values(spec).dtype)
            with lib.no_grad():
                for p in part.parameters():
                    p.copy_(values(spec, *p.shape))
        elif spec.kind == "activation":
            part = (lib.nn.Tanh, lib.nn.Softplus, lib.nn.Sigmoid)[spec.a % 3]()
        else:
            if spec.kind == "linear":
                # no matrix fits what has no dimension
                spec = spec._replace(kind="affine")
            part = Part(spec, [made[child] for child in spec.children])
            if spec.kind == "affine" and spec.a % 3 == 0:
                tied = [m for m in made if m.kind == "affine"]
                if tied:
                    part.weight = tied[spec.a % len(tied)].weight
        part.kind, part.a, part.number, part.mixed = spec.kind, spec.a, number, program.mixed
        part.output_hooks = OrderedDict()
        made.append(part)
    return made
