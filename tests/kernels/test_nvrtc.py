"""Every kernel, in every dtype, compiles for three architectures and stays within its budget of registers."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import astuple, fields, replace
from types import SimpleNamespace

import pytest

from lucid.cuda import cache
from lucid.cuda.launch.kernels import unit
from lucid.errors import KernelError
from tests.kernels import nvrtc
from tests.kernels.assertions import asserted, assertions
from tests.kernels.declared import KERNELS
from tests.kernels.nvrtc import Usage, compile_unit, is_installed

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
UNITS = sorted(
    {(kernel.stem, instance[0] if instance else "") for kernel in KERNELS for instance in kernel.instances},
)

# A processor has 65,536 registers: with 128 a thread it holds two blocks of 256 threads, so that one computes while the
# other waits for memory. Kernels that keep more in registers on purpose are listed with what they take.
REGISTERS = 128
MORE_REGISTERS = {"lucid::attention_": 224}
# What the same kernels take more on one architecture: of 128 columns still one block of 256 threads fits a processor.
MORE_ON = {"sm_100": {"lucid::attention_key_grad": 248}}
# Bytes that a thread of these may spill, to the cache nearest by: what they hold of a tile or row fills the registers.
SPILLS = {"lucid::rows_backward": 8}
# Bytes of stack; any other has none, since each thread stores and loads what lies there.
STACK = {
    # what is spilled
    "lucid::rows_backward": 8,
    # CUDA's functions of angles, which they reduce in an array where these are beyond 105,615
    r"\w+<\w+, (Sin|Cos|Tan|Sinc|SinGrad|CosGrad|SincGrad),": 32,
}
SHARED = 48 << 10


@pytest.fixture(autouse=True)
def compiler():
    """Skip where NVIDIA's compiler is not installed; under LUCID_REQUIRE_NVRTC=1 fail."""
    if is_installed():
        return
    if os.environ.get("LUCID_REQUIRE_NVRTC") == "1":
        pytest.fail("LUCID_REQUIRE_NVRTC=1, and the nvrtc extra is not installed", pytrace=False)
    pytest.skip("needs the nvrtc extra: pip install 'lucid-cupy[nvrtc]'")


def of(table, name):
    """Return what a table by patterns of the beginnings of kernels' names has for a kernel; 0 if it has nothing."""
    return next((most for start, most in table.items() if re.match(start, name)), 0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(("stem", "group"), UNITS)
def test_compiles_within_its_budget(stem, group, architecture, record_property):
    """No kernel takes more registers, stack or shared memory than planned; its parameters are as they are read."""
    declared = unit(stem, group or None)
    source = declared.source + assertions(stem, group or None)
    usages, known = compile_unit(source, list(declared.signatures), architecture)
    record_property("known", known)
    beyond = []
    for name, usage in usages.items():
        record_property(name, (usage.registers, usage.spilled, usage.stack, usage.shared))
        most = Usage(
            of(MORE_ON.get(architecture, {}), name) or of(MORE_REGISTERS, name) or REGISTERS,
            of(SPILLS, name),
            of(STACK, name),
            SHARED,
        )
        if any(taken > allowed for taken, allowed in zip(astuple(usage), astuple(most), strict=True)):
            beyond.append(f"{name}: {usage}, at most {most}")
    assert not beyond, (
        f"{'; '.join(beyond)}: let it keep less at a time (an array that is indexed by what is known at run time lies "
        "on the stack), or give it more in MORE_REGISTERS, SPILLS or STACK of tests/kernels/test_nvrtc.py, and say why"
    )


@pytest.mark.parametrize("field", [field.name for field in fields(Usage)])
def test_what_is_beyond_its_budget_is_named(monkeypatch, field):
    """Too many registers, spills, bytes of stack or of shared memory of one kernel fail its unit, each by itself."""
    name = "lucid::somebodys_kernel<float>"
    usage = replace(Usage(REGISTERS, 0, 0, SHARED), **{field: 1 << 20})
    monkeypatch.setattr(sys.modules[__name__], "compile_unit", lambda *_: ({name: usage}, False))
    with pytest.raises(AssertionError, match=rf"{re.escape(name)}: Usage\(.*{field}=1048576"):
        test_compiles_within_its_budget(*UNITS[0], "sm_90", lambda *_: None)
    usage = Usage(REGISTERS, 0, 0, SHARED)
    test_compiles_within_its_budget(*UNITS[0], "sm_90", lambda *_: None)


def test_a_mistake_is_reported_with_its_line():
    """The log of a source that does not compile names file and line."""
    source = '#line 7 "kernels/mine.cu"\nextern "C" __global__ void k(float* x) { x[0] = y; }'
    with pytest.raises(KernelError, match=r"mine\.cu\(7\)"):
        compile_unit(source, ["k"], "sm_90")


def test_spills_are_seen():
    """A kernel that needs more registers than a thread can have is reported with its spills."""
    source = """
    template <class T> __global__ __launch_bounds__(1024) void k(T* x, int n) {
        T v[96];
        #pragma unroll
        for (int i = 0; i < 96; i++) v[i] = x[i * n];
        #pragma unroll
        for (int i = 0; i < 96; i++) x[i * n + 1] = v[i] * v[95 - i];
    }
    """
    (usage,) = compile_unit(source, ["k<double>"], "sm_90")[0].values()
    assert usage.spilled > 0
    assert usage.registers <= 64


def test_a_copied_parameter_is_seen():
    """A struct that a kernel indexes by what it computes lies on the stack, unless it is a constant of the grid."""
    source = """
    struct Sizes {
        long long size_d[6];
        __device__ long long product(long long d) const { return d > 0 ? size_d[d] * size_d[d - 1] : size_d[0]; }
    };
    __global__ void copied(long long* x, Sizes sizes) { x[0] = sizes.product(x[1]); }
    __global__ void constant(long long* x, const __grid_constant__ Sizes sizes) { x[0] = sizes.product(x[1]); }
    """
    usages, _ = compile_unit(source, ["copied", "constant"], "sm_90")
    assert usages["copied"].stack >= 48
    assert usages["constant"].stack == 0


class Recorded:
    """Stands in for a compiler that finds a mistake in "mistake", and counts how often it is asked."""

    def __init__(self, folder, library="release 1", header="typedef int half;", other="typedef int bfloat16;"):
        folder.mkdir()
        (folder / "libnvrtc.so").write_text(library)
        (folder / "cuda_fp16.h").write_text(header)
        (folder / "cuda_bf16.h").write_text(other)
        self._library = SimpleNamespace(_name=str(folder / "libnvrtc.so"))
        self._headers = folder
        self.asked = 0

    def told(self, unit, architecture, options):
        self.asked += 1
        if "mistake" in unit.source:
            raise KernelError("mistake")
        said = "Compiling entry function '_{}'\n48 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
        return {n: f"_{n}" for n in unit.signatures}, b"", "".join(said.format(n) for n in unit.signatures)


def test_what_is_known_is_not_compiled_again(tmp_path, monkeypatch):
    """A unit is compiled once; another text, name, option, architecture or compiler, or a damaged file, anew."""
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    first = Recorded(tmp_path / "first")

    def compiles(compiler=first, source="text", names=("f", "g"), architecture="sm_90"):
        """Tell whether the compiler is asked, and check that it makes no difference to what is said."""
        monkeypatch.setattr(nvrtc, "compiler", lambda: compiler)
        before = compiler.asked
        usages, known = compile_unit(source, names, architecture)
        assert usages == {name: Usage(spilled=12, stack=48) for name in names}
        assert known == (compiler.asked == before)
        return not known

    others = {
        "text": {"source": "text "},
        "assertions": {"source": "text" + asserted(["true"])},
        "other assertions": {"source": "text" + asserted(["!false"])},
        "names": {"names": ("f",)},
        "names that run together": {"names": ("fg",)},
        "architecture": {"architecture": "sm_100"},
        "compiler": {"compiler": Recorded(tmp_path / "second", library="release 2")},
        "header": {"compiler": Recorded(tmp_path / "third", header="typedef long half;")},
        "other header": {"compiler": Recorded(tmp_path / "fourth", other="typedef long bfloat16;")},
    }
    for what, different in ({"nothing": {}} | others).items():
        assert compiles(**different), what
        assert not compiles(**different), what
    assert not compiles(compiler=Recorded(tmp_path / "again"))
    for name in ("OPTIONS", "VERBOSE"):
        with monkeypatch.context() as changed:
            changed.setattr(nvrtc, name, (*getattr(nvrtc, name), "--more"))
            assert compiles(), name
    for path in tmp_path.glob("*.json"):
        path.write_bytes(path.read_bytes()[:-1])
    assert compiles()
    assert not compiles()
    for _ in range(2):
        with pytest.raises(KernelError):
            compiles(source="mistake")
    assert first.asked == 7 + 2 + 1 + 2
