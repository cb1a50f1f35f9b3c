"""`python -m lucid.compat` prints the share of PyTorch's names in lucid; with namespaces, the absent ones, and why.

`python -m lucid.compat --run script.py ...` runs a script for PyTorch on lucid, as `lucid.compat.standing_in` says.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from lucid.compat.present import Name, coverage
from lucid.compat.standing_in import stand_in

if TYPE_CHECKING:
    from collections.abc import Sequence


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def _summary(rows: dict[str, list[Name]]) -> Table:
    table = Table("namespace", title="PyTorch's names in lucid")
    for heading in ("present", "of", "names", "uses"):
        table.add_column(heading, justify="right")
    for namespace, names in rows.items():
        present = [each for each in names if each.present]
        uses = _share(sum(each.use for each in present), sum(each.use for each in names))
        table.add_row(namespace, str(len(present)), str(len(names)), _share(len(present), len(names)), uses)
    return table


def _names(namespace: str, names: list[Name], *, everything: bool) -> Table:
    table = Table(namespace, title=f"{namespace}: {'all names' if everything else 'names that are absent'}")
    table.add_column("in 10,000 files", justify="right")
    table.add_column("in lucid")
    for each in names:
        if everything or not each.present:
            table.add_row(each.name, str(each.use), "yes" if each.present else each.reason)
    return table


def _run(script: str, *arguments: str) -> None:
    """Run a script as Python would, with lucid under PyTorch's name."""
    stand_in()
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of all namespaces, or of each that is named its absent names."""
    parser = argparse.ArgumentParser(prog="python -m lucid.compat", description="PyTorch's names in lucid.")
    parser.add_argument("namespace", nargs="*", help="such as torch.nn: its absent names, the most used first")
    parser.add_argument("--all", action="store_true", help="the names that are there, too")
    parser.add_argument(
        "--run",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT",
        help="run a script, in which torch is lucid, with its arguments",
    )
    chosen = parser.parse_args(arguments)
    if chosen.run is not None:
        if not chosen.run or not Path(chosen.run[0]).is_file():
            parser.error(f"--run: expected a script's path, got {chosen.run[0] if chosen.run else 'nothing'}")
        _run(*chosen.run)
        return 0
    rows = coverage()
    if unknown := [name for name in chosen.namespace if name not in rows]:
        parser.error(f"expected namespaces of {', '.join(rows)}, got {', '.join(unknown)}")
    console = Console()
    if not chosen.namespace and not chosen.all:
        console.print(_summary(rows))
        console.print(
            "uses: names weighed by how often public code uses them; a namespace as argument lists its absent names"
        )
    for namespace in chosen.namespace or (rows if chosen.all else ()):
        console.print(_names(namespace, rows[namespace], everything=chosen.all))
    return 0


if __name__ == "__main__":
    sys.exit(main())
