"""Optimisers: what changes the parameters once backward has filled their gradients."""

from __future__ import annotations

from lucid.optim.adam import Adam
from lucid.optim.adamw import AdamW
from lucid.optim.optimizer import Optimizer
from lucid.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
