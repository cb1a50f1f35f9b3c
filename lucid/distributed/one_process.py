"""What all of `lucid.distributed` that needs several processes says."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["Refused", "refuse"]


def refuse(what: str) -> NoReturn:
    """Raise a NotImplementedError that says what there is instead."""
    raise NotImplementedError(
        f"{what}: lucid trains in one process, on one device: start the script without torchrun, and let "
        "lucid.distributed.is_available(), which is False, decide what it calls"
    )


class Refused:
    """What only several processes have: nothing is an instance, and making one raises a NotImplementedError."""

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        refuse(type(self).__name__)
