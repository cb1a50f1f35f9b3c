"""Checkpoints: what comes back, what is refused, and that a file is whole or not there."""

from __future__ import annotations

import json
import math
import os
import zlib
from collections import OrderedDict

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import lucid
from lucid.errors import CheckpointError


@pytest.fixture
def path(tmp_path):
    """Return where a checkpoint goes."""
    return tmp_path / "model.safetensors"


def same(a, b):
    """Tell whether two objects are equal in structure, types and elements."""
    if isinstance(a, lucid.Tensor):
        return (
            isinstance(b, lucid.Tensor)
            and (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad)
            and a.detach().cpu().numpy().tobytes() == b.detach().cpu().numpy().tobytes()
        )
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def test_everything_comes_back(path, rng):
    """Nested dicts, lists and tuples, tensors of every dtype and shape, and plain values are what they were."""
    values = {
        "model": {"weight": lucid.tensor(rng.standard_normal((2, 3)), requires_grad=True), "bias": lucid.zeros(0)},
        "optimizer": {"state": {0: {"step": 3, "moment": lucid.ones(2)}, 1: {}}, "lr": 1e-3, "betas": (0.9, 0.999)},
        "numbers": [1, -(2**70), 0.1, math.inf, -math.inf, math.nan, -0.0, True, None, 1.5 - 2j],
        "words": ["", "ä\n\"'", "__metadata__"],
        "__metadata__": lucid.ones(1),
        "a.b": lucid.ones(1),
        "a": {"b": lucid.zeros(1)},
        "keys": {1: "one", "1": "word", 2.5: None, None: 0, False: []},
        "random": lucid.get_rng_state(),
        "places": (lucid.device("cpu"), lucid.bfloat16),
        "scalar": lucid.tensor(3.5),
        "strided": lucid.tensor(rng.standard_normal((3, 4))).t(),
        "empty": [{}, [], ()],
    }
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "complex64", "complex128"):
        values[name] = lucid.tensor(rng.integers(0, 2, (2, 2)), dtype=name)
    values["complex scalar"] = lucid.tensor(1 - 2j)
    lucid.save(values, path)
    assert same(values, lucid.load(path))


@pytest.mark.parametrize("value", [None, 3, "text", [lucid.ones(2)], {}], ids=repr)
def test_any_supported_object_is_a_checkpoint(value, path):
    """The outermost object need not be a dict."""
    lucid.save(value, path)
    assert same(value, lucid.load(path))


def test_one_tensor_stays_one(path):
    """A tensor in two places is stored once and loaded as one."""
    weight = lucid.ones(1000)
    lucid.save({"encoder": weight, "decoder": weight}, path)
    assert path.stat().st_size < 6000
    back = lucid.load(path)
    assert back["encoder"] is back["decoder"]
    back["encoder"].add_(1)


def test_results_are_saved_as_values(path, rng):
    """A result leaves its graph behind; dict subclasses become dicts."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    lucid.save(OrderedDict(y=x * 2), path)
    back = lucid.load(path)
    assert type(back) is dict
    assert not back["y"].requires_grad
    assert back["y"].tolist() == (2 * x.detach().cpu().numpy()).tolist()


def test_other_readers_see_the_tensors(path, rng):
    """The file is a safetensors file whose tensors are named by their place."""
    weight = rng.standard_normal((2, 3)).astype(np.float32)
    lucid.save({"layer": {"weight": lucid.tensor(weight)}, "epoch": 4}, path)
    arrays = load_file(path)
    assert list(arrays) == ["layer.weight"]
    np.testing.assert_array_equal(arrays["layer.weight"], weight)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ({"a": [1, {"b": object()}]}, r"the value at 'a\.1\.b' is a object"),
        ({"f": len}, r"'f' is a builtin_function_or_method"),
        ({"s": {1, 2}}, r"'s' is a set"),
        ({"bytes": b"x"}, r"'bytes' is a bytes"),
        ({"n": np.float32(1)}, r"'n' is a float32"),
        ({"k": {(1, 2): 3}}, r"'k' has the key \(1, 2\) of type tuple"),
        ({"words": np.array(["a"])}, r"'words' is an array of NumPy's dtype"),
        ({"objects": np.array([None])}, r"'objects' is an array of NumPy's dtype object"),
        (object(), "the object is a object"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved_is_named(value, match, path):
    """An object that a checkpoint cannot hold is a TypeError that names its place; no file appears or changes."""
    with pytest.raises(CheckpointError, match=match) as caught:
        lucid.save(value, path)
    assert isinstance(caught.value, TypeError)
    assert list(path.parent.iterdir()) == []
    lucid.save({"good": 1}, path)
    with pytest.raises(CheckpointError):
        lucid.save(value, path)
    assert lucid.load(path) == {"good": 1}
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file(path, monkeypatch):
    """If writing fails, the old checkpoint is still there and nothing else is."""
    lucid.save({"epoch": 1}, path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        lucid.save({"epoch": 2}, path)
    monkeypatch.undo()
    assert lucid.load(path) == {"epoch": 1}
    assert list(path.parent.iterdir()) == [path]


@pytest.fixture
def whole(path, rng):
    """Return the bytes of a good checkpoint."""
    lucid.save({"weight": lucid.tensor(rng.standard_normal(50)), "epoch": 3}, path)
    return path.read_bytes()


def refused(path):
    """Return the message with which a file is refused."""
    with pytest.raises(CheckpointError) as caught:
        lucid.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_truncated_files(path, whole):
    """A file cut anywhere is refused, naming it, what was expected and what was found."""
    for size in [0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 8, len(whole) - 1]:
        path.write_bytes(whole[:size])
        message = refused(path)
        assert "expected a safetensors file written by lucid.save" in message
        assert f"found {size:,} bytes" in message


def test_every_changed_byte_is_noticed(path, whole, rng):
    """A file with one changed byte is refused, or loads as it was: wrong values never come back."""
    good = lucid.load(path)
    start = 8 + int.from_bytes(whole[:8], "little")
    for place in [*range(8), *rng.integers(8, start, 150).tolist(), *rng.integers(start, len(whole), 50).tolist()]:
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(0, 7))
        path.write_bytes(changed)
        try:
            back = lucid.load(path)
        except CheckpointError:
            continue
        # a byte of the header that says nothing, such as white space
        assert place < start
        assert same(good, back)


def test_foreign_files(path, tmp_path):
    """Other files, and other programs' safetensors, are refused by what they are."""
    path.write_text("weights\n" * 100)
    assert "truncated, corrupt or no checkpoint" in refused(path)
    save_file({"weight": np.ones(2)}, path)
    assert "found no format" in refused(path)
    save_file({"weight": np.ones(2)}, path, {"format": "pt"})
    assert "expected format 'lucid' in its metadata, found format 'pt'" in refused(path)
    save_file({}, path, {"format": "lucid", "tree": "{}", "version": "9", "crc32": "1"})
    assert "version 9 of the format: expected 1" in refused(path)
    with pytest.raises(FileNotFoundError):
        lucid.load(tmp_path / "missing")


@pytest.mark.parametrize(
    "tree",
    [
        {"tensor": {"name": "x", "dtype": "float64", "shape": [2], "crc32": 0}, "device": "cpu"},
        {"tensor": {"name": "x", "dtype": "float32", "shape": [200000000000], "crc32": 0}, "device": "cpu"},
        {"tensor": {"name": "y", "dtype": "float32", "shape": [2], "crc32": 0}, "device": "cpu"},
        {"tensor": {"name": "x", "dtype": "object", "shape": [2], "crc32": 0}, "device": "cpu"},
        {"dict": [[{"list": []}, 1]]},
        {"dict": 3},
        {"__reduce__": ["os.system", "true"]},
        {},
    ],
    ids=repr,
)
def test_made_up_structures(tree, path):
    """A structure that save does not write is refused, whatever its checksums; nothing that it names is run."""
    text = json.dumps(tree)
    metadata = {"format": "lucid", "version": "1", "tree": text, "crc32": str(zlib.crc32(text.encode()))}
    save_file({"x": np.zeros(2, np.float32)}, path, metadata)
    with pytest.raises((CheckpointError, lucid.errors.DeviceError)):
        lucid.load(path)


def test_map_location(path):
    """Tensors go where map_location says; a device that is not here is named, with what helps."""
    lucid.save({"x": lucid.ones(2)}, path)
    for where in ("cpu", lucid.device("cpu"), {"cuda:0": "cpu"}):
        assert lucid.load(path, map_location=where)["x"].device == lucid.device("cpu")
    if not lucid.cuda.is_available():
        with pytest.raises(lucid.errors.CudaUnavailableError):
            lucid.load(path, map_location="cuda")
        with pytest.raises(lucid.errors.CudaUnavailableError) as caught:
            lucid.load(path, map_location={"cpu": "cuda:0"})
        assert "map_location='cpu' loads it" in caught.value.__notes__[0]
