"""Computing in float16: the loss is scaled up, so that small gradients do not vanish, and gradients are scaled back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from lucid.arguments import checked
from lucid.autograd.base import TensorBase, grad_of
from lucid.autograd.modes.state import no_grad
from lucid.backend.dtype import float16, float32
from lucid.cuda.launch import multi_tensor
from lucid.errors import ArgumentError, DtypeError, LucidError, SettingError
from lucid.nn.utils import changed_on_device
from lucid.ops.creation.filling import zeros
from lucid.ops.elementwise.nonfinite import isfinite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lucid.optim.optimizer import Optimizer

__all__ = ["GradScaler"]


class GradScalerError(LucidError, RuntimeError):
    """`GradScaler` methods were called in an order that makes no sense."""


class GradScaler:
    """Scales losses by a factor that finds its own size: it halves when a gradient overflows, and grows again.

    Parameters
    ----------
    device : str
        Accepted for PyTorch's sake: gradients are worked on where they are.
    init_scale : float
        The first factor.
    growth_factor : float
        By what the factor grows after `growth_interval` steps without overflow; above 1.
    backoff_factor : float
        By what it shrinks after a step with overflow; between 0 and 1.
    growth_interval : int
        At least 1.
    enabled : bool
        Without it, losses and gradients stay as they are, and `step` is the optimizer's.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import lucid
    >>> weight = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.SGD([weight], lr=0.25)
    >>> scaler = lucid.amp.GradScaler(init_scale=1024.0)
    >>> scaler.scale((weight * 2).sum()).backward()
    >>> weight.grad
    tensor([2048.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight.detach(), scaler.get_scale()
    (tensor([0.5000]), 1024.0)
    """

    @checked
    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self.device = device
        self._enabled = enabled
        self._check(init_scale, growth_factor, backoff_factor, growth_interval)
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        # what was found in the gradients of each optimizer since the last update, and which of them made a step
        self._found: dict[int, bool] = {}
        self._stepped: set[int] = set()

    @staticmethod
    def _check(scale: float, growth_factor: float, backoff_factor: float, growth_interval: int) -> None:
        if not scale > 0:
            raise SettingError(f"GradScaler: expected a scale above 0, got {scale}")
        if not growth_factor > 1:
            raise SettingError(f"GradScaler: expected a growth factor above 1, got {growth_factor}")
        if not 0 < backoff_factor < 1:
            raise SettingError(f"GradScaler: expected a backoff factor between 0 and 1, got {backoff_factor}")
        if not growth_interval >= 1:
            raise SettingError(f"GradScaler: expected a growth interval of at least 1, got {growth_interval}")

    def scale(self, outputs: object) -> Any:
        """Return a loss, or a tuple or list of losses, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, TensorBase):
            loss: Any = outputs
            return loss * self._scale
        if isinstance(outputs, tuple | list):
            scaled = [self.scale(loss) for loss in cast("list[Any]", outputs)]
            return scaled if isinstance(outputs, list) else tuple(scaled)
        raise ArgumentError(f"scale: expected a Tensor, or a tuple or list of them, got {type(outputs).__name__}")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the factor, in place, before they are clipped.

        `step` does it where this was not called.

        Raises
        ------
        RuntimeError
            If it was called for this optimizer since the last `update`, or the optimizer made its step already.
        DtypeError
            If a gradient is of float16. Nothing is changed then.
        """
        if not self._enabled:
            return
        key = id(optimizer)
        if key in self._found:
            raise GradScalerError(
                "unscale_() has already been called on this optimizer since the last update(): call it once per step, "
                "before step()"
            )
        params = [param for group in optimizer.param_groups for param in group["params"]]
        grads = [grad for param in params if (grad := grad_of(param)) is not None]
        if any(grad.dtype is float16 for grad in grads):
            raise DtypeError(
                "unscale_: expected gradients wider than float16, which loses what scaling saved: keep parameters in "
                "float32 and convert them in forward"
            )
        with no_grad():
            self._found[key] = _unscale(grads, 1 / self._scale)

    def step(self, optimizer: Optimizer, *args: object, **kwargs: object) -> Any:
        """Return what ``optimizer.step(*args, **kwargs)`` returns, or None without a step if a gradient is not finite.

        It asks the device whether there is such a gradient, and so waits for it.

        Raises
        ------
        RuntimeError
            If the optimizer made its step since the last `update`, or a closure is passed.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if args or "closure" in kwargs:
            raise GradScalerError("GradScaler.step: closures are not supported: compute loss and gradients before it")
        key = id(optimizer)
        if key in self._stepped:
            raise GradScalerError("step() has already been called since the last update(): call update() after step()")
        if key not in self._found:
            self.unscale_(optimizer)
        self._stepped.add(key)
        return None if self._found[key] else optimizer.step(**kwargs)

    def update(self, new_scale: float | None = None) -> None:
        """Choose the factor of the next step, after all optimizers made theirs.

        Parameters
        ----------
        new_scale : float, optional
            What it is to be, whatever was found.

        Raises
        ------
        RuntimeError
            If no gradients were looked at since the last `update`.
        ValueError
            If `new_scale` is not above 0.
        """
        if not self._enabled:
            return
        if new_scale is not None:
            self._check(new_scale, self._growth_factor, self._backoff_factor, self._growth_interval)
            self._scale = float(new_scale)
        elif not self._found:
            raise GradScalerError("update: no gradients were unscaled since the last update(): call step() before it")
        elif any(self._found.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker = 0
        self._found.clear()
        self._stepped.clear()

    def is_enabled(self) -> bool:
        """Return whether losses and gradients are scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the factor; 1 if scaling is off."""
        return self._scale if self._enabled else 1.0

    def state_dict(self) -> dict[str, Any]:
        """Return the factor and how it changes, in PyTorch's form; empty if scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned, here or in PyTorch.

        Raises
        ------
        RuntimeError
            If it is empty, as that of a scaler that was off. Nothing is changed then.
        KeyError
            If an entry is missing. Nothing is changed then.
        ValueError
            If a number is out of its range. Nothing is changed then.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise GradScalerError(
                "GradScaler.load_state_dict: the state dict is empty: it was saved from a scaler with enabled=False"
            )
        names = ("scale", "growth_factor", "backoff_factor", "growth_interval")
        scale, growth, backoff, interval = (state_dict[name] for name in names)
        tracker = state_dict["_growth_tracker"]
        self._check(scale, growth, backoff, interval)
        self._scale, self._growth_factor, self._backoff_factor = float(scale), growth, backoff
        self._growth_interval, self._growth_tracker = interval, tracker


def _unscale(grads: list[Any], factor: float) -> bool:
    """Return whether an element is infinite or NaN, after multiplying all by `factor`; one question to each device."""
    flags: list[Any] = []
    for device in {grad.device: None for grad in grads if grad.is_cuda}:
        found = zeros((), dtype=float32, device=device)
        grads = changed_on_device(grads, partial(multi_tensor.unscale, factor=factor, found=found.array))
        flags.append(found)
    for grad in grads:
        flags.append(~isfinite(grad).all())
        grad.mul_(factor)
    return any(flag.item() for flag in flags)
