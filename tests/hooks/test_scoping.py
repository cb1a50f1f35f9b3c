"""`lucid.hooks.scope` and `HookGroup`: what was registered in their blocks goes, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import lucid
from lucid import hooks, nn
from lucid.errors import HookError
from lucid.nn.hooking.tables import global_tables
from lucid.optim.base import stepping
from lucid.optim.optimizer import register_optimizer_step_pre_hook
from tests.device import DEVICE
from tests.pieces import in_threads


def keep(*_):
    """Leave everything as it is."""


def registered(hook, module):
    """Return a Hook that is on a module, which lives as long as it is held."""
    hook.register(module)
    return hook


def layer():
    return nn.Linear(2, 2, device=DEVICE)


REGISTRATIONS = {
    "forward pre-hook": lambda module, y, optimizer: module.register_forward_pre_hook(keep, with_kwargs=True),
    "forward hook": lambda module, y, optimizer: module.register_forward_hook(keep, always_call=True, prepend=True),
    "full backward hook": lambda module, y, optimizer: module.register_full_backward_hook(keep),
    "full backward pre-hook": lambda module, y, optimizer: module.register_full_backward_pre_hook(keep),
    "backward hook": lambda module, y, optimizer: module.register_backward_hook(lambda tensor, grad: None),
    "state-dict hook": lambda module, y, optimizer: module.register_state_dict_hook(keep),
    "load hook": lambda module, y, optimizer: module.register_load_state_dict_post_hook(keep),
    "tensor hook": lambda module, y, optimizer: module.weight.register_hook(keep),
    "post-accumulate hook": lambda module, y, optimizer: module.weight.register_post_accumulate_grad_hook(keep),
    "tensor hook inside": lambda module, y, optimizer: y.register_hook(keep),
    "node prehook": lambda module, y, optimizer: y.grad_fn.register_prehook(keep),
    "node posthook": lambda module, y, optimizer: y.grad_fn.register_hook(keep),
    "multi-grad hook": lambda module, y, optimizer: lucid.autograd.graph.register_multi_grad_hook(
        (module.weight, y), keep
    ),
    "all modules": lambda module, y, optimizer: nn.modules.module.register_module_forward_hook(keep),
    "all optimizers": lambda module, y, optimizer: register_optimizer_step_pre_hook(keep),
    "optimizer": lambda module, y, optimizer: optimizer.register_step_post_hook(keep),
    "Hook": lambda module, y, optimizer: registered(nn.Hook(keep), module),
}


def hooks_on(module, y, optimizer):
    """Return how many hooks there are on a layer, its weight, its output, an optimizer, and everywhere."""
    owned = (*vars(module).values(), *vars(optimizer).values())
    tables = [each for each in owned if isinstance(each, nn.hooks.HookTable)]
    lists = []
    for tensor in (module.weight, y):
        extra = lucid.autograd.graph.get_gradient_edge(tensor).node.extra
        lists += (
            [] if extra is None else [*extra.tensor_hooks.values(), extra.prehooks, extra.posthooks, extra.accumulated]
        )
    everywhere = [*vars(global_tables).values(), stepping.pre_hooks, stepping.post_hooks]
    return sum(map(len, (*tables, *lists, *everywhere)))


@pytest.mark.parametrize("kind", REGISTRATIONS)
def test_every_kind_is_taken_off(kind):
    module = layer()
    owners = module, module(lucid.ones(1, 2, device=DEVICE)), lucid.optim.SGD(module.parameters())
    before = hooks_on(*owners)
    with hooks.scope() as inside:
        handle = REGISTRATIONS[kind](*owners)
        assert hooks_on(*owners) > before
        assert len(inside) >= 1
    assert hooks_on(*owners) == before
    assert len(inside) == 0
    handle.deregister() if kind == "Hook" else handle.remove()  # once more does nothing


def test_others_stay():
    """Hooks of before, those that another one's handle took off meanwhile, and the order of the rest."""
    module, fired = layer(), []
    module.register_forward_hook(lambda *_: fired.append("first"))
    with hooks.scope() as outer:
        gone = module.register_forward_hook(lambda *_: fired.append("gone"))
        module.register_forward_hook(lambda *_: fired.append("outer"))
        with hooks.scope() as inner:
            module.register_forward_hook(lambda *_: fired.append("inner"))
            assert (len(outer), len(inner)) == (3, 1)
            gone.remove()
            assert (len(outer), len(inner)) == (2, 1)
            module(lucid.ones(1, 2, device=DEVICE))
        module.register_forward_hook(lambda *_: fired.append("late"))
        module(lucid.ones(1, 2, device=DEVICE))
    module(lucid.ones(1, 2, device=DEVICE))
    assert fired == ["first", "outer", "inner", "first", "outer", "late", "first"]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_one_of_several_goes(which):
    """By its handle, by its row, and by its scope: the others stay, with their registrations."""
    for how in ("handle", "row", "scope"):
        weight, fired, handles = layer().weight, [], []
        for number in range(3):
            with hooks.scope() if how == "scope" and number == which else hooks.HookGroup():
                handles.append(weight.register_hook(lambda grad, number=number: fired.append(number)))
                rows = list(hooks.table(weight))
        if how == "handle":
            handles[which].remove()
        elif how == "row":
            rows[which].remove()
        weight.sum().backward()
        assert fired == [number for number in range(3) if number != which]
        assert len(hooks.table(weight)) == 2


def test_an_exception_takes_them_off_too():
    module = layer()
    with pytest.raises(KeyError, match="lost"), hooks.scope():
        module.register_forward_hook(keep)
        raise KeyError("lost")
    assert not module._forward_hooks


def test_hooks_that_forward_registers():
    """What a hook registers while the model runs is in the scope in which the model runs."""
    module = layer()
    module.register_forward_hook(lambda module, args, output: output.register_hook(keep) and None)
    with hooks.scope() as inside:
        y = module(lucid.ones(1, 2, device=DEVICE))
        assert len(inside) == 1
    assert lucid.autograd.graph.get_gradient_edge(y).node.extra.tensor_hooks == {0: []}


def test_threads_and_tasks():
    """What another thread registers stays, and of two tasks that take turns each has its own."""
    module = layer()
    with hooks.scope() as inside:
        in_threads(lambda: module.register_forward_hook(keep))
        assert len(inside) == 0
    assert len(module._forward_hooks) == 1

    async def task(own):
        with hooks.scope() as inside:
            own.register_forward_hook(keep)
            await asyncio.sleep(0)
            own.register_forward_pre_hook(keep)
            await asyncio.sleep(0)
            counts = len(inside)
        return counts, len(own._forward_hooks) + len(own._forward_pre_hooks)

    async def both():
        return await asyncio.gather(task(layer()), task(layer()))

    assert asyncio.run(both()) == [(2, 0), (2, 0)]


def test_blocks_of_one_object():
    """One that is open is refused a second time, and taken again after its end."""
    scope, module = hooks.scope(), layer()
    with scope:
        with pytest.raises(HookError, match="open already"), scope:
            pass
        module.register_forward_hook(keep)
    with scope:
        module.register_forward_hook(keep)
    assert not module._forward_hooks


def test_a_scope_is_of_one_thread():
    """Its end would take off the hooks of both; a group, whose blocks take nothing off, may be open in several."""
    module = layer()

    def enter(block):
        with block:
            module.register_forward_hook(keep)

    with ThreadPoolExecutor(1) as pool, hooks.scope() as scope, hooks.HookGroup() as group:
        with pytest.raises(HookError, match="this scope is open already"):
            pool.submit(enter, scope).result()
        assert not module._forward_hooks
        pool.submit(enter, group).result()
        assert len(module._forward_hooks) == 1
    assert len(module._forward_hooks) == 1
    enter(scope)
    assert len(module._forward_hooks) == 1


@pytest.mark.parametrize("kind", [hooks.HookGroup, hooks.scope])
def test_blocks_that_end_in_another_order(kind):
    """One that ends before those inside of it takes its own hooks along, and the others still get theirs."""
    outer, inner, module = kind(), kind(), layer()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    module.register_forward_hook(keep)
    assert (len(outer), len(inner)) == (0, 1)
    inner.__exit__(None, None, None)
    module.register_forward_hook(keep)
    assert len(module._forward_hooks) == (1 if kind is hooks.scope else 2)
    assert len(inner) == (0 if kind is hooks.scope else 1)


def test_groups_last():
    """They give what they hold in the order of registration, wherever it hangs."""
    group, module = hooks.HookGroup(), layer()
    for _ in range(2):
        with group:
            module.register_forward_hook(keep, prepend=True)
            module.weight.register_hook(keep)
    assert len(group) == 4
    assert [registration.place().rpartition(":")[0] for registration in group] == [__file__] * 4
    assert [registration.time for registration in group] == sorted(registration.time for registration in group)
    assert [registration.key >= 0 for registration in group] == [True, False, True, False]
    group.remove()
    assert len(group) == 0
    assert not module._forward_hooks


def test_nothing_is_kept_alive():
    """Neither a scope nor a group holds a module, a tensor, or a hook; what is gone is in it no more."""

    class Callable:
        def __call__(self, *_):
            pass

    with hooks.scope() as inside:
        module, hook = layer(), Callable()
        y = module(lucid.ones(1, 2, device=DEVICE))
        module.register_forward_hook(hook)
        y.register_hook(hook)
        alive = [weakref.ref(each) for each in (module, y, hook)]
        assert len(inside) == 2
        del module, y, hook
        gc.collect()
        assert [each() for each in alive] == [None] * 3
        assert len(inside) == 0


def test_hooks_that_come_and_go_do_not_grow():
    module = layer()
    with hooks.scope() as inside:
        for _ in range(1000):
            module.register_forward_hook(keep).remove()
            module.weight.register_hook(keep).remove()
        assert len(inside) == 0
    extra = lucid.autograd.graph.get_gradient_edge(module.weight).node.extra
    assert extra.tensor_hooks == {0: []}
    assert not module._forward_hooks.registrations


def test_a_group_forgets_what_is_gone():
    """Hooks that come and go in a group leave nothing in it, and those that stay keep their order."""
    module, group = layer(), hooks.HookGroup()
    with group:
        stay = [module.register_forward_hook(keep)]
        for _ in range(1000):
            module.register_forward_hook(keep).remove()
        stay.append(module.register_forward_hook(keep))
    assert [registration.key for registration in group] == [handle.id for handle in stay]
    assert len(group._registrations._entries) < 200


def test_a_group_that_is_open_here():
    """It is not entered a second time, and goes on as it was."""
    group, layer = hooks.HookGroup(), nn.Linear(2, 2, device=DEVICE)
    with group:
        with pytest.raises(HookError, match="this HookGroup is open already"), group:
            pass
        layer.register_forward_hook(lambda *_: None)
    assert len(group) == 1
