"""Tensors from outside of a capture that its graph reads or writes: their memory is kept, and they are watched.

Their gradients are those that the captured step found and left.
"""

from __future__ import annotations

import gc
import weakref
from bisect import bisect_left
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lucid.autograd.base import TensorBase, describe, grad_of
from lucid.autograd.engine.node import AccumulateGrad
from lucid.base import gpu
from lucid.base.capture import changes
from lucid.base.memory import byte_bounds
from lucid.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Watched(NamedTuple):
    """A tensor from outside, and the array that it had when the capture began."""

    reference: weakref.ref[Any]
    array: Any
    requires_grad: bool
    takes_grad: bool
    """Whether it is a leaf that gradients go to."""
    words: str

    @property
    def is_as_before(self) -> bool:
        """Whether the tensor is there, with the same memory, and requires grad as it did.

        A view that is no leaf does as its base does, which is looked at itself.
        """
        tensor = self.reference()
        if tensor is None or _takes_grad(tensor) is not self.takes_grad:
            return False
        if tensor.origin is None and (tensor.edge is not None) is not self.requires_grad:
            return False
        return getattr(tensor.array.data, "mem", None) is self.array.data.mem


def holding(addresses: Iterable[int]) -> Callable[[Any], bool]:
    """Return whether one of these addresses lies in an array, as a function of the array."""
    ordered = sorted(addresses)

    def holds(array: Any) -> bool:
        start, end = byte_bounds(array)
        position = bisect_left(ordered, start)
        return position < len(ordered) and ordered[position] < end

    return holds


def _takes_grad(tensor: Any) -> bool:
    return tensor.edge is not None and type(tensor.edge[0]) is AccumulateGrad


def _classes(base: type[Any]) -> Iterator[type[Any]]:
    """Yield a class and all that derive from it."""
    yield base
    for each in base.__subclasses__():
        yield from _classes(each)


def _gone(watch: weakref.ref[Watch], key: int, _: object) -> None:
    live = watch()
    if live is not None:
        live.go(key)


class Watch:
    """The tensors of a device that are there when a capture begins; after `use`, those of them that its graph uses.

    Their memory is kept, and `check` tells when it is no longer that of the tensors which it was.

    Attributes
    ----------
    places : dict of int to weakref
        By `id`, where hooks fire in what the graph does; filled once that is captured.
    hooks_changed : bool
        Whether a hook came or went at one of them since.
    """

    def __init__(self, device: int) -> None:
        kind: Any = gpu.array_type()
        kinds = {kind, *_classes(TensorBase)}
        self._kept: list[Any] = []
        self._gradients: list[tuple[weakref.ref[Any], Any]] = []
        self._watched: dict[int, Watched] = {}
        self._lost: list[Watched] = []
        self.places: dict[int, weakref.ref[Any]] = {}
        self.hooks_changed = False
        self._changes = changes.arrays
        of_kinds: list[Any] = [each for each in gc.get_objects() if type(each) in kinds]
        for each in of_kinds:
            if type(each) is kind:
                # one that another thread is about to make has no memory yet
                if each.data is not None and each.data.device_id == device:
                    self._kept.append(each)
                continue
            array: Any = getattr(each, "array", None)
            if type(array) is kind and array.data is not None and array.data.device_id == device:
                reference = weakref.ref(each, partial(_gone, weakref.ref(self), id(each)))
                self._watched[id(each)] = Watched(
                    reference, array, each.edge is not None, _takes_grad(each), describe(each)
                )
                self._gradients.append((reference, grad_of(each)))
        changes.tell(self)

    def go(self, key: int) -> None:
        """Note that a tensor is gone, or has moved to another array."""
        watched = self._watched.pop(key, None)
        if watched is not None:
            self._lost.append(watched)

    def replaced(self, tensor: object) -> None:
        """Take note that a module has another tensor in place of this one."""
        self.go(id(tensor))

    def hook_changed(self, place: object) -> None:
        """Take note that a hook was added or removed at a place."""
        reference = self.places.get(id(place))
        if reference is not None and reference() is place:
            self.hooks_changed = True

    def use(self, addresses: Iterable[int]) -> None:
        """Keep only the tensors that the graph uses, by the addresses that it holds.

        Raises
        ------
        CaptureError
            If the captured work has replaced some of it, of which a graph goes on to use the old.
        """
        is_used = holding(addresses)
        lost = [each for each in self._lost if is_used(each.array)]
        watched = {key: each for key, each in self._watched.items() if is_used(each.array)}
        self._check(
            watched,
            lost,
            "the captured work gave a module or variable another tensor, or a tensor other memory, in place of what it "
            "has read: of {}. Each replay would read the old one again: change it in place (copy_, add_)",
        )
        self._kept = [array.data.mem for array in self._kept if is_used(array)]
        self._watched, self._gradients = watched, []
        self._lost.clear()
        self._changes = changes.arrays

    def at(self, addresses: Iterable[int]) -> list[Any]:
        """Return the watched tensors with an element at one of these addresses."""
        is_read = holding(addresses)
        tensors = [each.reference() for each in self._watched.values() if is_read(each.array)]
        return [tensor for tensor in tensors if tensor is not None]

    def check(self, remedy: str) -> None:
        """Raise `CaptureError`, with how to capture anew, if a tensor in use has other memory by now, or is gone."""
        if self._lost or self._changes != changes.arrays:
            self._check(
                self._watched,
                self._lost,
                "a tensor that captured work uses was replaced or moved since, or requires grad no longer as it "
                "did: of {}. The graph would go on as before: change tensors in place (copy_, a module's "
                "load_state_dict), or " + remedy,
            )
            self._lost.clear()
            self._changes = changes.arrays

    @staticmethod
    def _check(watched: dict[int, Watched], gone: list[Watched], words: str) -> None:
        # one that is gone is nobody's concern where another tensor shows the same memory
        held = {id(each.array.data.mem) for each in watched.values() if each.is_as_before}
        lost = [each for each in gone if id(each.array.data.mem) not in held]
        lost += [each for each in watched.values() if not each.is_as_before]
        if lost:
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            raise CaptureError(words.format(lost[0].words + more))

    def gradients(self) -> list[tuple[Any, Any]]:
        """Return the tensors that are still there, and the gradients that they had when the capture began."""
        pairs = [(reference(), grad) for reference, grad in self._gradients]
        return [(tensor, grad) for tensor, grad in pairs if tensor is not None]

    def put_back(self, assigned: set[int], is_own: Callable[[Any], bool]) -> None:
        """Let tensors have the arrays and gradients that they had: those of work that was not done hold nothing.

        What other threads did meanwhile stays: what is put back is the gradient of `assigned`, by `id`, and where the
        work's own array stands.
        """
        for watched in self._watched.values():
            tensor = watched.reference()
            if tensor is not None and tensor.array is not watched.array and is_own(tensor.array):
                tensor.array = watched.array
        for tensor, grad in self.gradients():
            current = grad_of(tensor)
            if current is not grad and (id(tensor) in assigned or (current is not None and is_own(current.array))):
                tensor.stored_grad = grad


class Gradients:
    """Gradients of leaves before and after a captured step.

    Parameters
    ----------
    before : iterable of (Tensor, Tensor or None)
        Tensors and the gradients that they had when the capture began; they have those of its end now.
    assigned : set of int
        By `id`, the tensors whose gradient the step itself set or cleared.
    changed : set of int
        By `id`, the tensors whose gradient hooks between parts of the step changed.
    is_of_graph : callable
        Whether the graph made or uses an array: what other threads did meanwhile is none of its business.
    """

    def __init__(
        self,
        before: Iterable[tuple[Any, Any]],
        assigned: set[int],
        changed: set[int],
        is_of_graph: Callable[[Any], bool],
    ) -> None:
        self._after: list[tuple[Any, Any]] = []
        self._before: list[tuple[Any, Any]] = []
        for tensor, old in before:
            new = grad_of(tensor)
            own = id(tensor) in changed or any(g is not None and is_of_graph(g.array) for g in (old, new))
            if new is not old and (own or id(tensor) in assigned):
                self._after.append((tensor, new))
            if own and id(tensor) not in assigned:
                self._before.append((tensor, old))

    def check(self) -> None:
        """Raise unless the gradients that the step adds to are those of the capture, and others are None as then."""
        for tensor, old in self._before:
            if tensor.stored_grad is not old:
                had = "none" if old is None else "another one"
                raise CaptureError(
                    f"the gradient of a tensor of {describe(tensor)} is not what it was when the step was captured: it "
                    f"had {had} then, to which the graph adds, and has {'none' if grad_of(tensor) is None else 'one'} "
                    "now. Let the step clear its gradients (optimizer.zero_grad()), or call reset() on the graphed step"
                )

    def leave(self) -> None:
        """Let leaves have the gradients that the step gives them."""
        for tensor, new in self._after:
            tensor.stored_grad = new
