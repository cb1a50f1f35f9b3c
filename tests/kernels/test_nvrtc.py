"""Every kernel, in every dtype, compiles for three architectures and stays within its budget of registers."""

from __future__ import annotations

import os

import pytest

from lucid.cuda.launch.kernels import unit
from lucid.errors import KernelError
from tests.kernels.assertions import assertions
from tests.kernels.declared import KERNELS
from tests.kernels.nvrtc import compile_unit, is_installed

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
SPILLS = {"lucid::attention_query_grad": 32, "lucid::rows_backward": 8}
SHARED = 48 << 10


@pytest.fixture(autouse=True)
def compiler():
    """Skip where NVIDIA's compiler is not installed; under LUCID_REQUIRE_NVRTC=1 fail."""
    if is_installed():
        return
    if os.environ.get("LUCID_REQUIRE_NVRTC") == "1":
        pytest.fail("LUCID_REQUIRE_NVRTC=1, and the nvrtc extra is not installed", pytrace=False)
    pytest.skip("needs the nvrtc extra: pip install 'lucid-cupy[nvrtc]'")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(("stem", "group"), UNITS)
def test_compiles_within_its_budget(stem, group, architecture, record_property):
    """No kernel takes more registers or shared memory than planned, or spills; its parameters are as they are read."""
    declared = unit(stem, group or None)
    source = declared.source + assertions(stem, group or None)
    usages = compile_unit(source, list(declared.signatures), architecture)
    beyond = []
    for name, usage in usages.items():
        record_property(name, (usage.registers, usage.spilled, usage.shared))
        more = {**MORE_ON.get(architecture, {}), **MORE_REGISTERS}
        most = next((most for start, most in more.items() if name.startswith(start)), REGISTERS)
        spills = next((spills for start, spills in SPILLS.items() if name.startswith(start)), 0)
        if usage.registers > most or usage.spilled > spills or usage.shared > SHARED:
            beyond.append(f"{name}: {usage}, budget {most} registers, {spills} bytes spilled")
    assert not beyond, "\n".join(beyond)


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
    (usage,) = compile_unit(source, ["k<double>"], "sm_90").values()
    assert usage.spilled > 0
    assert usage.registers <= 64
