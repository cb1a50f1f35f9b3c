"""CUDA kernels of the user's own: compiled from text, called with tensors, arrays and numbers.

The types of the parameters are read from the source, so that an array of the wrong dtype or a missing argument is an
error in Python and not a wrong result on the device.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import ml_dtypes
import numpy as np

from lucid.base import gpu
from lucid.base.locks import Once
from lucid.cuda.launch import kernels
from lucid.cuda.launch.kernels import Launcher, Unit
from lucid.cuda.source.signature import NUMBERS, Declared, Source, declared, is_const
from lucid.cuda.source.sources import paste
from lucid.errors import DeviceError, DtypeError, KernelError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# A NUL would end the text for NVRTC, and half a character has no bytes.
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
_INTEGERS: Any = (int, np.integer, np.bool_)
_REALS: Any = (*_INTEGERS, float, np.floating, ml_dtypes.bfloat16)
_BFLOAT16 = NUMBERS["__nv_bfloat16"].dtype


class Parameter(NamedTuple):
    """One parameter of a kernel."""

    name: str
    type: str
    is_pointer: bool
    is_const: bool = False

    @property
    def code(self) -> str:
        """Its code in the struct module."""
        return "P" if self.is_pointer else NUMBERS[self.type].code

    def __str__(self) -> str:
        return f"{self.type}{'*' if self.is_pointer else ''} {self.name}"

    def packed(self, value: Any, function: str, device: int) -> Any:
        """Return an argument as the launch takes it.

        Raises
        ------
        DtypeError
            If the argument is of another type.
        DeviceError
            If it is an array on another device.
        KernelError
            If it is an array that is not contiguous.
        """
        if not self.is_pointer:
            return self._number(value, function)
        if value is None:
            return 0
        if isinstance(value, int):
            return value
        # a tensor, which is of a layer above, refuses if it would have to be recorded
        lent = getattr(value, "_lent_to_kernel", None)
        array = value if lent is None else lent(function)
        if isinstance(array, np.ndarray):
            raise DeviceError(f"{function}: {self} needs a tensor on cuda:{device}, got one on the CPU")
        if not gpu.is_gpu_array(array):
            raise DtypeError(f"{function}: {self} needs a CUDA tensor, got {type(value).__name__}")
        if gpu.device_index(array) != device:
            raise DeviceError(
                f"{function}: {self} is on cuda:{gpu.device_index(array)}, and the launch is on cuda:{device}; "
                "launch inside lucid.cuda.device"
            )
        wanted = NUMBERS.get(self.type)
        if wanted is not None and array.dtype != wanted.dtype:
            raise DtypeError(f"{function}: {self} points to {wanted.dtype}, got an array of {array.dtype}")
        if not array.flags.c_contiguous:
            raise KernelError(
                f"{function}: {self} got an array that is not contiguous, and a pointer knows no strides; pass "
                "x.contiguous(), or the address x.data_ptr() if the kernel deals with strides"
            )
        return array.data.ptr

    def _number(self, value: Any, function: str) -> Any:
        wanted = NUMBERS[self.type].dtype
        real = wanted.kind in "fV"
        if not isinstance(value, _REALS if real else _INTEGERS):
            raise DtypeError(f"{function}: {self} needs a number, got {type(value).__name__} {value!r}")
        if wanted == _BFLOAT16:
            return int(np.array(value, _BFLOAT16).view(np.uint16))
        if wanted == np.float16:
            with np.errstate(over="ignore"):  # infinite, as the other types have it
                return float(np.float16(value))
        if real:
            return float(value)
        limits = None if wanted.kind == "b" else np.iinfo(wanted)
        if limits is not None and not limits.min <= value <= limits.max:
            raise DtypeError(f"{function}: {self} holds {limits.min} to {limits.max}, got {value}")
        return int(value)


class Function:
    """A kernel of a `Module`, called like a CuPy kernel: ``function(grid, block, (x, y, 2.0, n))``.

    Attributes
    ----------
    name : str
    parameters : tuple of Parameter
        As the source declares them.
    """

    def __init__(self, name: str, parameters: Sequence[Parameter], module: Module) -> None:
        self.name = name
        self.parameters = tuple(parameters)
        self._launcher = Launcher(name, self.signature, module.handle)

    @property
    def signature(self) -> str:
        """Codes of the parameters, as of the struct module."""
        return "".join(parameter.code for parameter in self.parameters)

    def __call__(
        self, grid: int | tuple[int, ...], block: int | tuple[int, ...], args: Sequence[Any], *, shared_mem: int = 0
    ) -> None:
        """Queue the kernel on the current stream of the current device.

        Parameters
        ----------
        grid, block : int or tuple of up to three int
            Blocks of the launch, threads of a block.
        args : sequence
            One for each parameter. A pointer takes a CUDA tensor or array of its dtype, contiguous, or an address, or
            None; a number takes a Python or NumPy number, which is converted to the parameter's type.
        shared_mem : int
            Bytes of dynamic shared memory of a block.

        Raises
        ------
        KernelError
            If their number is wrong, an array is not contiguous, the launch is refused, or, on the simulated device,
            the kernel does what it may not.
        DtypeError
            If an argument does not fit its parameter.
        DeviceError
            If an array is on another device.
        GraphError
            If a tensor requires grad and grad mode is on: nothing would be recorded.
        """
        grid, block = self._extent("grid", grid), self._extent("block", block)
        if not isinstance(shared_mem, int) or shared_mem < 0:
            raise KernelError(f"{self.name}: shared_mem is a number of bytes, got {shared_mem!r}")
        if len(args) != len(self.parameters):
            wanted = ", ".join(map(str, self.parameters))
            raise KernelError(f"{self.name} takes {len(self.parameters)} arguments ({wanted}), got {len(args)}")
        device = gpu.current_device()
        values = [p.packed(value, self.name, device) for p, value in zip(self.parameters, args, strict=True)]
        self._launcher(grid, block, *values, shared=shared_mem)

    def _extent(self, parameter: str, value: object) -> tuple[int, ...]:
        try:
            extent = tuple(
                operator.index(each) for each in cast("Any", value if isinstance(value, Iterable) else [value])
            )
        except TypeError:
            extent = ()
        if not 1 <= len(extent) <= 3:
            raise KernelError(f"{self.name}: {parameter} is an int or up to three of them, got {value!r}")
        return extent

    def __repr__(self) -> str:
        return f"Function({self.name}({', '.join(map(str, self.parameters))}))"


class Module:
    """The kernels of one source, by name; a template by its name with arguments: ``module["scale<float, 4>"]``.

    Made by `compile`.
    """

    def __init__(self, source: str, name: str) -> None:
        for parameter, value in (("source", source), ("name", name)):
            if not isinstance(value, str):
                raise TypeError(f"compile: {parameter} is a str, got {type(value).__name__}")
            if match := _NOT_TEXT.search(value):
                raise KernelError(f"compile: {parameter} holds the character {match[0]!r}, at {match.start():,}")
        self._name = name
        self._source = paste(source, name)
        self._declared = Source(source, name)
        kernels = self._declared.kernels
        if not kernels:
            raise KernelError(f"{name} declares no kernel: none of its functions is a __global__ void")
        self._templates = {kernel: template for kernel, (template, _) in kernels.items() if template is not None}
        self._functions = {each: self._function(each, each) for each in kernels if each not in self._templates}
        self._plain = tuple(self._functions)
        # by device and name, None for those that are no templates, which are compiled together
        self._loaded: Once[tuple[int, str | None], dict[str, int]] = Once()

    def handle(self, name: str) -> int:
        """Return the handle of a kernel on the current device, compiled if need be."""
        which = None if name in self._plain else name
        return self._loaded((gpu.current_device(), which), lambda: self._load(which))[name]

    def _load(self, which: str | None) -> dict[str, int]:
        signatures = {each: self._functions[each].signature for each in (self._plain if which is None else (which,))}
        stem = re.sub(r"\W", "_", self._name, flags=re.ASCII)
        return kernels.driver().load(Unit(self._name, stem, self._source, signatures))

    def get_function(self, name: str) -> Function:
        """Return the kernel of that name.

        Raises
        ------
        KernelError
            If the source has none, or it is a template and is named without arguments, or does not compile with them.
        """
        if name not in self._functions:
            self._functions[name] = self._instance(name)
            self.handle(name)
        return self._functions[name]

    __getitem__ = get_function

    def _instance(self, name: str) -> Function:
        match = re.fullmatch(r"\s*(\w+)\s*<(.*)>\s*", name)
        if name in self._templates:
            raise KernelError(f"{name} is a template <{self._templates[name]}>; name its arguments: {name}<...>")
        if match is None or match[1] not in self._templates:
            known = ", ".join([*self._plain, *(f"{kernel}<{t}>" for kernel, t in self._templates.items())])
            raise KernelError(f"{self._name} has no kernel {name!r}; it has {known}")
        return self._function(name, match[1], [each.strip() for each in match[2].split(",")])

    def _function(self, name: str, kernel: str, arguments: Sequence[str] = ()) -> Function:
        return Function(name, [_parameter(name, each) for each in self._declared.parameters(kernel, arguments)], self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __repr__(self) -> str:
        return f"Module({self._name!r}: {', '.join([*self._plain, *(f'{t}<...>' for t in self._templates)])})"


def _parameter(kernel: str, declaration: str) -> Parameter:
    """Return a parameter as it is declared in the source."""
    kind, stars, name, extents = (declared(declaration) or [Declared("", 0, "", [])])[0]
    if stars > 1 or extents or not re.fullmatch(r"\w+(?: \w+)*", kind) or not re.fullmatch(r"\w+", name):
        raise KernelError(f"{kernel}: the parameter {declaration[:80]!r} is no number and no pointer to numbers")
    if not stars and kind not in NUMBERS:
        raise KernelError(f"{kernel}: {kind} {name} is passed by value, and only numbers and pointers can be")
    return Parameter(name, kind, stars == 1, is_const(declaration))


def compile(source: str, *, name: str = "custom.cu") -> Module:
    """Compile CUDA C++ for the current device, real or simulated.

    The source may include lucid's headers, such as ``#include "lucid.cuh"``. On a device it is compiled by NVRTC as
    C++17. Autograd does not watch what kernels write, and they refuse tensors that require grad: a kernel with a
    derivative is made by `lucid.cuda.derivative`, or called in the forward of a `lucid.autograd.Function`. A source
    from strangers is a program from strangers: on the simulated device it runs on the host, with all rights of the
    process.

    Parameters
    ----------
    source : str
        Text with one ``__global__ void`` or more, at namespace level, also templates, whose instances are compiled
        when they are asked for. Parameters are numbers and pointers.
    name : str
        What errors call the source.

    Returns
    -------
    Module

    Raises
    ------
    KernelError
        If it does not compile, or declares no kernel.
    TypeError
        If source or name is no str.
    CudaUnavailableError
        If there is no CUDA device.

    Examples
    --------
    >>> source = '''
    ... extern "C" __global__ void saxpy(const float* x, float* y, float a, long long n) {
    ...     long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) y[i] += a * x[i];
    ... }'''
    >>> saxpy = lucid.cuda.compile(source)["saxpy"]  # doctest: +SKIP
    >>> saxpy(4, 256, (x, y, 2.0, x.numel()))  # doctest: +SKIP
    """
    module = Module(source, name)
    for kernel in module:
        module.handle(kernel)
    return module
