"""The character GPT learns, writes, repeats itself with one seed, and refuses what cannot be."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import lucid

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = ["--files", "12", "--context", "16", "--layers", "1", "--heads", "2", "--width", "32"]


@pytest.fixture
def program(monkeypatch):
    """Return the example as a module; Python puts its folder on the path."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location("train_gpt", EXAMPLES / "train_gpt.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(program, capsys, *arguments):
    """Return what a run prints below its progress: the loss, and the text."""
    assert program.main([*SMALL, *arguments]) == 0
    line, _, text = capsys.readouterr().out.partition("held out: ")[2].partition("\n")
    return float(line.split()[0]), text


@pytest.mark.cpu("the example chooses its device itself")
def test_learns_and_repeats(program, capsys):
    """Sixty steps bring the loss well below that of guessing by nothing, ln 96; another run of the seed ends alike."""
    first = printed(program, capsys, "--steps", "60", "--seed", "3")
    assert first == printed(program, capsys, "--steps", "60", "--seed", "3")
    assert first[0] < 3.6
    assert first[1].startswith("def ")
    assert len(first[1].replace("\n", "")) > 100


def test_no_position_sees_what_follows(program, rng):
    """Another token later on changes the scores from its place on, and none before."""
    model = program.GPT(program.GPTConfig(50, 16, 2, 2, 32)).eval()
    tokens = rng.integers(0, 49, (2, 9))
    before = model(lucid.tensor(tokens)).detach()
    tokens[:, 5] += 1
    after = model(lucid.tensor(tokens)).detach()
    assert (before[:, :5] == after[:, :5]).all()
    assert (before[:, 5:] != after[:, 5:]).any(-1).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--width", "33"], "expected --width as a multiple of --heads, got 33 and 2"),
        (["--prompt", "\N{SNOWMAN}"], "expected --prompt of ASCII characters, got \N{SNOWMAN}"),
        (["--prompt", ""], "at least one character"),
        (["--steps", "0"], "expected --steps of at least 1, got 0"),
        (["--files", "9"], "expected --files of at least 10, of which the last is held out, got 9"),
        (["--lr", "nan"], "expected --lr above 0 and finite, got nan"),
    ],
)
def test_refuses(program, capsys, arguments, words):
    """What the model cannot take is refused before anything is trained."""
    with pytest.raises(SystemExit, match="2"):
        program.main([*SMALL, *arguments])
    assert words in capsys.readouterr().err
