"""Address tables are kept from one step of an optimizer to the next, and used only for what they were made for."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import lucid
from lucid.cuda.launch import multi_tensor
from lucid.optim import SGD, Adam, AdamW
from tests.gradients import numbers

pytestmark = pytest.mark.gpu

SHAPES = ((3, 5), (7,), (2, 2, 4), ())
USUAL = {
    "momentum": (SGD, {"momentum": 0.9, "nesterov": True}),
    "Adam": (Adam, {"weight_decay": 0.1}),
    "AdamW": (AdamW, {"amsgrad": True}),
    "counted there": (AdamW, {"capturable": True}),
}


@pytest.fixture
def asked(monkeypatch):
    """Return a list that gets an entry whenever rows are sorted out, which takes most of the time of a step."""
    seen = []
    sort = multi_tensor._sorted_out
    monkeypatch.setattr(multi_tensor, "_sorted_out", lambda *rows, **more: (seen.append(1), sort(*rows, **more))[1])
    return seen


class Pair:
    """The same parameters on a simulated device, where kernels change them, and on the CPU, where formulas do."""

    def __init__(self, kind, rng, shapes=SHAPES):
        optimizer, self.options = USUAL[kind]
        self.rng = rng
        values = [rng.standard_normal(shape) for shape in shapes]
        self.params = {
            device: [lucid.tensor(v, dtype=lucid.float32, device=device, requires_grad=True) for v in values]
            for device in ("cuda", "cpu")
        }
        self.optimizers = {device: optimizer(p, lr=0.1, **self.options) for device, p in self.params.items()}

    def step(self, lay=lambda grad: grad, without=()):
        values = [self.rng.standard_normal(p.shape) for p in self.params["cpu"]]
        for device, params in self.params.items():
            for number, (param, value) in enumerate(zip(params, values, strict=True)):
                grad = lay(lucid.tensor(value, dtype=lucid.float32, device=device))
                param.grad = None if number in without else grad
            self.optimizers[device].step()

    def check(self):
        for here, there in zip(self.params["cuda"], self.params["cpu"], strict=True):
            np.testing.assert_allclose(numbers(here), numbers(there), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("kind", USUAL)
def test_known_rows_are_not_sorted_out_again(kind, rng, asked):
    """Later steps look at the gradients alone, also with other settings; they do what the formula does."""
    pair = Pair(kind, rng)
    pair.step()
    asked.clear()
    for rate in (0.1, 0.02, 0.3):
        for optimizer in pair.optimizers.values():
            optimizer.param_groups[0]["lr"] = rate
        pair.step()
        pair.check()
    assert not asked


def test_more_rows_than_a_launch_takes(rng, asked):
    """Each launch gets the gradients of its own rows."""
    pair = Pair("Adam", rng, [(n % 5 + 1,) for n in range(200)])
    for _ in range(3):
        pair.step()
    pair.check()
    assert len(asked) == 1


def transposed(grad):
    """Return the gradient in other strides, where it has two dimensions."""
    return grad.T.contiguous().T if grad.ndim == 2 else grad


@pytest.mark.parametrize("kind", USUAL)
def test_other_gradients_are_read_as_they_are(kind, rng):
    """A gradient that is strided, or that is missing for a step, makes no difference to the others."""
    pair = Pair(kind, rng)
    for lay, without in ((transposed, ()), (transposed, (1,)), (lambda g: g, (0, 2)), (lambda g: g, ())) * 2:
        pair.step(lay, without)
        pair.check()


@pytest.mark.parametrize("kind", USUAL)
def test_what_was_replaced_is_seen(kind, rng):
    """A parameter with other data, loaded state and settings that need more state take effect in the next step."""
    pair = Pair(kind, rng)
    pair.step()
    pair.step()
    for device, params in pair.params.items():
        params[0].data = lucid.ones(3, 5, device=device)
        params[2].data *= 2.0
    pair.step()
    pair.check()
    for optimizer in pair.optimizers.values():
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    pair.step()
    pair.check()
    if kind != "momentum":
        for optimizer in pair.optimizers.values():
            optimizer.param_groups[0]["amsgrad"] = not pair.options.get("amsgrad", False)
        pair.step()
        pair.step()
        pair.check()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))])
def test_a_copy_changes_its_own_parameters(copied, rng):
    """A copy of parameters and optimizer goes on by itself, and the original stays where it is."""
    pair = Pair("Adam", rng)
    pair.step()
    params, optimizer = copied((pair.params["cuda"], pair.optimizers["cuda"]))
    before = [numbers(p).copy() for p in pair.params["cuda"]]
    grads = [lucid.ones_like(p) for p in params]
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad
    optimizer.step()
    for old, same, other in zip(before, pair.params["cuda"], params, strict=True):
        np.testing.assert_array_equal(numbers(same), old)
        assert np.any(numbers(other) != old)
    pair.step()
    pair.check()


def test_tables_keep_nothing_alive(rng):
    """Arrays that a parameter no longer has are free after the next step, and all of them with the optimizer."""
    pair = Pair("Adam", rng)
    pair.step()
    first = weakref.ref(pair.params["cuda"][0].array)
    pair.params["cuda"][0].data = lucid.ones(3, 5, device="cuda")
    pair.step()
    pair.step()
    gc.collect()
    assert first() is None
    others = [weakref.ref(param.array) for param in pair.params["cuda"]]
    del pair
    gc.collect()
    assert not any(other() is not None for other in others)


def test_memory_that_is_given_twice_is_in_a_launch_once():
    """Two rows that change the same array would do so in no order: kernels get the first, formulas the other."""
    param, other = (lucid.ones(3, device="cuda").array for _ in range(2))
    grads = [lucid.ones(3, device="cuda").array for _ in range(3)]
    rows = [[grad, array] for grad, array in zip(grads, (param, other, param[:]), strict=True)]
    tables, left = multi_tensor.step_tables(SGD.kernel_steps[()].kernel, rows, [0, 1, 2], len(SGD.formula_numbers))
    assert [table.positions for table in tables] == [[0, 1]]
    assert left == [2]
