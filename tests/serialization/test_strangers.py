"""Files from strangers: what they may take of memory and time, what is never handed out, and how they are refused."""

from __future__ import annotations

import io
import json
import pickle
import signal
import struct
import zipfile
import zlib
from functools import partial

import numpy as np
import pytest
from safetensors.numpy import save

import lucid
from lucid.errors import CheckpointError
from lucid.serialization.bounded import Bounded
from tests.pieces.memory import reloaded, traced
from tests.serialization.test_pytorch import archive, number, tensor
from tests.stress import mutants

pytestmark = pytest.mark.cpu("files are read on the host")

MANY = 20_000
PRIME = (1 << 61) - 1
HUGE = b"\x8b" + struct.pack("<I", 3000) + b"\x7f" * 3000  # a number of more digits than Python writes


def test_changed_files_give_values_or_are_refused():
    """Of files of each format that are changed at random none gives another error, foreign bytes, or takes much."""
    finds = mutants.run(1500)
    assert finds.faults == []
    assert finds.loaded > 80


def structure(text):
    """Return a file of lucid's own with a structure that is given as text."""
    metadata = {"format": "lucid", "version": "1", "tree": text, "crc32": str(zlib.crc32(text.encode()))}
    return save({}, metadata)


def header(text):
    """Return a safetensors file with that header, and no arrays."""
    return len(text).to_bytes(8, "little") + text


def keys(*values):
    """Return the opcodes of a dict with these integers as keys."""
    return b"}(" + b"".join(number(value) + b"N" for value in values) + b"u"


def chain(count, bits):
    """Return integers, half of which stand where the search for each of the others goes on and on."""
    places, place = [], 0
    for _ in range(count // 2):
        places.append(place)
        place = (5 * place + 1) % (1 << bits)
    return places + [(n + 1) << bits for n in range(count // 2)]


def many_calls(name, argument):
    """Return a file in which a function is called time and again with arguments that stand there once."""
    function = b"c" + name.replace(" ", "\n").encode() + b"\n"
    return archive(b"](" + function + b"q\0" + argument + b"q\1R" + b"h\0h\1R" * 2000 + b"e").getvalue()


HOSTILE = {
    "dicts": lambda: archive(b"}" * MANY).getvalue(),
    "lists in a list": lambda: archive(b"](" + b"]" * MANY + b"e").getvalue(),
    "sets": lambda: archive(b"](" + b"\x8f" * MANY + b"e").getvalue(),
    "nothings": lambda: archive(b"](" + b"N" * MANY * 4 + b"e").getvalue(),
    "tuples": lambda: archive(b"](" + b"K\1\x85" * MANY + b"e").getvalue(),
    "tensors": lambda: archive(tensor()[:-1] + b"Rq\1" + b"h\0" * 2 + b"(" * MANY).getvalue(),
    "calls": lambda: archive(b"]ccollections\nOrderedDict\nq\0(" + b"h\0)R" * MANY + b"e").getvalue(),
    "names": lambda: archive(b"]U\5torchq\0U\4Sizeq\1(" + b"h\0h\1\x93" * MANY + b"e").getvalue(),
    "keys of one hash": lambda: archive(keys(*(n * PRIME for n in range(12_000)))).getvalue(),
    "tuples of one hash as keys": lambda: archive(
        b"}(" + b"".join(number(n * PRIME) + b"\x85N" for n in range(20_000)) + b"u"
    ).getvalue(),
    "a long key, often": lambda: archive(
        b"}(\x8b" + struct.pack("<i", 100_000) + b"\7" * 100_000 + b"q\0N" + b"h\0N" * MANY + b"u"
    ).getvalue(),
    "members of one hash": lambda: archive(
        b"\x8f(" + b"".join(number(n * PRIME) for n in range(12_000)) + b"\x90"
    ).getvalue(),
    "gaps of the memo": lambda: archive(
        b"N" + b"".join(b"r" + struct.pack("<I", place) for place in range(0, 200 * MANY, 200))
    ).getvalue(),
    "own: lists": lambda: structure('{"list": [' + "[]," * MANY + "1]}"),
    "own: dicts": lambda: structure('{"list": [' + '{"dict":[[1,1]]},' * MANY + "1]}"),
    "own: texts": lambda: structure('{"list": [' + '"ab",' * MANY + "1]}"),
    "own: keys of one hash": lambda: structure(json.dumps({"dict": [[n * PRIME, 1] for n in range(12_000)]})),
    "header: lists": lambda: header(b'{"a":[' + b"[]," * MANY + b"1]}"),
    "header: entries": lambda: header(b"{" + b",".join(b'"%d":{}' % n for n in range(MANY)) + b"}"),
    "index: lists": lambda: b'{"weight_map":[' + b"[]," * MANY + b"1]}",
    **{
        f"what {name} makes of one value": partial(many_calls, name, argument)
        for name, argument in {
            "_codecs encode": b"X" + struct.pack("<I", 10_000) + b"a" * 10_000 + b"U\6latin1\x86",
            "__builtin__ bytearray": b"T" + struct.pack("<I", 10_000) + b"a" * 10_000 + b"\x85",
            "__builtin__ set": b"](" + b"".join(map(number, range(3000))) + b"e\x85",
            "collections OrderedDict": b"](" + b"".join(b"](" + number(n) + b"Ne" for n in range(3000)) + b"e\x85",
            "torch Size": b"(" + b"".join(map(number, range(3000))) + b"t\x85",
        }.items()
    },
    "directory": lambda: archive(b"N", **{f"{n:04}": b"" for n in range(2000)}).getvalue(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_file_may_take(name, tmp_path):
    """Small objects take no more than ten times the file, and keys that stand in each other's way no time."""
    path = tmp_path / ("index.json" if name.startswith("index") else "x")
    path.write_bytes(HOSTILE[name]())
    value, fault = mutants.fault_of(lambda: lucid.load(path, map_location="cpu"), path.read_bytes())
    assert fault is None
    assert value is None or name in {"own: texts", "directory"}


def test_keys_that_stand_in_each_others_way_take_no_time():
    """Small integers, of which no two have one hash, can still be chosen so that each search takes long."""
    file = archive(keys(*chain(60_000, 17)))
    value, fault = mutants.outcome_of(lambda: mutants.in_time(lambda: lucid.load(file)))
    assert fault is None
    assert value is None or len(value) == 60_000


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: {f"word{n}": n for n in range(30_000)}, id="words"),
        pytest.param(lambda: list(range(1000, 40_000)), id="numbers"),
        pytest.param(lambda: {n: str(n) for n in range(30_000)}, id="counted keys"),
        pytest.param(lambda: {n * 7919 % 2**40: n for n in range(30_000)}, id="other keys"),
        pytest.param(lambda: [{"loss": 0.5 + n, "rate": 0.1 * n} for n in range(20_000)], id="records"),
        pytest.param(lambda: [[n, n + 1] for n in range(20_000)], id="pairs"),
        pytest.param(lambda: [(n, n + 1) for n in range(20_000)], id="tuples"),
    ],
)
def test_what_people_keep_is_loaded(make):
    """Long lists and dicts of plain values, without any tensor, are within what a file may take, of pickle and own."""
    value = make()
    assert lucid.load(archive(pickle.dumps(value, 2)[2:-1])) == value
    assert reloaded(value) == value


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: [{0: 1}] * 30_000, id="dicts of one entry"),
        pytest.param(lambda: [[]] * 50_000, id="empty lists"),
        pytest.param(lambda: [{}] * 50_000, id="empty dicts"),
        pytest.param(lambda: [float("nan"), 1j, lucid.float32, lucid.device("cpu"), lucid.Size()] * 1000, id="other"),
        pytest.param(lambda: {f"k{n}": lucid.tensor(1.0 * n) for n in range(2000)}, id="small tensors"),
        pytest.param(lambda: [lucid.ones(2)] * 5000, id="one tensor"),
        pytest.param(lambda: ["ab", 1.5, 300] * 20_000, id="plain"),
    ],
)  # fmt: skip
def test_what_is_saved_is_within_what_a_file_may_take(make, monkeypatch):
    """No file is written that is refused afterwards, even if nothing were allowed besides its length."""
    for name in ("bounded", "tree"):
        monkeypatch.setattr(f"lucid.serialization.{name}.ROOM", 1 << 12)
    assert len(reloaded(make())) == len(make())


def test_keys_that_no_load_would_take_are_not_saved(tmp_path):
    """A save refuses what would take a load too long, and leaves nothing."""
    with pytest.raises(CheckpointError, match=r"save: the value at 'a' has so many numbers or tuples as keys"):
        lucid.save({"a": dict.fromkeys(n * PRIME for n in range(9_000))}, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


# ---- memory that is not filled, or not there ----


def test_a_storage_that_nothing_fills_is_refused():
    """In the old form each storage is filled once: a list of keys that lacks one, or has one twice, is refused."""
    keys = b"\x80\x02](" + mutants.text("0") + mutants.text("1") + b"e."
    both = mutants.text("0") + mutants.text("1")
    for listed in (mutants.text("0"), b"", mutants.text("0") * 2, both + mutants.text("1")):
        other = b"](" + listed + b"e"
        data = mutants.old().replace(keys, b"\x80\x02" + other + b".")
        assert data != mutants.old()
        with pytest.raises(CheckpointError, match="expected the bytes of each storage once"):
            lucid.load(io.BytesIO(data))


class Counted(io.BytesIO):
    """A file that knows how much it was asked for at once."""

    most = 0

    def readinto(self, buffer):
        self.most = max(self.most, len(buffer))
        return super().readinto(buffer)

    def read(self, count=-1):
        self.most = max(self.most, count if count >= 0 else len(self.getvalue()))
        return super().read(count)


def claims():
    """Return files with lengths that are not there."""
    start = b"".join(pickle.dumps(each, 2) for each in (mutants.MAGIC, mutants.VERSION, {}))
    for opcode in (
        b"X" + b"\xff" * 4,
        b"\x8d" + b"\x7f" * 8,
        b"\x8e" + b"\xff" * 8,
        b"\x8b\xff\xff\xff\x7f",
        b"T" + b"\xff" * 4,
    ):
        yield start + b"\x80\x02" + opcode + bytes(50)
    zipped = bytearray(archive(tensor()).getvalue())
    last = zipped.rfind(b"PK\5\6")
    for place in (10, 12, 16):
        changed = bytearray(zipped)
        changed[last + place : last + place + 4] = b"\xff\xff\xff\x7f"
        yield bytes(changed)
    yield struct.pack("<Q", 2**40) + b"{}"
    yield struct.pack("<Q", 90_000_000) + b"{}" + bytes(100)


@pytest.mark.parametrize("data", [*claims()], ids=lambda data: "")
def test_a_length_is_looked_at_before_memory_is_taken(data):
    """A length in a file that is not there asks the system for no memory, and the file for no bytes behind its end."""
    file = Counted(data)
    with traced() as memory, pytest.raises(CheckpointError):
        lucid.load(file)
    assert memory.most < 1 << 19
    assert file.most <= len(data)


def test_a_bounded_file_reads_what_is_there():
    """Pieces of all lengths come in their order, from where the file stood; none comes that is behind the end."""
    data = np.random.RandomState(0).bytes(200_000)
    file = io.BytesIO(b"before" + data)
    file.seek(6)
    bounded = Bounded(file)
    assert bounded.size == len(data)
    place = 0
    for count in (1, 0, 100, 70_000, 5, 60_000, 3):
        assert bounded.read(count) == data[place : place + count]
        place += count
        assert bounded.tell() == place
    assert bytes(bounded.array(1000)) == data[place : place + 1000]
    with pytest.raises(EOFError, match="ends 1 bytes early"):
        bounded.read(len(data) - place - 1000 + 1)
    with pytest.raises(EOFError, match="expected a place up to 200,000"):
        bounded.seek(200_001)


def test_an_array_that_changes_while_it_is_saved(tmp_path, monkeypatch):
    """What is written is what it was when the save began: its checksum is that of the bytes in the file."""
    array = np.zeros(1000)
    real = lucid.serialization.replace

    def and_changed(path, write):
        array[:] = 7
        real(path, write)

    monkeypatch.setattr(lucid.serialization, "replace", and_changed)
    shared = lucid.from_numpy(array)
    lucid.save({"array": array, "tensor": shared}, tmp_path / "x")
    monkeypatch.undo()
    found = lucid.load(tmp_path / "x")
    assert array[0] == 7
    assert not found["array"].any()
    assert not found["tensor"].any()


# ---- how it is refused ----


def entry(**changed):
    """Return a safetensors file of 16 bytes with an entry of one's own."""
    text = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16], **changed}}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(16)


@pytest.mark.parametrize(
    "data",
    [
        entry(dtype=["F32"]),
        entry(dtype={}),
        entry(shape=[2**62, 2**62, 0]),
        entry(shape=[[4]]),
        entry(shape="4"),
        entry(data_offsets=[0, [16]]),
        entry().replace(b"[0, 16]", b"[0,1" + b"6" * 5000 + b"]"),
        entry(data_offsets={}),
        header(b"[]"),
        header(b"9" * 5000),
        header(b'{"__metadata__":[1]}'),
        header(b'{"__metadata__":{"a":1}}'),
        header(b'{"__metadata__":{"a":"b","c":null}}'),
        header(b'{"a":{},"a":{}}'),
        header(b"\xff\xff"),
        header(b"[" * 5000),
        b"PK\3\4" + bytes(100) + b"PK\5\6" + bytes(18),
        archive(tensor()).getvalue()[:-30] + b"PK\5\6" + b"\xff" * 18,
        archive(HUGE + b"Q").getvalue(),
        archive(tensor(numel=77).replace(number(77), HUGE)).getvalue(),
        archive(tensor(offset=77).replace(number(77), HUGE)).getvalue(),
        archive(tensor(shape=(77,)).replace(number(77), HUGE)).getvalue(),
        archive(b"ctorch\ndevice\n" + HUGE + b"\x85R").getvalue(),
        archive(b"ctorch\ndevice\nX\3\0\0\0mps\x85R").getvalue(),
    ],
)
def test_no_other_error_comes_out(data):
    """Whatever is wrong with a file is a CheckpointError."""
    with pytest.raises(CheckpointError, match=r"load: <_io.BytesIO"):
        lucid.load(io.BytesIO(data), map_location="cpu")


@pytest.mark.parametrize("part", ["a\0b", "\ud800", "x" * 300, "\u00e4" * 200, "..", "a/b", "\x1b[31m/x"])
def test_names_of_parts(tmp_path, part):
    """A name that no file beside the index can have is refused by the index, and shown without its escapes."""
    (tmp_path / "x.json").write_text(json.dumps({"weight_map": {"w": part}}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="expected the name of a file beside it") as caught:
        lucid.load(tmp_path / "x.json")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_errors_of_the_system_stay(tmp_path):
    """A file that is not there, or may not be read, is the system's error, of a part of an index too."""
    (tmp_path / "x.json").write_text('{"weight_map": {"w": "gone"}}', encoding="utf-8")
    for path in (tmp_path / "gone", tmp_path / "x.json"):
        with pytest.raises(FileNotFoundError, match="gone"):
            lucid.load(path)

    class Broken(io.BytesIO):
        def readinto(self, buffer):
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        lucid.load(Broken(mutants.own()))


@pytest.mark.parametrize("escape", ["\x1b[2J", "\r", "\u202e", "\x07", "\n"])
def test_names_in_files_are_shown_escaped_and_cut(escape, tmp_path):
    """What a file calls things reaches a terminal without control letters, and not at any length."""
    name = escape + "n" * 5000
    files = [
        archive(b"cos\n" + name.replace("\n", "\r").encode()[:900] + b"\n").getvalue(),
        archive(b"X" + len(name.encode()).to_bytes(4, "little") + name.encode() + b"Nb").getvalue(),
        archive(tensor(key=b"1")).getvalue().replace(b"X\1\0\0\x001", b"X\1\0\0\0\x1b"),
        structure(json.dumps({name: 1})),
        structure(json.dumps({"dtype": name})),
        structure(json.dumps({"array": {"name": name, "dtype": "int8", "shape": [], "crc32": 0}})),
    ]
    text = json.dumps({name: {"dtype": name, "shape": [4], "data_offsets": [0, 16]}}).encode()
    files.append(len(text).to_bytes(8, "little") + text + bytes(16))
    for data in files:
        with pytest.raises(CheckpointError) as caught:
            lucid.load(io.BytesIO(data), map_location="cpu")
        assert str(caught.value).isprintable(), str(caught.value)
        assert len(str(caught.value)) < 1000
    (tmp_path / "p").write_bytes(save({"x": np.ones(2)}))
    (tmp_path / "x.json").write_text(
        json.dumps({"weight_map": {f"{name}{n}": "p" for n in range(100)}}), encoding="utf-8"
    )
    with pytest.raises(CheckpointError, match=r"and 95 more, which x.json promises") as caught:
        lucid.load(tmp_path / "x.json")
    assert str(caught.value).isprintable()


def test_a_zip_that_is_packed_within_itself_is_no_bomb():
    """Files of an archive that share their bytes are refused once these are more than the archive."""
    data = archive(b"](" + b"".join(tensor(numel=2**14, shape=(1,), key=b"%d" % n) for n in range(9)) + b"e",
                   **{str(n): bytes(2**16) if n == 0 else b"" for n in range(9)})  # fmt: skip
    with zipfile.ZipFile(data) as source:
        first = source.getinfo("a/data/0")
    raw = bytearray(data.getvalue())
    for n in range(1, 9):
        at = raw.rfind(b"a/data/%d" % n) - 46
        raw[at + 16 : at + 28] = struct.pack("<III", first.CRC, first.compress_size, first.file_size)
        raw[at + 42 : at + 46] = struct.pack("<I", first.header_offset)
    with pytest.raises(CheckpointError, match="files that are longer than the archive"):
        lucid.load(io.BytesIO(bytes(raw)))


def test_a_load_leaves_the_alarm_to_others():
    """The command that looks for late loads puts the program's own handler back."""
    before = signal.getsignal(signal.SIGALRM)
    mutants.run(10)
    assert signal.getsignal(signal.SIGALRM) is before
