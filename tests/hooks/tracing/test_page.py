"""What a trace is written to: pages, files of other programs and tables, which show each span and each sum."""

from __future__ import annotations

import gc
import re
from html.parser import HTMLParser

import pytest

import lucid
from lucid import hooks, nn
from lucid.errors import SettingError
from lucid.hooks.tracing.page import ROW, page
from lucid.hooks.tracing.trace import Region, Span, chrome_events, table_of
from tests.device import DEVICE


def net():
    shared = nn.Linear(3, 3, device=DEVICE)
    return nn.Sequential(shared, nn.Sequential(nn.Tanh(), shared))


class Page(HTMLParser):
    """What a page consists of: texts by the element around them, and whether each that begins ends."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.attributes = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, tag):
        return [text for around, text in self.texts if around == tag]


def test_a_page(tmp_path):
    """It needs nothing beside itself, shows each span in its row, and the modules and hooks by name, escaped."""
    model = net()
    model.add_module("<b>", nn.Linear(3, 2, device=DEVICE))
    handle = model[0].register_forward_hook(lambda *_: None)
    with hooks.trace(model, ops=True) as seen:
        model(lucid.ones(2, 3, device=DEVICE)).sum().backward()
    seen.save(tmp_path / "trace.html")
    text = (tmp_path / "trace.html").read_text(encoding="utf-8")
    assert not re.search(r"<script|https?://", text)
    page = Page(text)
    assert page.of("h1") == ["Trace of Sequential"]
    assert page.of("h2") == ["Timeline", "Modules", "Hooks"]
    titles = page.of("title")
    for name in ("0 Linear", "1.0 Tanh", "1.0 tanh", "<b> Linear", "0 LinearBackward0", "Sequential", "outside sum"):
        assert any((title.startswith(f"{name}: ") and title.endswith(" us")) or DEVICE == "cuda" for title in titles), (
            name
        )
    bars = [attributes for tag, attributes in page.attributes if tag == "rect"]
    assert len(bars) == len(titles) - 1
    rows = {float(bar["y"]) for bar in bars}
    assert len(rows) == max(span.depth for span in seen.spans) + 2
    assert all(0 <= float(bar["x"]) <= float(bar["x"]) + float(bar["width"]) <= 1161 for bar in bars)
    (box,) = [attributes["viewbox"] for tag, attributes in page.attributes if tag == "svg"]
    width, height = map(float, box.split()[2:])
    assert width == 1160
    assert all(float(bar["y"]) + float(bar["height"]) <= height for bar in bars)
    cells = page.of("td")
    assert "  outside" in cells
    assert "  <b>" in cells
    assert handle.name in cells
    assert "forward hook" in cells
    handle.remove()
    del model
    gc.collect()
    seen.save(tmp_path / "later.html")
    assert "None but those of the trace." in (tmp_path / "later.html").read_text(encoding="utf-8")
    with pytest.raises(SettingError, match=r"ends in \.json or \.html, got 'trace\.txt'"):
        seen.save(tmp_path / "trace.txt")
    assert not (tmp_path / "trace.txt").exists()


def test_spans_in_files():
    """Microseconds and times of a device to three digits; a page has a row for each depth, and one for backward."""
    spans = [
        Span("0", "Linear", "forward", 100.0, 700.12345, 1, 12.34567),
        Span("", "Sequential", "forward", 0.0, 800.0, 0, None),
        Span("0", "LinearBackward0", "backward", 800.0, 1000.0, 0, 7.0),
    ]
    narrow = Span("0", "view", "op", 100.0, 100.1, 2, None)  # less than a seventh of a pixel
    common = {"ph": "X", "pid": 0}
    assert chrome_events(spans)["traceEvents"] == [
        {"name": "0 Linear", "cat": "forward", "ts": 100.0, "dur": 600.123, "tid": "forward",
         "args": {"device": 12.346}, **common},
        {"name": "Sequential", "cat": "forward", "ts": 0.0, "dur": 800.0, "tid": "forward", "args": {}, **common},
        {"name": "0 LinearBackward0", "cat": "backward", "ts": 800.0, "dur": 200.0, "tid": "backward",
         "args": {"device": 7.0}, **common},
    ]  # fmt: skip
    for shown, more, rows in ((spans, [], [1, 0, 2]), (spans[2:], [], [0]), (spans, [narrow], [1, 0, 3])):
        found = Page(page("A run", [*more, *shown], [], hooks.table(nn.Identity())))
        assert f"{len(more) + len(shown)} spans in 1,000 us of the host's clock." in found.of("p")
        bars = [attributes for tag, attributes in found.attributes if tag == "rect"]
        assert [(float(bar["y"]) - 1) / ROW for bar in bars] == rows
        assert [(float(bar["x"]), float(bar["width"])) for bar in bars] == [
            pytest.approx((span.begin * 1.16, (span.end - span.begin) * 1.16), abs=0.01) for span in shown
        ]
        (box,) = [attributes["viewbox"] for tag, attributes in found.attributes if tag == "svg"]
        assert box == f"0 0 1160 {(max(rows) + 1) * ROW}"
        assert found.of("title")[-1] == "0 LinearBackward0: 200.0 us, 7.0 us on the device"


def test_a_page_without_spans():
    """It has an empty timeline."""
    found = Page(page("Nothing", [], [], hooks.table(nn.Identity())))
    assert "0 spans in 1 us of the host's clock." in found.of("p")
    (box,) = [attributes["viewbox"] for tag, attributes in found.attributes if tag == "svg"]
    assert box == "0 0 1160 0"


def test_tables_of_a_page():
    """Numbers are grouped by thousands and have four digits, words stand to the left, and nothing is empty."""
    model = nn.Sequential(nn.Sequential(nn.Identity()))
    model[0][0].register_forward_hook(lambda *_: None)
    whole, inner = Region("0", "Sequential"), Region("0.0", "Identity")
    whole.calls, whole.forward, whole.own, whole.kept, inner.backward, inner.grad = 1234, 12345.6, 12.3456, 7, 0.5, 1e-7
    found = Page(page("A run", [], [whole, inner], hooks.table(model)))
    cells = found.of("td")
    assert cells[:16] == [
        "0", "Sequential", "1,234", "12,346", "12.35", "0", "7", "  0", "Identity", "0", "0", "0", "0.5", "0", "1e-07",
        "0.0",
    ]  # fmt: skip
    words = [
        text
        for text, (tag, attributes) in zip(cells, [each for each in found.attributes if each[0] == "td"], strict=False)
        if "class" in attributes
    ]
    assert words[:2] == ["0", "Sequential"]


def test_rows_are_in_the_order_of_time():
    """What takes the most, forward and backward together, comes first."""
    regions = [Region(path, "") for path in "abc"]
    for region, own, backward in zip(regions, (3.0, 1.0, 2.0), (0.0, 5.0, 2.0), strict=True):
        region.own, region.backward = own, backward
    assert [str(cell) for cell in table_of(regions).columns[0].cells] == ["b", "c", "a"]


def test_a_path_stands_below_the_one_it_is_in(tmp_path):
    """A page shows of each module the names below that of the row above, further to the right."""
    model = nn.Sequential(nn.Sequential(nn.ReLU()), nn.ReLU())
    with hooks.trace(model) as seen:
        model(lucid.ones(2))
    seen.save(tmp_path / "trace.html")
    text = (tmp_path / "trace.html").read_text(encoding="utf-8")
    places = [text.index(f">{path}</td>") for path in ("(the model)", "  0", "    0", "  1")]
    assert places == sorted(places)
