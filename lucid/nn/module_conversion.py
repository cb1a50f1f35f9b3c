"""Modules in other dtypes and on other devices: parameters keep their identity, buffers are replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import grad_of
from lucid.backend.device import as_device
from lucid.backend.dtype import as_dtype
from lucid.errors import DtypeError
from lucid.nn.module_tree import Tree
from lucid.ops.promotion import cast_to
from lucid.tensor.conversion import move, target_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self


class Conversion(Tree):
    """The conversions of a module and all below it."""

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Return this module after passing every parameter, gradient and buffer through `fn`."""
        modules: list[Any] = list(self.modules()) if recurse else [self]
        # all results first: if one cannot be made, nothing has changed
        parameters = dict.fromkeys(p for module in modules for p in module._parameters.values() if p is not None)  # noqa: SLF001
        data = [(parameter, fn(parameter.detach())) for parameter in parameters]
        grads = [(parameter, fn(grad)) for parameter in parameters if (grad := grad_of(parameter)) is not None]
        shared: dict[int, Any] = {}
        buffers: list[tuple[dict[str, Any], str, Any]] = []
        for module in modules:
            for name, buffer in module._buffers.items():  # noqa: SLF001
                if buffer is not None:
                    if id(buffer) not in shared:
                        shared[id(buffer)] = fn(buffer)
                    buffers.append((module._buffers, name, shared[id(buffer)]))  # noqa: SLF001
        for parameter, value in data:
            if value.array is not parameter.array:
                parameter.data = value
        for parameter, grad in grads:
            parameter.grad = grad
        for table, name, buffer in buffers:
            table[name] = buffer
        return self

    def to(self, *args: Any, non_blocking: bool = False, **kwargs: Any) -> Self:
        """Return this module after moving it to a device, or converting its floating-point tensors, or both.

        Parameters
        ----------
        *args : device, dtype, or Tensor
            ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``; also by keyword: ``device=``,
            ``dtype=``.
        non_blocking : bool
            Whether copies between devices may still run when the call returns.

        Raises
        ------
        DtypeError
            If the dtype is neither floating-point nor complex.
        DeviceError
            If there is no such device.

        Notes
        -----
        Parameters stay the same objects, so that an optimizer that holds them need not be made again.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> nn.Linear(1, 1).to(lucid.float64).weight.dtype
        lucid.float64
        """
        device, dtype, non_blocking, _ = target_of(args, kwargs, non_blocking=non_blocking, copy=False)
        place = None if device is None else as_device(device)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise DtypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(tensor: Any) -> Any:
            if place is not None:
                tensor = move(tensor, place, non_blocking=non_blocking)
            return cast_to(tensor, dtype) if dtype is not None and is_real_or_complex(tensor) else tensor

        return self._apply(convert)

    def cpu(self) -> Self:
        """Return this module after moving it to the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Self:
        """Return this module after moving it to a CUDA device, the current one by default.

        Raises
        ------
        CudaUnavailableError
            If there is none.
        """
        if isinstance(device, int):
            device = f"cuda:{device}"
        return self.to("cuda" if device is None else device)

    def float(self) -> Self:
        """Return this module after converting its floating-point tensors to float32."""
        return self._cast("float32")

    def double(self) -> Self:
        """Return this module after converting its floating-point tensors to float64."""
        return self._cast("float64")

    def half(self) -> Self:
        """Return this module after converting its floating-point tensors to float16."""
        return self._cast("float16")

    def bfloat16(self) -> Self:
        """Return this module after converting its floating-point tensors to bfloat16."""
        return self._cast("bfloat16")

    def _cast(self, name: str) -> Self:
        wanted = as_dtype(name)
        return self._apply(lambda tensor: cast_to(tensor, wanted) if tensor.dtype.is_floating_point else tensor)

    def type(self, dst_type: Any) -> Self:
        """Return this module after converting all its tensors, integers too, to `dst_type`."""
        wanted = as_dtype(dst_type)
        return self._apply(lambda tensor: cast_to(tensor, wanted))


def is_real_or_complex(tensor: Any) -> bool:
    """Return whether the elements are floating-point or complex numbers."""
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex
