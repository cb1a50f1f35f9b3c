"""What a step has found is used by the next one as long as it is true, and by none after it."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.optim.base import forms
from tests.device import DEVICE
from tests.optimizers import COUNTED_THERE, NAMES, USUAL

SHAPES = ((3, 2), (4,), (), (5, 2))
each_optimizer = pytest.mark.parametrize("name", NAMES)
COUNTED = [name for name in NAMES if getattr(optim, name).scalars]


class Training:
    """Parameters in two groups, and an optimizer that has taken steps with all gradients."""

    def __init__(self, name, rng, steps=3, **settings):
        self.rng = rng
        self.params = [
            lucid.tensor(rng.standard_normal(shape), dtype=lucid.float32, device=DEVICE, requires_grad=True)
            for shape in SHAPES
        ]
        kind = getattr(optim, name)
        groups = [{"params": self.params[:3]}, {"params": self.params[3:], "lr": 0.03}]
        self.optimizer = kind(groups, **{"lr": 0.1, **USUAL[name], **settings})
        for _ in range(steps):
            self.step()

    def give(self, without=()):
        """Give each parameter a gradient but those numbers."""
        for number, param in enumerate(self.params):
            grad = lucid.tensor(self.rng.standard_normal(tuple(param.shape)), dtype=param.dtype, device=param.device)
            param.grad = None if number in without else grad

    def step(self, without=()):
        """Take a step with new gradients."""
        self.give(without)
        self.optimizer.step()

    def values(self):
        """Return the bytes of parameters and state."""
        state = self.optimizer.state
        return [
            (
                param.detach().cpu().numpy().tobytes(),
                {key: value.cpu().numpy().tobytes() for key, value in (state.get(param) or {}).items()},
            )
            for param in self.params
        ]

    def steps_as(self, twin):
        """Take a step, and fail unless a twin that takes one has the same parameters and state."""
        self.optimizer.step()
        twin.optimizer.step()
        assert self.values() == twin.values()

    def versions(self):
        """Return how often each parameter was changed in place."""
        return [param._version for param in self.params]


@pytest.fixture
def looks(monkeypatch):
    """Return a list that gets an entry whenever all parameters of a group are looked at."""
    seen = []
    init = forms.Form.__init__
    monkeypatch.setattr(forms.Form, "__init__", lambda *given: (seen.append(1), init(*given))[1])
    return seen


@each_optimizer
def test_a_settled_step_looks_no_more(name, rng, looks):
    """Steps after the first find all as it was, whatever the gradients and the numbers among the settings."""
    training = Training(name, rng, steps=1)
    looks.clear()
    for rate in (0.1, 0.2, 0.05):
        training.optimizer.param_groups[0]["lr"] = rate
        training.step()
    assert not looks


def first_state(training, number):
    """Return the state of a parameter, and the name of one that is like it."""
    state = training.optimizer.state[training.params[number]]
    return state, next(name for name in state if name not in training.optimizer.scalars)


def replace_state(training):
    """Put another tensor in place of one."""
    state, name = first_state(training, 0)
    state[name] = state[name] * 0.5 + 0.25


def replace_its_data(training):
    """Give a tensor of the state another array."""
    state, name = first_state(training, 1)
    state[name].data = state[name] * 0.5 + 0.25


def replace_entries(training):
    """Put a plain dict in place of one of the state's."""
    state = training.optimizer.state
    state[training.params[0]] = {name: value.clone() for name, value in state[training.params[0]].items()}


def drop_what_a_setting_asks_for(training):
    """Take away state that a setting asks for, which may be missing at any step."""
    state = training.optimizer.state[training.params[1]]
    for name, slot in training.optimizer.slots.items():
        if slot.asked_by:
            state.pop(name, None)


def write_steps(training, number):
    """Write another count in place."""
    for param in training.params[:number]:
        if training.optimizer.scalars:
            training.optimizer.state[param]["step"].fill_(7)


def replace_step(training):
    """Put another count in place of one."""
    if training.optimizer.scalars:
        training.optimizer.state[training.params[1]]["step"] = lucid.tensor(9.0, device="cpu")


def share_step(training):
    """Have two parameters counted by one tensor."""
    if training.optimizer.scalars:
        state = training.optimizer.state
        state[training.params[1]]["step"] = state[training.params[0]]["step"]


def set_data(training):
    """Give a parameter another array."""
    training.params[0].data = training.params[0].detach() * 2 + 1


def load(training):
    """Load the state dict of another training."""
    training.optimizer.load_state_dict(
        Training(type(training.optimizer).__name__, training.rng, 2).optimizer.state_dict()
    )


def lay_otherwise(training):
    """Give a gradient other strides."""
    grad = training.params[0].grad
    training.params[0].grad = grad.T.contiguous().T


def widen(training):
    """Give a parameter, with its gradient and state, another dtype."""
    param = training.params[0]
    grad = param.grad
    param.grad = None
    param.data = param.detach().double()
    param.grad = grad.double()
    training.optimizer.load_state_dict(training.optimizer.state_dict())


def widen_gradient(training):
    """Give a gradient another dtype than its parameter has."""
    training.params[0].grad.data = training.params[0].grad.double()


def one_more(training):
    """Return another parameter, which has a gradient."""
    param = lucid.ones(3, device=DEVICE, requires_grad=True)
    param.grad = lucid.ones(3, device=DEVICE)
    training.params.append(param)
    return param


def lose(*numbers):
    """Return what takes gradients away."""

    def change(training):
        for number in numbers:
            training.params[number].grad = None

    return change


def set_flags(training):
    """Change settings that are no numbers."""
    for setting, value in (("maximize", True), ("amsgrad", False), ("centered", False), ("nesterov", True)):
        if setting in training.optimizer.param_groups[0]:
            training.optimizer.param_groups[0][setting] = value


CHANGES = {
    "state replaced": (replace_state, True),
    "its data replaced": (replace_its_data, True),
    "entries replaced": (replace_entries, True),
    "state of a setting gone": (drop_what_a_setting_asks_for, None),
    "a count written": (lambda training: write_steps(training, 1), None),
    "all counts written": (lambda training: write_steps(training, 4), False),
    "a count replaced": (replace_step, None),
    "a count shared": (share_step, None),
    "data set": (set_data, True),
    "data written": (lambda training: training.params[0].data.mul_(0.5), False),
    "loaded": (load, True),
    "gradient laid otherwise": (lay_otherwise, None),
    "widened": (widen, True),
    "gradient widened": (widen_gradient, True),
    "group added": (lambda training: training.optimizer.add_param_group({"params": [one_more(training)]}), True),
    "appended": (lambda training: training.optimizer.param_groups[0]["params"].append(one_more(training)), True),
    "reversed": (lambda training: training.optimizer.param_groups[0]["params"].reverse(), True),
    "a gradient gone": (lose(1), True),
    "a group without": (lose(3), False),
    "all gone": (lose(0, 1, 2, 3), False),
    "flags": (set_flags, None),
    "another optimizer": (lambda training: optim.Adam(training.params).step(), False),
    "state cleared": (lambda training: training.optimizer.state.clear(), True),
}


@each_optimizer
@pytest.mark.parametrize(("change", "looked"), CHANGES.values(), ids=CHANGES)
def test_what_has_changed_is_seen(name, change, looked, rng, looks):
    """The step after a change, and those behind it, are those of a copy, which knows nothing of the steps before."""
    training = Training(name, rng)
    training.give()
    change(training)
    twin = copy.deepcopy(training)
    assert all(form is None for form in vars(twin.optimizer).get("_forms", {}).values())
    looks.clear()
    training.optimizer.step()
    if looked is not None:
        assert bool(looks) is looked
    twin.optimizer.step()
    assert training.values() == twin.values()
    for without in ((), (0,), (), (2, 3), ()):
        training.give(without)
        for ours, theirs in zip(training.params, twin.params, strict=True):
            theirs.grad = None if ours.grad is None else ours.grad.clone()
        training.steps_as(twin)


@pytest.mark.gpu
@each_optimizer
def test_parameters_that_move_to_another_device(name, rng):
    """Those whose state goes along are changed there, and back here."""
    training = Training(name, rng)
    for device in ("cpu", "cuda", "cpu"):
        for param in training.params:
            param.grad = None
            param.data = param.detach().to(device)
        training.optimizer.load_state_dict(training.optimizer.state_dict())
        for _ in range(2):
            training.give()
            twin = copy.deepcopy(training)
            training.steps_as(twin)


# ---- counts ----


@pytest.mark.parametrize("name", COUNTED)
def test_each_parameter_has_a_count_of_its_own(name, rng):
    """It says how many steps have changed the parameter, whichever had gradients: a float32 number of no dimension."""
    training = Training(name, rng, steps=0)
    expected = np.zeros(len(SHAPES))
    held = {}
    for turn in range(12):
        without = np.flatnonzero(rng.random(len(SHAPES)) < 0.4)
        training.step(without)
        expected += ~np.isin(np.arange(len(SHAPES)), without)
        for number, param in enumerate(training.params):
            step = training.optimizer.state[param].get("step")
            if step is None:
                assert expected[number] == 0
                continue
            assert (step.dtype, step.shape, step.device.type) == (lucid.float32, (), "cpu")
            assert step.item() == expected[number]
            # what shows a count once does so from then on
            assert held.setdefault((number, turn // 4), step.numpy()[...]) == expected[number]
            assert all(view == expected[number] for (other, _), view in held.items() if other == number)


@pytest.mark.parametrize("name", COUNTED)
def test_a_count_in_memory_of_the_users(name, rng):
    """A count that shares its memory with an array counts there."""
    training = Training(name, rng)
    mine = np.array(20, np.float32)
    training.optimizer.state[training.params[1]]["step"] = lucid.from_numpy(mine)
    training.step()
    assert mine == 21
    mine[...] = 40
    training.step()
    assert mine == 41
    assert training.optimizer.state[training.params[1]]["step"].item() == 41


@pytest.mark.parametrize("name", COUNTED)
def test_counts_are_saved_as_they_are(name, rng, tmp_path):
    """A state dict that was pickled, copied or saved has each count alone, and goes on as the original does."""
    training = Training(name, rng)
    training.step(without=(1,))
    saved = training.optimizer.state_dict()
    counts = [entries["step"].item() for entries in saved["state"].values()]
    assert counts == [4, 3, 4, 4]
    lucid.save(saved, tmp_path / "saved")
    buffer = io.BytesIO()
    lucid.save(saved, buffer)
    for loaded in (
        lucid.load(tmp_path / "saved"),
        lucid.load(io.BytesIO(buffer.getvalue())),
        pickle.loads(pickle.dumps(saved)),
        copy.deepcopy(saved),
    ):
        assert [entries["step"].item() for entries in loaded["state"].values()] == counts
        twin = copy.deepcopy(training)
        twin.optimizer.load_state_dict(loaded)
        twin.give()
        other = copy.deepcopy((twin.params, training.optimizer.state_dict()))
        twin.optimizer.step()
        assert [twin.optimizer.state[param]["step"].item() for param in twin.params] == [5, 4, 5, 5]
        assert [entries["step"].item() for entries in other[1]["state"].values()] == counts


# ---- what is kept ----


@each_optimizer
def test_a_load_frees_the_state_before_it(name, rng):
    """Old and new state do not lie side by side until the next step."""
    training = Training(name, rng)
    saved = copy.deepcopy(training.optimizer.state_dict())
    state = training.optimizer.state
    old = [weakref.ref(tensor.array) for param in training.params for tensor in state.get(param, {}).values()]
    del state
    training.optimizer.load_state_dict(saved)
    gc.collect()
    assert not any(array() is not None for array in old)


@each_optimizer
def test_what_was_found_keeps_no_gradients(name, rng):
    """They are free once the parameters have others, and arrays that were replaced after the next step."""
    training = Training(name, rng)
    grads = [weakref.ref(param.grad.array) for param in training.params]
    training.optimizer.zero_grad()
    gc.collect()
    assert not any(grad() is not None for grad in grads)
    old = weakref.ref(training.params[0].array)
    training.params[0].data = lucid.ones(3, 2, device=DEVICE)
    training.step()
    gc.collect()
    assert old() is None
    # nor does a group that is changed no more keep its own
    old = weakref.ref(training.params[3].array)
    training.step(without=(3,))
    training.params[3].data = lucid.ones(5, 2, device=DEVICE)
    gc.collect()
    assert old() is None


@each_optimizer
def test_an_update_of_the_users_own(name, rng):
    """A subclass may change gradients, and hand on some of the parameters at a time: what it hands on is looked at."""

    def update(self, params, group):
        for param in params:
            param.grad = param.grad * 0.5
        for start in range(len(params)):
            super(kind, self).update(params[start : start + 1], group)

    kind = type(name, (getattr(optim, name),), {"update": update})
    training = Training(name, rng, steps=0)
    settings = {"lr": 0.1, **USUAL[name]}
    twin = copy.deepcopy(training)
    twin.optimizer = kind([{"params": twin.params[:3]}, {"params": twin.params[3:], "lr": 0.03}], **settings)
    for _ in range(3):
        training.give()
        for ours, theirs in zip(training.params, twin.params, strict=True):
            theirs.grad = ours.grad.clone()
            ours.grad = ours.grad * 0.5
        training.steps_as(twin)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in NAMES if COUNTED_THERE[name]])
def test_counts_that_go_to_the_device_and_back(name, rng):
    """The setting says where each step counts, and the counts go on."""
    training = Training(name, rng)
    for param in training.params:
        param.grad = None
        param.data = param.detach().cuda()
    training.optimizer.load_state_dict(training.optimizer.state_dict())
    (setting,) = COUNTED_THERE[name]
    for turn, there in enumerate((True, True, False, False, True)):
        for group in training.optimizer.param_groups:
            group[setting] = there
        training.step()
        steps = [training.optimizer.state[param]["step"] for param in training.params]
        assert [(step.item(), step.is_cuda) for step in steps] == [(turn + 4, there)] * len(steps)


@each_optimizer
def test_what_was_found_keeps_no_tensors(name, rng):
    """Tensors of a state that was replaced are gone at once, by which captured steps learn of it."""
    training = Training(name, rng)
    old = [weakref.ref(value) for state in training.optimizer.state.values() for value in state.values()]
    training.optimizer.load_state_dict(training.optimizer.state_dict())
    gc.collect()
    assert old
    assert not any(tensor() is not None for tensor in old)


def in_both_groups(training):
    """Give the second group a parameter of the first."""
    training.optimizer.param_groups[1]["params"].append(training.params[0])


def count_of_both_groups(training):
    """Let a parameter of each group have the same count."""
    first, *_, last = (training.optimizer.state.get(param, {}) for param in training.params)
    if "step" in first:
        last["step"] = first["step"]


@each_optimizer
@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("share", [in_both_groups, count_of_both_groups])
def test_groups_that_share_something_are_stepped_in_turn(name, share, steps, rng):
    """What the first group has changed is what the second begins with, as if each were stepped on its own."""
    if share is count_of_both_groups and not steps:
        return
    training = Training(name, rng, steps=steps)
    share(training)
    alone = copy.deepcopy(training)
    for _ in range(3):
        training.give()
        for param, same in zip(training.params, alone.params, strict=True):
            same.grad = param.grad.clone()
        training.optimizer.step()
        groups = alone.optimizer.param_groups
        for group in groups:
            alone.optimizer.param_groups = [group]
            alone.optimizer.step()
        alone.optimizer.param_groups = groups
        assert training.values() == alone.values()
