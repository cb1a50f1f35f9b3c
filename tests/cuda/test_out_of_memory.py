"""A full device: the error says what was asked for, nothing is half done, and a smaller batch goes on."""

from __future__ import annotations

import contextlib
import gc

import numpy as np
import pytest

import lucid
from lucid import nn, optim
from lucid.base import gpu
from lucid.errors import OutOfMemoryError
from tests.optimizers import USUAL

pytestmark = pytest.mark.gpu

SMALLEST = 512


@contextlib.contextmanager
def room_for(more):
    """Leave the device room for so many bytes, beside pieces between arrays, which are taken.

    CuPy gives memory back in the pieces in which it got it from the driver, and only if no array has a part of one.
    """
    # CuPy collects garbage before each error, for half a second if it looks through all that a long session holds
    gc.collect()
    gc.freeze()
    pool = gpu.cupy().get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes())
    taken, size = [], pool.free_bytes()
    while size >= SMALLEST:
        try:
            taken.append(pool.malloc(size))
        except gpu.cupy().cuda.memory.OutOfMemoryError:
            size = size // 2 // SMALLEST * SMALLEST
    assert pool.free_bytes() == 0
    pool.set_limit(size=pool.total_bytes() + more)
    try:
        yield
    finally:
        pool.set_limit(size=0)


@pytest.mark.parametrize(
    "act",
    [
        lambda x: x + 1,
        lambda x: x @ x.T,
        lambda x: x.sum(0, keepdim=True).expand(512, 64).clone(),
        lambda x: x[lucid.arange(512, device="cuda") % 3],
        lambda x: x[x > -100],
        lambda x: lucid.zeros(512, 64, device="cuda"),
        lambda x: lucid.randn(512, 64, device="cuda"),
        lambda x: lucid.tensor(np.zeros((512, 64)), device="cuda"),
        lambda x: x.double(),
        lambda x: x.mul_(x.exp()),
        lambda x: x.clone().requires_grad_(),
    ],
)
def test_what_does_not_fit_changes_nothing(act):
    """Forward, indexing, creation, transfers and in-place ops raise one error, and what is held stays as it was."""
    x = lucid.tensor(np.random.default_rng(0).standard_normal((512, 64)), dtype=lucid.float32, device="cuda")
    before, version = x.tolist(), x._version
    # warm: what is compiled and kept must not count
    act(x.clone())
    with room_for(2048):
        held = lucid.cuda.memory_allocated()
        with pytest.raises(OutOfMemoryError, match=r"cuda:0 has no room left: .*[0-9,]+ bytes.*Tensors hold [0-9,]+"):
            act(x)
        assert lucid.cuda.memory_allocated() <= held
    assert (x.tolist(), x._version) == (before, version)
    act(x)


def training_step(model, optimiser, size):
    """Take one step on a batch of `size` rows."""
    x = lucid.ones(size, 32, device="cuda")
    optimiser.zero_grad()
    (model(x) ** 2).mean().backward()
    optimiser.step()


@pytest.mark.parametrize("name", USUAL)
def test_training_goes_on_with_smaller_batches(name):
    """A batch that does not fit leaves parameters and optimiser as they were; a smaller one trains them on."""
    lucid.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 8)).to("cuda")
    twin = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 8)).to("cuda")
    twin.load_state_dict(model.state_dict())
    first, second = (getattr(optim, name)(m.parameters(), lr=1e-2) for m in (model, twin))
    training_step(model, first, 4)
    training_step(twin, second, 4)
    state = [p.tolist() for p in model.parameters()]
    # for the batch, for a product, for its tanh, and for some of the gradients
    for room in (8192, 60_000, 120_000, 200_000):
        with room_for(room), pytest.raises(OutOfMemoryError):
            training_step(model, first, 256)
        assert [p.tolist() for p in model.parameters()] == state
    with room_for(120_000):
        training_step(model, first, 4)
    training_step(twin, second, 4)
    assert [p.tolist() for p in model.parameters()] == [p.tolist() for p in twin.parameters()]


@pytest.mark.parametrize("name", USUAL)
def test_a_first_step_that_does_not_fit_steps_nothing(name):
    """Where there is no room for all of an optimiser's state, it keeps none; the step can be taken later."""
    model = nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 64)).to("cuda")
    optimiser = getattr(optim, name)(model.parameters(), **{**USUAL[name], "lr": 0.1})
    # Adagrad's is there from the beginning, but not that of parameters that are added later
    optimiser.state.clear()
    model(lucid.ones(4, 32, device="cuda")).sum().backward()
    before = [p.tolist() for p in model.parameters()]
    with room_for(15_000), pytest.raises(OutOfMemoryError):
        optimiser.step()
    assert [p.tolist() for p in model.parameters()] == before
    assert not optimiser.state
    optimiser.step()
    assert [p.tolist() for p in model.parameters()] != before


def test_pieces_beside_an_array_stay_reserved():
    """What the driver gave in one piece goes back in one piece, by `empty_cache` when no array has a part of it."""
    lucid.cuda.empty_cache()
    before = lucid.cuda.memory_reserved()
    large = lucid.zeros(1 << 20, device="cuda")
    assert lucid.cuda.memory_reserved() >= before + 4 * (1 << 20)
    del large
    small = lucid.zeros(SMALLEST, device="cuda")
    lucid.cuda.empty_cache()
    assert lucid.cuda.memory_reserved() >= lucid.cuda.memory_allocated()
    assert small.sum().item() == 0
    del small
    lucid.cuda.empty_cache()
    assert lucid.cuda.memory_reserved() <= before
