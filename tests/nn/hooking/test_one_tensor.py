"""A module with full backward hooks that takes and returns one tensor: what its short way must not leave out."""

from __future__ import annotations

import contextlib
import copy
import pickle
from functools import partial

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.nn.hooking import one_tensor
from lucid.nn.modules.module import register_module_forward_hook
from tests.gradients import numbers
from tests.pieces import function_of, module_of

SEEN = []


def note(module, into, out):
    SEEN.append((into, out))


def note_named(module, args, kwargs, out):
    SEEN.append((args, kwargs, out))


@pytest.fixture(autouse=True)
def seen():
    """Return what hooks have noted, nothing at first."""
    SEEN.clear()
    return SEEN


def copies_of(module):
    """Return a module and its copies, which take its hooks along."""
    return [module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))]


class Square(nn.Module):
    """Squares its input, which may come by name."""

    def forward(self, x):
        return x * x


def test_copied_hooks_keep_their_options(seen):
    """What a hook asked for at its registration, copies of the module give it too."""
    module = Square()
    module.register_full_backward_hook(note_named, with_kwargs=True)
    for each in copies_of(module):
        seen.clear()
        x = lucid.tensor([3.0], requires_grad=True)
        each(x).sum().backward()
        ((args, kwargs, out),) = seen
        assert [grad.tolist() for grad in args] == [[6.0]]
        assert kwargs == {}
        assert out[0].tolist() == [1.0]
        seen.clear()
        each(x=x).sum().backward()
        ((args, kwargs, out),) = seen
        assert (args, kwargs["x"].tolist()) == ((), [6.0])


def test_copied_hooks_without_options_take_the_short_way(seen):
    """Copies fire the hook once, with what the original's gets."""
    module = Square()
    module.register_full_backward_hook(note)
    for each in copies_of(module):
        seen.clear()
        y = each(lucid.tensor([3.0], requires_grad=True))
        assert type(y.grad_fn) is one_tensor.OneTensorEnd
        y.sum().backward()
        (((into,), (out,)),) = seen
        assert (into.tolist(), out.tolist()) == ([6.0], [1.0])


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float16, lucid.bfloat16])
def test_the_dtype_of_gradients(dtype, seen):
    """Hooks get gradients in the dtypes of the input and of the output, whatever backward was given."""
    module = nn.Identity()
    module.register_full_backward_hook(note)
    x = lucid.ones(2, dtype=dtype, requires_grad=True)

    Wide = function_of(lambda ctx, x: x.double(), lambda ctx, grad: grad)

    Wide.apply(module(x) * 1).sum().backward()
    (((into,), (out,)),) = seen
    assert into.dtype == out.dtype == x.grad.dtype == dtype
    assert numbers(x.grad).astype(np.float64).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("replace", [False, True], ids=["looks on", "replaces"])
def test_a_recorded_pass(replace, seen, rng):
    """Under create_graph hooks get gradients on the graph, and second derivatives go through what they return."""

    def hook(module, into, out):
        note(module, into, out)
        return (into[0] * x.detach(),) if replace else None

    module = Square()
    module.register_full_backward_hook(hook)
    array = rng.standard_normal(3)
    x = lucid.tensor(array, requires_grad=True)
    y = module(x)
    assert type(y.grad_fn) is one_tensor.OneTensorEnd
    (grad,) = lucid.autograd.grad((y * y).sum(), x, create_graph=True)
    (((into,), (out,)),) = seen
    assert into.requires_grad
    assert out.requires_grad
    np.testing.assert_allclose(numbers(into), 4 * array**3)
    np.testing.assert_allclose(numbers(out), 2 * array**2)
    np.testing.assert_allclose(numbers(grad), 4 * array**3 * (array if replace else 1))
    (second,) = lucid.autograd.grad(grad.sum(), x)
    # the second pass comes through the module too, where its hook fires again
    np.testing.assert_allclose(numbers(second), 12 * array**2 * (array**2 if replace else 1))


@pytest.mark.parametrize("short", [True, False], ids=["short way", "general way"])
@pytest.mark.parametrize("where", ["its own", "of all modules", "both"])
def test_forward_hooks_that_forward_registers_fire(where, short):
    """In the same call, whichever way it takes, own ones after those of all modules; and change what comes out."""
    fired, handles = [], []

    class Registers(nn.Module):
        def forward(self, x):
            if where != "its own":
                handles.append(register_module_forward_hook(partial(double, "all")))
            if where != "of all modules":
                handles.append(self.register_forward_hook(partial(double, "own")))
            return x * 1

    def double(name, module, args, out):
        fired.append(name)
        return out * 2

    module = Registers()
    module.register_full_backward_hook(note)
    if not short:
        module.register_forward_pre_hook(lambda *_: None)
    try:
        y = module(lucid.tensor([3.0], requires_grad=True))
    finally:
        for handle in handles:
            handle.remove()
    assert fired == {"its own": ["own"], "of all modules": ["all"], "both": ["all", "own"]}[where]
    assert y.tolist() == [3.0 * 2 ** len(fired)]
    assert (type(y.grad_fn) is one_tensor.OneTensorEnd) == short


MODES = {
    "plain": contextlib.nullcontext,
    "no_grad": lucid.no_grad,
    "inference_mode": lucid.inference_mode,
    "anomaly": lucid.autograd.detect_anomaly,
    "saved tensors": lambda: lucid.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x),
    "set_grad_enabled(False)": partial(lucid.set_grad_enabled, False),
}


@pytest.mark.filterwarnings("ignore:anomaly detection is on")
@pytest.mark.parametrize("kind", [nn.Identity, Square])
@pytest.mark.parametrize("mode", MODES)
def test_in_each_mode_both_ways_do_the_same(mode, kind, seen):
    """What forward gets and returns is recorded or not, hooks fire or not, whichever way a call takes."""
    found = []
    for short in (True, False):
        module, given = kind(), []
        module.register_full_backward_hook(note)
        if not short:
            module.register_forward_pre_hook(lambda *_: None)
        plain, seen[:] = module.forward, []
        module.forward = lambda x, plain=plain, given=given: (given.append(x), plain(x))[1]
        x = lucid.tensor([3.0], requires_grad=True)
        with MODES[mode]():
            y = module(x)
        if y.grad_fn is not None:
            y.sum().backward()
        grads = [(into[0].tolist(), out[0].tolist()) for into, out in seen]
        found.append((given[0].grad_fn is None, y.grad_fn is None, y.requires_grad, y.is_inference(), grads, x.grad))
    assert repr(found[0]) == repr(found[1])
    assert bool(found[0][4]) == (mode not in {"no_grad", "inference_mode", "set_grad_enabled(False)"})


@pytest.mark.parametrize("short", [True, False], ids=["short way", "general way"])
def test_an_inference_tensor_that_comes_out(short, seen):
    """A forward may return one, as a parameter made in inference mode is; nothing reaches the input then."""
    with lucid.inference_mode():
        kept = lucid.ones(1, requires_grad=True)

    module = module_of(lambda self, x: kept)
    module.register_full_backward_hook(note)
    if not short:
        module.register_forward_pre_hook(lambda *_: None)
    y = module(lucid.tensor([3.0], requires_grad=True))
    assert (y.tolist(), y.requires_grad) == ([1.0], True)
    (y * 2).sum().backward()
    assert seen == []


def test_gradients_of_inference_mode():
    """In a pass within inference mode a full backward hook is given inference tensors."""
    module, given = nn.Linear(2, 2), []
    module.register_full_backward_hook(lambda module, inputs, outputs: given.extend((*inputs, *outputs)))
    total = module(lucid.ones(1, 2, requires_grad=True)).sum()
    with lucid.inference_mode():
        total.backward()
    assert [grad.is_inference() for grad in given] == [True, True]


def test_a_gradient_that_a_hook_changes_in_place():
    """What a full backward hook writes to the gradient of an output reaches nothing else on its memory."""
    module = nn.ReLU()

    def hook(module, inputs, outputs):
        outputs[0].zero_()

    module.register_full_backward_hook(hook)
    first, second = (lucid.ones(3, requires_grad=True) for _ in range(2))
    (first * 1.0 + module(second)).sum().backward()
    assert first.grad.tolist() == [1.0] * 3


def test_gradients_of_no_dimension_are_changed_in_place():
    """NumPy computes scalars, which a hook can no more change: it is given arrays."""
    module, given = nn.Identity(), []

    def hook(module, inputs, outputs):
        given.extend(each.mul_(2.0).item() for each in (*inputs, *outputs))

    module.register_full_backward_hook(hook)
    x = lucid.tensor(3.0, requires_grad=True)
    (module(x.exp()) * 5.0).backward()
    assert given == [10.0, 10.0]
