"""Module hooks fire at the moments, in the order and with the values that they have in PyTorch."""

from __future__ import annotations

import copy
from typing import NamedTuple

import pytest

from tests.parity.pieces import as_in_pytorch, linear, plain, seeded
from tests.pieces import module_of, raising

contract = pytest.mark.contract

pytestmark = pytest.mark.filterwarnings("ignore")


def nested(lib):
    """Return a network of three levels."""
    return lib.nn.Sequential(
        linear(lib, 3, 4, 1), lib.nn.Sequential(lib.nn.Tanh(), linear(lib, 4, 4, 2)), linear(lib, 4, 2, 3)
    )


REGISTRATIONS = {
    "register_forward_pre_hook": lambda module, args: args,
    "register_forward_hook": lambda module, args, output: (args, output),
    "register_full_backward_pre_hook": lambda module, grad_output: grad_output,
    "register_full_backward_hook": lambda module, grad_input, grad_output: (grad_input, grad_output),
}


def watch(net, events, registrations=REGISTRATIONS):
    """Register a recording hook of each kind on each module."""
    handles = []
    for name, module in net.named_modules():
        for registration, seen in registrations.items():

            def hook(*args, name=name, registration=registration, seen=seen):
                events.append((registration, name, plain(seen(*args))))

            handles.append(getattr(module, registration)(hook))
    return handles


@contract("5.4")
@as_in_pytorch
def test_every_kind_on_every_module(lib, events):
    """Hooks of all kinds on nested modules fire in PyTorch's order with PyTorch's values."""
    net = nested(lib)
    watch(net, events)
    x = seeded(lib, 5, 3, seed=4, requires_grad=True)
    x.register_hook(lambda grad: events.append(("x", plain(grad))))
    y = net(x)
    y.register_hook(lambda grad: events.append(("y", plain(grad))))
    y.backward(seeded(lib, 5, 2, seed=5))
    events.append(plain(x.grad))
    events.extend(plain(p.grad) for p in net.parameters())


@contract("4.1")
@contract("4.2")
@contract("5.1")
@contract("5.3")
@as_in_pytorch
def test_replacements_flow_on(lib, events):
    """What hooks of each kind return is what all that follows sees, gradients of parameters included."""
    net = nested(lib)
    net[0].register_forward_pre_hook(lambda module, args: args[0] * 2)
    net[1].register_forward_hook(lambda module, args, output: output + 1)
    net[1].register_full_backward_pre_hook(lambda module, grad: (grad[0] * 3,))
    net[1].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 5,))
    net[2].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] - 1,))
    watch(net, events)
    x = seeded(lib, 5, 3, seed=4, requires_grad=True)
    net(x).backward(seeded(lib, 5, 2, seed=5))
    events.append(plain(x.grad))
    events.extend(plain(p.grad) for p in net.parameters())


@contract("0.2")
@pytest.mark.parametrize("registration", list(REGISTRATIONS))
@as_in_pytorch
def test_order_with_prepend(lib, events, registration):
    """`prepend=True` puts a hook before all others of its kind on the module."""
    net = nested(lib)
    for number, prepend in enumerate((False, False, True, False, True)):
        getattr(net[0], registration)(lambda *_, number=number: events.append(number), prepend=prepend)
    net(seeded(lib, 5, 3, requires_grad=True)).sum().backward()


@contract("0.3")
@pytest.mark.parametrize("registration", list(REGISTRATIONS))
@as_in_pytorch
def test_removed_and_added_while_firing(lib, events, registration):
    """A hook removed while hooks fire still fires in this pass, and one that is added waits for the next."""
    net = nested(lib)
    handles = []

    def first(*_):
        events.append("first")
        handles[1].remove()
        if len(handles) == 2:
            handles.append(getattr(net[0], registration)(lambda *_: events.append("added")))

    handles.append(getattr(net[0], registration)(first))
    handles.append(getattr(net[0], registration)(lambda *_: events.append("second")))
    for _ in range(2):
        events.append("pass")
        net(seeded(lib, 5, 3, requires_grad=True)).sum().backward()


@contract("5.5")
@as_in_pytorch
def test_backward_hooks_are_those_of_the_forward(lib, events):
    """Backward hooks are taken when the module is called; several calls fire once each, the last call first."""
    net = linear(lib, 3, 3, 1)
    handle = net.register_full_backward_hook(lambda m, gi, go: events.append(("early", plain(gi))))
    x = seeded(lib, 2, 3, requires_grad=True)
    y = net(net(x))
    handle.remove()
    net.register_full_backward_hook(lambda m, gi, go: events.append(("late", plain(gi))))
    y.sum().backward(retain_graph=True)
    events.append("again")
    y.sum().backward()


@contract("5.4")
@as_in_pytorch
def test_inputs_that_need_no_gradient(lib, events):
    """Without a positional input that requires grad the hook fires once the outputs' gradients are known."""
    net = nested(lib)
    watch(net, events)
    net(seeded(lib, 5, 3)).backward(seeded(lib, 5, 2, seed=5))


@contract("5.2")
@as_in_pytorch
def test_mixed_arguments(lib, events):
    """`grad_input` has an entry for each positional argument, `grad_output` one for each output, None for others."""
    net = module_of(lambda self, a, flag, b, c, *, scale: (a * b * scale, "text", c + 1, b.sum()), lib)
    net.register_full_backward_hook(lambda m, gi, go: events.append((plain(gi), plain(go))))
    a, b = (seeded(lib, 2, seed=s, requires_grad=True) for s in (1, 2))
    c = seeded(lib, 2, seed=3)
    scale = seeded(lib, 2, seed=4, requires_grad=True)
    first, text, third, fourth = net(a, True, b, c, scale=scale)
    events.append((text, third.requires_grad))
    (first.sum() + fourth).backward()
    events.append([plain(t.grad) for t in (a, b, scale)])


@contract("5.2")
@as_in_pytorch
def test_only_some_outputs_used(lib, events):
    """Outputs that the loss does not use give None in `grad_output`."""
    net = module_of(lambda self, x: (x * 2, x * 3), lib)
    net.register_full_backward_pre_hook(lambda m, go: events.append(plain(go)))
    net.register_full_backward_hook(lambda m, gi, go: events.append((plain(gi), plain(go))))
    x = seeded(lib, 2, requires_grad=True)
    net(x)[1].sum().backward()
    events.append(plain(x.grad))


@contract("5.5")
@as_in_pytorch
def test_nothing_fires_without_a_graph(lib, events):
    """No backward hook fires under no_grad, nor the full hooks where only a parameter's gradient is asked for."""
    net = linear(lib, 3, 2, 1)
    watch(net, events)
    x = seeded(lib, 5, 3, requires_grad=True)
    with lib.no_grad():
        events.append(net(x).requires_grad)
    net(x).sum().backward(inputs=[net.weight])
    events.append(x.grad)


@contract("0.9")
@as_in_pytorch
def test_double_backward(lib, events):
    """Under `create_graph` gradients in hooks can be differentiated, and what hooks return is."""
    net = nested(lib)
    net[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * gi[0],))
    watch(net, events, {"register_full_backward_hook": REGISTRATIONS["register_full_backward_hook"]})
    x = seeded(lib, 5, 3, seed=4, requires_grad=True)
    (grad,) = lib.autograd.grad(net(x).sum(), x, create_graph=True)
    (grad * grad).sum().backward()
    events.append(plain(x.grad))


@contract("4.1")
@contract("4.2")
@contract("4.3")
@as_in_pytorch
def test_kwargs_and_always_call(lib, events):
    """Hooks with kwargs see and replace keyword arguments; always-called ones also run when the call raises."""

    class Scale(lib.nn.Module):
        def forward(self, x, *, factor, fail=False):
            if fail:
                raise ValueError("forward fails")
            return x * factor

    net = Scale()
    net.register_forward_pre_hook(lambda m, args, kwargs: (args, {**kwargs, "factor": 3.0}), with_kwargs=True)
    net.register_forward_hook(
        lambda m, args, kwargs, output: events.append((plain(args), kwargs, plain(output))),
        with_kwargs=True,
        always_call=True,
    )
    net.register_forward_hook(lambda m, args, output: events.append("plain"))
    net(seeded(lib, 2), factor=2.0)
    with pytest.raises(ValueError, match="forward fails"):
        net(seeded(lib, 2), factor=2.0, fail=True)


@contract("4.3")
@as_in_pytorch
def test_always_called_hook_that_raises_itself(lib, events):
    """What an always-called hook raises after an error is a warning; the first error goes on."""
    net = module_of(raising(ValueError("first")), lib)

    def hook(*_):
        events.append("called")
        raise KeyError("second")

    net.register_forward_hook(hook, always_call=True)
    with pytest.raises(ValueError, match="first"), pytest.warns(UserWarning, match="second"):
        net(1)
    ok = lib.nn.Identity()
    ok.register_forward_hook(hook, always_call=True)
    with pytest.raises(KeyError, match="second"):
        ok(1)


@contract("0.2")
@contract("6")
@as_in_pytorch
def test_global_hooks_come_first(lib, events):
    """Hooks of all modules fire before a module's own, whichever was registered first."""
    module = lib.nn.modules.module
    net = nested(lib)
    watch(net, events)
    handles = [
        module.register_module_forward_pre_hook(lambda m, args: events.append(("global pre", type(m).__name__))),
        module.register_module_forward_hook(lambda m, args, out: events.append(("global", type(m).__name__))),
        module.register_module_full_backward_pre_hook(
            lambda m, go: events.append(("global backward pre", type(m).__name__))
        ),
        module.register_module_full_backward_hook(
            lambda m, gi, go: events.append(("global backward", type(m).__name__))
        ),
    ]
    try:
        net(seeded(lib, 5, 3, requires_grad=True)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    events.append("removed")
    net(seeded(lib, 5, 3, requires_grad=True)).sum().backward()


@contract("6")
@as_in_pytorch
def test_registration_hooks(lib, events):
    """Registration hooks see each parameter, buffer and module before it is stored, and may replace it."""
    module = lib.nn.modules.module
    with (
        module.register_module_parameter_registration_hook(
            lambda m, name, p: events.append(("parameter", type(m).__name__, name))
        ),
        module.register_module_buffer_registration_hook(
            lambda m, name, b: events.append(("buffer", type(m).__name__, name))
        ),
        module.register_module_module_registration_hook(
            lambda m, name, s: lib.nn.Tanh() if isinstance(s, lib.nn.ReLU) else None
        ),
    ):
        net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.ReLU(), lib.nn.BatchNorm1d(2))
        net.extra = lib.nn.Parameter(lib.ones(1))
    events.append(repr(net))


@contract("8.1")
@as_in_pytorch
def test_copies(lib, events):
    """A copied module's hooks are its own: removing the original's leaves them, a copied handle removes the copy's."""
    net = nested(lib)
    handle = net[0].register_forward_hook(lambda *_: events.append("hook"))
    twin, twin_handle = copy.deepcopy((net, handle))
    handle.remove()
    twin(seeded(lib, 5, 3))
    events.append("twin fired")
    twin_handle.remove()
    twin(seeded(lib, 5, 3))
    events.append((len(net[0]._forward_hooks), len(twin[0]._forward_hooks)))


@contract("5.6")
@as_in_pytorch
def test_named_tuples_are_kept(lib, events):
    """A named tuple that forward returns keeps its type and names through the boundary."""

    class Pair(NamedTuple):
        left: object
        right: object

    net = module_of(lambda self, x: Pair(x * 2, x * 3), lib)
    net.register_full_backward_hook(lambda m, gi, go: events.append(plain(go)))
    out = net(seeded(lib, 2, requires_grad=True))
    events.append(type(out).__name__)
    (out.left * out.right).sum().backward()


@contract("4.1")
@contract("5.1")
@contract("5.3")
@as_in_pytorch
def test_wrong_returns(lib, events):
    """A hook that returns something of the wrong form raises an error of the same class as in PyTorch."""
    for registration, result in (
        ("register_full_backward_hook", ()),
        ("register_full_backward_pre_hook", (None, None)),
    ):
        net = linear(lib, 3, 2, 1)
        getattr(net, registration)(lambda *_, result=result: result)
        with pytest.raises(RuntimeError, match="invalid number"):
            net(seeded(lib, 5, 3, requires_grad=True)).sum().backward()
        events.append(registration)
    net = linear(lib, 3, 2, 1)
    net.register_forward_pre_hook(lambda *_: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="None or a tuple of"):
        net(seeded(lib, 5, 3))
    net = linear(lib, 3, 2, 1)
    net.register_full_backward_hook(lambda m, gi, go: (seeded(lib, 1),))
    with pytest.warns(UserWarning, match="grad"), pytest.raises(RuntimeError, match="None"):
        net(seeded(lib, 5, 3)).sum().backward()
    events.append("done")


@contract("5.6")
@as_in_pytorch
def test_in_place_changes_are_refused(lib, events):
    """Inputs and outputs of a module with backward hooks are views that may not be changed in place."""
    for module, outside in ((module_of(lambda self, x: x.mul_(2), lib), False), (lib.nn.Identity(), True)):
        module.register_full_backward_hook(lambda *_: None)
        x = seeded(lib, 2, requires_grad=True) * 1
        with pytest.raises(RuntimeError, match=r"is a view|hooks"):
            y = module(x)
            if outside:
                y += 1
        events.append("refused")
