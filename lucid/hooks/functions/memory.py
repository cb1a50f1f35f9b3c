"""The memory that ops make."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from lucid.autograd.base import TensorBase
from lucid.autograd.hooks.functions import Call, outputs_of
from lucid.base import gpu
from lucid.hooks.functions.sums import Sums


class MemoryHook(Sums):
    """A block that counts, for each op of this thread, the bytes of its results and those taken of a device's pool.

    Attributes
    ----------
    calls : Counter of str
        How often each op has run.
    made : Counter of str
        Bytes of new arrays among the outputs by the name of the op: views and operands given back count nothing.
    held : Counter of str
        By how many bytes CuPy's memory pools hold more after the op than before, its temporaries given back: 0 on the
        CPU, where nobody counts.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks
    >>> with hooks.MemoryHook() as memory:
    ...     x = lucid.ones(100).exp().view(10, 10)
    >>> memory.made["exp"], memory.made["view"]
    (400, 0)
    """

    columns: ClassVar[tuple[str, ...]] = ("made bytes", "held bytes")

    def __init__(self) -> None:
        super().__init__()
        self.made: Counter[str] = Counter()
        self.held: Counter[str] = Counter()

    def before(self, call: Call) -> None:
        """Note the bytes held."""
        call.data[self] = _held()

    def after(self, call: Call, output: Any) -> None:
        """Count the bytes made by the op."""
        self.calls[call.name] += 1
        self.made[call.name] += bytes_made(call, output)
        self.held[call.name] += _held() - call.data.pop(self)

    def values(self, name: str) -> tuple[float | None, ...]:
        """Return the bytes made, and held."""
        return self.made[name], self.held[name]


def bytes_made(call: Call, output: Any) -> int:
    """Return the bytes of new arrays in an op's result: no views, and no operands given back."""
    operands = {id(x.array) for x in call.inputs if isinstance(x, TensorBase)}
    tensors = [x for x in outputs_of(output) if isinstance(x, TensorBase)]
    return sum(x.array.nbytes for x in tensors if x.origin is None and id(x.array) not in operands)


def _held() -> int:
    """Return the bytes that arrays hold in the memory pool of the current device; 0 before CuPy is loaded."""
    return gpu.cupy().get_default_memory_pool().used_bytes() if gpu.is_loaded() else 0
