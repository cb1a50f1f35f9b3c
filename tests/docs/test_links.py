"""The checker of a built site names the links that lead nowhere, and no others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

PAGE = '<a href="{link}">x</a><p id="here"></p>'


@pytest.mark.cpu("about files")
@pytest.mark.parametrize(
    ("link", "is_broken"),
    [
        ("other.html", False), ("other.html#here", False), ("#here", False), ("folder/", False),
        ("picture%201.png", False), ("https://example.org/nowhere", False), ("other.html#nowhere", True),
        ("#nowhere", True), ("nowhere.html", True), ("nowhere.png", True), ("folder/other.html", True),
    ],
)  # fmt: skip
def test_a_link(tmp_path, link, is_broken):
    """Files, places in them, folders with an index, and escaped names are looked for; other sites are not asked."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "picture 1.png").write_bytes(b"")
    for name in ("other.html", "folder/index.html"):
        (tmp_path / name).write_text(PAGE.format(link="#here"))
    (tmp_path / "page.html").write_text(PAGE.format(link=link))
    run = subprocess.run(
        [sys.executable, ROOT / "docs" / "links.py", tmp_path], capture_output=True, text=True, check=False
    )
    assert run.returncode == is_broken
    assert run.stderr.split("\n")[:-1] == (["1 links lead nowhere:", f"page.html: {link}"] if is_broken else [])
