"""Settings of optimizers at the ends of their ranges: the end itself is taken or refused as its range says."""

from __future__ import annotations

import inspect
import math

import pytest

import lucid
from lucid import optim
from lucid.errors import LucidError
from lucid.settings import optimizers as settings
from tests.optimizers import NAMES, OTHERS, USUAL

LITTLE = 1e-9
BELOW = (-LITTLE, math.inf, math.nan)
# by the check of a range: what is in it, as near to its ends as can be, and what is not
ENDS = {
    settings.rate: ((0, 0.0, 1e30), BELOW),
    settings.at_least_zero: ((0, 0.0, 1e30), BELOW),
    settings.finite: ((-1e30, 1e30), (math.inf, -math.inf, math.nan)),
    settings.share: ((0, 1, 1.0), (-LITTLE, 1 + LITTLE, math.nan)),
    settings.decays: (
        ((0, 0), (1 - LITTLE, 1 - LITTLE)),
        ((1, 0.5), (0.5, 1.0), (-LITTLE, 0.5), (0.5, math.nan), (0.5,)),
    ),
    settings.factors: (((LITTLE, 1 + LITTLE), (1 - LITTLE, 1e30)), ((0, 2), (1, 2), (0.5, 1), (0.5, math.inf))),
    settings.limits: (((0, 0), (0, 1), (2, 2)), ((-LITTLE, 1), (2, 2 - LITTLE), (1,))),
    settings.flag: ((0, 1, True, False), (2, -1, 1.0, "yes", None)),
    settings.choice: ((0, 1, True, None), (2, -1, 1.0, "yes")),
    settings.count: ((1, 10**6), (0, -1)),
}
# those of one optimizer alone
OWN = {
    ("Muon", "ns_steps"): ((0, 99), (-1, 100)),
    ("Muon", "ns_coefficients"): (((0, -1e30, 1e30),), ((1.0, 2.0), (1.0,) * 4, (1.0, 2.0, math.nan))),
    ("Muon", "adjust_lr_fn"): ((None, "original", "match_rms_adamw"), ("other", "")),
    ("Adafactor", "beta2_decay"): ((0, -1e30), (LITTLE, math.nan)),
    ("Adafactor", "d"): ((1, 1e30), (1 - LITTLE, math.nan)),
    ("Adafactor", "eps"): (((None, 0), (0.0, 0.0)), ((-LITTLE, 0), (0, -LITTLE), (0, None), (0,))),
    ("LBFGS", "line_search_fn"): ((None, "strong_wolfe"), ("wolfe", "")),
}


def made(name, **given):
    """Return an optimizer of one parameter, with its usual settings but for what is given."""
    return getattr(optim, name)([lucid.ones(1, 1, requires_grad=True)], **{**USUAL.get(name, {}), **given})


@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_ends_of_ranges(name):
    """Each takes what is in its range as it is, for all and in a group; what is next to it is refused by its name."""
    kind = getattr(optim, name)
    for setting, check in kind.ranges.items():
        if setting not in inspect.signature(kind).parameters:
            continue
        inside, outside = OWN[name, setting] if (name, setting) in OWN else ENDS[check]
        for value in inside:
            optimizer = made(name, **{setting: value})
            assert optimizer.param_groups[0][setting] == value
            if name != "LBFGS":  # has one group
                own = made(name)
                own.add_param_group({"params": [lucid.ones(1, 1, requires_grad=True)], setting: value})
                assert own.param_groups[1][setting] == value
        for value in outside:
            own = made(name)
            for make in (
                lambda: made(name, **{setting: value}),
                lambda: own.add_param_group({"params": [lucid.ones(1, 1, requires_grad=True)], setting: value}),
            )[: 1 if name == "LBFGS" else 2]:
                with pytest.raises(
                    (ValueError, TypeError), match=setting.removesuffix("s") if setting != "lr" else "rate"
                ) as error:
                    make()
                assert isinstance(error.value, LucidError)
            assert len(own.param_groups) == 1


@pytest.mark.parametrize("given", [{"momentum": 0}, {"dampening": 0.1}, {"dampening": -0.1}])
def test_nesterov_needs_momentum_and_no_dampening(given):
    """Nesterov's momentum is one that nothing dampens, nor the reverse; in a group too."""
    with pytest.raises(ValueError, match="Nesterov momentum requires a momentum and zero dampening: got momentum"):
        made("SGD", nesterov=True, **given)
    optimizer = made("SGD", nesterov=True)
    with pytest.raises(ValueError, match="Nesterov"):
        optimizer.add_param_group({"params": [lucid.ones(1, requires_grad=True)], **given})
    assert len(optimizer.param_groups) == 1
