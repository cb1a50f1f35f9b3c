"""Schedules of learning rates: they change the groups of an optimizer from epoch to epoch.

This holds for all of them:

- ``scheduler.step()`` comes after ``optimizer.step()``: once an epoch, or once a batch where a schedule says so. It
  gives each group the learning rate of the next epoch; `get_last_lr` returns what it gave. The first ones are there as
  soon as the schedule is made.
- The learning rate with which a group began is its ``"initial_lr"``.
- A number in a group is replaced. A learning rate in a tensor is written in place, so that a captured graph reads the
  new one; numbers are read at each replay, too. In a capture `step` raises.
- Schedules work on what is there: two may change the same groups, one after the other.
- `last_epoch` is -1 for a schedule that begins, and otherwise the epoch that is over: groups have their
  ``"initial_lr"`` then, as the optimizer's state dict brings it.
- ``step(epoch)`` goes to an epoch, and warns.
- A state dict goes to PyTorch's schedule of the same name and back. A loaded one gives the groups what the schedule
  had given them, whichever of the two state dicts is loaded first.
- Where groups were added, schedules of the first learning rates raise; those that multiply what is there go on.
- A setting out of its range raises a ValueError, what is of another type a TypeError.
"""

from __future__ import annotations

from lucid.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from lucid.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from lucid.optim.lr_scheduler.cyclic import CyclicLR, OneCycleLR
from lucid.optim.lr_scheduler.functions import LambdaLR, MultiplicativeLR
from lucid.optim.lr_scheduler.plateau import ReduceLROnPlateau
from lucid.optim.lr_scheduler.scaling import (
    ConstantLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from lucid.optim.lr_scheduler.scheduler import LRScheduler
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document
from lucid.settings.schedules import SCHEDULES as _SCHEDULES

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

_document(__all__, globals(), _SCHEDULES)

# the base class by the name that schedules written for older versions of PyTorch import
_LRScheduler = LRScheduler

_publish(globals())
