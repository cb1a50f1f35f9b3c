"""Gradients of several parameters as one array, sent from process to process at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.base import TensorBase, grad_of, wrap
from lucid.base.arrays import namespace, on
from lucid.base.device import device_of
from lucid.collectives.memory import Target
from lucid.ops.base.promotion import accumulation_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lucid.nn.parameter import Parameter
    from lucid.tensor import Tensor


MIB = 2**20
FIRST_MIB = 1.0
"""The first bucket is small, so that something is on its way early."""


def divided(parameters: Sequence[Parameter], order: Iterable[int], mib: float) -> list[list[int]]:
    """Return the numbers of parameters, in `order`, in groups of one dtype and device of about so many MiB."""
    groups: list[list[int]] = []
    open_groups: dict[Any, tuple[list[int], int]] = {}
    for number in order:
        array = parameters[number].array
        kind = array.dtype, device_of(array)
        members, size = open_groups.get(kind, ([], 0))
        if not members:
            groups.append(members)
        members.append(number)
        size += array.nbytes
        limit = min(mib, FIRST_MIB) if groups[0] is members else mib
        open_groups[kind] = ([], 0) if size >= limit * MIB else (members, size)
    return groups


def store(tensor: TensorBase, array: Any, what: str) -> None:
    """Set the values of a tensor in place; errors call it `what`."""
    target = Target(tensor, what)
    with on(target.array):
        target.array[...] = array
    target.mark_written()


class Bucket:
    """The memory of some gradients, and how far it has come in a pass.

    Attributes
    ----------
    index : int
        Its place in the order in which buckets are sent.
    numbers : list of int
        Of its parameters, in the order of `module.parameters()`.
    buffer : array
        One behind the other; made when it is first filled.
    remaining : int
        How many of them have no gradient yet in this pass.
    work : Work, Future or None
        What sends it; None as long as it is not sent.
    full, sent, done, waited : float or None
        When, in this pass, by `time.perf_counter`; how many seconds were waited for it.
    """

    def __init__(self, index: int, numbers: Sequence[int], parameters: Sequence[Parameter], *, wide: bool) -> None:
        self.index = index
        self.numbers = list(numbers)
        self.parameters = [parameters[number] for number in numbers]
        self.wide = wide
        self.buffer: Any = None
        self.views: list[Any] = []
        self.reset()

    def reset(self) -> None:
        """Be as before a pass."""
        self.remaining = len(self.numbers)
        self.work: Any = None
        self.full: float | None = None
        self.sent: float | None = None
        self.done: float | None = None
        self.waited = 0.0

    def _make(self) -> None:
        like = self.parameters[0].array
        size = sum(parameter.array.size for parameter in self.parameters)
        with on(like):
            self.buffer = namespace(like).empty(size, accumulation_dtype(like.dtype) if self.wide else like.dtype)
        self.divide()

    def divide(self) -> None:
        """Take the buffer's parts anew, each in the shape of its parameter."""
        self.views = []
        start = 0
        for parameter in self.parameters:
            array = parameter.array
            self.views.append(self.buffer[start : start + array.size].reshape(array.shape))
            start += array.size

    def fill(self, values: Sequence[Any]) -> None:
        """Take the gradients, arrays or None for zeros."""
        if self.buffer is None:
            self._make()
        with on(self.buffer):
            for view, value in zip(self.views, values, strict=True):
                if value is None:
                    view[...] = 0
                elif value is not view:
                    view[...] = value

    def gradients(self) -> list[Any]:
        """Return the parameters' own gradients in this process, arrays or None."""
        grads = [grad_of(parameter) for parameter in self.parameters]
        return [None if grad is None else grad.array for grad in grads]


class GradBucket:
    """The argument of a communication hook: the gradients of one bucket, before they are put together.

    Examples
    --------
    A hook that halves what all processes add up::

        def halved(state, bucket):
            total = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
            return total.then(lambda future: future.value()[0] / 2)
    """

    def __init__(self, bucket: Bucket, last: bool) -> None:
        self._bucket = bucket
        self._last = last

    def index(self) -> int:
        """Return the place of this bucket in the order of sending."""
        return self._bucket.index

    def buffer(self) -> Tensor:
        """Return the gradients, one behind the other, as a tensor on their memory."""
        return wrap(self._bucket.buffer)

    def gradients(self) -> list[Tensor]:
        """Return the parts of `buffer` that belong to each parameter."""
        return [wrap(view) for view in self._bucket.views]

    def parameters(self) -> list[Parameter]:
        """Return the parameters."""
        return list(self._bucket.parameters)

    def is_last(self) -> bool:
        """Return whether this is the last bucket that is sent in a pass."""
        return self._last

    def set_buffer(self, buffer: Tensor) -> None:
        """Take other memory in the place of `buffer`, of its shape and dtype."""
        self._bucket.buffer = buffer.array
        self._bucket.divide()
