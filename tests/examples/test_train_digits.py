"""The main job on the CPU: what it writes, that it resumes bitwise, and how it refuses."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.datasets import load_digits

import lucid

SCRIPT = Path(__file__).parents[2] / "examples" / "train_digits.py"


def imported():
    """Return the example as a new module."""
    spec = importlib.util.spec_from_file_location("train_digits", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def program():
    """Return the example as a module."""
    return imported()


@pytest.fixture(scope="module")
def straight(program, tmp_path_factory):
    """Return the folder of four epochs without a break."""
    folder = tmp_path_factory.mktemp("straight")
    assert program.main(["--epochs", "4", "--seed", "3", "--out", str(folder)]) == 0
    return folder


def same(a, b):
    """Tell whether two loaded checkpoints are equal, arrays to the last bit."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, lucid.Tensor):
        a, b = a.detach().numpy(), b.detach().numpy()
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return a == b


def test_it_learns(straight):
    """Four epochs read most of the held-out digits, and the loss falls from epoch to epoch."""
    history = lucid.load(straight / "checkpoint.safetensors")["history"]
    assert [entry["loss"] for entry in history] == sorted((entry["loss"] for entry in history), reverse=True)
    assert history[-1]["accuracy"] > 0.95


def test_hooks_gather_a_norm_for_each_layer(straight):
    """The norms of every epoch name the layers in order, each positive."""
    for entry in lucid.load(straight / "checkpoint.safetensors")["history"]:
        assert [*entry["norms"]] == ["conv1", "conv2", "hidden", "output"]
        assert all(norm > 0 for norm in entry["norms"].values())


def test_norms_are_those_of_the_gradients(program):
    """What the hooks gather is the root of the mean squared norm that the gradients themselves have."""
    run = program.Run(0, "cpu")
    pictures, labels, *_ = program.digits("cpu")
    squares = []
    for batch in range(3):
        here = slice(32 * batch, 32 * batch + 32)
        run.optimizer.zero_grad()
        lucid.nn.functional.cross_entropy(run.model(pictures[here]), labels[here]).backward()
        squares.append(
            {
                name: sum(float((p.grad.numpy().astype(np.float64) ** 2).sum()) for p in layer.parameters())
                for name, layer in run.model.named_children()
            }
        )
    for name, norm in run.norms.take(3).items():
        assert norm == pytest.approx(np.sqrt(np.mean([square[name] for square in squares])), rel=1e-5)


def test_the_files_are_readable(straight):
    """The picture decodes and shows something; any reader of safetensors finds the parameters."""
    picture = matplotlib.image.imread(straight / "learning_curve.png")
    assert picture.shape[0] > 300
    assert picture.shape[1] > 1000
    assert picture[..., :3].std() > 0.01
    arrays = load_file(straight / "checkpoint.safetensors")
    assert arrays["model.conv1.weight"].shape == (16, 1, 3, 3)
    assert sorted(path.name for path in straight.iterdir()) == ["checkpoint.safetensors", "learning_curve.png"]


@pytest.mark.cpu("the program runs on the CPU unless it is told otherwise")
def test_a_resumed_run_is_bitwise_the_uninterrupted_one(program, straight, tmp_path, capsys):
    """Two epochs and two after resuming leave the checkpoint of four: parameters, optimiser, generators and history."""
    half, whole = tmp_path / "half", tmp_path / "whole"
    assert program.main(["--epochs", "2", "--seed", "3", "--out", str(half)]) == 0
    lucid.manual_seed(12345)
    saved = half / "checkpoint.safetensors"
    assert program.main(["--epochs", "4", "--resume", str(saved), "--out", str(whole)]) == 0
    assert "resumed after epoch 2" in capsys.readouterr().out
    expected, found = (lucid.load(folder / "checkpoint.safetensors") for folder in (straight, whole))
    assert same(expected["model"], found["model"])
    assert same(expected, found)
    assert not same(expected["model"], lucid.load(saved)["model"])


def test_the_seed_decides(program):
    """Weights and data order follow the seed; what is held out does not."""
    runs = [program.Run(seed, "cpu") for seed in (0, 0, 1)]
    weights = [run.model.state_dict() for run in runs]
    assert same(dict(weights[0]), dict(weights[1]))
    assert not same(dict(weights[0]), dict(weights[2]))
    data = load_digits()
    *_, pictures, labels = program.digits("cpu")
    assert np.array_equal(pictures.numpy()[:, 0] * 16, data.images[::5])
    assert np.array_equal(labels.numpy(), data.target[::5])


@pytest.mark.cpu("the program runs on the CPU unless it is told otherwise")
def test_the_last_lines(program, tmp_path, capsys):
    """The report ends with the table of norms, the paths and the held-out accuracy in plain words."""
    assert program.main(["--epochs", "1", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("Gradient norm per layer" in line for line in lines)
    assert str(tmp_path / "checkpoint.safetensors") in lines[-3]
    assert str(tmp_path / "learning_curve.png") in lines[-2]
    assert lines[-1].startswith("held-out accuracy ")
    assert "of 360 wrong) after 1 epochs" in lines[-1]


def truncated(path, good):
    path.write_bytes(good.read_bytes()[:-1000])


def text(path, good):
    path.write_text("no checkpoint at all")


def foreign(path, good):
    lucid.save({"weights": lucid.tensor([1.0])}, path)


def another_model(path, good):
    saved = lucid.load(good)
    saved["model"]["conv1.weight"] = lucid.tensor([1.0])
    lucid.save(saved, path)


def another_optimizer(path, good):
    saved = lucid.load(good)
    saved["optimizer"]["state"][2].pop("exp_avg")
    lucid.save(saved, path)


def missing(path, good):
    pass


BAD = {
    truncated: "truncated",
    text: "no checkpoint",
    foreign: "not a checkpoint of this program",
    another_model: "conv1.weight",
    another_optimizer: "exp_avg",
    missing: "No such file",
}


@pytest.mark.parametrize(("spoil", "message"), BAD.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_a_bad_checkpoint(program, straight, tmp_path, capsys, spoil, message):
    """A checkpoint that cannot be continued ends the program with status 1 and one message; nothing is written."""
    path, out = tmp_path / "bad.safetensors", tmp_path / "out"
    spoil(path, straight / "checkpoint.safetensors")
    assert program.main(["--resume", str(path), "--epochs", "9", "--out", str(out)]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert path.name in printed.err or spoil in {another_model, another_optimizer}
    assert "Traceback" not in printed.err
    assert not out.exists()


def test_a_finished_checkpoint(program, straight, tmp_path, capsys):
    """Resuming a run that has its epochs already says how to ask for more."""
    saved = straight / "checkpoint.safetensors"
    assert program.main(["--resume", str(saved), "--epochs", "4", "--out", str(tmp_path)]) == 1
    assert "has 4 epochs already" in capsys.readouterr().err


@pytest.mark.parametrize("device", ["cuda:99", "cuba"])
def test_a_device_that_is_not_there(program, tmp_path, capsys, device):
    """A device that does not exist ends the program with status 1 and a message."""
    assert program.main(["--device", device, "--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_cuda_without_a_gpu(program, tmp_path, capsys, monkeypatch):
    """`--device cuda` without a CUDA device says what is missing."""
    if lucid.cuda.is_available():
        monkeypatch.setattr(
            "lucid.base.gpu.cupy", lambda: (_ for _ in ()).throw(lucid.errors.CudaUnavailableError("no CUDA device"))
        )
    assert program.main(["--device", "cuda", "--out", str(tmp_path)]) == 1
    assert "CUDA" in capsys.readouterr().err


@pytest.mark.parametrize("package", ["sklearn.datasets", "matplotlib.figure"])
def test_without_the_extra(monkeypatch, package):
    """Without scikit-learn or matplotlib the program ends at once, saying what to install."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit, match=r"pip install 'lucid-cupy\[examples\]'"):
        imported()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--epochs", "0"],
        ["--epochs", "many"],
        ["--seed", "x"],
        ["--seed", str(2**64)],
        ["--sneed", "1"],
        ["--resume", "x", "--seed", "1"],
    ],
)
def test_bad_arguments(program, capsys, arguments):
    """Arguments that make no sense end the program with status 2 and the usage."""
    with pytest.raises(SystemExit) as caught:
        program.main(arguments)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err
