"""Checkpointing gives PyTorch's values, gradients and sequence of events, in both forms."""

from __future__ import annotations

import contextlib

import pytest
import torch
import torch.utils.checkpoint

import lucid
from tests.parity.pieces import LIBRARIES, as_in_pytorch, linear, same, seeded

pytestmark = pytest.mark.filterwarnings("ignore")
contract = pytest.mark.contract
both_forms = pytest.mark.parametrize("use_reentrant", [True, False], ids=["reentrant", "recomputing"])


def network(lib):
    """Return two layers with a nonlinearity between."""
    return lib.nn.Sequential(linear(lib, 3, 3, 1), lib.nn.Tanh(), linear(lib, 3, 3, 2))


def watch(model, events):
    """Record every moment of every module."""
    for name, module in model.named_modules():
        module.register_forward_pre_hook(lambda m, args, n=name: events.append(("forward pre", n)))
        module.register_forward_hook(lambda m, args, out, n=name: events.append(("forward", n)))
        module.register_full_backward_pre_hook(lambda m, grads, n=name: events.append(("backward pre", n)))
        module.register_full_backward_hook(lambda m, into, out, n=name: events.append(("backward", n)))


@contract("5.9")
@both_forms
@as_in_pytorch
def test_the_sequence_of_events_and_the_gradients(lib, events, use_reentrant):
    """Every hook of nested modules fires when PyTorch's does; gradients are PyTorch's and those of no checkpoint."""
    model = network(lib)
    watch(model, events)
    x = seeded(lib, 2, 3, requires_grad=True)
    x.register_hook(lambda grad: events.append("input"))
    out = lib.utils.checkpoint.checkpoint(model, x * 2, use_reentrant=use_reentrant)
    events.append("backward")
    out.backward(seeded(lib, 2, 3, seed=9))
    plain = [x.grad, *(p.grad for p in model.parameters())]
    events.extend(plain)
    again = seeded(lib, 2, 3, requires_grad=True)
    for p in model.parameters():
        p.grad = None
    model(again * 2).backward(seeded(lib, 2, 3, seed=9))
    for checked, unchecked in zip(plain, [again.grad, *(p.grad for p in model.parameters())], strict=True):
        assert checked.tolist() == unchecked.tolist()


@contract("5.9")
def test_a_layer_fires_its_forward_hook_twice_or_once():
    """The forward hook of a layer fires twice in the reentrant form and once in the other, its backward hook once."""

    def program(lib, events):
        for use_reentrant in (True, False):
            layer = linear(lib, 3, 3, 1)
            counts = {"forward": 0, "backward": 0}
            layer.register_forward_hook(lambda m, a, o, c=counts: c.update(forward=c["forward"] + 1))
            layer.register_full_backward_hook(lambda m, i, o, c=counts: c.update(backward=c["backward"] + 1))
            out = lib.utils.checkpoint.checkpoint(
                layer, seeded(lib, 2, 3, requires_grad=True), use_reentrant=use_reentrant
            )
            out.backward(seeded(lib, 2, 3, seed=9))
            events.append(counts)

    assert same(program) == [{"forward": 2, "backward": 1}, {"forward": 1, "backward": 1}]


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 3])
@as_in_pytorch
def test_nested(lib, events, depth, early_stop):
    """Checkpoints inside of checkpoints give PyTorch's gradients and runs of each part."""
    checkpoint = lib.utils.checkpoint.checkpoint
    w = seeded(lib, 3, seed=5, requires_grad=True)

    def level(n):
        def run(x):
            events.append(n)
            x = (x * w).sin()
            if n:
                x = checkpoint(level(n - 1), x, use_reentrant=False, early_stop=early_stop)
            return x.exp()

        return run

    x = seeded(lib, 3, requires_grad=True)
    out = checkpoint(level(depth), x, use_reentrant=False, early_stop=early_stop)
    out.backward(seeded(lib, 3, seed=9))
    events[:] = [events.count(depth), x.grad, w.grad]


@as_in_pytorch
def test_double_backward(lib, events):
    """Second derivatives go through a checkpoint that is not reentrant."""
    w = seeded(lib, 3, seed=5, requires_grad=True)
    x = seeded(lib, 3, requires_grad=True)
    out = lib.utils.checkpoint.checkpoint(lambda x: (x * w).exp() * x.sin(), x, use_reentrant=False)
    (slope,) = lib.autograd.grad(out, x, seeded(lib, 3, seed=9), create_graph=True)
    slope.backward(seeded(lib, 3, seed=10))
    events.extend([slope, x.grad, w.grad])


@as_in_pytorch
def test_a_gradient_taken_inside(lib, events):
    """A function that differentiates inside of itself, as a gradient penalty does, can be checkpointed."""
    w = seeded(lib, 3, seed=5, requires_grad=True)

    def penalty(x):
        x = x.sin()
        y = (x * w).exp()
        (slope,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        return y * slope

    x = seeded(lib, 3, requires_grad=True)
    out = lib.utils.checkpoint.checkpoint(penalty, x, use_reentrant=False)
    out.backward(seeded(lib, 3, seed=9))
    events.extend([out, x.grad, w.grad])


@both_forms
@as_in_pytorch
def test_several_and_other_outputs_and_arguments(lib, events, use_reentrant):
    """Numbers, None, lists, and outputs that are no tensors pass through; an unused output counts as zeros."""

    def function(x, scale, nothing, names, y):
        assert nothing is None
        return x * scale, names, (x * y).exp(), len(names)

    x, y = seeded(lib, 3, requires_grad=True), seeded(lib, 3, seed=3, requires_grad=True)
    first, names, second, count = lib.utils.checkpoint.checkpoint(
        function, x, 2.5, None, ["a", "b"], y, use_reentrant=use_reentrant
    )
    events.extend([names, count, first, second])
    second.backward(seeded(lib, 3, seed=9))
    events.extend([x.grad, y.grad])


@as_in_pytorch
def test_keyword_arguments(lib, events):
    """Keyword arguments reach the function in both runs, tensors among them."""
    x, y = seeded(lib, 3, requires_grad=True), seeded(lib, 3, seed=3, requires_grad=True)
    out = lib.utils.checkpoint.checkpoint(
        lambda x, *, y, power: (x * y).exp() ** power, x, use_reentrant=False, y=y, power=3
    )
    out.backward(seeded(lib, 3, seed=9))
    events.extend([out, x.grad, y.grad])


@both_forms
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
@as_in_pytorch
def test_sequential(lib, events, segments, use_reentrant):
    """A sequence in segments calls each step as often as PyTorch does, with its gradients."""
    model = lib.nn.Sequential(*(linear(lib, 3, 3, seed) for seed in range(5)))
    watch(model, events)
    x = seeded(lib, 2, 3, requires_grad=True)
    out = lib.utils.checkpoint.checkpoint_sequential(model, segments, x, use_reentrant=use_reentrant)
    out.backward(seeded(lib, 2, 3, seed=9))
    events.extend([x.grad, *(p.grad for p in model.parameters())])


@as_in_pytorch
def test_contexts_of_the_two_runs(lib, events):
    """The first context manager holds in the first run, the second in the recomputation."""

    @contextlib.contextmanager
    def note(name):
        events.append(f"enter {name}")
        yield
        events.append(f"leave {name}")

    x = seeded(lib, 3, requires_grad=True)
    out = lib.utils.checkpoint.checkpoint(
        lambda x: x.exp().sin(),
        x,
        use_reentrant=False,
        early_stop=False,
        context_fn=lambda: (note("first"), note("again")),
    )
    events.append("backward")
    out.backward(seeded(lib, 3, seed=9))


def refusals(lib):
    """Yield calls that PyTorch refuses, with what it raises."""
    checkpoint = lib.utils.checkpoint.checkpoint

    def x():
        return seeded(lib, 3, requires_grad=True)

    yield lambda: checkpoint(lambda x, y: x * y, x(), use_reentrant=True, y=2), ValueError
    yield lambda: checkpoint(lambda x: x, x(), use_reentrant=True, debug=True), ValueError
    yield lambda: checkpoint(lambda x: x, x(), use_reentrant=True, context_fn=lambda: (1, 2)), ValueError
    out = checkpoint(lambda x: x.exp(), given := x(), use_reentrant=True)
    yield lambda: lib.autograd.grad(out.sum(), given), RuntimeError
    yield lambda: out.sum().backward(inputs=[given]), RuntimeError
    detached = checkpoint(lambda x: x.detach().exp(), x(), use_reentrant=True)
    yield lambda: detached.sum().backward(), RuntimeError
    changing = iter([True, False])
    other = checkpoint(lambda x: x.sin().exp() if next(changing) else x * 2, x(), use_reentrant=False)
    yield lambda: other.sum().backward(), RuntimeError
    shapes = iter([slice(None), slice(1)])
    shorter = checkpoint(lambda x: x[next(shapes)].sin().exp().sum(), x(), use_reentrant=False)
    yield lambda: shorter.backward(), RuntimeError


def test_what_is_refused():
    """Whatever PyTorch refuses is refused, by an error of the same builtin type."""
    theirs, ours = list(refusals(torch)), list(refusals(lucid))
    assert len(theirs) == len(ours) == 8
    for calls in (theirs, ours):
        for call, kind in calls:
            with pytest.raises(kind):
                call()


def test_without_the_form():
    """Leaving `use_reentrant` out warns and takes the reentrant form, as in PyTorch."""
    for lib in LIBRARIES.values():
        x = seeded(lib, 3, requires_grad=True)
        with pytest.warns(UserWarning, match="use_reentrant"):
            out = lib.utils.checkpoint.checkpoint(lambda x: x.exp(), x)
        assert out.grad_fn.name() == "CheckpointFunctionBackward"
        with pytest.warns(UserWarning, match=r"requires.grad"):
            lib.utils.checkpoint.checkpoint(lambda x: x.exp(), x.detach(), use_reentrant=True)
