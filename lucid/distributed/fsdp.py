"""Classes for the instance checks of tools that support modules spread over processes: there are none."""

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
    """A wrapper of a module spread over processes; there is none."""


class MixedPrecisionPolicy(Refused):
    """The dtypes for gathering spread parameters and for computing with them; `lucid.autocast` spreads nothing."""


def fully_shard(*_args: object, **_kwargs: object) -> NoReturn:
    """Raise a NotImplementedError that names the alternative."""
    refuse("fully_shard")
