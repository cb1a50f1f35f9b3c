"""The node of a recorded primitive: runs the rules of its plan on its saved values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import is_list
from lucid.autograd.engine.node import Node
from lucid.autograd.modes.autocast import casting_on, without_autocast
from lucid.autograd.modes.state import NumPyComplaints, unusual
from lucid.autograd.recording.namespace import CUDA, GRAPH
from lucid.autograd.recording.saved import changed_error, freed_error, saved_tensor, unpacked_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.autograd.base import Edge
    from lucid.autograd.recording.namespace import Namespace
    from lucid.autograd.recording.plan import DerivativePlan
    from lucid.autograd.recording.primitive import Primitive
    from lucid.base.arrays import Array


NO_SETTINGS: dict[str, Any] = {}


class PrimitiveNode(Node):
    """A recorded primitive.

    Attributes
    ----------
    kept : tuple
        The plan; the saved arrays, numbers or packed forms, None once freed; version counter and its count at saving,
        in turn, for each saved tensor; shapes and settings.
    """

    __slots__ = ("kept", "outputs")

    primitive: Primitive

    def backward(self, m: Namespace, grad: Array, quiet: Callable[..., Any]) -> tuple[Any, ...]:
        """Return the gradient of each operand; None for all if there is no gradient to pass on."""
        plan, saved, versions, values = self.kept
        if saved is None or (versions and (len(versions) != 2 or versions[0][0] != versions[1])):
            saved = self.check()
        if grad is None:
            return (None,) * len(self.edges)
        if m is GRAPH:
            if unusual and casting_on():
                with without_autocast():
                    return self.backward(m, grad, quiet)
            return plan.run(m, grad, self.saved_on_graph() + values, self.edges)
        if type(saved) is not tuple:
            saved = tuple(unpacked_array(entry) for entry in saved)
        if m is CUDA and plan.by_launches is not None:
            grads: Any = grad if is_list(grad) else (grad,)
            return plan.by_launches((*grads, *saved, *values), NO_SETTINGS)[0]
        try:
            if plan.joint:
                if not saved and len(values) == 2:
                    # sums and differences: what is written out here is called for half the price of a star
                    first, second = values
                    return plan.direct(m, grad, first, second)
                return plan.direct(m, grad, *saved, *values)
            if plan.direct is not None:
                edges = self.edges
                result = plan.direct(m, grad, *saved, *values)
                return (result,) if len(edges) == 1 else (result, None) if edges[0] is not None else (None, result)
            return plan.run(m, grad, saved + values, self.edges)
        except NumPyComplaints:
            # infinities, where NumPy's warnings are turned into errors
            return quiet(plan.run, m, grad, saved + values, self.edges)

    def backward_to(
        self, wanted: tuple[bool, ...], m: Namespace, grad: Array, quiet: Callable[..., Any]
    ) -> tuple[Any, ...]:
        """Return the gradients of the wanted operands, and None for the others."""
        saved = self.check()
        if grad is None:
            return (None,) * len(self.edges)
        plan, _, _, values = self.kept
        run = plan.narrowed(wanted).run
        if m is GRAPH:
            if unusual and casting_on():
                with without_autocast():
                    return self.backward_to(wanted, m, grad, quiet)
            grads = run(m, grad, self.saved_on_graph() + values, self.edges)
        else:
            grads = quiet(run, m, grad, tuple([unpacked_array(entry) for entry in saved]) + values, self.edges)
        return tuple([g if want else None for g, want in zip(grads, wanted, strict=True)])

    def check(self) -> tuple[Any, ...]:
        """Return the saved values, or raise if one was freed or changed.

        Raises
        ------
        GraphError
            If it was freed.
        InplaceError
            If a saved tensor was changed in place since.
        """
        _, saved, versions, _ = self.kept
        if saved is None:
            raise freed_error(self.name())
        for k in range(0, len(versions), 2):
            if versions[k][0] != versions[k + 1]:
                raise changed_error(self.name(), k // 2, versions[k + 1], versions[k])
        return saved

    def saved_on_graph(self) -> tuple[Any, ...]:
        """Return the saved values, each array as a tensor joined to the graph."""
        saved = self.check()
        versions = self.kept[2]
        counters = iter(versions[::2])
        tensors: list[Any] = []
        for k, entry in enumerate(saved):
            if entry is None or isinstance(entry, int | float | complex):
                tensors.append(entry)
                continue
            tensors.append(saved_tensor(entry, self.edge_of_saved(k), next(counters, None) or [0]))
        return tuple(tensors)

    def edge_of_saved(self, k: int) -> Edge | None:
        """Return the edge of the gradient of the saved tensor number `k`."""
        plan: DerivativePlan = self.kept[0]
        if k < len(plan.saves):
            return self.edges[plan.saves[k]]
        output = plan.saves_outs[k - len(plan.saves)]
        return (self, output) if output in self.primitive.differentiable else None

    def release(self) -> None:
        """Free the saved values."""
        plan, saved, _, values = self.kept
        if saved:
            self.kept = plan, None, (), values
