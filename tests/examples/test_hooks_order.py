"""The order of hooks in docs/users/hooks.md is that of a run now, and PyTorch's."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    """Return the names of examples/hooks_order.py."""
    return runpy.run_path(str(ROOT / "examples" / "hooks_order.py"))


def test_the_document_has_what_a_run_gives(script):
    """The tables of the document are, to the letter, those of a run now."""
    page = (ROOT / "docs" / "users" / "hooks.md").read_text(encoding="utf-8")
    record = script["table"](script["record"]())
    assert script["document"](page, record) == page
    assert record in page


def test_the_picture_has_what_a_run_gives(script, tmp_path):
    """The picture in the repository shows every event: it has as many dots, and the labels that one drawn now has."""
    events = script["record"]()
    script["picture"](events, tmp_path / "now.svg")
    drawn, kept = ((folder / name).read_text(encoding="utf-8") for folder, name in (
        (tmp_path, "now.svg"), (ROOT / "docs" / "users", "hooks_order.svg"),
    ))  # fmt: skip

    def labels(svg):
        return [line for line in svg.splitlines() if line.strip().startswith("<!--")]

    assert len(labels(kept)) > len(events)
    assert labels(drawn) == labels(kept)


def test_every_kind_is_in_the_run(script):
    """Each kind of hook that the table can describe fires in the run."""
    assert {event.kind for event in script["record"]()} == set(script["KINDS"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--write", "/nowhere"], "expected a folder with a hooks.md, got /nowhere"),
        (["--picture", "order.bmp"], "expected a file .svg, .png or .pdf, got order.bmp"),
    ],
)
def test_what_cannot_be_written_is_refused(arguments, words, monkeypatch, capsys):
    """A place or a format that cannot be is named, with what can, before anything is recorded."""
    monkeypatch.setattr("sys.argv", ["hooks_order.py", *arguments])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(ROOT / "examples" / "hooks_order.py"), run_name="__main__")
    assert words in capsys.readouterr().err
