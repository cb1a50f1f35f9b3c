"""The class by which tools tell tensors apart whose parts are on several processes: there are none."""

from __future__ import annotations

from lucid.distributed.whole import Refused

__all__ = ["DTensor"]


class DTensor(Refused):
    """A tensor of which each process has a part; there is none.

    Examples
    --------
    >>> import lucid
    >>> from lucid.distributed.tensor import DTensor
    >>> isinstance(lucid.ones(2), DTensor)
    False
    """
