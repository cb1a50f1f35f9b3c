"""Pages with the sources of what is public, to which the reference links."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import lucid
from lucid.public import written_in

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PACKAGE = Path(lucid.__file__).parent
linked: set[Path] = set()


def link(domain: str, info: dict[str, str]) -> str | None:
    """Return the address of the lines that define a value, from a page of the reference; for `sphinx.ext.linkcode`."""
    value: Any = sys.modules.get(info["module"])
    for name in info["fullname"].split("."):
        value = inspect.getattr_static(value, name, None) if inspect.isclass(value) else getattr(value, name, None)
    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if domain != "py" or not isinstance(value, FunctionType | type):
        return None
    place = place_of_class(value) if isinstance(value, type) else place_of_function(inspect.unwrap(value))
    if place is None or PACKAGE not in place[0].parents:
        return None
    linked.add(place[0])
    return f"../source/{place[0].relative_to(PACKAGE).with_suffix('.html').as_posix()}#line-{place[1]}"


def place_of_function(function: Any) -> tuple[Path, int]:
    """Return the file of a function and its first line."""
    return Path(function.__code__.co_filename), function.__code__.co_firstlineno


def place_of_class(kind: type) -> tuple[Path, int] | None:
    """Return the file of a class and its first line; None of one that no source defines."""
    path = getattr(sys.modules.get(written_in(kind)), "__file__", None)
    if path is None:
        return None
    text = Path(path).read_text(encoding="utf-8")
    head = re.search(rf"^class {kind.__name__}\b", text, re.MULTILINE)
    return None if head is None else (Path(path), text[: head.start()].count("\n") + 1)


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the pages of all files that were linked, once the site is built."""
    if error is not None or app.builder.format != "html":
        return
    for path in linked:
        name = path.relative_to(PACKAGE)
        page = Path(app.outdir) / "source" / name.with_suffix(".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        formatter = HtmlFormatter(
            full=True, title=f"lucid/{name}", linenos="inline", lineanchors="line", anchorlinenos=True
        )
        page.write_text(highlight(path.read_text(encoding="utf-8"), PythonLexer(), formatter), encoding="utf-8")
