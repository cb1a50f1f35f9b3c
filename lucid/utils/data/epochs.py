"""The base of samplers: passes over an order as epochs, with a position to continue from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from lucid.errors import ArgumentError
from lucid.utils.data.randomness import Passes, Walk, generator_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lucid.base.random.generator import Generator

T_co = TypeVar("T_co", covariant=True)

# Indices that are made Python integers at a time.
_PIECE = 4096


class Sampler(Generic[T_co]):
    """The base of samplers: a subclass defines ``__iter__()`` to yield indices, or lists of them for a batch.

    One with ``__len__()`` gives its loader a length. One without ``state_dict()`` is iterated from its beginning when
    a loader goes on in the middle of an epoch, and must give the same indices then.

    Examples
    --------
    >>> from lucid.utils import data
    >>> class Backwards(data.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> list(data.BatchSampler(Backwards(), batch_size=2, drop_last=False))
    [[2, 1], [0]]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__}: a Sampler defines __iter__(), and this one does not")


class EpochSampler(Sampler[Any]):
    """The base of samplers that are a function of seed, epoch and position; a subclass defines ``order``."""

    def __init__(self, generator: Generator | None = None, seed: int | None = None) -> None:
        self._passes = Passes(generator, seed)

    @property
    def passes(self) -> Passes:
        """The passes over it; created on first use, so that constructors of subclasses need not call this one."""
        return self.__dict__.setdefault("_passes", Passes())

    @property
    def generator(self) -> Generator | None:
        """The generator of the seed; None for the CPU's default one."""
        return self.passes.generator

    def order(self, generator: Generator) -> Iterator[Any]:
        """Yield the indices of an epoch, drawn from its generator, in pieces: arrays or other sequences."""
        raise NotImplementedError

    def part(self, order: Iterator[Any], position: int) -> Iterator[Any]:
        """Yield the rest of an epoch's order from a position on, in pieces."""
        for piece in order:
            if position < len(piece):
                yield piece[position:]
            position = max(0, position - len(piece))

    # how far a position moves with each index
    stride = 1

    def __iter__(self) -> Iterator[Any]:
        indices = IndexIterator(self)
        if not self.passes.draws:
            indices.begin()
        return indices

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass be that of `epoch`, an integer; from its beginning, unless a state of it was loaded."""
        self.passes.set_epoch(epoch)

    @property
    def size(self) -> int:
        """How many indices the order of an epoch has, whatever a subclass makes of it."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, int]:
        """Return seed, epoch, the position of the next index in the epoch, and the size of its order."""
        return {**self.passes.state(), "size": self.size}

    def state_at_rest(self) -> dict[str, int]:
        """Return the state of the pass that would begin next."""
        return {**self.passes.following().state(), "size": self.size}

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Let the next pass begin at the position of `state_dict`.

        Raises
        ------
        ArgumentError
            If it is no state of a sampler, or of one whose order has another size.
        """
        size = self.size
        if isinstance(state_dict, dict) and state_dict.get("size", size) != size:
            raise ArgumentError(
                f"{type(self).__name__}.load_state_dict: expected the state of an order of {size} indices, got one of "
                f"{state_dict['size']}: of another dataset or sampler, which has another order"
            )
        self.passes.load(state_dict)


class IndexIterator(Iterator[Any]):
    """The indices of one pass, with a position of its own, independent of other passes over the sampler.

    A pass whose seed is drawn begins with the first index, or when its state is asked for: until then the generator may
    be given another one. A pass whose seed was given is that of the epoch that is set when the iterator is made.
    """

    def __init__(self, sampler: EpochSampler) -> None:
        self._sampler = sampler
        self._walk: Walk | None = None
        self._indices: Iterator[Any] = iter(())

    def begin(self) -> Walk:
        """Return the pass, beginning it if necessary."""
        walk, sampler = self._walk, self._sampler
        if walk is None:
            walk = sampler.passes.begin()
            pieces = sampler.part(sampler.order(generator_of(walk.seed, walk.epoch)), walk.position)
            self._indices = itertools.chain.from_iterable(map(_python_numbers, pieces))
            self._size = sampler.size
            self._walk = walk
        return walk

    def __next__(self) -> Any:
        walk = self._walk or self.begin()
        index = next(self._indices)
        walk.position += self._sampler.stride
        return index

    def state_dict(self) -> dict[str, int]:
        """Return the state of this pass, as the sampler's `state_dict` does."""
        return {**self.begin().state(), "size": self._size}


def _python_numbers(order: Any) -> Iterator[Any]:
    if isinstance(order, np.ndarray):
        indices = cast("Any", order)
        for start in range(0, len(indices), _PIECE):
            yield from indices[start : start + _PIECE].tolist()
    else:
        yield from order


def tells_its_order(sampler: object) -> bool:
    """Return whether the state of a sampler includes the position in its own order.

    What a class inherits tells the order of that class, not one that a subclass makes of it in its own ``__iter__``.
    """
    if not (hasattr(sampler, "state_dict") and hasattr(sampler, "load_state_dict")):
        return False
    kinds = type(sampler).__mro__
    first = next((kind for kind in kinds if "__iter__" in vars(kind) or "state_dict" in vars(kind)), object)
    return "state_dict" in vars(first) or not has_lucids_state(sampler)


def has_lucids_state(sampler: Any) -> bool:
    """Return whether the state of a sampler is that of lucid's own ones."""
    method = getattr(cast("type[Any]", type(sampler)), "state_dict", None)
    return str(getattr(method, "__module__", "")).startswith("lucid.utils.data.")


def teller_of(sampler: Any, iterator: Any) -> Any:
    """Return the object with the state of a pass: lucid's iterator, independent of other passes, else the sampler."""
    return iterator if has_lucids_state(sampler) and hasattr(iterator, "state_dict") else sampler


def state_at_rest(sampler: Any) -> Any:
    """Return the state to continue from before the next pass begins; None if the sampler has none."""
    if not tells_its_order(sampler):
        return None
    return (sampler.state_at_rest if has_lucids_state(sampler) else sampler.state_dict)()
