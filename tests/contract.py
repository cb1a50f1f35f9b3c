"""The numbered lines of the hooks contract, which tests name by ``@pytest.mark.contract("5.4")``, and their table."""

from __future__ import annotations

import ast
import collections
import re
from pathlib import Path

CONTRACT = Path(__file__).parents[1] / "docs" / "dev" / "contract.md"


def lines() -> dict[str, str]:
    """Return the words that each line of the contract begins with; a section without lines is one line."""
    found: dict[str, str] = {}
    section = ""
    for line in CONTRACT.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## (\d+) (.*)", line):
            section = heading[1]
            found[section] = heading[2]
        elif point := re.match(r"(\d+)\. \*\*(.+?)\.\*\* ", line):
            found.pop(section, None)
            found[f"{section}.{point[1]}"] = point[2]
        elif re.match(r"\d+\. ", line):
            raise ValueError(f"{CONTRACT.name}, section {section}: a line begins with its words in bold: {line[:60]}")
    return found


LINES = lines()


def named_lines() -> dict[str, list[str]]:
    """Return for each line that a test names, here or wherever tests are, where these tests are: ``file::function``."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("test_*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            for mark in function.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) in {"contract", "pytest.mark.contract"}:
                    found[ast.literal_eval(mark.args[0])].append(f"{path.relative_to(folder)}::{function.name}")
    return found


def table(terminal) -> list[str]:
    """Return the table "line of the contract, its tests" of what pytest's terminal reporter has seen."""
    results: dict[str, dict[str, collections.Counter[str]]] = {line: {} for line in LINES}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminal.stats.get(outcome, ()):
            for name, line in getattr(report, "user_properties", ()):
                if name == "contract":
                    test = report.nodeid.removeprefix("tests/").partition("[")[0]
                    results.setdefault(line, {}).setdefault(test, collections.Counter())[outcome] += 1
    rows = []
    for line, tests in results.items():
        rows.append(f"{line:5} {LINES.get(line, 'no such line')}")
        for test, outcomes in tests.items():
            rows.append(f"      {test}: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()))
        if not tests:
            rows.append("      no test in this run")
    return rows
