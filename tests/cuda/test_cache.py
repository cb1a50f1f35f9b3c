"""Nothing is loaded from disk that another user could have written, or that is not whole."""

from __future__ import annotations

import errno
import fcntl
import grp
import hashlib
import os
import pwd
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from lucid.base import gpu
from lucid.base.trust import distrusted
from lucid.cuda import cache
from lucid.cuda.simulator import builder
from lucid.errors import KernelError
from tests.pieces import raising
from tests.pieces.children import python

STRANGER = 65534


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Keep what is compiled in a folder that does not exist yet."""
    monkeypatch.setenv("LUCID_CACHE_DIR", str(tmp_path / "deep" / "kept"))
    monkeypatch.setattr(cache, "_temporary", None)
    cache._lasting.cache_clear()
    cache._refuse.cache_clear()
    yield tmp_path / "deep" / "kept"
    cache._lasting.cache_clear()


@pytest.fixture
def give_away(monkeypatch):
    """Return a function that gives a file to another user; who may not do that becomes another user instead."""

    def give(path):
        if os.geteuid() == 0:
            os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: STRANGER)

    return give


# ---- whom to trust ----


@pytest.mark.parametrize("mode", [0o777, 0o707, 0o702, 0o720, 0o770, 0o1777])
def test_folders_that_others_may_write(tmp_path, mode):
    """A folder is distrusted, by its path and mode, where its group or all may write; a sticky one too."""
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    assert distrusted(folder) is None
    folder.chmod(mode)
    assert distrusted(folder) == f"{folder} may be written by other users: its mode is {mode:04o}"


def test_folders_below_others(tmp_path, give_away):
    """What lies in a folder that others may write could be replaced, unless that one is sticky and no stranger's."""
    folder = tmp_path / "open" / "between" / "folder"
    folder.mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)
    assert distrusted(folder) == f"{tmp_path / 'open'} may be written by other users: its mode is 0777"
    (tmp_path / "open").chmod(0o1777)
    assert distrusted(folder) is None
    give_away(tmp_path / "open")
    assert distrusted(folder) is not None


def test_folders_of_others(tmp_path, give_away):
    """A folder of another user is distrusted, whatever its mode."""
    give_away(tmp_path)
    assert f"{tmp_path} belongs to user" in distrusted(tmp_path)


def test_links_of_others(tmp_path, give_away):
    """A link of one's own is a way to a folder, one of another user is not."""
    (tmp_path / "folder" / "below").mkdir(mode=0o700, parents=True)
    (tmp_path / "folder").chmod(0o700)
    (tmp_path / "link").symlink_to("folder")
    ways = tmp_path / "link", tmp_path / "link" / "below"
    assert [distrusted(way) for way in ways] == [None, None]
    give_away(tmp_path / "link")
    assert all(f"{tmp_path / 'link'} is a link of user" in distrusted(way) for way in ways)


@pytest.mark.parametrize("where", ["the folder", "its link", "a link of its link"])
def test_links_through_folders_of_others(tmp_path, where):
    """Every folder is looked at that the way leads through, link by link: what lies in it could be replaced."""
    way = [tmp_path / name for name in ("the folder", "a link of its link", "its link")]
    for place in way:
        place.mkdir(mode=0o700)
    (way[0] / "x").mkdir(mode=0o700)
    (way[1] / "x").symlink_to(way[0] / "x")
    (way[2] / "x").symlink_to("../a link of its link/x")
    assert distrusted(way[2] / "x") is None
    (tmp_path / where).chmod(0o777)
    reason = f"{tmp_path / where} may be written by other users: its mode is 0777"
    assert distrusted(way[2] / "x").replace("its link/../", "") == reason


def test_folders_that_are_not_there(tmp_path):
    """Links in a circle and folders that do not exist are distrusted, and nothing is raised."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for name in "a", "none":
        assert "cannot be looked at" in distrusted(tmp_path / name)


@pytest.mark.parametrize(
    ("group", "members", "trusted"), [("ada", [], True), ("ada", ["bob"], False), ("lab", [], False)]
)
def test_private_groups(tmp_path, monkeypatch, group, members, trusted):
    """Above the folder, and in what another program made, a group may write of which its owner is the only member."""
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name="ada"))
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name=group, gr_mem=members))
    folder = tmp_path / "above" / "folder"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o770)
    assert (distrusted(folder) is None) is trusted
    folder.parent.chmod(0o700)
    folder.chmod(0o770)
    assert distrusted(folder) is not None
    assert (distrusted(folder, ours=False) is None) is trusted


def test_kernels_of_cupy(tmp_path, monkeypatch, fake_cupy, caplog):
    """CuPy keeps its kernels in memory where others may write into its folder, and a warning names that."""
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "0")
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o755)
    gpu.cupy()
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "0"
    monkeypatch.setattr(gpu, "_module", None)
    tmp_path.chmod(0o777)
    gpu.cupy()
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "1"
    assert f"{tmp_path} may be written by other users" in caplog.text
    assert "CUPY_CACHE_DIR" in caplog.text


# ---- what is kept ----


def test_what_is_kept_is_private(kept):
    """Folders that are made, and files, are open to nobody else, whatever the umask; content and checksum are there."""
    before = os.umask(0)
    try:
        path = cache.keep("a.so", b"content")
        with cache.alone("a"):
            pass
    finally:
        os.umask(before)
    assert cache.find("a.so") == path == kept / "a.so"
    assert path.read_bytes() == b"content" + hashlib.sha256(b"content").digest()
    assert [stat.S_IMODE(p.stat().st_mode) for p in (kept, kept.parent, path)] == [0o700, 0o700, 0o600]
    assert stat.S_IMODE((kept / "a.lock").stat().st_mode) == 0o600
    assert cache.find("b.so") is None


def a_link(path, _):
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


def a_folder(path, _):
    path.unlink()
    path.mkdir()


def a_pipe(path, _):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path, give: path.chmod(0o666), "may be written by other users: its mode is 0666"),
        (lambda path, give: path.chmod(0o620), "may be written by other users: its mode is 0620"),
        (lambda path, give: give(path), "belongs to user"),
        (a_link, "is a link"),
        (a_folder, "is no file"),
        (a_pipe, "is no file"),
        (lambda path, give: path.write_bytes(b""), "is damaged"),
        (lambda path, give: path.write_bytes(path.read_bytes()[:20]), "is damaged"),
        (lambda path, give: path.write_bytes(path.read_bytes()[:-1]), "is damaged"),
        (lambda path, give: path.write_bytes(b"C" + path.read_bytes()[1:]), "is damaged"),
    ],
)
def test_files_that_are_refused(kept, give_away, caplog, spoil, words):
    """A file that others may write, that is no file or not whole is not found, and a warning names it."""
    path = cache.keep("a.so", b"content" * 100)
    spoil(path, give_away)
    opened = len([*Path("/dev/fd").iterdir()])
    assert cache.find("a.so") is None
    assert f"{path} is not loaded" in caplog.text
    assert words in caplog.text
    assert len([*Path("/dev/fd").iterdir()]) == opened


def test_a_file_that_was_refused_is_replaced(kept, tmp_path):
    """What is built again takes the place of a link, whose target stays as it was."""
    (tmp_path / "precious").write_bytes(b"precious")
    cache.folder()
    (kept / "a.so").symlink_to(tmp_path / "precious")
    assert cache.find("a.so") is None
    cache.keep("a.so", b"content")
    assert cache.find("a.so") == kept / "a.so"
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_locks_empty_no_file(kept, tmp_path, caplog):
    """A link in the place of a lock is not followed; what is done under the lock is done."""
    (tmp_path / "precious").write_bytes(b"precious")
    cache.folder()
    (kept / "42.lock").symlink_to(tmp_path / "precious")
    with cache.alone("42"):
        cache.keep("a.so", b"content")
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert "42.lock is not used as a lock" in caplog.text
    # One with content keeps it.
    (kept / "43.lock").write_bytes(b"precious")
    with cache.alone("43"):
        pass
    assert (kept / "43.lock").read_bytes() == b"precious"


def test_a_file_is_whole_on_the_disk_before_it_is_found(kept, monkeypatch):
    """All of it is synced, under another name; a Ctrl-C then leaves nothing."""
    real, sizes = os.fsync, []

    def noted(descriptor):
        sizes.append(os.fstat(descriptor).st_size)
        assert not (kept / "a.so").exists()
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    path = cache.keep("a.so", b"content")
    assert sizes == [path.stat().st_size]
    monkeypatch.setattr(os, "fsync", raising(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        cache.keep("b.so", b"content")
    assert [*kept.iterdir()] == [path]


def test_one_builds_at_a_time(kept):
    """Inside of `alone` nobody else is, also where somebody waits; after it the lock is free."""

    def free():
        with (kept / "42.lock").open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    with cache.alone("42"):
        assert not free()
    assert free()


def test_a_disk_without_locks(kept, monkeypatch, caplog):
    """Where the file system has no locks, what is done under the lock is done, and nothing stays open."""
    cache.folder()
    monkeypatch.setattr(fcntl, "flock", raising(OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))))
    opened = len([*Path("/dev/fd").iterdir()])
    with cache.alone("42"):
        cache.keep("a.so", b"content")
    assert cache.find("a.so") == kept / "a.so"
    assert "42.lock is not used as a lock: Function not implemented" in caplog.text
    assert len([*Path("/dev/fd").iterdir()]) == opened


def test_a_disk_that_is_full(kept, monkeypatch):
    """What the disk does not take is a KernelError that says so; nothing of it is left."""
    cache.folder()
    monkeypatch.setattr(os, "fsync", raising(OSError(28, "No space left on device")))
    with pytest.raises(KernelError, match=r"t cannot be kept: .*No space left on device"):
        builder.build("t", "", ["-shared"], what="t", source=str)
    assert [path.suffix for path in kept.iterdir()] == [".lock"]


@pytest.mark.parametrize("where", ["file/cache", "open"])
def test_a_folder_that_cannot_be_used(tmp_path, monkeypatch, caplog, kept, where):
    """Where the folder cannot be written, or not be trusted, a private one takes its place, with a warning."""
    (tmp_path / "file").write_text("")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("LUCID_CACHE_DIR", str(tmp_path / where))
    folder = cache.folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert cache.folder() == folder
    (message,) = caplog.messages
    assert str(tmp_path / where) in message
    assert "are lost" in message
    assert "LUCID_CACHE_DIR" in message
    cache._remove(folder, os.getpid() + 1)
    assert folder.is_dir()
    cache._remove(folder, os.getpid())
    assert not folder.exists()
    assert cache.folder().is_dir()


@pytest.mark.parametrize("taken", ["by another user", "by a link", "for all to write"])
def test_a_private_folder_whose_name_others_took(tmp_path, monkeypatch, kept, give_away, taken):
    """A forked child outlives its parent's private folder: what another user puts in its place is not used."""
    monkeypatch.setenv("LUCID_CACHE_DIR", str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    gone = cache.folder()
    cache._remove(gone, os.getpid())
    if taken == "by a link":
        gone.symlink_to(tmp_path)
    else:
        gone.mkdir(mode=0o700)
    if taken == "for all to write":
        gone.chmod(0o777)
    else:
        give_away(gone)
    now = cache.folder()
    assert now != gone
    monkeypatch.undo()
    assert stat.S_IMODE(now.stat().st_mode) == 0o700
    for path in (gone, now):
        path.unlink() if path.is_symlink() else path.rmdir()


# ---- in processes of their own ----

EVIL = """
#include <cstdio>
__attribute__((constructor)) static void run() { fclose(fopen("%s", "w")); }
extern "C" int f() { return 666; }
"""
LOADS = """
import ctypes, logging, os, sys
from lucid.cuda.simulator.builder import build
path = build("t", "", ["-shared", "-fPIC"], what="t", source=lambda: 'extern "C" int f() { return 42; }')
print(path, flush=True)
if os.fork() == 0:
    sys.exit(0)
os.wait()
assert ctypes.CDLL(str(path)).f() == 42
"""


def load(folder):
    """Build or find a library in a folder, and load it, in a process of its own: where it lay, and what was logged."""
    ran = python("-c", LOADS, LUCID_CACHE_DIR=str(folder), LUCID_CUDA_SIMULATOR="0")
    assert ran.returncode == 0, ran.stderr
    return Path(ran.stdout.strip()), ran.stderr


@pytest.mark.parametrize("mode", [0o700, 0o777, 0o770])
def test_planted_libraries(tmp_path, mode):
    """A library that was planted under the right name, with its checksum, does not run where others may write."""
    path, _ = load(tmp_path / "first")
    (tmp_path / "evil.cpp").write_text(EVIL % (tmp_path / "ran"))
    subprocess.run(["g++", "-shared", "-fPIC", tmp_path / "evil.cpp", "-o", tmp_path / "evil.so"], check=True)
    content = (tmp_path / "evil.so").read_bytes()
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / path.name).write_bytes(content + hashlib.sha256(content).digest())
    if mode == 0o700:  # the folder is private now, but was not when the file was written
        (tmp_path / "open" / path.name).chmod(0o666)
    (tmp_path / "open").chmod(mode)
    took, told = load(tmp_path / "open")
    assert not (tmp_path / "ran").exists()
    if mode == 0o700:
        assert took == tmp_path / "open" / path.name
        assert str(took) in told
    else:
        assert took.parent != tmp_path / "open"
        assert f"{tmp_path / 'open'} may be written by other users: its mode is {mode:04o}" in told
        # The private folder outlived a child of the process, and is gone with the process.
        assert not took.parent.exists()


def test_truncated_libraries(tmp_path):
    """A library that was cut off is built again: mapped, it would end the process with SIGBUS."""
    path, _ = load(tmp_path)
    whole = path.read_bytes()
    os.truncate(path, len(whole) // 2)
    again, told = load(tmp_path)
    assert again == path
    assert f"{path} is not loaded, but built again: it is damaged" in told
    assert len(path.read_bytes()) == len(whole)
    assert load(tmp_path) == (path, "")
