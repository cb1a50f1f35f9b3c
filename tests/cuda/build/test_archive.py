"""What was built beforehand is found by architecture and text; what is stale or broken is named, and not used."""

from __future__ import annotations

import zipfile

import pytest

from lucid.cuda.build import archive
from lucid.cuda.build.image import Image, key_of
from lucid.cuda.launch.kernels import Unit
from tests.pieces import raising

UNITS = [Unit(f"{stem}.cu for float", stem, f"text of {stem}", {"f": ""}, declared=True) for stem in ("a", "b")]
IMAGES = [Image(key_of(unit), "12.9", {"f": "_Z1f"}, f"\n\0code of {unit.stem}".encode() * 99) for unit in UNITS]


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Return a folder with one archive, which is the one in use."""
    monkeypatch.setenv("LUCID_BUILT_KERNELS", str(tmp_path))
    monkeypatch.setattr(archive, "_told", set())
    for remembered in (archive._checked, archive._fitting):
        remembered.cache_clear()
    archive.write(tmp_path / "sm_90.zip", zip(UNITS, IMAGES, strict=True))
    return tmp_path


def test_what_was_written_is_found(built, caplog):
    """Each image comes back as it was, from the archive of the device's architecture, and nothing is said."""
    found = [archive.find(unit, "90") for unit in UNITS]
    assert found == [(built / "sm_90.zip", image) for image in IMAGES]
    assert not caplog.messages


def test_the_same_content_makes_the_same_file(built):
    """Neither the hour nor the machine are in an archive; nothing else is left in its folder."""
    before = (built / "sm_90.zip").read_bytes()
    archive.write(built / "sm_90.zip", zip(UNITS, IMAGES, strict=True))
    assert (built / "sm_90.zip").read_bytes() == before
    assert [path.name for path in built.iterdir()] == ["sm_90.zip"]


@pytest.mark.parametrize(
    ("there", "capability", "taken"),
    [
        (["80", "90", "100"], "90", "90"),
        (["80", "86", "90"], "89", "86"),  # code runs on newer devices of a generation
        (["80", "89"], "86", "80"),
        (["90", "100"], "103", "100"),
        (["90"], "100", None),
        (["86"], "80", None),
        (["100"], "90", None),
        (["10"], "100", None),
    ],
)
def test_the_architecture_that_fits(built, there, capability, taken):
    """The newest architecture of the device's generation is taken that is no newer than the device."""
    content = (built / "sm_90.zip").read_bytes()
    (built / "sm_90.zip").unlink()
    for each in there:
        (built / f"sm_{each}.zip").write_bytes(content)
    found = archive.find(UNITS[0], capability)
    assert (found and found[0].name) == (taken and f"sm_{taken}.zip")


def test_a_device_without_an_archive_is_told(built, caplog):
    """At level INFO: what there is, and the command that would make the one that is missing."""
    caplog.set_level("INFO", "lucid.cuda")
    assert [archive.find(unit, "120") for unit in UNITS] == [None, None]
    (said,) = caplog.messages
    assert "kernels for sm_90, and none for this device" in said
    assert f"build them: python -m lucid.cuda.build --arch sm_120 --out {built}" in said


def test_another_text_is_stale(built, caplog):
    """A unit whose source has changed is not taken from the archive; one warning for the file says how to mend it."""
    changed = [unit._replace(source=unit.source + " ") for unit in UNITS]
    assert [archive.find(unit, "90") for unit in [*changed, changed[0]]] == [None] * 3
    (said,) = caplog.messages
    assert f"{built / 'sm_90.zip'} was built from another text of a.cu" in said
    assert f"python -m lucid.cuda.build --arch sm_90 --out {built}" in said
    assert archive.find(UNITS[0], "90") is not None


def test_what_was_not_built_is_no_fault(built, caplog):
    """A unit that the archive lacks, as of a dtype that was left out, is compiled without a warning."""
    assert archive.find(UNITS[0]._replace(name="a.cu for double"), "90") is None
    assert not caplog.messages


def cut(path):
    path.write_bytes(path.read_bytes()[:-30])


def flipped(path):
    with zipfile.ZipFile(path) as opened:
        info = opened.infolist()[0]
    content = bytearray(path.read_bytes())
    content[info.header_offset + 30 + len(info.filename) + info.compress_size // 2] ^= 0x55
    path.write_bytes(content)


def no_zip(path):
    path.write_text("no archive")


def no_names(path):
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr(UNITS[0].name, b"[1, 2]\ncode")


def a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("spoil", [cut, flipped, no_zip, no_names, a_folder])
def test_what_is_broken_is_named(built, caplog, spoil):
    """An archive that is not whole is no end: a warning names it and what to do, and nothing of it is used."""
    spoil(built / "sm_90.zip")
    assert archive.find(UNITS[0], "90") is None
    (said,) = caplog.messages
    assert f"{built / 'sm_90.zip'} is damaged" in said
    assert f"python -m lucid.cuda.build --arch sm_90 --out {built}" in said


# ---- the folder ----


def test_the_folder_beside_the_sources(built, monkeypatch):
    """Without a setting it is the one beside the kernels; 0 is none."""
    monkeypatch.delenv("LUCID_BUILT_KERNELS")
    assert archive.folder() == archive.standard()
    assert (archive.standard().parent / "lucid.cuh").is_file()
    for none in ("0", ""):
        monkeypatch.setenv("LUCID_BUILT_KERNELS", none)
        assert archive.find(UNITS[0], "90") is None


def test_a_folder_without_kernels(built, monkeypatch, caplog):
    """A folder that is named and holds nothing is told, once, with the command that fills it."""
    monkeypatch.setenv("LUCID_BUILT_KERNELS", str(built / "none"))
    assert [archive.find(unit, "90") for unit in UNITS] == [None, None]
    (said,) = caplog.messages
    assert f"LUCID_BUILT_KERNELS names {built / 'none'}, which holds no kernels" in said
    assert f"python -m lucid.cuda.build --out {built / 'none'}" in said


def test_a_folder_that_others_may_write(built, caplog):
    """Machine code that another user could have put there is not loaded."""
    built.chmod(0o777)
    assert archive.find(UNITS[0], "90") is None
    (said,) = caplog.messages
    assert "may be written by other users: its mode is 0777" in said


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
def test_a_build_that_ends_early(built, monkeypatch, error):
    """One that fails, or is interrupted, leaves the archive of before, and nothing else."""
    before = (built / "sm_90.zip").read_bytes()
    monkeypatch.setattr(archive.os, "fsync", raising(error))
    with pytest.raises(type(error)):
        archive.write(built / "sm_90.zip", [(UNITS[0], IMAGES[0])])
    assert [path.name for path in built.iterdir()] == ["sm_90.zip"]
    assert (built / "sm_90.zip").read_bytes() == before
