"""The autoencoder's bound is the formula's, it learns, and its picture shows three rows of digits."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import lucid

SCRIPT = Path(__file__).parents[2] / "examples" / "vae_digits.py"


@pytest.fixture(scope="module")
def program():
    """Return the example as a module."""
    spec = importlib.util.spec_from_file_location("vae_digits", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_bound_is_the_formula(program, rng):
    """Binary cross-entropy and the divergence of two normal distributions, written out in float64."""
    scores, mean, log_variance = (rng.standard_normal((3, n)) for n in (64, 5, 5))
    pictures = rng.uniform(size=(3, 64))
    odds = 1 / (1 + np.exp(-scores))
    missed = -(pictures * np.log(odds) + (1 - pictures) * np.log(1 - odds)).sum()
    variance = np.exp(log_variance)
    divergence = (np.log(1 / np.sqrt(variance)) + (variance + mean**2) / 2 - 1 / 2).sum()
    bound = program.negative_bound(*(lucid.tensor(each) for each in (scores, pictures, mean, log_variance)))
    np.testing.assert_allclose(bound.item(), (missed + divergence) / 3, rtol=1e-12)


@pytest.mark.cpu("the example chooses its device itself")
def test_learns_and_draws(program, tmp_path, capsys):
    """Ten epochs are worth more than the mean of each pixel, which takes 27.2 nats; the picture is not empty."""
    assert program.main(["--epochs", "10", "--out", str(tmp_path)]) == 0
    assert float(capsys.readouterr().out.split("held out: ")[1].split()[0]) < 27.0
    picture = matplotlib.image.imread(tmp_path / "digits.png")
    assert picture.shape[1] > 2 * picture.shape[0]
    assert picture[..., :3].std() > 0.1


def test_refuses(program, capsys):
    """A code of no number is refused."""
    with pytest.raises(SystemExit, match="2"):
        program.main(["--codes", "0"])
    assert "expected --codes and --epochs of at least 1, got 0 and 60" in capsys.readouterr().err
