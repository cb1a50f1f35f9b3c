"""DataLoader: batches of a dataset, in an order that depends on the seed alone, read ahead by workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast

from lucid.arguments import checked, unfit
from lucid.autograd.hooks.firing import fire
from lucid.autograd.hooks.table import HookTable, register
from lucid.base import gpu
from lucid.base.device import as_device
from lucid.errors import ArgumentError, SettingError
from lucid.utils.data.collate import default_collate, default_convert
from lucid.utils.data.dataset import IterableDataset, length_of
from lucid.utils.data.epochs import state_at_rest, tells_its_order
from lucid.utils.data.iteration import Iteration
from lucid.utils.data.order import MapOrder, Order, Resume, StreamOrder, beginning_of, check_workers, checked_state
from lucid.utils.data.randomness import Passes, mix
from lucid.utils.data.reading import Parts, Place
from lucid.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from lucid.utils.data.settings import can_pin, check_length, check_order, check_reading, context_of
from lucid.utils.data.stats import LoaderStats
from lucid.utils.data.workers.processes import ProcessWorkers
from lucid.utils.data.workers.threads import ThreadWorkers
from lucid.utils.data.workers.worker_process import Setup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sized
    from multiprocessing.context import BaseContext

    from lucid.autograd.hooks.table import RemovableHandle
    from lucid.base.device import Device
    from lucid.base.random.generator import Generator
    from lucid.utils.data.dataset import Dataset
    from lucid.utils.data.sampler import Sampler

    Workers = ProcessWorkers | ThreadWorkers

__all__ = ["DataLoader"]

T_co = TypeVar("T_co", covariant=True)
# libraries annotate by PyTorch's name
_collate_fn_t: TypeAlias = Callable[[Any], Any]  # noqa: PYI042

# What decides the order: to change it, make another loader.
_FIXED = {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers", "worker"}


class DataLoader(Generic[T_co]):
    """Batches of a dataset: each ``for batch in loader`` is one pass over it, the next epoch.

    What is in a batch, and the random numbers with which its samples are read, depend on the seed (of `generator`, or
    of `lucid.manual_seed`), the epoch and the position alone: not on the workers. `docs/users/data.md` compares the
    ways to read data.

    Parameters
    ----------
    dataset : Dataset
        Samples by index, or an `IterableDataset`.
    batch_size : int or None
        Samples in a batch; None gives samples one by one, as `default_convert` makes them.
    shuffle : bool, optional
        Whether each epoch has another random order.
    sampler : Sampler or iterable, optional
        The order of indices, in place of `shuffle`.
    batch_sampler : Sampler or iterable, optional
        The lists of indices of the batches, in place of the four before and `drop_last`.
    num_workers : int
        How many workers read ahead; with 0 the training loop reads.
    collate_fn : callable, optional
        Makes a batch of a list of samples, in the worker; `default_collate` if None.
    pin_memory : bool
        Whether batches are in page-locked memory, from which CUDA devices copy without waiting.
    drop_last : bool
        Whether a last batch that is smaller is left out; of a stream that of each worker.
    timeout : float
        Seconds for which a batch is waited for, then a WorkerError says what its worker is doing; 0 means for ever.
    worker_init_fn : callable, optional
        Called in each worker, with its number, before it reads.
    multiprocessing_context : str or context, optional
        How worker processes start: "forkserver" if None, "spawn", or "fork", which is refused after a CUDA device was
        used.
    generator : Generator, optional
        Of the CPU, from which the seed is drawn; the default one if None.
    prefetch_factor : int, optional
        Batches that each worker reads ahead, 2 if None.
    persistent_workers : bool
        Whether workers stay for the next epoch.
    pin_memory_device : str
        Accepted for PyTorch's sake; page-locked memory serves all devices.
    in_order : bool
        Whether batches come in their order; without it, whichever is ready first.
    worker : {"process", "thread"}
        What workers are. Threads for what releases Python's lock: decoders, files, large NumPy operations.
    device : device, optional
        Where batches are put, two ahead, as `prefetch` does; None leaves them where they are.
    progress : bool
        Whether a pass shows a bar of its batches, where the output of errors is a terminal.

    Raises
    ------
    SettingError
        If a number is out of its range, or settings exclude each other.
    ArgumentError
        If a setting is of a wrong type, or, at the first batch, a dataset cannot be sent to worker processes.
    WorkerError
        While it is iterated: if a worker raises, ends or falls silent.

    Examples
    --------
    >>> import lucid
    >>> from lucid.utils.data import DataLoader, TensorDataset
    >>> _ = lucid.manual_seed(0)
    >>> loader = DataLoader(TensorDataset(lucid.arange(5)), batch_size=2, shuffle=True)
    >>> sum(x.sum() for (x,) in loader), len(loader)
    (tensor(10), 3)
    """

    @checked
    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: _collate_fn_t | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: str | BaseContext | None = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        worker: Literal["process", "thread"] = "process",
        device: Device = None,
        progress: bool = False,
    ) -> None:
        streamed = isinstance(dataset, IterableDataset)
        check_reading(num_workers, timeout, prefetch_factor, worker)
        for name, value in (
            ("prefetch_factor", prefetch_factor),
            ("persistent_workers", persistent_workers or None),
            ("multiprocessing_context", multiprocessing_context),
        ):
            if value is not None and not num_workers:
                raise SettingError(f"DataLoader: {name} option needs num_workers > 0, got num_workers=0")
        if multiprocessing_context is not None and worker != "process":
            raise SettingError(f"DataLoader: multiprocessing_context needs worker='process', got {worker!r}")
        check_order(batch_size, shuffle, sampler, batch_sampler, drop_last=drop_last, streamed=streamed)
        self.dataset = dataset
        self.num_workers = num_workers
        self.worker = worker
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory and can_pin()
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.generator = generator
        self.in_order = in_order
        self.persistent_workers = persistent_workers
        self.device = None if device is None else as_device(device)
        self.progress = progress
        if sampler is None and batch_sampler is None and not streamed:
            check_length(dataset)
            sampler = (RandomSampler if shuffle else SequentialSampler)(dataset, generator=generator)
        if batch_sampler is None and batch_size is not None and not streamed:
            batch_sampler = BatchSampler(cast("Any", sampler), batch_size, drop_last)
        elif batch_sampler is not None:
            batch_size = None
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        batched = batch_sampler is not None or batch_size is not None
        if collate_fn is not None and not callable(collate_fn):
            raise unfit(collate_fn, "a callable or None", "collate_fn")
        self.collate_fn = (default_collate if batched else default_convert) if collate_fn is None else collate_fn
        self._own_passes = Passes(generator)
        self._hooks = HookTable("batch hooks")
        self._workers: ProcessWorkers | ThreadWorkers | None = None
        self._order: Order | None = None
        self._resume: Resume | None = None
        self._stats = LoaderStats()
        self._start = multiprocessing_context
        self._context = context_of(multiprocessing_context) if num_workers and worker == "process" else None
        self.__initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        # subclasses of PyTorch's take this mark off to set what is fixed
        if name in _FIXED and self.__dict__.get("_DataLoader__initialized"):
            raise SettingError(
                f"DataLoader: {name} attribute should not be set after DataLoader is initialized; make another loader"
            )
        object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        # a copy begins its next pass as this one would, with workers of its own
        return {**self.__dict__, "_order": None, "_workers": None}

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(cast("Sized", self.sampler if self.batch_sampler is None else self.batch_sampler))
        count = len(cast("Sized", self.dataset))
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        return self._get_iterator()

    def _get_iterator(self) -> Iterator[Any]:
        """Return the iterator of `iter`, under PyTorch's own name, as subclasses of its loader call and override it."""
        resume, self._resume = self._resume, None
        order = self._new_order(resume)
        iteration = Iteration(self, order)
        self._order, self._stats = order, iteration.stats
        return iteration

    def _new_order(self, resume: Resume | None) -> Order:
        if isinstance(self.dataset, IterableDataset):
            return StreamOrder(self._passes, max(self.num_workers, 1), resume, length_of(self.dataset))
        return MapOrder(self._source, self._passes, resume)

    @property
    def _passes(self) -> Passes:
        return getattr(self._source, "passes", None) or self._own_passes

    @property
    def _source(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    @property
    def multiprocessing_context(self) -> BaseContext | None:
        """The multiprocessing context of worker processes; None without such workers."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: str | BaseContext | None) -> None:
        self._start = context
        self._context = None if context is None else context_of(context)

    # ---- what an iteration asks for ----

    @property
    def _parts(self) -> Parts:
        """The parts of the loader that readers need to make batches."""
        batched = self.batch_sampler is not None or self.batch_size is not None
        return Parts(self.dataset, self.collate_fn, batched, self.batch_size or 1, self.drop_last)

    def _take_workers(self, order: Order) -> Workers | None:
        """Return the workers kept from the last pass, or new ones; None for a loader without workers."""
        workers, self._workers = self._workers, None
        if workers is not None:
            if len(workers) == self.num_workers:
                return workers
            workers.close()
        if not self.num_workers:
            return None
        setup = Setup(self._parts, self.worker_init_fn)
        first = mix(order.seed, order.epoch) >> 2  # an int64, as PyTorch's are
        seeds = [first + number for number in range(self.num_workers)]
        if self.worker == "thread":
            workers = ThreadWorkers(setup, seeds)
        else:
            if self._start is None or self._context is None:  # num_workers may have been set since, a device used
                self._context = context_of(self._start)
            workers = ProcessWorkers(setup, seeds, self._context, self.prefetch_factor or 1, pin=self._pins)
        return workers

    @property
    def _pins(self) -> bool:
        """Whether batches are to be in page-locked memory, and can be."""
        return self.pin_memory and gpu.is_available()

    def _finish(self, order: Order) -> None:
        """Note that a pass is complete: the state is that of the next one."""
        order.finish()
        if self._order is order:
            self._order = None

    def _give_back(self, workers: Workers, *, healthy: bool) -> None:
        """Keep workers for the next pass, or end them."""
        if self.persistent_workers and healthy and self._workers is None:
            self._workers = workers
        else:
            workers.close()

    def _hooked(self, index: int, batch: Any) -> Any:
        """Return a batch after the batch hooks."""
        if not self._hooks:
            return batch
        try:
            return fire(
                self._hooks.snapshot(), lambda hook, value: hook.func(self, index, value), batch, "batch hook",
                "DataLoader",
            )  # fmt: skip
        except StopIteration as error:  # it would end the loop
            raise RuntimeError("DataLoader: a batch hook raised StopIteration") from error

    # ---- state ----

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the loader: `load_state_dict` of an equal one continues with the remaining batches.

        In the middle of an epoch, taken in the body of the loop, it stands after the batch of that body. The number of
        workers may be another, except for a stream; so may that of ranks, with a `DistributedSampler`.

        Examples
        --------
        >>> from lucid.utils.data import DataLoader
        >>> loader = DataLoader(range(6), batch_size=2)
        >>> for batch in loader:
        ...     break
        >>> again = DataLoader(range(6), batch_size=2)
        >>> again.load_state_dict(loader.state_dict())
        >>> list(again)
        [tensor([2, 3]), tensor([4, 5])]
        """
        if self._resume is not None and self._resume.walk is self._passes.following():
            return dict(self._resume.state)
        if self._order is not None:
            return self._order.state()
        passes = beginning_of(self._passes.following())
        if isinstance(self.dataset, IterableDataset):
            return {"batch": 0, "workers": [tuple(Place())] * max(self.num_workers, 1), "turn": 0, "passes": passes}
        return {"batch": 0, "done": [], "order": state_at_rest(self._source), "passes": passes}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Let the next pass continue from `state_dict`; a pass under way is not changed.

        Raises
        ------
        ArgumentError
            If it is not the state of a loader over such a dataset.
        """
        streamed = isinstance(self.dataset, IterableDataset)
        state = checked_state(
            state_dict, {"batch", "passes", *(("workers", "turn") if streamed else ("done", "order"))}
        )
        if streamed:
            check_workers(state, max(self.num_workers, 1))
        elif tells_its_order(self._source) != (state["order"] is not None):
            raise ArgumentError(
                f"DataLoader.load_state_dict: this state was taken with another kind of sampler than "
                f"{type(self._source).__name__}"
            )
        passes = self._passes
        before = vars(passes).copy()
        passes.load(state["passes"])
        if not streamed and state["order"] is not None:
            try:
                self._source.load_state_dict(state["order"])
            except BaseException:
                vars(passes).update(before)
                raise
        self._resume, self._order = Resume(state, passes.latest), None

    # ---- hooks and times ----

    def register_batch_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Return the handle of ``hook(loader, index, batch)``, called in the training loop before each batch is given.

        Parameters
        ----------
        hook : callable
            `index` is the batch's number in its epoch, and `batch` is on the loader's device. It returns None, or what
            takes the place of the batch.

        Examples
        --------
        >>> from lucid.utils.data import DataLoader
        >>> loader = DataLoader(range(4), batch_size=2)
        >>> with loader.register_batch_hook(lambda loader, index, batch: batch * 10 + index):
        ...     list(loader)
        [tensor([ 0, 10]), tensor([21, 31])]
        """
        return register(self._hooks, hook, "register_batch_hook")

    def stats(self) -> LoaderStats:
        """Return how long the loop of the current pass, or of the last, has waited for batches.

        Examples
        --------
        >>> from lucid.utils.data import DataLoader
        >>> loader = DataLoader(range(4), batch_size=2)
        >>> _ = list(loader)
        >>> loader.stats().batches
        2
        """
        return self._stats.copy()
