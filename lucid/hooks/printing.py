"""Tables printed by rich, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from rich.table import Table as RichTable
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


def rich_table(columns: Iterable[str], rows: Iterable[Iterable[Any]], words: Container[str]) -> RichTable:
    """Return a table for rich, its numbers by thousands and flush right, but for columns of `words`."""
    from rich.table import Table  # noqa: PLC0415  # as above

    made = Table()
    for column in columns:
        made.add_column(column, justify="left" if column in words else "right")
    for row in rows:
        made.add_row(*cells(*["" if v is None else v if isinstance(v, str) else f"{v:,.0f}" for v in row]))
    return made
