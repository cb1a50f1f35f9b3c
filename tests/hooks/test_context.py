"""Hooks with context: what each is told, and how a backward finds its forward."""

from __future__ import annotations

import copy
import pickle

import pytest

import lucid
from lucid import hooks, nn
from lucid.errors import HookTypeError
from lucid.utils.checkpoint import checkpoint
from tests.device import DEVICE
from tests.pieces import module_of, raising


class Block(nn.Module):
    """Calls its layer twice."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3, device=DEVICE)

    def forward(self, x):
        return self.layer(self.layer(x).tanh())


def ones(*shape, grad=True):
    return lucid.ones(*shape, device=DEVICE, requires_grad=grad)


def keep(model, seen, *kinds):
    """Register what adds each context to `seen`."""
    for kind in kinds:
        getattr(model, f"register_{kind}")(lambda *given: seen.append(given[-1]), with_context=True)


CALLS = ("forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook")


def test_each_phase_of_a_call():
    model = nn.Sequential(nn.Tanh(), nn.Sequential(nn.Linear(3, 2, device=DEVICE)))
    seen = []
    keep(model[1][0], seen, *CALLS)
    model(ones(4, 3)).sum().backward()
    assert [c.phase for c in seen] == ["forward pre", "forward", "backward pre", "backward"]
    assert {(c.path, c.module, c.call, c.training, c.recomputing, c.capturing, c.rank) for c in seen} == {
        ("1.0", model[1][0], 0, True, False, False, 0)
    }
    assert [c.shapes for c in seen] == [[(4, 3)], [(4, 3), (4, 2)], [(4, 2)], [(4, 3), (4, 2)]]
    assert [c.node for c in seen] == [None, None, "ModuleOutputBackward", "ModuleInputBackward"]
    assert [c.backward is None for c in seen] == [True, True, False, False]
    assert {c.device.type for c in seen} == {DEVICE}
    assert (seen[0].stream is None) == (DEVICE == "cpu")
    assert repr(seen[0]) == "<forward pre of 1.0, call 0: (4, 3)>"
    model.eval()(ones(4, 3))
    assert [(c.call, c.training) for c in seen[4:]] == [(1, False)] * 2


def test_a_backward_has_the_number_and_the_data_of_its_forward():
    """Of a module that is called twice in one forward, and again in another; the newest call comes first."""
    model = Block()
    pairs = []

    def forward(module, args, output, context):
        context.data["mean"] = output.mean().item()

    def backward(module, grad_input, grad_output, context):
        pairs.append((context.call, context.data["mean"], context.path))

    model.layer.register_full_backward_hook(backward, with_context=True)
    model.layer.register_forward_hook(forward, with_context=True)
    with hooks.capture(model, "layer") as kept:
        first, second = model(ones(1, 3)).sum(), model(ones(1, 3) * 2).sum()
    second.backward()
    first.backward()
    assert [(call, path) for call, _, path in pairs] == [(k, "layer") for k in (3, 2, 1, 0)]
    for call, mean, _ in pairs:
        assert mean == pytest.approx(kept["layer", "output", call].mean().item())


def test_several_inputs_and_no_gradient_of_inputs():
    """The general form of a call, and a module whose inputs need no gradient."""
    seen = []
    layer = nn.Bilinear(3, 3, 2, device=DEVICE)
    keep(layer, seen, *CALLS)
    layer(ones(1, 3), ones(1, 3)).sum().backward()
    with pytest.warns(UserWarning, match="none of its inputs requires grad"):
        layer(ones(1, 3, grad=False), ones(1, 3, grad=False)).sum().backward()
    assert [(c.phase, c.call) for c in seen] == [
        (phase, call) for call in (0, 1) for phase in ("forward pre", "forward", "backward pre", "backward")
    ]
    assert seen[3].shapes == [(1, 3), (1, 3), (1, 2)]
    assert seen[7].node == "ModuleOutputBackward"


def test_other_options_of_registration():
    """Keyword arguments, order, an error before the output, and what replaces the output."""
    layer = nn.Identity()
    told = []

    def replaces(module, args, kwargs, output, context):
        told.append((sorted(kwargs), context.phase))
        return output + 1

    layer.register_forward_hook(replaces, with_context=True, with_kwargs=True)
    layer.register_forward_hook(lambda module, args, output: output * 2, prepend=True)
    assert layer(ones(1)).tolist() == [3]
    assert told == [([], "forward")]

    fails = module_of(raising(KeyError("inside")))
    fails.register_forward_pre_hook(lambda module, args, context: told.append(context.call), with_context=True)
    fails.register_forward_hook(lambda *given: told.append(given[-1].call), with_context=True, always_call=True)
    for _ in range(2):
        with pytest.raises(KeyError, match="inside"):
            fails(ones(1))
    assert told[1:] == [0, 0, 1, 1]


def test_tensors_and_nodes():
    x = ones(2)
    y = x * 3
    seen = []
    x.register_hook(lambda grad, context: seen.append(context), with_context=True)
    x.register_post_accumulate_grad_hook(lambda leaf, context: seen.append(context), with_context=True)
    y.grad_fn.register_prehook(lambda grads, context: seen.append(context), with_context=True)
    y.grad_fn.register_hook(lambda grads, given, context: seen.append(context), with_context=True)
    y.sum().backward()
    assert [(c.phase, c.node, c.shapes) for c in seen] == [
        ("node pre", "MulBackward0", [(2,)]), ("node post", "MulBackward0", [(2,), (2,)]),
        ("gradient", "AccumulateGrad", [(2,)]), ("accumulated", "AccumulateGrad", [(2,)]),
    ]  # fmt: skip
    assert {(c.path, c.module, c.call, c.training) for c in seen} == {("", None, 0, None)}
    assert len({c.backward for c in seen}) == 1
    assert repr(seen[2]) == "<gradient: (2,)>"


def test_recomputation():
    """A checkpoint calls its module twice, and says so the second time."""
    layer = nn.Linear(3, 3, device=DEVICE)
    seen = []
    keep(layer, seen, "forward_pre_hook")
    checkpoint(layer, ones(1, 3), use_reentrant=False).sum().backward()
    assert [(c.call, c.recomputing) for c in seen] == [(0, False), (1, True)]
    assert [(c.node, c.backward) for c in seen] == [(None, None)] * 2  # a forward, though a pass runs it


def test_hooks_that_come_while_the_module_runs():
    layer = nn.Identity()
    seen = []
    layer.register_forward_pre_hook(lambda module, args: keep(module, seen, "forward_hook"))
    layer(ones(1))
    assert [(c.phase, c.call) for c in seen] == [("forward", 0)]
    layer(ones(1))
    assert seen[-1].call == 1


def test_hooks_that_come_in_a_call_inside_of_another():
    """They are told of a call of their own module, and share no data with the hooks of the one around."""
    layer = nn.Identity()
    model, around, seen = nn.Sequential(layer), [], []
    keep(model, around, "forward_pre_hook")
    model(ones(1))
    layer.register_forward_pre_hook(lambda module, args: None if seen else keep(module, seen, "forward_hook"))
    model(ones(1))
    assert [(c.module, c.call) for c in (*around, *seen)] == [(model, 0), (model, 1), (layer, 0)]
    assert seen[0].data is not around[1].data


def test_copies_options_and_removal():
    """A copy counts its own calls; handles, tables and errors name the user's function; what is off leaves no mark."""
    layer = nn.Identity()
    handle = layer.register_forward_hook(named, with_context=True)
    assert handle.name.startswith("named (")
    other, third = copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))
    CALLED.clear()
    for each in (layer, layer, other, third):
        each(ones(1))
    assert CALLED == [0, 1, 0, 0]
    (row,) = hooks.table(layer)
    assert (row.kind, row.name) == ("forward hook", handle.name)
    handle.remove()
    assert not layer._hooks_with_context
    assert not layer._active_hooks
    layer(ones(1))
    assert CALLED == [0, 1, 0, 0]


CALLED = []


def named(module, args, output, context):
    CALLED.append(context.call)


def test_errors_and_wrong_options():
    layer, fail = nn.Identity(), raising(KeyError("told"))
    with layer.register_forward_pre_hook(fail, with_context=True), pytest.raises(KeyError, match="told") as caught:
        layer(ones(1))
    assert "fail (" in caught.value.__notes__[0]
    for register in (layer.register_forward_hook, ones(1).register_hook):
        with pytest.raises(HookTypeError, match="with_context: expected a bool, got int: 1"):
            register(named, with_context=1)
        with pytest.raises(HookTypeError, match="expected a callable hook"):
            register(3, with_context=True)
    assert len(hooks.table(layer)) == 0
