"""Draws random programs, and shortens those on which the libraries differ."""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.parity.programs.machine import Step
from tests.parity.programs.parts import Spec

LEAF_PARTS = (
    *("linear",) * 4,
    *("affine",) * 3,
    *("elementwise",) * 3,
    *("activation", "square", "identity", "parameter", "detached", "island", "inplace", "inplace", "change_input"),
    *("pair", "text", "named_tuple", "half_detached", "dictionary", "listed", "two", "two", "mixed", "mixed"),
    *("by_name", "gathered", "views", "views", "mean", "packed", "by_mode", "fails"),
    *("function",) * 6,
    *("outputs", "outputs", "number", "spread_out"),
)
# with how many children they have
CONTAINER_PARTS = (
    *(("chain", 3), ("chain", 2), ("residual", 1), ("branch", 3), ("branch", 2), ("product", 2), ("repeat", 1)),
    *(("collect", 2), ("checkpointed", 1), ("by_keyword", 1), ("segments", 3), ("reentrant", 1)),
    ("inner", 1),
)
DEPTH = 4
# of leaves and parameters: mostly a matrix, also a number, nothing, one element, a vector
SHAPES = (*((2, 3),) * 10, *((),) * 4, (0, 3), (1,), (3,))
STEPS = {
    "forward": 6, "quiet_forward": 1, "direct_forward": 1, "unary": 2, "binary": 3, "change_copy": 2,
    "change_output": 1, "change_view": 1, "view": 1, "several": 1, "mode": 2, "freeze": 1,
    "tensor_hook": 4, "retain": 2, "accumulate": 2, "node_pre": 1, "node_post": 1, "multi": 2,
    "forward_pre": 3, "forward_hook": 4, "backward_pre": 3, "backward_hook": 4, "output_hook": 2, "everywhere": 2,
    "state_hook": 1, "registration_hook": 1, "optimizer_hook": 1, "remove_hook": 2, "backward": 4,
    "backward_to_inputs": 1, "grad": 2, "double": 1, "zero_grad": 1, "optimizer_step": 2, "assign": 1, "train": 1,
    "state_dict": 1, "deepcopy": 1,
}  # fmt: skip
REGISTRATIONS = frozenset({
    "tensor_hook", "retain", "accumulate", "node_pre", "node_post", "multi", "forward_pre", "forward_hook",
    "backward_pre", "backward_hook", "output_hook", "everywhere", "state_hook", "registration_hook", "optimizer_hook",
})  # fmt: skip


class Program(NamedTuple):
    """Modules and steps; the seed draws the values of leaves, parameters and gradients.

    `shape` is that of leaves and parameters, which in `mixed` programs are of float32 and of float64.
    """

    seed: int
    specs: tuple[Spec, ...]
    steps: tuple[Step, ...]
    shape: tuple[int, ...] = (2, 3)
    mixed: bool = False


def generate(seed):
    """Return program number `seed`."""
    rng = random.Random(seed)
    specs = []

    def part(depth):
        """Add a part and return its number: a new one, or one that is there already."""
        if specs and rng.random() < 0.15:
            return rng.randrange(len(specs))
        if depth == 1 or (specs and rng.random() < 0.35):
            spec = Spec(rng.choice(LEAF_PARTS), (), rng.randrange(60))
        else:
            kind, count = rng.choice(CONTAINER_PARTS)
            spec = Spec(kind, tuple(part(depth - 1) for _ in range(count)), rng.randrange(60))
        specs.append(spec)
        return len(specs) - 1

    # the last part is the net; what reuses a part as the whole net is called anyway, as any part is
    part(rng.choice((1, 2, 3, 3, DEPTH, DEPTH)))

    def step(kind):
        return Step(kind, rng.randrange(8), rng.randrange(3600), rng.randrange(60), rng.randrange(60))

    hooks = {kind: weight for kind, weight in STEPS.items() if kind in REGISTRATIONS}
    kinds = rng.choices(list(hooks), list(hooks.values()), k=rng.randrange(0, 8))
    kinds += ["forward", *rng.choices(list(STEPS), list(STEPS.values()), k=rng.randrange(5, 30))]
    steps = [step(kind) for kind in kinds]
    steps += [step("forward"), step("backward")]
    return Program(seed, tuple(specs), tuple(steps), rng.choice(SHAPES), rng.random() < 0.15)


def shortened(program, fails):
    """Return a program on which `fails` still holds, without the steps and parts that do not matter."""
    size = max(1, len(program.steps) // 2)
    while size:
        at = 0
        while at < len(program.steps):
            shorter = program._replace(steps=program.steps[:at] + program.steps[at + size :])
            if fails(shorter):
                program = shorter
            else:
                at += size
        size //= 2
    for simpler in (program._replace(mixed=False), program._replace(shape=(2, 3))):
        if simpler != program and fails(simpler):
            program = simpler
    for at, spec in enumerate(program.specs):
        for kind in ("identity", "elementwise", "linear"):
            if spec.kind == kind:
                break
            simpler = program._replace(specs=(*program.specs[:at], Spec(kind), *program.specs[at + 1 :]))
            if fails(simpler):
                program = simpler
                break
    return program
