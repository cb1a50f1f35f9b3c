"""Common part of all kinds of kernels: operands are checked, the kernel is launched, and the call is recorded."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lucid.autograd.base import TensorBase, describe, is_list, is_tuple, wrap
from lucid.autograd.function import Function
from lucid.autograd.kernels.formulas import Formulas, Shapes, seeds_of
from lucid.autograd.modes.state import thread
from lucid.autograd.recording.views import before_change, check_change, memory_error
from lucid.base import gpu
from lucid.base.dtype import dtype_of
from lucid.base.foreign.reading import read
from lucid.base.memory import writeable
from lucid.errors import (
    ArgumentError,
    DeviceError,
    DtypeError,
    GraphError,
    InplaceError,
    KernelError,
    LucidError,
    NotDifferentiableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lucid.base.arrays import Array

__all__ = ["Call", "KernelWithDerivative", "no_derivative"]

NUMBERS = (bool, int, float, complex, np.number, np.bool_)


class Call(NamedTuple):
    """One call of a kernel.

    Attributes
    ----------
    owner : KernelWithDerivative
    names : tuple of str
        Of the operands, in order.
    launch : callable
        Takes the operands, arrays and numbers, and returns the arrays of the results.
    written : mapping of str to int
        By the name of a result which operand it is; of other results the arrays are new.
    overwrites : bool
        Whether all of a written operand is new, so that what it held gets no gradient.
    recording : bool
        Whether grad mode is on.
    kept : callable or None
        What shape a result has beside the operands, from their shapes: of a reduction.
    """

    owner: KernelWithDerivative
    names: tuple[str, ...]
    launch: Callable[[Sequence[Any]], Sequence[Array]]
    written: Mapping[str, int]
    overwrites: bool
    recording: bool
    kept: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None

    def __repr__(self) -> str:
        return f"Call({self.owner.name})"


def no_derivative(name: str, reason: Exception, parameter: str) -> NotDifferentiableError:
    """Return the error for a kernel that gives no derivative by itself."""
    if isinstance(reason, RecursionError):
        reason = KernelError("an expression is nested too deep")
    return NotDifferentiableError(
        f"{name}: its derivative is not found: {reason}. Give the gradient of each input that has one as an "
        f'expression, such as lucid.cuda.derivative(kernel, {parameter}="g * ..."), or a function, backward=...'
    )


class KernelWithDerivative:
    """A kernel that takes Tensors and is recorded, made by `lucid.cuda.derivative`.

    Attributes
    ----------
    kernel : object
        What was wrapped.
    name : str
        That of the kernel.
    """

    formulas: Formulas

    def __init__(
        self,
        kernel: Any,
        name: str,
        parameters: Any,
        inputs: Sequence[str],
        results: Sequence[str],
        texts: Mapping[str, str],
        backward: Callable[..., Any] | None,
    ) -> None:
        self.kernel = kernel
        self.name = name
        self.parameters = parameters
        # which may have a gradient
        self.inputs = tuple(inputs)
        self.results = tuple(results)
        # by itself: for real numbers
        self.derived = not texts and backward is None
        self.backward = backward
        self.function = type(re.sub(r"\W", "_", name) or "Kernel", (_KernelFunction,), {})

    @functools.cached_property
    def seeds(self) -> Mapping[str, str]:
        """Names of the results' gradients in expressions, by result."""
        return seeds_of(self.results, list(self.parameters), alone=True)

    @property
    def gradients(self) -> dict[str, str]:
        """By the name of an input the expression of its gradient: given, or found."""
        return dict(self.formulas.texts)

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **options: Any) -> Any:
            """Call the kernel as its kind is called."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={text!r}" for name, text in self.gradients.items())
        return f"derivative({self.name}, {'backward=...' if self.backward else shown})"

    def record(
        self,
        operands: Sequence[Any],
        names: Sequence[str],
        launch: Callable[[Sequence[Any]], Sequence[Array]],
        written: Mapping[str, int],
        *,
        overwrites: bool = True,
        kept: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None,
    ) -> Any:
        """Return the results of a call: one alone by itself, several in a tuple."""
        call = Call(self, tuple(names), launch, written, overwrites, bool(thread.state.recording), kept)
        results = self.function.apply(*operands, call)
        return results[0] if len(results) == 1 else results

    def types(self, names: Sequence[str], arrays: Sequence[Any]) -> dict[str, np.dtype[Any]]:
        """Return the dtypes of the letters of types in a call."""
        return {}

    def number(self, name: str, value: object, types: Mapping[str, np.dtype[Any]], result: np.dtype[Any]) -> Any:
        """Return a number as an expression computes with it, beside a result of some dtype."""
        return value

    # ---- the forward ----

    def run(self, ctx: Any, call: Call, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Launch the kernel, and keep the values for its backward."""
        arrays, device = self._arrays(call, operands)
        tracked = call.recording and any(ctx.needs_input_grad)
        wanted = self._wanted(call, ctx.needs_input_grad, arrays) if tracked else []
        # what the backward reads: formulas their names, a user's function all operands and results
        used = self.formulas.used(wanted) if self.backward is None else {*call.names, *self.results}
        self._check_written(call, operands, arrays, used, tracked=tracked)
        for index in call.written.values():
            if isinstance(operands[index], TensorBase):
                before_change(operands[index])
                arrays[index] = operands[index].array
        results = self._launched(call, arrays, device)
        tensors = {
            name: operands[call.written[name]] if name in call.written else wrap(result)
            for name, result in zip(self.results, results, strict=True)
        }
        ctx.mark_dirty(*[operands[index] for index in call.written.values() if isinstance(operands[index], TensorBase)])
        if tracked:
            ctx.call = call
            by_name = dict(zip(call.names, zip(operands, arrays, strict=True), strict=True))
            self._keep(ctx, by_name, tensors, wanted, used)
        return tuple(tensors.values())

    def _arrays(self, call: Call, operands: Sequence[Any]) -> tuple[list[Any], int]:
        """Return the operands as arrays of one CUDA device, and numbers, and the index of that device."""
        arrays: list[Any] = []
        places: dict[str, int] = {}
        for name, value in zip(call.names, operands, strict=True):
            array = value.array if isinstance(value, TensorBase) else value
            if array is None or isinstance(array, NUMBERS):
                arrays.append(array)
                continue
            if not gpu.is_gpu_array(array):
                array = self._foreign(name, value)
            arrays.append(array)
            places[name] = gpu.device_index(array)
        if not places:
            raise ArgumentError(f"{self.name}: expected a CUDA tensor among its arguments, got numbers alone")
        if len(set(places.values())) > 1:
            where = ", ".join(f"{name} on cuda:{index}" for name, index in places.items())
            raise DeviceError(
                f"{self.name}: expected all arrays on one device, got {where}: move them with .to(device)"
            )
        return arrays, next(iter(places.values()))

    def _foreign(self, name: str, value: object) -> Array:
        """Return the CUDA array that another library lends."""
        dtype = getattr(value, "dtype", None)
        if getattr(dtype, "fields", None):
            raise DtypeError(
                f"{self.name}: {name} is a structured array, of {dtype}, and kernels take numbers: pass each field as "
                "an array of its own"
            )
        array = read(value) if hasattr(value, "__cuda_array_interface__") else None
        if array is not None:
            return array
        if isinstance(value, TensorBase | np.ndarray):
            raise DeviceError(
                f"{self.name}: {name} is {'a tensor' if isinstance(value, TensorBase) else 'an array'} on the CPU, and "
                "the kernel runs on a CUDA device: move it there, with lucid.as_tensor(x).cuda()"
            )
        raise ArgumentError(
            f"{self.name}: {name}: expected a CUDA tensor, an array or a number, got {type(value).__name__}"
        )

    def _wanted(self, call: Call, needs: Sequence[bool], arrays: Sequence[Any]) -> list[str]:
        """Return the operands with gradients to be computed.

        Raises
        ------
        NotDifferentiableError
            If one that requires grad has none.
        """
        if self.derived and any(need and array.dtype.kind == "c" for need, array in zip(needs, arrays, strict=False)):
            raise NotDifferentiableError(
                f"{self.name}: derivatives are found for real numbers alone: give the gradient as an expression, such "
                f'as lucid.cuda.derivative(kernel, {call.names[0]}="g * conj(...)")'
            )
        wanted = [name for name, need in zip(call.names, needs, strict=False) if need]
        if call.overwrites:
            wanted = [name for name in wanted if name not in call.written]
        for name in wanted:
            if self.backward is None and name not in self.formulas.texts:
                held = ""
                if name in call.written:
                    adds = self.seeds[name]
                    held = f', as it is written to: "0" where what it held is lost, "{adds}" where it is added to'
                raise NotDifferentiableError(
                    f"{self.name}: the tensor given for {name} requires grad, and no gradient of {name} is known: give "
                    f'its expression, lucid.cuda.derivative(kernel, {name}="g * ..."){held}, or pass {name}.detach()'
                )
        return wanted

    def _check_written(
        self, call: Call, operands: Sequence[Any], arrays: Sequence[Any], used: set[str], *, tracked: bool
    ) -> None:
        """Raise unless everything that the call writes to may be written to."""
        cupy = gpu.cupy()
        for name, index in call.written.items():
            tensor, array = operands[index], arrays[index]
            if not gpu.is_gpu_array(array):
                raise ArgumentError(f"{self.name}: {name} is written to: expected a CUDA tensor, got {array!r}")
            if not writeable(array):
                raise (
                    memory_error(tensor)
                    if isinstance(tensor, TensorBase)
                    else InplaceError(
                        f"{self.name}: elements of {name} share memory, and it is written to: pass a copy"
                    )
                )
            if isinstance(tensor, TensorBase):
                part = tensor.origin is not None and tensor.origin.base.edge is not None
                check_change(tensor, recording=tracked or (part and call.recording))
            elif tracked:
                raise GraphError(
                    f"{self.name}: {name} is an array of CuPy's, which cannot carry the graph of its values: pass a "
                    "Tensor, lucid.empty(..., device='cuda'), or call the kernel under lucid.no_grad()"
                )
            for other, each in zip(call.names, arrays, strict=True):
                if other == name or not gpu.is_gpu_array(each):
                    continue
                needed = (tracked and other in used) or other in call.written
                if needed and cupy.may_share_memory(array, each):
                    raise InplaceError(
                        f"{self.name}: {name}, which is written to, shares memory with {other}"
                        + (", which is written to as well: pass another tensor" if other in call.written else
                           f", whose values the gradient needs: pass another tensor for {name}, or {other}.clone()")
                    )  # fmt: skip

    def _launched(self, call: Call, arrays: Sequence[Any], device: int) -> Sequence[Array]:
        """Return the results of the kernel; refusals of CuPy come in lucid's words."""
        try:
            results = gpu.run_on(device, call.launch, arrays)
        except LucidError:
            raise
        except (TypeError, ValueError) as error:
            words = ", ".join(
                f"{name}: {describe(array) if gpu.is_gpu_array(array) else repr(array)}"
                for name, array in zip(call.names, arrays, strict=True)
            )
            raise ArgumentError(f"{self.name}: these arguments do not fit ({words}): {error}") from error
        except gpu.cupy().cuda.compiler.CompileException as error:
            raise KernelError(f"{self.name} does not compile: {error}") from error
        for result in results:
            dtype_of(result)
        return results

    def _keep(
        self, ctx: Any, by_name: Mapping[str, Any], tensors: Mapping[str, Any], wanted: Sequence[str], used: set[str]
    ) -> None:
        """Keep the values for backward on the context; `by_name` has the operands, each with its array."""
        call: Call = ctx.call
        results = {name: tensor.array for name, tensor in tensors.items() if isinstance(tensor, TensorBase)}
        result = next(iter(results.values()))
        arrays = {name: array for name, (_, array) in by_name.items()}
        types = self.types((*arrays, *results), (*arrays.values(), *results.values()))
        values: dict[str, Any] = {}
        saved: dict[str, Any] = {}
        for name in used:
            if name in tensors:
                saved[name] = tensors[name]
            elif name in by_name:
                operand, array = by_name[name]
                if isinstance(operand, TensorBase):
                    saved[name] = operand
                else:
                    values[name] = (
                        wrap(array) if gpu.is_gpu_array(array) else self.number(name, array, types, result.dtype)
                    )
        shape = result.shape
        if call.kept is not None and self.backward is None:
            read = [array for name, array in arrays.items() if name not in call.written]
            shape = np.broadcast_shapes(*[array.shape for array in read if gpu.is_gpu_array(array)])
        dtypes = {name: arrays[name].dtype for name in wanted}
        ctx.wanted, ctx.values, ctx.saved = tuple(wanted), values, tuple(saved)
        ctx.form = Shapes(gpu.device_index(result), shape, dtypes, types)
        ctx.save_for_backward(*saved.values())

    # ---- the backward ----

    def pull(self, ctx: Any, grads: Sequence[Any]) -> tuple[Any, ...]:
        """Return the gradients of the operands, and None for the call."""
        call: Call = ctx.call
        values = {**ctx.values, **dict(zip(ctx.saved, ctx.saved_tensors, strict=True))}
        if self.backward is not None:
            return (*self._asked(call, grads, values), None)
        if not ctx.wanted:
            return (None,) * (len(call.names) + 1)
        values |= {self.seeds[name]: grad for name, grad in zip(self.results, grads, strict=True)}
        if call.kept is not None:
            kept = call.kept(ctx.form.shape)
            for name in (*self.results, *self.seeds.values()):
                if name in values:
                    values[name] = values[name].reshape(kept)
        by_name = dict(zip(ctx.wanted, self.formulas(ctx.wanted, values, ctx.form), strict=True))
        return (*[by_name.get(name) for name in call.names], None)

    def _asked(self, call: Call, grads: Sequence[Any], values: Mapping[str, Any]) -> list[Any]:
        """Return the gradients by the user's function, one for each operand."""
        names = [*call.names, *[name for name in self.results if name not in call.written]]
        function: Any = self.backward
        result: Any = function(grads[0] if len(grads) == 1 else tuple(grads), tuple([values.get(n) for n in names]))
        if isinstance(result, dict):
            result = cast("dict[Any, Any]", result)
            if unknown := [str(name) for name in result if name not in call.names]:
                raise KernelError(
                    f"{self.name}: backward gave a gradient of {', '.join(unknown)}: expected names among "
                    f"{', '.join(call.names)}"
                )
            return [result.get(name) for name in call.names]
        entries: list[Any] = [*result] if is_tuple(result) or is_list(result) else [result]
        if len(entries) not in {len(call.names), len(names)}:
            raise KernelError(
                f"{self.name}: backward gave {len(entries)} gradients: expected one for each of "
                f"{', '.join(call.names)}, or a dict by their names"
            )
        return entries[: len(call.names)]


class _KernelFunction(Function):
    """One launch of a kernel of the user's own; its last argument is the call."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Return the results of the kernel."""
        *operands, call = args
        return call.owner.run(ctx, call, operands)

    @staticmethod
    def backward(ctx: Any, *grads: object) -> tuple[Any, ...]:
        """Return the gradients of the operands."""
        return ctx.call.owner.pull(ctx, grads)
