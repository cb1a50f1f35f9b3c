"""Modules in other dtypes and on other devices: parameters keep their identity, buffers are replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from lucid.autograd.base import TensorBase, describe, grad_of, wrap
from lucid.autograd.modes.state import no_grad
from lucid.base.capture import changes
from lucid.base.device import Device, as_device
from lucid.base.dtype import as_dtype
from lucid.base.sharing import shared
from lucid.errors import DtypeError, SettingError
from lucid.nn.module.tree import Tree
from lucid.nn.parameter import UninitializedTensorMixin
from lucid.ops.base.formats import check_memory_format, memory_format
from lucid.ops.base.promotion import cast_to
from lucid.ops.creation.filling import empty_like
from lucid.tensor.conversion import is_dtype, move, target_of

if TYPE_CHECKING:
    from collections.abc import Callable


class Conversion(Tree):
    """The conversions of a module and all below it."""

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Return this module after passing every parameter, gradient and buffer through `fn`, each once.

        Parameters and gradients with gradients off, so that `fn` may change them in place.
        """
        modules: list[Any] = list(self.modules()) if recurse else [self]
        # all results first: if one cannot be made, nothing has changed
        parameters = dict.fromkeys(p for module in modules for p in module._parameters.values() if p is not None)  # noqa: SLF001
        with no_grad():
            # of those that have no elements yet, what says their dtype and device
            wholes: list[Any] = [p.blank if isinstance(p, UninitializedTensorMixin) else p for p in parameters]
            wholes += [grad for parameter in parameters if (grad := grad_of(parameter)) is not None]
            data = [(whole, applied(fn, whole)) for whole in wholes]
        shared: dict[int, Any] = {}
        buffers: list[tuple[dict[str, Any], str, Any]] = []
        for module in modules:
            for name, buffer in module._buffers.items():  # noqa: SLF001
                if isinstance(buffer, UninitializedTensorMixin):
                    data.append((buffer.blank, applied(fn, buffer.blank)))
                elif buffer is not None:
                    if id(buffer) not in shared:
                        shared[id(buffer)] = applied(fn, buffer)
                    buffers.append((module._buffers, name, shared[id(buffer)]))  # noqa: SLF001
        for tensor, value in data:
            if value.array is not tensor.array:
                tensor.data = value
        for table, name, buffer in buffers:
            before, table[name] = table[name], buffer
            if before is not buffer:
                changes.replace(before)
        return self

    def to(
        self, *args: Any, non_blocking: bool = False, memory_format: memory_format | None = None, **kwargs: Any
    ) -> Self:
        """Return this module after moving it to a device, or converting its floating-point tensors, or both.

        Parameters
        ----------
        *args : device, dtype, or Tensor
            ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``; also by keyword: ``device=``,
            ``dtype=``.
        non_blocking : bool
            Whether copies between devices may still run when the call returns; the last of the positional arguments.
        memory_format : memory_format, optional
            Looked at and left alone: `lucid.memory_format` says why.

        Raises
        ------
        DtypeError
            If the dtype is neither floating-point nor complex, or the arguments are in none of these forms.
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
        check_memory_format(memory_format)
        check_target(args, kwargs)
        device, dtype, non_blocking, _ = target_of(args, kwargs, non_blocking=non_blocking, copy=False)
        target = None if device is None else as_device(device)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise DtypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(tensor: object) -> Any:
            if target is not None:
                tensor = move(tensor, target, non_blocking=non_blocking)
            return cast_to(tensor, dtype) if dtype is not None and is_real_or_complex(tensor) else tensor

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Return this module after giving its tensors new memory on a device, with whatever elements are there.

        Parameters
        ----------
        device : device, str or None
            Where to; None leaves each tensor where it is.
        recurse : bool
            Whether the submodules' tensors too.

        Raises
        ------
        DeviceError
            If there is no such device.

        Examples
        --------
        >>> from lucid import nn
        >>> nn.Linear(2, 3).to_empty(device="cpu").weight.shape
        lucid.Size([3, 2])
        """
        target = None if device is None else as_device(device)
        return self._apply(
            lambda tensor: empty_like(tensor, device=tensor.device if target is None else target), recurse=recurse
        )

    def share_memory(self) -> Self:
        """Return this module after moving its tensors to memory that processes started with `multiprocessing` share.

        A step that one of them takes is then seen by all, whether they were forked or got the module as an argument or
        through a queue; the sender of a queue must live until then. Nothing keeps them from writing at once.

        Raises
        ------
        DeviceError
            If it is on a CUDA device, whose memory is not shared. Nothing is changed then.
        SettingError
            If it has tensors whose elements a lazy module makes in its first call. Nothing is changed then.

        Examples
        --------
        >>> from lucid import nn
        >>> nn.Linear(2, 3).share_memory()
        Linear(in_features=2, out_features=3, bias=True)
        """
        for name, tensor in (*self.named_parameters(), *self.named_buffers()):
            if isinstance(tensor, UninitializedTensorMixin):
                raise SettingError(
                    f"share_memory: {name} has no elements yet, which would not be shared: call the module once before"
                )
        return self._apply(lambda tensor: wrap(shared(tensor.array)))

    def cpu(self) -> Self:
        """Return this module after moving it to the CPU."""
        return self.to("cpu")

    def cuda(self, device: Device = None) -> Self:
        """Return this module after moving it to a CUDA device, the current one by default.

        Raises
        ------
        CudaUnavailableError
            If there is none.
        """
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


def applied(fn: Callable[[Any], Any], tensor: Any) -> Any:
    """Return ``fn(tensor)``, if it can take the place of `tensor`."""
    value = fn(tensor)
    if not isinstance(value, TensorBase):
        raise DtypeError(f"Module._apply: expected the function to return a Tensor, got {type(value).__name__}")
    if tensor.requires_grad and not is_real_or_complex(value):
        raise DtypeError(
            "a tensor that requires gradients must be floating point or complex, got "
            f"{describe(value)}: call requires_grad_(False) first"
        )
    return value


def check_target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise unless the arguments are those of a module's `to`: a tensor's, without a copy and nothing twice."""
    by_device = bool(args) and not isinstance(args[0], TensorBase) and not is_dtype(args[0])
    switches = args[1 + by_device :]
    positional = {"device"} if by_device and len(args) == 1 else {"device", "dtype"} if args else set[str]()
    if (
        "copy" in kwargs
        or positional & kwargs.keys()
        or any(isinstance(value, bool) for value in args[1 : 1 + by_device])
        or len(switches) > 1
        or not all(isinstance(value, bool) for value in switches)
    ):
        raise DtypeError(
            "Module.to: expected to(device, dtype), to(dtype) or to(tensor), then non_blocking, each of them once and "
            f"without copy, got {(*args, *kwargs)}"
        )


def is_real_or_complex(tensor: Any) -> bool:
    """Return whether the elements are floating-point or complex numbers."""
    return tensor.dtype.is_floating_point or tensor.dtype.is_complex
