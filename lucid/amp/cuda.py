"""`lucid.cuda.amp`: mixed precision under PyTorch's older names, for CUDA devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.amp import functions, grad_scaler
from lucid.arguments import checked
from lucid.base.dtype import float16

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(functions.autocast):
    """`lucid.autocast` of CUDA devices.

    Examples
    --------
    >>> import lucid
    >>> with lucid.cuda.amp.autocast(enabled=False):
    ...     lucid.is_autocast_enabled("cuda")
    False
    """

    @checked
    def __init__(self, enabled: bool = True, dtype: Any = float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """`lucid.amp.GradScaler` without the parameter `device`.

    Examples
    --------
    >>> import lucid
    >>> lucid.cuda.amp.GradScaler(8.0).get_scale()
    8.0
    """

    @checked
    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: Any = None) -> Any:
    """Return `lucid.amp.custom_fwd` with ``device_type="cuda"``.

    Examples
    --------
    >>> import lucid
    >>> @lucid.cuda.amp.custom_fwd(cast_inputs=lucid.float32)
    ... def forward(ctx, x):
    ...     return x.clone()
    """
    return functions.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """Return `lucid.amp.custom_bwd` with ``device_type="cuda"``.

    Examples
    --------
    >>> import lucid
    >>> @lucid.cuda.amp.custom_bwd
    ... def backward(ctx, grad):
    ...     return grad
    """
    return functions.custom_bwd(bwd, device_type="cuda")
