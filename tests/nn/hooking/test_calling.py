"""Sections 4 to 6 of the hooks contract, line by line: what a module call does, and when its backward hooks fire."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from threading import get_ident
from types import SimpleNamespace

import numpy as np
import pytest

import lucid
from lucid import hooks, nn
from lucid.base.capture import captures
from lucid.errors import HookError
from lucid.nn.hooking.tables import everywhere
from tests.autograd.calls import calls
from tests.pieces import drawn, module_of, raising

contract = pytest.mark.contract
PACKAGE = str(Path(lucid.__file__).parent)


class Scale(nn.Module):
    """Multiplies by a keyword argument, or fails."""

    def forward(self, x, *, factor=2.0, fail=None):
        if fail is not None:
            raise fail
        return x * factor


@contract("4.1")
def test_forward_pre_hooks(rng):
    """None keeps the arguments, a tuple replaces them, anything else is wrapped in one; a list is one argument."""
    module, seen, x = nn.Identity(), [], rng.standard_normal(3)
    for result in (None, (lucid.tensor(x),), lucid.tensor(x), [1, 2]):
        with module.register_forward_pre_hook(lambda m, args, result=result: result):
            seen.append(module(lucid.zeros(3)))
    assert seen[0].tolist() == [0.0] * 3
    assert np.array_equal(seen[1].cpu().numpy(), seen[2].cpu().numpy())
    assert np.array_equal(seen[2].cpu().numpy(), lucid.tensor(x).cpu().numpy())
    assert seen[3] == [1, 2]


@contract("4.1")
@pytest.mark.parametrize("wrong", [3, (1,), [1, {}], (1, {}), ((1,), [2]), ((1,), {}, 3)])
def test_forward_pre_hooks_with_kwargs_return_both(wrong):
    """With kwargs a hook returns None or (args, kwargs), a tuple and a dictionary; forward does not run on else."""
    module, ran = Scale(), []
    module.forward = lambda *args, **kwargs: ran.append(1)
    with (
        module.register_forward_pre_hook(lambda m, args, kwargs: wrong, with_kwargs=True),
        pytest.raises(HookError, match=r"None or a tuple of \(new_args, new_kwargs\)") as caught,
    ):
        module(lucid.ones(2))
    assert "forward pre-hook number 0 of module Scale" in caught.value.__notes__[0]
    assert not ran


@contract("4.1")
@contract("4.2")
@contract("0.2")
def test_keyword_arguments_order_and_replacement(rng):
    """Hooks with kwargs get them, each hook gets what the one before returned, and prepended ones come first."""
    module, events, x = Scale(), [], drawn(rng, 3)

    def more(m, args, kwargs):
        events.append(("pre", kwargs["factor"]))
        return args, {"factor": kwargs["factor"] * 10}

    module.register_forward_pre_hook(more, with_kwargs=True)
    module.register_forward_pre_hook(more, with_kwargs=True)
    module.register_forward_pre_hook(lambda m, args: events.append(("first pre", len(args))), prepend=True)
    module.register_forward_hook(
        lambda m, args, kwargs, output: events.append(("post", kwargs["factor"])) or "replaced", with_kwargs=True
    )
    module.register_forward_hook(lambda m, args, output: events.append(("last", output)))
    module.register_forward_hook(lambda m, args, output: events.append(("first", args[0] is x)), prepend=True)
    assert module(x, factor=3.0) == "replaced"
    assert events == [
        ("first pre", 1), ("pre", 3.0), ("pre", 30.0), ("first", True), ("post", 300.0), ("last", "replaced"),
    ]  # fmt: skip


@contract("4.3")
def test_always_called_hooks():
    """They run once whether the call raises or not, with None as output if there is none; the first error goes on."""
    module, calls = Scale(), []
    module.register_forward_hook(lambda m, args, output: calls.append(output), always_call=True)
    module.register_forward_hook(lambda m, args, output: calls.append("plain"))
    assert module(2, factor=3) == 6
    assert calls == [6, "plain"]
    with pytest.raises(ZeroDivisionError):
        module(2, fail=ZeroDivisionError())
    assert calls == [6, "plain", None]
    with pytest.raises(KeyboardInterrupt):
        module(2, fail=KeyboardInterrupt())
    assert calls == [6, "plain", None]
    # an earlier hook raises: the output is there
    with module.register_forward_hook(lambda *_: 1 / 0, prepend=True), pytest.raises(ZeroDivisionError):
        module(2, factor=3)
    assert calls == [6, "plain", None, 6]
    module.register_forward_hook(raising(KeyError("second")), always_call=True)
    with pytest.raises(ValueError, match="first"), pytest.warns(UserWarning, match="fail.*KeyError.*second"):
        module(2, fail=ValueError("first"))
    with pytest.raises(KeyError, match="second"):
        module(2)


@contract("0.3")
@pytest.mark.parametrize("fails", [False, True])
def test_a_hook_taken_off_by_another_is_called_as_it_was_registered(fails):
    """With the keyword arguments, and after an error, as in the snapshot that the call goes over."""
    module, calls, handles = Scale(), [], []

    def take_off(*_):
        while handles:
            handles.pop().remove()

    def note(*given):
        calls.append(len(given))

    if not fails:
        module.register_forward_pre_hook(take_off)
        handles.append(module.register_forward_pre_hook(note, with_kwargs=True))
        module(2, factor=3)
        assert calls.pop() == 3
        module = Scale()
    module.register_forward_hook(take_off, always_call=True)
    handles.append(module.register_forward_hook(note, with_kwargs=True, always_call=True))
    if fails:
        with pytest.raises(KeyError):
            module(2, fail=KeyError())
    else:
        module(2, factor=3)
    assert calls == [4]
    assert not handles


def recorded(net, events):
    """Register hooks of every gradient kind on all modules of `net`."""
    for name, module in net.named_modules():
        module.register_full_backward_pre_hook(lambda m, go, name=name: events.append(f"pre {name}"))
        module.register_full_backward_hook(lambda m, gi, go, name=name: events.append(f"full {name}"))


@contract("5.4")
def test_moments_of_backward_hooks(rng):
    """Output tensor hooks, pre-hooks, the modules inside, full hooks, input tensor hooks; every gradient final."""
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    events = []
    recorded(net, events)
    x = drawn(rng, 2, 3).float()
    x.register_hook(lambda grad: events.append("input tensor"))
    y = net(x)
    y.register_hook(lambda grad: events.append("output tensor"))
    net[0].weight.register_hook(lambda grad: events.append("weight"))
    y.backward(lucid.tensor(rng.standard_normal((2, 4)), dtype=lucid.float32))
    assert sorted(events[-3:-1]) == ["full ", "full 0"]
    assert [event for event in events if event != "weight"] == [
        "output tensor", "pre ", "pre 1", "full 1", "pre 0", "full 0", "full ", "input tensor",
    ]  # fmt: skip


@contract("5.4")
def test_two_inputs_are_waited_for(rng):
    """The full hook fires when the gradients of all positional inputs are final, replaced ones included."""
    module, events, upstream = module_of(lambda self, a, b: a * a + a * b + b), [], rng.standard_normal(3)
    a, b = drawn(rng, 3), drawn(rng, 3)
    module.register_full_backward_hook(lambda m, gi, go: events.extend(g.tolist() for g in gi))
    module(a, b).backward(lucid.tensor(upstream, dtype=a.dtype))
    assert events == [a.grad.tolist(), b.grad.tolist()]
    expected = (2 * a + b).detach().cpu().numpy() * upstream
    np.testing.assert_allclose(a.grad.cpu().numpy(), expected, rtol=1e-5)


@contract("5.4")
def test_without_an_input_that_requires_grad(rng):
    """The hook fires with Nones and a warning once the outputs' gradients are known, and may return only Nones."""
    net, events = nn.Linear(3, 2), []
    hook = net.register_full_backward_hook(lambda m, gi, go: events.append((gi, len(go))) or (None,))
    with pytest.warns(UserWarning, match="module Linear"):
        net(drawn(rng, 2, 3).detach().float()).sum().backward()
    assert events == [((None,), 1)]
    assert net.weight.grad is not None
    hook.remove()
    net.register_full_backward_hook(lambda m, gi, go: (go[0],))
    with pytest.warns(UserWarning, match="module Linear"), pytest.raises(HookError, match="expected None"):
        net(drawn(rng, 2, 3).detach().float()).sum().backward()


@pytest.mark.parametrize("pre_hook", [False, True])
def test_views_at_the_boundary_are_of_the_base_of_what_was_passed(pre_hook, rng):
    """What forward gets for a view, and the caller for one, are views of the same base, as in PyTorch."""
    seen = []

    class Looks(nn.Module):
        def forward(self, x):
            seen.append(x._base)
            return x.t()

    module = Looks()
    module.register_full_backward_hook(lambda *_: None)
    if pre_hook:
        module.register_full_backward_pre_hook(lambda *_: None)
    base = lucid.tensor(rng.standard_normal((3, 2)), requires_grad=True) * 1.0
    out = module(base[1:])
    assert seen[0] is base
    assert out._base is base
    base.mul_(2.0)
    with pytest.raises(RuntimeError, match=r"is an (in|out)put of a module with full backward hooks"):
        out.sum()


@pytest.mark.parametrize("pre_hook", [False, True])
@pytest.mark.parametrize("place", ["argument", "one of the arguments", "output", "one of the outputs"])
def test_inference_tensors_at_the_boundary(place, pre_hook, rng):
    """Hooks see and replace the gradient of one, such as a parameter of a model that was copied in inference mode."""
    with lucid.inference_mode():
        weight = drawn(rng, 3)
    x, upstream = drawn(rng, 3), rng.standard_normal(3)

    class Uses(nn.Module):
        def forward(self, *given):
            summed = given[0] + 1.0 if len(given) == 1 else given[0] + given[1]
            return {"output": weight, "one of the outputs": (summed, weight)}.get(place, summed)

    module, seen = Uses(), []

    def halve(module, grad_input, grad_output):
        seen.append((grad_input[-1], grad_output[-1]))
        return tuple(None if g is None else g * 0.5 for g in grad_input)

    module.register_full_backward_hook(halve)
    if pre_hook:
        module.register_full_backward_pre_hook(
            lambda module, grads: tuple(None if g is None else g * 3.0 for g in grads)
        )
    out = module(*{"argument": (weight,), "one of the arguments": (x, weight)}.get(place, (x.detach(),)))
    last = out[-1] if isinstance(out, tuple) else out
    assert last.grad_fn is not None
    assert last.is_inference() == ("output" in place)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        (last + x * 0.0).backward(lucid.tensor(upstream, dtype=x.dtype))
    expected = upstream * (3.0 if pre_hook else 1.0)
    ((grad_input, grad_output),) = seen
    np.testing.assert_allclose(grad_output.cpu().numpy(), expected, rtol=1e-5)
    if "argument" in place:
        np.testing.assert_allclose(grad_input.cpu().numpy(), expected, rtol=1e-5)
        expected = expected * 0.5
    np.testing.assert_allclose(weight.grad.cpu().numpy(), expected, rtol=1e-5)


@contract("5.5")
def test_hooks_are_those_of_the_forward(rng):
    """Each forward fires the hooks it had, the last forward first; a graph that is kept fires them at each pass."""
    module, events, x = nn.Tanh(), [], drawn(rng, 3)
    handle = module.register_full_backward_hook(lambda *_: events.append("early"))
    first = module(x)
    handle.remove()
    module.register_full_backward_hook(lambda *_: events.append("late"))
    y = module(first)
    y.sum().backward(retain_graph=True)
    assert events == ["late", "early"]
    y.sum().backward()
    assert events == ["late", "early"] * 2


@contract("5.5")
def test_no_backward_hook_without_gradients(rng):
    """None fires under no_grad, where no output needs a gradient, or where only a weight's gradient is asked for."""
    net, events = nn.Linear(3, 2), []
    recorded(net, events)
    x = drawn(rng, 2, 3).float().detach().requires_grad_()
    with lucid.no_grad():
        net(x)
    net.requires_grad_(False)
    assert not net(x.detach()).requires_grad
    net.requires_grad_(True)
    net(x).sum().backward(inputs=[net.weight])
    assert events == ["pre "]
    assert x.grad is None


@contract("6")
@contract("0.2")
def test_global_hooks(rng):
    """They fire for every module before its own hooks, a prepended one included, and go with their handles."""
    events, net = [], nn.Sequential(nn.Tanh())
    x = drawn(rng, 3)
    for each in net.modules():
        name = type(each).__name__
        each.register_forward_pre_hook(lambda *_, name=name: events.append(f"own {name} pre"), prepend=True)
        each.register_forward_hook(lambda *_, name=name: events.append(f"own {name} post"), prepend=True)
        each.register_full_backward_pre_hook(lambda *_, name=name: events.append(f"own {name} back"), prepend=True)
        each.register_full_backward_hook(lambda *_, name=name: events.append(f"own {name} full"), prepend=True)
    with (
        nn.register_module_forward_pre_hook(lambda m, args: events.append(f"{type(m).__name__} pre")),
        nn.register_module_forward_hook(lambda m, args, out: events.append(f"{type(m).__name__} post")),
        nn.register_module_full_backward_pre_hook(lambda m, go: events.append(f"{type(m).__name__} back")),
        nn.register_module_full_backward_hook(lambda m, gi, go: events.append(f"{type(m).__name__} full")),
    ):
        net(x).sum().backward()
    assert events == [
        "Sequential pre", "own Sequential pre", "Tanh pre", "own Tanh pre",
        "Tanh post", "own Tanh post", "Sequential post", "own Sequential post",
        "Sequential back", "own Sequential back", "Tanh back", "own Tanh back",
        "Tanh full", "own Tanh full", "Sequential full", "own Sequential full",
    ]  # fmt: skip
    del events[:]
    net(x)
    assert events == ["own Sequential pre", "own Tanh pre", "own Tanh post", "own Sequential post"]


@contract("6")
@contract("4.3")
@pytest.mark.parametrize("own", [True, False], ids=["before the module's own", "alone"])
def test_global_hooks_after_an_error(own):
    """Those that are always called come before the module's own, one with `prepend` included, or without such a one."""
    module, events = Scale(), []
    module.register_forward_hook(lambda m, args, out: events.append("own"), always_call=own, prepend=own)
    with (
        nn.register_module_forward_hook(lambda m, args, out: events.append(("global", out)), always_call=True),
        pytest.raises(KeyError),
    ):
        module(2, fail=KeyError())
    assert events == [("global", None), *["own"] * own]


@contract("6")
@contract("5.7")
def test_global_hooks_on_the_output(rng):
    """`register_module_backward_hook` fires before what the module's own `register_backward_hook` has."""
    module, events = nn.Tanh(), []
    module.register_backward_hook(lambda tensor, grad: events.append("own"))
    with nn.modules.module.register_module_backward_hook(lambda tensor, grad: events.append("global")):
        y = module(drawn(rng, 3))
    y.sum().backward()
    assert events == ["global", "own"]


@contract("0.3")
@contract("4.2")
def test_a_hook_registered_by_a_forward_that_calls_itself():
    """It is called in the form that it asked for: what the call inside has found does not hold for the one outside."""

    class Nested(nn.Module):
        def forward(self, x, *, depth=1):
            if depth:
                self.register_forward_hook(lambda *given: forms.append(len(given)), with_kwargs=True)
                return self(x, depth=depth - 1)
            return x

    module, forms = Nested(), []
    module.register_forward_hook(lambda *given: forms.append(len(given)))
    module(1)
    assert forms == [3, 4, 3, 4]


@contract("4.1")
def test_what_a_pre_hook_returns_stays_its_own():
    """Arguments come to forward as a tuple and a dictionary of the call's, also where a hook gives a list."""
    seen, given = [], ([1], {"factor": 3})

    module = module_of(lambda self, *args, **kwargs: args[0] * kwargs["factor"])
    module.register_forward_pre_hook(lambda m, args, kwargs: given, with_kwargs=True)
    module.register_forward_pre_hook(lambda m, args, kwargs: kwargs.update(more=1), with_kwargs=True)
    module.register_forward_hook(lambda m, args, out: seen.append(args))
    assert module(5, factor=2) == 3
    assert seen == [(1,)]
    assert given == ([1], {"factor": 3})


@contract("0.5")
@pytest.mark.parametrize("kind", ["forward pre-hook", "forward hook"])
def test_an_error_in_straight_line_code_counts_the_hook(kind):
    """Of hooks without options, too, the note names the number of the one that raised."""
    module = nn.Identity()
    register = getattr(module, f"register_{kind.replace(' ', '_').replace('-', '_')}")
    for hook in (lambda *_: None, raising(ZeroDivisionError)):
        register(hook)
    for _ in range(2):  # the second call finds the hooks as the first has left them
        with pytest.raises(ZeroDivisionError) as caught:
            module(1)
        assert f"{kind} number 1 of " in caught.value.__notes__[0]


@contract("6")
def test_registration_hooks():
    """They run before parameters, buffers and modules are stored, by name or by attribute, and may replace them."""
    events, module = [], nn.Module()

    def see(kind):
        return lambda m, name, value: events.append((kind, name, hasattr(m, name)))

    stand_in = nn.Parameter(lucid.zeros(2))
    with (
        nn.register_module_parameter_registration_hook(see("parameter")),
        nn.register_module_buffer_registration_hook(see("buffer")),
        nn.register_module_module_registration_hook(see("module")),
        nn.register_module_parameter_registration_hook(lambda m, name, p: stand_in if name == "b" else None),
        nn.register_module_module_registration_hook(lambda m, name, child: nn.Tanh()),
        nn.register_module_buffer_registration_hook(lambda m, name, value: value + 1),
    ):
        module.a = nn.Parameter(lucid.ones(1))
        module.register_parameter("b", nn.Parameter(lucid.ones(1)))
        module.register_buffer("c", lucid.ones(1))
        module.d = nn.ReLU()
        module.add_module("e", nn.ReLU())
    kinds = ["parameter", "parameter", "buffer", "module", "module"]
    assert events == [(kind, name, False) for kind, name in zip(kinds, "abcde", strict=True)]
    assert module.b is stand_in
    assert module.c.item() == 2.0
    assert [type(child) for child in module.children()] == [nn.Tanh] * 2


@pytest.mark.parametrize("kind", ["parameter", "buffer", "module"])
@pytest.mark.parametrize("persistent", [True, False])
def test_a_registration_hook_that_raises_changes_nothing(kind, persistent):
    """Of a buffer that an attribute was to take the place of, values, place and persistence stay."""
    module = nn.Module()
    module.register_buffer("taken", lucid.ones(1), persistent=persistent)
    module.register_buffer("last", lucid.ones(1))
    before = [*module.state_dict()]
    value = {"parameter": nn.Parameter(lucid.zeros(1)), "buffer": nn.Buffer(lucid.zeros(1)), "module": nn.ReLU()}[kind]
    register = getattr(nn, f"register_module_{kind}_registration_hook")
    with register(raising(ZeroDivisionError)), pytest.raises(ZeroDivisionError):
        module.taken = value
    assert [name for name, _ in module.named_buffers()] == ["taken", "last"]
    assert [*module.state_dict()] == before
    assert module.taken.item() == 1.0
    assert not [*module.parameters(), *module.children()]


@contract("8.1")
def test_copies_have_hooks_of_their_own():
    """A handle copied along with its module removes the copy's hook; the original's leaves it alone."""
    module, calls = nn.Sequential(nn.Identity()), []
    handle = module[0].register_forward_hook(lambda *_: calls.append(1))
    twin, its_handle = copy.deepcopy((module, handle))
    handle.remove()
    module(1)
    twin(1)
    assert len(calls) == 1
    its_handle.remove()
    twin(1)
    assert len(calls) == 1
    assert (len(module[0]._forward_hooks), len(twin[0]._forward_hooks)) == (0, 0)


@contract("7.3")
def test_saving_names_what_a_file_cannot_hold(tmp_path):
    """What a hook put into a state dict is in it, loading reports it, and a file format's refusal names its key."""
    module = nn.Linear(1, 1)
    with module.register_state_dict_hook(lambda m, state, prefix, keep: state.update(handler=object())):
        state = module.state_dict()
    assert module.load_state_dict(state, strict=False).unexpected_keys == ["handler"]
    with pytest.raises(TypeError, match="handler"):
        lucid.save(state, tmp_path / "state")
    assert not list(tmp_path.iterdir())
    state["handler"] = "text"
    lucid.save(state, tmp_path / "state")
    assert lucid.load(tmp_path / "state")["handler"] == "text"


@contract("0.10")
@pytest.mark.cpu("another device has its own path through the engine")
def test_without_hooks_one_truth_test(rng):
    """A module without hooks runs its forward and nothing else; a node without hooks, no function for hooks.

    One hook more makes both take the way past the hooks, so that this test sees what it looks for.
    """
    module, x = module_of(lambda self, x: x), drawn(rng, 3)

    def called(function):
        return [name.split(".")[-1] for name in calls(function, "lucid.")]

    assert called(lambda: module(x)) == ["call"]
    with module.register_full_backward_hook(lambda *_: None):
        assert len(called(lambda: module(x))) > 1

    def hook_functions(y):
        names = called(lambda: y.backward(lucid.ones(3, dtype=y.dtype)))
        return [name for name in names if "hook" in name or name in {"fire_light", "_run_watched"}]

    with warnings.catch_warnings(action="error"):
        assert not hook_functions(x * x)
    y = x * x
    y.register_hook(lambda grad: None)
    assert hook_functions(y)


@pytest.mark.parametrize("kind", ["forward_pre_hook", "forward_hook", "full_backward_hook"])
def test_a_capture_is_told_where_hooks_fire(kind, monkeypatch):
    """Each call of a module with hooks tells the capture of its thread, and no other one, of its place and of all's."""
    module = nn.Identity()
    getattr(module, f"register_{kind}")(lambda *_: None)
    own, another = (SimpleNamespace(places={}, fired={}) for _ in range(2))
    monkeypatch.setitem(captures, get_ident(), own)
    monkeypatch.setitem(captures, -1, another)
    module(lucid.ones(2))
    assert [place() for place in own.places.values()] == [module._active_hooks, everywhere]
    assert not another.places


@pytest.mark.parametrize("calls_before", [0, 2], ids=["first call", "later call"])
@pytest.mark.parametrize("full", [False, True], ids=["straight", "full"])
@pytest.mark.parametrize("fails", ["pre-hook", "forward", "hook", "stop"])
def test_always_called_hooks_on_both_ways(fails, full, calls_before):
    """What a module call does in straight-line code, and in full beside hooks of other kinds, is the same.

    The first call after a registration and later ones take the hooks from elsewhere, too. A forward that
    `lucid.hooks.capture` ends early has ended by an error.
    """
    seen, failing = [], []

    class Module(nn.Module):
        def forward(self, x):
            if failing and fails == "forward":
                raise ValueError("of the test")
            return x + 1

    module = Module()

    def fail(*_):
        if failing and fails in {"hook", "pre-hook"}:
            raise ValueError("of the test")

    module.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    if fails == "pre-hook":
        module.register_forward_pre_hook(fail)
    for name in "abc":
        if name == "b" and fails == "hook":
            module.register_forward_hook(fail)
        note = lambda module, args, output, name=name: seen.append((name, args[0].item(), output and output.item()))
        module.register_forward_hook(note, always_call=True)
        module.register_forward_hook(lambda module, args, output: output * 3)
    if full:
        module.register_full_backward_hook(lambda *_: None)
    x = lucid.ones(1)
    for _ in range(calls_before):
        module(x)
    del seen[:]
    failing.append(1)
    if fails == "stop":
        with hooks.capture(module, stop_at=""):
            module(x)
        expected = [("a", 2.0, 3.0), ("b", 2.0, 9.0), ("c", 2.0, 27.0)]
    else:
        with pytest.raises(ValueError, match="of the test"):
            module(x)
        nothing = {"pre-hook": [2.0, None], "forward": [2.0, None], "hook": [2.0, 9.0]}[fails]
        expected = [(name, *nothing) for name in "abc"]
        if fails == "hook":
            expected[0] = ("a", 2.0, 3.0)
    assert seen == expected


def test_a_forward_that_ends_early_calls_what_is_always_called():
    seen = []
    module = nn.Sequential(nn.Identity(), nn.Identity())
    module.register_forward_hook(lambda module, args, output: seen.append(output), always_call=True)
    with hooks.capture(module, "0", stop_at="0"):
        module(lucid.ones(1))
    assert seen == [None]
