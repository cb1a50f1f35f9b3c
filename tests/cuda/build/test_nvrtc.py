"""NVIDIA's compiler without a GPU gives machine code of the architecture, with the kernels that were asked for."""

from __future__ import annotations

import os
import struct

import pytest

from lucid.cuda.build import nvrtc
from lucid.cuda.build.image import Image, key_of
from lucid.cuda.launch.kernels import Unit
from lucid.errors import CudaUnavailableError, KernelError
from tests.kernels.nvrtc import is_installed

TEXT = """#include <cuda_bf16.h>
template <typename T, int N> __global__ void twice(T* x) { x[threadIdx.x] = x[threadIdx.x] * T(N); }
__global__ void plain(float* x) { *x = 1; }
"""
UNIT = Unit("twice.cu", "twice", TEXT, {"twice<float, 2>": "P", "twice<__nv_bfloat16, 3>": "P", "plain": "P"})
_MACHINE = 190  # EM_CUDA


@pytest.fixture
def compiler():
    """Return NVIDIA's compiler; skip where it is not installed, and fail under LUCID_REQUIRE_NVRTC=1."""
    if is_installed():
        return nvrtc.compiler()
    if os.environ.get("LUCID_REQUIRE_NVRTC") == "1":
        pytest.fail("LUCID_REQUIRE_NVRTC=1, and the nvrtc extra is not installed", pytrace=False)
    return pytest.skip("needs the nvrtc extra: pip install 'lucid-cupy[nvrtc]'")


def symbols(code):
    """Return the names of the functions in an ELF file, read without CUDA."""
    begin = struct.unpack_from("<Q", code, 40)[0]
    size, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, begin + index * size) for index in range(count)]
    found = set()
    for _, kind, _, _, offset, length, link, *_ in sections:
        for place in range(offset, offset + length, 24) if kind == 2 else ():
            name, info = struct.unpack_from("<IB", code, place)
            start = sections[link][4] + name
            if info & 15 == 2:
                found.add(code[start : code.index(b"\0", start)].decode())
    return found


@pytest.mark.parametrize("number", [80, 90, 100])
def test_an_image_is_code_of_its_architecture(compiler, number):
    """It is an ELF file for the number of the architecture, and what kernels are called in it are its functions."""
    image = compiler.compile(UNIT, f"sm_{number}")
    assert image.code[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", image.code, 18) == (_MACHINE,)
    flags = struct.unpack_from("<I", image.code, 48)[0]
    # the number's place has moved with the version of the format
    assert number in {flags & 0xFF, flags >> 8 & 0xFF}
    assert image.kernels.keys() == UNIT.signatures.keys()
    assert set(image.kernels.values()) == symbols(image.code)
    assert image.kernels["plain"] == "_Z5plainPf"
    assert (image.key, image.compiler) == (key_of(UNIT), compiler.version)
    assert Image.unpacked(image.packed()) == image


def test_only_what_is_asked_for_is_compiled(compiler):
    """Other instances, and kernels that are no templates but are not launched, may be there; those asked for are."""
    alone = UNIT._replace(signatures={"twice<float, 2>": "P"})
    image = compiler.compile(alone, "sm_90")
    assert image.kernels.keys() == {"twice<float, 2>"}
    assert not [name for name in symbols(image.code) if "bfloat16" in name]


def test_keys_tell_texts_apart():
    """The key follows the text, and nothing else of the unit: not which of its kernels are asked for."""
    assert key_of(UNIT) == key_of(UNIT._replace(signatures={}, name="other"))
    assert key_of(UNIT) != key_of(UNIT._replace(source=TEXT + " "))


def test_a_mistake_is_told_with_its_line(compiler):
    """What NVRTC says comes out, with the unit and the architecture; the next compilation is not disturbed."""
    wrong = UNIT._replace(source=TEXT.replace("= 1", "= y"))
    with pytest.raises(KernelError, match=r'NVRTC cannot compile twice\.cu for sm_90:\n[^$]*\(3\): error.*"y"'):
        compiler.compile(wrong, "sm_90")
    assert compiler.compile(UNIT, "sm_90").code


def test_an_unknown_kernel_is_told(compiler):
    """A name that the text does not have is an error of NVRTC's."""
    with pytest.raises(KernelError, match="none"):
        compiler.compile(UNIT._replace(signatures={"none<int>": ""}), "sm_90")


@pytest.mark.parametrize("there", [[], ["lib/libnvrtc.so.12"], ["include/cuda_bf16.h"]])
def test_what_is_missing_is_named(tmp_path, monkeypatch, there):
    """Without library or headers the error says which, and how to get both."""
    for name in there:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(nvrtc, "_roots", lambda: [tmp_path])
    missing = r"cuda_bf16\.h" if "lib/libnvrtc.so.12" in there else "the library of NVRTC"
    with pytest.raises(CudaUnavailableError, match=rf"and {missing} was not found.*pip install .*CUDA_PATH"):
        nvrtc.compiler.__wrapped__()


def test_a_library_that_does_not_load(tmp_path, monkeypatch):
    """The error names the file, what the system says of it, and how to get another."""
    for name in ("lib/libnvrtc.so.12", "include/cuda_bf16.h"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"no library")
    monkeypatch.setattr(nvrtc, "_roots", lambda: [tmp_path])
    with pytest.raises(CudaUnavailableError, match=r"lib/libnvrtc\.so\.12 does not load: .*pip install"):
        nvrtc.compiler.__wrapped__()


def test_the_oldest_is_taken(tmp_path, monkeypatch):
    """Of several versions the oldest, with the headers beside it."""
    for root, version in (("cu13", 13), ("cu12", 12)):
        for name in (f"lib/libnvrtc.so.{version}", "lib/libnvrtc.alt.so.9", "include/cuda_bf16.h"):
            (tmp_path / root / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / root / name).write_bytes(b"")
    monkeypatch.setattr(nvrtc, "_roots", lambda: [tmp_path / "cu13", tmp_path / "cu12"])
    monkeypatch.setattr(nvrtc, "Compiler", lambda *given: given)
    library, headers = nvrtc.compiler.__wrapped__()
    assert library == str(tmp_path / "cu12" / "lib" / "libnvrtc.so.12")
    assert headers == tmp_path / "cu12" / "include"
