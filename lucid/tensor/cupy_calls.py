"""CuPy's functions called with tensors: recorded by the rules of NumPy's functions of the same names.

CuPy documents none of what it asks its arguments for; ``tests/tensor/test_cupy_calls.py`` names what an installed CuPy
has stopped to ask.

- Operators leave the call to the tensor: `lucid.tensor.interop.UfuncProtocol`.
- Ufuncs and ElementwiseKernels ask for `__cupy_override_elementwise_kernel__`, reduction kernels of CuPy's own for
  `__cupy_override_reduction_kernel__`: `kernel_call` and `reduction_call` here.
- Other functions call the method of their name in NumPy's form, ``x.sum(axis, dtype, out, keepdims)``: what PyTorch's
  form cannot take comes to `in_numpys_form`.
- What is left asks for `__cuda_array_interface__`: a tensor that requires grad refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.autograd.base import INFERENCE, TensorBase, version_of
from lucid.autograd.hooks.structure import map_leaves
from lucid.autograd.recording.views import before_change, check_change
from lucid.base import gpu
from lucid.ops.base.promotion import as_operand
from lucid.ops.elementwise.selection import where
from lucid.tensor.interop import OF_KERNELS, export_error
from lucid.tensor.numpy_calls.definition import applied
from lucid.tensor.numpy_calls.operands import NumpyCallError, any_recorded, operand, pytorch_dtype, tensors_in
from lucid.tensor.numpy_calls.table import RULES
from lucid.tensor.numpy_calls.ufuncs import UFUNCS, ufunc_result

if TYPE_CHECKING:
    from collections.abc import Callable


NUMPYS = {"true_divide": "divide"}
"""By the names of CuPy's kernels, where they are not NumPy's, NumPy's."""

OPS: dict[Any, Callable[..., Any]] = {}
"""Of ufuncs that have been called the ops, which promote their operands themselves."""


def name_of(kernel: Any) -> str:
    """Return NumPy's name of a kernel of CuPy's; of others, a name that NumPy has not."""
    name: str = kernel.name.removeprefix("cupy_")
    if name == kernel.name:
        return ""
    name = name.removesuffix("_with_dtype").removesuffix("_complex_dtype")
    return NUMPYS.get(name) or name


def ufunc_of(kernel: Any) -> Any:
    """Return NumPy's ufunc of the meaning of one of CuPy's, None if there is none."""
    name = name_of(kernel) if isinstance(kernel, gpu.cupy().ufunc) else ""
    return getattr(np, name) if name in UFUNCS else None


def kernel_call(_self: object, kernel: Any, *args: object, **options: object) -> Any:
    """Return the result of a ufunc or ElementwiseKernel of CuPy's: a Tensor, by the rule for NumPy's function.

    A kernel without one, and one that writes into an array, runs on the plain arrays where nothing is recorded.

    Raises
    ------
    ExportError
        If a Tensor requires grad for a kernel that has no rule.
    NumpyCallError
        If it requires grad and the result is to be written into an array, or the rule does not take an option.
    """
    if not options and len(args) == kernel.nin and (op := OPS.get(kernel)) is not None:
        # the rule of `where` gives np.float64 its dtype, ufuncs take it for a number of Python's
        return op(*on_one_device(args, strong=op is where))
    name = name_of(kernel) if isinstance(kernel, gpu.cupy().ufunc) else ""
    if name and options.get("out") is None and len(args) == kernel.nin:
        if name in UFUNCS:
            OPS[kernel] = UFUNCS[name]
            return ufunc_result(getattr(np, name), "__call__", on_one_device(args), options)
        if name == "where":
            OPS[kernel] = where
        if name in RULES:
            return in_numpys_form(_self, name, args, options)
    targets = [*tensors_in((*args[kernel.nin :], options.get("out")))]
    if any_recorded((*args, *targets)):
        if name in UFUNCS or name in RULES:
            raise NumpyCallError(
                f"cupy.{name}: an array of CuPy's cannot hold a result that is recorded: assign it, as in a = a + x, "
                "or use tensor.detach()"
            )
        raise refused(kernel)
    for target in targets:
        check_change(target, recording=False)
        before_change(target)
    result = kernel(*map(plain, args), **{key: map_leaves(value, plain) for key, value in options.items()})
    for target in targets:
        if (version := version_of(target)) is not INFERENCE:
            version[0] += 1
    by_array = {id(target.array): target for target in targets}
    return map_leaves(result, lambda array: by_array.get(id(array), array))


def on_one_device(args: tuple[Any, ...], *, strong: bool = False) -> tuple[Any, ...]:
    """Return operands, NumPy's numbers as tensors on the device of the first tensor; all of them if `strong`."""

    def converted(x: Any) -> Any:
        if isinstance(x, TensorBase):
            return x
        return operand(x, next(tensors_in(args))) if is_number_of_numpys(x, strong=strong) else as_operand(x)

    return tuple(map(converted, args))


def is_number_of_numpys(value: object, *, strong: bool) -> bool:
    """Return whether a value is a number of NumPy's, and none of Python's by inheritance unless `strong`."""
    is_numpys = isinstance(value, np.ndarray | np.generic) and not value.ndim
    return is_numpys and (strong or not isinstance(value, float | complex))


def reduction_call(self: Any, kernel: Any, axis: object, dtype: object, out: object, keepdims: object) -> Any:
    """Return the result of a reduction kernel of CuPy's own, ``cupy.nansum(x)``: see `kernel_call`."""
    name = name_of(kernel)
    if name in RULES:
        return in_numpys_form(self, name, (self,), {"axis": axis, "dtype": dtype, "out": out, "keepdims": keepdims})
    if any_recorded((self,)):
        raise refused(kernel)
    return kernel(self.array, axis, dtype, out, keepdims)


def in_numpys_form(_self: object, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the result of a method in NumPy's form, by the rule of the function of its name."""
    return applied(name, getattr(np, name), args, options, pytorch_dtype)


def refused(kernel: Any) -> Exception:
    """Return the error of a kernel that would leave the graph."""
    if kernel.name.startswith("cupy"):
        return NumpyCallError(
            f"{kernel.name} has no rule here that keeps a Tensor on the graph: use lucid's functions or lucid.numpy, "
            "or tensor.detach()"
        )
    return export_error(f"the kernel {kernel.name}", OF_KERNELS)


def plain(value: object) -> Any:
    """Return the array of a tensor; anything else as it is."""
    return value.array if isinstance(value, TensorBase) else value
