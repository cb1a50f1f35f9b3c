"""Optimisers: what changes the parameters once backward has filled their gradients.

This holds for all of them:

- `params` is an iterable of tensors, of pairs of a name and a tensor, or of dicts: parameter groups, with the tensors
  under ``"params"`` and settings of their own.
- `lr` is the learning rate, at least 0; one in a tensor of one element is read at each step.
- `weight_decay`, at least 0, is the coefficient of an L2 penalty: ``weight_decay * p`` is added to the gradient.
- `maximize` says whether to go uphill.
- `foreach`, `fused` and `capturable` are accepted for PyTorch's sake; `differentiable` may only be False.
- A number out of its range raises a ValueError, and so do no parameters at all; what is of another type raises a
  TypeError. Groups that are added or loaded are checked in the same way.
"""

from __future__ import annotations

from lucid.optim.adam import Adam
from lucid.optim.adamw import AdamW
from lucid.optim.optimizer import Optimizer
from lucid.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
