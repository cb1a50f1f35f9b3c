"""What `docs/users/numpy.md` says of SciPy and scikit-learn: ``python -m tests.array_api.table`` writes it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "users" / "numpy.md"
BEGIN, END = "<!-- the table of tests/array_api/table.py -->", "<!-- the end of that table -->"


def outcomes():
    """Return what each function of `scipy_rows` gives, in a process in which SciPy looks at namespaces."""
    command = [sys.executable, "-m", "tests.array_api.scipy_rows"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PAGE.parents[1], check=False)
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def versions():
    """Return which versions the table is about: others know the standard in other functions."""
    return ", ".join(f"{name} {'.'.join(version(name).split('.')[:2])}" for name in ("scipy", "scikit-learn"))


def table(found):
    """Return the lines of the table."""
    groups = {}
    for name, how in found.items():
        module, _, function = name.rpartition(".")
        if how in {"recorded", "computed"}:
            groups.setdefault((how, module), []).append(function)
    rows = [f"| {versions()} | functions |", "|---|---|"]
    for (how, module), names in groups.items():
        rows.append(f"| `{module}`, {how} | {', '.join(f'`{name}`' for name in names)} |")
    others = [f"`{name}` ({how})" for name, how in found.items() if how not in {"recorded", "computed"}]
    return "\n".join([*rows, "", f"**Refused**: {', '.join(others)}."])


def written(page, found):
    """Return the page with the table of today."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{table(found)}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), outcomes()), encoding="utf-8")
