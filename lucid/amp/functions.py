"""Functions of the user's own under `autocast`: the cast of their inputs, and the same mode for their backward."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.structure import rebuilt
from lucid.autograd.modes.autocast import AutocastAs, autocast, changed, is_autocast_available, known
from lucid.autograd.modes.state import thread
from lucid.base.dtype import as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.dtype import dtype

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Return the `forward` of a `Function` for use under `autocast`, with its state noted for `custom_bwd`.

    Parameters
    ----------
    fwd : callable, optional
        The forward; without it a decorator is returned.
    device_type : str
        ``"cuda"`` or ``"cpu"``.
    cast_inputs : dtype, optional
        Where `autocast` is on, floating-point arguments on such a device, but float64, are cast to it, also inside of
        lists, tuples and dicts, and `forward` runs with `autocast` off; by default with it as it is.

    Examples
    --------
    >>> import lucid
    >>> class Square(lucid.autograd.Function):
    ...     @staticmethod
    ...     @lucid.amp.custom_fwd(device_type="cpu", cast_inputs=lucid.float32)
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     @lucid.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         return 2 * ctx.saved_tensors[0] * grad
    >>> with lucid.autocast("cpu"):
    ...     Square.apply(lucid.ones(1, dtype=lucid.bfloat16)).dtype
    lucid.float32
    """
    known(device_type, "custom_fwd")
    wanted = None if cast_inputs is None else as_dtype(cast_inputs)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=wanted)
    if not callable(fwd):
        raise unfit(fwd, "a function", "fwd")

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        mode = thread.state.autocast
        on = mode.cpu if device_type == "cpu" else mode.cuda
        if wanted is None or not on:
            ctx.autocast_mode = mode
            return fwd(ctx, *args, **kwargs)
        ctx.autocast_mode = changed(mode, device_type, enabled=False)
        with AutocastAs(ctx.autocast_mode):
            return fwd(ctx, *_cast(args, device_type, wanted), **_cast(kwargs, device_type, wanted))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Return the `backward` of a `Function` with a `custom_fwd` forward: it runs under the same `autocast`.

    `bwd` and `device_type` are as there.

    Examples
    --------
    >>> import lucid
    >>> @lucid.amp.custom_bwd(device_type="cpu")
    ... def backward(ctx, grad):
    ...     return grad
    """
    known(device_type, "custom_bwd")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    if not callable(bwd):
        raise unfit(bwd, "a function", "bwd")

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        then = ctx.autocast_mode
        on, dtype = (then.cpu, then.cpu_dtype) if device_type == "cpu" else (then.cuda, then.cuda_dtype)
        with AutocastAs(changed(thread.state.autocast, device_type, enabled=on, dtype=dtype)):
            return bwd(ctx, *args, **kwargs)

    return backward


def _cast(value: Any, device_type: str, wanted: dtype) -> Any:
    """Return tensors of floating-point dtypes but float64, in any structure, in the dtype that is wanted."""
    if isinstance(value, TensorBase):
        tensor: Any = value
        fits = tensor.is_floating_point() and tensor.dtype.itemsize < 8 and tensor.device.type == device_type
        return tensor.to(wanted) if fits else tensor
    if isinstance(value, Mapping):
        mapping = cast("Mapping[Any, Any]", value)
        return {_cast(key, device_type, wanted): _cast(entry, device_type, wanted) for key, entry in mapping.items()}
    if isinstance(value, list | tuple):
        entries = cast("list[Any]", value)
        return rebuilt(entries, [_cast(entry, device_type, wanted) for entry in entries])
    return value
