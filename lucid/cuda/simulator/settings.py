"""The settings of the simulated device, read from the environment."""

from __future__ import annotations

import os

from lucid.errors import SettingError

NVRTC = "LUCID_SIMULATOR_NVRTC"


def whole_number(name: str, default: int, most: int) -> int:
    """Value of an environment variable; the default if it is not set or empty.

    Raises
    ------
    SettingError
        If it holds anything but a whole number of 0 to `most`.
    """
    text = os.environ.get(name) or str(default)
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(most)) or int(text) > most:
        raise SettingError(f"the environment variable {name} holds a whole number of 0 to {most:,}, got {text!r}")
    return int(text)


def nvrtc() -> bool:
    """Whether NVIDIA's compiler compiles each source too: under LUCID_SIMULATOR_NVRTC=1."""
    return whole_number(NVRTC, 0, 1) == 1
