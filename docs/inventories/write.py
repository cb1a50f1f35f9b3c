"""`python docs/inventories/write.py`: inventories of the names of other projects in the texts, for intersphinx.

Sphinx reads them in place of those on the web, so that the site is built without a network. A name is in one if it is
there in the package that is installed, and its page has the address that the project gives to all of its functions.
"""

from __future__ import annotations

import importlib
import inspect
import re
import zlib
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
# The address of a function's page; {name} is its full name.
PAGES = {
    "numpy": "reference/generated/{name}.html#{name}",
    "scipy": "reference/generated/{name}.html#{name}",
    "cupy": "reference/generated/{name}.html#{name}",
    "torch": "generated/{name}.html#{name}",
}


def named(package: str) -> list[str]:
    """Return the names of a package in the texts of lucid and its pages that it has."""
    texts = [*(ROOT / "lucid").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    found = {
        name
        for path in texts
        for name in re.findall(rf"`+({package}(?:\.[a-z_]+)*\.\w+)[`(]", path.read_text(encoding="utf-8"))
    }
    return sorted(filter(is_documented, found))


def is_documented(name: str) -> bool:
    """Return whether a function or class of this name is there."""
    parts = name.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            value = getattr(value, part, None)
        return callable(value) and not inspect.ismodule(value)
    return False


def inventory(package: str) -> bytes:
    """Return an inventory of Sphinx's second format."""
    head = f"# Sphinx inventory version 2\n# Project: {package}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    page = PAGES[package]
    lines = "".join(f"{name} py:function 1 {page.format(name=name)} -\n" for name in named(package))
    return head.encode() + zlib.compress(lines.encode())


if __name__ == "__main__":
    for each in PAGES:
        (FOLDER / f"{each}.inv").write_bytes(inventory(each))
