"""Explanations in words: the hooks that will fire, their order, and why one will not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase, describe
from lucid.autograd.engine.node import AccumulateGrad
from lucid.autograd.hooks.firing import EveryStep, StandIn, stand_ins
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.views import live_edge
from lucid.hooks.listing import Row, node_path, table
from lucid.nn.hooks import Hook
from lucid.nn.module.module import Module
from lucid.nn.module.paths import module_path

if TYPE_CHECKING:
    from collections.abc import Iterator


# In the order in which a call and its backward pass come to them; those of all modules before the module's own.
KINDS = ("forward pre-hook", "forward hook", "output hook", "backward pre-hook", "backward hook")
BACKWARD = KINDS[2:]


def explain(subject: Module | TensorBase) -> str:
    """Return in words the hooks of a module or a tensor that will fire, in order, and those that will not, and why.

    Parameters
    ----------
    subject : Module or Tensor
        What is asked about, as it is now and in this thread's modes.

    Raises
    ------
    ArgumentError
        If it is neither.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks, nn
    >>> layer = nn.Linear(2, 2)
    >>> _ = layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    >>> with lucid.no_grad():
    ...     print(hooks.explain(layer).partition(" <lambda>")[0])
    module Linear
      will not fire: backward hook
    """
    if isinstance(subject, Module):
        return "\n".join(_of_module(subject))
    if isinstance(subject, TensorBase):
        return "\n".join(_of_tensor(subject))
    raise unfit(subject, "a Module or a Tensor", "subject")


def _of_module(module: Module) -> Iterator[str]:
    yield module_path(module)
    every = table(module)
    rows = [row for row in every if row.path in {"", "all modules"} and row.kind in KINDS]
    # a stable sort: those of all modules are last in the table, and first in a call
    rows.sort(key=lambda row: (KINDS.index(row.kind), row.path == ""))
    number = 0
    for row in rows:
        whose = " of all modules" if row.path else ""
        reason = _why_not(module, row)
        if reason:
            yield f"  will not fire: {row.kind}{whose} {row.name}: {reason}"
        else:
            number += 1
            needs = row.kind in BACKWARD and not any(parameter.requires_grad for parameter in module.parameters())
            condition = ", if an input requires grad, as no parameter does" if needs else ""
            yield f"  {number}. {row.kind}{whose} {row.name}{_remark(row)}{condition}"
    if not rows:
        yield "  no hooks"
    inner = len([row for row in every if row.path not in {"", "all modules", "all optimizers"}])
    if inner:
        yield f"  and {inner} on what is in it, which hooks.table lists"


def _why_not(module: Module, row: Row) -> str:
    """Return why a hook of a module will not fire in a call now; nothing if it will."""
    if not row.enabled:
        return "it is switched off; set enabled of its row in hooks.table"
    for each in stand_ins(row.hook(), StandIn):
        owner = getattr(each, "owner", None) if isinstance(each, StandIn) else None
        whose = owner() if callable(owner) else None
        if isinstance(whose, Hook):
            if module.training and not whose.trainexec:
                return "its Hook does not run in training mode (trainexec)"
            if not module.training and not whose.evalexec:
                return "its Hook does not run in evaluation mode (evalexec)"
    if row.kind in BACKWARD and (thread.state.grad_mode.inference or not thread.state.grad_mode.enabled):
        return "nothing is recorded here, under no_grad or in inference mode"
    return ""


def _remark(row: Row) -> str:
    """Return the remark on a hook; empty for most."""
    every_step = any(isinstance(each, EveryStep) for each in stand_ins(row.hook(), StandIn))
    return ", also in each replay of a captured step" if every_step else ""


def _of_tensor(tensor: TensorBase) -> Iterator[str]:
    edge = live_edge(tensor)
    yield f"tensor of {describe(tensor)}"
    if edge is None:
        yield "  no hooks: it does not require grad, so that none can be registered on it"
        return
    leaf = isinstance(edge[0], AccumulateGrad)
    yield "  a leaf: hooks fire before and after its .grad is changed" if leaf else f"  made by {edge[0].name()}"
    rows = [row for row in table(tensor) if row.path == node_path(edge[0])]
    order = ("tensor hook", "node prehook", "post-accumulate hook", "node posthook")
    for number, row in enumerate(sorted(rows, key=lambda row: order.index(row.kind)), start=1):
        off = ": will not fire, as it is switched off" if not row.enabled else _remark(row)
        yield f"  {number}. {row.kind} {row.name}{off}"
    if not rows:
        yield "  no hooks"
    if not leaf and edge[0].kept[1] is None:
        yield "  none will fire: a backward pass has freed what its node kept"
