"""Hooks that raise, take other arguments or return something else: what is reported, and that training goes on.

One table has a row for every kind of hook that fires in a training step. Each row is broken at a chosen call, in the
forward, in a recomputation, in backward or in the optimizer, on this thread or on another. After that the step is done
again without the hook, and the run ends with the very bits of a run in which the hook never was.
"""

from __future__ import annotations

import contextlib
import functools
import types
from typing import Any, NamedTuple

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd.graph import current_graph_task_id, queue_callback, register_multi_grad_hook, saved_tensors_hooks
from lucid.errors import HookError, HookTypeError
from lucid.nn.hooks import ContextualHook, Hook, StateHook
from lucid.utils.checkpoint import checkpoint
from tests.pieces import in_threads

contract = pytest.mark.contract
STEPS, BROKEN = 5, 2
PATH = "module Sequential.0.0 (Linear)"
LEAF = "the leaf tensor of shape (4, 3), float64"


class Planted(Exception):
    """What a broken hook raises."""


class Row(NamedTuple):
    """A kind of hook: what the note calls it and what it hangs on, how it is registered, and what it may not return.

    `when` is what there is at registration: "before" the step, the "hidden" tensor, or the "loss". `name` is the
    function that the note names.
    """

    kind: str
    owner: str
    register: Any
    when: str = "before"
    wrong: tuple[Any, ...] = ()
    name: str = "planted_hook"


def layer(site):
    return site.net[0][0]


def weight(site):
    return layer(site).weight


class Broken(ContextualHook):
    """Its method is the hook."""

    def __init__(self, function):
        super().__init__(posthook="planted")
        self.function = function

    def planted(self, *args):
        return self.function(*args)


class BrokenState(StateHook):
    """Calls a function with the module."""

    def __init__(self, module, function):
        super().__init__(module)
        self.function = function

    def hook(self, module):
        return self.function(module)


def owned(make):
    """Return what registers an object that owns hooks; the object itself serves as the handle."""

    def register(site, hook):
        made = make(site, hook)
        made.register(layer(site))
        return types.SimpleNamespace(remove=made.deregister)

    return register


def on_module(kind, name, *wrong, **settings):
    return Row(kind, PATH, lambda site, hook: getattr(layer(site), name)(hook, **settings), wrong=wrong)


def on_all_modules(kind, name, *wrong):
    """Return the row of a hook of all modules, which is called for the layer only."""

    def register(site, hook):
        return getattr(nn, name)(lambda module, *rest: hook(module, *rest) if module is layer(site) else None)

    return Row(kind, PATH, register, wrong=wrong, name="<lambda>")


def on_output(site, hook):
    # a hook of bare *args would be taken for PyTorch's of three arguments
    return layer(site).register_backward_hook(lambda tensor, grad: hook(tensor, grad))


def on_tensors(mode):
    return lambda site, hook: register_multi_grad_hook([weight(site), site.hidden], hook, mode=mode)


def saved(pack=None, unpack=None):
    """Return what enters the context of hooks for saved tensors."""

    def register(site, hook):
        context = saved_tensors_hooks(pack or hook, unpack or hook)
        context.__enter__()
        return types.SimpleNamespace(remove=lambda: context.__exit__(None, None, None))

    return register


def queued(site, hook):
    return site.loss.register_hook(lambda grad: queue_callback(hook))


def zeros():
    return lucid.zeros(7, dtype=lucid.float64)


KIND, LENGTH = (HookTypeError, 3), (HookError, ())
SHAPE, SHAPES = (HookError, zeros), (HookError, lambda: (zeros(),))
BOTH = (HookError, 3)
FORWARD_PRE, FORWARD, BACKWARD_PRE, BACKWARD = (
    "forward pre-hook", "forward hook", "full backward pre-hook", "full backward hook",
)  # fmt: skip
ROWS = {
    "leaf": Row("tensor hook", LEAF, lambda s, h: weight(s).register_hook(h), wrong=(KIND, SHAPE)),
    "intermediate": Row(
        "tensor hook", "the tensor of shape (5, 4)", lambda s, h: s.hidden.register_hook(h), "hidden", (KIND, SHAPE)
    ),
    "root": Row("tensor hook", "the tensor of shape ()", lambda s, h: s.loss.register_hook(h), "loss", (KIND, SHAPE)),
    "accumulated": Row(
        "post-accumulate hook", LEAF, lambda s, h: weight(s).register_post_accumulate_grad_hook(h), wrong=(KIND,)
    ),
    "prehook": Row(
        "node prehook", "Backward", lambda s, h: s.loss.grad_fn.register_prehook(h), "loss", (KIND, LENGTH, SHAPES)
    ),
    "posthook": Row(
        "node posthook", "Backward", lambda s, h: s.loss.grad_fn.register_hook(h), "loss", (KIND, LENGTH, SHAPES)
    ),
    "all": Row("multi-grad hook (mode='all')", "2 tensors", on_tensors("all"), "hidden"),
    "any": Row("multi-grad hook (mode='any')", "2 tensors", on_tensors("any"), "hidden"),
    "pack": Row("pack hook", "a saved tensor of", saved(unpack=lambda t: t)),
    "unpack": Row("unpack hook", "a saved tensor", saved(pack=lambda t: t), wrong=(KIND,)),
    "callback": Row("callback at the end of backward", "pass", queued, "loss"),
    "forward_pre": on_module(FORWARD_PRE, "register_forward_pre_hook"),
    "forward_pre_kwargs": on_module(FORWARD_PRE, "register_forward_pre_hook", BOTH, with_kwargs=True),
    "forward": on_module(FORWARD, "register_forward_hook"),
    "forward_kwargs": on_module(FORWARD, "register_forward_hook", with_kwargs=True),
    "forward_always": on_module(FORWARD, "register_forward_hook", always_call=True),
    "backward_pre": on_module(BACKWARD_PRE, "register_full_backward_pre_hook", KIND, LENGTH, SHAPES),
    "backward": on_module(BACKWARD, "register_full_backward_hook", KIND, LENGTH, SHAPES),
    "backward_kwargs": on_module(BACKWARD, "register_full_backward_hook", KIND, LENGTH, with_kwargs=True),
    "backward_structured": on_module(BACKWARD, "register_full_backward_hook", KIND, LENGTH, SHAPES, structured=True),
    "output": Row("backward hook", PATH, on_output, name="<lambda>"),
    "all_forward_pre": on_all_modules(FORWARD_PRE, "register_module_forward_pre_hook"),
    "all_forward": on_all_modules(FORWARD, "register_module_forward_hook"),
    "all_backward_pre": on_all_modules(BACKWARD_PRE, "register_module_full_backward_pre_hook", KIND, SHAPES),
    "all_backward": on_all_modules(BACKWARD, "register_module_full_backward_hook", KIND, SHAPES),
    "Hook.prehook": Row(FORWARD_PRE, PATH, owned(lambda s, h: Hook(prehook=h))),
    "Hook.posthook": Row(FORWARD, PATH, owned(lambda s, h: Hook(posthook=h))),
    "ContextualHook": Row(FORWARD, PATH, owned(lambda s, h: Broken(h)), name="Broken.planted"),
    "StateHook": Row(FORWARD, PATH, owned(lambda s, h: BrokenState(layer(s), h)), name="BrokenState.hook"),
    "step": Row("step pre-hook", "Adam", lambda s, h: s.optimizer.register_step_pre_hook(h), wrong=(BOTH,)),
}
FORMS = {
    "plain": lambda function, x: function(x),
    "reentrant": lambda function, x: checkpoint(function, x, use_reentrant=True),
    "checkpointed": lambda function, x: checkpoint(function, x, use_reentrant=False),
}


def model():
    """Return (network, optimizer), always the same."""
    lucid.manual_seed(7)
    net = nn.Sequential(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 2)).double()
    return net, lucid.optim.Adam(net.parameters(), lr=0.1)


def train_step(net, optimizer, number, form="plain", row=None, hook=None):
    """Train one step, with `hook` registered as its row says and taken off again, whatever happens."""
    rng = np.random.default_rng(number)
    site = types.SimpleNamespace(net=net, optimizer=optimizer)
    site.x = lucid.tensor(rng.standard_normal((5, 3)), requires_grad=True)
    target = lucid.tensor(rng.standard_normal((5, 2)))
    with contextlib.ExitStack() as stack:

        def reached(when):
            if row is not None and row.when == when:
                stack.callback(row.register(site, hook).remove)

        reached("before")
        site.hidden = FORMS[form](net[0], site.x)
        reached("hidden")
        site.loss = ((net[1](site.hidden) - target) ** 2).mean()
        reached("loss")
        site.loss.backward()
        optimizer.step()
    optimizer.zero_grad()


def trained(form, break_step=None):
    """Return the bits of the parameters after all steps; `break_step(net, optimizer)` comes before one of them."""
    net, optimizer = model()
    for number in range(STEPS):
        if number == BROKEN and break_step is not None:
            break_step(net, optimizer)
            optimizer.zero_grad()
        train_step(net, optimizer, number, form)
    return {name: value.cpu().numpy().tobytes() for name, value in net.state_dict().items()}


@functools.cache
def undisturbed(form="plain"):
    """Return the bits of a run without hooks."""
    return trained(form)


def on_thread(work):
    """Run a function on another thread and raise here what it raised there."""
    errors = []

    def run():
        try:
            work()
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)

    in_threads(run)
    if errors:
        raise errors[0]


def check_report(error, row, name=None):
    """Check that a note names the hook, its file, its kind and what it hangs on."""
    parts = name or row.name, "test_hook_errors.py:", f": {row.kind} number 0 of ", row.owner
    notes = getattr(error, "__notes__", [])
    assert any(all(part in note for part in parts) for note in notes), notes


def check_nothing_left(random_state):
    """Check that modes, passes, contexts and random numbers are as before."""
    assert lucid.is_grad_enabled()
    assert current_graph_task_id() == -1
    assert not lucid.autograd.modes.state.thread.state.saved_hooks
    assert not lucid.nn.hooking.tables.everywhere
    assert lucid.get_rng_state().tolist() == random_state


def broken_by(row, form, hook, kinds, check, place="here"):
    """Return a step that `hook` breaks, with an error of one of `kinds` that `check` looks at."""

    def break_step(net, optimizer):
        before = lucid.get_rng_state().tolist()
        with pytest.raises(kinds) as caught:
            on = on_thread if place == "worker" else lambda work: work()
            on(lambda: train_step(net, optimizer, BROKEN, form, row, hook))
        check(caught.value)
        check_nothing_left(before)
        assert not any(each._active_hooks for each in net.modules())

    return break_step


CASES = [
    *((kind, form, 1) for kind in ROWS for form in FORMS),
    *((kind, form, 2) for kind in ROWS if "forward" in ROWS[kind].kind for form in ("reentrant", "checkpointed")),
]


@contract("0.5")
@pytest.mark.parametrize("place", ["here", "worker"])
@pytest.mark.parametrize(("kind", "form", "at"), CASES)
def test_a_hook_that_raises(kind, form, at, place):
    """The error keeps its type and is named; the step done again trains on to the same bits.

    At its second call a forward hook under a checkpoint raises in the recomputation.
    """
    row, calls = ROWS[kind], []

    def planted_hook(*args):
        calls.append(args)
        if len(calls) == at:
            raise Planted("planted")

    step = broken_by(row, form, planted_hook, Planted, lambda error: check_report(error, row), place)
    assert trained(form, step) == undisturbed(form)
    assert len(calls) == at


@pytest.mark.parametrize("kind", ROWS)
def test_a_hook_of_another_arity(kind):
    """Python's TypeError is raised at firing, with the same note; training goes on."""
    row = ROWS[kind]
    nothing_fits = lambda a, b, c, d, e, f: None
    names = None if row.name != "planted_hook" else "<lambda>"
    step = broken_by(row, "plain", nothing_fits, TypeError, lambda error: check_report(error, row, names))
    assert trained("plain", step) == undisturbed()


WRONG = [(kind, error, value) for kind, row in ROWS.items() for error, value in row.wrong]


@pytest.mark.parametrize(("kind", "error", "value"), WRONG)
def test_a_hook_that_returns_something_else(kind, error, value):
    """What a hook may not return is refused, with the hook's name and what was expected; training goes on."""
    row = ROWS[kind]

    def planted_hook(*args):
        return value() if callable(value) else value

    def check(raised):
        text = "\n".join([str(raised), *getattr(raised, "__notes__", [])])
        assert row.name in text
        assert row.kind.partition(" (")[0] in text
        assert "expected" in text

    step = broken_by(row, "plain", planted_hook, error, check)
    assert trained("plain", step) == undisturbed()


# In the others a function of these tests stands between.
REGISTERED_AS_THEY_ARE = [kind for kind, row in ROWS.items() if row.name == "planted_hook" and kind != "callback"]


@contract("0.6")
@pytest.mark.parametrize("wrong", [3, None, "name", lucid.zeros(1)], ids=str)
@pytest.mark.parametrize("kind", REGISTERED_AS_THEY_ARE)
def test_what_is_no_function_is_refused(kind, wrong):
    """Registering what cannot be called is a TypeError that says what it got; nothing is registered."""
    row = ROWS[kind]
    # a Hook needs one of two
    kinds = (HookTypeError, HookError) if wrong is None and kind.startswith("Hook.") else HookTypeError

    def check(raised):
        assert "callable" in str(raised) or kinds is not HookTypeError

    step = broken_by(row, "plain", wrong, kinds, check)
    assert trained("plain", step) == undisturbed()


# ---- hooks of saving and loading ----

STATE_ROWS = {
    "register_state_dict_pre_hook": "state-dict pre-hook",
    "register_state_dict_hook": "state-dict hook",
    "register_state_dict_post_hook": "state-dict hook",
    "_register_state_dict_hook": "state-dict hook",
    "register_load_state_dict_pre_hook": "load-state-dict pre-hook",
    "_register_load_state_dict_pre_hook": "load-state-dict pre-hook",
    "register_load_state_dict_post_hook": "load-state-dict post-hook",
}


def bits(net):
    return {name: value.cpu().numpy().tobytes() for name, value in net.state_dict().items()}


@contract("0.5")
@pytest.mark.parametrize("what", ["raises", "arity", "return"])
@pytest.mark.parametrize("registration", STATE_ROWS)
def test_hooks_of_state_dicts(registration, what):
    """The note names hook, kind and path; the module is as it was; the next save or load is as without the hook."""
    net, other = model()[0], model()[0].double()
    with lucid.no_grad():
        for value in other.parameters():
            value += 1
    before, given = bits(net), other.state_dict()

    def planted_hook(*args):
        if what == "raises":
            raise Planted("planted")
        return 3

    if what == "arity":
        planted_hook = lambda a, b, c, d, e, f, g, h, i, j: None
    kinds = Planted if what == "raises" else (HookTypeError, TypeError, HookError, lucid.errors.StateDictError)
    register = getattr(layer(types.SimpleNamespace(net=net)), registration)
    told_apart = registration.startswith("register_load")
    ignored = {
        "register_state_dict_pre_hook",
        "register_load_state_dict_pre_hook",
        "_register_load_state_dict_pre_hook",
    }
    if what == "arity" and told_apart:
        with pytest.raises(HookTypeError, match="positional arguments"):
            register(planted_hook)
    elif what == "return" and registration in ignored:
        # PyTorch, too, looks at nothing that these return
        with register(planted_hook):
            net.load_state_dict(net.state_dict())
    else:
        with register(planted_hook), pytest.raises(kinds) as caught:
            net.load_state_dict(given) if "load" in registration else net.state_dict()
        row = Row(STATE_ROWS[registration], "module 0.0 (Linear)", None)
        check_report(caught.value, row, "<lambda>" if what == "arity" else "planted_hook")
    assert lucid.is_grad_enabled()
    assert bits(net) == before
    net.load_state_dict(given)
    assert bits(net) == bits(other)


@pytest.mark.parametrize("error", [Planted, KeyboardInterrupt])
@pytest.mark.parametrize("when", ["pre", "post"])
def test_hooks_of_an_optimizer_that_loads(when, error):
    """Neither hook that raises, nor a Ctrl-C in it, leaves anything of the new state behind; the next load works."""
    (net, optimizer), (other_net, other) = model(), model()
    train_step(net, optimizer, 0)
    for number in range(3):
        train_step(other_net, other, number)
    given, state, groups = other.state_dict(), optimizer.state, optimizer.param_groups

    def planted_hook(*args):
        raise error("planted")

    register = getattr(optimizer, f"register_load_state_dict_{when}_hook")
    with register(planted_hook), pytest.raises(error) as caught:
        optimizer.load_state_dict(given)
    if error is Planted:
        check_report(caught.value, Row(f"load-state-dict {when}-hook", "Adam", None))
    assert optimizer.state is state
    assert optimizer.param_groups is groups
    optimizer.load_state_dict(given)
    assert optimizer.state[weight(types.SimpleNamespace(net=net))]["step"] == 3


@contract("6")
@pytest.mark.parametrize(
    ("what", "way"),
    [
        *((what, way) for what in ("parameter", "buffer", "module") for way in ("by name", "by attribute")),
        ("parameter", "in place of another kind"),
        ("module", "in place of another kind"),
    ],
)
def test_registration_hooks(what, way):
    """A hook that raises or returns another kind is named, and the module has exactly what it had, in its order."""
    value = {"parameter": nn.Parameter(lucid.ones(1)), "buffer": nn.Buffer(lucid.ones(1)), "module": nn.ReLU()}[what]
    net = nn.Sequential(nn.Identity(), nn.Identity())
    inner = net[1]
    inner.first = nn.Tanh() if what != "module" else nn.Parameter(lucid.zeros(1))
    inner.name = inner.first if way == "in place of another kind" else 3
    inner.last = nn.Sigmoid()
    if way == "by name":
        del inner.name

    def contents():
        tables = [list(table.items()) for table in (inner._parameters, inner._buffers, inner._modules)]
        return tables, inner._non_persistent_buffers_set, vars(inner).get("name")

    def store():
        if way == "by name":
            {"parameter": inner.register_parameter, "buffer": inner.register_buffer, "module": inner.add_module}[what](
                "name", value
            )
        else:
            inner.name = value

    before = contents()
    row = Row(f"{what} registration hook", "'name' of module Sequential.1 (Identity)", None)
    register = getattr(nn, f"register_module_{what}_registration_hook")

    def planted_hook(*args):
        raise Planted("planted")

    for hook, kind in ((planted_hook, Planted), (lambda m, n, v: 3, HookTypeError), (lambda m: None, TypeError)):
        with register(hook), pytest.raises(kind) as caught:
            store()
        check_report(caught.value, row, "planted_hook" if hook is planted_hook else "<lambda>")
        assert contents() == before
    with pytest.raises(HookTypeError, match=r"register_module_.*callable"):
        register(3)
    store()
    assert inner.name is value
    assert contents() != before
