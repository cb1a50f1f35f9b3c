"""Nodes as they come into the graph: hooks of their creation."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd.graph import node_creation_hook, saved_tensors_hooks
from lucid.autograd.modes.state import thread, unusual
from lucid.errors import HookTypeError
from lucid.utils.checkpoint import checkpoint
from tests.pieces import in_threads

contract = pytest.mark.contract


class Double(lucid.autograd.Function):
    """Twice the input, with two outputs."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2, x * 2

    @staticmethod
    def backward(ctx, one, two):
        return 2 * (one + two)


def names_in(run):
    """Return the names of the nodes that are made while `run` runs."""
    made = []
    with node_creation_hook(made.append):
        run()
    return [node.name() for node in made]


@contract("2.7")
def test_every_node_once_in_order():
    """Each node comes once, in the order of recording, also of several outputs, of Functions and of boundaries."""
    x = lucid.ones(2, 3, requires_grad=True)
    layer = nn.Linear(3, 2)
    layer.register_full_backward_hook(lambda *_: None)
    assert names_in(lambda: (x * 2).split(1)) == ["MulBackward0", "SplitBackward0"]
    assert names_in(lambda: Double.apply(x)) == ["DoubleBackward"]
    assert names_in(lambda: layer(x)) == [
        "ModuleInputBackward",
        "LinearBackward0",
        "ModuleOutputBackward",
    ]
    # an op that is not recorded changes nothing for the next one
    assert names_in(lambda: (lucid.ones(2) * 2, x.detach() + 1, x * 2)) == ["MulBackward0"]
    with lucid.no_grad():
        assert names_in(lambda: x * 2) == []


@contract("2.7")
def test_a_change_of_a_view():
    """A change of a view makes the node of the op, and the base's new one."""
    base = lucid.ones(3, requires_grad=True) * 1
    view = base[:2]
    assert names_in(lambda: view.mul_(2))[:2] == ["MulBackward0", "CopySlices"]


@contract("2.7")
def test_the_node_is_whole():
    """The hook sees edges, saved tensors, packed ones too, and what it notes and registers is there in backward."""
    x = lucid.full((2,), 3.0, requires_grad=True)
    seen = []

    def hook(node):
        node.metadata["number"] = len(seen)
        seen.append(node)
        if node.name() == "MulBackward0":
            assert node._saved_self.tolist() == [3.0, 3.0]
            assert node.next_functions[0][0].variable is x
            node.register_hook(lambda grad_inputs, grad_outputs: tuple(g * 10 for g in grad_inputs))
        if node.name() == "DoubleBackward":
            assert node.saved_tensors[0].tolist() == [3.0, 3.0]

    for context in (lucid.enable_grad(), saved_tensors_hooks(lambda t: t.detach() * 1, lambda t: t)):
        x.grad = None
        seen.clear()
        with node_creation_hook(hook), context:
            y = (x * x).sum() + Double.apply(x)[0].sum()
        assert [node.metadata["number"] for node in seen] == [0, 1, 2, 3, 4]
        y.backward()
        assert x.grad.tolist() == [62.0, 62.0]


@contract("2.7")
def test_nested_hooks_and_what_they_record():
    """Nested hooks are called from the outermost on; what one of them records is not seen; each ends with its block."""
    x = lucid.ones(2, requires_grad=True)
    calls = []

    def outer(node):
        calls.append("outer")
        x * 3
        return "ignored"

    with node_creation_hook(outer):
        with node_creation_hook(lambda node: calls.append("inner")):
            x * 2
        assert calls == ["outer", "inner"]
        x * 2
    x * 2
    assert calls == ["outer", "inner", "outer"]
    assert thread.state not in unusual


@contract("2.7")
def test_passes_and_checkpoints_inside():
    """Nodes of a pass with create_graph, and of a checkpoint's second run, are seen where that runs inside."""
    x = lucid.ones(2, requires_grad=True)
    y = x.exp().sum()
    assert "MulBackward0" in names_in(lambda: lucid.autograd.grad(y, x, create_graph=True))
    assert names_in(lambda: x.exp().sum().backward()) == ["ExpBackward0", "SumBackward0"]
    z = checkpoint(lambda x: (x * x).exp(), x, use_reentrant=False, early_stop=False).sum()
    assert names_in(z.backward) == ["MulBackward0", "ExpBackward0"]


@contract("2.7")
def test_a_hook_that_raises():
    """An error says which hook raised it, and nothing stays behind; another thread has hooks of its own."""
    x = lucid.ones(2, requires_grad=True)
    seen = []

    def bad(node):
        raise ZeroDivisionError

    with node_creation_hook(bad):
        with pytest.raises(ZeroDivisionError) as error:
            x * 2
        assert any(
            "test_attach.py" in n and "node creation hook number 0 of MulBackward0" in n for n in error.value.__notes__
        )
        with pytest.raises(ZeroDivisionError):
            x * 2
        in_threads(lambda: seen.append((x * 2).tolist()))
    assert seen == [[2.0, 2.0]]

    def leaves_on(_):
        node_creation_hook(bad).__enter__()
        raise ZeroDivisionError

    handle = x.register_hook(leaves_on)
    with pytest.raises(ZeroDivisionError):
        (x * 2).sum().backward()
    handle.remove()
    assert (x * 2).tolist() == [2.0, 2.0]
    with pytest.raises(HookTypeError, match="node_creation_hook: hook: expected a callable hook, got int"):
        node_creation_hook(3)


@contract("2.7")
def test_values_are_those_without_it(rng):
    """Results and gradients are the same, bit by bit, on the longer path that fires hooks."""
    values = rng.standard_normal((4, 4)).astype(np.float32)
    results = []
    for hook in (None, lambda node: None):
        x = lucid.tensor(values, requires_grad=True)
        with node_creation_hook(hook) if hook else lucid.enable_grad():
            y = (x @ x).tanh().softmax(1).select(0, 1).sum() * 3 - x.exp().mean()
        y.backward()
        results.append((y.item(), x.grad.cpu().numpy()))
    assert results[0][0] == results[1][0]
    assert np.array_equal(results[0][1], results[1][1])
