"""The driver: kernels that were built, or are compiled by NVRTC, loaded and launched through CuPy."""

from __future__ import annotations

import ctypes
import hashlib
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lucid.base import gpu
from lucid.base.locks import Once
from lucid.base.reports import logger
from lucid.cuda import cache
from lucid.cuda.build import archive
from lucid.cuda.build.image import Image, fitting, key_of
from lucid.cuda.build.nvrtc import Compiler, compiler
from lucid.errors import CudaUnavailableError, KernelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.cuda.launch.kernels import Unit


_OPTIONS = ("--std=c++17",)
_INVALID_CONTEXT = 201
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
# Codes of the driver for code that it cannot run: invalid, for no such device, or newer than itself.
_REFUSED = frozenset({200, 209, 218, 222, 223})
# How kernels came, for the log.
_BUILT, _KEPT = "took %s from those built beforehand, in %.2f s", "took %s from the cache, in %.2f s"
_COMPILED, _BY_CUPY = "compiled %s, in %.2f s", "compiled %s, or found in CuPy's cache, in %.2f s"
# Of the name of a file in lucid's cache, as few locks as this has values.
_KEY, _LOCK = 24, 2


class CudaDriver:
    """Launches through ``libcuda``, on CuPy's current device and stream.

    Raises
    ------
    CudaUnavailableError
        If there is no CUDA device.
    """

    whole_units = False

    def __init__(self) -> None:
        cuda = gpu.cupy().cuda
        self._library = ctypes.CDLL("libcuda.so.1")
        # a third of the time of the same call by ctypes
        self.launch: Callable[..., None] = gpu.part("cupy_backends.cuda.api.driver").launchKernel
        self.device: Callable[[], int] = cuda.runtime.getDevice
        self.stream: Callable[[], Any] = cuda.get_current_stream
        # Bytes of dynamic shared memory that a kernel has been allowed, by its handle.
        self._allowed: dict[int, int] = {}
        # A kernel stays loaded for as long as CuPy's object of it lives.
        self._loaded: list[dict[str, Any]] = []
        # What was built beforehand, as it is loaded, by device and unit.
        self._built: Once[tuple[int, str], tuple[Any, dict[str, str]] | None] = Once()

    # ---- kernels ----

    def compile(self, unit: Unit) -> None:
        """Compile kernels for the current device into the user's cache, unless they are there, or were built."""
        capability = self._capability()
        if self._from_built(unit, capability) is None:
            with suppress(CudaUnavailableError):
                self._image(unit, capability)

    def load(self, unit: Unit) -> dict[str, int]:
        """Load kernels on the current device: built beforehand, kept in the user's cache, or compiled now."""
        started = time.perf_counter()
        capability = self._capability()
        if not unit.declared:
            functions, how = self._by_cupy(unit), _BY_CUPY
        elif built := self._from_built(unit, capability):
            functions, how = built, _BUILT
        else:
            functions, how = self._compiled(unit, capability)
        self._loaded.append(functions)
        names = ", ".join(unit.signatures)
        logger().info(how, f"{unit.name} ({names}), sm_{capability}", time.perf_counter() - started)
        return {name: int(function.ptr) for name, function in functions.items()}

    def _from_built(self, unit: Unit, capability: str) -> dict[str, Any] | None:
        """Return the kernels of a unit from an archive built beforehand; None if it lacks them."""
        opened = self._built((self.device(), unit.name), lambda: self._open(unit, capability))
        if opened is None or not unit.signatures.keys() <= opened[1].keys():
            return None
        module, called = opened
        return {name: module.get_function(called[name]) for name in unit.signatures}

    def _open(self, unit: Unit, capability: str) -> tuple[Any, dict[str, str]] | None:
        """Return the module of a whole unit and the names of its kernels in it; None if no archive has it."""
        stored = archive.find(unit, capability)
        if stored is None:
            return None
        path, image = stored
        try:
            return self._module(image), image.kernels
        except RuntimeError as error:
            if getattr(error, "status", 0) not in _REFUSED:
                raise
            archive.distrust(
                path, f"is not loaded by this driver, which may be older than NVRTC {image.compiler} ({error})"
            )
            return None

    def _compiled(self, unit: Unit, capability: str) -> tuple[dict[str, Any], str]:
        """Return the kernels of a unit, compiled or from the user's cache; and their origin, in words."""
        try:
            image, how = self._image(unit, capability)
        except CudaUnavailableError as error:
            logger().info("kernels are compiled one at a time, by CuPy: %s", error)
            return self._by_cupy(unit), _BY_CUPY
        try:
            module = self._module(image)
        except RuntimeError as error:
            if getattr(error, "status", 0) not in _REFUSED:
                raise
            raise KernelError(
                f"the driver does not load {unit.name}, compiled by NVRTC {image.compiler} for sm_{capability} or an "
                f"older one: {error}; update the driver, or install the NVRTC of its version of CUDA"
            ) from error
        return {name: module.get_function(image.kernels[name]) for name in unit.signatures}, how

    def _image(self, unit: Unit, capability: str) -> tuple[Image, str]:
        """Return the code of a unit, compiled or from the user's cache; and its origin, in words.

        Raises
        ------
        CudaUnavailableError
            If nothing is installed that compiles.
        KernelError
            If it does not compile, or not for this device.
        """
        nvrtc = self._compiler()
        architecture = fitting(nvrtc.architectures, capability)
        if architecture is None:
            raise KernelError(
                f"NVRTC {nvrtc.version} compiles for {', '.join(nvrtc.architectures)}, and for no device of compute "
                f"capability {capability[:-1]}.{capability[-1]}; install a newer one"
            )
        made_of = "\0".join([key_of(unit), architecture, nvrtc.version, *sorted(unit.signatures)])
        key = hashlib.sha256(made_of.encode()).hexdigest()[:_KEY]
        file = f"{unit.stem}-{architecture}-{key}.cubin"
        if image := _kept(file):
            return image, _KEPT
        # Ranks of one job that start together compile each kernel once.
        with cache.alone(key[:_LOCK]):
            if image := _kept(file):
                return image, _KEPT
            image = nvrtc.compile(unit, architecture)
            try:
                cache.keep(file, image.packed())
            except OSError as error:
                logger().warning("%s is not kept in the cache: %s", file, error)
        return image, _COMPILED

    def _capability(self) -> str:
        """Return the compute capability of the current device, such as ``"90"``."""
        return str(gpu.cupy().cuda.Device().compute_capability)

    def _compiler(self) -> Compiler:
        """Return the compiler for CUDA devices."""
        return compiler()

    def _module(self, image: Image) -> Any:
        """Return code as it is loaded on the current device."""
        module = gpu.cupy().cuda.function.Module()
        module.load(image.code)
        return module

    def _by_cupy(self, unit: Unit) -> dict[str, Any]:
        """Return kernels that CuPy compiles, or takes from its own cache: with its headers, one at a time."""
        cupy = gpu.cupy()
        module = cupy.RawModule(code=unit.source, options=_OPTIONS, name_expressions=tuple(unit.signatures))
        try:
            module.compile()
            return {name: module.get_function(name).kernel for name in unit.signatures}
        except cupy.cuda.compiler.CompileException as error:
            raise KernelError(f"NVRTC cannot compile {unit.name}:\n{error}") from error

    # ---- launches ----

    def allow_shared(self, handle: int, nbytes: int) -> None:
        """Raise the kernel's limit of dynamic shared memory, unless it is high enough."""
        if self._allowed.get(handle, 0) >= nbytes:
            return
        request = ctypes.c_void_p(handle), _MAX_DYNAMIC_SHARED_SIZE_BYTES, nbytes
        code = self._library.cuFuncSetAttribute(*request)
        if code and self.recovers(code):
            code = self._library.cuFuncSetAttribute(*request)
        if code:
            raise KernelError(f"{nbytes:,} bytes of shared memory are refused: {self.failure(code)}")
        self._allowed[handle] = nbytes

    def recovers(self, code: int) -> bool:
        """Make the device's context current in a thread that has not used the device yet."""
        if code != _INVALID_CONTEXT:
            return False
        gpu.cupy().cuda.runtime.free(0)
        return True

    def failure(self, code: int) -> str:
        """Return the driver's words for an error code."""
        name, words = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(name))
        self._library.cuGetErrorString(code, ctypes.byref(words))
        return f"{(name.value or b'?').decode()} ({(words.value or b'?').decode()})"


def _kept(file: str) -> Image | None:
    """Return an image from the user's cache; None if it is missing, incomplete, or of another version."""
    content = cache.read(file)
    try:
        return None if content is None else Image.unpacked(content)
    except ValueError:
        return None
