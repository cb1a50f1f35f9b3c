"""What each family answers, whichever it is: shapes, modes, what it looks at, and gradients of draws that are sure."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import lucid
from lucid import distributions
from lucid.errors import SettingError
from tests.device import DEVICE
from tests.distributions.families import FAMILIES

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
    parameters = [
        lucid.tensor((a * factor).astype(dtype), device=DEVICE, requires_grad=requires_grad) for a in arrays
    ]
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
    known = (mode == mode).cpu().numpy().reshape(*ours.batch_shape, -1).all(-1)  # noqa: PLR0124  NaN is none
    assert known.all() or row.partition(",")[0] in NO_MODE
    mode = mode.where(mode == mode, draws[0])  # noqa: PLR0124
    beside = [mode] if mode.dtype is lucid.int64 or ours.event_shape else [mode, mode + 1e-12, mode - 1e-12]
    there = np.array([ours.log_prob(at).cpu().numpy() for at in beside])
    there = np.where(np.isnan(there), -np.inf, there).max(0)
    assert (there[known] >= drawn[known] - 1e-9).all()


@pytest.mark.parametrize("row", FAMILIES)
def test_each_class_looks_where_it_is_asked_to(row):
    """With `validate_args=True` NaN is refused, as a value and as a parameter, with False it is taken, on any device."""
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
