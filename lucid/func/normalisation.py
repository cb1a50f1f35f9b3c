"""Batch normalisation without running statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.arguments import checked
from lucid.nn.layers.normalisation.batch import BatchNorm

if TYPE_CHECKING:
    from lucid.nn.module.module import Module


@checked
def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Return `root` after taking the running statistics off its batch normalisations.

    They take the statistics of each batch, in evaluation too, and a call changes nothing of the module.

    Parameters
    ----------
    root : Module

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> model = lucid.func.replace_all_batch_norm_modules_(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
    >>> [name for name, _ in model.named_buffers()]
    []
    """
    for module in root.modules():
        if isinstance(module, BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
