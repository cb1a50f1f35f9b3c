"""Files of each format that `lucid.load` reads, changed at random: each gives a value or a CheckpointError, soon.

Of each that loads, the bytes of every tensor have to stand in the file: memory of the process is never handed out.
"""

from __future__ import annotations

import io
import json
import pickle
import re
import signal
import struct
import tempfile
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import lucid
from lucid.errors import CheckpointError, DeviceError
from tests.pieces.memory import traced

SECONDS = 5  # more is a fault
TIMES, ROOM = 10, 1 << 20  # bytes that a load may take: so many times the file's, and what Python takes for anything
CANARY = 0xA5
MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001
VALUES = np.arange(1, 13, dtype="<f4").reshape(3, 4) * np.float32(1.7)
NUMBERS = np.arange(70, 82, dtype="<i8") * 1_000_003  # as many as VALUES: one storage may be taken for the other
TORCH = {"f4": "FloatStorage", "i8": "LongStorage"}


@dataclass
class Finds:
    """What was loaded, refused and found wrong, one line for each fault."""

    files: int = 0
    loaded: int = 0
    faults: list[str] = field(default_factory=list)


def text(word, code=b"X"):
    """Return the opcodes of a text, those of Python 2 for the code U."""
    data = word.encode()
    return code + (len(data).to_bytes(4, "little") if code == b"X" else bytes([len(data)])) + data


def number(value):
    """Return the opcode of an integer."""
    data = pickle.encode_long(value)
    return b"\x8a" + bytes([len(data)]) + data


def pickled_tensor(array, key, *, old, code=b"X"):
    """Return the opcodes of a tensor as `torch.save` writes them."""
    storage = b"ctorch\n" + TORCH[array.dtype.str[1:]].encode() + b"\n"
    view = b"N" if old else b""
    reference = b"(" + text("storage", code) + storage + text(key, code) + text("cpu", code) + number(array.size)
    sizes = [b"(" + b"".join(map(number, each)) + b"t" for each in (array.shape, strides(array))]
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + reference + view + b"tQK\0" + b"".join(sizes) + b"\x89NtR"


def strides(array):
    """Return the strides of an array in elements."""
    return [stride // array.itemsize for stride in array.strides]


def pickled(*, old, code=b"X"):
    """Return the pickle of two tensors and some plain values."""
    items = [text("w", code), pickled_tensor(VALUES, "0", old=old, code=code)]
    items += [text("n", code), pickled_tensor(NUMBERS, "1", old=old, code=code)]
    items += [text("epoch", code), b"K\3", text("rates", code), b"](G?\xb9\x99\x99\x99\x99\x99\x9aG?\xe0\0\0\0\0\0\0e"]
    return b"\x80\x02}q\0(" + b"".join(items) + number(7) + b"\x88u."


def archive(compression, order="little"):
    """Return a checkpoint of PyTorch that is a zip archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as out:
        out.writestr("a/data.pkl", pickled(old=False))
        out.writestr("a/byteorder", order)
        for key, array in {"0": VALUES, "1": NUMBERS}.items():
            out.writestr(f"a/data/{key}", array.astype(array.dtype.newbyteorder(order)).tobytes())
        out.writestr("a/version", "3\n")
    return file.getvalue()


def old(code=b"X", protocol=2):
    """Return a checkpoint of PyTorch of the form before archives, by Python 2 for the code U."""
    start = b"".join(pickle.dumps(each, protocol) for each in (MAGIC, VERSION, {"little_endian": True}))
    keys = b"\x80\x02](" + text("0", code) + text("1", code) + b"e."
    data = b"".join(array.size.to_bytes(8, "little") + array.tobytes() for array in (VALUES, NUMBERS))
    return start + pickled(old=True, code=code) + keys + data


def safetensors(**metadata):
    """Return a safetensors file of another program."""
    header, data = {"__metadata__": {"format": "pt", "tied": "w", **metadata}}, b""
    for name, array, kind in (("n", NUMBERS, "I64"), ("w", VALUES, "F32")):
        places = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": places}
        data += array.tobytes()
    written = json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + data


def own():
    """Return what `lucid.save` writes."""
    file = io.BytesIO()
    shared = lucid.tensor(VALUES, device="cpu")
    plain = {1: ("a", 0.5), None: [float("nan"), 1j, np.int8(3)]}
    lucid.save({"w": [shared, shared], "n": NUMBERS, "plain": plain}, file)
    return file.getvalue()


def index(suffix):
    """Return an index of two files."""
    parts = {"w": f"part-1{suffix}", "n": f"part-1{suffix}"}
    return json.dumps({"metadata": {"total_size": 120}, "weight_map": parts}, indent=1).encode()


def seeds():
    """Return by the name of a format a good file of it."""
    return {
        "own": own(),
        "safetensors": safetensors(),
        "zip": archive(zipfile.ZIP_STORED),
        "deflated zip": archive(zipfile.ZIP_DEFLATED),
        "big-endian zip": archive(zipfile.ZIP_STORED, "big"),
        "old": old(),
        "old, protocol 5": old(protocol=5),
        "old, Python 2": old(b"U"),
        "index of safetensors": index(".safetensors"),
        "index of .bin": index(".bin"),
    }


WORDS = [
    b"", b"\0", b"\xff" * 4, b"\x7f" * 8, b"[" * 50, b"9" * 30, b"-1", b"e999", b'"', b"{}", b"\x1b[31m", b"q\0h\0",
    struct.pack("<Q", 2**62), struct.pack("<I", 2**31), b"}" * 40, b"\x8e\0\0\0\0\0\1\0\0", b"null", b"[[],", b"../",
]  # fmt: skip


def mutant(rng, data):
    """Return a file with one to four changes: bytes, pieces that are cut, doubled, moved or put in, and numbers."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, end = sorted(int(place) for place in rng.integers(0, len(made) + 1, 2))
        end = min(end, at + int(rng.integers(1, 60)))
        what = rng.integers(10)
        if what not in range(2, 7) and at < len(made):
            made[at] ^= 1 << int(rng.integers(8))
        elif what == 2:
            del made[at : end if rng.integers(4) else None]
        elif what == 3:
            made[at:at] = made[at:end] * int(rng.integers(1, 30))
        elif what == 4:
            made[at:end] = WORDS[rng.integers(len(WORDS))]
        elif what == 5 and (found := [*re.finditer(rb"\d+", made)]):
            match = found[rng.integers(len(found))]
            near = int(match[0][:18]) + int(rng.integers(-3, 4))
            made[slice(*match.span())] = str(near).encode()
        else:
            made[at:end] = rng.bytes(end - at)
    return mended(bytes(made)) if rng.integers(3) == 0 else bytes(made)


def mended(data):
    """Return a file of lucid's own with the checksum of its structure that it would have had."""
    match = re.search(rb'"tree":"((?:[^"\\]|\\.)*)","crc32":"(\d*)"', data)
    if match is None:
        return data
    try:
        tree = json.loads(b'"' + match[1] + b'"')
    except ValueError:
        return data
    return data[: match.start(2)] + str(zlib.crc32(tree.encode(errors="surrogatepass"))).encode() + data[match.end(2) :]


def leaves(value, known):
    """Yield the tensors and arrays in an object, each container once."""
    if isinstance(value, lucid.Tensor | np.ndarray):
        yield value
    elif isinstance(value, dict | list | tuple) and id(value) not in known:
        known.add(id(value))
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each, known)


def pieces_of(leaf):
    """Return the bytes of a tensor or array, of one that is no part of memory as it lies there element by element."""
    array = leaf.detach().numpy() if isinstance(leaf, lucid.Tensor) else leaf
    if array.flags.c_contiguous:
        return {array.tobytes()}
    first = array[tuple(slice(0, 100) for _ in array.shape)]
    return {element.tobytes() for element in first.flat}


def is_foreign(value, sources):
    """Tell whether an object holds bytes that no part of its file has."""
    pieces = {piece for leaf in leaves(value, set()) for piece in pieces_of(leaf)}
    return not all(any(piece in source for source in sources) for piece in pieces)


def sources_of(data):
    """Return the bytes that tensors of a file may have: its own, unpacked and in the other order, too."""
    found = [data]
    for match in re.finditer(rb"PK\x03\x04", data):
        names, more = struct.unpack("<HH", data[match.start() + 26 : match.start() + 30].ljust(4, b"\0"))
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            found.append(unpacker.decompress(data[match.start() + 30 + names + more :], 1 << 20))
        except zlib.error:
            continue
    if b"big" in data:
        for size in (2, 4, 8):
            for start in range(size):
                numbers = data[start : start + (len(data) - start) // size * size]
                found.append(np.frombuffer(numbers, f"u{size}").byteswap().tobytes())
    return found


class LateError(BaseException):
    """A load took too long."""


def late(*_):
    """Raise where a load is too long in Python."""
    raise LateError


def dirty():
    """Leave memory behind that says so wherever it is handed out before it is filled."""
    for size in (16, 32, 48, 72, 96, 144, 1 << 10, 1 << 16):
        for _ in range(4):
            np.full(size, CANARY, np.uint8)


def in_time(load):
    """Return what a load gives, unless it takes too long: of the processor's time, however busy the machine is."""
    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return load()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def outcome_of(load):
    """Return the value of a load or None, and what is wrong with how it ends, or None."""
    try:
        return load(), None
    except (CheckpointError, DeviceError) as error:
        if all(letter.isprintable() for letter in str(error)) and len(str(error)) < 2000:
            return None, None
        return None, f"a message that is not for a terminal: {str(error)[:100]!r}"
    except FileNotFoundError:  # of a part that an index names
        return None, None
    except LateError:
        return None, f"over {SECONDS} s"
    except Exception as error:  # noqa: BLE001  what comes out is what is asked
        return None, f"raw {type(error).__name__}: {str(error)[:100]!r}"


def fault_of(load, data):
    """Load a file twice, in time and with an eye on memory; return the value or None, and what is wrong, or None."""
    dirty()
    value, fault = outcome_of(lambda: in_time(load))
    if fault:
        return None, fault
    with traced() as memory:
        outcome_of(load)
    if memory.most > TIMES * len(data) + ROOM:
        fault = f"{memory.most:,} bytes of memory for a file of {len(data):,}"
    return value, fault


def run(files, seed=0, keep=None):
    """Load so many changed files, in turn of each format; return what was found, and leave what failed in `keep`."""
    rng = np.random.default_rng(seed)
    good, finds = list(seeds().items()), Finds()
    with tempfile.TemporaryDirectory() as folder:
        parts = {"part-1.safetensors": safetensors(), "part-1.bin": archive(zipfile.ZIP_STORED)}
        for name, data in parts.items():
            Path(folder, name).write_bytes(data)
        for turn in range(files):
            name, data = good[turn % len(good)]
            data = mutant(rng, data) if turn >= len(good) else data
            path = Path(folder, "x.index.json" if name.startswith("index") else "x")
            path.write_bytes(data)
            whole = data + b"".join(parts.values()) if name.startswith("index") else data
            value, fault = fault_of(lambda path=path: lucid.load(path, map_location="cpu"), whole)
            if not fault and value is not None and is_foreign(value, [whole, *sources_of(whole)]):
                fault = "foreign bytes"
            if not fault and value is None and turn < len(good):
                fault = "a good file is refused"
            finds.files += 1
            finds.loaded += value is not None
            if fault:
                finds.faults.append(f"{name}: {fault}")
                if keep:
                    Path(keep, f"{turn}{path.suffix}").write_bytes(data)
    return finds
