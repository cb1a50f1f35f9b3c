"""The LSTM reads its text in order, learns, repeats by its seed, and refuses what cannot be."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = ["--files", "20", "--width", "32", "--length", "8"]


@pytest.fixture
def program(monkeypatch):
    """Return the example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location("train_lstm", EXAMPLES / "train_lstm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pieces_follow_each_other(program, rng):
    """Pieces of a stream, one behind the other, are the text; targets are one character on; streams do not overlap."""
    text = rng.integers(0, 96, 1 + program.STREAMS * 21)
    read = list(program.pieces(text, 5, "cpu"))
    assert len(read) == 4
    inputs = np.concatenate([piece.numpy() for piece, _ in read], 1)
    np.testing.assert_array_equal(inputs, text[:-1].reshape(program.STREAMS, 21)[:, :20])
    targets = np.concatenate([piece.numpy() for _, piece in read], 1)
    np.testing.assert_array_equal(targets, text[1:].reshape(program.STREAMS, 21)[:, :20])


@pytest.fixture
def text(program, monkeypatch):
    """Return four words in random order, as numbers, which the example reads in place of a source.

    The source of the standard library is another one in each version of Python.
    """
    words = np.random.default_rng(0).choice(["import", "return", "lambda", "yield"], 20_000)
    numbers = np.array([program.CHARACTERS.index(each) for each in " ".join(words)])
    monkeypatch.setattr(program, "sources", lambda files: (numbers[:100_000], numbers[100_000:]))
    return numbers


def printed(program, capsys, *arguments):
    """Return what a run prints below its progress: the loss, the perplexity and the text."""
    assert program.main([*SMALL, "--width", "64", "--lr", "3e-2", "--seed", "3", *arguments]) == 0
    return capsys.readouterr().out.partition("held out: ")[2]


@pytest.mark.cpu("the example chooses its device itself")
def test_learns(program, capsys, text):
    """Eighty steps learn which letters follow in words, far below their frequency."""
    frequencies = np.unique(text, return_counts=True)[1] / len(text)
    guessing = -(frequencies * np.log(frequencies)).sum()
    numbers, _, written = printed(program, capsys, "--steps", "80").partition("\n")
    loss = float(numbers.split()[0])
    assert loss < guessing / 2
    np.testing.assert_allclose(float(numbers.split("perplexity ")[1].split()[0]), np.exp(loss), rtol=1e-3)
    assert written.startswith("def ")


@pytest.mark.cpu("the example chooses its device itself")
def test_repeats(program, capsys, text):
    """A seed ends alike, in what is learnt and in what is drawn from it."""
    first, second = (printed(program, capsys, "--steps", "12") for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--steps", "0"], "expected --steps of at least 1, got 0"),
        (["--files", "9"], "expected --files of at least 10, of which the last is held out, got 9"),
        (["--lr", "0"], "expected --lr above 0 and finite, got 0.0"),
    ],
)
def test_refuses(program, capsys, arguments, words):
    """Numbers that cannot be are named, with what may be."""
    with pytest.raises(SystemExit, match="2"):
        program.main(arguments)
    assert words in capsys.readouterr().err


@pytest.mark.cpu("the example chooses its device itself")
def test_refuses_pieces_longer_than_the_text(program):
    """A piece that no stream has is refused with the longest that there is."""
    with pytest.raises(SystemExit, match=r"expected --length of at most \d+, of 20 files, got 10000000"):
        program.main([*SMALL, "--length", "10000000"])
