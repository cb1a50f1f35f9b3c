"""The settings of optimizers by name: the meaning of each, and the check of its values; checks of schedules too.

A check takes the value and the name of a setting, and raises unless the one may be the other. A class in which a name
means something else, or that alone has it, explains it in its docstring.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lucid.arguments import shown
from lucid.autograd.base import TensorBase
from lucid.errors import ArgumentError, SettingError
from lucid.settings.ranges import COUNT, DECAY, FINITE, NOT_NEGATIVE, POSITIVE, SHARE, WHOLE, Range, Setting

if TYPE_CHECKING:
    from collections.abc import Callable

# how messages call a setting, as PyTorch's do
_TITLES = {"lr": "learning rate", "eps": "epsilon value"}


def number(value: object, name: str) -> None:
    """Raise unless `value` is a number of Python's or NumPy's."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ArgumentError(f"Invalid {_title(name)}: expected a Python number, got {shown(value)}")
    try:
        float(value)
    except OverflowError:
        raise SettingError(
            f"Invalid {_title(name)}: expected a number that float64 can hold, got a larger int"
        ) from None


class InRange(NamedTuple):
    """A check: the value is in a range, of numbers, of whole ones, or of words."""

    range: Range
    or_none: bool = False

    def __call__(self, value: Any, name: str) -> None:
        """Raise unless `value` is."""
        if value is None and self.or_none:
            return
        text, holds, _, kind = self.range
        title = _title(name)
        if kind == "word":
            if not holds(value):
                got = repr(value) if isinstance(value, str) else shown(value)
                raise SettingError(f"Invalid {name}: expected {text}, got {got}")
            return
        if kind == "number":
            number(value, name)
        elif not isinstance(value, Integral) or isinstance(value, bool):
            raise ArgumentError(f"Invalid {title}: expected an int, got {shown(value)}")
        if not holds(value):
            raise SettingError(f"Invalid {title}: {value}: expected {text}")


finite, at_least_zero, above_zero = InRange(FINITE), InRange(NOT_NEGATIVE), InRange(POSITIVE)
share, decay, whole, count = InRange(SHARE), InRange(DECAY), InRange(WHOLE), InRange(COUNT)


def rate(value: object, name: str) -> None:
    """Raise unless `value` is a learning rate: a number of at least 0, or a tensor that holds one."""
    if isinstance(value, TensorBase):
        if value.array.size != 1:
            raise SettingError(
                f"Invalid {_title(name)}: Tensor {name} must be 1-element, got one of shape {tuple(value.array.shape)}"
            )
        value = float(value.array.item())
    at_least_zero(value, name)


def decays(value: object, name: str) -> None:
    """Raise unless `value` is the two decays of running means, called betas."""
    pair = two(value, name)
    if len({isinstance(decay, TensorBase) for decay in pair}) == 2:
        raise SettingError(f"{name} must be either both floats or both Tensors, got {pair[0]!r} and {pair[1]!r}")
    for index, decay in enumerate(pair):
        if isinstance(decay, TensorBase) and decay.array.size != 1:
            raise SettingError(f"Tensor {name}[{index}] must be 1-element, got one of shape {tuple(decay.array.shape)}")
        if not hasattr(decay, "__float__") or not 0.0 <= float(cast("Any", decay)) < 1.0:
            raise SettingError(
                f"Invalid {name.removesuffix('s')} parameter at index {index}: expected a number in [0, 1), got {decay}"
            )


def factors(value: object, name: str) -> None:
    """Raise unless `value` is two factors, one that shrinks and one that grows."""
    minus, plus = two(value, name)
    for each in (minus, plus):
        number(each, name)
    if not 0 < minus < 1 < plus < math.inf:
        raise SettingError(
            f"Invalid {name.removesuffix('s')} values: {minus}, {plus}: expected one in (0, 1) and one above 1, finite"
        )


def limits(value: object, name: str) -> None:
    """Raise unless `value` is the smallest and the largest of sizes."""
    smallest, largest = two(value, name)
    for each in (smallest, largest):
        number(each, name)
    if not 0 <= smallest <= largest:
        raise SettingError(
            f"Invalid {name}: {smallest}, {largest}: expected two numbers of at least 0, the smaller one first"
        )


def flag(value: object, name: str) -> None:
    """Raise unless `value` is a bool, or 0 or 1."""
    if not (isinstance(value, bool | np.bool_) or (type(value) is int and value in {0, 1})):
        raise ArgumentError(f"Invalid {name}: expected a bool, got {shown(value)}")


def choice(value: object, name: str) -> None:
    """Raise unless `value` is a bool, or None for no choice."""
    if value is not None:
        flag(value, name)


def two(value: object, name: str) -> list[Any]:
    """Return the entries of `value`; raises unless they are two."""
    if type(value) not in {tuple, list} or len(values := cast("list[Any]", value)) != 2:
        raise SettingError(f"Invalid {name}: expected two numbers, got {value}")
    return values


def _title(name: str) -> str:
    return _TITLES.get(name, f"{name} value")


OPTIMIZERS: dict[str, Setting] = {
    "lr": Setting("Learning rate, at least 0. One in a tensor of one element is read at each step.", check=rate),
    "betas": Setting(
        "Decay of the running mean of the gradient, and of that of its square, each in [0, 1).", check=decays
    ),
    "eps": Setting("Small number that keeps the divisor from zero.", NOT_NEGATIVE),
    "weight_decay": Setting(
        "Coefficient of an L2 penalty: ``weight_decay * p`` is added to the gradient of a parameter p.", NOT_NEGATIVE
    ),
    "decoupled_weight_decay": Setting(
        "Whether a parameter shrinks by ``lr * weight_decay`` of itself instead, as in `AdamW`.", check=flag
    ),
    "momentum": Setting("Factor of the running direction; 0 keeps none.", NOT_NEGATIVE),
    "amsgrad": Setting("Whether the largest mean square so far divides, instead of the last.", check=flag),
    "maximize": Setting("Whether parameters go uphill, to larger values of what was differentiated.", check=flag),
    "capturable": Setting(
        "Whether steps are counted on the CUDA devices of the parameters, as CUDA graphs need it: no step waits.",
        check=flag,
    ),
    "foreach": Setting("Accepted for PyTorch's sake: one kernel changes all parameters anyway."),
    "fused": Setting("Accepted for PyTorch's sake: one kernel changes all parameters anyway.", check=choice),
    "differentiable": Setting("Only False: a step is not recorded in the graph."),
    **dict.fromkeys(
        ("alpha", "initial_accumulator_value", "lambd", "lr_decay", "momentum_decay", "t0", "tolerance_change"),
        Setting("", NOT_NEGATIVE),
    ),
    "tolerance_grad": Setting("", NOT_NEGATIVE),
    **dict.fromkeys(("centered", "nesterov"), Setting("", check=flag)),
    **dict.fromkeys(("history_size", "max_eval", "max_iter"), Setting("", COUNT)),
    "dampening": Setting("", FINITE),
    "etas": Setting("", check=factors),
    "rho": Setting("", SHARE),
    "step_sizes": Setting("", check=limits),
}


def checks_of(names: str, **own: Callable[[Any, str], None]) -> dict[str, Callable[[Any, str], None]]:
    """Return the checks of these settings in this order: the optimizer's own, else those of the table."""
    return {name: own.get(name) or check_of(OPTIMIZERS[name]) for name in names.split()}


def check_of(setting: Setting) -> Callable[[Any, str], None]:
    """Return the check of a setting: its own, or that of its range."""
    return setting.check or InRange(cast("Range", setting.range))
