"""Logs of lucid's own decisions: the logger ``lucid.cuda`` tells of kernels compiled, kept, or not used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


def logger() -> logging.Logger:
    """Return the logger ``lucid.cuda``."""
    import logging  # noqa: PLC0415  it takes a twentieth of the time of `import lucid`

    return logging.getLogger("lucid.cuda")
