"""Hooks of tensors and nodes: the handle that takes one off again, and how a list of them is fired."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, cast

from lucid.autograd.base import TensorBase, describe
from lucid.backend.locks import new_rlock
from lucid.errors import HookError, HookTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

# What moves hooks to other places of their list holds it: finding a hook and taking it out are two steps.
# Reentrant: what goes with the hook may remove others as it goes.
moving = new_rlock()


class RemovableHandle:
    """Takes one hook of a tensor or a node off again, at once or at the end of a ``with`` block.

    Parameters
    ----------
    hooks_list : list of callable
        The list that holds the hook.
    hook : callable
        The registered object; it is found by identity.

    Notes
    -----
    `lucid.nn.hooks.RemovableHandle` is another class: it serves the hooks of modules.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> with x.register_hook(lambda grad: grad * 2):
    ...     (x * x).sum().backward()
    >>> x.grad
    tensor([4., 8.])
    """

    __slots__ = ("__weakref__", "_hook", "_hooks_list", "_removed")

    def __init__(self, hooks_list: list[Callable[..., object]], hook: Callable[..., object]) -> None:
        self._hooks_list = hooks_list
        self._hook = hook
        self._removed = False

    def remove(self) -> None:
        """Take the hook off its list; a second call does nothing."""
        with moving:
            if self._removed:
                return
            hooks = self._hooks_list
            count = len(hooks)
            # from both ends: hooks go in the order in which they came, or newest first
            for index in chain.from_iterable(zip(range((count + 1) // 2), range(count - 1, -1, -1), strict=False)):
                if hooks[index] is self._hook:
                    del hooks[index]
                    break
            self._removed = True

    def __call__(self) -> None:
        """Take the hook off, as `remove` does."""
        self.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.remove()


def check_callable(hook: object, where: str) -> None:
    """Raise `HookTypeError` unless `hook` can be called."""
    if not callable(hook):
        raise HookTypeError(f"{where}: expected a callable hook, got {type(hook).__name__}: {hook!r}")


class StandIn:
    """The base of what is called in place of a user's hook: errors name it by that hook, its attribute `func`."""

    __slots__ = ()


def hook_name(hook: object) -> str:
    """Return the hook's qualified name and, where Python knows it, file and line."""
    while isinstance(hook, partial | StandIn):
        hook = cast("Any", hook).func
    inner: Any = hook
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    if code is None:
        code = getattr(getattr(inner.__class__, "__call__", None), "__code__", None)  # noqa: B004  its code, not whether
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else str(name)


def place_of(hook: object, hooks: Sequence[object]) -> int:
    """Return the place of `hook` among `hooks`."""
    return next(index for index, other in enumerate(hooks) if other is hook)


def add_hook_note(error: BaseException, hook: object, kind: str, owner: str, index: int) -> None:
    """Note on `error` which hook raised it: its name, its kind, what it hangs on, and its place in the list."""
    error.add_note(f"raised by hook {hook_name(hook)}: {kind} number {index} of {owner}")


def check_replacement(
    hook: object, kind: str, result: object, expected: tuple[tuple[int, ...], Any] | None, grad: Any
) -> TensorBase:
    """Return `result` if it can stand in for `grad`, otherwise raise.

    Raises
    ------
    HookTypeError
        If it is no tensor.
    HookError
        If its shape, dtype or device is another.
    """
    if not isinstance(result, TensorBase):
        raise HookTypeError(
            f"{kind} {hook_name(hook)}: expected None or a Tensor to be returned, got {type(result).__name__}"
        )
    shape, dtype = expected if expected is not None else (result.array.shape, result.array.dtype)
    if grad is not None and expected is None:
        shape, dtype = grad.array.shape, grad.array.dtype
    same_device = grad is None or (
        type(result.array) is type(grad.array)
        and getattr(result.array, "device", None) == getattr(grad.array, "device", None)
    )
    if result.array.shape != shape or result.array.dtype != dtype or not same_device:
        wanted = f"shape {tuple(shape)}, {dtype.name}" if grad is None else describe(grad)
        raise HookError(
            f"{kind} {hook_name(hook)}: the returned gradient must have the same shape, dtype and device as the "
            f"gradient that was given: expected {wanted}, got {describe(result)}"
        )
    return result


def fire_tensor_hooks(
    hooks: Sequence[Callable[..., Any]],
    grad: Any,
    expected: tuple[tuple[int, ...], Any] | None,
    owner: Callable[[], str],
) -> Any:
    """Return the gradient after every hook of one tensor has seen it, each what the one before returned.

    Parameters
    ----------
    hooks : sequence of callable
        A snapshot is taken: a hook removed meanwhile still fires, one added waits.
    grad : Tensor or None
        None where this pass gives the tensor no gradient.
    expected : (shape, dtype) or None
        What a returned gradient must have.
    owner : callable
        Says in words what the hooks hang on, for messages.
    """
    hooks = tuple(hooks)
    hook = None
    try:
        for hook in hooks:
            result = hook(grad)
            if result is not None:
                grad = check_replacement(hook, "tensor hook", result, expected, grad)
    except Exception as error:
        add_hook_note(error, hook, "tensor hook", owner(), place_of(hook, hooks))
        raise
    return grad


def fire_node_hooks(
    hooks: Sequence[Callable[..., Any]], grads: tuple[Any, ...], others: tuple[Any, ...], kind: str, owner: str
) -> tuple[Any, ...]:
    """Return the gradients of a node after its pre- or posthooks.

    Parameters
    ----------
    hooks : sequence of callable
        Called with `grads`, then with the entries of `others`.
    grads : tuple of Tensor or None
        What the hooks may replace, as a whole.
    others : tuple
        Further arguments: a posthook's `grad_outputs`.
    kind, owner : str
        For messages.

    Raises
    ------
    HookTypeError
        If a hook returns neither None nor a tuple, or a tuple of other things than tensors and None.
    HookError
        If the tuple has another length, or an entry another shape, dtype or device.
    """
    hooks = tuple(hooks)
    for hook in hooks:
        try:
            result = hook(grads, *others)
            if result is None:
                continue
            if not isinstance(result, tuple):
                raise HookTypeError(f"{kind} {hook_name(hook)}: expected None or a tuple, got {type(result).__name__}")
            if len(result) != len(grads):  # pyright: ignore[reportUnknownArgumentType]
                raise HookError(
                    f"{kind} {hook_name(hook)}: expected a tuple of {len(grads)} gradients, got {len(result)}"  # pyright: ignore[reportUnknownArgumentType]
                )
            entries: tuple[Any, ...] = result  # pyright: ignore[reportUnknownVariableType]  a user's tuple holds anything
            for old, new in zip(grads, entries, strict=True):
                if new is not None:
                    check_replacement(hook, kind, new, None, old)
            grads = entries
        except Exception as error:
            add_hook_note(error, hook, kind, owner, place_of(hook, hooks))
            raise
    return grads
