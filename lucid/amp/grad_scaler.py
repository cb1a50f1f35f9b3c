"""Computing in float16: the loss is scaled up, so that small gradients do not vanish, and gradients are scaled back."""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lucid.arguments import checked
from lucid.autograd.base import TensorBase, version_of, with_grads
from lucid.autograd.modes.state import no_grad
from lucid.base import gpu
from lucid.base.capture import capture_of_this_thread
from lucid.base.dtype import float16, float32, float64
from lucid.cuda.steps.scale import following_scale, update_scale
from lucid.errors import ArgumentError, CaptureError, DtypeError, LucidError, SettingError
from lucid.nn.utils.gradients import arrays_of, changed_on_device, multiplied, multiply
from lucid.ops.creation.filling import full, zeros
from lucid.ops.elementwise.nonfinite import isfinite
from lucid.optim.base.skipping import step_unless, why_on_host
from lucid.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lucid.base.device import Device

__all__ = ["GradScaler"]


# Of state dicts, in the order of `GradScaler._constants`.
CONSTANTS = ("growth_factor", "backoff_factor", "growth_interval")


class GradScalerError(LucidError, RuntimeError, AssertionError):
    """`GradScaler` methods were called in an order that makes no sense."""


class _DeviceState(NamedTuple):
    """The factor on a CUDA device, in float64 and in float32, and how many good steps came last."""

    scale: Any
    narrow: Any
    tracker: Any


class GradScaler:
    """Scales losses by a factor that finds its own size: it halves when a gradient overflows, and grows again.

    It stays between 2**-126 and 2**127, so that float32 can take it off again. What decides about a step are the
    gradients after that: no step is made with one that is infinite or NaN.

    Once it has seen a tensor of a CUDA device, the factor is there. Then nothing waits for the device, and a CUDA graph
    can capture a step, if each optimizer's gradients are on one device and it counts no steps or was made with
    ``capturable=True``: whether it makes its step is decided there too. `get_scale` and `state_dict` wait.

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
        # in place of factor and tracker, once it is used on a CUDA device
        self._device_state: _DeviceState | None = None
        # what was found in the gradients of each optimizer since the last update (where it is known on a device only,
        # the flag there), and which of them made a step
        self._overflows: dict[int, Any] = {}
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
            if not loss.dtype.is_floating_point:
                return loss * self.get_scale()
            # the factor may be beyond the numbers of a half type, where what it makes of the loss is not
            half = loss.dtype.itemsize == 2
            scaled = (loss.float() if half else loss) * self._factor(loss)
            return scaled.to(loss.dtype) if half else scaled
        if isinstance(outputs, tuple | list):
            scaled = [self.scale(loss) for loss in cast("list[Any]", outputs)]
            return scaled if isinstance(outputs, list) else tuple(scaled)
        raise ArgumentError(f"scale: expected a Tensor, or a tuple or list of them, got {type(outputs).__name__}")

    def _factor(self, loss: Any) -> Any:
        """Return the multiplier of a loss of floating dtype: a number on the device for a loss on a CUDA device."""
        if not loss.is_cuda:
            return self.get_scale()
        state = self._on(loss.device)
        return (state.scale if loss.dtype is float64 else state.narrow).to(loss.device)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the factor, in place, before they are clipped.

        `step` does it where this was not called.

        Raises
        ------
        RuntimeError
            If it was called for this optimizer since the last `update`, or the optimizer made its step already.
        DtypeError
            If a gradient is of float16. Nothing is changed then.
        DeviceError
            If the optimizer's step would be refused, since a parameter, its gradient and its state lie on several
            devices. Nothing is changed then.
        """
        if not self._enabled:
            return
        key = id(optimizer)
        if key in self._overflows:
            raise GradScalerError(
                "unscale_() has already been called on this optimizer since the last update(): call it once per step, "
                "before step()"
            )
        groups = [with_grads(group["params"]) for group in optimizer.param_groups]
        grads = [param.stored_grad for params in groups for param in params]
        if float16.numpy in {grad.array.dtype for grad in grads}:
            raise DtypeError(
                "unscale_: expected gradients wider than float16, which loses what scaling saved: keep parameters in "
                "float32 and convert them in forward"
            )
        if isinstance(optimizer, Optimizer):
            for params, group in zip(groups, optimizer.param_groups, strict=True):
                optimizer._check_devices(params, group)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._undo_with_capture()
        with no_grad():
            self._overflows[key] = self._unscale(grads)

    def _keep_constants(self) -> None:
        """Have a capture of this thread, if it is in one, refuse replays after a change of the factor's constants."""
        capture = capture_of_this_thread()
        if capture is None:
            return
        constants = self._constants()

        def check() -> None:
            if self._constants() != constants:
                raise CaptureError(
                    f"GradScaler: the graph was captured with a growth factor, backoff factor and growth interval of "
                    f"{constants}, and goes on with them: capture anew, a graphed step by its reset()"
                )

        capture.before.append(check)

    def _undo_with_capture(self) -> None:
        """Have a capture of this thread, if it is in one, put back overflow flags and steps should it fail."""
        capture = capture_of_this_thread()
        if capture is not None:
            overflows, stepped = dict(self._overflows), set(self._stepped)

            def put_back() -> None:
                self._overflows, self._stepped = overflows, stepped

            capture.undo.append(put_back)

    def _unscale(self, grads: list[Any]) -> Any:
        """Return whether an element is infinite or NaN, after unscaling all: on one device a flag; None of none."""
        if not grads:
            return None
        arrays = arrays_of(grads)
        if arrays is None or len(arrays.devices) != 1:
            self._refuse_capture(
                "unscaling gradients on several devices, or on the CPU,", "keep all of an optimizer on one CUDA device"
            )
            return multiplied(grads, 1 / self._read()[0])
        device = grads[0].device
        scale = self._on(device).scale.to(device)
        overflow: Any = zeros((), dtype=float32, device=device)
        for grad in changed_on_device(grads, lambda arrays: arrays.unscale(0.0, overflow.array, scale.array), arrays):
            multiply(grad, (1 / scale).to(float64 if grad.real.dtype is float64 else float32))
            overflow.add_((~isfinite(grad).all()).float())
        return overflow

    def _on(self, device: Device) -> _DeviceState:
        """Return factor and tracker on a CUDA device: on this one, if they are on none yet."""
        if self._device_state is None:
            if gpu.is_capturing():
                raise CaptureError(
                    "GradScaler: its factor is not on the device yet, and each replay of the graph would begin with "
                    "the first one: take a step with it before the capture"
                )
            values = ((self._scale, float64), (self._scale, float32), (self._growth_tracker, float64))
            self._device_state = _DeviceState(*[full((), value, dtype=dtype, device=device) for value, dtype in values])
        return self._device_state

    def _read(self) -> tuple[float, int]:
        """Return factor and tracker, after waiting for the device if they are on one."""
        state = self._device_state
        if state is None:
            return self._scale, self._growth_tracker
        self._refuse_capture("reading the factor", "do it before the capture or between replays")
        return state.scale.item(), int(state.tracker.item())

    def _write(self, scale: float, tracker: int | None = None) -> None:
        """Set the factor, and the tracker if it is given: on the device in place, for graphs that read it there."""
        if self._device_state is None:
            self._scale, self._growth_tracker = scale, self._growth_tracker if tracker is None else tracker
            return
        self._device_state.scale.fill_(scale)
        self._device_state.narrow.fill_(scale)
        if tracker is not None:
            self._device_state.tracker.fill_(tracker)

    @staticmethod
    def _refuse_capture(what: str, remedy: str) -> None:
        if gpu.is_capturing():
            raise CaptureError(
                f"GradScaler: {what} cannot be captured by a CUDA graph, since the host waits for the device: {remedy}"
            )

    def step(self, optimizer: Optimizer, *args: object, **kwargs: object) -> Any:
        """Return the result of ``optimizer.step(*args, **kwargs)``, or None without a step if a gradient is not finite.

        Where all gradients are on one CUDA device, and the optimizer is one of lucid's that counts no steps or was made
        with ``capturable=True``, the step is made in either case, hooks included, and its kernels change neither
        parameters nor state if a gradient is not finite. For others the host asks the device, and waits for it.

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
        if key not in self._overflows:
            self.unscale_(optimizer)
        overflow = self._overflows[key]
        if overflow is None:
            raise GradScalerError("step: no parameter of the optimizer has a gradient: call backward() before it")
        if isinstance(overflow, TensorBase):
            why = why_on_host(optimizer, gpu.device_index(overflow.array))
            if why is None:
                result = step_unless(optimizer, overflow.array, **kwargs)
                self._stepped.add(key)
                return result
            self._refuse_capture(f"a step of {type(optimizer).__name__} that only the host can leave out", why)
            overflow = self._overflows[key] = bool(cast("Any", overflow).item())
        result = None if overflow else optimizer.step(**kwargs)
        # only now, so that one that was refused can be made once what was wrong is mended
        self._stepped.add(key)
        return result

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
        self._undo_with_capture()
        self._keep_constants()
        if new_scale is not None:
            self._check(new_scale, *self._constants())
            self._write(float(new_scale))
        elif not self._overflows:
            raise GradScalerError("update: no gradients were unscaled since the last update(): call step() before it")
        elif self._device_state is not None:
            self._update_on_device(self._device_state)
        else:
            bad = any(self._overflows.values())
            state = self._scale, self._growth_tracker
            self._scale, self._growth_tracker = following_scale(*state, *self._constants(), bad=bad)
        self._overflows.clear()
        self._stepped.clear()

    def _update_on_device(self, state: _DeviceState) -> None:
        """Update the factor on its device, without waiting."""
        overflows = self._overflows.values()
        flags = [cast("Any", each).to(state.scale.device) for each in overflows if isinstance(each, TensorBase)]
        bad = any(each for each in overflows if not isinstance(each, TensorBase))
        for tensor in state:
            version_of(tensor)[0] += 1
        overflow = reduce(operator.add, flags).array if flags else None
        scale, narrow, tracker = (tensor.array for tensor in state)
        update_scale(scale, narrow, tracker, overflow, *self._constants(), bad=bad)

    def _constants(self) -> tuple[float, float, int]:
        """Return how the factor changes: growth, backoff and interval."""
        return self._growth_factor, self._backoff_factor, self._growth_interval

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy: factor and tracker as numbers."""
        if self._overflows or self._stepped:  # by the identity of optimizers, which a copy's are not
            raise GradScalerError(
                "a GradScaler may only be pickled or copied at the beginning of an iteration, or after scaler.update()"
            )
        scale, tracker = self._read()
        return {**vars(self), "_device_state": None, "_scale": scale, "_growth_tracker": tracker}

    def is_enabled(self) -> bool:
        """Return whether losses and gradients are scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the factor; 1 if scaling is off. It waits for the device that the factor is on."""
        return self._read()[0] if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Return the multiplier of the factor when it grows."""
        return self._growth_factor

    @checked
    def set_growth_factor(self, new_factor: float) -> None:
        """Set the multiplier of the factor when it grows: above 1."""
        self._check(1.0, new_factor, self._backoff_factor, self._growth_interval)
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the multiplier of the factor after a gradient that is not finite."""
        return self._backoff_factor

    @checked
    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the multiplier of the factor after a gradient that is not finite: between 0 and 1."""
        self._check(1.0, self._growth_factor, new_factor, self._growth_interval)
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return after how many steps in a row the factor grows."""
        return self._growth_interval

    @checked
    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps in a row the factor grows: at least 1."""
        self._check(1.0, self._growth_factor, self._backoff_factor, new_interval)
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """Return the factor and how it changes, in PyTorch's form; empty if scaling is off."""
        if not self._enabled:
            return {}
        scale, tracker = self._read()
        constants = dict(zip(CONSTANTS, self._constants(), strict=True))
        return {"scale": scale, **constants, "_growth_tracker": tracker}

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
        scale, growth, backoff, interval = (state_dict[name] for name in ("scale", *CONSTANTS))
        tracker = state_dict["_growth_tracker"]
        self._check(scale, growth, backoff, interval)
        self._write(float(scale), tracker)
        self._growth_factor, self._backoff_factor, self._growth_interval = growth, backoff, interval
