"""Values that a node keeps for backward, and the hooks that may store them elsewhere meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.autograd.base import TensorBase, describe, version_of, wrap_on_graph
from lucid.autograd.borrowing import ContentsVersion
from lucid.autograd.hooks.firing import check_callable, fire, hook_name
from lucid.autograd.hooks.functions import not_of_the_op
from lucid.autograd.modes.leaving import Context
from lucid.autograd.modes.state import no_grad, thread
from lucid.base.device import device_of
from lucid.errors import GraphError, HookError, HookTypeError, InplaceError

if TYPE_CHECKING:
    from collections.abc import Callable


class SavedTensorHooks:
    """One pair of pack and unpack hooks, and the function called with version counters before their tensors change."""

    __slots__ = ("before_change", "pack", "unpack")

    def __init__(
        self,
        pack: Callable[[Any], Any],
        unpack: Callable[[Any], Any],
        before_change: Callable[..., None] | None = None,
    ) -> None:
        self.pack = pack
        self.unpack = unpack
        self.before_change = before_change


class Packed:
    """One saved tensor, in the form that its pack hook gave it."""

    __slots__ = ("device", "hooks", "payload", "shape")

    def __init__(self, hooks: SavedTensorHooks, tensor: Any) -> None:
        version = version_of(tensor)[0]

        def call(pack: Callable[[Any], Any], _: None) -> None:
            self.payload = not_of_the_op(pack, tensor)

        with no_grad():
            fire((hooks.pack,), call, None, "pack hook", lambda: f"a saved tensor of {describe(tensor)}")
        self.hooks = hooks
        self.shape = tensor.array.shape
        self.device = device_of(tensor.array)
        if tensor.version[0] != version:
            raise HookError(
                f"pack hook {hook_name(hooks.pack)} changed its input in place: return a changed copy instead"
            )

    def unpack(self) -> Any:
        """Return the tensor that the unpack hook makes of the stored form."""
        with no_grad():
            return fire((self.hooks.unpack,), self._unpacked, self.payload, "unpack hook", "a saved tensor")

    def _unpacked(self, unpack: Callable[[Any], Any], payload: Any) -> TensorBase:
        tensor = not_of_the_op(unpack, payload)
        if not isinstance(tensor, TensorBase):
            raise HookTypeError(
                f"unpack hook {hook_name(unpack)}: expected a Tensor to be returned, got {type(tensor).__name__}"
            )
        if tensor.array.shape != self.shape or device_of(tensor.array) is not self.device:
            raise HookError(
                f"unpack hook {hook_name(unpack)}: expected a tensor of shape {self.shape}, on {self.device}, as was "
                f"packed, got {describe(tensor)}"
            )
        return tensor


class PackedTuple(tuple[Any, ...]):
    """Saved values, some of them packed by hooks."""

    __slots__ = ()


def freed_error(name: str) -> GraphError:
    """Return the error of a node that has nothing saved any more."""
    return GraphError(
        f"{name}: trying to backward through the graph a second time, but its saved tensors were freed by the first "
        "backward (or read after it): pass retain_graph=True to the first backward or autograd.grad"
    )


def changed_error(name: str, index: int, expected: int, counter: list[int]) -> InplaceError:
    """Return the error of a node for a saved tensor or array that was changed in place since."""
    if isinstance(counter, ContentsVersion):
        array: Any = counter.array
        return InplaceError(
            f"{name}: an array of NumPy's that is needed for gradient computation, of shape {list(array.shape)} and "
            f"dtype {array.dtype.name}, was written to after the call that it was an operand of: make a new array "
            "there, a = a * 2 for a *= 2, or give that call a copy of it, a.copy()"
        )
    return InplaceError(
        f"{name}: one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"saved tensor {index} is at version {counter[0]}; expected version {expected}. "
        "Backward needs the values from before: use the out-of-place op there, y = y - x in place of y -= x, or "
        "y = where(mask, 0, y) in place of y[mask] = 0, or change a y.clone(); or do all of it, and backward, under "
        "lucid.autograd.graph.allow_mutation_on_saved_tensors(), which keeps them. Keep a clone(), too, of a CUDA "
        "graph's result, which its next call overwrites. lucid.autograd.set_detect_anomaly(True) finds the forward call"
    )


def pack_saved(values: tuple[Any, ...], tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `values` with each array that stands for a tensor packed by this thread's innermost hooks.

    Parameters
    ----------
    values : tuple of array or other
        What a node is about to save.
    tensors : tuple of Tensor or None
        The tensor that each value belongs to; None leaves the value as it is.
    """
    if not thread.state.saved_hooks:
        return values
    hooks = thread.state.saved_hooks[0]
    return tuple(
        value if tensor is None else Packed(hooks, tensor) for value, tensor in zip(values, tensors, strict=True)
    )


def unpacked_array(value: Any) -> Any:
    """Return the array of a saved value, unpacked if a hook had packed it."""
    return value.unpack().array if isinstance(value, Packed) else value


def saved_tensor(value: Any, edge: Any, version: list[int]) -> Any:
    """Return the saved tensor, joined to the graph at `edge`.

    `version` is the tensor's counter; what an unpack hook returns has its own, and is returned itself where neither it
    nor the tensor requires grad.
    """
    if not isinstance(value, Packed):
        return wrap_on_graph(value, edge, version)
    tensor = value.unpack()
    if edge is None and tensor.edge is None:
        return tensor
    return wrap_on_graph(tensor.array, edge, version_of(tensor))


class saved_tensors_hooks(Context):
    """Inside, every tensor saved for backward goes through `pack_hook`, and through `unpack_hook` when it is needed.

    Parameters
    ----------
    pack_hook : callable
        Gets the tensor, returns anything; called once for each saved tensor, with grad mode off.
    unpack_hook : callable
        Gets what `pack_hook` returned, returns a tensor of the same values; called at each access.

    Raises
    ------
    HookTypeError
        If one is not callable.
    RuntimeError
        On entry, while :class:`disable_saved_tensors_hooks` holds.

    Notes
    -----
    The hooks belong to the thread, and of nested pairs only the innermost is used. Those that a hook of backward or a
    Function's backward enters and does not leave are on until that node of the graph is done.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.ones(2, requires_grad=True)
    >>> with lucid.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy() * 3, lucid.tensor):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([6., 6.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        check_callable(pack_hook, "saved_tensors_hooks: pack_hook")
        check_callable(unpack_hook, "saved_tensors_hooks: unpack_hook")
        self._hooks = SavedTensorHooks(pack_hook, unpack_hook)
        super().__init__((_take_off, self._hooks))

    def __enter__(self) -> None:
        state = thread.state
        if state.saved_hooks_disabled is not None:
            raise HookError(state.saved_hooks_disabled)
        hooks = state.saved_hooks
        self.undo.append((hooks.remove, self._hooks))
        state.before_change()
        hooks[:0] = (self._hooks,)

    def leave(self) -> Any:
        """Return the function that removes the hooks."""
        if self._hooks not in thread.state.saved_hooks:
            del self.undo[1:]  # the end of a node has taken them off
        return super().leave()


def _take_off(hooks: SavedTensorHooks) -> None:
    """Take off hooks that were left before: a backward pass has put them back on, or they are not on."""
    if hooks not in thread.state.saved_hooks:
        raise HookError(
            "saved_tensors_hooks: left where its hooks are not on: those entered inside a hook of backward, or a "
            "Function's backward, are on until that node of the graph is done"
        )
    thread.state.saved_hooks.remove(hooks)


class disable_saved_tensors_hooks(Context):
    """Inside, entering :class:`saved_tensors_hooks` raises an error with `message`.

    Parameters
    ----------
    message : str
        The text of the error.

    Raises
    ------
    TypeError
        If `message` is no str.
    RuntimeError
        On entry, with `message`, if saved-tensor hooks are active already.

    Examples
    --------
    >>> import lucid
    >>> with lucid.autograd.graph.disable_saved_tensors_hooks("no packing here"):
    ...     with lucid.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    ...         pass
    Traceback (most recent call last):
    lucid.errors.HookError: no packing here
    """

    @checked
    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message

    def __enter__(self) -> None:
        state = thread.state
        if state.saved_hooks:
            raise HookError(self._message)
        self.undo.append(state.putting_back("saved_hooks_disabled", ordinary=state.saved_hooks_disabled is None))
        state.before_change()
        state.saved_hooks_disabled = self._message
