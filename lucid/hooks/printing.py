"""Tables printed by rich, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

WIDTH = 160


def printed(table: Any) -> str:
    """Return rich's print of an object on a page of 160 letters: text alone, on whatever terminal."""
    from rich.console import Console  # noqa: PLC0415  # only who prints a table needs it

    console = Console(width=WIDTH, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get().rstrip()


def cells(*texts: str) -> list[Text]:
    """Return texts as cells of a table, printed as they are: a bracket in a path is no markup."""
    from rich.text import Text  # noqa: PLC0415  # as above

    return [Text(text) for text in texts]
