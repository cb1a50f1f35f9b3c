"""The refusal to spread a model or a tensor over processes, as each process has the whole of it here."""

from __future__ import annotations

from typing import NoReturn


def refuse(what: str) -> NoReturn:
    """Raise a NotImplementedError that names the alternative."""
    raise NotImplementedError(
        f"{what}: each process of lucid has whole models and tensors, and none is spread over several: "
        "nn.parallel.DistributedDataParallel trains copies of a model in several processes"
    )


class Refused:
    """The base of objects spread over processes: nothing is an instance, and creation raises a NotImplementedError."""

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        refuse(type(self).__name__)
