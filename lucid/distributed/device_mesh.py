"""Classes for the instance checks of tools that support groups of devices in several dimensions: there are none."""

from __future__ import annotations

from typing import NoReturn

from lucid.distributed.whole import Refused, refuse

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh(Refused):
    """Devices of several processes in a grid; there is none, `new_group` makes groups.

    Examples
    --------
    >>> import lucid
    >>> isinstance(None, lucid.distributed.device_mesh.DeviceMesh)
    False
    """


def init_device_mesh(*_args: object, **_kwargs: object) -> NoReturn:
    """Raise a NotImplementedError that names the alternative."""
    refuse("init_device_mesh")
