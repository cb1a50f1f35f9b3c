"""The settings of schedules by name: meaning, range, and the check of a constructor."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from lucid.arguments import checked
from lucid.settings.optimizers import check_of
from lucid.settings.ranges import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, WHOLE, Setting, whole, words

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
S = TypeVar("S")

SCHEDULES: dict[str, Setting] = {
    "last_epoch": Setting(
        "-1 begins a schedule; that of another one, with its ``'initial_lr'`` in the groups, goes on with it.",
        whole(-1),
    ),
    "gamma": Setting("Factor of the learning rate at each change.", NOT_NEGATIVE),
    "step_size": Setting("Number of epochs from one change to the next.", COUNT),
    "total_iters": Setting("Number of epochs until the schedule is at its end.", WHOLE),
    "end_factor": Setting("Factor of the learning rate at the end.", SHARE),
    "power": Setting("Exponent of the share of epochs that are left.", NOT_NEGATIVE),
    "T_max": Setting("Number of epochs of half a period.", COUNT),
    "T_0": Setting("Number of epochs to the first restart.", COUNT),
    "T_mult": Setting("Factor of that number at each restart.", COUNT),
    "eta_min": Setting("The lowest learning rate.", NOT_NEGATIVE),
    # up and down
    "step_size_up": Setting("Number of steps up.", COUNT),
    "step_size_down": Setting("Number of steps down; as many as up if None.", COUNT),
    "scale_mode": Setting(
        "Whether `scale_fn` gets the number of the cycle, from 1, or that of the step, from 0.",
        words("cycle", "iterations"),
    ),
    "total_steps": Setting("Number of steps; more are refused.", COUNT),
    "pct_start": Setting("Share of the steps that go up.", SHARE),
    "anneal_strategy": Setting(
        "The way from one learning rate to the next: half a period of a cosine, or a straight line.",
        words("cos", "linear"),
    ),
    "div_factor": Setting("What `max_lr` is divided by at first.", POSITIVE),
    "final_div_factor": Setting("What the first learning rate is divided by in the end.", POSITIVE),
    "cycle_momentum": Setting("Whether the momentum changes; of optimizers with betas, the first of them."),
    "base_momentum": Setting("The lowest momentum, or that of each group, at least 0; one of the betas is below 1."),
    "max_momentum": Setting("The highest momentum, or that of each group, at least 0; one of the betas is below 1."),
    # by a metric
    "patience": Setting("Number of bad epochs in a row that are let pass.", WHOLE),
    "threshold": Setting("By how much the metric must improve.", NOT_NEGATIVE),
    "threshold_mode": Setting(
        "Whether that is a share of the best metric, or a difference from it.", words("rel", "abs")
    ),
    "cooldown": Setting("Number of epochs after a reduction whose metrics do not count as bad.", WHOLE),
    "eps": Setting("A change of the learning rate that is not above it is left out.", NOT_NEGATIVE),
    "anneal_epochs": Setting("Number of epochs until the learning rate is there.", WHOLE),
}
_CHECKS = {name: check_of(setting) for name, setting in SCHEDULES.items() if setting.range}


def scheduled(init: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """Return the constructor of a schedule with its arguments checked: their types as by `checked`, then by the table.

    Raises
    ------
    SettingError
        On a call, for the first setting out of its range; ArgumentError for one of a wrong type.
    """
    signature = functools.cache(lambda: inspect.signature(init))

    @functools.wraps(init)
    def call(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            bound: dict[str, Any] = signature().bind(self, *args, **kwargs).arguments
        except TypeError:
            bound = {}  # the call itself says which argument is missing or too much
        for name, value in bound.items():
            if name in _CHECKS and value is not None:
                _CHECKS[name](value, name)
        init(self, *args, **kwargs)

    return checked(call)
