"""Mixed precision: the dtype of a thread's ops on each type of device, and the mode that sets it.

What is done to the operands of which op says `lucid.autograd.modes.casting`.
"""

from __future__ import annotations

from typing import Any

from lucid.arguments import checked, unfit
from lucid.autograd.modes.decorating import Decorating, check_bool
from lucid.autograd.modes.leaving import Context, together
from lucid.autograd.modes.state import AUTOCAST_OFF, Autocast, intercepted, thread, unusual
from lucid.base.dtype import as_dtype, bfloat16, float16
from lucid.base.dtype import dtype as Dtype
from lucid.base.gpu import is_available
from lucid.errors import SettingError, warn


class AutocastAs(Context):
    """Inside, ops choose their dtypes as `mode` says; casts of leaves are kept until the outermost block ends."""

    def __init__(self, mode: Autocast) -> None:
        super().__init__()
        self._as = mode

    def _mode(self, before: Autocast) -> Autocast:
        """Return the replacement of `before`."""
        return self._as

    def __enter__(self) -> None:
        state = thread.state
        before, nesting = state.autocast, state.autocast_nesting
        mode = self._mode(before)
        ends: tuple[Any, ...] = (setattr, state, "autocast_nesting", nesting), (setattr, state, "autocast", before)
        if not nesting:
            ends += ((state.autocast_cache.clear,),)
        self.undo.append(together((unusual.add, state), *ends))
        state.before_change()
        intercepted.add(state)
        state.autocast_nesting = nesting + 1
        state.autocast = AUTOCAST_OFF if mode == AUTOCAST_OFF else mode


class autocast(AutocastAs, Decorating):
    """Inside, ops on one type of device choose their dtypes: products the lower one, sensitive functions float32.

    Products of matrices, convolutions and attention convert float32 and half operands to `dtype`; losses, on CUDA
    exponentials, powers, sums, norms and softmax too, convert half operands to float32; what joins tensors takes the
    widest of their dtypes, and all else what it gets. Gradients have the dtypes of what they belong to. A leaf's cast
    is made once in the outermost block. Ops that work in place, and float64, stay as they are. Affects the current
    thread only; a context manager and a decorator. Leave the block before backward, and scale a float16 loss by
    `lucid.amp.GradScaler`.

    Parameters
    ----------
    device_type : str
        ``"cuda"`` or ``"cpu"``: the device whose ops choose.
    dtype : dtype, optional
        float16 or bfloat16; by default `get_autocast_dtype`, at first float16 on CUDA and bfloat16 on the CPU.
    enabled : bool
        False leaves ops their operands' dtypes, as inside of another such block.
    cache_enabled : bool, optional
        Whether a leaf's cast is kept; by default as around the block, at first True.

    Raises
    ------
    SettingError
        If there is no such type of device.

    Warns
    -----
    UserWarning
        If the dtype is not a half type, or there is no CUDA device: nothing is cast then.

    Examples
    --------
    >>> import lucid
    >>> weight = lucid.ones(2, 2, requires_grad=True)
    >>> with lucid.autocast("cpu"):
    ...     y = weight @ weight
    >>> y.dtype
    lucid.bfloat16
    >>> y.sum().backward()
    >>> weight.grad.dtype
    lucid.float32
    """

    @checked
    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        self._device_type = known(device_type, "autocast")
        self._dtype = get_autocast_dtype(device_type) if dtype is None else as_dtype(dtype)
        self._enabled = bool(enabled)
        self._cache = thread.state.autocast.cache if cache_enabled is None else cache_enabled
        if enabled and self._dtype not in {float16, bfloat16}:
            self._give_up(f"expected float16 or bfloat16, got {self._dtype}")
        elif enabled and device_type == "cuda" and not is_available():
            self._give_up("there is no CUDA device")
        super().__init__(AUTOCAST_OFF)

    def _give_up(self, why: str) -> None:
        warn(f"autocast: {why}; nothing is cast")
        self._enabled = False

    def _mode(self, before: Autocast) -> Autocast:
        kind = self._device_type
        return before._replace(cache=self._cache, **{kind: self._enabled, f"{kind}_dtype": self._dtype})

    def clone(self) -> autocast:
        """Return an equal mode for one use."""
        made = autocast.__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made


def known(device_type: Any, name: str) -> str:
    """Return a type of device; raise if there is none of this name."""
    if not is_autocast_available(device_type):
        raise SettingError(f"{name}: expected the device_type 'cuda' or 'cpu', got {device_type!r}")
    return device_type


def changed(mode: Autocast, device_type: str, *, enabled: bool | None = None, dtype: Dtype | None = None) -> Autocast:
    """Return a mode changed for one type of device; None leaves a setting as it is."""
    settings = {device_type: enabled, f"{device_type}_dtype": dtype}
    return mode._replace(**{name: value for name, value in settings.items() if value is not None})


def switch(mode: Autocast) -> None:
    """Let this thread's ops choose their dtypes as `mode` says, from now on."""
    thread.state.before_change()
    intercepted.add(thread.state)
    thread.state.autocast = AUTOCAST_OFF if mode == AUTOCAST_OFF else mode


def casting_on() -> bool:
    """Return whether this thread's ops choose their dtypes on some device."""
    mode = thread.state.autocast
    return mode.cpu or mode.cuda


class without_autocast(AutocastAs):
    """Inside, no op chooses its dtype."""

    def __init__(self) -> None:
        super().__init__(AUTOCAST_OFF)

    def _mode(self, before: Autocast) -> Autocast:
        return before._replace(cpu=False, cuda=False)


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` knows a type of device.

    Examples
    --------
    >>> import lucid
    >>> lucid.amp.is_autocast_available("cpu"), lucid.amp.is_autocast_available("xpu")
    (True, False)
    """
    if not isinstance(device_type, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise unfit(device_type, "a string", "device_type")
    return device_type in {"cpu", "cuda"}


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether this thread's ops on a type of device choose their dtypes.

    Examples
    --------
    >>> import lucid
    >>> with lucid.autocast("cpu"):
    ...     lucid.is_autocast_enabled("cpu"), lucid.is_autocast_enabled("cuda")
    (True, False)
    """
    return getattr(thread.state.autocast, known(device_type, "is_autocast_enabled"))


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Let this thread's ops on a type of device choose their dtypes, or not; `autocast` does it for a block.

    Examples
    --------
    >>> import lucid
    >>> lucid.set_autocast_enabled("cpu", True)
    >>> lucid.is_autocast_enabled("cpu")
    True
    >>> lucid.set_autocast_enabled("cpu", False)
    """
    known(device_type, "set_autocast_enabled")
    check_bool(enabled, "set_autocast_enabled: enabled")
    switch(changed(thread.state.autocast, device_type, enabled=enabled))


def get_autocast_dtype(device_type: str) -> Dtype:
    """Return the lower dtype of this thread's `autocast` on a type of device.

    Examples
    --------
    >>> import lucid
    >>> lucid.get_autocast_dtype("cuda"), lucid.get_autocast_dtype("cpu")
    (lucid.float16, lucid.bfloat16)
    """
    return getattr(thread.state.autocast, known(device_type, "get_autocast_dtype") + "_dtype")


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the lower dtype of this thread's `autocast` on a type of device.

    Raises
    ------
    SettingError
        If it is neither float16 nor bfloat16.

    Examples
    --------
    >>> import lucid
    >>> lucid.set_autocast_dtype("cpu", lucid.float16)
    >>> lucid.get_autocast_dtype("cpu")
    lucid.float16
    >>> lucid.set_autocast_dtype("cpu", lucid.bfloat16)
    """
    known(device_type, "set_autocast_dtype")
    wanted = as_dtype(dtype)
    if wanted not in {float16, bfloat16}:
        raise SettingError(f"set_autocast_dtype: expected float16 or bfloat16, got {wanted}")
    switch(changed(thread.state.autocast, device_type, dtype=wanted))


def is_autocast_cache_enabled() -> bool:
    """Return whether this thread's `autocast` keeps the casts of leaves.

    Examples
    --------
    >>> import lucid
    >>> lucid.is_autocast_cache_enabled()
    True
    """
    return thread.state.autocast.cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Let this thread's `autocast` keep the casts of leaves, or not.

    Examples
    --------
    >>> import lucid
    >>> lucid.set_autocast_cache_enabled(False)
    >>> lucid.is_autocast_cache_enabled()
    False
    >>> lucid.set_autocast_cache_enabled(True)
    """
    check_bool(enabled, "set_autocast_cache_enabled: enabled")
    switch(thread.state.autocast._replace(cache=enabled))


def clear_autocast_cache() -> None:
    """Drop the casts of leaves that this thread has kept, as the end of the outermost `autocast` does.

    Examples
    --------
    >>> import lucid
    >>> lucid.clear_autocast_cache()
    """
    thread.state.autocast_cache.clear()


def autocast_increment_nesting() -> int:
    """Return how many `autocast` blocks this thread stands in, after adding one; casts are kept until it is 0 again.

    Examples
    --------
    >>> import lucid
    >>> lucid.autocast_increment_nesting(), lucid.autocast_decrement_nesting()
    (1, 0)
    """
    state = thread.state
    state.autocast_nesting += 1
    return state.autocast_nesting


def autocast_decrement_nesting() -> int:
    """Return how many `autocast` blocks this thread stands in, after taking one off.

    Examples
    --------
    >>> import lucid
    >>> lucid.autocast_increment_nesting(), lucid.autocast_decrement_nesting()
    (1, 0)
    """
    state = thread.state
    state.autocast_nesting -= 1
    return state.autocast_nesting
