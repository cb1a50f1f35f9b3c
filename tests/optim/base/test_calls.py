"""How many functions of Python a settled step calls: on a CUDA device as many for any number of parameters."""

from __future__ import annotations

import gc

import pytest

import lucid
from lucid import hooks, nn, optim
from lucid.cpu.functions import BUILD
from tests.autograd.calls import calls
from tests.device import DEVICE
from tests.optimizers import COUNTED_THERE, NAMES, USUAL

# The most calls for each parameter, on the CPU and on a CUDA device, and the most beside. Lower them when a change
# makes a step cheaper.
FOR_EACH = 9, 0
BESIDE = 80
# with a compiled loop on the CPU, of which the address of each gradient is asked for
BY_A_LOOP = 1, 85
# a look at whether all gradients are on one device is among these
BESIDE_CLIPPING = 140
FEW, MANY = 10, 60


def stepped(name, count, **settings):
    """Return what takes a step of so many parameters, of several shapes, behind the first two."""
    params = [lucid.ones(2 + number % 3, device=DEVICE, requires_grad=True) for number in range(count)]
    for param in params:
        param.grad = lucid.ones_like(param)
    optimizer = getattr(optim, name)(params, lr=0.01, **{**USUAL[name], **settings})
    for _ in range(2):
        optimizer.step()
    return optimizer


def counted(make):
    """Return how many functions a call calls for each parameter more, and for few."""
    gc.collect()  # values that another test had kept everywhere would be looked for
    few, many = (len(calls(make(count))) for count in (FEW, MANY))
    return (many - few) / (MANY - FEW), few


def check(make, *, compiled=False):
    """Fail if a step calls more than these."""
    each, beside = BY_A_LOOP if compiled and DEVICE == "cpu" else (FOR_EACH[DEVICE == "cuda"], BESIDE)
    for_each, few = counted(make)
    assert for_each <= each
    assert few - FEW * for_each <= beside


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_settled_step(name, compiled, monkeypatch):
    """No function is called for each parameter, but on the CPU what the formula takes."""
    monkeypatch.setattr("lucid.backends.cpu.compiled", compiled)
    for step in getattr(getattr(optim, name), "kernel_steps", {}).values():
        if step.loop is not None:
            step.loop(BUILD, "float")  # which is not compiled within what is counted
    check(lambda count: stepped(name, count).step, compiled=compiled)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in NAMES if COUNTED_THERE[name]])
def test_a_settled_step_that_is_counted_on_the_device(name):
    """Nor where numbers are computed there."""
    check(lambda count: stepped(name, count, **COUNTED_THERE[name]).step)


CLIPPING = {
    "norm": lambda params: nn.utils.clip_grad_norm_(params, 0.5),
    "largest": lambda params: nn.utils.clip_grad_norm_(params, 0.5, "inf"),
    "value": lambda params: nn.utils.clip_grad_value_(params, 0.5),
    "total": lambda params: nn.utils.get_total_norm([param.grad for param in params]),
}


@pytest.mark.gpu
@pytest.mark.parametrize("clip", CLIPPING.values(), ids=CLIPPING)
def test_clipping(clip):
    """Gradients on the device are looked at without a call for each, whether they were before or not."""

    def make(count):
        params = [lucid.ones(2 + number % 3, device="cuda", requires_grad=True) for number in range(count)]
        for param in params:
            param.grad = lucid.ones_like(param)
        clip(params)
        return lambda: clip(params)

    for_each, few = counted(make)
    # of `get_total_norm`, the property `grad` of this test
    assert for_each <= (clip is CLIPPING["total"])
    assert few - FEW * for_each <= BESIDE_CLIPPING


@pytest.mark.gpu
def test_unscaling():
    """Nor does a `GradScaler` call one for each."""

    def make(count):
        params = [lucid.ones(2 + number % 3, device="cuda", requires_grad=True) for number in range(count)]
        for param in params:
            param.grad = lucid.ones_like(param)
        optimizer, scaler = optim.SGD(params), lucid.amp.GradScaler()
        scaler.scale(params[0].sum())
        scaler.step(optimizer)
        scaler.update()
        return lambda: scaler.unscale_(optimizer)

    for_each, few = counted(make)
    assert for_each == 0
    assert few <= BESIDE_CLIPPING


@pytest.mark.gpu
def test_a_step_beside_kept_values(rng):
    """Nor is one called for each parameter where a block of `hooks.capture` has kept values."""
    model = nn.Linear(3, 2, device="cuda")
    with hooks.capture(model, "") as kept:
        model(lucid.tensor(rng.standard_normal((4, 3)), dtype=lucid.float32, device="cuda"))
    check(lambda count: stepped("Adam", count).step)
    assert kept["", "output"].shape == (4, 2)
