"""Optimisers: updates of the parameters from the gradients that backward has filled.

This holds for all of them:

- `params` is an iterable of tensors, of pairs of a name and a tensor, or of dicts: parameter groups, with the tensors
  under ``"params"`` and settings of their own.
- `lr` is the learning rate, at least 0; one in a tensor of one element is read at each step.
- `weight_decay`, at least 0, is the coefficient of an L2 penalty: ``weight_decay * p`` is added to the gradient.
- `maximize` says whether to go uphill.
- `foreach` and `fused` are accepted for PyTorch's sake; `differentiable` may only be False.
- `capturable`, of those that count steps, says that they are counted on the parameters' CUDA devices, in the state's
  ``"step"``, and that a learning rate in a tensor there is read there: no step waits for the device. `Adagrad` has no
  such setting, and its `fused` says it. A loaded state dict says it anew, and its counts move to where it wants them.
- A number out of its range raises a ValueError, and so do no parameters at all; what is of another type raises a
  TypeError. Groups that are added or loaded are checked in the same way.

In a capture of a CUDA graph `step` is recorded, and a replay does what `step` does, bit by bit:

- The state is there already: a step was taken before the capture. Who counts steps is `capturable`. Parameters are on
  CUDA devices, contiguous, and each in its group once. Otherwise `step` raises, and changes nothing.
- Numbers of the groups, such as ``group["lr"]``, may be set between replays, as a schedule does; a learning rate in a
  CUDA tensor may be changed in place. Of the rest, flags, whether there is a momentum, and which tensors hold the
  state are part of the graph: where they have changed, the replay raises. A load of a state dict is such a change.
- In a capture that was begun by CuPy itself numbers stay as they were, too.
- Hooks of a step and its closure are called by the capture alone. A replay changes values that autograd does not see it
  change: versions stay, so that backward through values of before is no error and is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.optim import lr_scheduler
from lucid.optim.adadelta import Adadelta
from lucid.optim.adagrad import Adagrad
from lucid.optim.adam import Adam
from lucid.optim.adamax import Adamax
from lucid.optim.adamw import AdamW
from lucid.optim.asgd import ASGD
from lucid.optim.lbfgs import LBFGS
from lucid.optim.matrices.adafactor import Adafactor
from lucid.optim.matrices.muon import Muon
from lucid.optim.nadam import NAdam
from lucid.optim.optimizer import Optimizer
from lucid.optim.own.lion import Lion
from lucid.optim.radam import RAdam
from lucid.optim.rmsprop import RMSprop
from lucid.optim.rprop import Rprop
from lucid.optim.sgd import SGD
from lucid.public import later as _later
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document
from lucid.settings.optimizers import OPTIMIZERS as _OPTIMIZERS

if TYPE_CHECKING:
    from lucid.optim import swa_utils
else:
    # it needs modules, which optimizers do not
    _LATER = {"swa_utils": "lucid.optim.swa_utils"}
    _submodule, __dir__ = _later(globals(), _LATER)

    def __getattr__(name: str) -> object:
        if name == "SparseAdam":
            raise AttributeError("lucid.optim has no SparseAdam, as there are no sparse tensors: use Adam")
        return _submodule(name)


__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Lion", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop", "lr_scheduler", "swa_utils",
]  # fmt: skip

_publish(globals())
_document(__all__, globals(), _OPTIMIZERS)
