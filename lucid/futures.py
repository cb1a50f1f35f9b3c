"""Results that come later, by PyTorch's names, made of `concurrent.futures`."""

from __future__ import annotations

import concurrent.futures
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lucid.public import publish as _publish

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that some thread sets once, by `set_result` or `set_exception`.

    ``devices=`` of PyTorch is not there: what is queued on a stream is waited for by whoever reads it.

    Examples
    --------
    >>> import lucid.futures
    >>> later = lucid.futures.Future()
    >>> doubled = later.then(lambda future: 2 * future.wait())
    >>> later.set_result(3)
    >>> doubled.wait()
    6
    """

    def __init__(self) -> None:
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Tell whether the value, or an exception, was set."""
        return self._future.done()

    def wait(self) -> T:
        """Return the value as soon as it is set; an exception that was set is raised."""
        return self._future.result()

    def value(self) -> T:
        """Return the value, or raise the exception; RuntimeError if none has been set yet."""
        if not self.done():
            raise RuntimeError("Future.value: nothing was set yet: ask done() first, or wait()")
        return self.wait()

    def set_result(self, result: T) -> None:
        """Set the value, and call the waiting callbacks; RuntimeError if it was set before."""
        try:
            self._future.set_result(result)
        except concurrent.futures.InvalidStateError as error:
            raise RuntimeError("Future.set_result: a value or an exception was set before; it is set once") from error

    def set_exception(self, result: BaseException) -> None:
        """Set an exception for `wait` to raise; RuntimeError if something was set before."""
        if not isinstance(result, BaseException):
            raise TypeError(f"Future.set_exception: expected an exception, got {type(result).__name__}")
        try:
            self._future.set_exception(result)
        except concurrent.futures.InvalidStateError as error:
            raise RuntimeError(
                "Future.set_exception: a value or an exception was set before; it is set once"
            ) from error

    def add_done_callback(self, callback: Callable[[Future[T]], object]) -> None:
        """Call ``callback(self)`` when something is set, at once if it was; its exceptions are logged."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Return the future of ``callback(self)``, called when something is set; an exception of it is set."""
        after: Future[S] = self.after()

        def call(_: object) -> None:
            try:
                after.set_result(callback(self))
            except BaseException as error:  # noqa: BLE001  whoever waits gets it
                after.set_exception(error)

        self._future.add_done_callback(call)
        return after

    def after(self) -> Future[Any]:
        """Return an empty future for a result made of this one's value, of a class that waits in the same way."""
        return Future()


def collect_all(futures: Sequence[Future[T]]) -> Future[list[Future[T]]]:
    """Return the future of these futures, set as soon as all of them are.

    Examples
    --------
    >>> import lucid.futures
    >>> parts = [lucid.futures.Future(), lucid.futures.Future()]
    >>> both = lucid.futures.collect_all(parts)
    >>> parts[1].set_result("b")
    >>> both.done()
    False
    >>> parts[0].set_result("a")
    >>> [part.wait() for part in both.wait()]
    ['a', 'b']
    """
    parts = list(futures)
    everything: Future[list[Future[T]]] = Future()
    if not parts:
        everything.set_result(parts)
        return everything
    remaining = iter(range(len(parts) - 1, -1, -1))  # next() of it is one step, whichever threads set the parts

    def count(_: Future[T]) -> None:
        if not next(remaining):
            everything.set_result(parts)

    for part in parts:
        part.add_done_callback(count)
    return everything


def wait_all(futures: Sequence[Future[T]]) -> list[T]:
    """Return the values of all futures as soon as they are set; the first exception among them is raised.

    Examples
    --------
    >>> import lucid.futures
    >>> part = lucid.futures.Future()
    >>> part.set_result(1)
    >>> lucid.futures.wait_all([part])
    [1]
    """
    return [part.wait() for part in collect_all(futures).wait()]


_publish(globals(), Future="lucid")
