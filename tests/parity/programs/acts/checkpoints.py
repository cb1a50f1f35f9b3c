"""The parts of a program that checkpoint others, and what is known of the checkpoints that have run."""

from __future__ import annotations

from tests.parity.programs.bodies import passed, unrecorded_in_inference_mode
from tests.parity.programs.graphs import at_boundary, nodes_above, overlap


class Checkpoints:
    """Of a program: what its checkpoints were given, the nodes they returned, and the kinds of those that run.

    What else is not to be changed in place counts as given.
    """

    def __init__(self, *, mixed):
        self.mixed = mixed
        self.fixed, self.nodes, self.inside = [], [], []

    def keep(self, x):
        """Tell whether one may have saved x: PyTorch does not see a change of it, nor lucid one of what was cast."""
        return self.mixed or bool(self.inside) or any(overlap(x, fixed) for fixed in self.fixed)

    def differ_for_none(self, lib, x):
        """Tell whether None as the gradient of x matters: PyTorch runs checkpoints again, and gives modules zeros."""
        if lib.is_inference_mode_enabled():
            # PyTorch's boundaries are there if gradients are enabled inside of it, and lucid's are not
            return True
        return "plain" in self.inside or any(at_boundary(n) or n in self.nodes for n in nodes_above([x]))


def repeated(self, run, function, x, *args, reentrant=False, **options):
    """Return ``run(function, x, ...)`` with notes of what this checkpoint keeps and where it stands in the graph."""
    checkpoints = self.checkpoints
    if "plain" in checkpoints.inside and x.is_leaf and x.requires_grad:
        # of a checkpoint in a checkpoint lucid keeps an argument that is a leaf, PyTorch runs the outer one for it
        x = x * 1.0
    if x.requires_grad:
        # a view that cannot be taken again is refused here, by PyTorch where it is used
        x.grad_fn
    checkpoints.fixed.append(x)
    with unrecorded_in_inference_mode(self.lib):
        out = run(function, x, *args, use_reentrant=reentrant, **options)
    checkpoints.nodes.append(out.grad_fn)
    return out


def inside(self, function, kind="plain"):
    """Return the function with a note, while it runs, that a checkpoint runs it."""

    def noted(*args, **kwargs):
        self.checkpoints.inside.append(kind)
        try:
            return function(*args, **kwargs)
        finally:
            self.checkpoints.inside.pop()

    return noted


def checkpointed(self, x):
    function = inside(self, lambda x: passed(self, 0, x))
    return repeated(self, self.lib.utils.checkpoint.checkpoint, function, x, early_stop=self.early_stop)


def by_keyword(self, x):
    """Checkpoint a child with an argument that is no tensor, and one by name."""
    function = inside(self, lambda x, times, *, shift: passed(self, 0, x) * times + shift)
    run = self.lib.utils.checkpoint.checkpoint
    return repeated(self, run, function, x, 0.5, shift=x * 0.25, early_stop=self.early_stop)


def segments(self, x):
    """Checkpoint the children in two segments."""
    functions = [inside(self, lambda x, i=i: passed(self, i, x)) for i in range(len(self.spec.children))]

    def run(function, x, **options):
        return self.lib.utils.checkpoint.checkpoint_sequential(functions, 2, x, **options)

    return repeated(self, run, None, x)


def reentrant(self, x):
    rest = 0.5 if self.checkpoints.differ_for_none(self.lib, x) else None
    function = inside(self, lambda x: passed(self, 0, x) + x * rest if rest else passed(self, 0, x), "reentrant")
    return repeated(self, self.lib.utils.checkpoint.checkpoint, function, x, reentrant=True)


CHECKPOINTED = {body.__name__: body for body in (checkpointed, by_keyword, segments, reentrant)}
