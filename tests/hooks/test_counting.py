"""`lucid.hooks.counting`, and what handles say: calls and times while asked for, names, and whether a hook is on."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest

import lucid
from lucid import hooks, nn
from lucid.autograd.hooks import firing
from lucid.nn.modules.module import register_module_forward_hook
from tests.device import DEVICE
from tests.pieces import in_threads, raising

CLOCK = [0]  # nanoseconds


def clock():
    return CLOCK[0]


def sleeps(module, args, output):
    CLOCK[0] += 5_000_000


def nothing(*_):
    return None


def run(model):
    x = lucid.ones(2, 2, device=DEVICE, requires_grad=True)
    loss = model(x).sum()
    loss.backward()
    return loss


def test_every_kind_of_hook_is_counted(monkeypatch):
    monkeypatch.setattr(firing, "perf_counter_ns", clock)
    model = nn.Linear(2, 2, device=DEVICE)
    optimizer = lucid.optim.SGD(model.parameters(), lr=0.1)
    handles = {
        "forward": model.register_forward_hook(sleeps),
        "pre": model.register_forward_pre_hook(nothing),
        "backward": model.register_full_backward_hook(nothing),
        "backward pre": model.register_full_backward_pre_hook(nothing),
        "tensor": model.weight.register_hook(nothing),
        "accumulated": model.weight.register_post_accumulate_grad_hook(nothing),
        "step": optimizer.register_step_pre_hook(nothing),
        "state": model.register_state_dict_pre_hook(nothing),
    }
    with register_module_forward_hook(nothing), hooks.counting(model, optimizer) as found:
        assert {name: handle.calls for name, handle in handles.items()} == dict.fromkeys(handles, 0)
        run(model)
        run(model)
        optimizer.step()
        model.state_dict()
        counts = {name: handle.calls for name, handle in handles.items()}
    assert counts == {"forward": 2, "pre": 2, "backward": 2, "backward pre": 2, "tensor": 2, "accumulated": 2,
                      "step": 1, "state": 1}  # fmt: skip
    assert len(found) == 9
    by_kind = {row.kind: row for row in found}
    assert by_kind["forward hook"].calls == 2  # of all modules, the last of them
    slow = next(row for row in found if "sleeps" in row.name)
    assert slow.time == 10_000
    run(model)
    assert slow.calls == 2
    assert {name: handle.calls for name, handle in handles.items()} == dict.fromkeys(handles)
    assert "calls" in str(found)
    assert found.to_dicts()[0].keys() >= {"calls", "time"}
    assert "calls" not in str(hooks.table(model))


def test_a_table_of_some_that_are_counted():
    """It has counts where any hook of it has, and nothing for one that came later."""
    model = nn.Identity()
    model.register_forward_hook(nothing)
    with hooks.counting(model):
        model(lucid.ones(1))
        model.register_forward_hook(nothing)
        assert [row["calls"] for row in hooks.table(model).to_dicts()] == [1, None]
    assert "calls" not in hooks.table(model).to_dicts()[0]


def test_one_that_raises_or_is_off():
    """A call that raises counts; a hook that rests is not called; one taken off inside keeps its count."""
    model = nn.Identity()
    first, second = (model.register_forward_pre_hook(hook) for hook in (nothing, raising(KeyError("here"))))
    with hooks.counting(model) as found:
        with pytest.raises(KeyError) as caught:
            model(lucid.ones(1))
        assert "raising.<locals>.fail" in caught.value.__notes__[0]
        first.enabled = False
        second.remove()
        model(lucid.ones(1))
    assert [row.calls for row in found] == [1, 1]
    first.enabled = True
    assert first.hook() is nothing
    assert len(hooks.table(model)) == 1


def test_blocks_inside_of_each_other():
    model = nn.Identity()
    handle = model.register_forward_hook(nothing)
    with hooks.counting(model) as outer:
        model(lucid.ones(1))
        with hooks.counting(model) as inner:
            handle.enabled = False
            model(lucid.ones(1))
            handle.enabled = True
            model(lucid.ones(1))
        model(lucid.ones(1))
    assert (outer[0].calls, inner[0].calls) == (3, 1)
    assert handle.hook() is nothing


ORDERS = sorted(set(itertools.permutations(("begin or end", "begin or end", "switch", "switch"))))


@pytest.mark.parametrize("order", ORDERS, ids=", ".join)
def test_switching_and_counting_in_any_order(order):
    """What counts is what is called inside of the block, whenever a hook is switched off and on again."""
    model, called = nn.Identity(), []
    handle = model.register_forward_hook(nothing)
    block, found, inside = hooks.counting(model), None, False
    for step in order:
        if step == "switch":
            handle.enabled = not handle.enabled
        elif found is None:
            found, inside = block.__enter__(), True
        else:
            block.__exit__(None, None, None)
            inside = False
        model(lucid.ones(1))
        called += [step] * bool(inside and handle.enabled)
        assert handle.calls == (len(called) if inside else None)
    assert found is not None
    assert found[0].calls == len(called)
    assert (handle.hook(), handle.enabled) == (nothing, True)


def test_one_object_inside_of_itself():
    """Each end is that of the block that began last."""
    model = nn.Identity()
    handle = model.register_forward_hook(nothing)
    counting = hooks.counting(model)
    with counting as outer:
        with counting as inner:
            model(lucid.ones(1))
        model(lucid.ones(1))
    assert (outer[0].calls, inner[0].calls) == (2, 1)
    assert handle.hook() is nothing


def test_blocks_that_end_in_another_order():
    """As those of two threads do: each takes off its own."""
    model = nn.Identity()
    handle = model.register_forward_hook(nothing)
    one, two = hooks.counting(model), hooks.counting(model)
    first, second = one.__enter__(), two.__enter__()
    one.__exit__(None, None, None)
    model(lucid.ones(1))
    two.__exit__(None, None, None)
    assert (first[0].calls, second[0].calls) == (0, 1)
    assert handle.hook() is nothing


def test_copies_are_not_counted():
    model = nn.Identity()
    handle = model.register_forward_hook(nothing)
    with hooks.counting(model):
        other, third = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
        assert handle.calls == 0
        handle.enabled = False
        off = copy.deepcopy(model)
    for each in (other, third):
        (hook,) = each._forward_hooks.values()
        assert hook is nothing
    assert not hooks.table(off)[0].enabled


@pytest.mark.parametrize("kind", ["module", "tensor"])
def test_handles_say_what_they_hold(kind):
    x = lucid.ones(1, device=DEVICE, requires_grad=True)
    model = nn.Identity()
    handle = model.register_forward_hook(nothing) if kind == "module" else x.register_hook(nothing)
    assert handle.hook() is nothing
    assert handle.name.startswith("nothing (")
    assert handle.name.endswith(f"{__file__}:{nothing.__code__.co_firstlineno})")
    assert repr(handle) == f"<RemovableHandle: {handle.name}>"
    assert handle.enabled
    handle.enabled = False
    assert repr(handle) == f"<RemovableHandle: {handle.name}, off>"
    handle.enabled = False
    handle.enabled = True
    assert handle.enabled
    assert (handle.calls, handle.time) == (None, None)
    handle.remove()
    assert (handle.hook(), handle.name, handle.enabled, handle.calls) == (None, "", False, None)
    handle.enabled = True
    assert repr(handle) == "<RemovableHandle: removed>"
    handle.remove()


def test_a_hook_that_is_off_is_not_called():
    seen = []
    x = lucid.ones(1, device=DEVICE, requires_grad=True)
    first, second = x.register_hook(lambda _: seen.append(1)), x.register_hook(lambda _: seen.append(2))
    first.enabled = False
    (x * 2).backward()
    first.enabled, second.enabled = True, False
    (x * 2).backward()
    assert seen == [2, 1]
    first.remove()
    second.remove()
    assert not x._backward_hooks


def test_threads():
    """One counts while others call; no call is lost, and nothing is left."""
    model = nn.Identity()
    handle = model.register_forward_hook(nothing)
    with hooks.counting(model) as found:
        in_threads(*[lambda: [model(lucid.ones(1)) for _ in range(200)]] * 3)
    assert found[0].calls == 600
    assert handle.hook() is nothing
