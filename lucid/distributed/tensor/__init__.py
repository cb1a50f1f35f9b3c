"""The class for the instance checks of tools that support tensors spread over processes: there are none."""

from __future__ import annotations

from lucid.distributed.whole import Refused

__all__ = ["DTensor"]


class DTensor(Refused):
    """A tensor spread over processes; there is none.

    Examples
    --------
    >>> import lucid
    >>> from lucid.distributed.tensor import DTensor
    >>> isinstance(lucid.ones(2), DTensor)
    False
    """
