"""GradScaler: it follows PyTorch's on the CPU, does the same on a CUDA device, and refuses what makes no sense."""

from __future__ import annotations

import numpy as np
import pytest

import lucid
from lucid import amp, optim
from lucid.errors import DtypeError

both_devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
SETTINGS = {"init_scale": 2.0**10, "growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 3}
# infinite or NaN gradients in these steps
OVERFLOWS = {2: np.inf, 6: np.nan, 7: -np.inf}
STEPS = 12


class Run:
    """Some steps on two parameters whose gradients are given; what is left after each."""

    def __init__(self, library, device, scaler, gradients):
        self.scaler = scaler
        self.params = [library.tensor(np.ones(n, np.float32), device=device, requires_grad=True) for n in (5, 300)]
        self.optimizer = library.optim.SGD(self.params, lr=0.1, momentum=0.9)
        self.trace = []
        for number, grads in enumerate(gradients):
            self.optimizer.zero_grad()
            weights = [library.tensor(grad, device=device) for grad in grads]
            loss = sum((p * w).sum() for p, w in zip(self.params, weights, strict=True))
            scaler.scale(loss).backward()
            if number % 2:
                scaler.unscale_(self.optimizer)
            scaler.step(self.optimizer)
            scaler.update()
            self.trace.append([scaler.get_scale(), *(p.detach().cpu().numpy().copy() for p in self.params)])


def gradients(rng):
    made = [[rng.standard_normal(n).astype(np.float32) for n in (5, 300)] for _ in range(STEPS)]
    for step, bad in OVERFLOWS.items():
        made[step][1][rng.integers(300)] = bad
    return made


@both_devices
def test_it_follows_pytorch(rng, device):
    """Scale and parameters are PyTorch's after every step, whether gradients overflow or not."""
    torch = pytest.importorskip("torch")
    given = gradients(rng)
    ours = Run(lucid, device, amp.GradScaler(device, **SETTINGS), given)
    theirs = Run(torch, "cpu", torch.amp.GradScaler("cpu", **SETTINGS), given)
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
    x = lucid.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([x], lr=0.0)
    scaler = amp.GradScaler(init_scale=16.0, growth_factor=3.0, backoff_factor=0.25, growth_interval=2)
    factors = []
    for grad in (1.0, 1.0, 1.0, np.inf, 1.0, 1.0, 1.0, 1.0, np.nan, np.inf, 1.0):
        x.grad = lucid.tensor([grad])
        scaler.step(optimizer)
        scaler.update()
        factors.append(scaler.get_scale())
    assert factors == [16.0, 48.0, 48.0, 12.0, 12.0, 36.0, 36.0, 108.0, 27.0, 6.75, 6.75]
    scaler.update(new_scale=5.0)
    x.grad = lucid.tensor([1.0])
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 15.0


def test_several_optimizers_decide_apart():
    """Overflow in one optimizer's gradients lets the other make its step; the scale shrinks for both."""
    params = [lucid.tensor([1.0], requires_grad=True) for _ in range(2)]
    optimizers = [optim.SGD([param], lr=1.0) for param in params]
    scaler = amp.GradScaler(init_scale=8.0)
    params[0].grad, params[1].grad = lucid.tensor([4.0]), lucid.tensor([np.nan])
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert [param.item() for param in params] == [0.5, 1.0]
    assert scaler.get_scale() == 4.0


def test_gradients_that_would_vanish_in_float16_survive():
    """What the scaler is for: a product below float16's smallest number, computed in float16, reaches the parameter."""
    results = []
    for scaler in (amp.GradScaler(init_scale=2.0**14), amp.GradScaler(enabled=False)):
        weight = lucid.tensor([1.0], requires_grad=True)
        optimizer = optim.SGD([weight], lr=1.0)
        small = lucid.tensor([2e-5], dtype=lucid.float16)
        loss = ((weight.half() * small) * lucid.tensor([1e-4], dtype=lucid.float16)).float().sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        results.append(weight.grad.item())
    assert results[1] == 0
    np.testing.assert_allclose(results[0], 2e-9, rtol=2e-2)


def test_without_enabled_nothing_happens():
    """Losses and gradients stay as they are, a step is a step, and there is no state."""
    x = lucid.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([x], lr=1.0)
    scaler = amp.GradScaler(enabled=False)
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
    x = lucid.tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([x], lr=1.0)
    scaler = amp.GradScaler(init_scale=4.0)
    with pytest.raises(RuntimeError, match="no gradients were unscaled"):
        scaler.update()
    x.grad = lucid.tensor([2.0])
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="closures"):
        scaler.step(optimizer, lambda: None)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    assert (x.item(), x.grad.item(), scaler.get_scale()) == (0.5, 0.5, 4.0)


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


def test_a_state_goes_on(rng):
    """A scaler with a loaded state continues as the one that was saved; an empty state is an error."""
    given = gradients(rng)
    first = amp.GradScaler(**SETTINGS)
    Run(lucid, "cpu", first, given[:5])
    second = amp.GradScaler()
    second.load_state_dict(first.state_dict())
    for scaler in (first, second):
        Run(lucid, "cpu", scaler, given[5:])
    assert first.state_dict() == second.state_dict()
    with pytest.raises(RuntimeError, match="empty"):
        second.load_state_dict({})
