"""Checkpoints as others wrote them: Python 2, all protocols of pickle, packed archives, indexes, tied names."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import lucid
from lucid.errors import ArgumentError, CheckpointError
from lucid.serialization.locations import Locations
from tests.device import DEVICE
from tests.pieces import raising
from tests.serialization.test_pytorch import archive, number, tensor
from tests.stress import mutants

FOUR = struct.pack("<4f", 1, 2, 3, 4)
BIG = struct.pack(">4f", 1, 2, 3, 4)


def loaded(data):
    """Load bytes to the device of the tests."""
    return lucid.load(io.BytesIO(data), map_location=DEVICE)


def check(found):
    """Compare what the seeds of the changed files hold."""
    np.testing.assert_array_equal(found["w"].cpu().numpy(), mutants.VALUES)
    np.testing.assert_array_equal(found["n"].cpu().numpy(), mutants.NUMBERS)


# ---- pickles ----


def test_texts_that_are_no_utf_8_come_back():
    """Python pickles half of a surrogate pair, as in the name of a file that is no text, and so it is read."""
    for text in ("\ud800", "a\udcff.txt", "\N{GRINNING FACE}"):
        for protocol in range(2, 6):
            opcodes = pickle.dumps({text: 1}, protocol)
            assert lucid.load(archive(opcodes[2:-1])) == {text: 1}


@pytest.mark.parametrize("name", [name for name in mutants.seeds() if "zip" in name or "old" in name])
def test_each_form_of_pytorchs_files(name):
    """Both forms, by Python 2 and 3, packed or not, little or big-endian, give the same tensors and values."""
    found = loaded(mutants.seeds()[name])
    check(found)
    assert (found["epoch"], found["rates"], found[7]) == (3, [0.1, 0.5], True)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_the_old_form_by_each_protocol(protocol):
    """The old form begins as the protocol of pickle says, with a frame or without one."""
    check(loaded(mutants.old(protocol=protocol)))


def test_the_old_form_is_not_mapped(tmp_path):
    """Neither form of PyTorch's files is."""
    (tmp_path / "old.pt").write_bytes(mutants.old())
    with pytest.raises(CheckpointError, match="mmap=True: expected a safetensors file"):
        lucid.load(tmp_path / "old.pt", mmap=True)


def test_an_ordered_dict_of_pairs():
    """Python 2 makes an OrderedDict from a list of pairs; what else it is made of is named, and is no damage."""
    found = loaded(archive(b"ccollections\nOrderedDict\n](](U\1bK\1e](U\1aK\2ee\x85R").getvalue())
    assert list(found.items()) == [("b", 1), ("a", 2)]
    with pytest.raises(CheckpointError, match="holds an OrderedDict that is made of something else"):
        loaded(archive(b"ccollections\nOrderedDict\nK\1\x85R").getvalue())


@pytest.mark.parametrize(
    ("opcodes", "expected"),
    [
        (b"K\1K\2\x86", (1, 2)),
        (b"U\1aK\1\x86K\2\x86", (("a", 1), 2)),
        (b"C\1a", b"a"),
        (b"G?\xf0\0\0\0\0\0\0", 1.0),
        (number(2**70), 2**70),
        (number(-5), -5),
        (b"N", None),
        (b"\x88", True),
        (b"ctorch\nfloat32\n", lucid.float32),
        (b"ctorch\ndevice\nX\3\0\0\0cpu\x85R", lucid.device("cpu")),
        *[(b"ctorch\ndevice\nX\4\0\0\0cuda" + number(n) + b"\x86R", lucid.device("cuda", n)) for n in (0, 1, 65535)],
        (b"ctorch\nSize\nK\1K\2\x86\x85R", lucid.Size([1, 2])),
        (b"cbuiltins\ncomplex\nG?\xf0\0\0\0\0\0\0G@\0\0\0\0\0\0\0\x86R", 1 + 2j),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else repr(value),
)
def test_keys_of_every_plain_kind(opcodes, expected):
    """Keys of dicts, and what is in sets, may be any plain value, tuples of these too."""
    (key,) = loaded(archive(b"}" + opcodes + b"K\7s").getvalue())
    assert (key, type(key)) == (expected, type(expected))
    assert loaded(archive(b"c__builtin__\nset\n]" + opcodes + b"a\x85R").getvalue()) == {expected}


TEXTS = ((b"X", "<I"), (b"\x8c", "<B"), (b"\x8d", "<Q"), (b"U", "<B"), (b"T", "<I"))
BYTES = ((b"C", "<B"), (b"B", "<I"), (b"\x8e", "<Q"))
LONGS = ((b"\x8a", "<B"), (b"\x8b", "<I"))
PUT, GET = (b"q\0", b"r\0\0\0\0", b"\x94"), (b"h\0", b"j\0\0\0\0")


@pytest.mark.parametrize(
    "opcodes",
    [code + struct.pack(how, 2) + b"ab" for code, how in TEXTS + BYTES + LONGS]
    + [b"K\7" + put + get + b"\x86" for put in PUT for get in GET],
)
def test_each_width_of_a_length(opcodes):
    """What is read is what Python reads, in however many bytes the length of a value, or its place, is written."""
    assert loaded(archive(opcodes).getvalue()) == pickle.loads(opcodes + b".")


def test_bytes_and_bytearrays():
    """Bytes come by each way of pickle, the empty ones too, and bytes that may change stay such."""
    encoded = b"c_codecs\nencode\nX\2\0\0\0\xc3\xbfX\6\0\0\0latin1\x86R"
    for opcodes, expected in (
        (encoded, b"\xff"),
        (b"c__builtin__\nbytes\n)R", b""),
        (b"c__builtin__\nbytearray\n" + encoded + b"\x85R", bytearray(b"\xff")),
        (b"\x96" + struct.pack("<Q", 2) + b"ab", bytearray(b"ab")),
    ):
        found = loaded(archive(opcodes).getvalue())
        assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize("bit", ["conj", "neg"])
def test_views_that_are_conjugated_when_they_are_read(bit):
    """Such a view is refused, with what to save instead: its numbers are not those that it stands for."""
    name = b"X" + len(bit).to_bytes(4, "little") + bit.encode()
    view = tensor().replace(b"\x89Nt", b"\x89N}" + name + b"\x88st")
    with pytest.raises(CheckpointError, match=rf"holds a {bit} view: save its resolve_{bit}\(\)"):
        loaded(archive(view).getvalue())
    assert loaded(archive(view.replace(name + b"\x88s", name + b"\x89s")).getvalue()).tolist() == [1, 2, 3, 4]


# ---- archives ----


def repacked(data, compression, order=None):
    """Return an archive with the same files, packed anew, the last first."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(file, "w", compression) as out:
        for name in order or source.namelist()[::-1]:
            out.writestr(name, source.read(name))
    return file.getvalue()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_that_was_packed_anew(compression):
    """The files of an archive may stand in any order, and may be packed by deflate."""
    check(loaded(repacked(mutants.archive(zipfile.ZIP_STORED), compression)))


@pytest.mark.parametrize(("compression", "method"), [(zipfile.ZIP_BZIP2, 12), (zipfile.ZIP_LZMA, 14)])
def test_other_ways_of_packing_are_named(compression, method):
    """An archive packed in a way that PyTorch does not read either is refused by that reason."""
    with pytest.raises(CheckpointError, match=rf"is compressed by the method {method} of zip archives: pack it"):
        loaded(repacked(mutants.archive(zipfile.ZIP_STORED), compression))


def test_a_packed_archive_that_holds_much_is_refused_by_that_reason():
    """What unpacks to many times its length is called too much, and not damaged."""
    with pytest.raises(CheckpointError, match=r"holds more than its length allows: .* 10 times the bytes of the file"):
        loaded(archive(tensor(numel=2**22), zipfile.ZIP_DEFLATED, **{"0": bytes(2**24)}).getvalue())


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("data", [FOUR[:12], FOUR + FOUR[:4], b"", FOUR * 2])
def test_storages_that_are_longer_or_shorter_than_said(data, compression):
    """A storage of another length than its reference says is refused."""
    assert loaded(archive(tensor(), compression, **{"0": FOUR}).getvalue()).tolist() == [1, 2, 3, 4]
    with pytest.raises(CheckpointError, match="expected 4 elements of float32 in storage '0'"):
        loaded(archive(tensor(), compression, **{"0": data}).getvalue())


@pytest.mark.parametrize("said", [0, 2, 4, 2**62])
def test_storages_of_the_old_form_that_are_longer_or_shorter_than_said(said):
    """There each has its length beside its bytes, which is that of its reference; the bytes that follow are not its."""
    data, length = mutants.old(), mutants.VALUES.size.to_bytes(8, "little")
    place = data.rindex(length + mutants.VALUES.tobytes())
    changed = data[:place] + said.to_bytes(8, "little") + data[place + 8 :]
    assert mutants.VALUES.size not in {0, 2, 4}
    with pytest.raises(CheckpointError, match=rf"expected {mutants.VALUES.size} elements of storage '0'"):
        loaded(changed)


def with_order(order):
    """Return an archive that says the order of its bytes."""
    file = archive(tensor(), **{"0": BIG if order == "big" else FOUR})
    with zipfile.ZipFile(file, "a") as out:
        out.writestr("a/byteorder", order)
    return file.getvalue()


def test_the_order_of_bytes():
    """Numbers of a big-endian machine are turned round, those of a little-endian one are not, another order is none."""
    for order in ("big", "little"):
        assert loaded(with_order(order)).tolist() == [1, 2, 3, 4]
    with pytest.raises(CheckpointError, match="an order of bytes that is neither little nor big"):
        loaded(with_order("middle"))


def test_numbers_of_the_old_form_are_little_endian():
    """PyTorch writes them so on each machine, whatever the file says of the machine."""
    big = mutants.old().replace(pickle.dumps({"little_endian": True}, 2), pickle.dumps({"little_endian": False}, 2))
    assert big != mutants.old()
    check(loaded(big))


def test_a_checksum_that_was_not_computed():
    """An archive may have no checksums, which are 0 then; a wrong one is damage."""
    data = archive(tensor(), **{"0": FOUR}).getvalue()
    checksum = zipfile.ZipFile(io.BytesIO(data)).getinfo("a/data/0").CRC.to_bytes(4, "little")
    assert loaded(data.replace(checksum, bytes(4))).tolist() == [1, 2, 3, 4]
    with pytest.raises(CheckpointError, match="the checksum of 'a/data/0' does not match"):
        loaded(data.replace(checksum, b"\1\2\3\4"))


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_with_other_lengths_than_its_files(compression):
    """What the directory says of a file's length is what is there, and no bytes of another file are taken for it."""
    data = bytearray(archive(tensor(), compression, **{"0": FOUR}).getvalue())
    place = data.rindex(b"a/data/0") - 46
    assert data[place : place + 4] == b"PK\1\2"
    data[place + 16 : place + 20] = bytes(4)  # no checksum
    assert loaded(bytes(data)).tolist() == [1, 2, 3, 4]
    for field in (20, 24):
        length = int.from_bytes(data[place + field : place + field + 4], "little")
        for wrong in (length - 4, length + 4, 0, 2**31):
            changed = data.copy()
            changed[place + field : place + field + 4] = wrong.to_bytes(4, "little")
            if compression == zipfile.ZIP_STORED or field == 24 or wrong < length:
                with pytest.raises(CheckpointError):
                    loaded(bytes(changed))


@pytest.mark.parametrize("before", [(), (b"",), (b"abc", b"0123456789")])
def test_lengths_of_more_than_32_bits_stand_behind_other_extra_fields(before):
    """A length of 0xFFFFFFFF means one in the extra field of its kind, however many fields of others come first."""
    fields = [struct.pack("<HH", 0x7000 + n, len(text)) + text for n, text in enumerate(before)]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("a/data.pkl", b"\x80\x02" + tensor() + b".")
        entry = zipfile.ZipInfo("a/data/0")
        entry.extra = b"".join([*fields, struct.pack("<HHQQ", 1, 16, 16, 16)])
        out.writestr(entry, FOUR)
    data = bytearray(file.getvalue())
    place = data.rindex(b"a/data/0") - 46
    assert data[place : place + 4] == b"PK\1\2"
    data[place + 20 : place + 28] = b"\xff" * 8
    assert loaded(bytes(data)).tolist() == [1, 2, 3, 4]


def test_containers_within_containers():
    """As deep as lists may be, and no deeper, nor within themselves: an error says so, and the stack is none."""
    for deep in (500, 100_000):
        with pytest.raises(CheckpointError, match=r"nested deeper than|holds more than"):
            loaded(archive(b"]" * deep + b"a" * (deep - 1)).getvalue())
    with pytest.raises(CheckpointError, match=r"nested deeper than .* or inside of themselves"):
        loaded(archive(b"]q\0h\0a").getvalue())
    found = loaded(archive(b"]" * 100 + b"K\7" + b"a" * 100).getvalue())
    for _ in range(100):
        (found,) = found
    assert found == 7
    for inner in (b"K\7", b"]", b")", b"}"):
        deep = 100 if inner == b"K\7" else 99
        assert loaded(archive(b"]" * deep + inner + b"a" * deep).getvalue())
        with pytest.raises(CheckpointError, match=r"nested deeper than 100 levels"):
            loaded(archive(b"]" * (deep + 1) + inner + b"a" * (deep + 1)).getvalue())


@pytest.mark.parametrize("deep", [30, 69, 70, 99])
def test_containers_that_are_held_twice(deep):
    """What is held near the top, and again further down, counts from where it is deepest."""
    inner = [7]
    for _ in range(29):
        inner = [inner]
    outer = inner
    for _ in range(deep):
        outer = [outer]
    opcodes = pickle.dumps([inner, outer], 2)[2:-1]
    if deep + 30 < 100:
        assert loaded(archive(opcodes).getvalue()) == [inner, outer]
    else:
        with pytest.raises(CheckpointError, match=r"nested deeper than 100 levels"):
            loaded(archive(opcodes).getvalue())


def test_torchscript_is_named():
    """An archive with a program beside the weights is refused as such."""
    file = archive(b"N")
    with zipfile.ZipFile(file, "a") as out:
        out.writestr("a/constants.pkl", b"\x80\x02).")
    with pytest.raises(TypeError, match="holds TorchScript, a program beside its weights"):
        loaded(file.getvalue())


# ---- several files ----


@pytest.mark.parametrize("suffix", [".bin", ".safetensors"])
def test_an_index_of_files(tmp_path, suffix):
    """An index gathers files of PyTorch as it does those of safetensors; mapping is for the latter alone."""
    data = mutants.archive(zipfile.ZIP_STORED) if suffix == ".bin" else mutants.safetensors()
    (tmp_path / f"part-1{suffix}").write_bytes(data)
    path = tmp_path / f"pytorch_model{suffix}.index.json"
    path.write_bytes(mutants.index(suffix))
    check(lucid.load(path, map_location=DEVICE))
    if suffix == ".bin":
        with pytest.raises(CheckpointError, match="mmap=True: expected a safetensors file"):
            lucid.load(path, mmap=True)


def test_a_part_that_is_no_dict(tmp_path):
    """A file of an index has to hold tensors by name."""
    (tmp_path / "part-1.bin").write_bytes(archive(b"]").getvalue())
    (tmp_path / "index.json").write_bytes(mutants.index(".bin"))
    with pytest.raises(CheckpointError, match=r"part-1.bin .*expected a dict of tensors, found a list"):
        lucid.load(tmp_path / "index.json")


# ---- tied names ----


def test_tied_names_are_told_to_other_readers(tmp_path):
    """A tensor under several names is written once, and the metadata say which names are it: as other writers do."""
    weight = lucid.ones(3, 2)
    lucid.save({"a.weight": weight, "b.weight": weight, "c": {"d": weight}, "e": lucid.zeros(2)}, tmp_path / "x")
    data = (tmp_path / "x").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    told = {name: kept for name, kept in header["__metadata__"].items() if kept == "a.weight"}
    assert told == {"b.weight": "a.weight", "c.d": "a.weight"}
    assert sorted(load_file(tmp_path / "x")) == ["a.weight", "e"]


def test_tied_names_that_the_format_has_itself(tmp_path):
    """A tensor may be called as an entry of the file's own description is."""
    weight = lucid.tensor([1.0, 2.0])
    names = ["a", "format", "version", "tree", "crc32"]
    lucid.save(dict.fromkeys(names, weight), tmp_path / "a.safetensors")
    read = lucid.load(tmp_path / "a.safetensors")
    assert [*read] == names
    assert all(each is read["a"] for each in read.values())
    assert read["a"].tolist() == [1.0, 2.0]


def test_tied_names_of_other_writers(tmp_path):
    """A name that the metadata give for that of a tensor is that tensor; other metadata are none."""
    metadata = {"format": "pt", "head.weight": "embedding.weight", "note": "nothing"}
    save_file({"embedding.weight": np.ones((3, 2)), "pt": np.zeros(1)}, tmp_path / "x", metadata)
    found = lucid.load(tmp_path / "x", map_location=DEVICE)
    assert sorted(found) == ["embedding.weight", "head.weight", "pt"]
    assert found["head.weight"] is found["embedding.weight"]


# ---- where tensors go ----


@pytest.mark.parametrize(
    ("function", "where"),
    [
        (lambda storage, location: storage, "cpu"), (lambda storage, location: storage.cpu(), "cpu"),
        (lambda storage, location: storage.cuda(2), "cuda:2"), (lambda storage, location: storage.cuda(), "cuda"),
        (lambda storage, location: storage.to("cuda:0"), "cuda:0"), (lambda storage, location: None, "cuda:1"),
        (lambda storage, location: storage.cuda(0, non_blocking=True).cpu(), "cpu"),
        ({"cuda:1": "cuda:0"}, "cuda:0"), ({"cuda:0": "cpu"}, "cuda:1"), (None, "cuda:1"), ("cpu", "cpu"),
    ],
)  # fmt: skip
def test_where_a_tensor_of_another_device_goes(function, where):
    """What was saved on a CUDA device goes where it is told, and without a word where it was."""
    assert Locations(function)("cuda:1") == where


@pytest.mark.parametrize("name", ["own", "safetensors", "zip", "old"])
def test_a_function_says_where_tensors_go(name):
    """`map_location` may be a function of the memory and where it was: it returns memory, a device, or None."""
    seen = []

    def told(storage, location):
        seen.append(location)
        return storage

    data = mutants.seeds()[name]
    for function in (
        told,
        lambda storage, location: None,
        lambda storage, location: storage.to(DEVICE).cpu(),
        lambda storage, location: "cpu",
        lambda storage, location: lucid.device("cpu"),
    ):
        found = lucid.load(io.BytesIO(data), map_location=function)
        assert found["n" if name != "own" else "w"] is not None
    assert set(seen) == {"cpu"}
    tensor = lucid.load(io.BytesIO(data), map_location=lambda storage, location: storage.to(DEVICE))["w"]
    assert (tensor[0] if name == "own" else tensor).device.type == lucid.device(DEVICE).type


def test_a_dict_leaves_what_it_does_not_name_where_it_was():
    """Of several devices `map_location` may name some."""
    places = Locations({"cuda:1": "cuda:0", "cuda:2": "cpu"})
    assert [places(saved) for saved in ("cuda:0", "cuda:1", "cuda:2", "cpu")] == ["cuda:0", "cuda:0", "cpu", "cpu"]


@pytest.mark.parametrize("name", ["own", "safetensors", "zip", "old"])
def test_what_such_a_function_raises_comes_out(name):
    """An error of the user's own function is no damage of the file; neither is a value that it may not give."""
    data = mutants.seeds()[name]
    with pytest.raises(KeyError, match="mine"):
        lucid.load(io.BytesIO(data), map_location=raising(KeyError("mine")))
    with pytest.raises(ArgumentError, match=r"map_location: expected a function of .*, got one that returned int"):
        lucid.load(io.BytesIO(data), map_location=lambda storage, location: 3)
    if not lucid.cuda.is_available():
        with pytest.raises(lucid.errors.CudaUnavailableError):
            lucid.load(io.BytesIO(data), map_location=lambda storage, location: storage.cuda())


def test_metadata_do_not_replace_a_tensor_of_the_file(tmp_path):
    """Names that are tied to another tensor's stand for it only where the file has no tensor of that name."""
    a, b = np.ones(2, np.float32), np.zeros(3, np.float32)
    save_file({"a": a, "b": b}, tmp_path / "x.safetensors", metadata={"a": "b", "c": "b", "d": "e"})
    found = lucid.load(tmp_path / "x.safetensors", map_location=DEVICE)
    assert {name: each.tolist() for name, each in found.items()} == {"a": [1.0] * 2, "b": [0.0] * 3, "c": [0.0] * 3}
