"""The one table of optimizers: rows for each, from which all tests of optimizers follow."""

from __future__ import annotations

from typing import Any

from lucid import optim

NAMES = sorted(
    name for name in optim.__all__ if issubclass(getattr(optim, name), optim.Optimizer) and name != "Optimizer"
)
"""The public optimizers."""

USUAL: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9},
    "Adam": {},
    "AdamW": {"amsgrad": True},
    "RMSprop": {"momentum": 0.5, "centered": True},
}
"""For each the settings with which it keeps state, for tests of what is the same for all."""

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {}),
    "sgd, decay": ("SGD", {"weight_decay": 0.3}),
    "sgd, decay and maximize": ("SGD", {"weight_decay": 0.2, "maximize": True}),
    "sgd, momentum": ("SGD", {"momentum": 0.9}),
    "sgd, dampening and decay": ("SGD", {"momentum": 0.8, "dampening": 0.3, "weight_decay": 0.1}),
    "sgd, nesterov and decay": ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "sgd, nesterov and maximize": ("SGD", {"momentum": 0.7, "nesterov": True, "maximize": True}),
    "adam": ("Adam", {}),
    "adam, betas and eps": ("Adam", {"betas": (0.3, 0.7), "eps": 0.5}),
    "adam, no first moment": ("Adam", {"betas": (0.0, 0.99)}),
    "adam, no eps": ("Adam", {"eps": 0.0}),
    "adam, decay": ("Adam", {"weight_decay": 0.05}),
    "adam, decay and maximize": ("Adam", {"weight_decay": 0.3, "maximize": True}),
    "adam, amsgrad": ("Adam", {"betas": (0.5, 0.3), "amsgrad": True}),
    "adam, decoupled decay": ("Adam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "adamw": ("AdamW", {}),
    "adamw, betas, eps and amsgrad": ("AdamW", {"betas": (0.5, 0.6), "eps": 1e-3, "amsgrad": True}),
    "adamw, amsgrad, decay and maximize": ("AdamW", {"amsgrad": True, "weight_decay": 0.3, "maximize": True}),
    "rmsprop": ("RMSprop", {}),
    "rmsprop, alpha, eps and decay": ("RMSprop", {"alpha": 0.3, "eps": 0.5, "weight_decay": 0.1}),
    "rmsprop, momentum and maximize": ("RMSprop", {"momentum": 0.6, "maximize": True}),
    "rmsprop, centered": ("RMSprop", {"alpha": 0.7, "centered": True, "eps": 0.1}),
    "rmsprop, all": ("RMSprop", {"alpha": 0.8, "momentum": 0.4, "centered": True, "weight_decay": 0.2, "eps": 0.01}),
}
"""Rows on which each is compared with its formula, with PyTorch's, and on a device with the CPU's."""

COUNTED_THERE: dict[str, dict[str, Any]] = {
    name: {kind.counted_by: True} if kind.scalars else {} for name in NAMES for kind in [getattr(optim, name)]
}
"""For each the setting by which it can be captured."""

COUNTED_ROWS = {
    "adam, decay and maximize",
    "adamw",
    "adamw, amsgrad, decay and maximize",
    "rmsprop, all",
}
"""Rows that are compared with steps that are counted on the device, too."""
