"""The page of measured figures, from the files in benchmarks/results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

INTRODUCTION = """# Measured figures

What `benchmarks/results` holds: written by a program, never by hand. Each row is the same work in lucid and in PyTorch,
in turn in one run, and its ratio is lucid's time, or memory, by PyTorch's: **what is slower than PyTorch is bold**.
[Benchmarks](../dev/benchmarks.md) says what a row does, how ratios come about, and how to repeat them.

No figure here is of a GPU: lucid has not been run on one yet.
"""
TITLES = {
    "cpu": ("On the CPU", "python -m benchmarks"),
    "data": ("Loaders", "python -m benchmarks.data"),
    "host": ("Time of the host on the CUDA path, with nothing executed on the device", "python -m benchmarks.host"),
    "cold": ("First step of a process, with compiling", "python -m benchmarks.cold"),
}


def write(results: Path, page: Path) -> None:
    """Write the page, if it has changed."""
    text = INTRODUCTION
    for name, (title, command) in TITLES.items():
        content = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
        table = of_ratios(content["rows"]) if "ratio" in content["rows"][0] else of_seconds(content["rows"])
        text += f"\n## {title}\n\n`{command}`, {of_machine(content['machine'])}.\n\n{table}"
    page.parent.mkdir(exist_ok=True)
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def of_machine(machine: dict[str, Any]) -> str:
    """Return the words for a machine and a date."""
    return (
        f"on {machine['date'][:10]}: {machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, "
        f"NumPy {machine['numpy']}, PyTorch {machine['torch']}"
    )


def of_ratios(rows: list[dict[str, Any]]) -> str:
    """Return the table of rows beside PyTorch."""
    text = "| row | lucid | PyTorch | ratio | goal |\n|---|---:|---:|---:|---:|\n"
    for row in rows:
        if row["not_run"]:
            text += f"| {row['name']} | | | not run: {row['not_run']} | |\n"
            continue
        ratio = f"{row['ratio']:.2f}"
        goal = (
            ""
            if row["budget"] is None
            else f"{row['budget']:g}" + ("" if row["reached"] else ",\N{NO-BREAK SPACE}missed")
        )
        lucid, torch = (measured(row[key], row["unit"]) for key in ("lucid_median", "torch_median"))
        text += f"| {row['name']} | {lucid} | {torch} | {f'**{ratio}**' if row['ratio'] > 1 else ratio} | {goal} |\n"
    return text


def measured(value: float, unit: str) -> str:
    """Return a figure with its unit; of times, microseconds below a millisecond."""
    if unit == "us":
        value, unit = (value / 1000, "ms") if value >= 1000 else (value, "µs")
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}\N{NO-BREAK SPACE}{unit}"


def of_seconds(rows: list[dict[str, Any]]) -> str:
    """Return the table of first steps."""
    text = "| model | kernels | seconds | compilations | kernels built |\n|---|---|---:|---:|---:|\n"
    for row in rows:
        text += f"| {row['model']} | {row['way']} | {row['seconds']:.1f} | {row['compilations']} | {row['kernels']} |\n"
    return text
