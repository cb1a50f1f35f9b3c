"""Checkpointing: what it frees, what it repeats, and what it leaves behind when something goes wrong."""

from __future__ import annotations

import contextlib
import copy
import gc
import inspect
import sys
import tracemalloc
import weakref
from functools import partial

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid import numpy as lnp
from lucid.autograd.graph import allow_mutation_on_saved_tensors, saved_tensors_hooks
from lucid.errors import CheckpointError, HookError, HookTypeError, InplaceError
from lucid.public import written_in
from lucid.utils.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from tests.device import DEVICE
from tests.pieces import drawn, function_of, no_collections

contract = pytest.mark.contract
# Memory of the CPU is seen with what Python takes beside it; a simulated device pays for each thread.
MANY = 100_000 if DEVICE == "cpu" else 20_000
both_forms = pytest.mark.parametrize("use_reentrant", [True, False], ids=["reentrant", "recomputing"])


def like(rng, tensor):
    """Return random numbers of a tensor's shape."""
    return lucid.tensor(rng.standard_normal(tuple(tensor.shape)))


def deep(x):
    """Return what twenty ops make of `x`; each saves its output."""
    for _ in range(20):
        x = (x * 0.5).exp()
    return x


def peak(function):
    """Return the most bytes that were alive while `function` ran, over those before, and those alive after."""
    gc.collect()
    if DEVICE != "cpu":
        before = lucid.cuda.memory_allocated()
        lucid.cuda.reset_peak_memory_stats()
        kept = function()
        after, most = lucid.cuda.memory_allocated(), lucid.cuda.max_memory_allocated()
        del kept
        return most - before, after - before
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = function()
        after, most = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return most - before, after - before


@both_forms
def test_intermediates_are_freed(rng, use_reentrant):
    """After a checkpointed forward only its output lives; a whole pass over four parts peaks at one of them."""
    x = drawn(rng, MANY)
    size = x.nbytes
    _, plain = peak(lambda: deep(x))
    _, alive = peak(lambda: checkpoint(deep, x, use_reentrant=use_reentrant))
    assert plain > 18 * size
    assert alive < 1.2 * size

    def train(call):
        out = x
        for _ in range(4):
            out = call(deep, out)
        out.backward(like(rng, out))

    without, _ = peak(lambda: train(lambda f, t: f(t)))
    most, _ = peak(lambda: train(lambda f, t: checkpoint(f, t, use_reentrant=use_reentrant)))
    assert without > 75 * size
    assert most < 35 * size


def test_nested_checkpoints_keep_no_inner_input(rng):
    """The input of an inner checkpoint is an intermediate of the outer one, and is not kept either."""
    x = drawn(rng, MANY)

    def outer(x):
        for _ in range(10):
            x = checkpoint(lambda t: (t * 0.5).exp(), x, use_reentrant=False)
        return x

    _, alive = peak(lambda: checkpoint(outer, x, use_reentrant=False))
    assert alive < 1.3 * x.nbytes


@pytest.mark.parametrize("keep", [False, True])
def test_what_was_recomputed_goes_with_its_pass(rng, keep):
    """After backward nothing recomputed is left, even if the graph is kept and its second half was not needed."""
    x = drawn(rng, MANY)
    mid = []

    def function(x):
        y = deep(x)
        mid.append(weakref.ref(y))
        return deep(y)

    out = checkpoint(function, x, use_reentrant=False)

    def back():
        out.backward(like(rng, out), retain_graph=keep)

    _, after = peak(back)
    # the gradient of x
    assert after < 1.2 * x.nbytes
    if keep:
        out.backward(like(rng, out))


@pytest.mark.parametrize("keep", [False, True])
def test_what_was_recomputed_is_freed_as_its_nodes_run(rng, keep):
    """While later nodes wait for their turn: what the first has used, what none needs, and the graph of the rerun."""
    left, seen = [], []

    def function(x):
        unused = x.exp()
        y = x * 2.0
        z = y.sin()
        z.register_hook(lambda grad: seen.append([ref() for ref in left[-3:]]))
        out = z.exp()
        left.extend([weakref.ref(unused.array), weakref.ref(y.grad_fn), weakref.ref(out.array)])
        return out

    x = drawn(rng, 3)
    out = checkpoint(function, x, use_reentrant=False, early_stop=False)
    out.backward(like(rng, x), retain_graph=keep)
    assert len(left) == 6
    assert seen == [[None, None, None]]


def test_nothing_waits_for_the_collector(rng):
    """Dropping the output frees the arguments at once, before and after backward."""
    for run_backward in (False, True):
        x = drawn(rng, 3)
        y = x * 2.0
        out = checkpoint(lambda y: y.exp().sin(), y, use_reentrant=False)
        array = weakref.ref(y.array)
        with no_collections():
            if run_backward:
                out.backward(like(rng, out), retain_graph=True)
            del y, out
            assert array() is None


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@both_forms
def test_random_numbers_are_repeated(rng, use_reentrant, device):
    """Dropout draws the same mask again, and the generators go on as if nothing had been drawn in backward."""
    x = lucid.tensor(rng.standard_normal(1000), device=device, requires_grad=True)
    upstream = lucid.tensor(rng.standard_normal(1000), device=device)

    def function(x):
        return nn.functional.dropout(x, 0.5, training=True) * 2.0

    def run(call):
        lucid.manual_seed(3)
        x.grad = None
        out = call(x)
        between = lucid.rand(4, device=device).tolist()
        out.backward(upstream)
        return x.grad.tolist(), between, lucid.rand(4, device=device).tolist()

    assert run(lambda x: checkpoint(function, x, use_reentrant=use_reentrant)) == run(function)


@both_forms
@pytest.mark.parametrize("call", [checkpoint, lambda f, x, **settings: checkpoint_sequential([f, f], 2, x, **settings)])
def test_random_numbers_are_left_alone_on_request(call, use_reentrant, rng):
    """With preserve_rng_state=False the recomputation draws others, in each form and of each segment."""
    x = drawn(rng, 1000)
    seen = []

    def function(x):
        seen.append(lucid.rand(3).tolist())
        return x.exp() * 2.0

    for preserve in (True, False):
        seen.clear()
        out = call(function, x, use_reentrant=use_reentrant, preserve_rng_state=preserve)
        runs = len(seen)
        out.backward(like(rng, x))
        assert len(seen) == runs + 1
        assert (seen[0] == seen[-1]) is preserve


def test_the_recomputation_stops_early(rng):
    """What comes after the last saved tensor is not run again, unless early stop is off by argument or by context."""
    x = drawn(rng, 3)
    done = []

    def function(x):
        y = x.exp() + 1.0
        done.append(1)
        return y

    def count(**arguments):
        done.clear()
        checkpoint(function, x, use_reentrant=False, **arguments).backward(like(rng, x))
        return len(done)

    assert count() == 1
    assert count(early_stop=False) == 2
    with set_checkpoint_early_stop(False):
        assert count() == 2
        with set_checkpoint_early_stop(True):
            assert count(early_stop=False) == 1
    assert count() == 1


@pytest.mark.parametrize("early_stop", [True, False])
def test_what_a_run_had_made_before_it_raised(rng, early_stop):
    """It can be differentiated: the recomputation ends where the run had come to, also without early stop."""
    x, made = drawn(rng, 3), []

    def function(x):
        made.append((x * x).exp())
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        checkpoint(function, x, use_reentrant=False, early_stop=early_stop)
    upstream = like(rng, x)
    made[0].backward(upstream)
    values = x.detach().cpu().numpy()
    expected = upstream.cpu().numpy() * 2 * values * np.exp(values**2)
    np.testing.assert_allclose(x.grad.cpu().numpy(), expected, rtol=1e-12)
    assert len(made) == 1


@contract("5.9")
def test_always_called_hooks_do_not_hear_of_the_early_stop(rng):
    """A forward hook with always_call fires once, with an output; PyTorch calls it again with None."""
    layer = nn.Linear(3, 2, dtype=lucid.float64)
    outputs = []
    layer.register_forward_hook(lambda m, args, out: outputs.append(tuple(out.shape)), always_call=True)
    out = checkpoint(layer, drawn(rng, 4, 3), use_reentrant=False)
    out.backward(like(rng, out))
    assert outputs == [(4, 2)]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_saved_tensors_read_repeatedly(rng, times):
    """A Function inside may read its saved tensors more than once; kept graphs run again; each gives the same."""
    reads = []

    def forward(ctx, x):
        ctx.save_for_backward(x, x * 2.0)
        return x * x

    def backward(ctx, grad):
        (x, _), (_, double) = ctx.saved_tensors, ctx.saved_tensors
        reads.append(1)
        assert double.tolist() == (x * 2.0).tolist()
        return grad * double

    Square = function_of(forward, backward, name="Square")

    x = drawn(rng, 3)
    upstream = like(rng, x)
    out = checkpoint(lambda x: Square.apply(x.sin()).exp(), x, use_reentrant=False)
    for _ in range(times):
        out.backward(upstream, retain_graph=True)
    values = x.detach().cpu().numpy()
    slope = upstream.cpu().numpy() * np.exp(np.sin(values) ** 2) * 2 * np.sin(values) * np.cos(values)
    np.testing.assert_allclose(x.grad.cpu().numpy(), times * slope, rtol=1e-12)
    assert len(reads) == times


def test_an_argument_changed_in_place_is_detected(rng):
    """The recomputation would start from other values: both forms refuse, and name the argument."""
    x = drawn(rng, 3)
    y = x * 2.0
    out = checkpoint(lambda y: y.exp() * 3.0, y, use_reentrant=False)
    y.mul_(2.0)
    with pytest.raises(InplaceError, match="argument"):
        out.backward(like(rng, x))
    y = x * 2.0
    out = checkpoint(lambda y: y.exp() * 3.0, y, use_reentrant=True)
    y.mul_(2.0)
    with pytest.raises(InplaceError):
        out.backward(like(rng, x))


def test_a_saved_tensor_changed_in_place_inside_is_detected(rng):
    """What was recomputed and then changed by the function itself is not used."""
    x = drawn(rng, 3)

    def function(x):
        y = x.exp()
        z = y.sin()
        y.mul_(2.0)
        return z * y.exp()

    out = checkpoint(function, x, use_reentrant=False)
    with pytest.raises(InplaceError):
        out.backward(like(rng, x))


def test_the_error_of_a_changed_recomputation(rng):
    """It names the function, the tensor, what was expected and what came; debug adds the lines of code."""
    x = drawn(rng, 3)
    shapes = iter([3, 2, 3, 2])

    def unsteady(x):
        return x[: next(shapes)].exp().sum()

    with pytest.raises(CheckpointError, match=r"unsteady.*tensor 0: expected shape \(3,\).*got shape \(2,\)"):
        checkpoint(unsteady, x, use_reentrant=False).backward()
    with set_checkpoint_debug_enabled(True), pytest.raises(CheckpointError, match="x\\[: next"):
        checkpoint(unsteady, x, use_reentrant=False).backward()
    lengths = iter([2, 1])

    def shorter(x):
        for _ in range(next(lengths)):
            x = x.exp()
        return x

    with pytest.raises(CheckpointError, match=r"different number of tensors was saved: expected 2.*got 1"):
        checkpoint(shorter, x, use_reentrant=False).backward(like(rng, x))
    lengths = iter([1, 3])
    runs = []

    def longer(x):
        for _ in range(next(lengths)):
            x = x.exp()
            runs.append(x)
        return x

    # it ends where more is saved than was before
    with pytest.raises(CheckpointError, match=r"expected 1.*got more"):
        checkpoint(longer, x, use_reentrant=False, early_stop=False).backward(like(rng, x))
    assert len(runs) == 2


def test_the_check_can_be_left_out(rng):
    """determinism_check="none" takes what comes, as long as backward can use it."""
    x = lucid.tensor(rng.standard_normal(3).astype(np.float32), requires_grad=True)
    dtypes = iter([lucid.float32, lucid.float64] * 2)

    def function(x):
        return x.to(next(dtypes)).exp().to(lucid.float32)

    with pytest.raises(CheckpointError):
        checkpoint(function, x, use_reentrant=False).sum().backward()
    checkpoint(function, x, use_reentrant=False, determinism_check="none").sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.exp(x.detach().cpu().numpy()), rtol=1e-6)


class Stop(Exception):
    """What a hook raises in these tests."""


@both_forms
def test_a_hook_that_raises_in_the_recomputation(rng, use_reentrant):
    """Modes, hooks of saved tensors and random numbers are as before, and the next step trains on."""
    layer = nn.Linear(3, 3, dtype=lucid.float64)
    x = drawn(rng, 2, 3)
    calls = []

    def fail(module, args):
        calls.append(1)
        if len(calls) == 2:
            raise Stop

    layer.register_forward_pre_hook(fail)
    out = checkpoint(layer, x, use_reentrant=use_reentrant)
    state = lucid.get_rng_state().tolist()
    with pytest.raises(Stop) as caught:
        out.backward(like(rng, out))
    assert any("forward pre-hook" in note for note in caught.value.__notes__)
    assert lucid.is_grad_enabled()
    assert lucid.get_rng_state().tolist() == state
    assert lucid.autograd.graph.current_graph_task_id() == -1
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t):
        x.exp()
    assert packed == [1]
    assert x.grad is None
    upstream = like(rng, out)
    checkpoint(layer, x, use_reentrant=use_reentrant).backward(upstream)
    expected = upstream.cpu().numpy() @ layer.weight.detach().cpu().numpy()
    np.testing.assert_allclose(x.grad.cpu().numpy(), expected, rtol=1e-12)


def test_without_grad_nothing_is_kept(rng):
    """Under no_grad the function just runs; inside inference mode too."""
    x = drawn(rng, 3)
    for mode in (lucid.no_grad(), lucid.inference_mode()):
        with mode:
            out = checkpoint(lambda x: x.exp(), x, use_reentrant=False)
        assert not out.requires_grad


def test_backward_under_no_grad(rng):
    """The recomputation records whatever the mode of the caller of backward."""
    x = drawn(rng, 3)
    upstream = like(rng, x)
    for use_reentrant in (True, False):
        x.grad = None
        out = checkpoint(lambda x: x.exp().exp(), x, use_reentrant=use_reentrant)
        with lucid.no_grad():
            out.backward(upstream)
        values = np.exp(x.detach().cpu().numpy())
        np.testing.assert_allclose(x.grad.cpu().numpy(), upstream.cpu().numpy() * np.exp(values) * values, rtol=1e-12)


def test_bad_arguments(rng):
    """What cannot be called, unknown checks, contexts that are none, and impossible segments are refused at once."""
    x = drawn(rng, 3)
    with pytest.raises(TypeError, match="callable"):
        checkpoint(3, x, use_reentrant=False)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lambda x: x, x, use_reentrant=False, determinism_check="values")
    with pytest.raises(TypeError, match="context_fn"):
        checkpoint(lambda x: x, x, use_reentrant=False, context_fn=lambda: None)
    with pytest.raises(CheckpointError, match="suppressed"):
        checkpoint(
            lambda x: {}[x],
            x,
            use_reentrant=False,
            context_fn=lambda: (contextlib.suppress(KeyError), contextlib.nullcontext()),
        )
    for segments in (0, 4):
        with pytest.raises(ValueError, match="segments"):
            checkpoint_sequential([lucid.exp] * 3, segments, x, use_reentrant=False)
    with pytest.raises(HookError, match="none here"), lucid.autograd.graph.disable_saved_tensors_hooks("none here"):
        checkpoint(lambda x: x, x, use_reentrant=False)


def test_second_derivatives_of_the_reentrant_form_are_refused(rng):
    """They would be silently missing, as in PyTorch."""
    x = drawn(rng, 3)
    out = checkpoint(lambda x: x.exp(), x, use_reentrant=True)
    with pytest.raises(CheckpointError, match="second derivatives"):
        out.sum().backward(create_graph=True)
    assert x.grad is None


def test_gradcheck(rng):
    """Finite differences agree, to second order too."""
    w = drawn(rng, 3)

    def function(x):
        return checkpoint(lambda x: (x * w).sin().exp() * w, x, use_reentrant=False)

    assert lucid.autograd.gradcheck(function, (drawn(rng, 3),))
    assert lucid.autograd.gradgradcheck(function, (drawn(rng, 3),))


@pytest.mark.parametrize("stored", [False, True])
def test_a_leaf_is_given_to_the_recomputation_itself(stored, rng):
    """It lives in any case: hooks neither store it as an argument, nor is it another tensor when it comes again."""
    x, seen = drawn(rng, 3), []

    def function(x):
        seen.append(x)
        return x.exp()

    with lucid.autograd.graph.save_on_cpu() if stored else contextlib.nullcontext():
        out = checkpoint(function, x, use_reentrant=False)
    out.backward(like(rng, out))
    assert len(seen) == 2
    assert all(each is x for each in seen)


def test_an_argument_that_hooks_have_stored_may_change(rng):
    """Where saved-tensor hooks keep the arguments, a later change of these is none of what they keep."""
    x = drawn(rng, 3)
    y = x * 2.0
    with lucid.autograd.graph.save_on_cpu():
        out = checkpoint(lambda y: y.exp(), y, use_reentrant=False)
    expected = out.detach() * 2.0
    y.mul_(5.0)
    upstream = like(rng, out)
    out.backward(upstream)
    np.testing.assert_allclose(x.grad.cpu().numpy(), (expected * upstream).cpu().numpy(), rtol=1e-12)


def test_a_recomputation_does_not_count_changes_of_what_hooks_have_stored(rng):
    """The run again changes the stored copy of an argument in place: the argument itself stays at its version."""
    x = drawn(rng, 3)
    y = x * 2.0
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t.clone()):
        out = checkpoint(lambda t: t.mul_(3.0).exp(), y, use_reentrant=False)
    values, version = out.detach(), y._version
    upstream = like(rng, out)
    out.backward(upstream)
    assert y._version == version == 1
    np.testing.assert_allclose(x.grad.cpu().numpy(), (values * 6.0 * upstream).cpu().numpy(), rtol=1e-12)


@pytest.mark.parametrize("reentrant", [True, False])
def test_it_decorates(reentrant):
    """Without a function it is a decorator: each call is checkpointed, with its settings, and the name stays."""
    runs, ends = [], []

    @checkpoint(use_reentrant=reentrant, early_stop=False)
    def scaled(x, *factors):
        """Return x times the factors."""
        runs.append(lucid.is_grad_enabled())
        for factor in factors:
            x = (x * factor).exp()
        ends.append(len(runs))
        return x

    x = lucid.ones(2, requires_grad=True)
    y = scaled(x, 2.0, 0.5)
    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Return x times the factors.")
    assert runs == [not reentrant]
    y.sum().backward()
    assert len(runs) == 2
    assert ends == [1, 2]
    plain = x.detach().clone().requires_grad_()
    ((plain * 2.0).exp() * 0.5).exp().sum().backward()
    assert x.grad.tolist() == plain.grad.tolist()


@pytest.mark.parametrize("call", [checkpoint, lambda f, x: checkpoint_sequential([f, f], 2, x)])
def test_a_form_that_is_not_chosen_warns(call, rng):
    """It is the reentrant one; a call of that without a gradient to come warns, too."""
    x = drawn(rng, 2)
    with pytest.warns(UserWarning, match="use_reentrant was not given and is taken as True"):
        out = call(lucid.exp, x)
    out.sum().backward()
    assert x.grad is not None
    with pytest.warns(UserWarning, match="none of the arguments requires grad"):
        checkpoint(lucid.exp, x.detach(), use_reentrant=True)


def test_a_decorator_hands_all_settings_on(monkeypatch):
    """Each call of the function is `checkpoint` with what the decorator was given, and its own arguments."""
    module, calls = sys.modules[written_in(checkpoint)], []
    names = [name for name, p in inspect.signature(checkpoint).parameters.items() if p.kind is p.KEYWORD_ONLY]
    given = {name: name for name in names} | {"use_reentrant": False, "preserve_rng_state": False, "debug": True,
                                              "early_stop": False}  # fmt: skip
    decorated = checkpoint(**given)(lucid.exp)
    monkeypatch.setattr(module, "checkpoint", lambda function, *args, **named: calls.append((function, args, named)))
    decorated(1, 2, more=3)
    assert calls == [(lucid.exp, (1, 2), {**given, "more": 3})]
    assert len(names) == 6


@both_forms
@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_segments(use_reentrant, count, rng):
    """All functions run, in order; all segments but the last, which takes what is left over, run again in backward."""
    for segments in range(1, count + 1):
        runs, x = [], drawn(rng, 2)

        def step(value, number, runs=runs):
            runs.append(number)
            return (value * (number + 1)).sin()

        steps = [partial(step, number=number) for number in range(count)]
        out = checkpoint_sequential(steps, segments, x, use_reentrant=use_reentrant)
        assert runs == [*range(count)]
        out.sum().backward()
        again = sorted(runs[count:])
        assert again == [*range(count // segments * (segments - 1))]
        plain = x.detach().clone().requires_grad_()
        value = plain
        for function in steps:
            value = function(value)
        value.sum().backward()
        np.testing.assert_allclose(x.grad.tolist(), plain.grad.tolist(), rtol=1e-12)


@both_forms
@pytest.mark.parametrize("casts", [True, False])
def test_autocast_is_that_of_the_forward(use_reentrant, casts, rng):
    """The second run casts as the first did, whatever is on around backward, which goes on as before."""
    x, seen = drawn(rng, 3, 3).detach().float().requires_grad_(), []

    def function(x):
        seen.append((lucid.is_autocast_enabled(DEVICE), lucid.get_autocast_dtype(DEVICE)))
        return (x @ x).float().sum()

    with lucid.autocast(DEVICE, dtype=lucid.float16, enabled=casts):
        y = checkpoint(function, x, use_reentrant=use_reentrant)
    with lucid.autocast(DEVICE, dtype=lucid.bfloat16, enabled=not casts):
        y.backward()
        assert lucid.is_autocast_enabled(DEVICE) is not casts
        assert lucid.get_autocast_dtype(DEVICE) is lucid.bfloat16
    assert seen == [(casts, lucid.float16)] * 2
    with lucid.autocast(DEVICE, dtype=lucid.float16, enabled=casts):
        (expected,) = lucid.autograd.grad(function(x), x)
    assert x.grad.tolist() == expected.tolist()


def test_a_decorator_has_no_arguments_of_a_function():
    """What only a function could take is refused where there is none, and so is what is no function."""
    with pytest.raises(CheckpointError, match="without a function there are no arguments for it: x"):
        checkpoint(use_reentrant=False, x=3)
    with pytest.raises(HookTypeError, match="checkpoint: function"):
        checkpoint(use_reentrant=False)(3)


def test_what_comes_out_may_be_changed_in_place():
    """It is computed anew for backward: what became of the first one is nobody's concern, as without a checkpoint."""
    x = lucid.tensor([0.0, 1.0], requires_grad=True)
    y = checkpoint(lambda t: t.exp(), x, use_reentrant=False)
    y.mul_(2)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), 2 * np.exp([0.0, 1.0]), rtol=1e-6)


def test_inner_settings_are_taken_back_to_the_outer_ones(rng):
    """A block within another one ends with the other one's setting."""
    x, runs = drawn(rng, 2), []

    def function(t):
        y = t.exp()
        runs.append("saved")
        y = y.cos()
        if len(runs) == 3:  # in the second run
            y = y.sin()
        runs.append("done")
        return y

    with set_checkpoint_debug_enabled(True), set_checkpoint_early_stop(False):
        with set_checkpoint_debug_enabled(False), set_checkpoint_early_stop(True):
            pass
        y = checkpoint(function, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different number of tensors was saved") as caught:
        y.sum().backward()
    assert "debug=True shows" not in str(caught.value)


@pytest.mark.parametrize("setting", [True, False, None])
@pytest.mark.parametrize("debug", [True, False])
def test_the_setting_goes_before_the_argument(setting, debug, rng):
    """`set_checkpoint_debug_enabled` switches the lines of code on or off whatever a call asks for; None leaves it."""
    x, shapes = drawn(rng, 3), iter([3, 2])
    with set_checkpoint_debug_enabled(setting), pytest.raises(CheckpointError) as caught:
        checkpoint(lambda x: x[: next(shapes)].exp().sum(), x, use_reentrant=False, debug=debug).backward()
    assert ("debug=True shows" not in str(caught.value)) is (debug if setting is None else setting)


def test_a_run_that_counts_no_changes_is_not_compared():
    """One tensor may be a parameter here and a buffer there: of the latter a read does not say how often it changed."""
    trained, kept = nn.Module(), nn.Module()
    trained.w = nn.Parameter(lucid.ones(2))
    kept.register_buffer("w", trained.w)
    order = [trained, kept]

    def function(t):
        first, second = (module.w for module in order)
        order.reverse()
        return (t * first).exp() * second

    x = lucid.zeros(2, requires_grad=True)
    checkpoint(function, x, use_reentrant=False).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


class Counts(lucid.nn.Module):
    """Puts another buffer in the place of its own at each call."""

    def __init__(self):
        super().__init__()
        self.weight = lucid.nn.Parameter(lucid.ones(3))
        self.register_buffer("count", lucid.zeros(()))

    def forward(self, x):
        self.count = self.count + 1
        return x * self.weight


def test_a_buffer_that_the_function_replaces_may_be_another():
    """What the first run has put in the place of a buffer is what the second one finds."""
    module = Counts()
    checkpoint(module, lucid.ones(3), use_reentrant=False).sum().backward()
    assert module.weight.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda: lucid.nn.BatchNorm1d(3),
        lambda: lucid.nn.utils.spectral_norm(lucid.nn.Linear(3, 2)),
        lambda: lucid.nn.utils.parametrizations.spectral_norm(lucid.nn.Linear(3, 2)),
    ],
    ids=["batch norm", "spectral norm", "spectral norm, parametrized"],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_second_run_moves_no_buffer(make, reentrant, rng):
    """Statistics, counts and vectors that a call in training moves are moved once."""
    module = make()
    twin = copy.deepcopy(module)
    x = lucid.tensor(rng.standard_normal((4, 3)), dtype=lucid.float32, requires_grad=True)
    twin(x)
    checkpoint(module, x, use_reentrant=reentrant).sum().backward()
    for (name, buffer), (_, other) in zip(module.named_buffers(), twin.named_buffers(), strict=True):
        assert lucid.equal(buffer, other), name


@pytest.mark.parametrize("in_block", [False, True], ids=["", "in a block"])
def test_results_of_lucid_numpy_have_their_gradients(in_block, rng):
    """The reentrant form records arrays and numbers, which `lucid.numpy` gives plain where nothing is recorded."""
    x = drawn(rng, 4)
    with allow_mutation_on_saved_tensors() if in_block else contextlib.nullcontext():
        number, array, constant = checkpoint(
            lambda z: (lnp.sum(lnp.asarray(z) ** 2), lnp.sin(z), 2.5),
            x,
            use_reentrant=True,
        )
        (lnp.sum(array * array) + number + lnp.sum(x)).backward()
    assert type(array) is type(number) is lnp.ndarray
    assert constant == 2.5
    values = x.detach().cpu().numpy()
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.sin(2 * values) + 2 * values + 1, rtol=1e-12)
    with lucid.no_grad():
        plain = checkpoint(lambda z: lnp.sin(lnp.asarray(z)), x, use_reentrant=True)
    assert not isinstance(plain, lucid.Tensor)


@pytest.mark.parametrize("fills", [True, False], ids=["an array that is filled", "a tensor of an op"])
def test_values_that_change_while_the_function_runs_again(fills, rng):
    """In a block that keeps what changes in place a recomputation keeps it, too, as the first run does."""
    x = drawn(rng, 5)

    def f(z):
        y = z**2 + 0.5
        if fills:
            y, square = lnp.zeros(5), lnp.asarray(y)
            y[:] = square
        for k in range(1, 5):
            y[k:] = y[k:] * y[k - 1]
        return (y * y).sum()

    def of_numpys(values):
        y = values**2 + 0.5
        for k in range(1, 5):
            y[k:] = y[k:] * y[k - 1]
        return (y * y).sum()

    with allow_mutation_on_saved_tensors():
        checkpoint(f, x, use_reentrant=False).backward()
    values, step = x.detach().cpu().numpy(), 1e-6
    wanted = [(of_numpys(values + e) - of_numpys(values - e)) / (2 * step) for e in np.eye(5) * step]
    np.testing.assert_allclose(x.grad.cpu().numpy(), wanted, rtol=1e-6, atol=1e-8)
