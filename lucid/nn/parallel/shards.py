"""A batch cut into the same number of shards whatever the number of processes, so that training gives the same bits."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lucid.autograd.base import TensorBase, grad_of, version_of, wrap
from lucid.base.arrays import astype, copied, on
from lucid.base.device import device_of
from lucid.base.dtype import dtype_of
from lucid.base.random.generator import Generator, default_generator_for, get_rng_states, set_rng_states
from lucid.collectives.numbers import all_reduced
from lucid.collectives.reduction import ReduceOp
from lucid.errors import SettingError, ShapeError
from lucid.nn.layers.normalisation.synchronised import SyncBatchNorm, tree_summed
from lucid.nn.parallel.buckets import store
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lucid.collectives.group import ProcessGroup
    from lucid.nn.module.module import Module
    from lucid.nn.parallel.reducer import Reducer
    from lucid.tensor import Tensor


def check_shards(shards: int, processes: int) -> None:
    """Raise `SettingError` unless a batch in so many shards can be divided among so many processes."""
    if shards < 1 or shards & (shards - 1):
        raise SettingError(
            f"DistributedDataParallel: shards: expected a power of two, which a tree of pairs adds, got {shards}"
        )
    if shards % processes:
        raise SettingError(
            f"DistributedDataParallel: shards: expected a multiple of the {processes} processes, got {shards}"
        )


def bit_reversed(count: int) -> list[int]:
    """Return the numbers below a power of two in bit-reversed order: pairs of neighbours are those of `tree_sum`.

    Examples
    --------
    >>> from lucid.nn.parallel.shards import bit_reversed
    >>> bit_reversed(8)
    [0, 4, 2, 6, 1, 5, 3, 7]
    """
    order = [0]
    while len(order) < count:
        order = [2 * number + odd for odd in (0, 1) for number in order]
    return order


class PairwiseSum:
    """The sum of arrays that come one after the other, neighbours first: of n arrays at most log2(n) are held.

    None stands for zeros, also beside the negative zero that another array may have.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[int, Any]] = []

    def add(self, array: Any) -> None:
        """Take the next array, or None."""
        level = 0
        while self._parts and self._parts[-1][0] == level:
            array = _sum(self._parts.pop()[1], array)
            level += 1
        self._parts.append((level, array))

    def total(self) -> Any:
        """Return the sum of the arrays so far, as many as a power of two."""
        ((_, array),) = self._parts
        return array


def _sum(a: Any, b: Any) -> Any:
    if a is None and b is None:
        return None
    with on(b if a is None else a):
        return (0 if a is None else a) + (0 if b is None else b)


def shards_of(
    reducer: Reducer, module: Module, shards: int, batch: Sequence[Tensor], begin: Callable[[], None]
) -> Iterator[tuple[Tensor, ...]]:
    """Yield this process's shards of its part of a batch; then put gradients and buffers of all together.

    `begin` is called first, and leaves the same buffers in all processes. A loop that is left early leaves gradients,
    buffers and generators as they were.
    """
    group = reducer.group
    own = shards // group.size()
    _check_batch(batch, own)
    _check_layers(module)
    if not reducer.syncing:
        raise SettingError(
            "DistributedDataParallel.split: this is in no_sync, or another split: expected it outside, as each loop "
            "adds the mean over its shards to the gradients, so that those of several batches add up anyway"
        )
    if group.size() > 1:
        begin()
    sums = [PairwiseSum() for _ in reducer.parameters]
    touched: set[int] = set()
    buffers = _Buffers(module)
    # made now if nothing was drawn there: what is not in the states would go on in another way in the first batch
    default_generator_for(str(device_of(reducer.parameters[0].array)))
    states = get_rng_states()
    before = _taken(reducer)
    reduced, reducer.syncing = False, False
    try:
        for number in bit_reversed(own):
            set_rng_states(_states_of(states, group.rank() + number * group.size()))
            yield tuple([part[number::own] for part in batch])
            for index, (parameter, total) in enumerate(zip(reducer.parameters, sums, strict=True)):
                grad = grad_of(parameter)
                if grad is not None:
                    touched.add(index)
                total.add(None if grad is None else astype(grad.array, accumulation_dtype(grad.array.dtype)))
                parameter.grad = None
            buffers.collect()
        totals = {index: total.total() for index, total in enumerate(sums)}
        reducer.reduce(totals, touched, {index: grad.array for index, grad in before.items()}, own)
        reduced = True
        buffers.join(group, shards)
    finally:
        reducer.syncing = True
        set_rng_states(states)
        for device in states:
            default_generator_for(device).reserve(1)  # the next batch has other numbers
        for index, parameter in enumerate(reducer.parameters):
            # of what no process has used there is no mean
            if not reduced or grad_of(parameter) is None:
                parameter.grad = before.get(index)
        if not reduced:
            buffers.put_back()


def _check_batch(batch: Sequence[Any], own: int) -> None:
    if not batch:
        raise ShapeError("DistributedDataParallel.split: expected the tensors of a batch, got none")
    for part in batch:
        if not isinstance(part, TensorBase) or not part.array.ndim:
            raise ShapeError(
                "DistributedDataParallel.split: expected tensors whose first dimension is that of the batch, got "
                f"{type(part).__name__}"
            )
    sizes = {part.array.shape[0] for part in batch}
    if len(sizes) > 1 or sizes.pop() % own:
        raise ShapeError(
            f"DistributedDataParallel.split: expected a batch of one size, which this process's {own} shards divide, "
            f"got {[part.array.shape[0] for part in batch]}"
        )


def _check_layers(module: Module) -> None:
    for name, layer in module.named_modules():
        if isinstance(layer, SyncBatchNorm):
            raise SettingError(
                f"DistributedDataParallel.split: {name or 'the module'} is a SyncBatchNorm, whose statistics are those "
                "of one shard of each process, and so others on another number of processes: take BatchNorm, whose "
                "running statistics are joined over all shards"
            )


def _taken(reducer: Reducer) -> dict[int, Tensor]:
    """Return the gradients of all parameters, by number, and leave none."""
    before: dict[int, Tensor] = {}
    for index, parameter in enumerate(reducer.parameters):
        grad = parameter.grad
        if grad is not None:
            # one in the memory of a bucket would be overwritten as that is filled anew
            before[index] = wrap(copied(grad.array)) if reducer.view else grad
            parameter.grad = None
    return before


def _states_of(states: dict[str, Any], shard: int) -> dict[str, Any]:
    """Return states of generators that depend on those at the beginning of the batch and on the shard alone."""
    chosen: dict[str, Any] = {}
    for device, state in states.items():
        mixed = hashlib.blake2b(state.tobytes(), key=shard.to_bytes(8, "little"), digest_size=8).digest()
        chosen[device] = Generator(seed=int.from_bytes(mixed, "little")).get_state()
    return chosen


class _Place(NamedTuple):
    """The name of a buffer in a module, and the buffer of this name before the batch."""

    name: str
    owner: Module
    key: str
    buffer: TensorBase

    def now(self) -> TensorBase:
        """Return the buffer of this name now; a forward may have put another there.

        Raises
        ------
        SettingError
            If it is not in the form of the buffer, which the mean is written to.
        """
        now: TensorBase | None = vars(self.owner)["_buffers"].get(self.key)
        if now is not None and (now is self.buffer or _form(now) == _form(self.buffer)):
            return now
        raise SettingError(
            f"DistributedDataParallel.split: a forward has put {'nothing' if now is None else _form(now)} in the place "
            f"of the buffer {self.name}, of {_form(self.buffer)}: expected the same shape, dtype and device"
        )


def _form(buffer: TensorBase) -> str:
    return f"shape {tuple(buffer.array.shape)}, {buffer.array.dtype.name}, on {device_of(buffer.array)}"


class _Buffers:
    """The module's buffers after each shard; all shards begin with the same."""

    def __init__(self, module: Module) -> None:
        self._places = [
            _Place(f"{path}.{key}" if path else key, owner, key, buffer)
            for path, owner in module.named_modules()
            for key, buffer in owner.named_buffers(recurse=False)
            if buffer.array.size
        ]
        self._first = [copied(place.buffer.array) for place in self._places]
        self._versions = [self._version(place.buffer) for place in self._places]
        self._changed = np.zeros(len(self._places), np.uint8)
        self._sums = [PairwiseSum() for _ in self._places]
        self._same: list[Any] = [None] * len(self._places)

    @staticmethod
    def _version(buffer: TensorBase) -> tuple[int, int]:
        return id(buffer.array), version_of(buffer)[0]

    def collect(self) -> None:
        """Take the values that a shard has left, and begin again with the first ones."""
        for index, place in enumerate(self._places):
            array = place.now().array
            if dtype_of(array).is_floating_point or dtype_of(array).is_complex:
                self._sums[index].add(astype(array, accumulation_dtype(array.dtype), copy=True))
            elif self._same[index] is None:
                self._same[index] = copied(array)
            elif not bool((self._same[index] == array).all()):
                raise _unlike(place.name)
        self.put_back()

    def put_back(self) -> None:
        """Have the modules the buffers of before the batch, with their values of then."""
        for index, (_, owner, key, buffer) in enumerate(self._places):
            if vars(owner)["_buffers"].get(key) is not buffer:
                self._changed[index] = 1
                setattr(owner, key, buffer)
            if self._version(buffer) != self._versions[index]:
                self._changed[index] = 1
                store(buffer, self._first[index], "DistributedDataParallel: buffer")
                self._versions[index] = self._version(buffer)

    def join(self, group: ProcessGroup, shards: int) -> None:
        """Set each buffer that a forward has changed to the mean over all shards, the same bits in all processes."""
        if not self._places:
            return
        self._changed = all_reduced(group, self._changed, ReduceOp.MAX, "marks of changed buffers")
        for index, (name, _, _, buffer) in enumerate(self._places):
            if not self._changed[index]:
                continue
            if self._same[index] is not None:
                number = int.from_bytes(hashlib.blake2b(self._same[index].tobytes(), digest_size=7).digest(), "little")
                extremes = all_reduced(group, np.array([number, -number]), ReduceOp.MAX, f"values of buffer {name}")
                if extremes[0] != -extremes[1]:
                    raise _unlike(name)
                store(buffer, self._same[index], "DistributedDataParallel: buffer")
                continue
            total = self._sums[index].total()
            tree_summed(group, total, "DistributedDataParallel", f"buffer {name} as a tree")
            store(buffer, total / shards, "DistributedDataParallel: buffer")


def _unlike(name: str) -> SettingError:
    return SettingError(
        f"DistributedDataParallel.split: the buffer {name} holds integers that differ from shard to shard, of which "
        "there is no mean: expected floating-point numbers, or what each forward changes alike"
    )
