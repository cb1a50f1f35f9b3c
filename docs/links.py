"""`python docs/links.py FOLDER`: the links of a built site that lead nowhere; exit status 1 if there are any."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places that a page has, and those to which it leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places = {""}
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what has a name, and what leads elsewhere."""
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value or "")
            elif name in {"href", "src"} and value:
                self.links.add(value)


def broken(site: Path) -> list[str]:
    """Return each page and link that leads to a file or place that is not there; other sites are not asked."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    lost: list[str] = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            there = unquote(parts.fragment) in pages[target].places if target in pages else target.exists()
            if not there:
                lost.append(f"{path.relative_to(site.resolve())}: {link}")
    return sorted(lost)


if __name__ == "__main__":
    found = broken(Path(sys.argv[1]))
    sys.exit("\n".join([f"{len(found)} links lead nowhere:", *found]) if found else 0)
