"""What the graph above a tensor holds: where lucid and PyTorch build other nodes, or treat None otherwise."""

from __future__ import annotations

from tests.parity.programs.functions import NAMES


def nodes_above(tensors):
    """Return the nodes that a pass from these tensors can reach."""
    pending = [t.grad_fn for t in tensors if t.grad_fn is not None]
    found = set(pending)
    while pending:
        following = {node for node, _ in pending.pop().next_functions if node is not None} - found
        found |= following
        pending += following
    return found


def at_boundary(node):
    """Tell whether a node is one of those around a module that has backward hooks."""
    return "BackwardHook" in node.name() or "Module" in node.name()


def is_reentrant(node):
    """Tell whether a node is that of a reentrant checkpoint."""
    return node.name() == "CheckpointFunctionBackward"


def of_function(node):
    """Tell whether a node is that of one of the programs' Functions."""
    return node.name().removesuffix("Backward") in NAMES


def gives_indices(node):
    """Tell whether a node has a place for indices among its outputs in lucid."""
    return node.name().startswith("SortBackward")


def converts(node):
    """Tell whether what a node computed with had another dtype before, which in lucid a node of its own has cast."""
    following = [(f, output) for f, output in node.next_functions if f is not None]
    if any(f.name().startswith(("ToCopyBackward", "CastBackward")) for f, _ in following):
        return True
    if not hasattr(node, "_input_metadata") or node.name().startswith("ToCopyBackward"):
        return False
    # these take any dtype, in lucid too
    if of_function(node) or is_reentrant(node):
        return False
    dtypes = {meta.dtype for meta in node._input_metadata}
    return any(f._input_metadata[output].dtype not in dtypes for f, output in following)


def overlap(x, y):
    """Tell whether two tensors may lie in the same memory."""

    def ends(t):
        last = sum((size - 1) * stride for size, stride in zip(t.shape, t.stride(), strict=True))
        return t.data_ptr(), t.data_ptr() + (last + 1) * t.element_size()

    (a, b), (c, d) = ends(x), ends(y)
    return x.numel() > 0 and y.numel() > 0 and a < d and c < b
