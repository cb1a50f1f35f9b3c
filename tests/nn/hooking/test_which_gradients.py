"""Gradients that backward hooks of modules are about: those of a call, and of the pass that runs."""

from __future__ import annotations

from functools import partial

import pytest

import lucid
from lucid import nn
from lucid.nn.hooking import one_tensor
from tests.gradients import numbers
from tests.pieces import module_of

contract = pytest.mark.contract


class Uses(nn.Module):
    """Multiplies a weight by some of what it is given."""

    def __init__(self, rng):
        super().__init__()
        self.weight = nn.Parameter(lucid.tensor(rng.standard_normal(3)))

    def forward(self, *given, unused=None):
        return self.weight * (given[0] if len(given) > 1 else 2.0)


def note(seen, _tensor, grad):
    seen.append(numbers(grad)[0])


def upstream_to(rng):
    return lucid.tensor(rng.standard_normal(3))


def inputs_of(node):
    """Return the node of a call's inputs, from the node of its outputs on."""
    while node.name() != "ModuleInputBackward":
        node = node.next_functions[0][0]
    return node


@pytest.mark.parametrize("also_before", [False, True], ids=["short way", "general way"])
def test_nodes_of_a_module_that_are_called(also_before, rng):
    """They hand the gradient on, in its tensor's dtype and recorded, and no hook fires, outside of a pass or in one."""
    module, fired = nn.Tanh(), []
    module.register_full_backward_hook(lambda *_: fired.append("after"))
    if also_before:
        module.register_full_backward_pre_hook(lambda *_: fired.append("before"))
    x, upstream = lucid.tensor(rng.standard_normal(3), requires_grad=True), upstream_to(rng)
    y = module(x)
    nodes = y.grad_fn, inputs_of(y.grad_fn)
    assert (type(nodes[0]) is one_tensor.OneTensorEnd) == (not also_before)
    for node in nodes:
        assert node(upstream).tolist() == upstream.tolist()
        assert node(None) is None
        assert node(upstream.float()).dtype == x.dtype
        assert node(upstream.clone().requires_grad_()).requires_grad
    inside = []
    y.register_hook(lambda grad: inside.extend(node(grad * 0).tolist() for node in nodes))
    y.backward(upstream)
    assert inside == [[0.0] * 3] * 2
    assert fired == ["before"] * also_before + ["after"]
    assert lucid.allclose(x.grad, upstream * (1 - y.detach() ** 2))


def test_nodes_of_several_tensors_that_are_called(rng):
    """One gradient for each, and None where there is none, or the tensor needs none."""
    module, fired = module_of(lambda self, a, b: (a * b, a + b)), []
    module.register_full_backward_hook(lambda *_: fired.append(1))
    a, b = lucid.tensor(rng.standard_normal(3), requires_grad=True), upstream_to(rng)
    product, total = module(a, b)
    grads = upstream_to(rng), None
    assert product.grad_fn is total.grad_fn
    first, second = product.grad_fn(*grads)
    assert first.tolist() == grads[0].tolist()
    assert second is None
    assert product.grad_fn(None, None) == (None, None)
    assert inputs_of(product.grad_fn)(*grads[:1] * 2)[1] is None
    assert fired == []


class Keeps(nn.Module):
    """Returns what it keeps, or the first tensor in what it is given."""

    def __init__(self, kept=None):
        super().__init__()
        self.kept = kept

    def forward(self, x=None):
        given = x if self.kept is None else self.kept
        return given[0] if isinstance(given, list) else given


@contract("5.7")
@pytest.mark.parametrize("leaf", [False, True], ids=["made before", "leaf"])
def test_an_output_that_the_call_has_not_made(leaf, rng):
    """Each call's hook gets the gradient of that call's output alone, wherever the module has the tensor from."""
    for name in ("by position", "by name", "in a list", "of the module"):
        t = lucid.tensor(rng.standard_normal(3), requires_grad=True)
        t = t if leaf else t * 1.0
        module = Keeps(t) if name == "of the module" else Keeps()
        args = {"by position": (t,), "in a list": ([t],)}.get(name, ())
        kwargs = {"x": t} if name == "by name" else {}
        seen = []
        module.register_backward_hook(partial(note, seen))
        (module(*args, **kwargs) * 2 + module(*args, **kwargs) * 3 + t * 10).sum().backward()
        assert seen == [3.0, 2.0], name


@contract("5.7")
def test_an_output_that_the_call_has_made_is_itself(rng):
    """The caller gets the tensor that forward returned, and the hook with it; changed in place, an argument too."""
    made, seen = [], []

    class Makes(nn.Module):
        def forward(self, x):
            made.append(x + 1.0)
            return made[-1]

    module = Makes()
    module.register_backward_hook(partial(note, seen))
    t = lucid.tensor(rng.standard_normal(3), requires_grad=True) * 1.0
    assert module(t) is made[0]
    change = nn.ReLU(inplace=True)
    change.register_backward_hook(partial(note, seen))
    (change(t) * 2 + t * 3).sum().backward()
    assert seen == [2.0]


@contract("5.4")
@contract("5.8")
@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("before", [False, True], ids=["hook", "and pre-hook"])
def test_inputs_by_name_that_have_no_part_in_the_output(structured, before, rng):
    """Where no others require grad the hook fires with None for each, as one that does not ask for them."""
    module, seen = Uses(rng), []
    options = {"with_kwargs": True, "structured": structured}
    handle = module.register_full_backward_hook(lambda m, *grads: seen.append(grads), **options)
    if before:
        module.register_full_backward_pre_hook(lambda m, grads: (grads[0] * 2,))
    x, upstream = lucid.tensor(rng.standard_normal(3), requires_grad=True), upstream_to(rng)
    y = module(x.detach(), unused=x)
    with pytest.warns(UserWarning, match="none of its inputs requires grad and has a part in them"):
        y.backward(upstream)
    ((*of_inputs, of_outputs),) = seen
    assert of_inputs == [(None,), {"unused": None}]
    of_output = of_outputs if structured else of_outputs[0]
    assert numbers(of_output).tolist() == (numbers(upstream) * (1 + before)).tolist()
    assert x.grad is None
    assert lucid.allclose(module.weight.grad, upstream * (2 * (1 + before)))
    with pytest.warns(UserWarning, match="none of its inputs requires grad"):
        module([x]).backward(upstream)
    assert seen[1][:2] == (([None] if structured else None,), {})
    handle.remove()
    module.register_full_backward_hook(lambda m, *grads: ((upstream,), {"unused": None}), **options)
    with pytest.warns(UserWarning, match="as soon"), pytest.raises(RuntimeError, match="gets a gradient"):
        module(x.detach(), unused=x).backward(upstream)


@contract("5.4")
@contract("5.8")
def test_inputs_that_are_waited_for(rng):
    """By name what has a part, by position all, as in PyTorch; none fires where ``inputs=`` leaves the inputs out."""
    module, seen = Uses(rng), []
    module.register_full_backward_hook(lambda m, args, kwargs, out: seen.append((args, kwargs)), with_kwargs=True)
    x, unused = (lucid.tensor(rng.standard_normal(3), requires_grad=True) for _ in range(2))
    upstream = upstream_to(rng)
    module(x, upstream, unused=unused).backward(upstream)
    (((first, _), kwargs),) = seen
    assert lucid.allclose(first, upstream * module.weight)
    assert kwargs["unused"].tolist() == [0.0] * 3
    module(x, unused=unused).backward(upstream)
    module(unused=unused).backward(upstream, inputs=[module.weight])
    assert len(seen) == 1
