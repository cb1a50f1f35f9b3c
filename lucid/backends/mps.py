"""Apple's devices: not available, as lucid has no kernels for them."""

from __future__ import annotations

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """Return False: there is no such device.

    Examples
    --------
    >>> import lucid
    >>> lucid.backends.mps.is_available()
    False
    """
    return False


def is_built() -> bool:
    """Return False: there are no kernels for it.

    Examples
    --------
    >>> import lucid
    >>> lucid.backends.mps.is_built()
    False
    """
    return False
