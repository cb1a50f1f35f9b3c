"""Modules on several devices: there are none, but code may ask whether it has got one."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["DataParallel", "DistributedDataParallel"]


class DataParallel:
    """A module on several devices of one process: not there, and PyTorch advises against it.

    Examples
    --------
    >>> from lucid import nn
    >>> isinstance(nn.Linear(1, 1), nn.DataParallel)
    False
    """

    def __init__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "DataParallel: lucid trains on one device: use the module itself. In PyTorch, too, "
            "DistributedDataParallel, one process for each device, is what to use; lucid does not have that yet"
        )


class DistributedDataParallel:
    """A module of one of several processes, whose gradients are averaged over all: not there yet.

    Examples
    --------
    >>> from lucid import nn
    >>> isinstance(nn.Linear(1, 1), nn.parallel.DistributedDataParallel)
    False
    """

    def __init__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "DistributedDataParallel: lucid trains in one process, and averages no gradients over several: use the "
            "module itself, and let lucid.distributed.is_available(), which is False, decide"
        )
