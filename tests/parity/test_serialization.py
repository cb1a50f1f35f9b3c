"""PyTorch's files: they are named, and what the error says about them works."""

from __future__ import annotations

import io

import pytest
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file

import lucid
from lucid.errors import CheckpointError


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", ["model.pt", "a" * 80 + ".pt"])
@pytest.mark.parametrize(
    "value", [{"weight": torch.ones(2, 3)}, 3, torch.zeros(0), {}], ids=["dict", "3", "empty", "{}"]
)
def test_checkpoints_of_pytorch_are_named(tmp_path, zipped, name, value):
    """Whatever torch.save writes, in either of its forms, looks like a checkpoint of PyTorch."""
    torch.save(value, tmp_path / name, _use_new_zipfile_serialization=zipped)
    with pytest.raises(
        CheckpointError, match=r"looks like a checkpoint of PyTorch \(\.pt\).*safetensors\.torch\.save_file"
    ):
        lucid.load(tmp_path / name)


def test_the_way_from_pytorch_that_the_error_names(tmp_path, rng):
    """A state dict goes through safetensors: lucid's module computes what PyTorch's did."""
    theirs = torch.nn.Linear(3, 2)
    torch.save(theirs.state_dict(), tmp_path / "model.pt")
    save_file(torch.load(tmp_path / "model.pt", weights_only=True), tmp_path / "model.safetensors")
    module = lucid.nn.Linear(3, 2)
    module.load_state_dict(
        {name: lucid.tensor(array) for name, array in load_file(tmp_path / "model.safetensors").items()}
    )
    x = rng.standard_normal((4, 3)).astype("float32")
    expected = theirs(torch.from_numpy(x)).detach().numpy()
    assert abs(module(lucid.tensor(x)).detach().cpu().numpy() - expected).max() < 1e-6


def test_file_objects_end_where_pytorchs_do():
    """Both write from where a file stands, and neither closes it."""
    for package in (torch, lucid):
        file = io.BytesIO()
        package.save({"x": package.ones(2)}, file)
        assert file.tell() == len(file.getvalue())
        file.seek(0)
        assert package.load(file)["x"].tolist() == [1, 1]
        assert not file.closed
