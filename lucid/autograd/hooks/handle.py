"""Handles, and the one of tensors and nodes, with their hooks in lists."""

from __future__ import annotations

import weakref
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

from lucid.autograd.hooks.firing import Counted, Resting, hook_name, is_resting, registered_hook, stand_ins, without
from lucid.autograd.hooks.registration import HookList, Registration, changing

if TYPE_CHECKING:
    from collections.abc import Callable


class Handle:
    """Handle of a registration: a call, `remove` and the end of a ``with`` block take the hook off.

    What it says of the hook it looks up where that stands, so that none of it costs a hook that fires anything.
    """

    __slots__ = ()

    def remove(self) -> None:
        """Take the hook off; a second call does nothing."""
        raise NotImplementedError

    def _place(self) -> tuple[Any, int] | None:
        """Return the container of the hook, and its key or index; None once it is off."""
        raise NotImplementedError

    def hook(self) -> Any:
        """Return the hook's function now, or its stand-in; None once it is off."""
        with changing:
            place = self._place()
            return None if place is None else place[0][place[1]]

    @property
    def name(self) -> str:
        """The function's qualified name, with the file and line of its definition; empty once it is off."""
        hook = self.hook()
        return "" if hook is None else hook_name(hook)

    @property
    def enabled(self) -> bool:
        """Whether the hook is called when its moment comes; set, it rests in its place, or is called again."""
        hook = self.hook()
        return hook is not None and not is_resting(hook)

    @enabled.setter
    def enabled(self, value: bool) -> None:
        enabled = bool(value)
        with changing:
            place = self._place()
            if place is None or enabled is self.enabled:
                return
            container, key = place
            hook = container[key]
            resting = next((each for each in stand_ins(hook) if isinstance(each, Resting)), None)
            container[key] = Resting(hook) if resting is None else without(hook, resting)

    def _counted(self) -> Counted | None:
        return next((each for each in stand_ins(self.hook()) if isinstance(each, Counted)), None)

    @property
    def calls(self) -> int | None:
        """How often it was called since the block of `lucid.hooks.counting` around began; None outside of any."""
        counted = self._counted()
        return None if counted is None else counted.calls

    @property
    def time(self) -> float | None:
        """Microseconds of the host that these calls took; None outside of any such block."""
        counted = self._counted()
        return None if counted is None else counted.time / 1e3

    def __repr__(self) -> str:
        state = "removed" if self.hook() is None else self.name if self.enabled else f"{self.name}, off"
        return f"<{type(self).__name__}: {state}>"

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

    __slots__ = ("__weakref__", "_hook", "_hooks_list", "_registration", "_removed")

    def __init__(self, hooks_list: list[Callable[..., object]], hook: Callable[..., object]) -> None:
        self._hooks_list = hooks_list
        self._hook = hook
        # weakly: a registration says by its end that its hook is off
        self._registration: weakref.ref[Registration] | None = None
        self._removed = False

    @classmethod
    def of(cls, hooks: HookList, hook: Callable[..., object], leaf: object = None) -> Self:
        """Return the handle of a hook that is put on a list now: of this registration, if there are others of it."""
        handle = cls(hooks, hook)
        handle._registration = weakref.ref(hooks.add(hook, leaf))
        return handle

    def remove(self) -> None:
        """Take the hook off its list; a second call does nothing."""
        with changing:
            place = self._place()
            if place is not None:
                hooks, index = place
                if isinstance(hooks, HookList):
                    hooks.take(index)
                else:
                    del hooks[index]
            self._removed = True

    def _place(self) -> tuple[Any, int] | None:
        if self._removed:
            return None
        hooks = self._hooks_list
        entries, wanted = hooks, self._hook
        if self._registration is not None and isinstance(hooks, HookList):
            registration = self._registration()
            if registration is None:
                return None
            entries, wanted = hooks.registrations, registration
        count = len(entries)
        # from both ends: hooks go in the order in which they came, or newest first
        for index in chain.from_iterable(zip(range((count + 1) // 2), range(count - 1, -1, -1), strict=False)):
            if registered_hook(entries[index]) is wanted:
                return hooks, index
        return None
