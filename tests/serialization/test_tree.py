"""Checkpoints: what comes back, what is refused, and that a file is whole or not there."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import math
import os
import pickle
import struct
import zipfile
import zlib
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from safetensors.numpy import save as to_bytes

import lucid
from lucid.errors import CheckpointError
from lucid.serialization.format import PIECE, copied_with_checksum, in_pieces
from lucid.serialization.tree import MAPPINGS
from tests.pieces import raising
from tests.pieces.memory import traced


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
        "NumPy's": [
            np.float64(0.1),
            np.float32(math.nan),
            np.int64(-3),
            np.bool_(True),
            np.complex64(1j),
            np.uint32(7),
        ],
        "unsigned": [np.array([0, 2**bits - 1], f"uint{bits}") for bits in (16, 32, 64)],
        "generator": np.random.RandomState(rng.integers(2**32)).get_state(),
        "strided": lucid.tensor(rng.standard_normal((3, 4))).t(),
        "empty": [{}, [], ()],
        "sizes": [lucid.zeros(2, 3).shape, lucid.Size()],
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


def test_one_array_stays_one(path):
    """So it is with a NumPy array; equal ones stay apart."""
    array = np.ones(1000)
    lucid.save([array, array, array.copy()], path)
    assert path.stat().st_size < 20_000
    first, second, third = lucid.load(path)
    assert first is second
    assert first is not third
    assert not np.shares_memory(first, third)


class Fresh(dict):
    """A dict that makes its values when it is asked for them, each where the one before was."""

    def items(self):
        return ((str(i), lucid.full((3,), float(i))) for i in range(20))


def test_values_made_on_the_way_are_told_apart(path, monkeypatch):
    """What is one tensor is told by the tensor and not by its address, which another may have afterwards."""
    monkeypatch.setitem(MAPPINGS, "Fresh", Fresh)
    lucid.save(Fresh(), path)
    assert [value.tolist() for value in lucid.load(path).values()] == [[i] * 3 for i in range(20)]


@pytest.mark.parametrize("container", ["dict", "list", "tuple"])
def test_nesting_has_one_limit_for_save_and_load(container, path):
    """A hundred levels are saved and loaded; more are refused by both, naming the limit, and never fill the stack."""
    wrap = {"dict": lambda x: {"a": x}, "list": lambda x: [x], "tuple": lambda x: (x,)}[container]
    value = 1.5
    for _ in range(100):
        value = wrap(value)
    lucid.save(value, path)
    assert same(value, lucid.load(path))
    for levels in (101, 500, 5000):
        while levels > 100:
            value, levels = wrap(value), levels - 1
        with pytest.raises(CheckpointError, match=r"save: the value at .* is nested deeper than 100 levels"):
            lucid.save(value, path)
    before, after = {"dict": ('{"dict":[["a",', "]]}"), "list": ('{"list":[', "]}"), "tuple": ('{"tuple":[', "]}")}[
        container
    ]
    for levels in (101, 500, 100_000):
        made_up(path, before * levels + "1.5" + after * levels)
        assert "nested deeper than 100 levels" in refused(path)


def test_what_is_inside_of_itself_is_refused(path):
    """A list that holds itself is nested without end."""
    endless = []
    endless.append(endless)
    with pytest.raises(CheckpointError, match="is it inside of itself"):
        lucid.save(endless, path)


def metadata_of(text):
    """Return what a file says of a structure that is given as text."""
    return {"format": "lucid", "version": "1", "tree": text, "crc32": str(zlib.crc32(text.encode()))}


def made_up(path, text, data=np.zeros(2, np.float32)):
    """Write a file with a structure that is given as text, and one array, x, of two zeros unless it is given."""
    save_file({"x": data}, path, metadata_of(text))


X = {"name": "x", "dtype": "float32", "shape": [2], "crc32": zlib.crc32(bytes(8))}


def test_other_programs_write_what_load_reads(path):
    """A file that another writer of the format made loads."""
    made_up(path, json.dumps({"list": [{"tensor": X, "device": "cpu", "requires_grad": True}, 3]}))
    tensor, number = lucid.load(path)
    assert (tensor.tolist(), tensor.requires_grad, number) == ([0, 0], True, 3)


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_an_array_named_often_is_read_once(kind, path):
    """Many entries of one array take its memory once: a small file cannot fill a machine."""
    data = np.zeros(1_000_000, np.uint8)
    entry = {"name": "x", "dtype": "uint8", "shape": [1_000_000], "crc32": zlib.crc32(data)}
    text = json.dumps({"list": [{"array": entry} if kind == "array" else {"tensor": entry, "device": "cpu"}] * 200})
    made_up(path, text, data)
    with traced() as memory:
        back = lucid.load(path)
    assert len(back) == 200
    assert all(value is back[0] for value in back)
    assert memory.most < 2_000_000


def test_entries_of_one_array_agree(path):
    """Two entries that read the same bytes as different things are none that save writes."""
    made_up(path, json.dumps({"list": [{"array": X}, {"array": {**X, "dtype": "int32"}}]}))
    assert "'x' is named by entries that differ" in refused(path)
    made_up(path, json.dumps({"list": [{"array": X}, {"tensor": X, "device": "cpu"}]}))
    assert "'x' is named by entries that differ" in refused(path)


def raw(path, header, data=b"", length=None):
    """Write a file of the format as it is given."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


@pytest.mark.parametrize(
    "offsets",
    [[(0, 4), (0, 4)], [(0, 8), (4, 8)], [(0, 3), (4, 8)], [(0, 4), (4, 9)], [(0, 4), (4, 7)], [(4, 0), (4, 8)],
     [(-4, 4), (4, 8)], [(0, 2**63), (4, 8)], [(0.0, 4.0), (4, 8)], [(False, 4), (4, 8)], [("0", "4"), (4, 8)],
     [(0, 4)], [(0,), (4, 8)], [None, (0, 8)], [(0, 8), (8, 8), (0, 0), (0, 8)]],
    ids=repr,
)  # fmt: skip
def test_places_that_do_not_cover_the_file(path, offsets):
    """Arrays that overlap, leave holes or lie behind the end are refused."""
    raw(path, {str(i): {"dtype": "U8", "shape": [4], "data_offsets": each} for i, each in enumerate(offsets)}, bytes(8))
    assert "truncated, corrupt or no checkpoint" in refused(path)


@pytest.mark.parametrize("places", [[(0, 3), (4, 8)], [(1, 4), (4, 8)], [(0, 5), (4, 8)]], ids=repr)
def test_arrays_that_do_not_follow_each_other(path, places):
    """Arrays as long as their shapes, up to the end of the file, are refused for the bytes before or between them."""
    header = {
        str(i): {"dtype": "U8", "shape": [each[1] - each[0]], "data_offsets": each} for i, each in enumerate(places)
    }
    raw(path, header, bytes(8))
    assert "do not follow those up to" in refused(path)


@pytest.mark.parametrize("behind", [1, 4, 4096])
def test_bytes_behind_the_arrays(path, behind):
    """What follows the last array is no part of the format."""
    raw(path, {"0": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}, bytes(4 + behind))
    assert f"expected 4 bytes of arrays, found {4 + behind:,}" in refused(path)


def test_memory_that_runs_out_is_no_damage(path, monkeypatch):
    """Where there is no room for an array the MemoryError comes out, and says nothing of the file."""
    lucid.save({"x": lucid.ones(300)}, path)

    monkeypatch.setattr(np, "empty", raising(MemoryError("no room")))
    with pytest.raises(MemoryError, match="no room"):
        lucid.load(path, map_location="cpu")


@pytest.mark.parametrize(
    ("header", "length"),
    [(b"{}", 2**63), (b"{}", 2**40), (b"{}", 3), (b"[]", None), (b'{"x": 3}', None), (b'{"x": {}}', None),
     (b"\xff{}", None), (b'{"__metadata__": 3}', None), (b'{"__metadata__": {"tree": {}}}', None),
     (b"[" * 100_000, None), (b"", None)],
)  # fmt: skip
def test_headers_that_are_none(path, header, length):
    """A header of a wrong length or form is refused before memory is asked for."""
    raw(path, header, length=length)
    with traced() as memory:
        assert "truncated, corrupt or no checkpoint" in refused(path)
    assert memory.most < 10_000_000


def test_a_header_that_no_reader_takes_is_not_written(path, monkeypatch):
    """The length that readers accept holds for save, too, and for load, whoever wrote the file."""
    monkeypatch.setattr("lucid.serialization.format.LONGEST_HEADER", 1000)
    lucid.save([1] * 100, path)
    with pytest.raises(CheckpointError, match=r"the structure of the object takes .* bytes: expected at most 1,000"):
        lucid.save([1] * 500, path)
    assert lucid.load(path) == [1] * 100
    for length in (1000, 1001):
        text = b"{}" + b" " * (length - 2)
        path.write_bytes(len(text).to_bytes(8, "little") + text)
        if length == 1000:
            assert lucid.load(path) == {}
        else:
            assert "its header is longer than it may be" in refused(path)


def test_bytes_that_are_no_bool(path):
    """A bool tensor of other bytes than 0 and 1, which NumPy would count wrongly, is refused."""
    for data in (bytes([0, 1]), bytes([0, 2])):
        entry = {"name": "x", "dtype": "bool", "shape": [2], "crc32": zlib.crc32(data)}
        metadata = metadata_of(json.dumps({"tensor": entry, "device": "cpu"}))
        raw(path, {"__metadata__": metadata, "x": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}}, data)
        if data[1] == 1:
            assert lucid.load(path).tolist() == [False, True]
    assert "bytes that are no bool" in refused(path)


def test_a_structure_without_a_checksum_is_refused(path):
    """What has no checksum has not the right one."""
    metadata = metadata_of("3")
    raw(path, {"__metadata__": metadata})
    assert lucid.load(path) == 3
    del metadata["crc32"]
    raw(path, {"__metadata__": metadata})
    assert "the checksum of its structure does not match" in refused(path)


def test_results_are_saved_as_values(path, rng):
    """A result leaves its graph behind."""
    x = lucid.tensor(rng.standard_normal(3), requires_grad=True)
    lucid.save(OrderedDict(y=x * 2), path)
    back = lucid.load(path)
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
        ({"n": np.str_("a")}, r"'n' is an array of NumPy's dtype"),
        ({"net": lucid.nn.Linear(1, 1)}, r"'net' is a Linear, .*; save its state_dict\(\)"),
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

    monkeypatch.setattr(os, "fsync", raising(OSError(28, "No space left on device")))
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


@pytest.mark.parametrize("letters", range(1, 9))
def test_arrays_begin_at_multiples_of_their_widths(letters, path):
    """Readers that map the file find each array where its type may lie, however long the header is."""
    arrays = [np.ones(3, dtype) for dtype in (np.bool_, np.float16, np.float64, np.float32)]
    lucid.save({"n" * letters: arrays}, path)
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    for place, array in enumerate(arrays):
        begin, _ = json.loads(data[8:start])[f"{'n' * letters}.{place}"]["data_offsets"]
        assert (start + begin) % array.itemsize == 0


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


@pytest.mark.parametrize("place", [0, 5_000_000, 9_999_999])
def test_a_changed_byte_of_a_large_array_is_noticed(place, path):
    """The checksum is one of all bytes, also of an array that is read in many pieces."""
    lucid.save(np.zeros(10_000_000, np.uint8), path)
    with path.open("r+b") as file:
        file.seek(place - 10_000_000, os.SEEK_END)
        file.write(b"\1")
    assert "is corrupt: expected 'value' with checksum" in refused(path)


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 5])
@pytest.mark.parametrize("layout", ["in order", "with gaps", "backwards", "transposed"])
def test_checksums_of_copies(size, layout, rng):
    """A copy holds the same elements in order, in memory of its own; the checksum is that of all its bytes."""
    values = rng.integers(0, 256, 2 * size, np.uint8)
    array = {
        "in order": values[:size], "with gaps": values[::2], "backwards": values[:size][::-1],
        "transposed": values.reshape(2, size).T,
    }[layout]  # fmt: skip
    copy, checksum = copied_with_checksum(array)
    assert copy.flags.c_contiguous
    assert not np.may_share_memory(copy, values)
    np.testing.assert_array_equal(copy, array)
    assert checksum == zlib.crc32(array.tobytes())


def test_pieces_are_all_of_an_array_in_order(rng):
    """Each but the last is as long as the others, and written to they change the array."""
    array = rng.standard_normal((300, 500))
    pieces = list(in_pieces(array))
    assert {piece.nbytes for piece in pieces[:-1]} == {PIECE}
    assert b"".join(pieces) == array.tobytes()
    pieces[-1][-8:] = 0
    assert array[-1, -1] == 0


def test_foreign_files(path, tmp_path):
    """Other files are refused by what they are; what lucid.save wrote, and something is gone of, is no other's."""
    path.write_text("weights\n" * 100)
    assert "truncated, corrupt or no checkpoint" in refused(path)
    for left in ({"format": "lucid"}, {"tree": "{}"}, {"tree": "{}", "format": "pt"}):
        save_file({"weight": np.ones(2)}, path, left)
        assert "a part of what lucid.save wrote is gone" in refused(path), left
    save_file({}, path, {"format": "lucid", "tree": "{}", "version": "9", "crc32": "1"})
    assert "version 9 of the format: expected 1" in refused(path)
    save_file({}, path, {"format": "lucid", "tree": "{}", "crc32": "1"})
    assert "of the format: expected 1" in refused(path)
    with pytest.raises(FileNotFoundError):
        lucid.load(tmp_path / "missing")


class Evil:
    """An object whose pickle makes a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def zipped(name):
    """Return a zip archive with a file of that name."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, b"x" * 100)
    return file.getvalue()


def bytes_of(function, *args):
    """Return what a function writes to a file."""
    file = io.BytesIO()
    function(file, *args)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "looks", "advice"),
    [
        (bytes_of(lambda f: np.savez(f, a=np.ones(3))), "arrays of NumPy (.npz)", "numpy.load"),
        (bytes_of(np.save, np.ones(3)), "an array of NumPy (.npy)", "numpy.load"),
        (zipped("notes.txt"), "a zip archive", "unpack"),
        (gzip.compress(b"x" * 100), "a file compressed by gzip", "gzip.open"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "an HDF5 file", "h5py"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a pointer of Git LFS", "git lfs pull"),
        *[(pickle.dumps({"a": 1}, protocol), "a pickle of Python", "it is not run") for protocol in (2, 3, 4, 5)],
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_files_of_other_programs_are_named(path, data, looks, advice):
    """A file of another program is refused by what it looks like, with what to do."""
    path.write_bytes(data)
    message = refused(path)
    assert f"looks like {looks}: expected a safetensors file written by lucid.save; " in message
    assert advice in message


def test_nothing_is_unpickled(path, tmp_path):
    """A pickle that would do something when it is read does nothing."""
    for protocol in range(6):
        path.write_bytes(pickle.dumps(Evil(tmp_path / "made"), protocol))
        refused(path)
    np.save(path.with_suffix(".npy"), np.array([Evil(tmp_path / "made")]), allow_pickle=True)
    refused(path.with_suffix(".npy"))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "tree",
    [
        {"tensor": X, "device": "cpu", "requires_grad": "no"},
        {"tensor": X, "device": "cpu", "requires_grad": 1},
        {"tensor": X, "device": "cpu", "requires_grad": None},
        {"tensor": {**X, "dtype": "int32"}, "device": "cpu", "requires_grad": True},
        {"tensor": {**X, "shape": [2, -1]}, "device": "cpu"},
        {"tensor": {**X, "shape": [-1, -2]}, "device": "cpu"},
        {"tensor": {**X, "shape": [2.0]}, "device": "cpu"},
        {"tensor": {**X, "shape": [2**70, 0]}, "device": "cpu"},
        {"tensor": {**X, "shape": [2] + [1] * 70}, "device": "cpu"},
        {"tensor": {**X, "shape": ["x", 2**31]}, "device": "cpu"},
        {"tensor": {**X, "shape": [[2], 2**31]}, "device": "cpu"},
        {"tensor": X, "device": ["cpu"]},
        {"tensor": X},
        {"array": {**X, "name": ["x"]}},
        {"array": {**X, "name": {}}},
        {"array": {key: value for key, value in X.items() if key != "crc32"}},
        {"dtype": []},
        {"tuple": [{}]},
        {"dict": [["a", [1, 2]]]},
        {"float": {}},
        {"complex": ["1"]},
        {"tensor": {"name": "x", "dtype": "float64", "shape": [2], "crc32": 0}, "device": "cpu"},
        {"tensor": {"name": "x", "dtype": "float32", "shape": [200000000000], "crc32": 0}, "device": "cpu"},
        {"tensor": {"name": "y", "dtype": "float32", "shape": [2], "crc32": 0}, "device": "cpu"},
        {"tensor": {"name": "x", "dtype": "object", "shape": [2], "crc32": 0}, "device": "cpu"},
        {"tensor": {**X, "dtype": "uint32"}, "device": "cpu"},
        {"scalar": X},
        {"scalar": {**X, "shape": 0}},
        {"scalar": []},
        {"dict": [[{"list": []}, 1]]},
        {"dict": 3},
        {"__reduce__": ["os.system", "true"]},
        {},
    ],
    ids=repr,
)
def test_made_up_structures(tree, path):
    """A structure that save does not write is refused, whatever its checksums; nothing that it names is run."""
    made_up(path, json.dumps(tree))
    assert "has a structure that lucid.save does not write" in refused(path)


KINDS = [
    "dict",
    "list",
    "tuple",
    "tensor",
    "array",
    "scalar",
    "float",
    "complex",
    "dtype",
    "device",
    "requires_grad",
    "?",
]
PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["cpu", "float32", "x", "nan", "\ud800"])
)
ENTRIES = st.fixed_dictionaries({}, optional={name: st.just(value) | PLAIN for name, value in X.items()})
TREES = st.recursive(
    PLAIN | ENTRIES | st.fixed_dictionaries({"tensor": st.just(X), "device": PLAIN}, optional={"requires_grad": PLAIN}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KINDS), inner, max_size=2)
    | st.fixed_dictionaries({"dict": st.lists(st.tuples(inner, inner), max_size=3)})
    | st.fixed_dictionaries({"list": st.lists(inner, max_size=3)})
    | st.fixed_dictionaries({"tuple": st.lists(inner, max_size=3)}),
)  # fmt: skip


@given(TREES)
def test_any_structure_loads_or_is_refused(tree):
    """Whatever JSON a file holds, with right checksums: no other exception than those of the docstring comes out."""
    text = json.dumps(tree)
    metadata = {"format": "lucid", "version": "1", "tree": text, "crc32": str(zlib.crc32(text.encode()))}
    file = io.BytesIO(to_bytes({"x": np.zeros(2, np.float32)}, metadata))
    with contextlib.suppress(CheckpointError, lucid.errors.DeviceError):
        lucid.load(file)


def test_a_made_up_device(path):
    """A device that does not exist is named as such, as where it did when the file was saved."""
    made_up(path, json.dumps({"tensor": X, "device": "../gpu"}))
    with pytest.raises(lucid.errors.DeviceError):
        lucid.load(path)


@pytest.mark.parametrize("weights_only", [True, False, None])
def test_weights_only(path, weights_only):
    """What PyTorch asks for in order to unpickle or not is taken, and changes nothing: nothing is ever unpickled."""
    lucid.save({"epoch": 3}, path)
    assert lucid.load(path, weights_only=weights_only) == {"epoch": 3}
    path.write_bytes(pickle.dumps(Evil(path.with_suffix(".made"))))
    with pytest.raises(CheckpointError, match="looks like a pickle"):
        lucid.load(path, weights_only=weights_only)
    assert not path.with_suffix(".made").exists()
    with pytest.raises(TypeError, match="load: weights_only: expected a bool, got str"):
        lucid.load(path, weights_only="yes")


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


@pytest.mark.parametrize("where", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("shape", [(), (0, 3), (3, 5), (150, 130), (2, 90, 100)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "bool", "complex64"])
def test_shapes_of_any_size(path, shape, dtype, where, rng):
    """Small and large tensors, dense and transposed, come back whole from each device on each device."""
    array = (rng.standard_normal(shape) * 8).astype(np.float32)
    for begin in ("cpu", where):
        x = lucid.tensor(array, device=begin).to(getattr(lucid, dtype))
        saved = {"x": x, "turned": x.mT if x.ndim > 1 else x}
        lucid.save(saved, path)
        for loaded in (lucid.load(path, map_location=where), lucid.load(path, map_location="cpu")):
            for name, tensor in loaded.items():
                assert (tensor.shape, tensor.dtype) == (saved[name].shape, x.dtype)
                assert lucid.equal(tensor.cpu(), saved[name].cpu())
        assert lucid.load(path)["x"].device.type == begin
