"""The one table of optimizers: rows for each, from which all tests of optimizers follow."""

from __future__ import annotations

from typing import Any

from lucid import optim
from lucid.optim.base.elementwise import ElementwiseOptimizer

NAMES = sorted(
    name
    for name in optim.__all__
    if isinstance(getattr(optim, name), type) and issubclass(getattr(optim, name), ElementwiseOptimizer)
)
"""The public optimizers of a formula on elements."""

OTHERS = {
    "Adafactor": "tests/optim/matrices/test_adafactor.py",
    "LBFGS": "tests/optim/test_lbfgs.py",
    "Muon": "tests/optim/matrices/test_muon.py",
}
"""The public optimizers whose step is no formula on elements, and where they are tested."""

USUAL: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9},
    "Adam": {},
    "AdamW": {"amsgrad": True},
    "RMSprop": {"momentum": 0.5, "centered": True},
    "Adagrad": {"lr_decay": 0.01},
    "NAdam": {},
    "RAdam": {},
    "Adamax": {},
    "Adadelta": {},
    "Rprop": {},
    "ASGD": {"t0": 2.0},
    "Lion": {},
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
    "adagrad": ("Adagrad", {}),
    "adagrad, all": (
        "Adagrad",
        {"lr_decay": 0.3, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "eps": 0.1},
    ),
    "adagrad, start and maximize": ("Adagrad", {"initial_accumulator_value": 2.0, "maximize": True}),
    "nadam": ("NAdam", {}),
    "nadam, all": ("NAdam", {"betas": (0.5, 0.7), "eps": 0.1, "momentum_decay": 9.0, "weight_decay": 0.1}),
    "nadam, decoupled decay and maximize": (
        "NAdam",
        {"betas": (0.8, 0.9), "weight_decay": 0.2, "decoupled_weight_decay": True, "maximize": True},
    ),
    "radam": ("RAdam", {}),
    "radam, betas, eps and decay": ("RAdam", {"betas": (0.5, 0.97), "eps": 0.1, "weight_decay": 0.1}),
    "radam, decoupled decay and maximize": (
        "RAdam",
        {"betas": (0.7, 0.99), "weight_decay": 0.2, "decoupled_weight_decay": True, "maximize": True},
    ),
    "radam, never adaptive": ("RAdam", {"betas": (0.7, 0.6)}),
    "adamax": ("Adamax", {}),
    "adamax, betas, eps and decay": ("Adamax", {"betas": (0.5, 0.6), "eps": 0.1, "weight_decay": 0.1}),
    "adamax, maximize": ("Adamax", {"betas": (0.8, 0.9), "maximize": True}),
    "adadelta": ("Adadelta", {}),
    "adadelta, rho, eps and decay": ("Adadelta", {"rho": 0.5, "eps": 0.1, "weight_decay": 0.1}),
    "adadelta, maximize": ("Adadelta", {"rho": 0.7, "eps": 1e-3, "maximize": True}),
    "rprop": ("Rprop", {}),
    "rprop, etas and sizes": ("Rprop", {"etas": (0.3, 1.7), "step_sizes": (0.05, 0.08)}),
    "rprop, maximize": ("Rprop", {"etas": (0.7, 1.1), "maximize": True}),
    "asgd": ("ASGD", {}),
    "asgd, all": ("ASGD", {"lambd": 0.3, "alpha": 0.5, "t0": 2.0, "weight_decay": 0.1}),
    "asgd, mean from the start and maximize": ("ASGD", {"lambd": 0.1, "alpha": 0.9, "t0": 0.0, "maximize": True}),
    "lion": ("Lion", {}),
    "lion, betas and decay": ("Lion", {"betas": (0.3, 0.6), "weight_decay": 0.2}),
    "lion, decay and maximize": ("Lion", {"betas": (0.8, 0.7), "weight_decay": 0.1, "maximize": True}),
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
    "adagrad, all",
    "nadam, all",
    "radam, betas, eps and decay",
    "adamax, betas, eps and decay",
    "adadelta, rho, eps and decay",
    "rprop, etas and sizes",
    "asgd, all",
}
"""Rows that are compared with steps that are counted on the device, too."""
