"""The programs in `docs/users/from-cupy.md`, and changes: ``python -m tests.examples.from_cupy.page`` writes them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.examples.from_cupy.programs import LINE, NAMES, before, source

PAGE = Path(__file__).parents[3] / "docs" / "users" / "from-cupy.md"
END = "<!-- the end of the program -->"


def plain(name):
    """Return the forward program as it was: what stands before the data and the fit."""
    text = before(source(name))
    text = re.split(r"^def (?:true_speed|phantom|flower|fit)\(", text, flags=re.MULTILINE)[0]
    text = re.sub(r"# noqa: \w+  ", "# ", text)
    return text[text.index("import cupy as cp") :].rstrip("\n")


def changes(name):
    """Return the lines that were changed, those of one place without a gap, as a difference."""
    parts = [[]]
    for line in source(name).splitlines():
        if (found := LINE.match(line)) is None:
            parts += [[]] if parts[-1] else []
            continue
        if found[3]:
            parts[-1].append(f"-{found[1]}{found[3]}")
        parts[-1].append(f"+{found[1]}{found[2]}")
    return "\n\n".join("\n".join(part) for part in parts if part)


def shown(name):
    """Return the text between the marks of a program."""
    run_by = "<!-- run by tests/examples/from_cupy/test_page.py -->"
    return f"\n\n{run_by}\n```python\n{plain(name)}\n```\n\n```diff\n{changes(name)}\n```\n\n"


def written(page):
    """Return the page with the programs of today."""
    for name in NAMES:
        begin = f"<!-- the program {name}.py -->"
        head, _, rest = page.partition(begin)
        page = head + begin + shown(name) + END + rest.partition(END)[2]
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
