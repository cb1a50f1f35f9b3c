"""Handles, and the one of tensors and nodes, whose hooks are in lists."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Self

from lucid.autograd.hooks.firing import registered_hook
from lucid.autograd.hooks.registration import HookList, changing

if TYPE_CHECKING:
    from collections.abc import Callable


class Handle:
    """What a registration returns: a call, `remove` and the end of a ``with`` block take the hook off."""

    __slots__ = ()

    def remove(self) -> None:
        """Take the hook off; a second call does nothing."""
        raise NotImplementedError

    def __call__(self) -> None:
        """Take the hook off, as `remove` does."""
        self.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


class RemovableHandle(Handle):
    """Takes one hook of a tensor or a node off again, at once or at the end of a ``with`` block.

    Parameters
    ----------
    hooks_list : list of callable
        The list that holds the hook.
    hook : callable
        The registered object; it is found by identity.

    Notes
    -----
    `lucid.nn.hooks.RemovableHandle` is another class: it serves the hooks of modules and optimizers.

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
        with changing:
            if self._removed:
                return
            hooks = self._hooks_list
            count = len(hooks)
            # from both ends: hooks go in the order in which they came, or newest first
            for index in chain.from_iterable(zip(range((count + 1) // 2), range(count - 1, -1, -1), strict=False)):
                if registered_hook(hooks[index]) is self._hook:
                    if isinstance(hooks, HookList):
                        hooks.take(index)
                    else:
                        del hooks[index]
                    break
            self._removed = True
