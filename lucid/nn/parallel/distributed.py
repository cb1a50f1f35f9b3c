"""A module trained by several processes, with the gradients of all."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NoReturn

from lucid.arguments import checked, unfit
from lucid.autograd.hooks.firing import check_callable
from lucid.autograd.hooks.table import HookTable, RemovableHandle, register
from lucid.autograd.modes.decorating import check_bool
from lucid.autograd.modes.leaving import Context
from lucid.autograd.modes.state import thread
from lucid.base.device import device_of
from lucid.collectives.group import ProcessGroup
from lucid.collectives.joining import Join
from lucid.collectives.sharing import share
from lucid.collectives.world import default_group
from lucid.cuda.switches import are_deterministic_algorithms_enabled
from lucid.errors import SettingError
from lucid.nn.module.module import Module
from lucid.nn.parallel.agreement import Form, check_parameters, check_replicas, reducers, watch_for_grad
from lucid.nn.parallel.joining import JoinableModel
from lucid.nn.parallel.reducer import Reducer
from lucid.nn.parallel.shards import check_shards, shards_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lucid.nn.parallel.buckets import GradBucket
    from lucid.nn.parameter import Parameter
    from lucid.tensor import Tensor

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module, JoinableModel):
    """A module that several processes train together: after a backward pass each gradient is the mean over all.

    It begins with the parameters and buffers of the first process. A process reads its own part of each batch, as
    `DistributedSampler` divides it. Gradients are sent in buckets while backward goes on, and are there when `backward`
    returns. A parameter that has a gradient in some processes counts as zero in the others; one that has it nowhere
    keeps what it had.

    Parameters
    ----------
    module : Module
        With parameters that require grad, all on one device. It is `self.module` here, and in `state_dict`.
    device_ids, output_device
        The module's own device, or None: a process computes on one device.
    dim : int
        0: a process computes on one device.
    broadcast_buffers, forward_sync_buffers : bool, optional
        Whether a forward in training begins with the first process's buffers; True if both are None.
    init_sync : bool
        Whether all begin with the first process's parameters and buffers.
    process_group : ProcessGroup, optional
        The processes; all if None. A process alone needs none.
    bucket_cap_mb : float, optional
        How large a bucket becomes, in MiB; 25 if None. The first is of at most 1 MiB.
    find_unused_parameters, check_reduction, static_graph, batched_grad_copy : bool
        Taken for PyTorch's sake, and change nothing: unused parameters need no search.
    gradient_as_bucket_view : bool
        Whether gradients become parts of the buckets' memory, which saves as much as all gradients take; they then
        share memory.
    delay_all_reduce_named_params, param_to_hook_all_reduce, mixed_precision, device_mesh, bucket_cap_mb_list
        None.
    skip_all_reduce_unused_params : bool
        False.
    reduction : str
        How values of several processes are added: "engine", as MPI or NCCL does, or "tree", in a fixed order, which
        `lucid.use_deterministic_algorithms` chooses too.
    shards : int, optional
        Into how many parts each batch is cut, whatever the number of processes, a power of two and a multiple of that;
        for `split`, with which training gives the same bits on 1, 2, ... `shards` processes. It implies "tree".

    Raises
    ------
    SettingError
        If no parameter requires grad, the module is wrapped already, a setting has no such value, or the processes of
        a launcher have not come together.
    DistributedError
        If the processes' modules differ: it names the first parameter or buffer that does.

    Notes
    -----
    Hooks: post-accumulate hooks see this process's gradient, before it is sent; what they change is sent, and a
    gradient that they drop counts as none. `register_reduced_grad_hook` is the moment after. `autograd.grad`, and
    `backward` with ``inputs=`` of others, accumulate nothing, and put nothing together.

    Examples
    --------
    >>> import lucid
    >>> from lucid import nn
    >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> model(lucid.ones(3, 2)).sum().backward()
    >>> model.module.bias.grad
    tensor([3.])
    """

    @checked
    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Any = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
        *,
        reduction: str = "engine",
        shards: int | None = None,
    ) -> None:
        super().__init__()
        unknown = {
            "delay_all_reduce_named_params": delay_all_reduce_named_params,
            "param_to_hook_all_reduce": param_to_hook_all_reduce,
            "mixed_precision": mixed_precision,
            "device_mesh": device_mesh,
            "bucket_cap_mb_list": bucket_cap_mb_list,
        }
        for name, value in unknown.items():
            if value is not None:
                raise SettingError(f"DistributedDataParallel: {name}: not there: expected None")
        if skip_all_reduce_unused_params:
            raise SettingError("DistributedDataParallel: skip_all_reduce_unused_params: not there: expected False")
        if dim != 0:
            raise SettingError(f"DistributedDataParallel: dim: a process computes on one device: expected 0, got {dim}")
        if reduction not in {"engine", "tree"}:
            raise SettingError(f"DistributedDataParallel: reduction: expected 'engine' or 'tree', got {reduction!r}")
        mib = 25.0 if bucket_cap_mb is None else float(bucket_cap_mb)
        if not mib > 0:
            raise SettingError(f"DistributedDataParallel: bucket_cap_mb: expected more than 0 MiB, got {mib:g}")
        group = default_group("DistributedDataParallel") if process_group is None else process_group
        if not isinstance(group, ProcessGroup):
            raise unfit(group, "a ProcessGroup that this process is in", "process_group")
        named = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
        check_parameters(module, named, device_ids, output_device)
        if shards is not None:
            check_shards(shards, group.size())
        self.module = module
        self.process_group = group
        self.device = device_of(next(iter(named.values())).array)
        chosen = [each for each in (forward_sync_buffers, broadcast_buffers) if each is not None]
        self.broadcast_buffers = bool(chosen[0]) if chosen else True
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.reduction = reduction
        self.shards = shards
        self._reduced_grad_hooks = HookTable("_reduced_grad_hooks")
        self._form = Form(module)
        tree = reduction == "tree" or shards is not None or are_deterministic_algorithms_enabled()
        if group.size() > 1:
            check_replicas(module, group)
            if init_sync:
                share([*module.parameters(), *module.buffers()], group, 0, "DistributedDataParallel")
        self.reducer = Reducer(
            named, group, mib, tree=tree, view=gradient_as_bucket_view, hooks=self._reduced_grad_hooks
        )
        reducers.add(self.reducer)
        weakref.finalize(self, self.reducer.close)

    # ---- calls ----

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the output of the module for this process's part of a batch."""
        if self.process_group.size() > 1:
            self._form.check(self.module)
            if self.reducer.syncing and thread.state.recording:
                Join.notify_join_context(self)
                self._begin_batch()
        output = self.module(*inputs, **kwargs)
        if self.process_group.size() > 1 and self.reducer.syncing and not self.reducer.passes:
            watch_for_grad(output, self.reducer)
        return output

    @property
    def require_backward_grad_sync(self) -> bool:
        """Whether the next backward pass puts gradients together; `no_sync` switches it off.

        Examples
        --------
        >>> from lucid import nn
        >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> with model.no_sync():
        ...     print(model.require_backward_grad_sync)
        False
        """
        return self.reducer.syncing

    @require_backward_grad_sync.setter
    def require_backward_grad_sync(self, value: bool) -> None:
        self.reducer.syncing = check_bool(value, "require_backward_grad_sync")

    def split(self, *batch: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Yield this process's shards of its part of a batch; afterwards gradients are those of the whole batch.

        Row i of the process's part is in its shard i modulo the number of its shards, as `DistributedSampler` deals
        them. In each shard's turn the random generators begin with the shard's own numbers, and buffers with the values
        before the batch. At the end of the loop gradients are the mean over all shards, added to what they were, and
        buffers that forwards have changed are that too. A loop that is left early leaves all of them as they were.

        Parameters
        ----------
        batch : Tensor
            All with the same first dimension, which the number of the process's shards divides.

        Raises
        ------
        SettingError
            Without ``shards=``, in `no_sync`, or if a buffer of integers differs from shard to shard.
        ShapeError
            If a batch cannot be divided.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1), shards=4)
        >>> for (x,) in model.split(lucid.ones(8, 2)):
        ...     model(x).mean().backward()
        >>> model.module.weight.grad
        tensor([[1., 1.]])
        """
        if self.shards is None:
            raise SettingError("DistributedDataParallel.split: expected DistributedDataParallel(..., shards=)")
        return shards_of(self.reducer, self.module, self.shards, batch, self._begin_batch)

    def no_sync(self) -> Any:
        """Return a context manager that accumulates gradients in this process alone.

        The first pass after it puts all of them together. Forward and backward both belong into it.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> with model.no_sync():
        ...     model(lucid.ones(3, 2)).sum().backward()
        >>> model(lucid.ones(3, 2)).sum().backward()
        >>> model.module.bias.grad
        tensor([6.])
        """
        return _Unsynced(self.reducer)

    # ---- hooks ----

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Any]) -> None:
        """Let ``hook(state, bucket)`` put the gradients of each bucket together, in the place of their mean.

        Parameters
        ----------
        state : object
            Handed to the hook.
        hook : callable
            Gets `state` and a `GradBucket`; returns a `Future` of a tensor in the form of ``bucket.buffer()``, or the
            `Work` of a collective on it. It also divides. `lucid.distributed.algorithms.ddp_comm_hooks` has some.

        Raises
        ------
        SettingError
            If there is one already, or sums are those of a tree.
        HookTypeError
            If `hook` cannot be called.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> from lucid.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
        >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> model.register_comm_hook(None, bf16_compress_hook)
        """
        check_callable(hook, "DistributedDataParallel.register_comm_hook")
        if self.reducer.communicate is not None:
            raise SettingError("register_comm_hook: there is one already: it can be registered once")
        if self.reducer.tree:
            raise SettingError("register_comm_hook: the order of a tree is lucid's own: expected reduction='engine'")
        self.reducer.communicate = state, hook
        self.reducer.attach()

    def register_reduced_grad_hook(
        self, hook: Callable[[Parameter], Any], parameters: Iterable[Parameter] | None = None
    ) -> RemovableHandle:
        """Return the handle of ``hook(parameter)``, called when its `.grad` holds the mean over all processes.

        It is called at the end of the pass, in the order of buckets, while later buckets are still under way, and not
        for a parameter that has no gradient in any process. In `no_sync` it is not called.

        Parameters
        ----------
        hook : callable
            Gets the parameter, must return None, and may change or drop its `.grad`.
        parameters : iterable of Parameter, optional
            For which it is called; all if None.

        Raises
        ------
        HookTypeError
            If `hook` cannot be called.
        SettingError
            If one of `parameters` is none of the module's that require grad.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> handle = model.register_reduced_grad_hook(lambda parameter: print(tuple(parameter.grad.shape)))
        >>> model(lucid.ones(3, 2)).sum().backward()
        (1,)
        (1, 2)
        """
        chosen = None
        if parameters is not None:
            numbers = {id(parameter): number for number, parameter in enumerate(self.reducer.parameters)}
            selected = list(parameters)
            if not all(id(parameter) in numbers for parameter in selected):
                raise SettingError(
                    "register_reduced_grad_hook: parameters: expected some of the module's that require grad"
                )
            chosen = frozenset(numbers[id(parameter)] for parameter in selected)
        self.reducer.attach()
        return register(self._reduced_grad_hooks, hook, "register_reduced_grad_hook", option=chosen)

    def logging_data(self) -> dict[str, Any]:
        """Return the times of the last pass: when each bucket was full, started, finished, and the wait for it.

        Times are seconds since the first gradient of the pass was there; the keys of the result are "passes",
        "waited" and "buckets", those of a bucket "index", "bytes", "parameters", "full", "started", "finished" and
        "waited". A bucket that was not full at the end of the pass has None there. A process that is alone sends
        nothing, and has no data unless a hook of reduced gradients asks for buckets.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> handle = model.register_reduced_grad_hook(lambda parameter: None)
        >>> model(lucid.ones(3, 2)).sum().backward()
        >>> model.logging_data()["buckets"][0]["parameters"]
        ['bias', 'weight']
        """
        return self.reducer.report

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise SettingError(
            "DistributedDataParallel: it belongs to the processes of this job, and is not copied: copy or save "
            "`.module`, or its state_dict()"
        )


class _Unsynced(Context):
    """The block of `no_sync`."""

    def __init__(self, reducer: Reducer) -> None:
        super().__init__()
        self.reducer = reducer

    def __enter__(self) -> None:
        reducer = self.reducer
        self.undo.append((setattr, reducer, "syncing", reducer.syncing))
        reducer.syncing = False
