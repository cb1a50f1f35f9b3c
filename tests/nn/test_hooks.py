"""Module hooks beyond what PyTorch has, their handles, and objects that own hooks."""

from __future__ import annotations

import copy
import dataclasses
import gc
import itertools
import pickle
import re
import sys
import warnings
import weakref
from collections import OrderedDict
from functools import partial

import numpy as np
import pytest

import lucid
from lucid import nn
from lucid.autograd.hooks.owning import TableAttribute
from lucid.errors import HookError, HookTypeError
from lucid.nn.hooks import ContextualHook, Hook, RemovableHandle, StateHook
from tests.pieces import drawn, module_of, no_collections

contract = pytest.mark.contract

KINDS = [name for name in dir(nn.Module) if re.fullmatch("register_.*_hook", name)]
CALL_KINDS = [kind for kind in KINDS if re.fullmatch("register_(forward|full_backward)(_pre)?_hook", kind)]
TABLES = [name for name in dir(nn.Module) if isinstance(getattr(nn.Module, name), TableAttribute)]


def top_level_hook(module, args, output):
    """Add one: a hook that can be pickled."""
    return output + 1


class OfItsOwn(nn.Identity):
    """A module with a hook that is a method of it."""

    def add(self, module, args, output):
        return output + 1


FORMS = []


def note_form(*given):
    """Note the number of arguments: a hook that can be pickled."""
    FORMS.append(len(given))


def pickled(thing):
    """Return what comes out of a pickle of it."""
    return pickle.loads(pickle.dumps(thing))


class Nested(nn.Module):
    """Takes and returns nested structures."""

    def forward(self, pair, options=None, *, extra=None):
        a, b = pair
        out = {"sum": a + b["x"], "list": [a * 2, "text"]}
        if extra is not None:
            out["extra"] = extra * 3
        return out


# ---- handles ----


@contract("0.4")
@contract("8.1")
@pytest.mark.parametrize("registration", KINDS)
def test_handles(registration):
    """A handle removes by `remove`, by a call and at the end of a with block, as often as one likes."""
    module = nn.Identity()

    def hook(a, b):
        pass

    hooks = {"register_load_state_dict_pre_hook": lambda a, b, c: None}
    for take_off in (lambda handle: handle.remove(), lambda handle: handle(), lambda handle: handle.__exit__()):
        handle = getattr(module, registration)(hooks.get(registration, hook))
        assert isinstance(handle, RemovableHandle)
        table = handle.hooks_dict_ref()
        assert list(table) == [handle.id]
        take_off(handle)
        take_off(handle)
        assert not table
    with pytest.raises(KeyError, match="passes"), getattr(module, registration)(hooks.get(registration, hook)):
        raise KeyError("passes")
    assert not table
    assert not module._active_hooks


@contract("0.6")
@pytest.mark.parametrize("registration", KINDS)
def test_what_cannot_be_called_is_refused(registration):
    """Registering something that is not callable is a TypeError that names the method, and registers nothing."""
    module = nn.Identity()
    with pytest.raises(TypeError, match=registration):
        getattr(module, registration)(3)
    assert not module._active_hooks
    assert not any(len(getattr(module, table)) for table in TABLES)


@contract("8.1")
def test_ids_grow():
    """Ids are global and growing, over modules and kinds."""
    a, b = nn.Identity(), nn.Identity()
    first = a.register_forward_hook(print)
    second = b.register_forward_pre_hook(print)
    third = a.register_forward_hook(print)
    assert first.id < second.id < third.id


@contract("0.8")
@contract("8.1")
def test_a_handle_keeps_nothing_alive():
    """A handle holds its table weakly: the module goes although the handle is kept, and removing is harmless."""
    with no_collections():
        module = nn.Identity()
        ref = weakref.ref(module)
        handle = module.register_forward_hook(print)
        del module
        assert ref() is None
        handle.remove()


@contract("8.1")
@contract("8.3")
def test_handles_pickle_with_their_module():
    """A module with picklable hooks pickles; the handle that goes along removes the hook of the new module."""
    module = nn.Identity()
    handle = module.register_forward_hook(top_level_hook)
    twin, twin_handle = pickle.loads(pickle.dumps((module, handle)))
    assert float(twin(lucid.zeros(1))) == 1.0
    twin_handle.remove()
    assert float(twin(lucid.zeros(1))) == 0.0
    assert float(module(lucid.zeros(1))) == 1.0
    assert twin.register_forward_hook(top_level_hook).id > handle.id


def register_forms(module):
    """Return the handles of hooks whose registrations ask for another form than the usual."""
    return [
        module.register_forward_hook(note_form, with_kwargs=True, always_call=True),
        module.register_full_backward_hook(note_form, with_kwargs=True),
        module.register_state_dict_post_hook(note_form),
        module._register_load_state_dict_pre_hook(note_form, with_module=True),
    ]


def forms(module):
    """Return with how many arguments the hooks of a module are called in a step, saving and loading."""
    FORMS.clear()
    module(lucid.ones(1, requires_grad=True)).backward()
    module.load_state_dict(module.state_dict())
    return list(FORMS)


@contract("8.1")
@contract("8.3")
@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_options_go_along_with_a_copy(copied):
    """A copy's hooks are called as they were registered; taking one off there changes nothing for the original."""
    module = nn.Identity()
    twin, its_handles = copied((module, register_forms(module)))
    assert forms(twin) == forms(module) == [4, 4, 4, 8]
    for handle in its_handles:
        handle.remove()
    assert forms(twin) == []
    assert not twin._active_hooks
    assert forms(module) == [4, 4, 4, 8]


@contract("8.1")
@contract("8.2")
def test_nothing_of_a_hook_is_left_in_its_table():
    """Neither a hook that is taken off nor a table that is emptied leaves an option behind."""
    module = nn.Identity()
    table = module._backward_hooks
    for take_off in (lambda handle: handle.remove(), lambda handle: table.clear()):
        handle = module.register_full_backward_hook(note_form, with_kwargs=True)
        assert list(table.options) == [handle.id]
        take_off(handle)
        assert not table.options


@contract("8.1")
@contract("8.3")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["this process", "a new process"])
def test_ids_that_came_with_a_pickle_are_not_given_again(elsewhere, monkeypatch):
    """A handle whose hook was taken off takes off none that is registered later, and a new hook replaces none."""
    module = nn.Identity()
    first, last = (module.register_forward_hook(top_level_hook) for _ in range(2))
    with_both = pickle.dumps(module)
    last.remove()
    with_first = pickle.dumps((module, last))
    newest = module.register_forward_hook(top_level_hook).id
    if elsewhere:
        monkeypatch.setattr(RemovableHandle, "_ids", itertools.count())
    twin = pickle.loads(with_both)
    handle = twin.register_forward_hook(top_level_hook)
    assert handle.id > max(last.id, 0 if elsewhere else newest)
    handle.remove()
    assert list(twin._forward_hooks) == [first.id, last.id]
    if elsewhere:
        monkeypatch.setattr(RemovableHandle, "_ids", itertools.count())
    twin, its_last = pickle.loads(with_first)
    twin.register_forward_hook(top_level_hook)
    its_last.remove()
    assert len(twin._forward_hooks) == 2


@contract("8.3")
def test_unpicklable_hooks_are_named():
    """A hook that cannot be pickled is named in the error, with its file."""
    module = nn.Sequential(nn.Identity())
    module[0].register_forward_hook(lambda module, args, output: None)
    with pytest.raises(pickle.PicklingError, match=r"lambda.*test_hooks\.py.*_forward_hooks"):
        pickle.dumps(module)


@contract("8.1")
def test_bound_methods_follow_the_copy():
    """A bound method of the module, registered on itself, belongs to the copy after a deep copy."""

    class Counting(nn.Identity):
        calls = 0

        def count(self, module, args, output):
            self.calls += 1

    module = Counting()
    module.register_forward_hook(module.count)
    twin = copy.deepcopy(module)
    twin(1)
    assert (module.calls, twin.calls) == (0, 1)


@contract("8.2")
def test_tools_that_know_the_tables():
    """The tables are ordered mappings that tools may fill, empty and replace by hand."""
    module = nn.Identity()
    assert not any(len(getattr(module, table)) for table in TABLES)
    handle = RemovableHandle(module._forward_hooks)
    module._forward_hooks[handle.id] = lambda module, args, output: output + 1
    module.register_forward_hook(lambda module, args, output: output * 2)
    module._forward_hooks.move_to_end(handle.id)
    assert float(module(lucid.ones(1))) == 3.0
    handle.remove()
    assert float(module(lucid.ones(1))) == 2.0
    module._forward_hooks = OrderedDict()
    assert float(module(lucid.ones(1))) == 1.0
    assert not module._active_hooks
    module._forward_pre_hooks = {7: lambda module, args: args[0] + 4}
    assert float(module(lucid.ones(1))) == 5.0
    module._forward_pre_hooks.clear()
    assert not module._active_hooks


@contract("8.2")
def test_a_table_that_was_replaced_comes_back():
    """A tool may put another table in a table's place for a while: each keeps its own hooks, and handles find them."""
    module, calls = nn.Linear(2, 2), []
    handles = [module.register_forward_hook(lambda *_: calls.append("own")) for _ in range(2)]
    backward = module.register_full_backward_hook(lambda *_: calls.append("backward"))

    def called(module):
        calls.clear()
        module(lucid.ones(1, 2)).sum().backward()
        return list(calls)

    own = module._forward_hooks, module._backward_hooks
    module._forward_hooks, module._backward_hooks = OrderedDict(), OrderedDict()
    assert not module._active_hooks
    module.register_forward_hook(lambda *_: calls.append("meanwhile"))
    handles[0].remove()
    with warnings.catch_warnings(action="ignore"):
        assert called(module) == ["meanwhile"]
        module._forward_hooks, module._backward_hooks = own
        assert called(module) == ["own", "backward"]
        backward.remove()
        assert called(module) == ["own"]
        other = nn.Linear(2, 2)
        other._forward_hooks = module._forward_hooks
        assert called(other) == ["own"]
        handles[1].remove()
        assert called(module) == []
    assert not module._active_hooks


def test_tables_that_another_module_is_given():
    """Their hooks are called there as they were registered, and still where they were."""
    module, other = nn.Identity(), nn.Identity()
    register_forms(module)
    for table in TABLES:
        setattr(other, table, getattr(module, table))
    assert forms(other) == forms(module) == [4, 4, 4, 8]


@contract("8.2")
def test_entries_taken_out_of_a_table_no_longer_fire():
    """`pop` and `popitem` take a hook off, with what its registration asked for, as `del` and a handle do."""
    module, calls = nn.Identity(), []
    handles = [module.register_forward_hook(lambda *_, n=n: calls.append(n), always_call=n == 1) for n in range(4)]
    table = module._forward_hooks
    module(1)
    table.pop(handles[1].id)
    module(1)
    assert table.popitem()[0] == handles[3].id
    assert table.popitem(last=False)[0] == handles[0].id
    module(1)
    assert calls == [0, 1, 2, 3, 0, 2, 3, 2]
    assert table.pop(-1, "default") == "default"
    with pytest.raises(KeyError):
        table.pop(-1)
    table.popitem()
    with pytest.raises(KeyError):
        table.popitem()


@contract("8.2")
@pytest.mark.parametrize("kind", ["_forward_hooks", "_forward_pre_hooks"])
def test_a_mark_made_by_hand_holds_from_the_next_call(kind):
    """What a tool writes into a table of marks, or takes out of it, says how a hook is called, also between calls."""
    module = nn.Identity()
    calls = []
    table, marks = getattr(module, kind), getattr(module, f"{kind}_with_kwargs")
    handle = RemovableHandle(table, extra_dict=marks)
    table[handle.id] = lambda *given: calls.append(len(given))
    plain = 3 if kind == "_forward_hooks" else 2
    module(1)
    marks[handle.id] = True
    module(1)
    del marks[handle.id]
    module(1)
    assert calls == [plain, plain + 1, plain]
    handle.remove()
    assert not module._active_hooks


@contract("8.2")
def test_an_order_changed_by_hand_holds_from_the_next_call():
    """A table that a tool sorts anew between two calls fires in its new order."""
    module = nn.Identity()
    first = module.register_forward_hook(lambda module, args, output: output + 1)
    module.register_forward_hook(lambda module, args, output: output * 2)
    assert float(module(lucid.ones(1))) == 4.0
    module._forward_hooks.move_to_end(first.id)
    assert float(module(lucid.ones(1))) == 3.0


@contract("8.3")
@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_a_handle_copied_before_its_module(copied):
    """The copy of a handle is of the copy's hook also where the table leads to the module first: a method of it."""
    module = OfItsOwn()
    handle, twin = copied((module.register_forward_hook(module.add), module))
    assert float(twin(lucid.zeros(1))) == 1.0
    handle.remove()
    assert float(twin(lucid.zeros(1))) == 0.0
    assert float(module(lucid.zeros(1))) == 1.0


def test_a_part_is_copied_without_its_model():
    """A deep copy and a pickle of a module that is part of a model are of that module alone."""
    model = nn.Sequential(nn.Linear(2, 2))
    x = lucid.ones(1, 2, requires_grad=True)
    for part in (copy.deepcopy(model[0]), pickle.loads(pickle.dumps(model[0])), copy.copy(model[0])):
        assert "module Linear" in note_of_failing("register_full_backward_hook", part, lambda part=part: part(x))


def test_many_hooks_leave_nothing():
    """100,000 hooks registered and removed leave no objects behind, and many at once are removed in little time."""
    module = nn.Identity()

    def cycle(count):
        handles = [module.register_forward_hook(top_level_hook) for _ in range(count)]
        for handle in handles:
            handle.remove()

    cycle(1000)
    gc.collect()
    before = len(gc.get_objects()), sys.getsizeof(module._forward_hooks)
    for _ in range(10):
        cycle(10_000)
    gc.collect()
    assert len(gc.get_objects()) <= before[0] + 10
    assert not module._active_hooks


# ---- errors ----


@contract("0.5")
@pytest.mark.parametrize("registration", CALL_KINDS)
def test_a_raising_hook_is_named(registration):
    """An error keeps its type; a note names hook, kind, place and the module's path; later hooks do not run."""
    net = nn.Sequential(nn.Identity(), nn.Sequential(nn.Linear(2, 2)))
    ran = []
    getattr(net[1][0], registration)(lambda *_: None)
    getattr(net[1][0], registration)(fails)
    getattr(net[1][0], registration)(lambda *_: ran.append(1))
    x = lucid.ones(1, 2, requires_grad=True)
    with pytest.raises(ValueError, match="no") as caught:
        net(x).sum().backward()
    (note,) = caught.value.__notes__
    kind = registration.removeprefix("register_").replace("_", " ").replace("pre hook", "pre-hook")
    for part in ("fails", "test_hooks.py", f"{kind} number 1", "Sequential.1.0 (Linear)"):
        assert part in note
    assert not ran
    assert lucid.is_grad_enabled()
    assert x.grad is None
    assert net[1][0].weight.grad is None or not registration.endswith("pre_hook")


@contract("5.1")
def test_returned_gradients_are_checked(rng):
    """A gradient of another shape, dtype or kind is refused, and the hook named."""
    for wrong, error in (
        (lucid.zeros(1, dtype=lucid.float64), HookError),
        (lucid.zeros(3), HookError),
        (3.0, HookTypeError),
    ):
        module = nn.Identity()
        module.register_full_backward_hook(partial(lambda wrong, m, gi, go: (wrong,), wrong))
        x = drawn(rng, 3)
        with pytest.raises(error, match="lambda"):
            module(x).sum().backward()
        assert x.grad is None
    module = nn.Identity()
    module.register_full_backward_hook(lambda m, gi, go: gi[0])
    with pytest.raises(HookTypeError, match="expected None or a tuple, got Tensor"):
        module(drawn(rng, 3)).sum().backward()


@pytest.mark.parametrize("before", [False, True])
def test_each_returned_gradient_is_checked_against_its_own(before, rng):
    """Of inputs, and outputs, of several shapes each gradient has the shape of its own, and no other's."""
    x, y = drawn(rng, 3), drawn(rng, 4)
    for number in (0, 1):
        module = module_of(lambda self, x, y: (y * 2, x * 3))
        register = module.register_full_backward_pre_hook if before else module.register_full_backward_hook

        def both_of_one(module, *grads, number=number):
            return (grads[0][number],) * 2

        register(both_of_one)
        one, other = module(x, y)
        with pytest.raises(HookError, match=r"both_of_one.*shape"):
            (one.sum() + other.sum()).backward()
        assert x.grad is y.grad is None


@contract("0.9")
def test_grad_mode_inside_backward_hooks(rng):
    """Grad mode is off inside backward hooks, and on under create_graph."""
    module = nn.Identity()
    seen = []
    module.register_full_backward_pre_hook(lambda *_: seen.append(lucid.is_grad_enabled()))
    module.register_full_backward_hook(lambda *_: seen.append(lucid.is_grad_enabled()))
    x = drawn(rng, 3)
    module(x).sum().backward()
    module(x).sum().backward(create_graph=True)
    assert seen == [False, False, True, True]


# ---- beyond PyTorch ----


@contract("5.3")
def test_pre_hook_without_and_with_alignment(rng):
    """The backward pre-hook leaves non-tensor outputs out, or has None for them with `aligned=True`."""
    module = module_of(lambda self, x: (x * 2, "text", x * 3))
    seen = []
    module.register_full_backward_pre_hook(lambda m, go: seen.append(len(go)))
    module.register_full_backward_pre_hook(lambda m, go: seen.append([g is None for g in go]), aligned=True)
    module.register_full_backward_hook(lambda m, gi, go: seen.append([g is None for g in go]))
    module.register_full_backward_hook(lambda m, gi, go: seen.append(len(go)), aligned=False)
    module.register_full_backward_pre_hook(lambda m, go: (go[0], go[1] * 10))
    x = drawn(rng, 3)
    first, _, second = module(x)
    (first + second).sum().backward()
    assert seen == [2, [False, True, False], [False, True, False], 2]
    np.testing.assert_allclose(x.grad.cpu().numpy(), 32.0)


@contract("5.8")
def test_keyword_arguments(rng):
    """With `with_kwargs` the hook waits for and may replace the gradients of keyword arguments."""
    module = module_of(lambda self, x, *, factor, name: x * factor)
    seen = []

    def hook(m, grad_args, grad_kwargs, grad_output):
        seen.append((grad_args, grad_kwargs, grad_output))
        return grad_args, {**grad_kwargs, "factor": grad_kwargs["factor"] * 10}

    module.register_full_backward_hook(hook, with_kwargs=True)
    module.register_full_backward_hook(lambda m, gi, go: seen.append(len(gi)))
    x, factor, upstream = drawn(rng, 3), drawn(rng, 3), drawn(rng, 3).detach()
    module(x, factor=factor, name="n").backward(upstream)
    (grad_args, grad_kwargs, grad_output), count = seen
    np.testing.assert_allclose(grad_args[0].cpu().numpy(), (upstream * factor.detach()).cpu().numpy())
    assert grad_kwargs["name"] is None
    np.testing.assert_allclose(grad_output[0].cpu().numpy(), upstream.cpu().numpy())
    assert count == 1
    np.testing.assert_allclose(factor.grad.cpu().numpy(), 10 * (upstream * x.detach()).cpu().numpy())


@contract("5.8")
def test_structures(rng):
    """With `structured` gradients come in the structure of arguments and output, and so do replacements."""
    module = Nested()
    seen = []

    def hook(m, grad_args, grad_kwargs, grad_output):
        seen.append((grad_args, grad_kwargs, grad_output))
        (pair,) = grad_args
        return (([pair[0], {"x": pair[1]["x"] * 10, "n": None}],), {"extra": grad_kwargs["extra"] * 100})

    module.register_full_backward_hook(hook, structured=True, with_kwargs=True)
    a, b, c = drawn(rng, 2), drawn(rng, 2), drawn(rng, 2)
    out = module([a, {"x": b, "n": 3}], extra=c)
    assert out["list"][1] == "text"
    (out["sum"].sum() + out["list"][0].sum() + out["extra"].sum()).backward()
    ((grad_args, grad_kwargs, grad_output),) = seen
    assert grad_args[0][0].tolist() == [3.0, 3.0]
    assert grad_args[0][1]["x"].tolist() == [1.0, 1.0]
    assert grad_args[0][1]["n"] is None
    assert grad_kwargs["extra"].tolist() == [3.0, 3.0]
    assert grad_output["list"][1] is None
    assert grad_output["sum"].tolist() == [1.0, 1.0]
    assert (a.grad.tolist(), b.grad.tolist(), c.grad.tolist()) == ([3.0] * 2, [10.0] * 2, [300.0] * 2)


@contract("5.8")
def test_structures_of_another_form_are_refused(rng):
    """A replacement of another structure is an error that says what differs."""
    for wrong, message in (
        (({"x": 1},), "expected None or a tuple, got dict"),
        (([None],), "expected 2 entries, got 1"),
        (([None, {"y": None}],), "expected the keys"),
    ):
        module = Nested()
        module.register_full_backward_hook(lambda m, gi, go, wrong=wrong: wrong, structured=True)
        out = module([drawn(rng, 2), {"x": drawn(rng, 2)}])
        with pytest.raises((HookError, HookTypeError), match=message):
            out["sum"].sum().backward()


def test_inputs_that_get_no_gradient_have_zeros(rng):
    """What forward does not use, and what needs no gradient: of the shape and dtype of the input."""
    x, unused, plain = drawn(rng, 2), drawn(rng, 3), lucid.ones(4, dtype=lucid.float32)
    module, seen = module_of(lambda self, x, *others: x * 2), []
    module.register_full_backward_hook(lambda m, grad_input, grad_output: seen.extend(grad_input))
    module(x, unused, plain).sum().backward()
    assert [(g.tolist(), g.dtype) for g in seen] == [
        ([2.0] * 2, x.dtype), ([0.0] * 3, unused.dtype), ([0.0] * 4, plain.dtype),
    ]  # fmt: skip


@dataclasses.dataclass
class Given:
    x: object


class Other(Given):
    """Has the same fields."""


@contract("5.8")
@pytest.mark.parametrize("wrong", [Other, lambda x: {"x": x}, lambda x: x], ids=["dataclass", "dict", "tensor"])
def test_replacements_of_another_class_are_refused(wrong, rng):
    """What stands for a dataclass is one of its class; of that it may be another object."""
    x, module = drawn(rng, 2), module_of(lambda self, given: given.x * 2)
    with module.register_full_backward_hook(lambda m, gi, go: (Given(gi[0].x * 10),), structured=True):
        module(Given(x)).sum().backward()
    assert x.grad.tolist() == [20.0] * 2
    module.register_full_backward_hook(lambda m, gi, go: (wrong(gi[0].x),), structured=True)
    with pytest.raises(HookTypeError, match="invalid grad_input: expected a Given, got"):
        module(Given(x)).sum().backward()


@contract("5.8")
def test_dataclasses(rng):
    """Dataclasses, frozen ones too, pass the boundary with their type, and their gradients come in one."""

    @dataclasses.dataclass(frozen=True)
    class Batch:
        x: object
        note: str

    module = module_of(lambda self, batch: Batch(batch.x * 2, batch.note))
    seen = []
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)), structured=True)
    x = drawn(rng, 2)
    out = module(Batch(x, "n"))
    assert out.note == "n"
    out.x.sum().backward()
    ((grad_input, grad_output),) = seen
    assert isinstance(grad_input[0], Batch)
    assert grad_input[0].x.tolist() == [2.0, 2.0]
    assert grad_output.x.tolist() == [1.0, 1.0]
    assert grad_output.note is None


@pytest.mark.parametrize("kind", ["forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook"])
def test_a_hook_that_is_put_in_front_fires_first(kind, rng):
    """`prepend` puts a hook of each kind before those that were there."""
    module, order = nn.Tanh(), []
    register = getattr(module, f"register_{kind}")
    for name, prepend in (("a", False), ("b", True), ("c", False), ("d", True)):
        register(lambda *_, name=name: order.append(name), prepend=prepend)
    module(lucid.tensor(rng.standard_normal(3), requires_grad=True)).sum().backward()
    assert "".join(order) == "dbac"


@contract("4.1")
@pytest.mark.parametrize("first", [True, False])
def test_hooks_of_both_forms_beside_each_other(first, rng):
    """Each is given the gradients as it asked for them, whichever was registered first."""
    seen, module = {}, module_of(lambda self, pair, factor: pair[0] * 2 + pair[1] * factor)
    for structured in (first, not first):
        module.register_full_backward_hook(
            lambda m, grad_input, *_, structured=structured: seen.update({structured: grad_input}),
            structured=structured,
            with_kwargs=not structured,
        )
    a, b, factor = (lucid.tensor(rng.standard_normal(3), requires_grad=True) for _ in range(3))
    upstream = lucid.tensor(rng.standard_normal(3))
    module((a, b), factor).backward(upstream)
    (of_a, of_b), of_factor = seen[True]
    assert seen[False][0] is None
    for got, expected in (
        (of_a, upstream * 2), (of_b, upstream * factor), (of_factor, upstream * b), (seen[False][1], upstream * b)
    ):  # fmt: skip
        np.testing.assert_allclose(got.tolist(), expected.tolist(), rtol=1e-12)


@contract("5.8")
def test_mutable_arguments_stay_the_callers():
    """Without `structured` a list or dictionary that is passed is the caller's own, so that forward may fill it."""

    class Fills(nn.Module):
        def forward(self, x, cache):
            cache.append(x * 2)
            return x

    module = Fills()
    module.register_full_backward_hook(lambda *_: None)
    cache = []
    module(lucid.ones(1, requires_grad=True), cache)
    assert len(cache) == 1


@contract("5.7")
def test_backward_hook_on_the_output(rng):
    """`register_backward_hook` gives a single output tensor and its gradient, and ignores the return."""
    module = nn.Identity()
    seen = []
    module.register_backward_hook(lambda tensor, grad: seen.append((tensor, grad)) or grad * 100)
    x, upstream = drawn(rng, 2), drawn(rng, 2).detach()
    y = module(x)
    y.backward(upstream)
    assert seen[0][0] is y
    assert np.array_equal(seen[0][1].cpu().numpy(), upstream.cpu().numpy())
    assert np.array_equal(x.grad.cpu().numpy(), upstream.cpu().numpy())
    z = module(module(x)) + y
    z.backward(upstream)
    assert [tensor for tensor, _ in seen[1:]].count(None) == 2
    assert len(seen) == 4
    module((x,))[0].backward(upstream)
    module(x.detach())
    x.sum().backward()
    assert len(seen) == 4
    with pytest.warns(FutureWarning, match="register_full_backward_hook"):
        module.register_backward_hook(lambda module, grad_input, grad_output: seen.append("full"))
    module(x).backward(upstream)
    assert "full" in seen
    with pytest.raises(TypeError, match="2 positional arguments, or of 3"):
        module.register_backward_hook(lambda: None)


@contract("0.3")
@contract("5.7")
def test_backward_hook_on_the_output_is_that_of_the_call():
    """A call fires the hooks that the module had when it began: one taken off inside, and none that is added inside."""
    module = nn.Identity()
    seen = []
    early = module.register_backward_hook(lambda tensor, grad: seen.append("early"))

    def change(module, args, output):
        early.remove()
        module.register_backward_hook(lambda tensor, grad: seen.append("late"))

    changing = module.register_forward_hook(change)
    x = lucid.ones(2, requires_grad=True)
    module(x).sum().backward()
    assert seen == ["early"]
    changing.remove()
    module(x).sum().backward()
    assert seen == ["early", "late"]


@contract("0.3")
@contract("5.7")
def test_backward_hook_on_the_output_waits_where_a_pre_hook_adds_it():
    """What a forward pre-hook registers holds from the next call on."""
    module, seen = nn.Identity(), []
    add = module.register_forward_pre_hook(
        lambda module, args: module.register_backward_hook(lambda tensor, grad: seen.append("late")) and None
    )
    module.register_backward_hook(lambda tensor, grad: seen.append("early"))
    x = lucid.ones(2, requires_grad=True)
    module(x).sum().backward()
    assert seen == ["early"]
    add.remove()
    module(x).sum().backward()
    assert seen == ["early", "early", "late"]


@contract("5.7")
def test_backward_hook_on_the_output_sees_the_gradient_of_the_call():
    """Where a module hands an argument through, what else is done with that argument is not part of it."""
    module, seen = nn.Identity(), []
    module.register_backward_hook(lambda tensor, grad: seen.append(grad.tolist()))
    x = lucid.ones(2, requires_grad=True) * 1.0
    (module(x) * 2 + x * 3).sum().backward()
    assert seen == [[2.0, 2.0]]


@contract("0.5")
def test_a_backward_hook_on_the_output_that_raises_is_counted():
    """The note says which of several it was."""

    def fails(tensor, grad):
        raise ZeroDivisionError

    module = nn.Identity()
    for hook in (lambda tensor, grad: None, fails):
        module.register_backward_hook(hook)
    with pytest.raises(ZeroDivisionError) as caught:
        module(lucid.ones(2, requires_grad=True)).sum().backward()
    assert any("backward hook number 1 of module Identity" in note for note in caught.value.__notes__)


@contract("5.7")
def test_backward_hook_on_a_returned_inference_tensor():
    """A module that returns a leaf made in inference mode fires once for each call, and the leaf carries no hook."""
    with lucid.inference_mode():
        weight = lucid.ones(2, requires_grad=True)

    module, seen = module_of(lambda self, x: weight), []
    module.register_backward_hook(lambda tensor, grad: seen.append(grad.tolist()))
    for _ in range(2):
        (module(lucid.ones(2)) * lucid.tensor([2.0, 3.0])).sum().backward()
    (weight + lucid.ones(2)).sum().backward()
    assert seen == [[2.0, 3.0]] * 2
    assert weight.grad.tolist() == [5.0, 7.0]


@contract("5.5")
@contract("5.7")
def test_backward_hook_on_an_output_that_nothing_records():
    """Under `no_grad` a module that returns its parameter, or its argument, returns just that, and no hook fires."""
    module = module_of(lambda self, x: x)
    module.register_backward_hook(lambda tensor, grad: 1 / 0)
    weight = nn.Parameter(lucid.ones(2))
    with lucid.no_grad():
        assert module(weight) is weight


@contract("5.7")
def test_an_argument_handed_through_with_a_backward_hook_can_be_changed(rng):
    """What such a module returns for its argument is memory that may be written to, as that of the argument."""
    module = nn.Identity()
    seen = []
    module.register_backward_hook(lambda tensor, grad: seen.append(grad.cpu().numpy()))
    x, upstream = drawn(rng, 2), drawn(rng, 2).detach()
    y = x * 1.0
    module(y).mul_(3.0)
    y.backward(upstream)
    np.testing.assert_allclose(x.grad.cpu().numpy(), 3 * upstream.cpu().numpy(), rtol=1e-6)


@contract("4.4")
def test_forward_called_directly_fires_nothing():
    """`module.forward(...)` fires no hooks."""
    module = nn.Identity()
    module.register_forward_hook(lambda *_: 1 / 0)
    assert module.forward(3) == 3


def test_hooks_registered_by_forward():
    """A forward hook that forward registers fires in this call if the module had one already, as in PyTorch."""

    class Registers(nn.Module):
        def forward(self, x):
            self.register_forward_hook(lambda m, args, output: output + 1)
            return x

    module = Registers()
    assert float(module(lucid.zeros(1))) == 0.0
    assert float(module(lucid.zeros(1))) == 2.0


# ---- objects that own hooks ----


@contract("9.1")
def test_hook_construction():
    """A Hook needs one function at least, each callable; the dictionaries of arguments are copied."""
    with pytest.raises(RuntimeError, match="at least one"):
        Hook()
    with pytest.raises(TypeError, match="posthook"):
        Hook(posthook=3)
    arguments = {"prepend": True}
    module = nn.Identity()
    module.register_forward_hook(lambda m, args, output: output * 2)
    hook = Hook(posthook=lambda m, args, output: output + 1, posthook_kwargs=arguments)
    arguments["prepend"] = False
    hook.register(module)
    assert float(module(lucid.ones(1))) == 4.0
    module = nn.Identity()
    module.register_forward_pre_hook(lambda m, args: args[0] * 2)
    arguments = {"prepend": True}
    hook = Hook(lambda m, args: args[0] + 1, prehook_kwargs=arguments)
    arguments["prepend"] = False
    hook.register(module)
    assert float(module(lucid.ones(1))) == 4.0


@contract("9.2")
@contract("9.3")
def test_hook_registration():
    """A Hook is on one module at a time; deregistering is idempotent and allows to register again."""
    first, second = nn.Identity(), nn.Identity()
    hook = Hook(lambda m, args: args[0] + 1, lambda m, args, output: output * 2)
    hook.deregister()
    assert not hook.registered
    hook.register(first)
    assert hook.registered
    assert float(first(lucid.ones(1))) == 4.0
    for module in (first, second):
        with pytest.raises(RuntimeError, match="registered"):
            hook.register(module)
    assert float(second(lucid.ones(1))) == 1.0
    hook.deregister()
    hook.deregister()
    assert float(first(lucid.ones(1))) == 1.0
    hook.register(second)
    assert float(second(lucid.ones(1))) == 4.0
    with pytest.raises(TypeError, match="expected a Module"):
        Hook(print).register(3)


@contract("9.2")
def test_hook_registration_undone_when_half_done():
    """If the second of two registrations fails, the first is undone."""
    module = nn.Identity()
    hook = Hook(lambda m, args: None, lambda m, args, output: None, posthook_kwargs={"wrong": 1})
    with pytest.raises(TypeError):
        hook.register(module)
    assert not hook.registered
    assert not module._active_hooks


@contract("9.4")
def test_hook_modes():
    """`trainexec` and `evalexec` are read at every call against the module's mode."""
    module = nn.Identity()
    hook = Hook(posthook=lambda m, args, output: output + 1, train_update=False)
    hook.register(module)
    assert (hook.trainexec, hook.evalexec) == (False, True)
    assert float(module(lucid.zeros(1))) == 0.0
    assert float(module.eval()(lucid.zeros(1))) == 1.0
    hook.evalexec = False
    assert float(module(lucid.zeros(1))) == 0.0
    hook.trainexec = True
    assert float(module.train()(lucid.zeros(1))) == 1.0


@contract("9.3")
@contract("9.5")
def test_the_module_does_not_keep_its_hook():
    """Deleting the Hook removes its hooks at once, and the death of the module leaves the Hook usable."""
    with no_collections():
        module = nn.Identity()
        hook = Hook(posthook=lambda m, args, output: output + 1)
        hook.register(module)
        del hook
        assert not module._active_hooks
        hook = Hook(posthook=lambda m, args, output: output + 1)
        hook.register(module)
        del module
        assert not hook.registered
        hook.deregister()
        again = nn.Identity()
        hook.register(again)
        assert float(again(lucid.zeros(1))) == 1.0


@contract("9.6")
def test_copies_leave_the_hook_behind():
    """A deep copy of a module and its pickle do not fire the original's Hook, and have no trace of it."""
    module = nn.Identity()
    hook = Hook(lambda m, args: None, lambda m, args, output: output + 1)
    hook.register(module)
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert float(twin(lucid.zeros(1))) == 0.0
        assert not twin._active_hooks
        assert not any(len(getattr(twin, table)) for table in TABLES)
    assert float(module(lucid.zeros(1))) == 1.0


@contract("9.6")
def test_copies_leave_what_the_hook_asked_for_behind():
    """Neither does a copy keep what the registration asked for: nothing is active in it."""
    module = nn.Identity()
    asked = {"with_kwargs": True}
    hook = Hook(lambda *_: None, lambda *_: None, prehook_kwargs=asked, posthook_kwargs={**asked, "always_call": True})
    hook.register(module)
    module.register_forward_hook(note_form, with_kwargs=True)
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        (kept,) = twin._forward_hooks
        assert list(twin._forward_hooks_with_kwargs) == [kept]
        assert set(twin._active_hooks) == {"_forward_hooks", "_forward_hooks_with_kwargs"}
    module.register_forward_hook(note_form)
    hook.deregister()
    assert set(module._active_hooks) == {"_forward_hooks", "_forward_hooks_with_kwargs"}


@contract("0.5")
def test_a_hook_that_raises_is_named_by_its_function():
    """The note on an error names the user's function, not what stands for it in the table."""
    module = nn.Identity()
    hook = Hook(posthook=fails)
    hook.register(module)
    with pytest.raises(ValueError, match="no") as caught:
        module(1)
    assert "fails" in caught.value.__notes__[0]


class Adds(ContextualHook):
    def __init__(self, **options):
        super().__init__(posthook="add", **options)
        self.calls = 0

    def add(self, module, args, output):
        self.calls += 1
        return output + self.calls


@contract("9.7")
def test_contextual_hooks():
    """Methods named at construction are the hooks, keep state and may replace; wrong names raise then."""
    module, hook = nn.Identity(), Adds()
    hook.register(module)
    assert [float(module(lucid.zeros(1))) for _ in range(2)] == [1.0, 2.0]
    with no_collections():
        ref = weakref.ref(hook)
        del hook
        assert ref() is None
        assert not module._active_hooks
    with pytest.raises(AttributeError, match="missing"):
        ContextualHook(prehook="missing")
    with pytest.raises(RuntimeError, match="at least one"):
        ContextualHook()


class Clamps(StateHook):
    def hook(self, module):
        with lucid.no_grad():
            module.weight.clamp_(-0.1, 0.1)


@contract("9.7")
def test_state_hooks():
    """A StateHook runs on its module at each call or on request, and is no part of it."""
    module = nn.Linear(2, 2)
    with lucid.no_grad():
        module.weight.fill_(5.0)
    hook = Clamps(module, eval_update=False)
    x = lucid.zeros(1, 2)
    module(x)
    hook()
    assert module.weight.max().item() == 5.0
    hook(force=True)
    assert module.weight.max().item() == pytest.approx(0.1)
    hook.register()
    hook.register()
    with lucid.no_grad():
        module.weight.fill_(5.0)
    module.eval()(x)
    hook()
    assert module.weight.max().item() == 5.0
    hook(ignore_mode=True)
    assert module.weight.max().item() == pytest.approx(0.1)
    with lucid.no_grad():
        module.weight.fill_(5.0)
    module.train()(x)
    assert module.weight.max().item() == pytest.approx(0.1)
    assert list(module.state_dict()) == ["weight", "bias"]
    with pytest.raises(TypeError, match="abstract"):
        StateHook(module)
    with pytest.raises(TypeError, match="expected a Module"):
        Clamps(3)
    ref = weakref.ref(module)
    with no_collections():
        del module
        assert ref() is None
    hook.deregister()
    with pytest.raises(RuntimeError, match="gone"):
        hook.register()


@contract("9.7")
def test_state_hooks_at_their_place():
    """A StateHook runs before the module or after it, first if prepended, also after an error if asked; only there."""
    events = []

    class Notes(StateHook):
        def __init__(self, name, module, **options):
            super().__init__(module, **options)
            self.name = name

        def hook(self, module):
            events.append(self.name)
            return 1  # ignored, whether it runs before the module or after it

    class Forward(nn.Module):
        def forward(self, x):
            events.append("forward")
            if x is None:
                raise KeyError
            return x

    module = Forward()
    hooks = [
        Notes("after", module),
        Notes("always", module, always_call=True),
        Notes("first after", module, prepend=True),
        Notes("before", module, as_prehook=True),
        Notes("first before", module, as_prehook=True, prepend=True),
    ]
    for hook in hooks:
        hook.register()
    assert module(7) == 7
    assert events == ["first before", "before", "forward", "first after", "after", "always"]
    del events[:]
    with pytest.raises(KeyError):
        module(None)
    assert events == ["first before", "before", "forward", "always"]
    with pytest.raises(HookError, match="another module"):
        hooks[0].register(Forward())
    assert hooks[0].registered


def fails(*_):
    raise ValueError("no")


def note_of_failing(register, module, call):
    """Return the note of the error that a failing hook raises in a call and its backward."""
    with getattr(module, register)(fails), pytest.raises(ValueError, match="no") as caught:
        call().sum().backward()
    (note,) = caught.value.__notes__
    return note


@contract("0.5")
@pytest.mark.parametrize("register", CALL_KINDS)
def test_notes_name_the_place_in_the_whole_model(register):
    """The path begins at the model's top: below a module that is called by itself, in copies, past slices that die."""
    model = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(2, 2), nn.Tanh()))
    x = lucid.ones(1, 2, requires_grad=True)
    inner = model[1]
    assert "Sequential.1.0 (Linear)" in note_of_failing(register, inner[0], lambda: inner(x))
    assert model[1:](x).shape == (1, 2)
    assert "Sequential.1.1 (Tanh)" in note_of_failing(register, inner[1], lambda: model(x))
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert "Sequential.1.0 (Linear)" in note_of_failing(register, copied[1][0], lambda copied=copied: copied(x))
    model.insert(0, nn.Identity())
    assert "Sequential.2.0 (Linear)" in note_of_failing(register, inner[0], lambda: model(x))
    alone = model.pop(2)
    note = note_of_failing(register, alone[0], lambda: alone(x))
    assert "Sequential.0 (Linear)" in note
    assert "2.0" not in note


def test_a_module_keeps_no_parent_alive():
    """Dropping a model frees it at once, though its parts know where they stood."""
    model = nn.Sequential(nn.Linear(2, 2))
    part, ref = model[0], weakref.ref(model)
    with no_collections():
        del model
        assert ref() is None
    x = lucid.ones(1, 2, requires_grad=True)
    assert "module Linear" in note_of_failing("register_full_backward_hook", part, lambda: part(x))


@contract("5.1")
@contract("5.6")
def test_one_tensor_in_and_out_fires_as_any_call(rng):
    """The short way of one tensor gives hooks, replacements, order and errors of the general way, also twice over."""
    weight = rng.standard_normal(3)

    def run(*extra):
        module, events = module_of(lambda self, x, unused=None: x * x), []

        def first(module, grad_input, grad_output):
            events.append(("first", [g.tolist() for g in grad_input if g is not None], grad_output[0].tolist()))
            return tuple(None if g is None else g * 3 for g in grad_input)

        def second(module, grad_input, grad_output):
            events.append(("second", [g.tolist() for g in grad_input if g is not None], grad_output[0].tolist()))

        module.register_full_backward_hook(first)
        module.register_full_backward_hook(second)
        x = lucid.tensor([1.0, -2.0, 0.5], dtype=lucid.float64, requires_grad=True)
        y = module(x, *extra)
        with pytest.raises(RuntimeError, match="full backward hooks"):
            y += 1
        loss = (module(y, *extra) * lucid.tensor(weight)).sum()
        (grad,) = lucid.autograd.grad(loss, x, create_graph=True)
        (second_grad,) = lucid.autograd.grad((grad * lucid.tensor(weight)).sum(), x, retain_graph=True)
        loss.backward()
        return events, x.grad.tolist(), grad.tolist(), second_grad.tolist()

    assert run() == run(None)


SEEN = []


def keywords_of(module, args, kwargs):
    """Note the names of keywords."""
    SEEN.append([*kwargs])


def own_keys_of(module, missing, unexpected, strict):
    """Note the keys that are too many."""
    SEEN.append([*unexpected])


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_hooks_that_are_taken_off_a_copy_stay_on_the_module(copied):
    """What a hook was registered with is kept by each for itself: the module's is called with the same as before."""
    module = nn.Identity()
    module.register_forward_pre_hook(keywords_of, with_kwargs=True)
    module.register_load_state_dict_post_hook(own_keys_of)
    twin = copied(module)
    for table in (twin._forward_pre_hooks, twin._load_state_dict_post_hooks):
        table.clear()
        assert not table
    SEEN.clear()
    for each in (module, twin):
        each(input=lucid.ones(1))
        each.load_state_dict({"more": lucid.ones(1)}, strict=False)
    assert SEEN == [["input"], ["more"]]
