"""What rich prints, as text."""

from __future__ import annotations

from typing import Any

WIDTH = 160


def printed(table: Any) -> str:
    """Return what rich prints of an object on a page of 160 letters, without colours."""
    from rich.console import Console  # noqa: PLC0415  # only who prints a table needs it

    console = Console(width=WIDTH, no_color=True)
    with console.capture() as captured:
        console.print(table)
    return captured.get().rstrip()
