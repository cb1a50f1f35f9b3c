"""What the simulated driver tells of its devices and errors is what CUDA tells: an H200's figures, CUDA's own words."""

from __future__ import annotations

import ctypes
from itertools import chain

import pytest

from lucid.base import gpu
from lucid.cuda.simulator.runtime import runtime

pytestmark = pytest.mark.skipif(not gpu.is_simulated(), reason="needs LUCID_CUDA_SIMULATOR")

# NVIDIA's data sheet of the H200, and its tables of compute capability 9.0.
FIGURES = {
    "multiProcessorCount": 132,
    "major": 9,
    "minor": 0,
    "clockRate": 1_980_000,
    "memoryClockRate": 3_201_000,
    "memoryBusWidth": 6144,
    "l2CacheSize": 60 << 20,
    "warpSize": 32,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiProcessor": 2048,
    "maxBlocksPerMultiProcessor": 32,
    "maxThreadsDim": (1024, 1024, 64),
    "maxGridSize": (2**31 - 1, 65535, 65535),
    "regsPerBlock": 65536,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerBlock": 48 << 10,
    "sharedMemPerBlockOptin": 227 << 10,
    "sharedMemPerMultiprocessor": 228 << 10,
    "reservedSharedMemPerBlock": 1 << 10,
    "totalConstMem": 64 << 10,
    "singleToDoublePrecisionPerfRatio": 2,
    "asyncEngineCount": 3,
    "ECCEnabled": 1,
    "hostNativeAtomicSupported": 0,
    "pageableMemoryAccessUsesHostPageTables": 0,
    "directManagedMemAccessFromHost": 0,
}

# By code: the runtime's name, the driver's, and the text of both.
ERRORS = {
    0: ("cudaSuccess", "CUDA_SUCCESS", "no error"),
    1: ("cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    3: ("cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"),
    100: ("cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"),
    101: ("cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"),
    200: ("cudaErrorInvalidKernelImage", "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"),
    201: ("cudaErrorDeviceUninitialized", "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"),
    301: ("cudaErrorFileNotFound", "CUDA_ERROR_FILE_NOT_FOUND", "file not found"),
    400: ("cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"),
    500: ("cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"),
    600: ("cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"),
    700: ("cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    702: ("cudaErrorLaunchTimeout", "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"),
    704: (
        "cudaErrorPeerAccessAlreadyEnabled",
        "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
        "peer access is already enabled",
    ),
    705: ("cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"),
    710: ("cudaErrorAssert", "CUDA_ERROR_ASSERT", "device-side assert triggered"),
    716: ("cudaErrorMisalignedAddress", "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"),
    719: ("cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"),
    801: ("cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"),
    999: ("cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"),
}


def test_figures_of_an_h200():
    """The figures that are published stand where CuPy finds them."""
    told = gpu.cupy().cuda.runtime.getDeviceProperties(0)
    assert {name: told[name] for name in FIGURES} == FIGURES


def test_properties_are_the_attributes():
    """Whatever both CuPy's properties and its attributes have is the same: the members stand at their places."""
    cupy = gpu.cupy()
    attributes = {name.lower(): value for name, value in cupy.cuda.Device(0).attributes.items()}
    told = cupy.cuda.runtime.getDeviceProperties(0)
    same = {name: value for name, value in told.items() if name.lower() in attributes}
    assert len(same) > 30
    assert same == {name: attributes[name.lower()] for name in same}
    for dimension, sizes in (("maxblockdim", "maxThreadsDim"), ("maxgriddim", "maxGridSize")):
        assert told[sizes] == tuple(attributes[dimension + axis] for axis in "xyz")
    textures = chain.from_iterable(told[name] for name in ("maxTexture3D", "maxTexture3DAlt", "maxSurface3D"))
    assert list(textures) == [16384] * 3 + [8192, 8192, 32768] + [16384] * 3


# Bytes of cudaDeviceProp, and where some of its members are, as NVIDIA's headers of both have them: CUDA 12's and 13's.
LAYOUTS = {"cudaGetDeviceProperties_v2": 1032, "cudaGetDeviceProperties": 1008}
PLACES = {
    "totalGlobalMem": (288, 288),
    "sharedMemPerBlock": (296, 296),
    "major": (360, 360),
    "multiProcessorCount": (388, 384),
    "maxTexture2D": (420, 404),
    "memoryBusWidth": (612, 592),
    "sharedMemPerBlockOptin": (696, 672),
    "maxBlocksPerMultiProcessor": (712, 688),
}


@pytest.mark.parametrize(("function", "which"), [(function, which) for which, function in enumerate(LAYOUTS)])
def test_layouts_of_properties(function, which):
    """Each CUDA's own function gives its own layout and nothing behind it, whichever CuPy is installed."""
    size, room = LAYOUTS[function], (ctypes.c_char * 1100)(*b"\x55" * 1100)
    assert getattr(runtime(), function)(room, 0) == 0
    told = gpu.cupy().cuda.runtime.getDeviceProperties(0)
    for name, places in PLACES.items():
        wanted = told[name][0] if isinstance(told[name], tuple) else told[name]
        kind = ctypes.c_size_t if "Mem" in name and "memory" not in name else ctypes.c_int
        assert kind.from_buffer(room, places[which]).value == wanted, name
    launches_clusters = 772, 748
    assert ctypes.c_int.from_buffer(room, launches_clusters[which]).value == 1
    assert room.raw[size:] == b"\x55" * (1100 - size)
    assert not any(room.raw[size - 200 : size])  # reserved


def test_prefetches_of_both():
    """CUDA 12 takes the number of a device, -1 for the host; CUDA 13 a kind of place with it, behind that flags."""

    class Place(ctypes.Structure):
        _fields_ = (("kind", ctypes.c_int), ("number", ctypes.c_int))

    driver, none = runtime(), ctypes.c_void_p()
    older = [driver.cudaMemPrefetchAsync(none, 0, device, none) for device in (0, -1, 64, -2)]
    assert older == [0, 0, 101, 101]
    places = [(1, 0), (2, 64), (1, 64), (0, 0), (3, 0)]
    assert [driver.cudaMemPrefetchAsync_v2(none, 0, Place(*place), 0, none) for place in places] == [0, 0, 101, 1, 1]
    driver.cudaGetLastError()


@pytest.mark.parametrize("code", [*ERRORS, 7, 12345, -1])
def test_names_and_texts_of_errors(code):
    """Names and texts are those of CUDA's headers; a code that there is not is none of them."""
    driver, words = runtime(), ctypes.c_char_p()
    # a failure without words of its own is the last: an earlier one may have had some
    driver.cudaSetDevice(-1)
    driver.cudaGetLastError()
    first, second, text = ERRORS.get(code, ("unrecognized error code", None, None))
    for function, found in ("cudaGetErrorName", first), ("cudaGetErrorString", text or first):
        getattr(driver, function).restype = ctypes.c_char_p
        assert getattr(driver, function)(code).decode() == found
    for function, found in ("cuGetErrorName", second), ("cuGetErrorString", text):
        assert getattr(driver, function)(code, ctypes.byref(words)) == (0 if found else 1)
        assert (words.value and words.value.decode()) == found


def test_words_of_a_failure_are_its_own():
    """A failure without words of its own has CUDA's, not those of an earlier one of the same code."""
    runtime = gpu.cupy().cuda.runtime
    with pytest.raises(runtime.CUDARuntimeError, match=r"cudaErrorInvalidValue.*out-of-range"):
        runtime.memset(16, 0, 4)
    with pytest.raises(runtime.CUDARuntimeError, match=r"^cudaErrorInvalidValue: invalid argument$"):
        runtime.memAdvise(16, 4, 7, 0)
