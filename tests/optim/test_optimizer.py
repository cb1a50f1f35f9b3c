"""Optimizer: groups, state dicts, hooks, and that nothing changes where something is wrong."""

from __future__ import annotations

import copy
import gc
import inspect
import json
import pickle
import types
import warnings
import weakref

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.errors import HookError, HookTypeError, ShapeError, StateDictError
from lucid.optim.optimizer import required
from tests import optimizers
from tests.pieces import no_collections, raising

SETTINGS = {name: {"lr": 0.1, **settings} for name, settings in optimizers.USUAL.items()}
each_optimizer = pytest.mark.parametrize("name", SETTINGS)


def parameters(seed=0, shapes=((3, 2), (4,), ())):
    random = np.random.default_rng(seed)
    return [lucid.tensor(random.standard_normal(shape), requires_grad=True) for shape in shapes]


def fill(params, seed):
    random = np.random.default_rng(seed)
    for param in params:
        param.grad = lucid.tensor(random.standard_normal(param.shape), dtype=param.dtype)


def make(name, seed=0, steps=2):
    """Return (parameters, optimiser) after a few steps, the last parameter in a group of its own."""
    params = parameters(seed)
    optimizer = getattr(optim, name)([{"params": params[:2]}, {"params": params[2], "lr": 0.01}], **SETTINGS[name])
    for step in range(steps):
        fill(params, step)
        optimizer.step()
    return params, optimizer


def taken(name, **settings):
    """Return those of the settings that an optimizer has."""
    return {key: value for key, value in settings.items() if key in getattr(optim, name).ranges}


def picture(params, optimizer):
    """Return all values, settings and state, as plain data."""
    return copy.deepcopy(
        (
            [param.tolist() for param in params],
            [{**group, "params": [id(param) for param in group["params"]]} for group in optimizer.param_groups],
            [{key: value.tolist() for key, value in optimizer.state[param].items()} for param in params],
        )
    )


# ---- the step ----


@each_optimizer
def test_a_step_counts_as_an_in_place_change(name):
    """Backward through a value that a step has overwritten is an error, as after any in-place change."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    x.grad = lucid.tensor([0.5, -1.5])
    getattr(optim, name)([x], **SETTINGS[name]).step()
    with pytest.raises(RuntimeError, match="version"):
        loss.backward()


@each_optimizer
def test_a_step_changes_neither_gradients_nor_what_has_none(name):
    """Gradients are only read, and a parameter without one keeps its value and gets no state."""
    params = parameters()
    optimizer = getattr(optim, name)(params, **{**SETTINGS[name], **taken(name, weight_decay=0.1, maximize=True)})
    fill(params, 1)
    grads = [param.grad.tolist() for param in params]
    params[1].grad = None
    before, state = params[1].tolist(), str(optimizer.state.get(params[1]))
    optimizer.step()
    assert params[1].tolist() == before
    assert str(optimizer.state.get(params[1])) == state
    assert (params[1] in optimizer.state) is (name == "Adagrad")
    assert params[0].grad.tolist() == grads[0]
    assert params[2].grad.tolist() == grads[2]


@each_optimizer
@pytest.mark.parametrize("layout", ["transposed", "strided", "broadcast gradient"])
def test_layout_does_not_matter(name, layout):
    """A parameter or gradient of any strides gets the same step, in place, in its own memory."""
    random = np.random.default_rng(5)
    start, grad = random.standard_normal((2, 400, 300))
    if layout == "broadcast gradient":
        grad = np.broadcast_to(grad[:1], grad.shape)
    memory = {"transposed": start.T.copy().T, "strided": np.repeat(start, 2, 1)[:, ::2]}.get(layout, start.copy())
    plain, odd = lucid.tensor(start), lucid.from_numpy(memory)
    plain.grad, odd.grad = lucid.tensor(grad.copy()), lucid.from_numpy(grad)
    for param in (plain, odd):
        getattr(optim, name)([param], **SETTINGS[name]).step()
    assert np.array_equal(memory, plain.cpu().numpy())
    assert not np.array_equal(memory, start)


@pytest.mark.parametrize(("name", "settings"), optimizers.SETTINGS.values(), ids=optimizers.SETTINGS)
def test_overflow_is_silent(name, settings):
    """A step on numbers whose squares, sums and products overflow warns of nothing, like arithmetic of tensors."""
    huge = np.float32([3e38, -3e38, 1e-45, np.inf])
    with pytest.warns(RuntimeWarning, match="overflow"):
        huge * np.float32(1e30)
    values, grads = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(huge, huge))
    x = lucid.tensor(values)
    optimizer = getattr(optim, name)([x], **{**settings, "lr": 1e30})
    for sign in (1, -1):
        x.grad = lucid.tensor(sign * grads)
        optimizer.step()


def test_a_closure_is_called_once_with_gradients_on():
    """`step(closure)` returns the closure's loss, also where gradients are off around it."""
    x = lucid.tensor([3.0], requires_grad=True)
    optimizer = optim.SGD([x], lr=0.25)
    calls = []

    def closure():
        calls.append(lucid.is_grad_enabled())
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with lucid.no_grad():
        loss = optimizer.step(closure)
    assert (loss.item(), calls, x.tolist()) == (9.0, [True], [1.5])


# Learning rates at first, of those that go slower than others.
BOWL = {"Adagrad": 3.0, "Adadelta": 100.0, "Adamax": 0.3, "Lion": 0.1}


@each_optimizer
def test_minimum_of_a_bowl(name):
    """Each optimiser finds the minimum of a quadratic bowl with axes of different steepness, as its rate goes to 0."""
    x = lucid.tensor([4.0, -3.0], requires_grad=True)
    optimizer = getattr(optim, name)([x], **{**SETTINGS[name], **taken(name, weight_decay=0)})
    for lr in np.linspace(BOWL.get(name, 0.1), 0, 500):
        optimizer.param_groups[0]["lr"] = lr
        optimizer.zero_grad()
        ((x - lucid.tensor([1.0, 2.0])) ** 2 * lucid.tensor([1.0, 5.0])).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(x.tolist(), [1, 2], atol=1e-3)


def test_zero_grad():
    """Gradients become None, or zeros in the same tensor, out of their graph."""
    x = lucid.nn.Parameter(lucid.tensor([1.0, 2.0]))
    holder, optimizer = lucid.nn.ParameterList([x]), optim.SGD([x])
    (x**3).sum().backward(create_graph=True)
    grad = x.grad
    optimizer.zero_grad(set_to_none=False)
    assert x.grad is grad
    assert x.grad.tolist() == [0, 0]
    assert not x.grad.requires_grad
    # one of the user's own that is a leaf and requires grad, which nothing may change in place
    given = x.grad = lucid.ones(2, requires_grad=True)
    for clear in (optimizer.zero_grad, holder.zero_grad):
        given.requires_grad = True
        clear(set_to_none=False)
        assert x.grad is given
        assert (given.tolist(), given.requires_grad) == ([0, 0], False)
    optimizer.zero_grad()
    assert x.grad is None


def test_training_leaves_nothing_behind():
    """Steps keep no arrays but the state: dropping optimiser and parameters frees them at once."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.Adam([x])
    gc.collect()
    with no_collections():
        for _ in range(3):
            (x * x).sum().backward()
            optimizer.step()
        kept = weakref.ref(optimizer.state[x]["exp_avg"])
        del optimizer
        assert kept() is None


@pytest.mark.gpu
@each_optimizer
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
def test_a_step_on_the_gpu_is_that_on_the_cpu(name, dtype, rng):
    """On a CUDA device the same formulas give the same, and the state stays there but for the count."""
    kind = getattr(lucid, dtype)
    shapes = [(3, 2), (), (40, 1000)]
    here = [lucid.tensor(rng.standard_normal(shape), dtype=kind, requires_grad=True) for shape in shapes]
    there = [param.detach().cuda().requires_grad_() for param in here]
    settings = {**SETTINGS[name], **taken(name, weight_decay=0.01, maximize=True)}
    optimizers = [getattr(optim, name)(params, **settings) for params in (here, there)]
    for _ in range(3):
        for ours, theirs in zip(here, there, strict=True):
            ours.grad = lucid.tensor(rng.standard_normal(tuple(ours.shape)), dtype=kind)
            theirs.grad = ours.grad.cuda()
        for optimizer in optimizers:
            optimizer.step()
    tolerance = {"float64": 1e-12, "float16": 1e-2}.get(dtype, 1e-5)
    for ours, theirs in zip(here, there, strict=True):
        assert theirs.is_cuda
        np.testing.assert_allclose(
            theirs.detach().cpu().numpy(), ours.detach().cpu().numpy(), rtol=tolerance, atol=tolerance
        )
    state = optimizers[1].state[there[0]]
    assert {key: value.is_cuda for key, value in state.items()} == {
        key: key not in optimizers[1].scalars for key in state
    }


@pytest.mark.gpu
def test_a_state_moves_to_the_device_of_its_parameter(rng):
    """A state dict from the CPU continues on a CUDA device."""
    x = lucid.tensor(rng.standard_normal(5), requires_grad=True)
    x.grad = lucid.tensor(rng.standard_normal(5))
    ours = optim.Adam([x])
    ours.step()
    y = x.detach().cuda().requires_grad_()
    theirs = optim.Adam([y])
    theirs.load_state_dict(ours.state_dict())
    y.grad = x.grad.cuda()
    for optimizer in (ours, theirs):
        optimizer.step()
    np.testing.assert_allclose(y.detach().cpu().numpy(), x.detach().cpu().numpy(), rtol=1e-6)


# ---- groups ----


def test_groups_keep_their_settings():
    """What a group names stays its own, the rest is filled from the defaults; the given dict is left alone."""
    a, b, c = parameters()
    given = {"params": [b], "lr": 0.5, "label": "head"}
    optimizer = optim.SGD([{"params": a}, given], lr=0.1, momentum=0.3)
    optimizer.add_param_group({"params": (c,), "momentum": 0})
    assert [(g["lr"], g["momentum"]) for g in optimizer.param_groups] == [(0.1, 0.3), (0.5, 0.3), (0.1, 0)]
    assert optimizer.param_groups[1]["label"] == "head"
    assert given == {"params": [b], "lr": 0.5, "label": "head"}


def test_named_parameters():
    """Names given with the parameters are kept beside them, also in the state dict."""
    a, b, _ = parameters()
    optimizer = optim.Adam([("weight", a), ("bias", b)])
    assert optimizer.param_groups[0]["params"] == [a, b]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


BAD_PARAMS = {
    "a tensor": (lambda a, b: a, TypeError, "iterable"),
    "nothing": (lambda a, b: [], ValueError, "empty"),
    "a number": (lambda a, b: [a, 3], TypeError, "parameter 1"),
    "no leaf": (lambda a, b: [a, b * 2], ValueError, "non-leaf"),
    "twice": (lambda a, b: [{"params": a}, {"params": [b, a]}], ValueError, "group 0"),
    "a set": (lambda a, b: [{"params": {a, b}}], TypeError, "set"),
    "half named": (lambda a, b: [("a", a), b], ValueError, "names"),
    "no params": (lambda a, b: [{"lr": 0.1}], ValueError, "'params'"),
    "a group's rate": (lambda a, b: [{"params": a}, {"params": b, "lr": -1}], ValueError, "learning rate"),
    "a group's dampening": (lambda a, b: [{"params": b, "dampening": "x"}], TypeError, "dampening value: .* str"),
    "dampening of NaN": (lambda a, b: [{"params": b, "dampening": float("nan")}], ValueError, "nan: expected a finite"),
    "a vector as rate": (lambda a, b: [{"params": a, "lr": lucid.ones(2)}], ValueError, "learning rate"),
}


@pytest.mark.parametrize(("params", "kind", "text"), BAD_PARAMS.values(), ids=BAD_PARAMS)
def test_bad_parameters(params, kind, text):
    """Each mistake in what is to be optimised is an error that says what it is."""
    with pytest.raises(kind, match=text):
        optim.SGD(params(*parameters()[:2]))


BAD_SETTINGS = {
    "RMSprop": [({"alpha": -0.5}, "alpha value: -0.5: expected a finite number of at least 0")],
    "Adadelta": [({"rho": 1.5}, r"rho value: 1.5: expected a number in \[0, 1\]")],
    "Rprop": [
        ({"etas": (0.5, 0.9)}, r"eta values: 0.5, 0.9: expected one in \(0, 1\) and one above 1"),
        ({"step_sizes": (2.0, 1.0)}, "step_sizes: 2.0, 1.0: expected two numbers of at least 0, the smaller one first"),
    ],
    "ASGD": [
        ({key: -1.0}, f"{key} value: -1.0: expected a finite number of at least 0") for key in ("lambd", "alpha", "t0")
    ],
    "Adagrad": [({"initial_accumulator_value": -1.0}, "initial_accumulator_value value: -1.0")],
    "NAdam": [({"momentum_decay": -1.0}, "momentum_decay value: -1.0")],
    "Lion": [({"betas": (0.9, 1.0)}, r"beta parameter at index 1: expected a number in \[0, 1\)")],
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings(name):
    """A number out of its range is refused, in a group too; the error says the range."""
    for settings, text in BAD_SETTINGS[name]:
        for groups, given in ((parameters(), settings), ([{"params": parameters(), **settings}], {})):
            with pytest.raises(ValueError, match=text):
                getattr(optim, name)(groups, **given)


def test_a_result_that_keeps_its_gradient_is_a_parameter():
    """What is no leaf is stepped too where `retain_grad` has it keep a gradient."""
    x = lucid.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    optimizer = optim.SGD([y], lr=0.5)
    (y * 3).sum().backward()
    optimizer.step()
    assert (y.tolist(), x.tolist()) == ([0.5, 0.5], [1.0, 1.0])


def test_a_refused_group_is_not_added():
    """After an error in `add_param_group` the optimiser is as before."""
    a, b, c = parameters()
    optimizer = optim.SGD([a, b])
    before = picture([a, b], optimizer)
    for group in ({"params": [c, a]}, {"params": [c], "lr": -1}, {"params": [("c", c)]}, [c]):
        with pytest.raises((TypeError, ValueError)):
            optimizer.add_param_group(group)
    assert picture([a, b], optimizer) == before
    optimizer = optim.SGD([("a", a), ("b", b)])
    with pytest.raises(ValueError, match="expected all parameter groups with names or all without"):
        optimizer.add_param_group({"params": [c]})
    assert len(optimizer.param_groups) == 1


def test_duplicates_in_a_group_are_warned_of():
    """The same parameter twice in one group would be changed twice: a warning, as in PyTorch."""
    a, _, _ = parameters()
    with pytest.warns(UserWarning, match="duplicate"):
        optim.SGD([a, a])


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_parameter_given_three_times_makes_three_steps(name):
    """Each by the state that the one before has left: as three steps of an optimizer that has it once."""
    thrice, once = (lucid.tensor([1.0, -2.0], dtype=lucid.float64, requires_grad=True) for _ in range(2))
    with pytest.warns(UserWarning, match="duplicate"):
        optimizer = getattr(optim, name)([thrice] * 3, **SETTINGS[name])
    other = getattr(optim, name)([once], **SETTINGS[name])
    for param in (thrice, once):
        param.grad = lucid.tensor([0.5, 0.25], dtype=lucid.float64)
    optimizer.step()
    for _ in range(3):
        other.step()
    assert thrice.tolist() == once.tolist()
    assert optimizer.state[thrice].keys() == other.state[once].keys()
    assert all(lucid.equal(value, other.state[once][key]) for key, value in optimizer.state[thrice].items())


# ---- state dicts ----


def test_a_parameter_twice_in_a_group_has_one_number():
    """Its last place, as in PyTorch, under which its state stands too; either number is read."""
    a, b, _ = parameters()
    with pytest.warns(UserWarning, match="duplicate"):
        optimizer, other = (optim.SGD([a, b, a], lr=0.1, momentum=0.5) for _ in range(2))
    fill([a, b], 3)
    optimizer.step()
    saved = optimizer.state_dict()
    assert saved["param_groups"][0]["params"] == [2, 1, 2]
    assert list(saved["state"]) == [2, 1]
    by_first = copy.deepcopy(saved)
    by_first["param_groups"][0]["params"] = [0, 1, 0]
    by_first["state"][0] = by_first["state"].pop(2)
    for state in (saved, by_first):
        other.load_state_dict(state)
        assert {id(param) for param in other.state} == {id(a), id(b)}
        assert all(
            lucid.equal(entry["momentum_buffer"], optimizer.state[param]["momentum_buffer"])
            for param, entry in other.state.items()
        )


@each_optimizer
def test_a_loaded_state_continues_bitwise(name):
    """A copy that loads the state, through JSON-like plain data for the settings, makes bitwise the same steps."""
    params, optimizer = make(name)
    others, other = make(name, seed=7, steps=0)
    with lucid.no_grad():
        for param, source in zip(others, params, strict=True):
            param.copy_(source)
    saved = optimizer.state_dict()
    saved["param_groups"] = json.loads(json.dumps(saved["param_groups"]))
    other.load_state_dict(saved)
    for step in range(3):
        for group in (params, others):
            fill(group, 10 + step)
        optimizer.step()
        other.step()
    assert [param.tolist() for param in params] == [param.tolist() for param in others]


@each_optimizer
def test_a_loaded_state_is_a_copy(name):
    """Steps after loading leave the loaded dict alone."""
    params, optimizer = make(name)
    saved = optimizer.state_dict()
    _, other = make(name, seed=1)
    other.load_state_dict(saved)
    before = picture(params, optimizer)
    fill(other.param_groups[0]["params"], 3)
    other.step()
    assert picture(params, optimizer) == before


def test_a_state_in_other_containers():
    """Any mappings, and a list or tuple of groups, hold a state: as checkpoints that were made read-only have them."""
    params, optimizer = make("Adam")
    saved = optimizer.state_dict()
    others, other = make("Adam", steps=0)
    states = {number: types.MappingProxyType(entries) for number, entries in saved["state"].items()}
    groups = tuple(types.MappingProxyType({**group, "params": (*group["params"],)}) for group in saved["param_groups"])
    other.load_state_dict(types.MappingProxyType({"state": types.MappingProxyType(states), "param_groups": groups}))
    assert picture(others, other)[2] == picture(params, optimizer)[2]
    assert other.state_dict()["param_groups"] == saved["param_groups"]


def edited(saved, change):
    saved = copy.deepcopy(saved)
    change(saved)
    return saved


def groups_of(index, **settings):
    return lambda saved: saved["param_groups"][index].update(settings)


BAD_STATES = {
    "not a state dict": (lambda s: s.clear(), "'state'"),
    "state is a list": (lambda s: s.update(state=[]), "'state'"),
    "groups are none": (lambda s: s.update(param_groups=None), "a list 'param_groups'"),
    "a group less": (lambda s: s["param_groups"].pop(), "expected 2, got 1"),
    "a parameter less": (lambda s: s["param_groups"][0]["params"].pop(), "parameter group 0 has 2 parameters, got 1"),
    "a setting less": (lambda s: s["param_groups"][1].pop("betas"), r"group 1 lacks \['betas'\]"),
    "a bad setting": (groups_of(1, lr=-1), "group 1: Invalid learning rate"),
    "a setting of another type": (groups_of(0, eps="small"), "group 0: Invalid epsilon"),
    "betas of another length": (groups_of(0, betas=[0.9]), "group 0: Invalid betas"),
    "a number twice": (groups_of(0, params=[0, 0]), "group 0, parameter 1: number 0"),
    "state of nobody": (lambda s: s["state"].update({9: {}}), "got state of 9"),
    "state of the wrong kind": (lambda s: s["state"].update({1: 3}), "group 0, parameter 1: expected a dict"),
    "a missing entry": (lambda s: s["state"][2].pop("exp_avg"), r"group 1, parameter 0 lacks \['exp_avg'\]"),
    "another shape": (
        lambda s: s["state"][1].update(exp_avg_sq=lucid.zeros(5)),
        r"group 0, parameter 1: expected exp_avg_sq of shape \(4,\), got \(5,\)",
    ),
    "steps of one parameter": (lambda s: s["state"][1].update(step=lucid.zeros(4)), r"step of shape \(\), got \(4,\)"),
    "no tensor": (lambda s: s["state"][0].update(exp_avg="x"), "group 0, parameter 0: expected exp_avg as a tensor"),
    "complex": (
        lambda s: s["state"][1].update(exp_avg=lucid.zeros(4, dtype=lucid.complex64)),
        "group 0, parameter 1: expected exp_avg that fits",
    ),
}


@pytest.mark.parametrize(("change", "text"), BAD_STATES.values(), ids=BAD_STATES)
def test_a_bad_state_changes_nothing(change, text):
    """Whatever does not fit is an error that names group and parameter, and the optimiser goes on as before."""
    params, optimizer = make("Adam")
    before = picture(params, optimizer)
    with pytest.raises(StateDictError, match=text):
        optimizer.load_state_dict(edited(optimizer.state_dict(), change))
    assert picture(params, optimizer) == before


@pytest.mark.parametrize(("writer", "reader"), [("SGD", "Adam"), ("Adam", "SGD")])
def test_the_state_of_another_optimizer(writer, reader):
    """The state of another algorithm is refused by name."""
    _, optimizer = make(writer)
    _, other = make(reader)
    with pytest.raises(StateDictError, match=f"expected the state of {reader}"):
        other.load_state_dict(optimizer.state_dict())


def test_names_appear_in_errors():
    """A parameter with a name is named in the error."""
    a, b, _ = parameters()
    optimizer = optim.Adam([("layer.weight", a), ("layer.bias", b)])
    fill([a, b], 0)
    optimizer.step()
    saved = edited(optimizer.state_dict(), lambda s: s["state"][1].update(exp_avg=lucid.zeros(1)))
    with pytest.raises(StateDictError, match=r"parameter 1 \(layer.bias\)"):
        optimizer.load_state_dict(saved)


def test_adamw_takes_over_from_adam():
    """The state of an Adam goes on as AdamW, whose weight decay stays apart from the gradient."""
    params, adam = make("Adam")
    adamw = optim.AdamW([{"params": params[:2]}, {"params": params[2]}])
    adamw.load_state_dict(adam.state_dict())
    assert [group["decoupled_weight_decay"] for group in adamw.param_groups] == [True, True]


# ---- hooks and subclasses ----


def test_handles_remove_hooks():
    """A handle takes its hook off by call, by `remove`, and at the end of a block."""
    _, optimizer = make("SGD", steps=0)
    calls = []
    first = optimizer.register_step_pre_hook(lambda *_: calls.append("first"))
    second = optimizer.register_step_post_hook(lambda *_: calls.append("second"))
    with optimizer.register_step_post_hook(lambda *_: calls.append("third")):
        optimizer.step()
    first()
    optimizer.step()
    second.remove()
    optimizer.step()
    assert calls == ["first", "second", "third", "second"]


def test_a_handle_takes_the_hook_of_a_copy_off():
    """A handle has PyTorch's type and goes along with a deep copy, where it takes off the copy's hook."""
    _, optimizer = make("SGD", steps=0)
    calls = []
    handle = optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append(o))
    assert isinstance(handle, lucid.utils.hooks.RemovableHandle)
    twin, its_handle = copy.deepcopy((optimizer, handle))
    its_handle.remove()
    twin.step()
    optimizer.step()
    assert calls == [optimizer]


def test_a_bad_hook_changes_nothing():
    """A pre-hook that raises or returns nonsense prevents the step; its name is in the report."""
    params, optimizer = make("Adam")
    fill(params, 5)
    before = picture(params, optimizer)
    bad = raising(KeyError("broken")), lambda *_: 3, lambda *_: ((), {}, 0)
    for hook, kind in zip(bad, (KeyError, HookError, HookError), strict=True):
        with optimizer.register_step_pre_hook(hook), pytest.raises(kind) as caught:
            optimizer.step()
        report = "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
        assert hook.__qualname__ in report
        assert "step pre-hook" in report
    with pytest.raises(HookTypeError):
        optimizer.register_step_pre_hook("hook")
    assert picture(params, optimizer) == before


def test_the_dicts_of_state():
    """They are dicts, made where they are looked up, and go along with copies; a state dict holds plain ones."""
    w = lucid.ones(2, requires_grad=True)
    optimizer = lucid.optim.Adam([w])
    w.sum().backward()
    optimizer.step()
    assert {type(entries) for entries in optimizer.state_dict()["state"].values()} == {dict}
    copied = pickle.loads(pickle.dumps(copy.deepcopy(optimizer)))
    (entries,) = copied.state.values()
    assert type(copied.state) is type(optimizer.state)
    assert type(entries) is type(optimizer.state[w])
    assert entries["exp_avg"].tolist() == optimizer.state[w]["exp_avg"].tolist()
    optimizer.state["mine"]["count"] = 3
    assert optimizer.state["mine"].pop("count") == 3
    assert optimizer.state["mine"] == {}
    assert optimizer.state.pop("mine", None) == {}
    assert optimizer.state.pop("mine", None) is None
    assert optimizer.state[w].setdefault("exp_avg", 3) is optimizer.state[w]["exp_avg"]


def test_state_dict_hooks():
    """Hooks see and may replace what is saved and what is loaded; the caller's dict is never changed."""
    _, optimizer = make("SGD")
    order = []
    optimizer.register_state_dict_pre_hook(lambda o: order.append("before saving"))
    optimizer.register_state_dict_post_hook(lambda o, saved: {**saved, "note": "custom"})
    optimizer.register_state_dict_post_hook(lambda o, saved: order.append(sorted(saved)), prepend=True)
    saved = optimizer.state_dict()
    assert saved["note"] == "custom"

    def forget(_, given):
        given["state"] = {}

    optimizer.register_load_state_dict_pre_hook(forget)
    optimizer.register_load_state_dict_post_hook(lambda o: order.append(len(o.state)))
    optimizer.load_state_dict(saved)
    assert saved["state"]
    assert order == ["before saving", ["param_groups", "state"], 0]


def test_hooks_may_be_put_first():
    """With `prepend` a hook is called before those that are there, in each registration that takes it."""
    _, optimizer = make("SGD")
    names = [
        name for name in dir(optimizer)
        if name.startswith("register_") and "prepend" in inspect.signature(getattr(optimizer, name)).parameters
    ]  # fmt: skip
    assert len(names) == 4
    called = {name: [] for name in names}
    for name, notes in called.items():
        register = getattr(optimizer, name)
        register(lambda *_, notes=notes: notes.append("second"))
        register(lambda *_, notes=notes: notes.append("third"), prepend=False)
        register(lambda *_, notes=notes: notes.append("first"), prepend=True)
    optimizer.load_state_dict(optimizer.state_dict())
    assert called == {name: ["first", "second", "third"] for name in names}


def test_a_step_written_as_for_pytorch():
    """A subclass with its own `step` works, and hooks fire once around it even if it calls its base's."""
    calls = []

    class Noisy(optim.SGD):
        @lucid.no_grad()
        def step(self, closure=None):
            """Note it."""
            calls.append("own")
            return super().step(closure)

    assert (Noisy.step.__name__, Noisy.step.__doc__) == ("step", "Note it.")
    x = lucid.tensor([1.0], requires_grad=True)
    optimizer = Noisy([x], lr=0.5)
    optimizer.register_step_pre_hook(lambda *_: calls.append("pre"))
    optimizer.register_step_post_hook(lambda *_: calls.append("post"))
    x.grad = lucid.tensor([0.5])
    optimizer.step()
    assert (x.tolist(), calls) == ([0.75], ["pre", "own", "post"])


def test_deepcopy_of_model_and_optimizer():
    """Copied together, the copies belong together and are independent of the originals."""
    params, optimizer = make("Adam")
    before = picture(params, optimizer)
    copies, other = copy.deepcopy((params, optimizer))
    fill(copies, 9)
    other.step()
    assert picture(params, optimizer) == before
    assert [param.tolist() for param in copies] != before[0]
    assert set(map(id, other.state)) == set(map(id, copies))


def test_a_rate_in_a_tensor_of_any_shape_of_one_element():
    """The learning rate may be a tensor of shape () or (1,), and is the same number."""
    for shape in ((), (1,), (1, 1)):
        x = lucid.tensor([1.0], requires_grad=True)
        x.grad = lucid.tensor([2.0])
        optim.SGD([x], lr=lucid.full(shape, 0.25)).step()
        assert x.tolist() == [0.5]


@pytest.mark.parametrize("which", ["pre", "post"])
def test_a_hook_that_refuses_a_state_leaves_the_old_one(which):
    """State and settings are what they were before, the very objects, and later steps go on with them."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.SGD([x], lr=0.5, momentum=0.9)
    saved = optimizer.state_dict()
    saved["param_groups"][0]["lr"] = 7.0
    x.grad = lucid.tensor([1.0, -1.0])
    optimizer.step()
    before, groups = optimizer.state[x]["momentum_buffer"], optimizer.param_groups
    register = getattr(optimizer, f"register_load_state_dict_{which}_hook")
    with register(raising(ValueError("not this one"))), pytest.raises(ValueError, match="not this one"):
        optimizer.load_state_dict(saved)
    assert optimizer.state[x]["momentum_buffer"] is before
    assert optimizer.param_groups is groups
    assert groups[0]["lr"] == 0.5
    optimizer.step()
    np.testing.assert_allclose(x.tolist(), [1 - 0.5 - 0.95, 2 + 0.5 + 0.95], rtol=1e-6)


@pytest.mark.parametrize("kind", [set, frozenset])
def test_parameters_without_an_order_are_refused(kind):
    """A set of them, alone or in a group, would have other numbers in each run."""
    x, y = (lucid.ones(2, requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([x])
    for members in (
        lambda: optim.SGD([{"params": kind([y])}]),
        lambda: optimizer.add_param_group({"params": kind([y])}),
    ):
        with pytest.raises(TypeError, match="in an ordered collection, got a set, whose order changes"):
            members()
    assert len(optimizer.param_groups) == 1


def test_names_of_a_loaded_state_win():
    """Parameter names in a state dict replace the optimiser's own, with a warning; they stay where it has none."""
    x = lucid.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([("own", x)])
    state = optimizer.state_dict()
    state["param_groups"][0]["param_names"] = ["loaded"]
    with pytest.warns(
        UserWarning, match=r"by position: only the optimizer has \['own'\], only the state dict \['loaded'\]"
    ):
        optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["param_names"] == ["loaded"]
    del state["param_groups"][0]["param_names"]
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["param_names"] == ["loaded"]


@pytest.mark.parametrize("outside", [True, False])
def test_updates_run_without_gradients(outside):
    """`update` may change leaves in place, and the caller's mode is back after the step, also after an error."""
    seen = []

    class Descent(optim.Optimizer):
        def update(self, params, group):
            seen.append(lucid.is_grad_enabled())
            for param in params:
                param.sub_(param.grad)
            if len(seen) == 2:
                raise ZeroDivisionError

    x = lucid.tensor([1.0], requires_grad=True)
    x.grad = lucid.tensor([0.25])
    optimizer = Descent([x], {})
    with lucid.set_grad_enabled(outside):
        optimizer.step(lambda: seen.clear())
        assert lucid.is_grad_enabled() is outside
        with pytest.raises(ZeroDivisionError):
            optimizer.step()
        assert lucid.is_grad_enabled() is outside
    assert seen == [False, False]
    assert x.tolist() == [0.5]


@each_optimizer
def test_a_step_in_inference_mode_is_followed_by_one_outside(name):
    """docs/users/hooks.md, modules and optimizers: the state made there serves the next step."""
    params, inside = make(name, steps=0)
    expected, outside = make(name, steps=0)
    for step in range(2):
        fill(params, step)
        fill(expected, step)
        with lucid.inference_mode(step == 0):
            inside.step()
        outside.step()
    assert [p.tolist() for p in params] == [p.tolist() for p in expected]


def test_dampening_begins_at_the_second_step(rng):
    """The first direction becomes the momentum buffer whole; later ones are dampened."""
    first, second = rng.standard_normal(2)
    x = lucid.tensor([0.0], dtype=lucid.float64, requires_grad=True)
    optimizer = optim.SGD([x], lr=1.0, momentum=0.5, dampening=0.25)
    for grad in (first, second):
        x.grad = lucid.tensor([grad], dtype=lucid.float64)
        optimizer.step()
    assert x.item() == pytest.approx(-first - (0.5 * first + 0.75 * second))


def test_state_that_begins_as_a_setting_says():
    """It does so in both parts of complex numbers, in a group by its own settings, and Adagrad's with the optimizer."""
    real, complex_ = lucid.ones(2, requires_grad=True), lucid.ones(2, dtype=lucid.complex128, requires_grad=True)
    groups = [{"params": [real]}, {"params": [complex_], "lr": 0.5, "initial_accumulator_value": 2.0}]
    optimizer = optim.Adagrad(groups, initial_accumulator_value=0.25)
    assert optimizer.state[real]["sum"].tolist() == [0.25, 0.25]
    assert optimizer.state[complex_]["sum"].tolist() == [2 + 2j, 2 + 2j]
    assert [optimizer.state[x]["step"].item() for x in (real, complex_)] == [0.0, 0.0]
    later = lucid.ones(1, requires_grad=True)
    optimizer.add_param_group({"params": [later]})
    assert later not in optimizer.state
    later.grad = lucid.full((1,), 2.0)
    optimizer.step()
    assert optimizer.state[later]["sum"].tolist() == [4.25]
    rprop = optim.Rprop([*groups[:1], {"params": [complex_], "lr": lucid.tensor(0.5)}], lr=0.125)
    for x in (real, complex_):
        x.grad = lucid.ones_like(x)
    rprop.step()
    assert rprop.state[real]["step_size"].tolist() == [0.125, 0.125]
    assert rprop.state[complex_]["step_size"].tolist() == [0.5 + 0.5j, 0.5 + 0.5j]
    assert complex_.tolist() == [0.5, 0.5]


LATER = {
    "momentum": (optim.SGD, {"dampening": 0.5}, {"momentum": 0.5}, 3 + 2 + (0.5 * 2 + 0.5 * 1)),
    "amsgrad": (optim.Adam, {"betas": (0.0, 0.0), "eps": 0.0}, {"amsgrad": True}, 3 / 3 + 2 / 2 + 1 / 2),
}


@pytest.mark.parametrize(("kind", "settings", "asks", "way"), LATER.values(), ids=LATER)
def test_a_setting_may_ask_for_state_later(kind, settings, asks, way):
    """State that only a setting asks for begins at the step that first finds it set."""
    x = lucid.tensor([0.0], dtype=lucid.float64, requires_grad=True)
    optimizer = kind([x], lr=1.0, **settings)
    for grad in (3.0, 2.0, 1.0):
        x.grad = lucid.tensor([grad], dtype=lucid.float64)
        optimizer.step()
        optimizer.param_groups[0].update(asks)
    assert x.item() == pytest.approx(-way)


def test_state_that_is_asked_for_later_leaves_the_other_as_it_is(rng):
    """While gradients grow, the largest mean is the mean: amsgrad set on the way changes nothing."""
    (x,), (y,) = parameters(shapes=((4,),)), parameters(shapes=((4,),))
    plain, later = (optim.Adam([p], lr=0.1, betas=(0.5, 0.5)) for p in (x, y))
    for step, grad in enumerate(rng.uniform(1, 2, (4, 4)) * np.geomspace(1, 1000, 4)[:, None]):
        later.param_groups[0]["amsgrad"] = step >= 2
        for param, optimizer in ((x, plain), (y, later)):
            param.grad = lucid.tensor(grad)
            optimizer.step()
    assert y.tolist() == x.tolist()
    assert {key: value.tolist() for key, value in plain.state[x].items()}.items() <= {
        key: value.tolist() for key, value in later.state[y].items()
    }.items()


@each_optimizer
def test_steps_are_counted_on_the_cpu(name):
    """Counts, and other numbers, are float32 on the CPU; all other state is like its parameter."""
    params, optimizer = make(name)
    for param in params:
        for key, value in optimizer.state[param].items():
            like = (
                (lucid.float32, "cpu", ())
                if key in optimizer.scalars
                else (param.dtype, param.device.type, param.shape)
            )
            assert (value.dtype, value.device.type, value.shape) == like


def test_a_list_of_numbers_stays_the_callers():
    """A setting given as a list is what it was when it was given."""
    betas = [0.5, 0.75]
    optimizer = optim.Adam(parameters(), betas=betas)
    betas[0] = 2.0
    assert optimizer.param_groups[0]["betas"] == (0.5, 0.75)


@each_optimizer
@pytest.mark.parametrize("has_state", [False, True])
def test_a_step_after_a_parameter_has_changed_its_shape(name, has_state):
    """A gradient or state of the old shape is refused, and no parameter is changed."""
    first, second = parameters(shapes=((2,), (3,)))
    optimizer = getattr(optim, name)([{"params": [first]}, {"params": [second]}], **SETTINGS[name])
    (first.sum() + second.sum()).backward()
    if has_state:
        optimizer.step()
        second.grad = None
    second.data = lucid.ones(4, dtype=second.dtype)
    if has_state:
        second.sum().backward()
    before, state = first.tolist(), copy.deepcopy(optimizer.state_dict())
    with pytest.raises(ShapeError, match=r"parameter of shape \(4,\) has a gradient or state of shape \(3,\)"):
        optimizer.step()
    assert first.tolist() == before
    assert str(optimizer.state_dict()) == str(state)


def test_state_that_was_deleted_is_missed():
    """State that no setting asks for is made at the first step only; a later one without it changes nothing."""
    x = lucid.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.Adam([x])
    x.sum().backward()
    optimizer.step()
    del optimizer.state[x]["exp_avg"]
    before, step = x.tolist(), optimizer.state[x]["step"].item()
    with pytest.raises(KeyError, match=r"shape \(2,\) has \['step', 'exp_avg_sq'\] and lacks \['exp_avg'\]"):
        optimizer.step()
    assert (x.tolist(), optimizer.state[x]["step"].item()) == (before, step)


def test_the_second_step_of_a_parameter_given_twice_is_no_first_one():
    """Momentum begins with the gradient in the first of two steps at once, and is dampened in the second."""
    twice, alone = (lucid.tensor([1.0], requires_grad=True) for _ in range(2))
    settings = {"lr": 0.1, "momentum": 0.5, "dampening": 0.25}
    with warnings.catch_warnings(action="ignore"):
        both = lucid.optim.SGD([twice, twice], **settings)
    one = lucid.optim.SGD([alone], **settings)
    twice.grad, alone.grad = lucid.ones(1), lucid.ones(1)
    both.step()
    one.step()
    one.step()
    assert twice.item() == alone.item()


def test_required_setting():
    """A default that is `required` is given by every group, else nothing changes; copies and pickles keep asking."""

    class Descent(lucid.optim.Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr, "scale": 1.0})

        def update(self, params, group):
            for param in params:
                param.sub_(param.grad, alpha=group["lr"])

    first, second = (lucid.ones(2, requires_grad=True) for _ in range(2))
    with pytest.raises(ValueError, match="didn't specify a value of required optimization parameter lr: give it in"):
        Descent([first])
    optimizer = Descent([{"params": [first], "lr": 0.5}])
    for each in (optimizer, copy.deepcopy(optimizer)):
        with pytest.raises(ValueError, match="required optimization parameter lr"):
            each.add_param_group({"params": [second]})
        assert len(each.param_groups) == 1
    assert pickle.loads(pickle.dumps(required)) is required
    first.sum().backward()
    optimizer.step()
    assert first.tolist() == [0.5, 0.5]


def test_settings_are_shown_in_order():
    """The repr has a line for each setting of a group, by its name."""
    shown = repr(optim.Adam([lucid.ones(1, requires_grad=True)])).splitlines()[2:-1]
    assert [line.split(":")[0].strip() for line in shown] == sorted(optim.Adam([lucid.ones(1)]).defaults)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=["copied", "pickled"])
def test_a_copy_from_within_a_step_is_in_none(copied):
    """Its own steps fire its hooks, and those of the optimizer it was made of go on as they were."""
    x, made, calls = lucid.ones(1, requires_grad=True), [], []
    optimizer = optim.SGD([x], lr=0.1)

    def closure():
        made.append(copied(optimizer))
        x.grad = lucid.ones(1)
        return x.detach().sum()

    optimizer.step(closure)
    (twin,) = made
    for name, each in (("twin", twin), ("own", optimizer)):
        each.register_step_pre_hook(lambda *_, name=name: calls.append(name))
        each.step()
    assert calls == ["twin", "own"]
