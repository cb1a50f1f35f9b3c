"""The order of hooks in two processes that docs/users/distributed.md shows is that of a run now."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_document_has_what_a_run_gives(tmp_path):
    """The table is, to the letter, that of a run now, and the picture has the labels of one drawn now."""
    script = runpy.run_path(str(ROOT / "examples/hooks/two_ranks.py"))
    ranks = script["both"]()
    page = (ROOT / "docs/users/distributed.md").read_text(encoding="utf-8")
    assert script["RECORD"].findall(page) == [script["table"](ranks)]
    script["picture"](ranks, tmp_path / "now.svg")
    drawn, kept = (
        [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip().startswith("<!--")]
        for path in (tmp_path / "now.svg", ROOT / "docs/users/hooks_two_ranks.svg")
    )
    assert drawn == kept
    assert len(kept) > 2 * len(ranks[0])
