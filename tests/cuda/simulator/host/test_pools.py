"""The driver's own pools of memory, and memory that host and device share, answer as CUDA's documentation has it."""

from __future__ import annotations

import pytest

from lucid.base import gpu

pytestmark = pytest.mark.skipif(not gpu.is_simulated(), reason="needs LUCID_CUDA_SIMULATOR")


@pytest.fixture
def runtime():
    """Return CuPy's module of the CUDA runtime, on device 0."""
    with gpu.use_device(0):
        yield gpu.cupy().cuda.runtime


def made(runtime):
    """Return a new pool of device 0."""
    kinds = runtime.cudaMemAllocationTypePinned, runtime.cudaMemHandleTypeNone, runtime.cudaMemLocationTypeDevice
    return runtime.memPoolCreate(runtime.MemPoolProps(*kinds, 0))


def test_what_a_pool_reserves(runtime):
    """A pool grows by 32 MiB, keeps what is freed until it is trimmed, and knows the most that it had."""
    pool = made(runtime)

    def told():
        kinds = ("ReservedMemCurrent", "UsedMemCurrent", "ReservedMemHigh", "UsedMemHigh")
        return [runtime.memPoolGetAttribute(pool, getattr(runtime, f"cudaMemPoolAttr{kind}")) for kind in kinds]

    assert told() == [0, 0, 0, 0]
    some, large = runtime.mallocFromPoolAsync(1000, pool, 0), runtime.mallocFromPoolAsync(33 << 20, pool, 0)
    assert told() == [64 << 20, (33 << 20) + 1000, 64 << 20, (33 << 20) + 1000]
    runtime.freeAsync(large, 0)
    runtime.memPoolTrimTo(pool, 40 << 20)
    assert told() == [40 << 20, 1000, 64 << 20, (33 << 20) + 1000]
    runtime.memPoolTrimTo(pool, 0)
    assert told()[:2] == [32 << 20, 1000]
    runtime.freeAsync(some, 0)
    runtime.memPoolTrimTo(pool, 0)
    assert told()[:2] == [0, 0]
    runtime.memPoolDestroy(pool)


def test_kinds_of_memory(runtime):
    """Memory of the device, of the host and of both is told apart; managed memory has one address for both."""
    pointers = {runtime.malloc: runtime.free, runtime.mallocManaged: runtime.free}
    kinds = [runtime.memoryTypeDevice, runtime.memoryTypeManaged]
    for (allocate, release), kind in zip(pointers.items(), kinds, strict=True):
        pointer = allocate(16)
        told = runtime.pointerGetAttributes(pointer + 8)
        assert (told.type, told.device, told.devicePointer) == (kind, 0, pointer + 8)
        assert told.hostPointer == (pointer + 8 if kind == runtime.memoryTypeManaged else 0)
        release(pointer)
    assert runtime.pointerGetAttributes(id(object())).type == runtime.memoryTypeUnregistered


def test_hints_about_managed_memory(runtime):
    """A device or an advice that there is not is refused."""
    pointer = runtime.mallocManaged(16)
    runtime.memPrefetchAsync(pointer, 16, runtime.cudaCpuDeviceId, 0)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidDevice"):
        runtime.memPrefetchAsync(pointer, 16, 64, 0)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
        runtime.memAdvise(pointer, 16, 7, 0)
    runtime.free(pointer)
