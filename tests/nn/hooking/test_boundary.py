"""`register_module_backward_hook`: the backward hook of every module, in both its forms."""

from __future__ import annotations

import pytest

import lucid
from lucid import nn
from lucid.nn.hooks import StateHook
from lucid.nn.modules.module import register_module_backward_hook
from tests.pieces import drawn


def test_outputs_of_all_modules(rng):
    """A hook of two arguments gets each module's output tensor and its gradient, before the module's own hooks."""
    net, seen = nn.Sequential(nn.Tanh(), nn.Identity(), nn.Sigmoid()), []
    outputs, upstream = {}, lucid.tensor(rng.standard_normal((2, 3)))
    for name in ("0", "1", "2"):
        net.get_submodule(name).register_forward_hook(lambda m, args, output, name=name: outputs.update({name: output}))
    net[0].register_backward_hook(lambda tensor, grad: seen.append("own"))
    x = drawn(rng, 2, 3)
    with register_module_backward_hook(lambda tensor, grad: seen.append((tensor, grad.tolist())) or grad * 100):
        y = net(x)
        y.backward(upstream)
    middle = outputs["2"].detach()
    assert [entry == "own" for entry in seen] == [False] * 4 + [True]
    assert seen[0][0] is y
    assert seen[1][0] is y
    assert seen[0][1] == seen[1][1] == upstream.tolist()
    inner = upstream * middle * (1 - middle)
    for entry in seen[2:4]:
        assert lucid.allclose(lucid.tensor(entry[1]).double(), inner)
    assert lucid.allclose(x.grad, inner * (1 - outputs["0"].detach() ** 2))
    count = len(seen)
    net(x).backward(upstream)
    assert len(seen) == count + 1


def test_pytorchs_form_is_a_full_backward_hook(rng):
    """A hook of three arguments gets and may replace the gradients of the inputs, with a warning at registration."""
    net, seen = nn.Sequential(nn.Tanh(), nn.Sigmoid()), []
    x, upstream = drawn(rng, 2, 3), lucid.tensor(rng.standard_normal((2, 3)))
    net(x).backward(upstream)
    plain, x.grad = x.grad, None

    def hook(module, grad_input, grad_output):
        seen.append((type(module), len(grad_input), len(grad_output)))
        return (grad_input[0] * 2,)

    with pytest.warns(FutureWarning, match="register_module_full_backward_hook"):
        handle = register_module_backward_hook(hook)
    with handle:
        net(x).backward(upstream)
    assert seen == [(nn.Sigmoid, 1, 1), (nn.Tanh, 1, 1), (nn.Sequential, 1, 1)]
    assert lucid.allclose(x.grad, plain * 8)
    with pytest.warns(FutureWarning):
        handle = register_module_backward_hook(lambda m, grad_input, grad_output: grad_input[:-1])
    with handle, pytest.raises(RuntimeError):
        net(x).backward(upstream)


@pytest.mark.parametrize("hook", [3, None, lambda: None, lambda a, b, c, d: None], ids=["3", "None", "0", "4"])
def test_what_cannot_be_registered(hook, rng):
    """What cannot be called, or takes neither form, is refused, and no module call fires anything."""
    with pytest.raises(TypeError, match="register_module_backward_hook"):
        register_module_backward_hook(hook)
    x = drawn(rng, 1)
    nn.Identity()(x).backward(lucid.ones(1, dtype=lucid.float64))
    assert x.grad.tolist() == [1.0]


def test_an_error_names_the_hook(rng):
    """The note on an error names the hook, its kind and the module."""
    net, x = nn.Sequential(nn.Tanh()), drawn(rng, 1)

    def fails(tensor, grad):
        raise ValueError("planned")

    with register_module_backward_hook(fails):
        y = net(x)
    with pytest.raises(ValueError, match="planned") as caught:
        y.backward()
    assert all(word in caught.value.__notes__[0] for word in ("fails", "backward hook", "Sequential"))


@pytest.mark.parametrize(
    ("args", "kwargs", "trained", "evaluated"),
    [
        ((), {}, 1, 1), ((False,), {}, 0, 1), ((True, False), {}, 1, 0), ((False, False), {}, 0, 0),
        ((False,), {"eval_update": False}, 0, 0), ((), {"train_update": False}, 0, 1),
    ],
)  # fmt: skip
def test_modes_of_a_state_hook_by_position(args, kwargs, trained, evaluated):
    """`train_update` and `eval_update` follow the module by position or by name; the other settings only by name."""
    calls = []

    class Notes(StateHook):
        def hook(self, module):
            calls.append(module.training)

    module = nn.Identity()
    hook = Notes(module, *args, **kwargs)
    hook.register()
    module(1)
    module.eval()(1)
    assert (calls.count(True), calls.count(False)) == (trained, evaluated)
    with pytest.raises(TypeError):
        Notes(module, True, True, True)
