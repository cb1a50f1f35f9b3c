"""Sets of hooks that are taken off together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from lucid.arguments import unfit
from lucid.autograd.engine.retain import register_hook
from lucid.autograd.hooks.registration import Caller, HookList, Registration, Registrations, changing, scopes
from lucid.autograd.recording.views import live_edge
from lucid.errors import HookError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lucid.autograd.base import TensorBase


def take_off(registration: Registration) -> None:
    """Take a hook off; nothing happens if it is off, or its owner is gone."""
    with changing:
        container = registration.container()
        if isinstance(container, HookList):
            if (index := container.index_of(registration)) is not None:
                container.take(index)
        elif container is not None:
            for table in (container, *[mark() for mark in registration.marks]):
                if table is not None and registration.key in table:
                    del table[registration.key]


def _open_already(block: object) -> HookError:
    return HookError(f"this {type(block).__name__} is open already: leave its block, or use another one inside")


class _Single:
    """Base of blocks that cannot be open twice at a time, on whatever threads."""

    _open = False

    def _open_once(self) -> None:
        with changing:
            if self._open:
                raise _open_already(self)
            self._open = True


class HookGroup:
    """The hooks that are registered in its blocks, wherever they hang, to be taken off together.

    What it holds does not keep modules, tensors or graphs alive, and a hook that was taken off, or whose owner is gone,
    is in it no more.

    Parameters
    ----------
    tag : str
        A word for its hooks, by which `Table.filter` chooses them; by default none.

    Raises
    ------
    ArgumentError
        If the tag is no string.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks, nn
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> group = hooks.HookGroup()
    >>> with group:
    ...     _ = model.register_forward_hook(lambda module, args, output: None)
    ...     _ = model[0].weight.register_hook(lambda grad: None)
    >>> len(group), len(model._forward_hooks)
    (2, 1)
    >>> group.remove()
    >>> len(group), len(model._forward_hooks)
    (0, 0)
    """

    def __init__(self, tag: str = "") -> None:
        if type(tag) is not str:
            raise unfit(tag, "a str", "tag")
        self._registrations = Registrations(tag)

    def __enter__(self) -> Self:
        """Add to the group the hooks that this thread, or this asynchronous task, registers from now on.

        Raises
        ------
        HookError
            If a block of it is open here.
        """
        if any(each is self._registrations for each in scopes.get()):
            raise _open_already(self)
        scopes.set((*scopes.get(), self._registrations))
        return self

    def __exit__(self, *exception: object) -> bool | None:
        # by identity: an asynchronous task may leave blocks in another order than it entered them
        scopes.set(tuple([each for each in scopes.get() if each is not self._registrations]))

    def __len__(self) -> int:
        return len(self._registrations)

    def __iter__(self) -> Iterator[Registration]:
        return iter(self._registrations)

    def remove(self) -> None:
        """Take all its hooks off; new ones may come."""
        for registration in list(self._registrations):
            take_off(registration)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} hooks>"


class scope(HookGroup, _Single):
    """A block that takes off, at its end, every hook registered in it, and no other.

    Hooks of modules, tensors, nodes, optimizers and of all modules count, whoever registers them, as long as it happens
    on this thread, or in this asynchronous task, before the block ends, by an exception or not. Blocks nest: the hooks
    of an inner one are in the outer one, too.

    Parameters
    ----------
    tag : str
        As for `HookGroup`.

    Raises
    ------
    HookError
        If a block of the same object is open, here or on another thread: its end would take off the hooks of both.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks, nn
    >>> layer = nn.Linear(2, 2)
    >>> before = layer.register_forward_hook(lambda module, args, output: output * 2)
    >>> with hooks.scope() as inside:
    ...     _ = layer.register_forward_hook(lambda module, args, output: output + 1)
    ...     _ = layer.weight.register_hook(lambda grad: -grad)
    ...     print(inside)
    <scope of 2 hooks>
    >>> len(layer._forward_hooks)
    1
    """

    def __enter__(self) -> Self:
        self._open_once()
        return super().__enter__()

    def __exit__(self, *exception: object) -> bool | None:
        super().__exit__(*exception)
        self.remove()
        self._open = False


class _Temporary(HookGroup):
    """The hooks of one block of a tool."""

    def __init__(self) -> None:
        super().__init__()
        self._registrations.temporary = True

    def begin(self) -> None:
        """Have the hooks from now on registered at the place of the block."""
        self._registrations.caller = Caller()


class tool(_Single):
    """Base of blocks that take off at their end the hooks that they have put on, and nothing else.

    What the program inside of the block registers stays. Copies and pickles of modules that are made there go without
    the block's own hooks.
    """

    def __init__(self) -> None:
        self._group = _Temporary()

    def __enter__(self) -> Any:
        self._open_once()
        self._group.begin()
        try:
            with self._group:
                self._begin()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(self, *exception: object) -> bool | None:
        self._open = False
        self._group.remove()

    def _begin(self) -> None:
        """Register the hooks of the block; those registered so far are taken off if this raises."""
        raise NotImplementedError

    def _hook_gradient(self, tensor: TensorBase, hook: Callable[[Any], Any]) -> None:
        """Hang a hook of the block on a tensor that the program has made inside of it, if it has a gradient."""
        if self._open and live_edge(tensor) is not None:
            with self._group:
                register_hook(tensor, hook)
