"""Means of gradients by two thin matrices for each, PowerSGD (Vogels, Karimireddy and Jaggi, 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from lucid.arguments import checked
from lucid.autograd.modes.state import no_grad
from lucid.base.dtype import float32
from lucid.base.random.generator import Generator
from lucid.collectives.operations import all_reduce
from lucid.collectives.reduction import ReduceOp
from lucid.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from lucid.errors import SettingError, warn
from lucid.futures import Future
from lucid.ops.creation.random import randn
from lucid.ops.decomposition.orthogonal import qr
from lucid.ops.shape.joining import cat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.collectives.group import ProcessGroup
    from lucid.collectives.work import Work
    from lucid.nn.parallel.buckets import GradBucket
    from lucid.tensor import Tensor

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """The settings of `powerSGD_hook`, and its state from pass to pass, in each process.

    Parameters
    ----------
    process_group : ProcessGroup, optional
        The processes; all if None.
    matrix_approximation_rank : int
        How many columns the thin matrices have.
    start_powerSGD_iter : int
        How many passes take the whole mean first; at least 2 with `use_error_feedback` or `warm_start`, since buckets
        are made anew after the first.
    min_compression_rate : float
        A gradient travels whole unless its two matrices have so many times fewer elements.
    use_error_feedback : bool
        Whether what an approximation leaves out is added to the gradient of the next pass, which takes as much memory
        as all gradients.
    warm_start : bool
        Whether an approximation begins with the one before, rather than with random numbers.
    orthogonalization_epsilon : float
        What is added to lengths of columns that are divided by them; with 0 columns are made orthogonal by reflections.
    random_seed : int
        Of these random numbers, the same in all processes.
    compression_stats_logging_frequency, batch_tensors_with_same_shape
        Taken for PyTorch's sake, and change nothing.

    Attributes
    ----------
    iter : int
        How many passes there were.
    error_dict : dict of int to Tensor
        By the index of a bucket, what its approximation left out.
    q_memory_dict : dict of int to list of Tensor
        By the index of a bucket, the matrices with which the next approximation begins.

    Raises
    ------
    SettingError
        If a setting is out of its range.

    Examples
    --------
    >>> from lucid.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState
    >>> PowerSGDState(None, matrix_approximation_rank=2).compression_stats()
    (0, 0, 0)
    """

    @checked
    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,  # PyTorch's name
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if matrix_approximation_rank < 1:
            raise SettingError(
                f"PowerSGDState: matrix_approximation_rank: expected at least 1, got {matrix_approximation_rank}"
            )
        if (use_error_feedback or warm_start) and start_powerSGD_iter < 2:
            raise SettingError(
                "PowerSGDState: Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, "
                f"since buckets are made anew after the first pass, got {start_powerSGD_iter}"
            )
        self.process_group: ProcessGroup | None = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.compression_stats_logging_frequency = compression_stats_logging_frequency
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.rng = Generator(seed=random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, list[Tensor]] = {}
        self.iter = 0
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a pass, with its last bucket."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """Return how many times fewer elements were sent, how many there were, and how many were sent."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return before / after if after else 0, before, after

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes but the group, as that belongs to the processes of this job."""
        if self.process_group is not None:
            warn("PowerSGDState: the process group is not saved: set process_group where the state is loaded")
        return {**vars(self), "process_group": None}


class _Part(NamedTuple):
    """The gradient of one parameter, in a bucket's memory, as a matrix, and how many columns stand for it."""

    matrix: Tensor
    rank: int


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:  # PyTorch's name
    """Return the future of a bucket's mean over all processes, with each gradient as a product of thin matrices.

    Of a gradient M, as a matrix of its first dimension by all others, the sum of M Q over all processes is made
    orthogonal, P, and M becomes P times the mean of P^T M. Gradients that would not become smaller travel whole.

    Parameters
    ----------
    state : PowerSGDState
        Settings, and what is kept.
    bucket : GradBucket
        The gradients of this process.

    Notes
    -----
    The products with Q travel while backward goes on, those with P at its end: the order of collectives is the same in
    all processes then, however fast each is.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> from lucid.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(8, 8))
    >>> model.register_comm_hook(PowerSGDState(None, start_powerSGD_iter=2), powerSGD_hook)
    """
    started = state.iter >= state.start_powerSGD_iter
    state.maybe_increase_iter(bucket)
    if not started:
        return allreduce_hook(state.process_group, bucket)
    with no_grad():
        return _approximated(state, bucket)


def _approximated(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    index, dtype = bucket.index(), bucket.buffer().dtype
    # a copy, in which halves are float32: gradients may lie in the buffer, and what is left out is found beside it
    flat = bucket.buffer().to(float32 if dtype.itemsize == 2 else dtype, copy=True)
    if index in state.error_dict:
        flat.add_(state.error_dict[index])
    whole, thin = _parts(state, flat, bucket)
    bases = state.q_memory_dict.get(index) if state.warm_start else None
    if bases is None:
        bases = [randn(part.matrix.shape[1], part.rank, generator=state.rng, device="cpu").to(flat) for part in thin]
    bases = [_orthogonal(basis, state.orthogonalization_epsilon) for basis in bases]
    products = [part.matrix @ basis for part, basis in zip(thin, bases, strict=True)]
    sent = [_Sent(whole, ReduceOp.AVG, state, dtype), _Sent(products, ReduceOp.SUM, state, dtype)]

    def finish() -> Tensor:
        means, sums = [each.received() for each in sent]
        ends = [_orthogonal(total, state.orthogonalization_epsilon) for total in sums]
        inner = [part.matrix.mT @ end for part, end in zip(thin, ends, strict=True)]
        inner = _Sent(inner, ReduceOp.AVG, state, dtype).received()
        for tensor, mean in zip(whole, means, strict=True):
            tensor.copy_(mean)
        before = flat.clone() if state.use_error_feedback else None
        for part, end, factor in zip(thin, ends, inner, strict=True):
            part.matrix.copy_(end @ factor.mT)
        if before is not None:
            state.error_dict[index] = before.sub_(flat)
        if state.warm_start:
            state.q_memory_dict[index] = inner
        return flat.to(dtype)

    return _Later([work for each in sent for work in each.works], finish)


def _parts(state: PowerSGDState, flat: Tensor, bucket: GradBucket) -> tuple[list[Tensor], list[_Part]]:
    """Return the parts of `flat` that travel whole, and those that two thin matrices stand for."""
    whole: list[Tensor] = []
    thin: list[_Part] = []
    start = 0
    for parameter in bucket.parameters():
        size = parameter.array.size
        part = flat[start : start + size]
        start += size
        rows = parameter.shape[0] if parameter.ndim else 1
        columns = size // max(rows, 1)
        rank = min(rows, columns, state.matrix_approximation_rank)
        compressed = (rows + columns) * rank
        state.total_numel_before_compression += size
        if compressed * state.min_compression_rate < size:
            thin.append(_Part(part.view(rows, columns), rank))
            state.total_numel_after_compression += compressed
        else:
            whole.append(part)
            state.total_numel_after_compression += size
    return whole, thin


def _orthogonal(matrix: Tensor, epsilon: float) -> Tensor:
    """Return a matrix with orthogonal columns that span the same space as those of `matrix`."""
    if not epsilon:
        return qr(matrix)[0]
    columns: list[Tensor] = []
    for index in range(matrix.shape[1]):
        column = matrix[:, index]
        for other in columns:
            column = column - (column * other).sum() * other
        columns.append(column / ((column * column).sum().sqrt() + epsilon))
    return cat([column[:, None] for column in columns], 1)


class _Sent:
    """Tensors that are put together as one, in the bucket's dtype; none if there are none."""

    def __init__(self, tensors: Sequence[Tensor], op: ReduceOp, state: PowerSGDState, dtype: Any) -> None:
        self.tensors = tensors
        self.works: list[Work] = []
        if tensors:
            self.flat = cat([tensor.reshape(-1) for tensor in tensors]).to(dtype)
            self.works = [cast("Work", all_reduce(self.flat, op, state.process_group, async_op=True))]

    def received(self) -> list[Tensor]:
        """Wait for them, and return them in their shapes."""
        for work in self.works:
            work.wait()
        parts = self.flat.split([tensor.array.size for tensor in self.tensors]) if self.tensors else ()
        return [part.view(tensor.shape).to(tensor.dtype) for part, tensor in zip(parts, self.tensors, strict=True)]


class _Later(Future[Any]):
    """A value that needs further collectives, begun when it is waited for."""

    def __init__(self, works: Sequence[Work], finish: Callable[[], Any], first: _Later | None = None) -> None:
        super().__init__()
        self.works = works
        self.finish = finish
        self.first = first

    def settle(self) -> None:
        """Set the value, or that of the future that this one follows."""
        if self.first is not None:
            self.first.settle()
            return
        if super().done():
            return
        try:
            with no_grad():
                self.set_result(self.finish())
        except BaseException as error:  # noqa: BLE001  whoever waits gets it
            self.set_exception(error)

    def done(self) -> bool:
        """Progress the works, and tell whether the value is set."""
        for work in self.works:
            work.is_completed()
        return super().done()

    def wait(self) -> Any:
        """Return the value, computed if it is not yet."""
        self.settle()
        return super().wait()

    def after(self) -> Future[Any]:
        """Return the future of a callback of this one: waiting for it computes this one's value."""
        return _Later(self.works, self.finish, self)
