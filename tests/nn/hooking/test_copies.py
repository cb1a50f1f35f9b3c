"""Shallow copies of hooked modules, copies and unions of hook tables, and what copies and pickles leave behind."""

from __future__ import annotations

import copy
import functools
import gc
import pickle
from collections import OrderedDict

import pytest

import lucid
from lucid import hooks, nn
from lucid.autograd.hooks.owning import TableAttribute
from lucid.nn.hooks import HookTable

contract = pytest.mark.contract

TABLES = [name for name in dir(nn.Module) if isinstance(getattr(nn.Module, name), TableAttribute)]


def add_one(module, args, output):
    """Add one: a hook that can be pickled."""
    return output + 1


def with_attributes_of(module):
    """Return a module that is given a copy of another's dictionary."""
    made = type(module).__new__(type(module))
    made.__dict__ = module.__dict__.copy()
    return made


def with_updated_attributes(module):
    """Return a module whose own dictionary takes in all of another's."""
    made = type(module)()
    vars(made).update(vars(module))
    return made


SHALLOW = [copy.copy, with_attributes_of, with_updated_attributes]
KINDS = {
    "_forward_hooks": "register_forward_hook",
    "_forward_pre_hooks": "register_forward_pre_hook",
    "_backward_hooks": "register_full_backward_hook",
    "_backward_pre_hooks": "register_full_backward_pre_hook",
    "_output_hooks": "register_backward_hook",
    "_state_dict_hooks": "register_state_dict_hook",
    "_load_state_dict_pre_hooks": "register_load_state_dict_pre_hook",
}


def calls_of(module, fired):
    """Return what a call of a module, its backward, and saving and loading fire."""
    fired.clear()
    module(lucid.ones(1, requires_grad=True)).sum().backward()
    module.load_state_dict(module.state_dict())
    return sorted(fired)


def noting(fired, name, count):
    """Return a hook of `count` arguments that notes its name."""
    return {
        2: lambda module, a: fired.append(name),
        3: lambda module, a, b: fired.append(name),
        4: lambda module, a, b, c: fired.append(name),
    }[count]


ARGUMENTS = {
    "_forward_pre_hooks": 2, "_backward_pre_hooks": 2, "_output_hooks": 2, "_state_dict_hooks": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("copied", "replaced_on"),
    # that its dictionary was read by `vars` an original cannot know
    [*((copied, "copy") for copied in SHALLOW), *((copied, "original") for copied in SHALLOW[:2])],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_shallow_copy_has_the_tables_of_its_original(kind, copied, replaced_on):
    """What is registered on one fires on both, until one is given another table: PyTorch's rule."""
    for before in (True, False):  # whether there are tables before there is a copy
        fired = []
        first = nn.Identity()

        def add(module, name, fired=fired):
            return getattr(module, KINDS[kind])(noting(fired, name, ARGUMENTS.get(kind, 3)))

        if before:
            add(first, "before")
        twin = copied(first)
        both = ["before"] if before else []
        assert calls_of(twin, fired) == calls_of(first, fired) == both
        add(first, "of the first")
        add(twin, "of the twin")
        both = sorted([*both, "of the first", "of the twin"])
        assert calls_of(first, fired) == calls_of(twin, fired) == both
        one, other = (twin, first) if replaced_on == "copy" else (first, twin)
        kept = getattr(one, kind)
        setattr(one, kind, OrderedDict())
        assert (calls_of(one, fired), calls_of(other, fired)) == ([], both)
        handle = add(one, "alone")
        assert (calls_of(one, fired), calls_of(other, fired)) == (["alone"], both)
        add(other, "alone too")
        both = sorted([*both, "alone too"])
        assert (calls_of(one, fired), calls_of(other, fired)) == (["alone"], both)
        handle.remove()
        assert (calls_of(one, fired), calls_of(other, fired)) == ([], both)
        setattr(one, kind, kept)
        assert calls_of(one, fired) == calls_of(other, fired) == both
        del other, first, twin
        gc.collect()
        assert calls_of(one, fired) == both
        kept.clear()
        assert calls_of(one, fired) == []


@pytest.mark.parametrize("copied", SHALLOW)
def test_marks_that_one_of_two_modules_replaces(copied):
    """A hook is called with keyword arguments where the table of these says so, and as usual where it does not."""
    given = []
    first = nn.Identity()
    first.register_forward_hook(lambda *args: given.append(len(args)), with_kwargs=True)
    twin = copied(first)
    twin._forward_hooks_with_kwargs = OrderedDict()
    for _ in range(2):
        first(lucid.ones(1))
        twin(lucid.ones(1))
    assert given == [4, 3, 4, 3]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
@pytest.mark.parametrize("copied", SHALLOW)
def test_deep_copies_of_shallow_ones(copied, again):
    """They are modules for themselves, and those that are copied together share their tables as the originals do."""
    first = nn.Identity()
    first.register_forward_hook(add_one)
    twin = copied(first)
    twin._forward_pre_hooks = OrderedDict()
    alone = again(twin)
    alone._forward_hooks = OrderedDict()
    assert [int(each(lucid.zeros(1)).item()) for each in (first, twin, alone)] == [1, 1, 0]
    one, other = again((first, twin))
    one.register_forward_hook(add_one)
    assert [int(each(lucid.zeros(1)).item()) for each in (one, other, twin)] == [2, 2, 1]
    other._forward_hooks.clear()
    assert [int(each(lucid.zeros(1)).item()) for each in (one, other, twin)] == [0, 0, 1]


def test_a_table_that_serves_two_modules_by_assignment():
    """The hooks are those of both, and each may go another way."""
    first, second = nn.Identity(), nn.Identity()
    first.register_forward_hook(add_one)
    second._forward_hooks = first._forward_hooks
    second.register_forward_hook(add_one)
    assert [int(each(lucid.zeros(1)).item()) for each in (first, second)] == [2, 2]
    first._forward_hooks = {}
    assert [int(each(lucid.zeros(1)).item()) for each in (first, second)] == [0, 2]


def test_a_shallow_copy_counts_its_own_calls():
    """The number of a call is that of the module's own calls."""
    numbers = []
    first = nn.Identity()
    first.register_forward_hook(lambda module, args, output, context: numbers.append(context.call), with_context=True)
    first(lucid.zeros(1))
    twin = copy.copy(first)
    twin(lucid.zeros(1))
    first(lucid.zeros(1))
    assert numbers == [0, 0, 1]


COPIES = {
    "copy.copy": copy.copy,
    "copy": lambda table: table.copy(),
    "union": lambda table: table | {},
    "union with a dictionary": lambda table: {} | table,
    "union with an ordered one": lambda table: OrderedDict() | table,
    "update": lambda table: updated(HookTable(table.kind), table),
    "union in place": lambda table: united(HookTable(table.kind), table),
}


def updated(table, other):
    table.update(other)
    return table


def united(table, other):
    table |= other
    return table


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_of_a_table_calls_its_hooks_as_they_were_registered(copied):
    """In the module's table's place it makes no difference; what is done to it elsewhere changes the module nothing."""
    module, given = nn.Linear(1, 1), []

    def note(*args):
        given.append((len(args), args[-1] if isinstance(args[-1], bool) else ""))

    module.register_forward_hook(note, with_kwargs=True)
    module.register_forward_pre_hook(note)
    module.register_full_backward_hook(lambda module, a, b, c: note(module, a, b, c), with_kwargs=True)
    module.register_full_backward_pre_hook(note)
    module.register_state_dict_hook(note)
    module.register_state_dict_post_hook(lambda module, a, b, c: note(module, a, b, c))
    module.register_load_state_dict_pre_hook(lambda module, a, b: note(module, a, b))
    module.register_load_state_dict_post_hook(lambda module, a, b, c: note(module, a, b, c))

    def all_calls():
        given.clear()
        module(lucid.ones(1, 1, requires_grad=True)).sum().backward()
        module.load_state_dict(module.state_dict())
        return list(given)

    expected = all_calls()
    assert len(expected) == 8
    assert expected[4] == (4, False)  # keep_vars
    tables = {name: getattr(module, name) for name in TABLES}
    for name, table in tables.items():
        other = copied(table)
        assert type(other) is HookTable
        assert other == table
        other.clear()
    assert all_calls() == expected
    for name, table in tables.items():
        setattr(module, name, copied(table))
        assert getattr(module, name) is not table
    assert all_calls() == expected
    found = hooks.table(module)
    assert all(__file__ in row.registered for row in found)
    found.disable()
    assert all_calls() == []
    for name, table in tables.items():
        setattr(module, name, table)
    assert all_calls() == expected


def test_unions_of_tables():
    """Those of both, the right one's where both have a key; the tables themselves stay as they were."""
    module = nn.Identity()
    handle = module.register_forward_hook(add_one)
    table = module._forward_hooks
    assert table | {99999: abs} == OrderedDict({handle.id: add_one, 99999: abs})
    assert {99999: abs} | table == OrderedDict({99999: abs, handle.id: add_one})
    assert table | {handle.id: abs} == {handle.id: abs}
    assert {handle.id: abs} | table == {handle.id: add_one}
    assert table == {handle.id: add_one}
    for wrong in (lambda: table | 3, lambda: 3 | table):
        with pytest.raises(TypeError, match="unsupported operand"):
            wrong()


def test_what_a_block_registers_ends_with_it_in_copies_of_tables_too():
    """A tool's hook that another tool has put back after it had set the table aside goes with its block."""
    module = nn.Identity()
    with hooks.scope():
        module.register_forward_hook(add_one)
        aside = module._forward_hooks.copy()
        module._forward_hooks = OrderedDict()
        assert int(module(lucid.zeros(1)).item()) == 0
        module._forward_hooks = aside
        assert int(module(lucid.zeros(1)).item()) == 1
    assert int(module(lucid.zeros(1)).item()) == 0
    assert not aside


@contract("9.6")
@pytest.mark.parametrize("settings", [{}, {"every_step": True}, {"with_context": True}, {"with_kwargs": True},
    {"every_step": True, "with_context": True, "with_kwargs": True, "always_call": True}], ids="-".join)  # fmt: skip
@pytest.mark.parametrize("resting", [False, True])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_hook_stays_behind_whatever_its_options(settings, resting, again):
    """No copy fires it, and no entry of it is left in any table of the copy."""
    module, fired = nn.Identity(), []
    hook = nn.Hook(posthook=lambda *_: fired.append(1), posthook_kwargs=settings)
    hook.register(module)
    module.register_forward_hook(add_one, **({"every_step": True} if "every_step" in settings else {}))
    if resting:
        hooks.table(module)[0].enabled = False
    copied = again(module)
    assert int(copied(lucid.zeros(1)).item()) == 1
    assert fired == []
    assert {name: len(getattr(copied, name)) for name in TABLES if getattr(copied, name)} == {"_forward_hooks": 1}
    module(lucid.zeros(1))
    assert len(fired) == (not resting)


@contract("8.3")
@pytest.mark.parametrize("settings", [{"every_step": True}, {"with_context": True}, {}], ids="-".join)
@pytest.mark.parametrize("partial", [False, True])
def test_a_hook_that_cannot_be_pickled_is_named_whatever_its_options(settings, partial):
    module = nn.Identity()

    def local(*_):
        """Have no name by which it could be imported."""

    module.register_forward_hook(functools.partial(local) if partial else local, **settings)
    with pytest.raises(pickle.PicklingError, match=r"<locals>.local .*in _forward_hooks"):
        pickle.dumps(module)
