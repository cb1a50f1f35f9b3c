"""What random programs of modules and hooks have found, each as the few lines that show it."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.utils.checkpoint

import lucid
from tests.parity.pieces import seeded
from tests.pieces import function_of, module_of, raising

both = pytest.mark.parametrize("lib", [torch, lucid], ids=["torch", "lucid"])


@both
@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "intermediate"])
def test_hooks_of_a_layers_parameters(lib, leaf):
    """The bias of a linear layer has its gradient first, then a leaf that is its input, then the weight."""
    events = []
    layer = lib.nn.Linear(3, 3, dtype=lib.float64)
    x = seeded(lib, 2, 3, requires_grad=True)
    for name, tensor in (("x", x), *layer.named_parameters()):
        tensor.register_hook(lambda grad, name=name: events.append(name))
    layer(x if leaf else x.tanh()).backward(seeded(lib, 2, 3, seed=1))
    assert events == (["bias", "x", "weight"] if leaf else ["bias", "weight", "x"])


@both
@pytest.mark.contract("5.6")
def test_a_view_at_a_boundary_that_was_changed_unseen(lib):
    """What a module has made of its argument's memory without recording cannot be used as if it were the argument."""

    class Changes(lib.nn.Module):
        def forward(self, x):
            with lib.no_grad():
                x.mul_(2)
            return x * 3

    module = Changes()
    module.register_full_backward_hook(lambda *_: None)
    x = seeded(lib, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"is a view|this view"):
        module(x * 1)


@pytest.mark.contract("5.6")
def test_such_a_view_can_still_be_looked_at():
    """A view whose place in the graph is lost is printed, needs a gradient, and can be used, but its place not read."""
    module = lucid.nn.Identity()
    module.register_full_backward_hook(lambda *_: None)
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    y = module(x * 1)
    with lucid.no_grad():
        y.mul_(2)
    assert "[2., 4.]" in repr(y)
    assert "grad_fn=<Invalid>" in repr(y)
    assert y.requires_grad
    assert y.detach().tolist() == [2.0, 4.0]
    with lucid.no_grad():
        assert (y + 1).tolist() == [3.0, 5.0]
        for place in ("is_leaf", "grad_fn", "output_nr"):
            with pytest.raises(RuntimeError, match="cannot be taken again"):
                getattr(y, place)
    with pytest.raises(RuntimeError, match="cannot be taken again"):
        y.sum()


@both
@pytest.mark.contract("5.2")
def test_an_input_that_gets_no_gradient_counts_as_zeros(lib):
    """`grad_input` of a module whose forward gives its only input no gradient is zeros, and these flow on."""
    NoGradient = function_of(lambda ctx, x: x * 2, lambda ctx, grad: None, lib)

    seen = []
    module = module_of(lambda self, x: NoGradient.apply(x), lib)
    module.register_full_backward_hook(lambda m, into, out: seen.append(into[0].tolist()))
    x = seeded(lib, 2, requires_grad=True)
    module(x).backward(seeded(lib, 2, seed=1))
    assert seen == [[0.0, 0.0]]
    assert x.grad.tolist() == [0.0, 0.0]


@both
@pytest.mark.contract("4.3")
def test_an_always_called_hook_after_a_pre_hook_has_raised(lib):
    """It sees the arguments as the pre-hooks before that one have left them."""
    seen = []
    module = lib.nn.Identity()
    module.register_forward_pre_hook(lambda m, args: args[0] * 2)

    module.register_forward_pre_hook(raising(KeyError("planned")))
    module.register_forward_hook(lambda m, args, out: seen.append((args[0].tolist(), out)), always_call=True)
    with pytest.raises(KeyError, match="planned"):
        module(lib.tensor([1.0, 2.0]))
    assert seen == [([2.0, 4.0], None)]


def test_nodes_at_a_boundary_have_one_name():
    """A module's nodes are called the same whichever way its call took."""
    names = []
    for with_pre_hook in (False, True):
        module = lucid.nn.Identity()
        module.register_full_backward_hook(lambda *_: None)
        if with_pre_hook:
            module.register_full_backward_pre_hook(lambda *_: None)
        node = module(lucid.ones(2, requires_grad=True)).grad_fn
        names.append((node.name(), node.next_functions[0][0].name()))
    assert names == [("ModuleOutputBackward", "ModuleInputBackward")] * 2


@both
def test_a_reentrant_checkpoint_of_what_needs_no_gradient(lib):
    """A part whose output does not depend on its input gives zeros to the hooks around the checkpoint."""

    class Detached(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(seeded(lib, 2, seed=3))

        def forward(self, x):
            checkpoint = lib.utils.checkpoint.checkpoint
            return checkpoint(lambda x: x.detach() * self.weight, x, use_reentrant=True)

    seen = []
    module = Detached()
    module.register_full_backward_hook(lambda m, into, out: seen.append(into[0].tolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module(seeded(lib, 2, requires_grad=True)).backward(seeded(lib, 2, seed=1))
    assert seen == [[0.0, 0.0]]


def test_a_parameter_that_a_checkpoint_returns():
    """A leaf that is no argument stays a leaf when a Function returns it, and gets its gradient.

    In PyTorch the parameter itself becomes the checkpoint's output, whose backward then calls itself for ever.
    """
    weight = lucid.nn.Parameter(seeded(lucid, 2))
    x = seeded(lucid, 2, requires_grad=True)
    out = lucid.utils.checkpoint.checkpoint(lambda x: weight, x, use_reentrant=True)
    assert weight.is_leaf
    assert weight.requires_grad
    assert out.grad_fn.name() == "CheckpointFunctionBackward"
    grad = seeded(lucid, 2, seed=1)
    out.backward(grad)
    assert weight.grad.tolist() == grad.tolist()
    with lucid.no_grad():
        lucid.utils.checkpoint.checkpoint(lambda x: weight, x, use_reentrant=True)
    assert weight.requires_grad


@both
def test_a_forward_hook_that_forward_registers(lib):
    """A hook of a later moment of the same call fires in it, also where only backward hooks were there before."""
    events = []

    class Registers(lib.nn.Module):
        def forward(self, x):
            self.register_forward_hook(lambda *_: events.append("forward"))
            return x * 2

    module = Registers()
    module.register_full_backward_hook(lambda *_: events.append("backward"))
    module(seeded(lib, 2, requires_grad=True)).sum().backward()
    assert events == ["forward", "backward"]


def without_gradient(lib):
    """Return a Function that copies its first argument, and whose backward gives None for the second."""

    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 1.0

    WithoutGradient = function_of(forward, lambda ctx, grad: (grad, None), library=lib, name="WithoutGradient")

    return WithoutGradient.apply


@both
@pytest.mark.contract("1.7")
@pytest.mark.contract("1.12")
@pytest.mark.contract("2.1")
@pytest.mark.parametrize("before", [False, True], ids=["no .grad", "an old .grad"])
def test_hooks_of_a_leaf_that_gets_none(lib, before):
    """Where a pass comes to a leaf with None, all its hooks fire in their order; `.grad` stays what it was."""
    events = []
    x, leaf = seeded(lib, 3, requires_grad=True), seeded(lib, 3, seed=1, requires_grad=True)
    leaf.grad = seeded(lib, 3, seed=2) if before else None
    old = leaf.grad.tolist() if before else None
    node = lib.autograd.graph.get_gradient_edge(leaf).node
    leaf.register_post_accumulate_grad_hook(
        lambda tensor: events.append(("post", tensor.grad.tolist() if before else tensor.grad))
    )
    leaf.register_hook(lambda grad: events.append(("tensor", grad)))
    node.register_prehook(lambda grads: events.append(("pre", grads)))
    node.register_hook(lambda into, grads: events.append(("node", into, grads)))
    without_gradient(lib)(x, leaf).backward(seeded(lib, 3, seed=3))
    assert events == [("tensor", None), ("pre", (None,)), ("post", old), ("node", (), (None,))]
    assert (leaf.grad.tolist() if before else leaf.grad) == old


@both
@pytest.mark.contract("5.4")
def test_a_full_hook_where_one_output_gets_none(lib):
    """An output that gets None shows as None, whoever gave it; those of the others make the gradients of the inputs."""
    seen = []
    module = module_of(lambda self, x: (x * 3.0, x.sin()), lib)
    module.register_full_backward_hook(lambda m, into, out: seen.append((into[0].tolist(), out[0], out[1].tolist())))
    x, upstream = seeded(lib, 2, requires_grad=True), seeded(lib, 2, seed=1)
    for use in (lambda first, second: without_gradient(lib)(second, first), lambda first, second: second):
        use(*module(x)).backward(upstream)
    expected = (x.cos() * upstream).tolist()
    assert seen == [(expected, None, upstream.tolist())] * 2


@pytest.mark.contract("1.7")
@pytest.mark.contract("5.4")
@pytest.mark.parametrize(("lib", "nothing"), [(torch, [0.0, 0.0]), (lucid, None)], ids=["torch", "lucid"])
def test_a_full_hook_where_no_gradient_is_known(lib, nothing):
    """Where no output of a module gets a gradient its full hook fires and None flows on; PyTorch makes zeros of it."""

    def listed(grad):
        return None if grad is None else grad.tolist()

    seen = []
    module = module_of(lambda self, x: x * 3.0, lib)
    module.register_full_backward_hook(lambda m, into, out: seen.append((listed(into[0]), out)))
    x = seeded(lib, 2, requires_grad=True)
    without_gradient(lib)(seeded(lib, 2, requires_grad=True), module(x)).backward(seeded(lib, 2, seed=1))
    assert seen == [(nothing, (None,))]
    assert listed(x.grad) == nothing


@both
@pytest.mark.contract("1.11")
@pytest.mark.parametrize("way", ["recorded", "unrecorded", "unrecorded, of a leaf"])
def test_a_view_s_retained_gradient_follows_a_change_of_its_base(lib, way):
    """A view whose base was changed in place after retain_grad still keeps the gradient of its latest version."""
    leaf = seeded(lib, 3, requires_grad=True)
    base = leaf if way.endswith("leaf") else leaf * 1.0
    view = base.view(3)
    view.retain_grad()
    if way == "recorded":
        base.mul_(3.0)
    else:
        with lib.no_grad():
            base.mul_(3.0)
    upstream = seeded(lib, 3, seed=1)
    (view * 2.0).backward(upstream)
    assert view.grad.tolist() == (upstream * 2.0).tolist()
    assert leaf.grad.tolist() == (upstream * (6.0 if way == "recorded" else 2.0)).tolist()
