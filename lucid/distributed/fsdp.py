"""The classes by which tools tell modules apart whose parameters are spread over processes: there are none."""

from __future__ import annotations

from typing import NoReturn

from lucid.distributed.whole import Refused, refuse

__all__ = ["FSDPModule", "FullyShardedDataParallel", "MixedPrecisionPolicy", "fully_shard"]


class FSDPModule(Refused):
    """A module that `fully_shard` has spread over processes; there is none.

    Examples
    --------
    >>> from lucid import nn
    >>> from lucid.distributed.fsdp import FSDPModule
    >>> isinstance(nn.Linear(1, 1), FSDPModule)
    False
    """


class FullyShardedDataParallel(Refused):
    """A wrapper whose module is spread over processes; there is none."""


class MixedPrecisionPolicy(Refused):
    """In which dtypes spread parameters are gathered and computed with; for `lucid.autocast` nothing is spread."""


def fully_shard(*_args: object, **_kwargs: object) -> NoReturn:
    """Raise a NotImplementedError that says what there is instead."""
    refuse("fully_shard")
