"""`python -m lucid.cuda.build` fills a folder that processes find, and says of what it cannot do what to do instead."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lucid.cuda.build import __main__ as command
from lucid.cuda.build import archive
from lucid.cuda.build.image import Image, key_of
from lucid.cuda.launch.kernels import Unit
from lucid.errors import KernelError
from tests.kernels.declared import KERNELS

UNITS = [Unit(f"{stem}.cu for float", stem, stem, {f"{stem}<float>": ""}, declared=True) for stem in ("a", "b", "c")]


@pytest.fixture
def fake(monkeypatch):
    """Stand in for NVRTC and for the kernels: what was compiled is noted."""
    compiled = []

    def compile(unit, architecture):
        if unit.stem in fake.wrong:
            raise KernelError(f"NVRTC cannot compile {unit.name}")
        compiled.append((unit.name, architecture))
        return Image(key_of(unit), "12.9", dict.fromkeys(unit.signatures, "_Z"), architecture.encode())

    fake = SimpleNamespace(version="12.9", architectures=("sm_80", "sm_90"), compile=compile, wrong=(), made=compiled)
    monkeypatch.setattr(command, "compiler", lambda: fake)
    monkeypatch.setattr(command, "units", lambda dtypes: UNITS)
    return fake


def test_a_folder_is_filled(fake, tmp_path, monkeypatch, capsys):
    """Each unit is compiled once for each architecture, and is found by a device of it; the end says how to use it."""
    out = tmp_path / "new" / "folder"
    assert command.main(["--arch", "sm_80,sm_90", "--out", str(out), "--jobs", "2"]) == 0
    assert sorted(fake.made) == sorted((unit.name, each) for unit in UNITS for each in fake.architectures)
    assert f"LUCID_BUILT_KERNELS={out}" in capsys.readouterr().err
    monkeypatch.setenv("LUCID_BUILT_KERNELS", str(out))
    for unit in UNITS:
        for number in ("80", "90"):
            path, image = archive.find(unit, number)
            assert (path.name, image.code) == (f"sm_{number}.zip", f"sm_{number}".encode())


def test_all_that_is_declared_is_built():
    """The units hold every instance of every kernel, once; without a floating dtype those of integers stay."""
    every = {kernel.expression(instance) for kernel in KERNELS for instance in kernel.instances}
    built = [(unit.stem, name) for unit in command.units() for name in unit.signatures]
    assert len(built) == len(set(built))
    assert {name for _, name in built} == every
    some = [unit.name for unit in command.units(["float32"])]
    others = {unit.name for unit in command.units()} - set(some)
    assert {name.partition(" for ")[2] for name in others} == {"double", "__half", "__nv_bfloat16"}
    assert {"cast.cu for float", "cast.cu for int", "copying.cu for uint4"} <= set(some)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "--arch"),
        (["--arch", "90"], "expected architectures such as sm_90, or sm_80,sm_90, got '90'"),
        (["--arch", "sm_90,"], "got ''"),
        (["--arch", "sm_90a"], "nvidia-smi --query-gpu=compute_cap"),
        (["--arch", "sm_90", "--dtype", "half"], "expected some of float32,float64,float16,bfloat16, got 'half'"),
        (["--arch", "sm_90", "--jobs", "0"], "expected a whole number of at least 1, got '0'"),
    ],
)
def test_options_that_are_wrong(fake, capsys, given, words):
    """What was expected and what was got is said before anything is compiled."""
    with pytest.raises(SystemExit) as ended:
        command.main(given)
    assert ended.value.code == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert not fake.made


def test_an_architecture_that_the_compiler_has_not(fake, capsys, tmp_path):
    """The error lists those that it has."""
    assert command.main(["--arch", "sm_90,sm_200", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "NVRTC 12.9 does not compile for sm_200, but for sm_80, sm_90; leave it out, or install another" in said
    assert not fake.made


def test_a_folder_that_cannot_be_made(fake, capsys, tmp_path):
    """The error names the path and the option, before anything is compiled."""
    (tmp_path / "file").write_text("")
    assert command.main(["--arch", "sm_90", "--out", str(tmp_path / "file" / "below")]) == 1
    said = capsys.readouterr().err
    assert str(tmp_path / "file") in said
    assert "--out" in said
    assert not fake.made


def test_a_kernel_that_does_not_compile(fake, capsys, tmp_path):
    """What NVRTC says is printed, and no archive is left that would lack a kernel."""
    fake.wrong = ("b",)
    assert command.main(["--arch", "sm_90", "--out", str(tmp_path)]) == 1
    assert "NVRTC cannot compile b.cu for float" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []
