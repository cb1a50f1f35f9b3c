"""A module on several devices of one process: not available in lucid."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["DataParallel"]


class DataParallel:
    """A module on several devices of one process: not there, and PyTorch advises against it.

    Parameters
    ----------
    *_args, **_kwargs
        Anything: a call raises.

    Examples
    --------
    >>> from lucid import nn
    >>> isinstance(nn.Linear(1, 1), nn.DataParallel)
    False
    """

    def __init__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "DataParallel: lucid trains on one device in each process: use the module itself, or "
            "DistributedDataParallel with a process for each device, which PyTorch recommends, too"
        )
