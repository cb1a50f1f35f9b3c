"""What modules export follows from their imports."""

from __future__ import annotations

import pytest

from tests.namespaces.exports import FILES, LUCID, written


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(LUCID).as_posix())
def test_exports_are_those_of_the_imports(path):
    """`__all__` and the table of what is imported later have each name: `python -m tests.namespaces.exports` writes."""
    assert written(path) == path.read_text(encoding="utf-8"), "python -m tests.namespaces.exports"


def test_what_is_said_by_the_imports(tmp_path, monkeypatch):
    """Names from lucid, also under another one and for type checkers alone, second names and what is defined."""
    monkeypatch.setattr("tests.namespaces.exports.LUCID", tmp_path)
    (tmp_path / "linalg").mkdir()
    path = tmp_path / "linalg" / "__init__.py"
    path.write_text(
        "import os\nfrom typing import TYPE_CHECKING\nfrom lucid.ops import exp, log as ln, log10, log2\n"
        "from lucid.public import later as _later\n"
        "if TYPE_CHECKING:\n    from lucid import fx as fx\n    from lucid.linalg import inner\n"
        "    from lucid.func import Map as map, vmap\n"
        "else:\n    _LATER = {}\n\ndef _hidden(): ...\n\nclass Shown: ...\n\nsecond = exp\n__all__ = []\n",
        encoding="utf-8",
    )
    text = written(path)
    assert '__all__ = ["Shown", "exp", "inner", "ln", "log2", "log10", "map", "second", "vmap"]\n' in text
    later = '{"fx": "lucid", "inner": "lucid.linalg.inner", "map": "lucid.func:Map", "vmap": "lucid.func"}'
    assert f"    _LATER = {later}\n" in text
