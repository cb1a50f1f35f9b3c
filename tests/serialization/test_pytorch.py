"""PyTorch's pickles made by hand, to do harm: each is refused, soon and without memory, and nothing runs."""

from __future__ import annotations

import contextlib
import io
import itertools
import pickle
import struct
import sys
import zipfile

import numpy as np
import pytest

import lucid
from lucid.errors import CheckpointError, DeviceError
from lucid.serialization import pytorch
from lucid.serialization.calls import Name
from tests.pieces.memory import traced

MOST_CALLS = 100_000
STORAGE = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0%bX\x03\0\0\0cpu"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE + b"%btQ%b%b%b\x89Ntq\x00R"


STORAGES = {
    "FloatStorage": "f4", "DoubleStorage": "f8", "HalfStorage": "f2", "LongStorage": "i8", "IntStorage": "i4",
    "ShortStorage": "i2", "CharStorage": "i1", "ByteStorage": "u1", "BoolStorage": "?", "ComplexFloatStorage": "c8",
    "ComplexDoubleStorage": "c16",
}  # fmt: skip


def number(value):
    """Return the opcode of an int."""
    data = pickle.encode_long(value)
    return b"\x8a" + bytes([len(data)]) + data


def numbers(*values):
    """Return the opcodes of a tuple of ints."""
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(numel=4, offset=0, shape=(4,), strides=(1,), key=b"0"):
    """Return the opcodes of a float32 tensor."""
    return TENSOR % (key, number(numel), number(offset), numbers(*shape), numbers(*strides))


def archive(opcodes, compression=zipfile.ZIP_STORED, **storages):
    """Return a checkpoint with these opcodes and storages, of 16 bytes if none is given."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as out:
        out.writestr("a/data.pkl", b"\x80\x02" + opcodes + b".")
        for key, data in (storages or {"0": struct.pack("<4f", 1, 2, 3, 4)}).items():
            out.writestr(f"a/data/{key}", data)
    file.seek(0)
    return file


def test_what_is_made_by_hand_is_read():
    """The opcodes of these tests are a checkpoint's where they are right."""
    assert lucid.load(archive(tensor())).tolist() == [1, 2, 3, 4]
    assert lucid.load(archive(tensor(offset=1, shape=(2, 2), strides=(1, 1)))).tolist() == [[2, 3], [3, 4]]
    assert lucid.load(archive(tensor(shape=(0, 5), strides=(5, 1)))).shape == (0, 5)


@pytest.mark.parametrize("place", [b"torch", b"torch.cuda"])
@pytest.mark.parametrize(("name", "kind"), STORAGES.items())
def test_each_kind_of_storage(place, name, kind):
    """The name of a storage says which dtype it has, and not where it is."""
    values = np.array([1, 0, 1, 1]).astype(kind)
    named = tensor().replace(b"ctorch\nFloatStorage", b"c" + place + b"\n" + name.encode())
    found = lucid.load(archive(named, **{"0": values.tobytes()}), map_location="cpu").numpy()
    assert (found.dtype, found.tolist()) == (values.dtype, values.tolist())


def test_a_view_of_a_storage_of_the_old_form():
    """Files of old versions name a part of a storage, from an offset on so many elements."""
    view = b"(X\x04\0\0\0part" + number(2) + number(3) + b"t"
    text = TENSOR % (b"0", number(6) + view, number(1), numbers(2), numbers(1))
    parts = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    start = b"".join(pickle.dumps(part, 2) for part in parts)
    data = (6).to_bytes(8, "little") + struct.pack("<6f", *range(6))
    file = io.BytesIO(start + b"\x80\x02" + text + b"." + pickle.dumps(["0"], 2) + data)
    assert lucid.load(file).tolist() == [3, 4]


def old(data, place=b"\3\0\0\0cpu"):
    """Return a file of the form before archives, with one tensor of all that is in its storage."""
    opcodes = TENSOR % (b"0", number(len(data) // 4) + b"N", number(0), numbers(len(data) // 4), numbers(1))
    opcodes = opcodes.replace(b"\3\0\0\0cpu", place)
    parts = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    start = b"".join(pickle.dumps(part, 2) for part in parts)
    length = (len(data) // 4).to_bytes(8, "little")
    return io.BytesIO(start + b"\x80\x02" + opcodes + b"." + pickle.dumps(["0"], 2) + length + data)


def test_numbers_of_either_order_are_read_in_the_machines(monkeypatch):
    """A file's numbers are little-endian unless it says otherwise: a machine of the other order turns them round."""
    values = np.arange(4, dtype="f4")
    turned = values.byteswap().tobytes()
    files = [
        (lambda: old(values.tobytes()), "little"), (lambda: old(turned), "big"),
        (lambda: archive(tensor(), **{"0": values.tobytes()}), "little"),
        (lambda: archive(tensor(), **{"0": turned}), "big"),
    ]  # fmt: skip
    for make, order in files:
        # what the other machine would read: this one's numbers stand in it as that one's do
        with monkeypatch.context() as patch:
            patch.setattr(sys, "byteorder", order)
            assert lucid.load(make()).tolist() == values.tolist()


def test_a_device_that_is_not_there_is_an_error_with_the_remedy():
    """The error of the device stays, and has a note of where the tensor was, and what loads it, whatever the form."""
    place = b"\7\0\0\0cuda:99"
    elsewhere = tensor().replace(b"\3\0\0\0cpu", place)
    for make in (lambda: archive(elsewhere), lambda: old(bytes(16), place)):
        with pytest.raises(DeviceError) as caught:
            lucid.load(make())
        (note,) = caught.value.__notes__
        assert note.endswith(": saved on cuda:99: map_location='cpu' loads it")
        assert lucid.load(make(), map_location="cpu").shape == (4,)


@pytest.mark.parametrize(
    "opcodes",
    [
        pytest.param(tensor(offset=1), id="offset beyond the storage"),
        pytest.param(tensor(offset=-1), id="negative offset"),
        pytest.param(tensor(strides=(-1,)), id="negative stride"),
        pytest.param(tensor(shape=(2, 2), strides=(1,)), id="fewer strides than sizes"),
        pytest.param(tensor(shape=(2**62, 2**62), strides=(0, 0)), id="sizes beyond memory"),
        pytest.param(tensor(shape=(2,) * 65, strides=(0,) * 65), id="more dimensions than arrays have"),
        pytest.param(tensor(numel=5), id="longer than the storage"),
        pytest.param(tensor(numel=-4), id="negative length"),
        pytest.param(tensor(key=b"1"), id="a storage that is not there"),
        pytest.param(tensor(numel=16).replace(b"FloatStorage", b"BoolStorage"), id="bytes that are no bool"),
        pytest.param(b"cos\nsystem\n(X\x04\0\0\0truetR", id="a call of the system"),
        pytest.param(b"cbuiltins\neval\n(X\x01\0\0\x001tR", id="eval"),
        pytest.param(b"X\x02\0\0\0osX\x06\0\0\0system\x93(X\x04\0\0\0truetR", id="by names on the stack"),
        pytest.param(b"(X\x04\0\0\0trueios\nsystem\n", id="an instance"),
        pytest.param(b"ctorch._utils\n_rebuild_tensor_v2\n}X\x08\0\0\0__code__Nsb", id="attributes of a function"),
        pytest.param(b"}}b", id="attributes of a dict"),
        pytest.param(b"ccollections\nOrderedDict\n)R(Nt\x86b", id="slots of a dict"),
        pytest.param(b"ccollections\nOrderedDict\n(](NNtatR", id="a dict of items"),
        pytest.param(b"ctorch\nFloatStorage\n)R", id="a storage that is called"),
        pytest.param(b"ctorch\nFloatStorage\n", id="the name of a class"),
        pytest.param(b"(", id="a mark"),
        pytest.param(b"(]a", id="a mark in a list"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"NN", id="two values"),
        pytest.param(b"h\x07", id="a memo that was not set"),
        pytest.param(b"]q\0h\0a", id="a list in itself"),
        pytest.param(b"}]Ns", id="a list as a key"),
        pytest.param(b"\x82\x01", id="an extension"),
        pytest.param(b"S'\\S'\n", id="text of old pickles"),
        pytest.param(b"r\xff\xff\xff\xff", id="a memo of four billion places, and nothing to put there"),
    ],
)
def test_what_does_harm_is_refused(opcodes):
    """Views beyond memory, names, calls, attributes and malformed stacks raise a CheckpointError."""
    with pytest.raises(CheckpointError):
        lucid.load(archive(opcodes), map_location="cpu")


def bounded(file):
    """Load what is refused or is not, in no more than `MOST_CALLS` calls, and return the most memory that it held."""
    calls = itertools.count()

    def count(*_):
        assert next(calls) < MOST_CALLS, "the file is read for ever"

    with traced() as memory, contextlib.suppress(CheckpointError):
        sys.setprofile(count)
        try:
            lucid.load(file, map_location="cpu")
        finally:
            sys.setprofile(None)
    return memory.most


def doubled(kind, times=64):
    """Return the opcodes of containers in containers, each holding the one before twice."""
    end = {"list": b"]h\0ah\0a", "tuple": b"h\0h\0\x86"}[kind]
    return b"N" + (b"q\0" + end) * times


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(lambda: archive(doubled("list")), id="lists that double"),
        pytest.param(lambda: archive(doubled("tuple")), id="tuples that double"),
        pytest.param(lambda: archive(doubled("tuple") + b"q\0}h\0Ns"), id="a key whose hash takes for ever"),
        pytest.param(lambda: archive(b"\x8e" + struct.pack("<Q", 2**40) + b"x"), id="bytes that are not there"),
        pytest.param(
            lambda: archive(tensor(numel=2**28), zipfile.ZIP_DEFLATED, **{"0": bytes(2**24)}),
            id="an archive that swells",
        ),
    ],
)
def test_what_is_small_takes_no_time_and_no_memory(file):
    """A file of some kilobytes is done with in some thousand calls and megabytes, whatever is in it."""
    assert bounded(file()) < 16 << 20


@pytest.mark.parametrize("words", [b"K\1X\4\0\0\0Size", b"X\5\0\0\0torchK\1", b"K\1K\1", b"NX\4\0\0\0Size", b"]]"])
def test_a_name_on_the_stack_is_two_words(words):
    """Anything else there is no name."""
    with pytest.raises(CheckpointError, match="two words"):
        lucid.load(archive(words + b"\x93"))


def test_storages_are_no_more_than_the_file():
    """In the old form, which says lengths before the bytes come, many long storages together are refused."""
    start = [pickle.dumps(each, 2) for each in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
    storages = (STORAGE % str(n).encode() + number(2**18) + b"NtQa" for n in range(10))
    pickled = b"\x80\x02]" + b"".join(storages) + b"."
    file = io.BytesIO(b"".join([*start, pickled, pickle.dumps(list(map(str, range(10))), 2), bytes(2**20)]))
    assert bounded(file) < 3 << 20
    file.seek(0)
    with pytest.raises(CheckpointError, match="storages that are longer than the file"):
        lucid.load(file)


def test_each_part_of_a_reference_has_its_kind():
    """What names a storage is a word, a storage, a key, a place and a number of elements; anything else is none."""
    parts = ["storage", Name("torch.FloatStorage"), "0", "cpu", 4]
    assert pytorch._reference(parts) == (np.dtype("f4"), "0", "cpu", 4, [])
    for place, wrong in ((0, "module"), (2, 0), (3, None), (4, "4"), (4, -1), (4, True)):
        with pytest.raises(ValueError, match="expected a reference to a storage"):
            pytorch._reference([*parts[:place], wrong, *parts[place + 1 :]])


def test_many_small_tuples():
    """What a tuple takes of the budget is its own length, wherever on the stack it is made."""
    value = [(k,) for k in range(20_000)]
    assert lucid.load(archive(pickle.dumps(value, 2)[2:-1])) == value


def test_a_packed_file_that_goes_on_is_refused(monkeypatch):
    """Also where what was said to be there ends with a piece of what is unpacked."""
    data = bytearray(archive(tensor(numel=2, shape=(2,)), zipfile.ZIP_DEFLATED, **{"0": bytes(64)}).getvalue())
    place = data.rindex(b"a/data/0") - 46
    data[place + 16 : place + 20] = bytes(4)  # no checksum
    data[place + 24 : place + 28] = (8).to_bytes(4, "little")
    monkeypatch.setattr("lucid.serialization.archive.BLOCK", 8)
    with pytest.raises(CheckpointError, match="expected 8 bytes in a compressed file"):
        lucid.load(io.BytesIO(bytes(data)))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_another_checksum_is_refused(method):
    """Whether a file is packed or not; one that is 0 was not computed."""
    data = bytearray(archive(tensor(), method).getvalue())
    place = data.rindex(b"a/data/0") - 46
    data[place + 16 : place + 20] = b"\x01\x02\x03\x04"
    with pytest.raises(CheckpointError, match="the checksum of 'a/data/0' does not match"):
        lucid.load(io.BytesIO(bytes(data)))
    data[place + 16 : place + 20] = bytes(4)
    assert lucid.load(io.BytesIO(bytes(data)), map_location="cpu").tolist()
