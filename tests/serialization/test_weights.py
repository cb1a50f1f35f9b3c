"""Weights that others wrote: safetensors files of model hubs, in parts with an index, mapped or read."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from safetensors.numpy import save, save_file

import lucid
from lucid.errors import CheckpointError
from lucid.serialization.refusals import some
from lucid.serialization.source import Source
from tests.device import DEVICE


def header(**entries):
    """Return a file of 16 bytes of arrays with a header of one's own."""
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + bytes(range(16))


@pytest.fixture
def arrays(rng):
    """Return arrays of the dtypes that tensors have, one of no dimension, one empty, one larger than a page."""
    kinds = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
    return {kind: rng.integers(0, 2, (3, 5)).astype(kind) for kind in kinds} | {
        "number": np.array(2.5),
        "empty": np.zeros((0, 4), np.float32),
        "large": rng.standard_normal((300, 700)).astype(np.float32),
    }


def check(weights, arrays):
    """Compare tensors with the arrays that were written, names, dtypes, shapes and values."""
    assert weights.keys() == arrays.keys()
    for name, array in arrays.items():
        assert str(weights[name].device) in {DEVICE, f"{DEVICE}:0"}
        assert weights[name].is_leaf
        found = weights[name].cpu().numpy()
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("mmap", [False, True])
def test_a_file_of_another_program(tmp_path, arrays, mmap):
    """Each array comes as a tensor, from a path or, where it is read, from the middle of a file object."""
    save_file(arrays, tmp_path / "model.safetensors", {"format": "pt"})
    check(lucid.load(tmp_path / "model.safetensors", DEVICE, mmap=mmap), arrays)
    if not mmap:
        file = io.BytesIO(b"before" + save(arrays))
        file.seek(6)
        check(lucid.load(file, DEVICE), arrays)


def test_shapes_have_the_elements_that_there_are():
    """Of one number, only shapes of whole numbers whose product is 1 are taken."""

    def file(shape):
        text = json.dumps({"x": {"dtype": "F64", "shape": shape, "data_offsets": [0, 8]}}).encode()
        return io.BytesIO(len(text).to_bytes(8, "little") + text + np.array(2.5).tobytes())

    for shape in ([], [1], [1, 1, 1]):
        assert lucid.load(file(shape))["x"].tolist() == np.full(shape, 2.5).tolist()
    for shape in ([0], [2], [-1], [-1, -1], [2**63], [2**64 + 1], [1.0], ["1"], [None], [1] * 65, None, 1):
        with pytest.raises(CheckpointError):
            lucid.load(file(shape))


def test_bfloat16(tmp_path):
    """Bfloat16, which NumPy does not know, keeps its bits."""
    (tmp_path / "half").write_bytes(header(x={"dtype": "BF16", "shape": [2, 4], "data_offsets": [0, 16]}))
    x = lucid.load(tmp_path / "half", "cpu")["x"]
    assert x.dtype is lucid.bfloat16
    assert x.numpy().tobytes() == bytes(range(16))


@pytest.mark.cpu("pages of a file are memory of the CPU")
def test_a_mapped_file_is_read_when_it_is_needed_and_never_written(tmp_path, arrays):
    """Tensors are the file's pages, of lucid's own files too, until they are written to; the file stays as it is."""
    for write in (lambda path: save_file(arrays, path), lambda path: lucid.save(arrays | {"a": lucid.ones(3)}, path)):
        path = tmp_path / "model.safetensors"
        write(path)
        whole = path.read_bytes()
        weights = lucid.load(path, mmap=True)
        tensor = lucid.asarray(weights["large"])
        memory = tensor.numpy()
        while isinstance(memory, np.ndarray):
            memory = memory.base
        assert memory is not None  # the map, and no copy
        tensor.zero_()
        assert not tensor.any()
        assert path.read_bytes() == whole
        path.unlink()
        np.testing.assert_array_equal(lucid.asarray(weights["float64"]).numpy(), arrays["float64"])


@pytest.mark.cpu("pages of a file are memory of the CPU")
def test_mapped_numbers_that_are_not_aligned(tmp_path):
    """What lies at no multiple of its width in a file comes as a copy that does."""
    for name in ("x", "xy", "xyz", "xyzw"):
        (tmp_path / name).write_bytes(header(**{name: {"dtype": "I32", "shape": [4], "data_offsets": [0, 16]}}))
        found = lucid.load(tmp_path / name, mmap=True)[name].numpy()
        assert found.flags.aligned
        assert found.tobytes() == bytes(range(16))


@pytest.mark.parametrize("mmap", [False, True])
def test_an_index_gathers_its_parts(tmp_path, arrays, mmap):
    """Each tensor comes from the file that the index names, in the order of the index's parts."""
    names = list(arrays)
    places = {name: f"model-{index % 3}.safetensors" for index, name in enumerate(names)}
    for part in set(places.values()):
        # what the index does not name is not asked for
        own = {name: arrays[name] for name in names if places[name] == part}
        save_file({**own, "more": arrays["large"]}, tmp_path / part)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}), encoding="utf-8")
    check(lucid.load(index, DEVICE, mmap=mmap), arrays)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "no index of safetensors files"),
        ("{", "no index of safetensors files"),
        ('{"weight_map": {"x": 3}}', "no index of safetensors files"),
        ('{"weight_map": {"x": "../part"}}', "expected the name of a file beside it"),
        ('{"weight_map": {"x": "/etc/passwd"}}', "expected the name of a file beside it"),
        ('{"weight_map": {"x": ".."}}', "expected the name of a file beside it"),
        ('{"weight_map": {"x": ""}}', "expected the name of a file beside it"),
        ('{"weight_map": {"y": "part"}}', "lacks y, which model.json promises"),
    ],
)
def test_an_index_that_is_none_is_refused(tmp_path, text, words):
    """What is no index, names files elsewhere, or promises what a part lacks is refused with the reason."""
    save_file({"x": np.ones(2)}, tmp_path / "part")
    (tmp_path / "model.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=words):
        lucid.load(tmp_path / "model.json")


def test_a_part_that_is_not_there(tmp_path):
    """The system's error names the part."""
    (tmp_path / "model.json").write_text('{"weight_map": {"x": "gone"}}', encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="gone"):
        lucid.load(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"dtype": "F8_E4M3", "shape": [16]}, "has the dtype 'F8_E4M3': expected one of"),
        ({"dtype": "F32", "shape": [5]}, "has 16 bytes for shape"),
        ({"dtype": "F32", "shape": [-2, -2]}, "has 16 bytes for shape"),
        ({"dtype": "F32", "shape": [2**40, 2**40, 0]}, "has 16 bytes for shape"),
        ({"dtype": "F32", "shape": ["a"]}, "has 16 bytes for shape"),
        ({"dtype": "F32", "shape": 4}, "has a shape that no array has"),
        ({"dtype": "U8", "shape": [1] * 65 + [16]}, "has a shape that no array has"),
        ({"dtype": "BOOL", "shape": [16]}, "bytes that are no bool"),
        ({"shape": [16]}, "has the dtype None"),
    ],
)
@pytest.mark.parametrize("mmap", [False, True])
def test_a_header_that_lies_is_refused(tmp_path, entry, words, mmap):
    """Dtypes that no tensor has, shapes that do not fit the bytes, and bools that are none are refused by name."""
    (tmp_path / "x").write_bytes(header(w={**entry, "data_offsets": [0, 16]}))
    with pytest.raises(CheckpointError, match=f"'w' has .*{words}|{words}"):
        lucid.load(tmp_path / "x", mmap=mmap)


@pytest.mark.parametrize("mmap", [False, True])
def test_weights_behind_something_else(tmp_path, mmap):
    """A file that is open is read from where it stands, mapped or not."""
    values = np.arange(300.0)
    path = tmp_path / "behind"
    path.write_bytes(b"eleven byte" + save({"x": values}))
    with path.open("rb") as file:
        file.seek(11)
        assert lucid.load(file, map_location="cpu", mmap=mmap)["x"].tolist() == values.tolist()


def test_mmap_needs_a_file(tmp_path):
    """What is in memory, or is empty, cannot be mapped; PyTorch's files are not."""
    with pytest.raises(CheckpointError, match="mmap=True: expected a file on the disk"):
        lucid.load(io.BytesIO(save({"x": np.ones(2)})), mmap=True)
    for wrong in (1, 0, "", 0.0, []):
        with pytest.raises(TypeError, match=f"mmap: expected a bool, got {type(wrong).__name__}"):
            lucid.load(tmp_path / "x", mmap=wrong)


@pytest.mark.gpu
def test_the_way_to_a_device_waits_for_all(tmp_path, rng, monkeypatch):
    """Page-locked memory is given back only when what was in it has arrived, however little of it there is."""
    monkeypatch.setattr("lucid.serialization.source.PENDING", 1 << 18)
    arrays = {str(index): rng.standard_normal(40_000).astype(np.float32) for index in range(6)}
    save_file(arrays, tmp_path / "x")
    finished = []
    monkeypatch.setattr(Source, "finish", lambda self, finish=Source.finish: finished.append(1) or finish(self))
    weights = lucid.load(tmp_path / "x", "cuda")
    assert len(finished) == 4
    for name, array in arrays.items():
        np.testing.assert_array_equal(weights[name].cpu().numpy(), array)


def test_many_names_are_counted():
    """Five of them are shown, and how many more there are."""
    assert some([*"abcde"]) == "a, b, c, d, e"
    assert some([*"abcdefg"]) == "a, b, c, d, e and 2 more"
