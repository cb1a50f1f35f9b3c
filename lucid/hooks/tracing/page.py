"""A trace as one page of HTML: a timeline, the tree of modules, and the hooks of the model."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lucid.hooks.listing import Table
    from lucid.hooks.tracing.trace import Region, Span

WIDTH, ROW = 1160, 20  # pixels of the timeline, and of one row in it
NARROWEST, LETTER = 0.15, 6.6  # what is drawn at all, and what a letter takes
COLOURS = {"forward": "#4c78a8", "op": "#9ecae9", "backward": "#e45756"}

STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em; color: #222 }
h1 { font-size: 1.4em } h2 { font-size: 1.1em; margin-top: 2em }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: 2px 10px; border-bottom: 1px solid #ddd; white-space: pre }
th { background: #f4f4f4 } th.text, td.text { text-align: left }
svg { display: block; background: #fafafa; border: 1px solid #ddd } svg text { font: 11px system-ui, sans-serif }
p.key span { padding: 1px 8px; color: #fff; margin-right: 1em }
"""


def page(title: str, spans: Sequence[Span], regions: Iterable[Region], hooks: Table) -> str:
    """Return the text of a page that needs nothing beside itself.

    Parameters
    ----------
    title : str
        Its title.
    spans : sequence of Span
        What the timeline shows: calls of modules and ops by their depth, below them what backward ran.
    regions : iterable of Region
        Rows of the table of modules, by path.
    hooks : Table
        The hooks that were on the model.
    """
    whole = max((span.end for span in spans), default=1.0)
    key = "".join(f'<span style="background:{colour}">{phase}</span>' for phase, colour in COLOURS.items())
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{len(spans):,} spans in {whole:,.0f} us of the host's clock.</p>",
        f'<h2>Timeline</h2>\n<p class="key">{key}</p>',
        _timeline(spans, whole),
        "<h2>Modules</h2>\n<p>Times in microseconds, memory in bytes.</p>",
        _table([region.to_dict() for region in regions], tree=True),
        "<h2>Hooks</h2>",
        _table(hooks.to_dicts()) if len(hooks) else "<p>None but those of the trace.</p>",
    ]
    head = f'<meta charset="utf-8">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n'
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _timeline(spans: Sequence[Span], whole: float) -> str:
    """Return the picture of all spans, with the name of each under the pointer."""
    deepest = max((span.depth for span in spans if span.phase != "backward"), default=-1) + 1
    rows = deepest + any(span.phase == "backward" for span in spans)
    scale = WIDTH / whole
    shapes: list[str] = []
    for span in spans:
        width = (span.end - span.begin) * scale
        if width < NARROWEST:
            continue
        row = deepest if span.phase == "backward" else span.depth
        name = f"{span.path} {span.name}".strip()
        device = "" if span.device is None else f", {span.device:,.1f} us on the device"
        label = name if len(name) * LETTER < width else span.name if len(span.name) * LETTER < width else ""
        x, y = span.begin * scale, row * ROW
        shapes.append(
            f"<g><title>{escape(name)}: {span.end - span.begin:,.1f} us{device}</title>"
            f'<rect x="{x:.2f}" y="{y + 1}" width="{width:.2f}" height="{ROW - 2}" fill="{COLOURS[span.phase]}"/>'
            + (f'<text x="{x + 3:.2f}" y="{y + 14}" fill="#fff">{escape(label)}</text>' if label else "")
            + "</g>"
        )
    body = "\n".join(shapes)
    return f'<svg viewBox="0 0 {WIDTH} {rows * ROW}" width="100%" role="img" aria-label="timeline">\n{body}\n</svg>'


def _table(rows: list[dict[str, Any]], *, tree: bool = False) -> str:
    """Return a table of dictionaries of the same keys; as a `tree` paths stand below those that they begin with."""
    first = rows[0] if rows else {}
    words = {column for column, value in first.items() if isinstance(value, str)}
    head = "".join(f"<th{_kind(column in words)}>{escape(column)}</th>" for column in first)
    lines = [f"<tr>{head}</tr>"]
    paths = {row["path"] for row in rows} if tree else set[str]()
    for row in rows:
        cells: list[str] = []
        for column, value in row.items():
            text = "" if value is None else f"{value:,.4g}" if isinstance(value, float) else str(value)
            if tree and column == "path":
                text = _below(text, paths)
            elif type(value) is int or (isinstance(value, float) and abs(value) >= 1000):
                text = f"{value:,.0f}"
            cells.append(f"<td{_kind(column in words)}>{escape(text)}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _kind(words: bool) -> str:
    return ' class="text"' if words else ""


def _below(path: str, paths: set[str]) -> str:
    """Return the part of a path beyond the nearest one above it, indented by the number of those above."""
    if not path:
        return "(the model)"
    names = path.split(".")
    above = [k for k in range(len(names)) if ".".join(names[:k]) in paths]
    return "  " * len(above) + ".".join(names[above[-1] if above else 0 :])
