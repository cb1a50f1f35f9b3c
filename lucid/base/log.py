"""What lucid tells of what it does on its own: the logger ``lucid.cuda`` says what is compiled, kept, or not used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


def logger() -> logging.Logger:
    """Return the logger ``lucid.cuda``."""
    import logging  # noqa: PLC0415  it takes a twentieth of the time of `import lucid`

    return logging.getLogger("lucid.cuda")
