"""Kernels that are launched by grid and block: CuPy's RawKernel, and those of `lucid.cuda.compile`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import is_list, is_tuple
from lucid.autograd.kernels.formulas import Formulas, working_dtype
from lucid.autograd.kernels.recording import KernelWithDerivative
from lucid.base import gpu
from lucid.cuda.compiler import Function, Parameter
from lucid.cuda.source.signature import NUMBERS, Source, declared, is_const
from lucid.errors import ArgumentError, KernelError, LucidError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Raw"]


def parameters_of(kernel: Any) -> list[Parameter]:
    """Return the parameters of a kernel by its source.

    Raises
    ------
    KernelError
        If CuPy does not have the source, as of a module that was loaded from a file, or they cannot be read from it.
    """
    if isinstance(kernel, Function):
        return list(kernel.parameters)
    if not kernel.code:
        raise KernelError(
            f"{kernel.name}: its parameters are read from its source, which CuPy does not have: make it from text, "
            "cupy.RawKernel(source, name)"
        )
    match = re.fullmatch(r"\s*(?:\w+::)*(\w+)\s*(?:<(.*)>)?\s*", kernel.name)
    try:
        if match is None:
            raise KernelError("its name is not understood")
        arguments = [each.strip() for each in (match[2] or "").split(",") if each.strip()]
        texts = Source(kernel.code, kernel.name).parameters(match[1], arguments)
        return [_parameter(text) for text in texts]
    except LucidError as error:
        raise KernelError(f"{kernel.name}: its parameters cannot be read from its source: {error}") from error


def _parameter(text: str) -> Parameter:
    kind, stars, name, extents = declared(text)[0]
    return Parameter(name, kind, bool(stars or extents), is_const(text))


class Raw(KernelWithDerivative):
    """A raw kernel that takes Tensors: ``f(grid, block, args)``."""

    def __init__(
        self, kernel: Any, texts: Mapping[str, str], writes: Sequence[str], backward: Callable[..., Any] | None
    ) -> None:
        name: str = kernel.name
        parameters = parameters_of(kernel)
        by_name = {parameter.name: parameter for parameter in parameters}
        pointers = [p.name for p in parameters if p.is_pointer]
        wanted = [p.name for p in parameters if p.is_pointer and not p.is_const]
        for each in writes:
            if each not in wanted:
                raise KernelError(
                    f"{name}: writes names {each!r}, "
                    + ("a parameter that is const or no pointer" if each in by_name else "no parameter of it")
                    + f": expected some of {', '.join(wanted) or 'none'}"
                )
        if missing := [each for each in wanted if each not in writes]:
            raise KernelError(
                f"{name}: {', '.join(missing)} may be written to, and what a kernel writes must be known: name it, "
                f"writes=({', '.join(repr(each) for each in wanted)},), or declare it const in the source"
            )
        if not writes:
            raise KernelError(f"{name} writes to none of its parameters, so that it has no result")
        if not texts and backward is None:
            raise ArgumentError(
                f"{name}: the derivative of a raw kernel is not found by itself: give the gradient of each input that "
                f'has one, lucid.cuda.derivative(kernel, {pointers[0]}="g * ...", writes=...), or backward=...'
            )
        if wrong := [each for each in texts if each not in pointers]:
            raise KernelError(f"{name}: {', '.join(wrong)} is a number, and only arrays have gradients")
        super().__init__(kernel, name, by_name, pointers, wanted, texts, backward)
        self.formulas = Formulas(name, texts)

    def __call__(self, grid: Any, block: Any, args: Sequence[Any], *, shared_mem: int = 0) -> Any:
        """Return the tensors that the kernel has written, changed in place and recorded if an input requires grad.

        Parameters
        ----------
        grid, block : int or tuple of int
        args : sequence
            One for each parameter: Tensors or arrays, contiguous and of the parameter's dtype, for pointers; numbers,
            which are converted to the parameter's type.
        shared_mem : int
            Bytes of dynamic shared memory of a block.
        """
        names = list(self.parameters)
        listed = is_tuple(args) or is_list(args)
        if not listed or len(args) != len(names):
            got = len(args) if listed else type(args).__name__
            raise ArgumentError(f"{self.name}: args: expected a tuple of {len(names)} ({', '.join(names)}), got {got}")
        written = {name: names.index(name) for name in self.results}
        self._check_shapes(dict(zip(names, args, strict=True)))
        grid, block = (tuple(each) if is_tuple(each) or is_list(each) else (each,) for each in (grid, block))

        def launch(arrays: Sequence[Any]) -> Sequence[Any]:
            device = gpu.current_device()
            packed = [self._packed(p, each, device) for p, each in zip(self.parameters.values(), arrays, strict=True)]
            self.kernel(grid, block, tuple(packed), shared_mem=shared_mem)
            return [arrays[index] for index in written.values()]

        return self.record(args, names, launch, written, overwrites=False)

    def _packed(self, parameter: Parameter, value: object, device: int) -> Any:
        """Return a checked argument in the form for the kernel's own call."""
        if not parameter.is_pointer and parameter.type not in NUMBERS:
            return value
        packed = parameter.packed(value, self.name, device)
        if isinstance(self.kernel, Function) or gpu.is_gpu_array(value):
            return value
        if parameter.is_pointer:
            return packed
        dtype = NUMBERS[parameter.type].dtype
        return (np.dtype(np.uint16) if dtype.kind == "V" else dtype).type(packed)

    def _check_shapes(self, args: Mapping[str, Any]) -> None:
        """Raise `ShapeError` unless the arrays that expressions read have the shape of those that are written."""
        texts = self.formulas.texts
        if not texts:
            return
        read = {*texts, *self.results, *self.formulas.used(tuple(texts))}
        shapes = {
            name: tuple(args[name].shape) for name in self.inputs if name in read and hasattr(args[name], "shape")
        }
        if len(set(shapes.values())) > 1:
            words = ", ".join(f"{name} has the shape {shape}" for name, shape in shapes.items())
            raise ShapeError(
                f"{self.name}: {words}: expressions are of elements at one place of arrays of one shape; give a "
                "function, backward=..., for others"
            )

    def number(self, name: str, value: Any, types: Mapping[str, np.dtype[Any]], result: np.dtype[Any]) -> Any:
        """Return a number in the type of its parameter."""
        known = NUMBERS.get(self.parameters[name].type)
        return value if known is None else working_dtype(known.dtype).type(value)
