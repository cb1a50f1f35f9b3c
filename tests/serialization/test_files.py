"""Checkpoints as files: whole or not there, whoever loads, interrupts or is killed; modes, links, file objects."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import gzip
import io
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import lucid
from lucid.errors import CheckpointError
from lucid.serialization import files
from tests.pieces import raising
from tests.pieces.memory import traced
from tests.stress.files import run


@pytest.fixture
def path(tmp_path):
    """Return where a checkpoint goes."""
    return tmp_path / "model.safetensors"


@pytest.fixture
def umask():
    """Set the umask until the test ends."""
    before = os.umask(0o22)
    yield os.umask
    os.umask(before)


@pytest.fixture
def in_time():
    """Fail what has not ended after a minute."""

    def late(*_):
        pytest.fail("waited for a minute")  # no OSError, which a save may take for an answer of the system

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def mode(path):
    """Return the permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def names(folder):
    """Return the names in a folder."""
    return sorted(entry.name for entry in folder.iterdir())


# ---- one path, many writers and readers ----


@pytest.mark.cpu("files are written on the host")
def test_loads_during_saves_give_whole_saves():
    """Threads of two processes that save and load one path get one of the saves, whole, each time."""
    counts = run(400)
    assert counts.faults == []
    assert counts.loads >= 400
    assert len(counts.seen) > 2


def test_a_load_reads_the_file_that_it_opened(path, monkeypatch):
    """A save that comes between any two reads of a load changes nothing of what it returns."""
    lucid.save({"n": 1, "x": lucid.full((5,), 1.0), "y": lucid.full((9,), 1.0)}, path)
    real, opens = os.open, []

    def and_replaced(*args):
        descriptor = real(*args)
        if args[0] == str(path):
            opens.append(path)
            lucid.save({"n": 2, "other": lucid.zeros(99)}, path)
        return descriptor

    monkeypatch.setattr(os, "open", and_replaced)
    loaded = lucid.load(path)
    assert (loaded["n"], loaded["x"].tolist(), loaded["y"].tolist()) == (1, [1] * 5, [1] * 9)
    assert len(opens) == 1
    assert lucid.load(path)["n"] == 2


def test_a_load_needs_the_memory_of_its_tensors(path):
    """Loading holds each byte once, also when all are in one array."""
    size = 40_000_000
    lucid.save({"big": np.zeros(size, np.uint8)}, path)
    with traced() as memory:
        lucid.load(path)
    assert size < memory.most < 1.05 * size


# ---- the file that appears ----


@pytest.mark.parametrize(("mask", "expected"), [(0o22, 0o644), (0o27, 0o640), (0o77, 0o600), (0o02, 0o664)])
def test_a_new_file_follows_the_umask(path, umask, mask, expected):
    """A new checkpoint is as readable as any file that the process makes."""
    umask(mask)
    lucid.save({}, path)
    assert mode(path) == expected


@pytest.mark.parametrize("kept", [0o644, 0o444, 0o600, 0o666, 0o660])
def test_a_replaced_file_keeps_its_mode(path, umask, kept, monkeypatch):
    """A save changes a file's content and not who may read it; the unfinished file is open to its owner alone."""
    path.write_text("old")
    path.chmod(kept)
    real, seen = fcntl.flock, []

    def noted(file, operation):
        seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", noted)
    lucid.save({"epoch": 1}, path)
    assert mode(path) == kept
    assert seen == [kept & 0o700]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_a_replaced_file_keeps_its_owner(path, monkeypatch):
    """Root's save over the file of somebody else leaves it his, and no other group ever has the rights of its own."""
    path.write_text("old")
    os.chown(path, 12345, 23456)
    path.chmod(0o640)
    real, groups = os.fchmod, []

    def noted(descriptor, mode):
        groups.append(os.fstat(descriptor).st_gid)
        real(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", noted)
    lucid.save({}, path)
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (12345, 23456, 0o640)
    assert groups == [23456]


@pytest.mark.parametrize("error", [errno.EPERM, errno.EINVAL])
@pytest.mark.parametrize(("kept", "expected"), [(0o640, 0o600), (0o664, 0o644), (0o604, 0o604), (0o755, 0o755)])
def test_a_group_that_cannot_be_kept_passes_nothing_on(path, monkeypatch, kept, expected, error):
    """Where the new file is of another group, that group has no more rights than everybody; the save is done."""
    path.write_text("old")
    path.chmod(kept)

    monkeypatch.setattr(os, "fchown", raising(OSError(error, os.strerror(error))))
    lucid.save({"epoch": 1}, path)
    assert mode(path) == expected
    assert lucid.load(path) == {"epoch": 1}


def test_the_group_is_kept_where_the_owner_cannot_be(path, monkeypatch):
    """Who may not give files away still leaves them to the group, with its rights."""
    path.write_text("old")
    path.chmod(0o660)
    groups = []

    def only_groups(descriptor, owner, group):
        if owner != -1:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        groups.append(group)

    monkeypatch.setattr(os, "fchown", only_groups)
    lucid.save({}, path)
    assert groups == [path.stat().st_gid]
    assert mode(path) == 0o660


@pytest.mark.parametrize("there", [True, False])
def test_a_link_that_the_system_does_not_follow_is_refused(path, monkeypatch, tmp_path, there):
    """Linux follows no link of another user in a folder like /tmp (fs.protected_symlinks); neither does a save."""
    precious = tmp_path / "precious"
    if there:
        precious.write_text("precious")
    path.symlink_to(precious)
    real = os.stat

    def guarded(path, **settings):
        if settings.get("follow_symlinks", True) and Path(path).is_symlink():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, **settings)

    monkeypatch.setattr(os, "stat", guarded)
    with pytest.raises(PermissionError):
        lucid.save({}, path)
    monkeypatch.undo()
    assert precious.exists() is there
    assert not there or precious.read_text() == "precious"


def test_a_link_stays_and_what_it_names_is_written(tmp_path):
    """A symbolic link keeps naming its file, which is replaced in its own folder, also where it is not there yet."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "latest").symlink_to("runs/newest")
    (tmp_path / "runs" / "newest").symlink_to("epoch3")
    for epoch in (3, 4):
        lucid.save({"epoch": epoch}, tmp_path / "latest")
        assert (tmp_path / "latest").readlink() == Path("runs/newest")
        assert lucid.load(tmp_path / "runs" / "epoch3") == {"epoch": epoch} == lucid.load(tmp_path / "latest")
    assert (names(tmp_path), names(tmp_path / "runs")) == (["latest", "runs"], ["epoch3", "newest"])


def test_a_link_to_itself_is_refused(path):
    """A link that names no file in the end is the OSError that opening it is."""
    path.symlink_to(path.name)
    with pytest.raises(OSError, match="symbolic link") as caught:
        lucid.save({}, path)
    assert caught.value.errno == errno.ELOOP
    assert path.is_symlink()


def test_other_names_of_a_file_keep_the_old_content(path, tmp_path):
    """A hard link stays with what it named: the new file is another one."""
    lucid.save({"epoch": 1}, path)
    (tmp_path / "kept").hardlink_to(path)
    lucid.save({"epoch": 2}, path)
    assert (lucid.load(tmp_path / "kept"), lucid.load(path)) == ({"epoch": 1}, {"epoch": 2})


def test_file_and_rename_are_brought_to_the_disk(path, monkeypatch):
    """The whole file is synced before it takes its place, and its folder after."""
    lucid.save({"epoch": 1}, path)
    real, seen, sizes = os.fsync, [], []

    def noted(descriptor):
        seen.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), lucid.load(path)["epoch"]))
        sizes.append(os.fstat(descriptor).st_size)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    lucid.save({"epoch": 2}, path)
    assert seen == [(False, 1), (True, 2)]
    assert sizes[0] == path.stat().st_size


def test_errors_name_the_file_that_was_asked_for(path, monkeypatch):
    """An OSError of a save names the target and not the unfinished file."""
    with pytest.raises(FileNotFoundError) as caught:
        lucid.save({}, path / "missing" / "model")
    assert str(caught.value) == f"[Errno 2] No such file or directory: '{path}/missing/model'"
    monkeypatch.setattr(os, "fsync", lambda _: os.write(-1, b""))
    with pytest.raises(OSError, match="Bad file") as caught:
        lucid.save({}, path)
    assert str(caught.value) == f"[Errno 9] Bad file descriptor: '{path}'"
    assert names(path.parent) == []


# ---- what is no regular file ----


def test_what_is_no_file_is_named_at_once(tmp_path, in_time):
    """A fifo, a device and a socket hold no checkpoint, and no load waits for one; a save does not replace them."""
    opened = len([*Path("/dev/fd").iterdir()])
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(CheckpointError, match=r"load: .*fifo is a fifo: expected a regular file"):
        lucid.load(tmp_path / "fifo")
    with pytest.raises(CheckpointError, match=r"load: /dev/null is a device: expected a regular file"):
        lucid.load("/dev/null")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="socket"):
            lucid.load(tmp_path / "socket")
        for name in ("fifo", "socket"):
            with pytest.raises(CheckpointError, match=rf"save: .*{name} is a {name}, which a file would replace"):
                lucid.save({}, tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert names(tmp_path) == ["fifo", "socket"]
    assert len([*Path("/dev/fd").iterdir()]) == opened


def test_a_folder_is_no_file(tmp_path):
    """A folder is an IsADirectoryError that names it, for save and for load."""
    for call in (lucid.load, lambda path: lucid.save({}, path)):
        with pytest.raises(IsADirectoryError) as caught:
            call(tmp_path)
        assert caught.value.filename == str(tmp_path)
    assert names(tmp_path) == []


# ---- writers that end early, and writers that live ----

CHILD = """
import os, sys, lucid
def sync(descriptor):
    if sys.argv[2] == "die":
        os.kill(os.getpid(), 9)
    print("writing", flush=True)
    sys.stdin.read()
os.fsync = sync
lucid.save({"by": "child"}, sys.argv[1])
"""


def child(path, what):
    """Return a process that saves, and that dies or waits for the end of its input before the file is complete."""
    command = [sys.executable, "-c", CHILD, str(path), what]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])


@pytest.mark.cpu("files are written on the host")
def test_what_a_killed_writer_left_goes_with_the_next_save(path):
    """A process that is killed while it saves leaves the old file; what it had written is removed by the next save."""
    lucid.save({"epoch": 1}, path)
    with child(path, "die") as dead:
        assert dead.wait() == -signal.SIGKILL
    assert len(names(path.parent)) == 2
    assert lucid.load(path) == {"epoch": 1}
    zeros = "0" * 32
    others = [f".{path.name}.x.part", f".other{path.name}.{zeros}.part", f"{path.name}.part",
              f".{path.name}.{zeros}.part.txt", f".{path.name.replace('.', '-')}.{zeros}.part"]  # fmt: skip
    for name in others:
        (path.parent / name).touch()
    lucid.save({"epoch": 2}, path)
    assert names(path.parent) == sorted([path.name, *others])


@pytest.mark.cpu("files are written on the host")
def test_a_living_writer_is_left_alone(path, monkeypatch):
    """What other threads and processes are writing to the same path is not removed, and takes its place in the end."""
    writing, go_on = threading.Event(), threading.Event()
    here = threading.current_thread()
    real = os.fsync

    def wait(descriptor):
        if threading.current_thread() is not here:
            writing.set()
            go_on.wait()
        real(descriptor)

    monkeypatch.setattr(os, "fsync", wait)
    thread = threading.Thread(target=lucid.save, args=({"by": "thread"}, path), daemon=True)
    with child(path, "wait") as process:
        thread.start()
        writing.wait()
        assert process.stdout.readline() == b"writing\n"
        for _ in range(2):
            lucid.save({"by": "test"}, path)
            assert len(names(path.parent)) == 3
        go_on.set()
        thread.join()
        assert lucid.load(path) == {"by": "thread"}
        process.stdin.close()
        assert process.wait() == 0
    assert lucid.load(path) == {"by": "child"}
    assert names(path.parent) == [path.name]


def test_what_only_has_the_name_of_an_unfinished_file(path, in_time):
    """A link is left alone, with what it names, and a fifo keeps no save waiting."""
    link, fifo = (path.with_name(f".{path.name}.{digit * 32}.part") for digit in "ab")
    precious = path.with_name("precious")
    precious.touch()
    link.symlink_to(precious)
    os.mkfifo(fifo)
    lucid.save({"epoch": 1}, path)
    assert names(path.parent) == sorted([link.name, precious.name, path.name])


def test_a_writer_holds_its_file_until_it_is_in_place(path, monkeypatch):
    """At the rename the lock is still held: nobody takes a complete file for abandoned."""
    real = Path.replace

    def after_others(part, target):
        files.remove_abandoned(path)
        return real(part, target)

    monkeypatch.setattr(Path, "replace", after_others)
    lucid.save({"epoch": 1}, path)
    assert lucid.load(path) == {"epoch": 1}


def test_a_file_removed_before_it_was_locked_is_begun_again(path, monkeypatch):
    """Another writer that finds a new file before its lock is taken removes it; under a new name, the save goes on."""
    real, removed = fcntl.flock, []

    def late(file, operation):
        if not removed:
            removed.extend(names(path.parent))
            monkeypatch.setattr(fcntl, "flock", real)
            files.remove_abandoned(path)
        real(file, operation)
        assert removed[0] not in names(path.parent)

    monkeypatch.setattr(fcntl, "flock", late)
    lucid.save({"epoch": 1}, path)
    assert len(removed) == 1
    assert lucid.load(path) == {"epoch": 1}
    assert names(path.parent) == [path.name]


def test_a_lock_of_somebody_else_keeps_no_save_waiting(path, monkeypatch, in_time):
    """Who can read a new file can lock it for good: the save goes on under a new name."""
    real, parts = fcntl.flock, []

    with contextlib.ExitStack() as stack:

        def late(file, operation):
            parts.extend(names(path.parent))
            if len(parts) == 1:
                real(stack.enter_context((path.parent / parts[0]).open("rb")), fcntl.LOCK_EX)
            real(file, operation)

        monkeypatch.setattr(fcntl, "flock", late)
        lucid.save({"epoch": 1}, path)
    assert len(set(parts)) == len(parts) == 2
    assert lucid.load(path) == {"epoch": 1}
    assert names(path.parent) == [path.name]


def test_no_locks_no_removal(path, monkeypatch):
    """On a file system without locks a save works, and nothing is taken for abandoned."""
    left = path.parent / f".{path.name}.{'0' * 32}.part"
    left.touch()

    monkeypatch.setattr(fcntl, "flock", raising(OSError(errno.ENOLCK, "No locks available")))
    lucid.save({"epoch": 1}, path)
    assert lucid.load(path) == {"epoch": 1}
    assert left.exists()


def interrupted(call, after):
    """Call, raising KeyboardInterrupt at the line or instruction of that number; tell whether the call ended before."""
    steps = 0

    def trace(frame, event, argument):
        nonlocal steps
        frame.f_trace_opcodes = True
        if event in {"opcode", "line"}:  # Python 3.12 does not tell of each instruction
            steps += 1
            if steps == after:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    gc.disable()  # a collection would run callbacks of test tools, and lose the interrupt in one
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return False
    finally:
        sys.settrace(before)
        gc.enable()
    return True


@pytest.mark.cpu("files are written on the host")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # between `open` and `with` nobody but the interpreter closes it
def test_an_interrupt_leaves_the_old_file_or_the_new(path, monkeypatch):
    """Ctrl-C before any instruction of a save leaves a whole file and nothing beside it; in a load, all as it was."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    lucid.save({"epoch": 0}, path)
    found = [0]
    for n in range(1, 100_000):
        ended = interrupted(lambda n=n: lucid.save({"epoch": n}, path), n)
        assert names(path.parent) == [path.name]
        found.append(lucid.load(path)["epoch"])
        assert found[-1] in {n, found[-2]}
        if ended:
            break
    assert ended
    # interrupts on both sides of the rename: the first left the old file, the last the new
    assert found[1] == 0
    assert found[-2] == n - 1
    for n in range(1, 100_000):
        if interrupted(lambda: lucid.load(path), n):
            break
    assert lucid.load(path)["epoch"] == found[-1]


# ---- file objects ----


def test_file_objects(path, rng, tmp_path):
    """Files in memory, open, unbuffered or compressed ones hold what a path does, from where they stand to the end."""
    value = {"x": lucid.tensor(rng.standard_normal((3, 4))), "epoch": 2}
    lucid.save(value, path)
    memory = io.BytesIO()
    memory.write(b"before")
    lucid.save(value, memory)
    assert memory.getvalue() == b"before" + path.read_bytes()
    for opened in (Path.open, gzip.open, partial(Path.open, buffering=0)):
        with opened(tmp_path / "object", "wb") as file:
            lucid.save(value, file)
            assert not file.closed
        with opened(tmp_path / "object", "rb") as file:
            back = lucid.load(file)
            assert not file.closed
        assert back["epoch"] == 2
        assert back["x"].tolist() == value["x"].tolist()
    memory.seek(6)
    assert lucid.load(memory)["x"].tolist() == value["x"].tolist()
    memory.seek(5)
    with pytest.raises(CheckpointError, match=r"load: <_io.BytesIO object .*> is truncated, corrupt or no checkpoint"):
        lucid.load(memory)


def test_what_is_wrong_with_a_packed_file_is_said(tmp_path):
    """Of a file object whose content is damaged comes a CheckpointError, of what the system refuses its own error."""
    memory = io.BytesIO()
    lucid.save({"x": lucid.ones(300)}, memory)
    packed = bytearray(gzip.compress(memory.getvalue()))
    packed[-6] ^= 1
    with (
        gzip.GzipFile(fileobj=io.BytesIO(bytes(packed))) as file,
        pytest.raises(CheckpointError, match=r"is truncated, corrupt or no checkpoint \(BadGzipFile: CRC check"),
    ):
        lucid.load(file)
    with pytest.raises(FileNotFoundError):
        lucid.load(tmp_path / "nothing")


class Few:
    """A file of a user's own: it writes and reads a few bytes at a time, and has no readinto."""

    def __init__(self, data=b""):
        self.file = io.BytesIO(data)
        self.seek, self.tell = self.file.seek, self.file.tell

    def write(self, data):
        return self.file.write(data[:5])

    def read(self, count):
        return self.file.read(min(count, 7))


def test_files_that_take_and_give_a_part(path, rng):
    """A file that writes or reads less than it is asked to is asked again."""
    lucid.save({"x": np.arange(100)}, path)
    file = Few()
    lucid.save({"x": np.arange(100)}, file)
    assert file.file.getvalue() == path.read_bytes()
    file.seek(0)
    np.testing.assert_array_equal(lucid.load(file)["x"], np.arange(100))


def test_what_is_no_binary_file_is_refused(tmp_path):
    """Text files, and what cannot write, read or seek, are a TypeError that says what is expected."""
    with (tmp_path / "text").open("w+") as text:
        for call in (lambda f: lucid.save({}, f), lucid.load):
            for f, got in ((text, "a file that is open as text"), (3, "int"), (b"name", "bytes"), (None, "NoneType")):
                with pytest.raises(TypeError, match=f"expected a path, or a binary file object with .*, got {got}"):
                    call(f)
    assert (tmp_path / "text").read_bytes() == b""
    memory = io.BytesIO(b"before")
    with pytest.raises(CheckpointError, match="'a' is a object"):
        lucid.save({"a": object()}, memory)
    assert memory.getvalue() == b"before"
    reading, writing = os.pipe()
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe, pytest.raises(TypeError, match="cannot seek: read it into"):
        lucid.load(pipe)
