"""Steps of optimizers in CUDA graphs: a replay does what a step does, with the settings of then."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

import lucid
from lucid import optim
from lucid.base import gpu
from lucid.errors import CaptureError, InplaceError
from tests.captures import Recorded
from tests.optimizers import COUNTED_THERE, NAMES, OTHERS, SETTINGS, USUAL
from tests.pieces import raising

pytestmark = pytest.mark.gpu

STEPS = 6
SHAPES = ((5,), (300,), (), (0,), (3, 4))
every_setting = pytest.mark.parametrize(("name", "settings"), SETTINGS.values(), ids=SETTINGS)


def made(name, params, **settings):
    """Return an optimizer that can be captured."""
    return getattr(optim, name)(params, **{**COUNTED_THERE.get(name, {}), **settings})


class Training:
    """Parameters on the device, and gradients that are given; `step` is called by those who take or record one."""

    def __init__(self, rng, name="AdamW", dtype="float32", shapes=SHAPES, steps=STEPS, **settings):
        self.dtype = getattr(lucid, dtype)
        self.params = [
            lucid.tensor(rng.standard_normal(shape), dtype=self.dtype, device="cuda").requires_grad_()
            for shape in shapes
        ]
        self.grads = [[rng.standard_normal(shape) for shape in shapes] for _ in range(steps)]
        self.optimizer = made(name, self.params, **{"lr": 0.1, **settings})
        # what a closure would compute is given
        loss = lucid.zeros((), device="cuda")
        self.step = partial(self.optimizer.step, lambda: loss) if name == "LBFGS" else self.optimizer.step
        for param in self.params:
            param.grad = lucid.zeros(param.shape, dtype=self.dtype, device="cuda")

    def recorded(self, **settings):
        """Return the graph of a step behind the first one."""
        self.optimizer.step()
        return Recorded(self.optimizer.step, **settings)

    def give(self, number):
        """Put the gradients of a step where a graph reads them."""
        for param, grad in zip(self.params, self.grads[number], strict=True):
            param.grad.copy_(lucid.tensor(grad, dtype=self.dtype))

    def run(self, *, replayed, change=lambda group, number: None, record=Recorded):
        """Take all steps, those behind the first by a graph if so; returns parameters and state."""
        self.give(0)
        self.step()
        step = record(self.step) if replayed else self.step
        for number in range(1, len(self.grads)):
            self.give(number)
            change(self.optimizer.param_groups[0], number)
            step()
        return self.values()

    def values(self):
        """Return the bytes of parameters and state."""
        entries = self.optimizer.state_dict()["state"]
        state = [entries[number][name] for number in sorted(entries) for name in sorted(entries[number])]
        return [tensor.detach().cpu().numpy().tobytes() for tensor in [*self.params, *state]]


def trained(rng_seed, *, replayed, change=lambda group, number: None, record=Recorded, **given):
    """Return what is left of a training with the random numbers of a seed."""
    return Training(np.random.default_rng(rng_seed), **given).run(replayed=replayed, change=change, record=record)


def graphed(step):
    """Return a step that is a graph from its second call on, with matrix products, which need lucid's own capture."""
    return lucid.cuda.graphed_step(step, warmup=1)


@pytest.fixture
def counters():
    """Return what counts launches, copies and waits of the simulated device."""
    if not gpu.is_simulated():
        pytest.skip("counts what the simulated device is asked")
    from lucid.cuda.simulator import counting

    return counting.counters


@every_setting
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
def test_replays_are_steps_bit_by_bit(rng, name, settings, dtype):
    """Parameters, state and counts are the same bits in a graph, in eager steps, and where the host counts."""
    seed = int(rng.integers(1 << 30))
    given = {"name": name, "dtype": dtype, **settings}
    replayed = trained(seed, replayed=True, **given)
    assert replayed == trained(seed, replayed=False, **given)
    given |= dict.fromkeys(COUNTED_THERE[name], False)
    if gpu.is_simulated():
        # the device's powers are the host's there
        assert replayed == trained(seed, replayed=False, **given)


def schedule(group, number):
    """Change every number of a group, some steps none."""
    if number % 2:
        for name, value in (
            ("lr", 0.2 / number),
            ("weight_decay", 0.01 * number),
            ("momentum", 0.9 - 0.1 * number),
            ("betas", (0.9, 0.9 + 0.01 * number)),
            ("eps", 1e-6),
            *((name, 0.1 * number) for name in ("alpha", "rho", "lr_decay", "momentum_decay", "lambd")),
            ("t0", number),
            ("etas", (0.1 * number, 1.0 + number)),
            ("step_sizes", (0.01 * number, 1.0 / number)),
        ):
            if name in group:
                group[name] = value


@pytest.mark.parametrize("name", NAMES)
def test_settings_take_effect_at_the_next_replay(rng, name):
    """Learning rate and other numbers that are set between replays are those of eager steps, bit by bit."""
    seed = int(rng.integers(1 << 30))
    given = {"name": name, **USUAL[name]}
    replayed = trained(seed, replayed=True, change=schedule, **given)
    assert replayed == trained(seed, replayed=False, change=schedule, **given)
    assert replayed != trained(seed, replayed=False, **given)


def test_every_optimizer_follows_its_settings_or_is_refused(rng):
    """Six replays between which rate and decay change are six steps, bit by bit; who cannot be captured says so."""
    kinds = [(name, getattr(optim, name)) for name in optim.__all__]
    names = [name for name, kind in kinds if isinstance(kind, type) and issubclass(kind, optim.Optimizer)]
    assert set(names) == {*NAMES, *OTHERS, "Optimizer"}
    refused = []
    for name in sorted({*NAMES, *OTHERS}):
        for dtype, on_device in (("float32", False), ("float32", True), ("bfloat16", False), ("bfloat16", True)):
            seed = int(rng.integers(1 << 30))

            def run(replayed, name=name, dtype=dtype, on_device=on_device, seed=seed):
                rate = lucid.tensor(0.125, device="cuda") if on_device else 0.125

                def change(group, number):
                    if on_device:
                        rate.fill_(0.1 / number)
                    else:
                        group["lr"] = 0.1 / number
                    if "weight_decay" in group:
                        group["weight_decay"] = 0.03 * number

                given = {"shapes": ((3, 4), (5, 2)), "steps": 8, "lr": rate, **USUAL.get(name, {})}
                given |= {"name": name, "dtype": dtype, "record": graphed}
                return trained(seed, replayed=replayed, change=change, **given)

            try:
                replayed = run(True)
            except CaptureError:
                refused.append(name)
            else:
                assert replayed == run(False), (name, dtype, on_device)
    assert refused == ["Adafactor"] * 4 + ["LBFGS"] * 4


def test_settings_are_written_only_where_they_changed(rng, counters):
    """A replay whose settings are those of the last one launches nothing before the graph."""
    training = Training(rng)
    training.give(0)
    step = training.recorded()
    launches = []
    for rate in (0.1, 0.1, 0.2, 0.2):
        training.optimizer.param_groups[0]["lr"] = rate
        counters.reset()
        with step.waiting():
            for function in step.capture.before:
                function()
        launches.append(counters.launches)
    assert launches == [1, 0, 1, 0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_learning_rate_on_the_device(rng, name, dtype):
    """It is read there at each replay; what `fill_` puts into it counts."""
    seed = int(rng.integers(1 << 30))
    results = []
    for kind in ("replayed", "eager", "number"):
        rate = lucid.tensor(0.125, dtype=getattr(lucid, dtype), device="cuda")

        def change(group, number, kind=kind, rate=rate):
            rate.fill_(0.125 * number)
            if kind == "number":
                group["lr"] = 0.125 * number

        lr = 0.125 if kind == "number" else rate
        results.append(
            trained(seed, replayed=kind == "replayed", change=change, name=name, **{**USUAL[name], "lr": lr})
        )
    assert results[0] == results[1] == results[2]


def test_betas_on_the_device(rng):
    """They are read there at each replay, as a learning rate is."""
    seed, results = int(rng.integers(1 << 30)), []
    for kind in ("replayed", "eager", "number"):
        betas = [lucid.tensor(value, device="cuda") for value in (0.5, 0.75)]

        def change(group, number, kind=kind, betas=betas):
            for beta, value in zip(betas, (0.25, 0.5 + 0.0625 * number), strict=True):
                beta.fill_(value)
            if kind == "number":
                group["betas"] = 0.25, 0.5 + 0.0625 * number

        given = (0.5, 0.75) if kind == "number" else tuple(betas)
        results.append(trained(seed, replayed=kind == "replayed", change=change, name="Adam", betas=given))
    assert results[0] == results[1] == results[2]


def test_settings_that_are_changed_in_place(rng):
    """A rate in a tensor of the CPU and a list of betas are the same objects with other numbers in them."""
    seed, results = int(rng.integers(1 << 30)), []
    for replayed in (True, False):
        rate, betas = lucid.tensor(0.125, device="cpu"), [0.9, 0.99]

        def change(group, number, rate=rate, betas=betas):
            rate.fill_(0.5 / number)
            betas[0] = 0.5 + 0.05 * number
            group["betas"] = betas

        results.append(trained(seed, replayed=replayed, change=change, lr=rate))
    assert results[0] == results[1]


@pytest.mark.parametrize("replayed", [False, True])
def test_nothing_waits_for_the_device(rng, counters, replayed):
    """Steps with counts and learning rate on the device read nothing back and copy nothing to it."""
    training = Training(rng, lr=lucid.tensor(0.1, device="cuda"))
    training.give(0)
    training.optimizer.step()
    counters.reset()
    if replayed:
        Recorded(training.optimizer.step)
        assert (counters.to_host, counters.to_device) == (0, 0)
        return
    for _ in range(3):
        training.optimizer.step()
    assert (counters.synchronisations, counters.to_host, counters.to_device) == (0, 0, 0)


def test_two_launches_take_an_eager_step(rng, counters):
    """One counts and computes numbers, one changes parameters: of all of a dtype, and no more once settings stay."""
    training = Training(rng)
    for _ in range(2):
        training.optimizer.step()
    counters.reset()
    training.optimizer.step()
    assert counters.launches == 2


def refused(optimizer, params, *words, told=True):
    """Fail unless a step in a capture raises with these words and changes nothing."""
    before = copy.deepcopy(optimizer.state_dict()["state"])
    versions = [param._version for param in params]

    def act():
        with pytest.raises(CaptureError) as caught:
            optimizer.step()
        assert all(word in str(caught.value) for word in words), caught.value

    Recorded(act, told=told)
    assert [param._version for param in params] == versions
    after = optimizer.state_dict()["state"]
    assert before.keys() == after.keys()
    for number, state in before.items():
        for name, value in state.items():
            np.testing.assert_array_equal(after[number][name].cpu().numpy(), value.cpu().numpy())


@pytest.mark.parametrize("told", [True, False], ids=["lucid's", "cupy's"])
@pytest.mark.parametrize("name", [name for name in NAMES if COUNTED_THERE[name]])
def test_counts_on_the_host_are_refused(rng, name, told):
    """A capture of steps that the host counts would count one for all replays, whoever began it."""
    (setting,) = COUNTED_THERE[name]
    training = Training(rng, name=name, **{setting: False})
    training.optimizer.step()
    refused(training.optimizer, training.params, name, f"{setting}=False", f"{setting}=True", told=told)


@pytest.mark.parametrize(("name", "settings"), [("SGD", {"momentum": 0.9}), ("Adam", {})])
def test_state_that_is_not_there_is_refused(rng, name, settings):
    """State that a capture would make begins anew at each replay."""
    training = Training(rng, name=name, **settings)
    refused(training.optimizer, training.params, "take a step before the capture")


def test_counts_that_are_still_on_the_host_are_refused(rng):
    """Of an optimizer that became capturable after its first steps: each replay would begin with the count of then."""
    training = Training(rng, capturable=False)
    training.optimizer.step()
    training.optimizer.param_groups[0]["capturable"] = True
    refused(training.optimizer, training.params, "on its device yet", "take a step before the capture")
    training.optimizer.step()
    Recorded(training.optimizer.step)()


def test_a_group_that_cannot_be_captured_keeps_the_others_still(rng):
    """All groups are looked at before the first is changed."""
    training = Training(rng, name="SGD")
    late = lucid.ones(3, device="cuda", requires_grad=True)
    late.grad = lucid.ones(3, device="cuda")
    training.optimizer.add_param_group({"params": [late], "momentum": 0.5})
    refused(training.optimizer, [*training.params, late], "momentum_buffer")


def test_a_group_without_gradients_is_no_hindrance(rng):
    """Nothing of it is changed or counted, whatever its settings and wherever it is."""
    training = Training(rng)
    idle = [lucid.ones(3, device=device, requires_grad=True) for device in ("cuda", "cpu")]
    training.optimizer.add_param_group({"params": idle, "capturable": False})
    training.give(0)
    training.optimizer.step()
    before = training.params[0].tolist()
    Recorded(training.optimizer.step)()
    assert training.params[0].tolist() != before
    assert [param.tolist() for param in idle] == [[1, 1, 1]] * 2


def test_parameters_without_a_kernel_are_refused():
    """Strided ones would be changed by what reads their numbers on the host; those on the CPU are not recorded."""
    strided = lucid.ones(4, 3, device="cuda").T.detach().requires_grad_()
    strided.grad = lucid.ones(3, 4, device="cuda")
    host = lucid.ones(3, device="cpu", requires_grad=True)
    host.grad = lucid.ones(3, device="cpu")
    for param, words in ((strided, "contiguous"), (host, "on the CPU")):
        optimizer = optim.AdamW([param], capturable=True)
        optimizer.step()
        refused(optimizer, [param], words)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("AdamW", {"amsgrad": True}),
        ("AdamW", {"maximize": True}),
        ("SGD", {"nesterov": True}),
        ("SGD", {"momentum": 0}),
    ],
)
def test_another_form_is_an_error_of_the_replay(rng, name, change):
    """Settings that choose another kernel or other state cannot change in a graph, which says so."""
    training = Training(rng, name=name, **({"momentum": 0.9} if name == "SGD" else {}))
    step = training.recorded()
    training.optimizer.param_groups[0].update(change)
    with pytest.raises(CaptureError, match="capture anew"):
        step()


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_another_state_is_an_error_of_the_replay(rng, name):
    """A graph would go on with the state, and the settings, that were there before a load."""
    training = Training(rng, name=name)
    step = training.recorded()
    training.optimizer.load_state_dict(training.optimizer.state_dict())
    with pytest.raises(CaptureError, match=r"capture anew.*after load_state_dict"):
        step()


def test_another_tensor_as_learning_rate_is_an_error_of_the_replay(rng):
    """The graph reads the one that was there."""
    training = Training(rng, lr=lucid.tensor(0.1, device="cuda"))
    step = training.recorded()
    training.optimizer.param_groups[0]["lr"] = lucid.tensor(0.1, device="cuda")
    with pytest.raises(CaptureError, match="changed in place"):
        step()


@pytest.mark.parametrize(
    "change", [lambda params, late: params.append(late), lambda params, late: params.pop()], ids=["added", "removed"]
)
def test_another_list_of_parameters_is_an_error_of_the_replay(rng, change):
    """A group that got or lost a parameter is not the one that the graph steps."""
    training = Training(rng)
    step = training.recorded()
    before = [param.tolist() for param in training.params]
    late = lucid.ones(3, device="cuda", requires_grad=True)
    change(training.optimizer.param_groups[0]["params"], late)
    with pytest.raises(CaptureError, match="a parameter or group was added or removed"):
        step()
    assert [param.tolist() for param in training.params] == before


def test_a_capture_of_cupys_own_records_settings_as_they_are(rng):
    """Nothing is called before its replays: numbers stay, steps are counted."""
    training = Training(rng)
    step = training.recorded(told=False)
    training.optimizer.param_groups[0]["lr"] = 0.0
    before = training.params[0].tolist()
    training.give(1)
    step()
    assert training.params[0].tolist() != before
    assert training.optimizer.state[training.params[0]]["step"].item() == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_step_and_a_capture_count_as_in_place_changes(rng, name):
    """Backward through a value that they overwrite is an error, also where steps are counted on the device."""
    training = Training(rng, name)
    for step in (training.optimizer.step, lambda: Recorded(training.optimizer.step)):
        versions = [param._version for param in training.params]
        loss = (training.params[0] * training.params[0]).sum()
        step()
        assert all(param._version > before for param, before in zip(training.params, versions, strict=True))
        with pytest.raises(InplaceError, match="version"):
            loss.backward()


def test_versions_stay_at_a_replay(rng):
    """A graph changes values that autograd does not see it change."""
    training = Training(rng)
    step = training.recorded()
    versions = [param._version for param in training.params]
    step()
    assert [param._version for param in training.params] == versions


@pytest.mark.parametrize("name", [name for name in NAMES if COUNTED_THERE[name]])
def test_each_parameter_has_a_count_of_its_own(rng, name):
    """One that had no gradient in the first steps is corrected by its own count, in a graph as in eager steps."""
    seed, results = int(rng.integers(1 << 30)), []
    for kind in ("replayed", "eager", "host"):
        counted = dict.fromkeys(COUNTED_THERE[name], kind != "host")
        training = Training(np.random.default_rng(seed), name=name, **counted)
        late = [param.grad for param in training.params[1::2]]
        for param in training.params[1::2]:
            param.grad = None
        for number in range(2):
            for param, grad in zip(training.params, training.grads[number], strict=True):
                if param.grad is not None:
                    param.grad.copy_(lucid.tensor(grad, dtype=training.dtype))
            training.optimizer.step()
        for param, grad in zip(training.params[1::2], late, strict=True):
            param.grad = grad
        training.give(2)
        training.optimizer.step()
        step = Recorded(training.optimizer.step) if kind == "replayed" else training.optimizer.step
        for number in range(3, STEPS):
            training.give(number)
            step()
        results.append(training.values())
        counts = [training.optimizer.state[param]["step"].item() for param in training.params]
        assert counts == [6.0, 4.0, 6.0, 4.0, 6.0]
    assert results[0] == results[1]
    assert results[1] == results[2] or not gpu.is_simulated()


def test_parameters_of_several_dtypes_and_groups(rng):
    """Each dtype has its launches, and each group its numbers, of which one changes."""
    results = []
    start = rng.standard_normal(12)
    for replayed in (True, False):
        params = [
            lucid.tensor(start, dtype=dtype).to("cuda").requires_grad_()
            for dtype in (lucid.float32, lucid.float64, lucid.complex64, lucid.float16, lucid.float32)
        ]
        for param in params:
            param.grad = param.detach() * 0.5
        optimizer = optim.AdamW([{"params": params[:4]}, {"params": params[4:], "lr": 0.5}], lr=0.1, capturable=True)
        optimizer.step()
        step = Recorded(optimizer.step) if replayed else optimizer.step
        for _ in range(3):
            optimizer.param_groups[0]["lr"] *= 0.5
            step()
        results.append([param.detach().cpu().numpy().tobytes() for param in params])
    assert results[0] == results[1]


def test_parameters_on_several_devices(rng):
    """Without a capture each is counted where it lies, and a rate on one device is read on all."""
    devices = ["cuda:0", f"cuda:{lucid.cuda.device_count() - 1}", "cpu"]
    start, results = rng.standard_normal(12), []
    for capturable in (True, False):
        params = [lucid.tensor(start, dtype=lucid.float32, device=device).requires_grad_() for device in devices]
        rate = lucid.tensor(0.1, device="cuda:0")
        optimizer = optim.AdamW(params, lr=rate, capturable=capturable)
        for _ in range(3):
            for param in params:
                param.grad = param.detach() * 0.5
            optimizer.step()
        results.append([param.detach().cpu().numpy() for param in params])
        if capturable:
            assert [str(optimizer.state[param]["step"].device) for param in params] == devices
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_a_launch_that_fails_leaves_no_trace_in_the_next_step(rng, monkeypatch):
    """An error inside of a step ends it and comes out; state and settings are whole, and steps go on."""
    training = Training(rng)
    training.optimizer.step()
    before = training.values()
    with monkeypatch.context() as patch:
        patch.setattr("lucid.cuda.steps.numbers.RowNumbers.compute", raising(MemoryError("planted")))
        with pytest.raises(MemoryError, match="planted"):
            training.optimizer.step()
    assert training.values() == before
    training.optimizer.step()
    assert training.optimizer.state[training.params[0]]["step"].item() == 2


def test_a_capture_that_fails_leaves_the_optimizer_as_it_was(rng):
    """After an error in a captured step eager steps go on, with tables of their own."""
    training = Training(rng)
    training.optimizer.step()

    def act():
        training.optimizer.step()
        raise KeyError("planted")

    with pytest.raises(KeyError, match="planted"):
        Recorded(act)
    assert training.optimizer.state[training.params[0]]["step"].item() == 1
    training.optimizer.step()
    assert training.optimizer.state[training.params[0]]["step"].item() == 2


def test_eager_steps_between_replays(rng):
    """Both count the same counts and write what settings say for themselves."""
    seed, results = int(rng.integers(1 << 30)), []
    for replayed in (True, False):
        training = Training(np.random.default_rng(seed))
        training.optimizer.step()
        step = Recorded(training.optimizer.step) if replayed else training.optimizer.step
        for number in range(1, STEPS):
            training.give(number)
            training.optimizer.param_groups[0]["lr"] = 0.1 / number
            (step if number % 2 else training.optimizer.step)()
        results.append(training.values())
    assert results[0] == results[1]


def test_many_parameters(rng):
    """More than fit into one launch of either kernel, with counts of their own."""
    seed = int(rng.integers(1 << 30))
    given = {"shapes": [(2,)] * 501, "steps": 3}
    assert trained(seed, replayed=True, **given) == trained(seed, replayed=False, **given, capturable=False)


# ---- without a capture ----


def test_numbers_of_many_parameters_are_each_their_own(rng):
    """Behind the first launch too a parameter goes by its own count, as where the host counts."""
    values, results = [rng.standard_normal(2) for _ in range(300)], []
    for there in (True, False):
        params = [lucid.tensor(each, dtype=lucid.float32, device="cuda").requires_grad_() for each in values]
        optimizer = optim.Adam(params, lr=0.1, capturable=there)
        for start in (200, 0, 0):
            for number, param in enumerate(params):
                param.grad = lucid.full_like(param, 1.0 / (number + 1)) if number >= start else None
            optimizer.step()
        results.append([param.detach().cpu().numpy() for param in params])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_counts_are_on_the_device(rng):
    """With capturable=True they are float32 numbers there, of each parameter its own."""
    training = Training(rng)
    training.params[0].grad, kept = None, training.params[0].grad
    training.optimizer.step()
    training.params[0].grad = kept
    training.optimizer.step()
    counts = [training.optimizer.state[param]["step"] for param in training.params]
    assert all(count.is_cuda and count.dtype is lucid.float32 and count.shape == () for count in counts)
    assert [count.item() for count in counts] == [1.0, 2.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("into", [True, False])
def test_counts_move_to_where_the_loaded_setting_wants_them(rng, saved, into):
    """As in PyTorch the loaded groups decide, whatever the optimizer was made with; training goes on."""
    first, second = Training(rng, capturable=saved), Training(rng, capturable=into)
    first.give(0)
    first.optimizer.step()
    second.optimizer.load_state_dict(pickle.loads(pickle.dumps(numpy_state(first.optimizer))))
    for ours, theirs in zip(second.params, first.params, strict=True):
        ours.data.copy_(theirs.data)
    assert second.optimizer.param_groups[0]["capturable"] is saved
    assert {second.optimizer.state[param]["step"].is_cuda for param in second.params} == {saved}
    for training in (first, second):
        training.grads = first.grads
        training.give(1)
        training.optimizer.step()
    assert first.values() == second.values()


def numpy_state(optimizer):
    """Return a state dict with NumPy's arrays for tensors."""
    saved = optimizer.state_dict()
    state = {
        number: {name: value.detach().cpu().numpy() for name, value in entry.items()}
        for number, entry in saved["state"].items()
    }
    return {**saved, "state": state}


def test_a_dict_without_the_setting_keeps_the_optimizers(rng):
    """Dicts that were saved before there was `capturable` are loaded."""
    training = Training(rng)
    training.optimizer.step()
    saved = training.optimizer.state_dict()
    for group in saved["param_groups"]:
        del group["capturable"]
    training.optimizer.load_state_dict(saved)
    assert training.optimizer.param_groups[0]["capturable"] is True
    assert training.optimizer.state[training.params[0]]["step"].is_cuda


@pytest.mark.parametrize("name", [name for name in NAMES if COUNTED_THERE[name]])
def test_the_setting_may_change_between_steps(rng, name):
    """Counts, and other numbers of the state, move at the next step, and go on."""
    seed, results, (setting,) = int(rng.integers(1 << 30)), [], COUNTED_THERE[name]
    for changing in (True, False):
        training = Training(np.random.default_rng(seed), name=name)
        for number in range(STEPS):
            training.optimizer.param_groups[0][setting] = there = not changing or number % 2 == 1
            training.give(number)
            training.optimizer.step()
            state = training.optimizer.state[training.params[0]]
            assert {state[each].is_cuda for each in training.optimizer.scalars} == {there}
        results.append(training.values())
    assert results[0] == results[1] or not gpu.is_simulated()


def test_rows_without_a_kernel_take_the_same_step(rng):
    """Strided parameters, and one that is given twice, go by the counts on their device."""
    start, grad = rng.standard_normal((2, 4, 3))
    results = []
    for capturable in (True, False):
        turned = lucid.tensor(start, device="cuda").T.detach().requires_grad_()
        twice, host = (lucid.tensor(start, device=device).requires_grad_() for device in ("cuda", "cpu"))
        with pytest.warns(UserWarning, match="duplicate"):
            optimizer = optim.AdamW([turned, twice, twice, host], lr=0.1, capturable=capturable)
        for _ in range(3):
            turned.grad = lucid.tensor(grad, device="cuda").T
            twice.grad, host.grad = lucid.tensor(grad, device="cuda"), lucid.tensor(grad, device="cpu")
            optimizer.step()
        results.append([param.detach().cpu().numpy() for param in (turned, twice, host)])
        assert [optimizer.state[param]["step"].item() for param in (turned, twice, host)] == [3.0, 6.0, 3.0]
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


class Warming(optim.AdamW):
    """Numbers of its own, which the kernel of its base does not know."""

    @staticmethod
    def numbers(m, settings, step):
        """Return those of AdamW, with a step that grows."""
        made = optim.AdamW.numbers(m, settings, step)
        return {**made, "size": made["size"] * min(1.0, step / 3)}


class Reordered(optim.AdamW):
    """It has its base's settings in another order, in which the kernel of the base would take them for others."""

    ranges: ClassVar = {"weight_decay": optim.AdamW.ranges["weight_decay"], **optim.AdamW.ranges}


@pytest.mark.parametrize(
    ("kind", "other"), [(Warming, Warming), (Reordered, optim.AdamW)], ids=["makes numbers", "declares settings"]
)
def test_what_a_subclass_has_of_its_own_is_the_host_s(rng, kind, other):
    """The kernel of the base does not know it: eager steps ask `numbers`, and a capture is refused."""
    start, results = rng.standard_normal(5), []
    for each, capturable in ((other, False), (kind, False), (kind, True)):
        param = lucid.tensor(start, device="cuda").requires_grad_()
        optimizer = each([param], lr=0.1, weight_decay=0.2, capturable=capturable)
        for _ in range(4):
            param.grad = param.detach() * 0.5
            optimizer.step()
        results.append(param.tolist())
        if capturable:
            refused(optimizer, [param], "no kernel")
    assert results[0] == results[1] == results[2]


def test_a_copy_of_an_optimizer_has_state_of_its_own(rng):
    """It counts on its own, and its steps are the original's."""
    training = Training(rng)
    training.give(0)
    training.optimizer.step()
    params, optimizer = copy.deepcopy((training.params, training.optimizer))
    for param, original in zip(params, training.params, strict=True):
        param.grad = original.grad.clone()
    optimizer.step()
    assert training.optimizer.state[training.params[0]]["step"].item() == 1
    training.optimizer.step()
    for param, original in zip(params, training.params, strict=True):
        assert param.detach().cpu().numpy().tobytes() == original.detach().cpu().numpy().tobytes()


@pytest.mark.parametrize("moved", ["step", "mu_product"])
def test_one_number_of_a_state_on_the_device_moves_alone(rng, moved):
    """Where the host counts, each number is brought to it wherever the others lie, and the step is the same."""
    start, results = rng.standard_normal(5), []
    for there in (True, False):
        param = lucid.tensor(start, device="cuda").requires_grad_()
        optimizer = optim.NAdam([param], lr=0.1, capturable=False)
        for _ in range(3):
            state = optimizer.state[param]
            if there and moved in state:
                state[moved] = state[moved].cuda()
            param.grad = param.detach() * 0.5
            optimizer.step()
            assert {name: state[name].is_cuda for name in optimizer.scalars} == {"step": False, "mu_product": False}
        results.append(param.tolist())
    assert results[0] == results[1]
