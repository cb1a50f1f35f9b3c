"""The committed table and the page of what came back: of a GPU's facts only, unless another place is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.command import RESULTS
from benchmarks.gpu.facts import FolderError, kinds, read
from benchmarks.gpu.summary import brief, digest, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DOCS = Path(__file__).resolve().parents[2] / "docs" / "dev"
TABLE, PAGE = "gpu.json", "gpu.md"
SIMULATED = "**The facts on this page come from a simulated device: no figure is one of a GPU.**"


def table(headings: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Return a table of Markdown, a dash where it would have no line."""
    rows = [["" if cell is None else brief(cell).replace("|", r"\|") for cell in line] for line in lines]
    made = [f"| {' | '.join(row)} |" for row in (headings, ["---"] * len(headings), *rows)]
    return "\n".join(made) if rows else "-"


def figures(rows: dict[str, Any], *fields: str) -> str:
    """Return the table of a stage whose rows have fields of these names."""
    return table(("row", *fields), [(name, *map(row.get, fields)) for name, row in rows.items()])


def told(rows: dict[str, Any]) -> str:
    """Return the table of a stage whose rows have fields of their own."""
    return table(("row", "says"), [(name, words(row)) for name, row in rows.items()])


def page(made: dict[str, Any]) -> str:
    """Return the page: paragraphs, one after another."""
    device, machine, battery, tests = (made[name] for name in ("device", "machine", "battery", "tests"))
    versions = {name: each for name, each in device.items() if name != "name" and each is not None}
    failed = [f"- {each['stage']}, {each['what']}: {brief(each['why'])[:300]}" for each in made["failures"]]
    stages = made["stages"]
    return "\n\n".join(
        [
            *([SIMULATED] if made["simulated"] else []),
            "# On a GPU",
            f"{device.get('name')}, {str(machine.get('date'))[:10]}: what `python -m benchmarks.gpu` brought back.",
            "[Benchmarks](benchmarks.md#on-a-machine-with-a-gpu) says how it is measured.",
            table(("what", "is"), [*versions.items(), *((name, machine.get(name)) for name in ("python", "cpu"))]),
            "## What failed",
            "\n".join(failed) or "Nothing.",
            "## Stages",
            table([*stages[0]] if stages else [], [stage.values() for stage in stages]),
            "## Is it right",
            f"Of the table of ops {battery['right']} rows were right and {battery['failed']} failed.",
            f"Not the same bits twice: {', '.join(battery['moving']) or 'none'}.",
            f"Tests: {tests['passed']} passed, {tests['failed']} failed, {sum(tests['skipped'].values())} skipped.",
            "Large arrays, errors of output and gradients as shares of norm and largest element:",
            figures(made["large"], "ok", "errors", "bound", "mb_of_float32"),
            "Captured steps:",
            figures(made["capture"], "ok", "eager_repeats", "same_bits"),
            "## How fast is it",
            "Families of kernels, as a share of a copy:",
            figures(made["kernels"], "copy_gb_per_s", "lucid", "torch"),
            "Steps of training, in milliseconds:",
            figures(made["steps"], "queued_ms", "ms"),
            "Host time, in microseconds:",
            figures(made["host"], "lucid", "torch", "ratio", "goal"),
            "## Who was there",
            told(made["hello"]),
            "## Tools",
            told({**made["sanitizer"], **made["profile"]}) + "\n",
        ]
    )


def report(folder: Path, target: Path | None) -> None:
    """Write table and page; FolderError if there are no facts, of two kinds, or none for the project's results."""
    if not (known := kinds(read(folder))):
        raise FolderError(f"{folder} holds no facts of a run")
    if len(known) > 1:
        raise FolderError(f"{folder} holds facts of {' and of '.join(known)}: each has a report of its own")
    made = digest(folder)
    if target is None and made["simulated"]:
        raise FolderError(f"the facts in {folder} come from a simulated device: name a place for them by --to")
    paths = (target or RESULTS) / TABLE, (target or DOCS) / PAGE
    for path, content in zip(paths, (json.dumps(made, indent=2) + "\n", page(made)), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        print(f"written to {path}")
