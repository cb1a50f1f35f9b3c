"""The committed table and the page of what came back: of a GPU's facts only, unless another place is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.command import RESULTS
from benchmarks.gpu.facts import FILE
from benchmarks.gpu.summary import brief, digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DOCS = Path(__file__).resolve().parents[2] / "docs"
TABLE, PAGE = "gpu.json", "gpu.md"
SIMULATED = "**The facts on this page come from a simulated device: no figure is one of a GPU.**"


def table(headings: Sequence[str], lines: Iterable[Sequence[Any]]) -> list[str]:
    """Return a table of Markdown, nothing where it would have no line."""
    made = [" | ".join("" if cell is None else brief(cell).replace("|", "\\|") for cell in line) for line in lines]
    return (
        ["", *(f"| {line} |" for line in (" | ".join(headings), "|".join("---" for _ in headings), *made)), ""]
        if made
        else []
    )


def ratios(rows: dict[str, Any], *fields: str) -> list[str]:
    """Return the table of a stage whose rows have fields of these names."""
    return table(("row", *fields), [(name, *(row.get(field) for field in fields)) for name, row in rows.items()])


def page(made: dict[str, Any]) -> str:
    """Return the page."""
    device, machine = made["device"], made["machine"]
    versions = {name: each for name, each in device.items() if name not in ("name", "count") and each is not None}
    lines = [SIMULATED, ""] if made["simulated"] else []
    lines += [
        "# On a GPU",
        "",
        f"{device.get('name')}, {str(machine.get('date'))[:10]}: what `python -m benchmarks.gpu` ",
    ]
    lines[-1] += "brought back; [benchmarks](benchmarks.md#on-a-machine-with-a-gpu) says how each figure is measured."
    lines += table(
        ("what", "version"), [*versions.items(), ("python", machine.get("python")), ("cpu", machine.get("cpu"))]
    )
    lines += [
        "## Stages",
        *table(tuple(made["stages"][0]) if made["stages"] else (), [s.values() for s in made["stages"]]),
    ]
    lines += ["## What failed", ""]
    lines += [f"- {each['stage']}, {each['what']}: {brief(each['why'])[:300]}" for each in made["failures"]] or [
        "Nothing."
    ]
    battery, tests = made["battery"], made["tests"]
    lines += [
        "",
        "## Is it right",
        "",
        f"Of the table of ops {battery['right']} rows were right and {battery['failed']} failed.",
    ]
    lines += [f"Not the same bits twice: {', '.join(battery['moving']) or 'none'}."]
    lines += [
        f"Tests: {tests['passed']} passed, {tests['failed']} failed, {sum(tests['skipped'].values())} skipped.",
        "",
    ]
    lines += ["Large arrays, errors of output and gradients as shares of norm and largest element:"]
    lines += ratios(made["large"], "ok", "errors", "bound", "mb_of_float32")
    lines += ["Captured steps:", *ratios(made["capture"], "ok", "eager_repeats", "same_bits")]
    lines += ["## How fast is it", "", "Each family of kernels as a share of a copy:"]
    lines += ratios(made["kernels"], "copy_gb_per_s", "lucid", "torch")
    lines += ["Steps of training, in milliseconds:", *ratios(made["steps"], "queued_ms", "ms")]
    lines += ["Host time in microseconds:", *ratios(made["host"], "lucid", "torch", "ratio", "goal")]
    lines += [
        "## Who was there",
        *table(("what", "says"), [(n, {k: v for k, v in r.items() if k != "row"}) for n, r in made["hello"].items()]),
    ]
    lines += [
        "## Tools",
        *table(
            ("run", "says"),
            [
                (n, {k: v for k, v in r.items() if k != "row"})
                for t in ("sanitizer", "profile")
                for n, r in made[t].items()
            ],
        ),
    ]
    return "\n".join(lines).rstrip() + "\n"


def report(folder: Path, target: Path | None) -> int:
    """Write table and page; return 0, or 1 if there are no facts, or none that belong among the project's results."""
    made = digest(folder)
    if not (folder / FILE).exists() or made["simulated"] is None:
        print(f"{folder} holds no facts of a run", file=sys.stderr)
        return 1
    if target is None and made["simulated"]:
        print(f"the facts in {folder} come from a simulated device: name a place for them by --to", file=sys.stderr)
        return 1
    paths = (target or RESULTS) / TABLE, (target or DOCS) / PAGE
    for path, content in zip(paths, (json.dumps(made, indent=2) + "\n", page(made)), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        print(f"written to {path}")
    return 0
