"""GradScaler: it follows PyTorch's on the CPU, does the same on a CUDA device, and refuses what makes no sense."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import lucid
from lucid import amp, nn, optim
from lucid.base import gpu
from lucid.errors import CaptureError, DeviceError, DtypeError
from tests.captures import Recorded
from tests.device import DEVICE
from tests.pieces import raising

both_devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
SETTINGS = {"init_scale": 2.0**10, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 3}
# infinite or NaN gradients in these steps
OVERFLOWS = {2: np.inf, 6: np.nan, 7: -np.inf}
STEPS = 12


class Run:
    """Some steps on two parameters whose gradients are given; what is left after each."""

    def __init__(self, library, device, scaler, gradients, name="SGD", **settings):
        self.scaler = scaler
        self.params = [library.tensor(np.ones(n, np.float32), device=device, requires_grad=True) for n in (5, 300)]
        settings = settings or ({"momentum": 0.9} if name == "SGD" else {})
        self.optimizer = getattr(library.optim, name)(self.params, lr=0.1, **settings)
        self.trace = []
        for number, grads in enumerate(gradients):
            self.optimizer.zero_grad()
            weights = [library.tensor(grad, device=device) for grad in grads]
            loss = sum((p * w).sum() for p, w in zip(self.params, weights, strict=True))
            scaler.scale(loss).backward()
            if number % 2:
                scaler.unscale_(self.optimizer)
            make_step(scaler, self.optimizer)
            self.trace.append([scaler.get_scale(), *(p.detach().cpu().numpy().copy() for p in self.params)])


def make_step(scaler, *optimizers):
    """Let optimizers make their steps, and the factor follow."""
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()


def trained(values, lr, device=None, dtype=None, **settings):
    """Return a parameter of these values, its optimizer with this learning rate, and a scaler."""
    x = lucid.tensor(values, device=device, dtype=dtype, requires_grad=True)
    return x, optim.SGD([x], lr=lr), amp.GradScaler(**settings)


def gradients(rng):
    made = [[rng.standard_normal(n).astype(np.float32) for n in (5, 300)] for _ in range(STEPS)]
    for step, bad in OVERFLOWS.items():
        made[step][1][rng.integers(300)] = bad
    return made


@both_devices
@pytest.mark.parametrize(
    ("name", "settings"), [("SGD", {}), ("AdamW", {"capturable": True}), ("AdamW", {"capturable": False})]
)
def test_it_follows_pytorch(rng, device, name, settings):
    """Scale and parameters are PyTorch's after every step, whether gradients overflow or not."""
    torch = pytest.importorskip("torch")
    given = gradients(rng)
    ours = Run(lucid, device, amp.GradScaler(device, **SETTINGS), given, name, **settings)
    # PyTorch takes `capturable` on CUDA devices only
    theirs = Run(torch, "cpu", torch.amp.GradScaler("cpu", **SETTINGS), given, name)
    for (scale, *params), (their_scale, *their_params) in zip(ours.trace, theirs.trace, strict=True):
        assert scale == their_scale
        for param, their_param in zip(params, their_params, strict=True):
            # a dozen roundings of numbers of a few units, of which one may end near zero
            np.testing.assert_allclose(param, their_param, rtol=1e-6, atol=2e-6)
    assert len({scale for scale, *_ in ours.trace}) > 3
    assert ours.scaler.state_dict() == theirs.scaler.state_dict()


@both_devices
def test_a_step_with_overflow_changes_nothing(device):
    """Neither parameters nor the optimizer's state move, and the gradients stay for whoever wants to look at them."""
    x = lucid.tensor([1.0, 2.0], device=device, requires_grad=True)
    optimizer = optim.Adam([x], lr=0.1)
    scaler = amp.GradScaler(init_scale=4.0)
    x.grad = lucid.tensor([np.inf, 8.0], device=device)
    assert scaler.step(optimizer) is None
    scaler.update()
    assert x.tolist() == [1.0, 2.0]
    assert not optimizer.state
    assert scaler.get_scale() == 2.0
    np.testing.assert_array_equal(x.grad.cpu().numpy(), [np.inf, 2.0])


def test_the_factor_grows_after_an_interval_of_good_steps():
    """An overflow, and each growth, begins a new interval; a factor that is given does neither."""
    settings = {"growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 2}
    x, optimizer, scaler = trained([1.0], 0.0, init_scale=16.0, **settings)
    factors = []
    for grad in (1.0, 1.0, 1.0, np.inf, 1.0, 1.0, 1.0, 1.0, np.nan, np.inf, 1.0):
        x.grad = lucid.tensor([grad])
        make_step(scaler, optimizer)
        factors.append(scaler.get_scale())
    assert factors == [16.0, 48.0, 48.0, 12.0, 12.0, 36.0, 36.0, 108.0, 27.0, 6.75, 6.75]
    scaler.update(new_scale=5.0)
    x.grad = lucid.tensor([1.0])
    make_step(scaler, optimizer)
    assert scaler.get_scale() == 15.0


@both_devices
def test_the_factor_stays_where_float32_has_its_reciprocal(device):
    """It neither vanishes after many overflows nor becomes infinite, and the next good step is right."""
    x, optimizer, scaler = trained([1.0], 0.25, device, init_scale=2.0**10, growth_interval=1)
    scaler.scale(x.detach())
    for grad, factor in ((np.inf, 2.0**-126), (0.0, 2.0**127)):
        for _ in range(300):
            x.grad = lucid.tensor([grad], device=device)
            make_step(scaler, optimizer)
        assert scaler.get_scale() == factor
        assert x.item() == 1.0
    scaler.update(new_scale=2.0**-126)
    scaler.scale(x).backward()
    assert x.grad.item() == 0.0 + 2.0**-126
    scaler.step(optimizer)
    assert x.item() == 0.75


@both_devices
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("unscales", [False, True])
def test_gradients_that_overflow_when_the_factor_is_taken_off(device, dtype, unscales):
    """What decides about a step is what comes out: a finite gradient over a small factor may not be."""
    x, optimizer, scaler = trained([1.0, 2.0], 0.25, device, getattr(lucid, dtype), init_scale=2.0**-100)
    scaler.scale(x.detach())
    x.grad = lucid.tensor([1.0, 2.0**40], device=device, dtype=x.dtype)
    if unscales:
        scaler.unscale_(optimizer)
    make_step(scaler, optimizer)
    assert x.tolist() == [1.0, 2.0]
    assert scaler.get_scale() == 2.0**-101


@pytest.mark.parametrize(
    "devices", [("cpu", "cpu"), pytest.param(("cuda", "cuda", "cpu"), marks=pytest.mark.gpu)], ids="-".join
)
def test_several_optimizers_decide_apart(devices):
    """Overflow in one's gradients lets the other make its step, and the scale shrinks for both."""
    params = [lucid.ones(1, device=device, requires_grad=True) for device in devices]
    optimizers = [optim.SGD([param], lr=1.0) for param in params]
    for overflow in range(len(devices)):
        scaler = amp.GradScaler(init_scale=8.0)
        for number, param in enumerate(params):
            param.data.fill_(1.0)
            param.grad = lucid.full((1,), np.nan if number == overflow else 4.0, device=param.device)
        make_step(scaler, *optimizers)
        assert [param.item() for param in params] == [1.0 if n == overflow else 0.5 for n in range(len(devices))]
        assert scaler.get_scale() == 4.0


def test_gradients_that_would_vanish_in_float16_survive():
    """What the scaler is for: a product below float16's smallest number, computed in float16, reaches the parameter."""
    results = []
    for settings in ({"init_scale": 2.0**14}, {"enabled": False}):
        weight, optimizer, scaler = trained([1.0], 1.0, **settings)
        small = lucid.tensor([2e-5], dtype=lucid.float16)
        loss = ((weight.half() * small) * lucid.tensor([1e-4], dtype=lucid.float16)).float().sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        results.append(weight.grad.item())
    assert results[1] == 0
    np.testing.assert_allclose(results[0], 2e-9, rtol=2e-2)


def test_without_enabled_nothing_happens():
    """Losses and gradients stay as they are, a step is a step, and there is no state."""
    x, optimizer, scaler = trained([1.0], 1.0, enabled=False)
    loss = (x * 2).sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer, lambda: None)
    scaler.update()
    assert x.item() == -1.0
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)


def test_scale_takes_losses_in_tuples_and_lists():
    """Each loss is scaled, and the container stays of its kind."""
    scaler = amp.GradScaler(init_scale=2.0)
    losses = scaler.scale((lucid.tensor(1.0), [lucid.tensor(3.0)]))
    assert losses[0].item() == 2.0
    assert type(losses) is tuple
    assert type(losses[1]) is list
    assert losses[1][0].item() == 6.0
    with pytest.raises(TypeError, match="expected a Tensor"):
        scaler.scale(3.0)


def test_the_wrong_order_is_an_error():
    """Unscaling or stepping twice, updating before any step, closures: named, and nothing changes."""
    x, optimizer, scaler = trained([1.0], 1.0, init_scale=4.0)
    with pytest.raises(RuntimeError, match="no gradients were unscaled"):
        scaler.update()
    x.grad = lucid.tensor([2.0])
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="closures"):
        scaler.step(optimizer, lambda: None)
    with pytest.raises(RuntimeError, match="closures"):
        scaler.step(optimizer, closure=lambda: None)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    assert (x.item(), x.grad.item(), scaler.get_scale()) == (0.5, 0.5, 4.0)


def test_a_scaler_is_not_copied_in_the_middle_of_a_step():
    """What it knows of the step is of its own optimizers; before `unscale_` and after `update` copies go on."""
    x, optimizer, scaler = trained([1.0], 1.0, init_scale=4.0)
    for _ in range(2):
        x.grad = lucid.tensor([2.0])
        assert pickle.loads(pickle.dumps(scaler)).get_scale() == copy.deepcopy(scaler).get_scale() == 4.0
        scaler.unscale_(optimizer)
        for way in (pickle.dumps, copy.deepcopy):
            with pytest.raises(AssertionError, match="only be pickled or copied at the beginning of an iteration"):
                way(scaler)
        scaler.step(optimizer)
        with pytest.raises(RuntimeError, match="only be pickled or copied"):
            pickle.dumps(scaler)
        scaler.update()


def test_float16_gradients_are_refused():
    """They have lost already what scaling was to save; nothing is changed."""
    x = lucid.tensor([1.0], requires_grad=True)
    y = lucid.tensor([1.0], dtype=lucid.float16, requires_grad=True)
    x.grad, y.grad = lucid.tensor([2.0]), lucid.tensor([2.0], dtype=lucid.float16)
    with pytest.raises(DtypeError, match="wider than float16"):
        amp.GradScaler(init_scale=2.0).unscale_(optim.SGD([x, y]))
    assert x.grad.item() == 2.0


@pytest.mark.parametrize(
    "settings", [{"init_scale": 0.0}, {"growth_factor": 1.0}, {"backoff_factor": 1.0}, {"growth_interval": 0}]
)
def test_numbers_out_of_range(settings):
    """They are named when a scaler is made and when a state is loaded, which then changes nothing."""
    with pytest.raises(ValueError, match="GradScaler: expected"):
        amp.GradScaler(**settings)
    scaler = amp.GradScaler(**SETTINGS)
    before = scaler.state_dict()
    ((name, value),) = settings.items()
    with pytest.raises(ValueError, match="GradScaler: expected"):
        scaler.load_state_dict({**before, name.removeprefix("init_"): value})
    assert scaler.state_dict() == before


@pytest.mark.parametrize(
    ("name", "value", "wrong"), [("growth_factor", 4.0, 1.0), ("backoff_factor", 0.125, 1.0), ("growth_interval", 5, 0)]
)
def test_how_the_factor_changes_can_be_set(name, value, wrong):
    """What a scaler was made with is returned and replaced, by one name for each; nonsense changes nothing."""
    scaler = amp.GradScaler(**SETTINGS)
    get, put = getattr(scaler, f"get_{name}"), getattr(scaler, f"set_{name}")
    assert get() == SETTINGS[name]
    put(value)
    assert get() == scaler.state_dict()[name] == value
    for nonsense, error in ((wrong, ValueError), ("2", TypeError)):
        with pytest.raises(error):
            put(nonsense)
    assert get() == value
    assert scaler.get_scale() == SETTINGS["init_scale"]


def test_a_shorter_interval_is_over_at_the_next_step():
    """An interval that is set below the steps that were made without an overflow makes the factor grow, not never."""
    weight, optimizer, scaler = trained([1.0], 0.0, DEVICE, init_scale=8.0, growth_interval=10)
    for interval in (10, 10, 10, 2):
        scaler.set_growth_interval(interval)
        optimizer.zero_grad()
        scaler.scale(weight.sum()).backward()
        make_step(scaler, optimizer)
    assert scaler.get_scale() == 16.0


def test_a_state_goes_on(rng):
    """A scaler with a loaded state continues as the one that was saved."""
    given = gradients(rng)
    first = amp.GradScaler(**SETTINGS)
    Run(lucid, "cpu", first, given[:5])
    second = amp.GradScaler()
    second.load_state_dict(first.state_dict())
    for scaler in (first, second):
        Run(lucid, "cpu", scaler, given[5:])
    assert first.state_dict() == second.state_dict()


# ---- on a device, without the host ----

simulated = pytest.mark.skipif(not gpu.is_simulated(), reason="counts what the simulated device is asked")
OPTIMIZERS = {
    "SGD": lambda params: optim.SGD(params, lr=0.1, momentum=0.9),
    "AdamW": lambda params: optim.AdamW(params, lr=0.1, capturable=True),
    "NAdam": lambda params: optim.NAdam(params, lr=0.1, capturable=True),
    "ASGD": lambda params: optim.ASGD(params, lr=0.1, lambd=0.1, t0=0.0, capturable=True),
    "Adagrad": lambda params: optim.Adagrad(params, lr=0.1, lr_decay=0.1, fused=True),
}
each_optimizer = pytest.mark.parametrize("kind", OPTIMIZERS)


class Training:
    """A model's step on the device: weights are fed, all else is computed there."""

    def __init__(self, kind, given, *, clip=True, **settings):
        self.params = [lucid.ones(n, device="cuda", requires_grad=True) for n in (5, 300)]
        self.inputs = [lucid.zeros(n, device="cuda") for n in (5, 300)]
        self.optimizer = OPTIMIZERS[kind](self.params) if isinstance(kind, str) else kind(self.params)
        self.scaler, self.given, self.clip = amp.GradScaler(**{**SETTINGS, **settings}), given, clip

    def feed(self, number):
        for tensor, value in zip(self.inputs, self.given[number], strict=True):
            tensor.copy_(lucid.tensor(value))

    def begun(self, *, replayed):
        """Return what makes a step, after a first one."""
        self.feed(0)
        self.step()
        return Recorded(self.step) if replayed else self.step

    def step(self):
        """Take a step: forward, backward, unscaling, clipping, optimizer, scale."""
        self.optimizer.zero_grad()
        loss = sum((p * p * w).sum() for p, w in zip(self.params, self.inputs, strict=True))
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        if self.clip:
            nn.utils.clip_grad_norm_(self.params, 1.0)
        make_step(self.scaler, self.optimizer)

    def values(self):
        state = [value for param in self.params for value in self.optimizer.state[param].values()]
        tensors = [tensor.detach().cpu().numpy() for tensor in [*self.params, *state]]
        return [tensor.tobytes() for tensor in tensors], self.scaler.state_dict()


@pytest.mark.gpu
@each_optimizer
@pytest.mark.parametrize("clip", [True, False])
def test_replays_are_steps_bit_by_bit(rng, kind, clip):
    """Parameters, state, counts, scale and tracker are those of eager steps, overflows included."""
    given = gradients(rng)
    traces = []
    for replayed in (True, False):
        training = Training(kind, given, clip=clip)
        step = training.begun(replayed=replayed)
        traces.append([])
        for number in range(1, STEPS):
            training.feed(number)
            step()
            traces[-1].append(training.values())
    assert traces[0] == traces[1]
    assert len({scaler["scale"] for _, scaler in traces[0]}) > 3


@pytest.mark.gpu
def test_a_hundred_replays(rng):
    """A hundred steps with AdamW, clipping, scaler and a schedule, some of them left out: the same bits as eager."""
    given = [[rng.standard_normal(n).astype(np.float32) for n in (5, 300)] for _ in range(101)]
    for step in (7, 8, 40, 99):
        given[step][0][2] = np.inf
    results = []
    for replayed in (True, False):
        training = Training("AdamW", given)
        step = training.begun(replayed=replayed)
        for number in range(1, 101):
            training.feed(number)
            training.optimizer.param_groups[0]["lr"] = 0.1 * 0.97**number
            step()
        results.append(training.values())
        assert training.optimizer.state[training.params[0]]["step"].item() == 97
    assert results[0] == results[1]


@pytest.mark.gpu
@each_optimizer
def test_a_graphed_step_with_a_scaler(rng, kind):
    """`graphed_step` of a model with dropout, clipping and a scaler gives the bits of eager steps, overflows too."""
    results = []
    inputs = [lucid.tensor(rng.standard_normal((4, 6)), dtype=lucid.float32, device="cuda") for _ in range(20)]
    inputs[1][0, 0] = inputs[12][2, 3] = np.inf
    start = rng.standard_normal((6, 3))
    for graphed in (True, False):
        lucid.manual_seed(5)
        weight = lucid.tensor(start, dtype=lucid.float32, device="cuda").requires_grad_()
        optimizer, scaler = OPTIMIZERS[kind]([weight]), amp.GradScaler(init_scale=2.0**10, growth_interval=3)

        def step(x, weight=weight, optimizer=optimizer, scaler=scaler):
            optimizer.zero_grad()
            loss = (nn.functional.dropout(x, 0.25) @ weight).square().mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_([weight], 1.0)
            make_step(scaler, optimizer)
            return loss

        run = lucid.cuda.graphed_step(step, inputs[0]) if graphed else step
        losses = [run(x).item() for x in inputs]
        results.append((weight.detach().cpu().numpy().tobytes(), scaler.state_dict(), np.float32(losses).tobytes()))
        assert np.isfinite(weight.detach().cpu().numpy()).all()
    assert results[0] == results[1]


@pytest.mark.gpu
@each_optimizer
def test_a_step_is_left_out_on_the_device(rng, kind):
    """Where a gradient is not finite, neither parameters nor state nor counts change, from the first step on."""
    given = gradients(rng)
    bad = [given[0][0], np.full(300, np.nan, np.float32)]
    training, other = Training(kind, [bad, *given]), Training(kind, given)
    training.begun(replayed=False)
    assert all(param.tolist() == [1.0] * param.numel() for param in training.params)
    assert training.scaler.get_scale() == 2.0**8
    other.scaler.update(2.0**8)
    for number in (0, 1):
        training.feed(number + 1)
        other.feed(number)
        training.step()
        other.step()
    assert training.values()[0] == other.values()[0]


@pytest.mark.gpu
def test_state_that_begins_in_another_way_is_not_made_by_a_step_that_is_left_out(rng):
    """The first direction is taken whole whatever the dampening, also behind overflows."""
    given = gradients(rng)
    results = []
    for device in ("cuda", "cpu"):
        params = [lucid.ones(n, device=device, requires_grad=True) for n in (5, 300)]
        optimizer, scaler = optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.5), amp.GradScaler(init_scale=4.0)
        for number in (2, 0, 1, 2, 3):
            for param, grad in zip(params, given[number], strict=True):
                param.grad = lucid.tensor(grad, device=device)
            make_step(scaler, optimizer)
        results.append([param.detach().cpu().numpy() for param in params])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.gpu
@simulated
@each_optimizer
def test_a_step_neither_waits_nor_copies(rng, kind):
    """The host asks the device for nothing, from the second step on."""
    from lucid.cuda.simulator.counting import counters

    training = Training(kind, gradients(rng))
    training.step()
    counters.reset()
    for _ in range(2):
        training.step()
    assert (counters.synchronisations, counters.to_host, counters.to_device) == (0, 0, 0)


@pytest.mark.gpu
@simulated
def test_an_optimizer_that_counts_on_the_host_is_asked_for_once(rng):
    """Without capturable=True a step waits once, and what it returns tells whether there was one."""
    from lucid.cuda.simulator.counting import counters

    training = Training(optim.AdamW, gradients(rng))
    training.step()
    counters.reset()
    training.step()
    # bytes: one float32
    assert counters.to_host == 4


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["step", "update"])
def test_an_optimizer_of_the_users_own_makes_no_step_with_overflow(name):
    """One whose step does more than change elements is left out as before: the host knows."""

    class Counting(optim.SGD):
        steps = 0

    def counted(self, *given):
        self.steps += 1
        return getattr(optim.SGD, name)(self, *given)

    setattr(Counting, name, counted)
    x = lucid.ones(3, device="cuda", requires_grad=True)
    optimizer, scaler = Counting([x], lr=1.0), amp.GradScaler(init_scale=2.0)
    for value in (np.nan, 2.0):
        x.grad = lucid.full((3,), value, device="cuda")
        make_step(scaler, optimizer)
    assert optimizer.steps == 1
    assert (x.tolist(), scaler.get_scale()) == ([-1.0] * 3, 1.0)


@pytest.mark.gpu
@each_optimizer
def test_parameters_without_a_kernel_make_no_step_with_overflow(rng, kind):
    """Strided ones, and one that is given twice, stay as the others do, and so does their state."""
    start = rng.standard_normal((4, 3)).astype(np.float32)
    turned = lucid.tensor(start, device="cuda").T.detach().requires_grad_()
    twice = lucid.tensor(start, device="cuda").requires_grad_()
    with pytest.warns(UserWarning, match="duplicate"):
        optimizer = OPTIMIZERS[kind]([turned, twice, twice])
    scaler, seen = amp.GradScaler(init_scale=2.0), []
    for value in (1.0, np.inf, 1.0):
        turned.grad, twice.grad = (lucid.full_like(param, value) for param in (turned, twice))
        make_step(scaler, optimizer)
        state = [entry for param in (turned, twice) for entry in optimizer.state[param].values()]
        seen.append([tensor.detach().cpu().numpy().tobytes() for tensor in (turned, twice, *state)])
    assert seen[0] == seen[1]
    assert all(before != after for before, after in zip(seen[1], seen[2], strict=True))


@pytest.mark.gpu
def test_hooks_fire_around_a_step_that_the_device_leaves_out():
    """The host does not know of it; what `step` returns is the optimizer's."""
    (x, optimizer, scaler), seen = trained([1.0] * 3, 1.0, "cuda", init_scale=2.0), []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    x.grad = lucid.full((3,), np.inf, device="cuda")
    assert scaler.step(optimizer) is None
    assert seen == ["before", "after"]
    assert x.tolist() == [1.0] * 3
    # what follows without a scaler is a step again
    x.grad = lucid.ones(3, device="cuda")
    optimizer.step()
    assert x.tolist() == [0.0] * 3


@pytest.mark.gpu
def test_what_was_found_is_of_one_step():
    """Where a hook raises in a step that the device leaves out, the next step without the scaler is one again."""
    x, optimizer, scaler = trained([1.0] * 3, 1.0, "cuda", init_scale=2.0)
    x.grad = lucid.full((3,), np.inf, device="cuda")
    with optimizer.register_step_pre_hook(lambda *_: 1 / 0), pytest.raises(ZeroDivisionError):
        scaler.step(optimizer)
    x.grad = lucid.ones(3, device="cuda")
    optimizer.step()
    assert x.tolist() == [0.0] * 3


@pytest.mark.gpu
def test_gradients_on_several_devices():
    """One optimizer over several, and several of one device each, find what they would on one."""
    last = f"cuda:{lucid.cuda.device_count() - 1}"
    for groups in ([["cuda:0", last]], [["cuda:0"], [last]]):
        scaler = amp.GradScaler(init_scale=8.0)
        lists = [[lucid.ones(2, device=device, requires_grad=True) for device in devices] for devices in groups]
        optimizers = [optim.SGD(params, lr=1.0) for params in lists]
        params = [param for each in lists for param in each]
        for value, left in ((4.0, 0.5), (np.inf, 0.5)):
            for param in params:
                loss = scaler.scale((param * (value / 8)).sum())
                loss.backward() if value == 4.0 else setattr(param, "grad", lucid.full_like(param, value))
            for optimizer in optimizers:
                scaler.step(optimizer)
                optimizer.zero_grad()
            scaler.update()
            assert [param.tolist() for param in params] == [[left] * 2] * 2
        assert scaler.get_scale() == 4.0


@pytest.mark.gpu
def test_a_gradient_on_another_device_after_unscaling():
    """What was found on one device is no flag that kernels of the other could read: the host asks for it."""
    if lucid.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    for value, left in ((1.0, 0.5), (np.inf, 1.0)):
        first, second = (lucid.ones(300, device=f"cuda:{k}", requires_grad=True) for k in range(2))
        optimizer, scaler = optim.SGD([first, second], lr=1.0), amp.GradScaler(init_scale=2.0)
        first.grad = lucid.full((300,), value, device="cuda:0")
        scaler.unscale_(optimizer)
        second.grad = lucid.full((300,), 0.5, device="cuda:1")
        scaler.step(optimizer)
        assert first.tolist() == second.tolist() == [left] * 300


@both_devices
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_loss_is_scaled_in_its_dtype(rng, device, dtype):
    """Losses are multiplied in float32 or wider and rounded once; a factor beyond float16 makes nothing infinite."""
    wide = np.float64 if dtype == "float64" else np.float32
    for shape in ((), (7,)):
        for factor in (1000.3, 2.0**17):
            values = rng.standard_normal(shape) / factor
            x = lucid.tensor(values, dtype=getattr(lucid, dtype), device=device).requires_grad_()
            scaled = amp.GradScaler(init_scale=factor).scale(x)
            expected = lucid.tensor(x.detach().cpu().numpy().astype(wide) * wide(factor), dtype=x.dtype, device="cpu")
            assert scaled.dtype is x.dtype
            assert scaled.tolist() == expected.tolist()
            (grad,) = lucid.autograd.grad(scaled.sum() / 64, x)
            np.testing.assert_allclose(grad.detach().double().cpu().numpy(), np.full(shape, factor / 64), rtol=4e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "complex64"])
def test_gradients_that_no_kernel_takes_are_unscaled(rng, dtype):
    """Views are divided by the same factor and looked at, on the device."""
    values = rng.standard_normal((6, 4))
    x = lucid.zeros(6, 4, dtype=getattr(lucid, dtype), device="cuda").requires_grad_()
    for bad in (False, True):
        values[1, 2] = np.nan if bad else 1.0
        x.grad = lucid.tensor(values.T.copy(), dtype=x.dtype, device="cuda").T
        before = x.grad.clone()
        scaler = amp.GradScaler(init_scale=1000.3)
        scaler.unscale_(optim.SGD([x]))
        expected = before * (1 / 1000.3)
        for part in ("real", "imag") if x.dtype.is_complex else ("real",):
            ours, theirs = (getattr(each.cpu().numpy(), part).astype(np.float64) for each in (x.grad, expected))
            np.testing.assert_array_equal(ours, theirs)
        assert bool(next(iter(scaler._overflows.values())).item()) is bad


@pytest.mark.gpu
def test_a_state_goes_to_the_device_and_back(rng):
    """State dicts, copies and pickles hold numbers, and a load is seen by a graph."""
    given = gradients(rng)
    training = Training("AdamW", given)
    for number in range(3):
        training.feed(number)
        training.step()
    state = training.scaler.state_dict()
    assert state == {
        "scale": 2.0**8,
        "growth_factor": 3.0,
        "backoff_factor": 0.25,
        "growth_interval": 3,
        "_growth_tracker": 0,
    }
    assert type(state["scale"]) is float
    assert type(state["_growth_tracker"]) is int
    for twin in (copy.deepcopy(training.scaler), pickle.loads(pickle.dumps(training.scaler))):
        assert twin.state_dict() == state
        twin.update(3.0)
        assert training.scaler.get_scale() == 2.0**8
    training.feed(3)
    step = Recorded(training.step)
    training.scaler.load_state_dict({**state, "scale": 64.0, "_growth_tracker": 2})
    step()
    assert (training.scaler.get_scale(), training.scaler.state_dict()["_growth_tracker"]) == (64.0 * 3, 0)
    # losses of each dtype are scaled by what was loaded, or chosen
    for change, factor in (
        (lambda: training.scaler.load_state_dict({**state, "scale": 5.0}), 5.0),
        (lambda: training.scaler.update(7.0), 7.0),
    ):
        change()
        for dtype in (lucid.float16, lucid.float32, lucid.float64):
            assert training.scaler.scale(lucid.ones((), dtype=dtype, device="cuda")).item() == factor


def refused(act, *words):
    """Fail unless a call in a capture raises an error with these words."""

    def check():
        with pytest.raises(CaptureError) as caught:
            act()
        assert all(word in str(caught.value) for word in words), caught.value

    Recorded(check)


@pytest.mark.gpu
def test_what_the_host_reads_is_refused_in_a_capture(rng):
    """The scale, its state, and steps that only the host can leave out: where they stand, with what to do."""
    training = Training(optim.AdamW, gradients(rng))
    refused(lambda: training.scaler.scale(training.params[0].sum()), "before the capture")
    training.step()
    for act in (training.scaler.get_scale, training.scaler.state_dict):
        refused(act, "reading the factor", "before the capture or between replays")
    # which counts steps on the host
    refused(lambda: training.scaler.step(training.optimizer), "AdamW", "capturable=True")
    x = lucid.ones(1, device="cpu", requires_grad=True)
    x.grad = lucid.ones(1, device="cpu")
    refused(lambda: training.scaler.unscale_(optim.SGD([x])), "on the CPU", "captured")


@pytest.mark.gpu
def test_parameters_without_gradients_may_lie_anywhere(rng):
    """They are not stepped, and no reason to ask the host: a capture takes the step of the others."""
    param, frozen = (lucid.ones(4, device=device, requires_grad=True) for device in ("cuda", "cpu"))
    optimizer, scaler = optim.AdamW([param, frozen], lr=0.1, capturable=True), amp.GradScaler("cuda")
    given = lucid.tensor(rng.standard_normal(4), dtype=lucid.float32, device="cuda")

    def step():
        param.grad = None
        scaler.scale((param * given).sum()).backward()
        make_step(scaler, optimizer)

    step()
    before = param.tolist()
    Recorded(step)()
    assert param.tolist() != before
    assert frozen.tolist() == [1.0] * 4


@pytest.mark.gpu
def test_a_norm_that_must_be_finite_is_refused_in_a_capture():
    """Whether it is, only the host can raise; without the question a clip is recorded."""
    x = lucid.ones(4, device="cuda", requires_grad=True)
    x.grad = lucid.full((4,), 2.0, device="cuda")
    refused(lambda: nn.utils.clip_grad_norm_([x], 1.0, error_if_nonfinite=True), "error_if_nonfinite=False")
    assert x.grad.tolist() == [2.0] * 4
    clip = Recorded(lambda: (nn.utils.clip_grad_norm_([x], 1.0), nn.utils.clip_grad_value_([x], 0.25)))
    clip()
    assert clip.result[0].item() == 4.0
    assert x.grad.tolist() == [0.25] * 4


@pytest.mark.parametrize("kind", [optim.SGD, optim.LBFGS])
def test_an_optimizer_without_gradients_makes_no_step(kind):
    """It is refused, as in PyTorch: a factor that grows by steps of nothing would say nothing."""
    scaler, param = lucid.amp.GradScaler(), lucid.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no parameter of the optimizer has a gradient"):
        scaler.step(kind([param], lr=0.1))


@pytest.mark.gpu
@pytest.mark.parametrize("capturable", [False, True])
def test_a_step_that_was_refused_is_made_once_its_state_is_moved(capturable):
    """Gradients are not unscaled, and the scaler does not take the step for made."""
    weight = lucid.tensor([1.0, 2.0], requires_grad=True)
    optimizer = lucid.optim.Adam([weight], lr=0.5, capturable=capturable)
    scaler = lucid.amp.GradScaler(init_scale=4.0)
    for device in ("cpu", "cuda"):
        weight.data, weight.grad = weight.detach().to(device), None
        scaler.scale((weight * 3).sum()).backward()
        if device == "cuda":
            with pytest.raises(DeviceError, match="lies on cuda:0, and its exp_avg on cpu"):
                scaler.step(optimizer)
            assert weight.grad.tolist() == [12, 12]
            assert weight.grad._version == 0
            optimizer.load_state_dict(optimizer.state_dict())
        make_step(scaler, optimizer)
    np.testing.assert_allclose(weight.tolist(), [0, 1], atol=1e-6)
    assert scaler.get_scale() == 4


def test_the_state_of_a_scaler_that_was_off():
    """It is empty, and is refused by one that is on, with the reason; one that is off takes any."""
    state = amp.GradScaler(enabled=False).state_dict()
    assert state == {}
    with pytest.raises(RuntimeError, match="the state dict is empty: it was saved from a scaler with enabled=False"):
        amp.GradScaler().load_state_dict(state)
    amp.GradScaler(enabled=False).load_state_dict(state)


def test_an_optimizer_of_the_users_own():
    """What has groups of parameters and a step is one, of whatever class: gradients are unscaled, and looked at."""

    class Plain:
        def __init__(self, weight):
            self.param_groups, self.steps = [{"params": [weight]}], []

        def step(self):
            (weight,) = self.param_groups[0]["params"]
            self.steps.append(weight.grad.tolist())

    weight = lucid.tensor([1.0, 2.0], device=DEVICE, requires_grad=True)
    optimizer, scaler = Plain(weight), amp.GradScaler(init_scale=8.0)
    for factor in (3.0, float("inf")):
        weight.grad = None
        scaler.scale((weight * factor).sum()).backward()
        make_step(scaler, optimizer)
    assert optimizer.steps == [[3.0, 3.0]]
    assert scaler.get_scale() == 4.0


def test_a_step_that_raises_can_be_made_again():
    """The scaler does not take a step of an optimizer for made that ended in an error."""
    weight, optimizer, scaler = trained([1.0, 2.0], 1.0, DEVICE, init_scale=8.0)
    scaler.scale((weight * 3).sum()).backward()

    with optimizer.register_step_pre_hook(raising(KeyError("not now"))), pytest.raises(KeyError, match="not now"):
        scaler.step(optimizer)
    scaler.step(optimizer)
    assert weight.tolist() == [-2.0, -1.0]
    with pytest.raises(RuntimeError, match="already been called since the last update"):
        scaler.step(optimizer)
