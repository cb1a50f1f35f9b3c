"""Both models learn the digits within an epoch, and repeat by the seed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def program(monkeypatch):
    """Return the example as a module."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    spec = importlib.util.spec_from_file_location("classify_digits", EXAMPLES / "classify_digits.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_are_the_data(program):
    """Three equal colours of what scikit-learn has, brought from 0 to 16 to -1 to 1."""
    pictures, targets = program.images("cpu")
    data = program.load_digits()
    assert pictures.shape == (len(data.target), 3, 8, 8)
    for colour in range(3):
        np.testing.assert_array_equal(pictures[:, colour].numpy(), data.images / 8 - 1)
    np.testing.assert_array_equal(targets.numpy(), data.target)


@pytest.mark.cpu("the example chooses its device itself")
@pytest.mark.parametrize(("model", "least"), [("vit", 0.2), ("resnet", 0.7)])
def test_learns(program, capsys, model, least):
    """An epoch names far more digits than one in ten, which is what guessing does."""
    assert program.main(["--model", model, "--epochs", "1"]) == 0
    assert float(capsys.readouterr().out.split("held out: ")[1].split("%")[0]) / 100 > least


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--epochs", "0"], "expected --epochs of at least 1, got 0"), (["--model", "mlp"], "invalid choice: 'mlp'")],
)
def test_refuses(program, capsys, arguments, words):
    """A model that is not there and no epochs are refused."""
    with pytest.raises(SystemExit, match="2"):
        program.main(arguments)
    assert words in capsys.readouterr().err
