"""Values that the backward of a graphed callable reads: whether they are those of its own forward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import INFERENCE, describe, version_of, wrap
from lucid.errors import CaptureError, InplaceError
from lucid.graphs.outside import holding

if TYPE_CHECKING:
    from collections.abc import Iterable


class Reading:
    """Values read by the backward of one of several callables, captured in order, and backwards from the last.

    What one made and let go of is memory of those after it. So a launch overwrites what backward reads of its own
    callable, and of those after that.

    Parameters
    ----------
    calls : list of object
        Shared by them all: of each the call whose values lie in memory, or words of what has overwritten them.
    number : int
        Which of them this is.
    outside : iterable of Tensor
        What backward reads of what was there before, such as parameters.
    results : list of Tensor
        What forward leaves in the graph's memory.
    addresses : set of int
        Those that backward reads.
    """

    def __init__(
        self, calls: list[object], number: int, outside: Iterable[Any], results: list[Any], addresses: set[int]
    ) -> None:
        self._calls, self._number, self._results = calls, number, results
        # a launch counts as a change of them: what has saved one of an earlier call must not read it
        self._counts: list[list[int]] = [[0] for _ in results]
        is_read = holding(addresses)
        read = [(version_of(tensor), describe(tensor)) for tensor in outside]
        for tensor, count in zip(results, self._counts, strict=True):
            if is_read(tensor.array):
                read.append((count, f"{describe(tensor)}, a result"))
        self._read = [(version, words) for version, words in read if version is not INFERENCE]

    def begin(self) -> list[int]:
        """Return a call, from now on the owner of the values in memory: the versions of the values for its backward."""
        for count in self._counts:
            count[0] += 1
        call = self._versions()
        self._overwrite(call, f"callable {self._number} was called")
        return call

    def results(self) -> tuple[Any, ...]:
        """Return the results of a call, outside of any graph."""
        made = tuple(wrap(tensor.array) for tensor in self._results)
        for tensor, count in zip(made, self._counts, strict=True):
            if getattr(tensor, "version", None) is not INFERENCE:
                tensor.version = count
        return made

    def end(self, call: list[int]) -> None:
        """Let the backward of a call overwrite the values that it reads.

        Raises
        ------
        CaptureError
            If something else has done so.
        InplaceError
            If one of the tensors was changed in place since.
        """
        number, latest = self._number, self._calls[self._number]
        if latest is not call:
            raise CaptureError(
                f"make_graphed_callables: backward of a call of callable {number}, but what it reads was overwritten: "
                f"{latest if isinstance(latest, str) else f'callable {number} was called again'} since. Run backward "
                "once after each call, before the next one, and backwards of several callables in the reverse of "
                "their order; let a make_graphed_callables of its own make what has to wait for another"
            )
        now = self._versions()
        if now != call:
            words = next(words for (_, words), a, b in zip(self._read, now, call, strict=True) if a != b)
            raise InplaceError(
                "make_graphed_callables: one of the variables needed for gradient computation has been modified by an "
                f"inplace operation between a call and its backward: a tensor of {words}. Change it before the call or "
                "after backward, or use the out-of-place op"
            )
        done = f"the backward of callable {number} was run"
        self._overwrite(done, done)

    def _overwrite(self, own: object, others: str) -> None:
        self._calls[self._number :] = [own, *[others] * (len(self._calls) - self._number - 1)]

    def _versions(self) -> list[int]:
        return [version[0] for version, _ in self._read]
