"""What tables of hooks print: the words that are in them, on whatever terminal."""

from __future__ import annotations

import pytest
from rich.text import Text

import lucid
from lucid import hooks, nn, viz
from lucid.hooks.printing import printed
from lucid.hooks.tracing.trace import Region, table_of
from tests.device import DEVICE
from tests.pieces import function_of

# as markup of rich's the first is a colour, the second the end of one that never began
NAMES = ["[red]", "[/]"]


def renamed(kind, name):
    """Return a class under another name."""
    return type(name, (kind,), {"__qualname__": name})


@pytest.fixture(params=NAMES)
def tables(request):
    """Every table that prints, of a model, a function and a hook of that name."""
    name = request.param
    model = nn.Sequential()
    model.add_module(name, nn.Linear(2, 2, device=DEVICE))

    Double = function_of(lambda ctx, x: x * 2, None)

    x = lucid.ones(1, 2, device=DEVICE)
    with hooks.TimerHook() as timer, hooks.MemoryHook() as memory:
        renamed(Double, name).apply(x)
    with hooks.trace(model) as trace, hooks.scope():
        model[0].register_forward_hook(lambda *_: None)
        model(x)
        listed = hooks.table(model)
    return name, {"timer": timer, "memory": memory, "trace": trace, "hooks": listed,
                  "summary": viz.summary(model, x)}  # fmt: skip


def test_words_stand_as_they_are(tables, monkeypatch):
    """Brackets in the names of modules and functions are no markup, and a terminal changes nothing of the text."""
    name, every = tables
    texts = {kind: str(each) for kind, each in every.items()}
    assert [kind for kind, text in texts.items() if name not in text] == []
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert {kind: str(each) for kind, each in every.items()} == texts
    assert printed(Text("word", style="bold red")) == "word"
    assert printed(Text("x" * 160)) == "x" * 160


def test_numbers_end_below_each_other():
    """Words begin where the name of their column does, numbers end where it ends."""
    assert [column.justify for column in table_of([Region("a", "")]).columns] == ["left"] * 2 + ["right"] * 8
    with hooks.TimerHook() as timer:
        lucid.ones(1, device=DEVICE) + 1
    for each in (timer, hooks.MemoryHook(), hooks.FlopHook()):
        first, *others = each.__rich__().columns
        assert first.justify == "left"
        assert {column.justify for column in others} == {"right"}
