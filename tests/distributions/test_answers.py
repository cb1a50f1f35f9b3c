"""What each family answers, whichever it is: shapes, modes, what it looks at, and gradients of draws that are sure."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import lucid
from lucid import distributions
from lucid.errors import SettingError, ShapeError
from tests.device import DEVICE
from tests.distributions.samples import FAMILIES

# Those that have no mode for some of the parameters in the table: there it is NaN, as in PyTorch.
NO_MODE = {"Bernoulli", "Beta", "FisherSnedecor", "Kumaraswamy", "Uniform", "Wishart"}


class Asked:
    """The module of distributions, each class of which is asked to look at its values or not to."""

    def __init__(self, validate_args):
        self._validate_args = validate_args

    def __getattr__(self, name):
        found = getattr(distributions, name)
        if isinstance(found, type) and issubclass(found, distributions.Distribution):
            return functools.partial(found, validate_args=self._validate_args)
        return found


def made(row, factor=1.0, dtype=np.float64, module=distributions, requires_grad=False):
    """Return a distribution of the table, of parameters that are so much larger, and these."""
    make, arrays, _ = FAMILIES[row]
    parameters = [lucid.tensor((a * factor).astype(dtype), device=DEVICE, requires_grad=requires_grad) for a in arrays]
    return make(module, *parameters), parameters


@pytest.mark.parametrize("row", FAMILIES)
def test_each_answer_has_the_shape_of_the_batch(row):
    """Of all parameters together, and of an event where it is about values: also what only some of these tell."""
    ours, _ = made(row)
    for each in (ours, ours.expand((3, *ours.batch_shape))):
        for name in ("mean", "variance", "stddev", "mode", "entropy"):
            try:
                answer = getattr(each, name)
                answer = answer() if name == "entropy" else answer
            except NotImplementedError:
                continue
            event = () if name == "entropy" else each.event_shape
            assert tuple(answer.shape) == (*each.batch_shape, *event), name


@pytest.mark.parametrize("row", FAMILIES)
def test_nothing_is_more_likely_than_the_mode(row):
    """The density there, or right beside it where it is a bound, is at least that of any draw."""
    ours, _ = made(row, module=Asked(False))
    try:
        mode = ours.mode
    except NotImplementedError:
        return
    lucid.manual_seed(0)
    draws = ours.sample((200,))
    drawn = ours.log_prob(draws).cpu().numpy().max(0)
    known = (mode == mode).cpu().numpy().reshape(*ours.batch_shape, -1).all(-1)
    assert known.all() or row.partition(",")[0] in NO_MODE
    mode = mode.where(mode == mode, draws[0])
    beside = [mode] if mode.dtype is lucid.int64 or ours.event_shape else [mode, mode + 1e-12, mode - 1e-12]
    there = np.array([ours.log_prob(at).cpu().numpy() for at in beside])
    there = np.where(np.isnan(there), -np.inf, there).max(0)
    assert (there[known] >= drawn[known] - 1e-9).all()


@pytest.mark.parametrize("row", FAMILIES)
def test_each_class_looks_where_it_is_asked_to(row):
    """With `validate_args=True` NaN is refused, as value and as parameter; with False both are taken, on any device."""
    value = FAMILIES[row][2].astype(np.float64) * np.nan
    blind, seeing = made(row, module=Asked(False))[0], made(row, module=Asked(True))[0]
    with pytest.raises(SettingError, match="expected values"):
        seeing.log_prob(lucid.tensor(value, device=DEVICE))
    assert seeing.expand((2, *seeing.batch_shape))._validate_args is True
    assert blind.expand((2, *blind.batch_shape))._validate_args is False
    if value.dtype == FAMILIES[row][2].dtype and "Wishart" not in row:  # an index is no NaN, and NaN has no factor
        blind.log_prob(lucid.tensor(value, device=DEVICE))
    with pytest.raises(SettingError):
        made(row, np.nan, module=Asked(True))
    if "MultivariateNormal" not in row and "Wishart" not in row:
        made(row, np.nan, module=Asked(False))


@pytest.mark.parametrize("row", FAMILIES)
def test_values_are_broadcast_to_batch_and_event(row):
    """A value of size 1 along a dimension is that value along all of it, of the event too; other sizes are refused."""
    looks = made(row, module=Asked(True))[0]
    ours, value = made(row, module=Asked(None))[0], FAMILIES[row][2]
    whole = np.broadcast_to(value, np.broadcast_shapes(value.shape, (*ours.batch_shape, *ours.event_shape)))
    with lucid.no_grad():
        wide = ours.log_prob(lucid.tensor(whole, device=DEVICE)).cpu().numpy()
        np.testing.assert_array_equal(ours.log_prob(lucid.tensor(value, device=DEVICE)).cpu().numpy(), wide)
    batch = len(ours.batch_shape)
    for axis, size in enumerate((*ours.batch_shape, *ours.event_shape)):
        place = axis - batch - len(ours.event_shape)
        one = whole.take([0], place)
        event = not row.startswith("Transformed") and looks.support.check(  # what is transformed is whole
            lucid.tensor(one.repeat(size, place), device=DEVICE)
        )
        if axis < batch or (event is not False and event.all().item()):
            found = looks.log_prob(lucid.tensor(one, device=DEVICE))
            expected = looks.log_prob(lucid.tensor(one.repeat(size, place), device=DEVICE))
            np.testing.assert_allclose(found.expand(expected.shape).cpu().numpy(), expected.cpu().numpy(), rtol=1e-12)
        if size > 1:
            with pytest.raises(ShapeError):
                looks.log_prob(lucid.tensor(one.repeat(size + 1, place), device=DEVICE))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row", ["Beta", "Chi2", "Dirichlet", "Gamma", "InverseGamma"])
def test_draws_of_any_shape_have_gradients(row, dtype):
    """A draw that is sure, as one share of small concentrations is, has a gradient that is a number."""
    for factor in (1e-6, 1e-3, 1.0, 1e6):
        ours, parameters = made(row, factor, dtype, requires_grad=True)
        lucid.manual_seed(3)
        draws = ours.rsample((50,))
        grads = lucid.autograd.grad(draws.where(draws.isfinite(), 0.0).sum(), parameters, allow_unused=True)
        assert not any(grad.isnan().any() for grad in grads if grad is not None), factor
