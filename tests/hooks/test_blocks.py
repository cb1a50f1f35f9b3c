"""What holds for the block of every tool: it takes off its own hooks, and nothing of it stays anywhere else."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import lucid
from lucid import hooks, nn
from lucid.errors import HookError
from lucid.hooks.scoping import tool
from lucid.hooks.watching import watching
from tests.device import DEVICE
from tests.pieces import in_threads

MAKE = {
    "capture": lambda model: hooks.capture(model, what=("input", "kwargs", "output", "grad"), taps="*"),
    "edit": lambda model: hooks.edit(
        model,
        {"0": lambda output: output * 2},
        inputs={"1": lambda args: args[0] * 2},
        grads={"2": lambda grad: grad * 2},
        parameters={"**.bias": lambda grad: grad * 2},
        taps={"*": lambda value: value * 2},
    ),
    "guard": lambda model: hooks.guard(model, ops=True),
    "trace": lambda model: hooks.trace(model, ops=True),
}


def net():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).to(DEVICE)


def inputs():
    return lucid.ones(2, 3, device=DEVICE)


def users(module, args, output):
    """Stand for a hook of the program's own."""


def test_every_tool_is_here():
    assert {name for name in hooks.__all__ if issubclass(type(getattr(hooks, name)), type)
            and issubclass(getattr(hooks, name), tool)} == set(MAKE)  # fmt: skip


@pytest.mark.parametrize("name", MAKE)
def test_what_the_program_registers_inside_stays(name):
    model, x = net(), inputs()
    with MAKE[name](model):
        handle = model.register_forward_hook(users)
        steps = hooks.step_in_backward(model, lambda p: lucid.optim.SGD(p, lr=0.1))
        gradients = model[0].weight.register_hook(lambda grad: grad * 0)
        output = model(x)
        late = output.register_hook(lambda grad: grad)
    assert len(hooks.table(model)) == 2 + len(steps.optimizers)
    assert len(hooks.table(output).filter(kind="tensor hook")) == 2
    for each in (handle, steps, gradients, late):
        each.remove()
    assert len(hooks.table(model, output)) == 0


@pytest.mark.parametrize("name", MAKE)
def test_a_table_says_where_the_block_stands(name):
    """Also of hooks of gradients, which come while the model runs; the program's own have places of their own."""
    model, x = net(), inputs()
    with MAKE[name](model):
        output = model(x)
        own = model.register_forward_hook(users)
        rows = [*hooks.table(model, output)]
    block = {row.registered for row in rows if row.name != own.name and not row.name.startswith("users")}
    (mine,) = [row.registered for row in rows if row.name.startswith("users")]
    assert len(block) == 1
    (place,) = block
    file, _, line = place.rpartition(":")
    assert file == __file__
    assert mine == f"{file}:{int(line) + 2}"


@pytest.mark.parametrize("name", MAKE)
@pytest.mark.parametrize("way", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_go_without_the_tool(name, way):
    """With the program's own hooks they go, and they compute what the model computes outside of the block."""
    model, x = net(), inputs()
    model[1].register_forward_hook(users)
    with MAKE[name](model):
        copied = way(model)
    assert [(row.kind, row.name.partition(" ")[0]) for row in hooks.table(copied)] == [("forward hook", "users")]
    assert copied[1]._active_hooks.keys() == {"_forward_hooks"}  # no mark of another hook
    assert not copied[0]._active_hooks
    assert copied(x).tolist() == model(x).tolist()


@pytest.mark.parametrize("make", [MAKE["capture"], MAKE["edit"], hooks.guard])
def test_a_block_that_ends_on_another_thread(make):
    """As that of a generator that is collected there: what hangs on modules is off, and taps are not listened to."""

    def check():
        model, x = net(), inputs()
        expected = model(x).tolist()
        block = make(model)
        found = block.__enter__()
        in_threads(lambda: block.__exit__(None, None, None))
        assert len(hooks.table(model)) == 0
        before = len(found) if isinstance(found, hooks.Captured) else None
        assert model(hooks.tap("input", x)).tolist() == expected
        assert before is None or len(found) == before

    # in a thread of its own, as what the block has left of the thread's modes goes with that
    with ThreadPoolExecutor(1) as pool:
        pool.submit(check).result()


@pytest.mark.parametrize("name", MAKE)
def test_a_block_is_open_once(name):
    model = net()
    block = MAKE[name](model)
    with block:
        count = len(hooks.table(model))
        with pytest.raises(HookError, match="open already"), block:
            pass
        assert len(hooks.table(model)) == count
    assert len(hooks.table(model)) == 0
    with block:
        assert len(hooks.table(model)) == count


@pytest.mark.parametrize("name", ["capture", "trace"])
def test_what_was_found_keeps_no_model(name):
    model = net()
    module = weakref.ref(model[0])
    with MAKE[name](model) as found:
        model(inputs()).sum().backward()
    del model
    gc.collect()
    assert module() is None
    assert len(str(found)) > 0


class Calls(watching):
    """Writes down calls."""

    def __init__(self, model):
        super().__init__(dict(model.named_modules()))
        self.seen = []

    def _call_begins(self, path, module):
        self.seen.append(("begins", path, self._innermost()))
        return path

    def _call_returns(self, call, output):
        self.seen.append(("returns", call))

    def _call_ends(self, call):
        self.seen.append(("ends", call))


class Raising(nn.Module):
    """Raises what it is told to."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x):
        raise self.error


class Trying(nn.Module):
    """Goes on after an error inside of it."""

    def __init__(self, error):
        super().__init__()
        self.inner = Raising(error)
        self.other = nn.Identity()

    def forward(self, x):
        try:
            return self.inner(x)
        except BaseException:  # noqa: BLE001 - any
            return self.other(x)


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt()])
def test_calls_that_raise_are_over(error):
    model = Trying(error)
    with Calls(model) as calls:
        model(inputs())
    begun = [seen[1:] for seen in calls.seen if seen[0] == "begins"]
    assert sorted(seen[1] for seen in calls.seen if seen[0] == "ends") == ["", "inner", "other"]
    assert [seen[1] for seen in calls.seen if seen[0] == "returns"] == ["other", ""]
    assert begun[:2] == [("", None), ("inner", "")]
    if isinstance(error, Exception):
        assert begun[2] == ("other", "")
    assert not calls._calls


def test_a_call_that_raised_is_not_around_later_ones():
    model = nn.Sequential(Raising(ValueError("of the test")), nn.Identity())
    with Calls(model) as calls:
        with pytest.raises(ValueError, match="of the test"):
            model(inputs())
        assert not calls._calls
        model[1](inputs())
        # one that the early end of a capture has ended, too
        with hooks.capture(model, "1", stop_at="1"):
            nn.Sequential(model[1])(inputs())
        assert not calls._calls
    assert [seen for seen in calls.seen if seen[0] == "begins"][2] == ("begins", "1", None)


def test_calls_of_other_threads_are_not_seen():
    model = net()
    with Calls(model) as calls:
        in_threads(lambda: model(inputs()))
        assert not calls.seen
        model(inputs())
    assert [seen[1] for seen in calls.seen if seen[0] == "returns"] == ["0", "1", "2", ""]
