"""Devices of a file's tensors: the meanings of `map_location`."""

from __future__ import annotations

from typing import Any, cast

from lucid.base.device import as_device, device
from lucid.errors import ArgumentError


class Saved:
    """The memory of a saved tensor, as the argument of a `map_location` function; its device is the tensor's.

    It is on the CPU, where what was read lies; `cuda`, `cpu` and `to` give one that is elsewhere.
    """

    def __init__(self, where: Any = "cpu") -> None:
        self.device = device(where)

    def __repr__(self) -> str:
        return f"<memory of a saved tensor, on {self.device}>"

    def cpu(self) -> Saved:
        """Return one on the CPU."""
        return Saved()

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Saved:
        """Return one on a CUDA device, by default the current one."""
        del non_blocking
        return Saved("cuda" if device is None else device)

    def to(self, device: Any, non_blocking: bool = False) -> Saved:
        """Return one on a device."""
        del non_blocking
        return Saved(device)


class Locations:
    """Mapping from the saved device of a tensor to its device in this process.

    Parameters
    ----------
    given : str, device, dict, callable or None
        As `map_location` of `load`.
    """

    def __init__(self, map_location: Any) -> None:
        self.map_location = map_location
        self.raised: Exception | None = None  # what a function of the user's raised, which is no fault of the file
        if map_location is not None and not isinstance(map_location, dict) and not callable(map_location):
            self.map_location = str(as_device(map_location))

    def __call__(self, saved: str) -> str:
        """Return the device for tensors saved on `saved`.

        Raises
        ------
        ArgumentError
            If a function gives something else than memory, a device or None.
        """
        if self.map_location is None:
            return saved
        if isinstance(self.map_location, str):
            return self.map_location
        map_location: Any = self.map_location
        if isinstance(map_location, dict):
            return str(cast("dict[str, Any]", map_location).get(saved, saved))
        try:
            target = map_location(Saved(), saved)
            if target is None:
                return saved
            if isinstance(target, Saved):
                return str(target.device)
            if isinstance(target, str | device):
                return str(target)
            raise ArgumentError(
                "load: map_location: expected a function of (storage, location) that returns the storage, a device or "
                f"None, got one that returned {type(target).__qualname__}"
            )
        except Exception as error:
            self.raised = error
            raise
