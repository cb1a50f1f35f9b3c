"""A model of processes with different numbers of batches: one that has run out sends zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.autograd.modes.decorating import check_bool
from lucid.collectives.joining import Join, Joinable, JoinHook
from lucid.collectives.sharing import share
from lucid.nn.parallel.agreement import share_buffers

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.base.device import device as Device
    from lucid.collectives.group import ProcessGroup
    from lucid.nn.module.module import Module
    from lucid.nn.parallel.reducer import Reducer


class JoinableModel(Joinable):
    """The base of `DistributedDataParallel` for `Join` blocks."""

    module: Module
    reducer: Reducer
    process_group: ProcessGroup
    device: Device
    broadcast_buffers: bool
    training: bool
    _divides_by_all = True

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """Return a context manager for processes that run out of batches: they take part with zeros until all have.

        At its end all processes take the parameters and buffers of one that came last.

        Parameters
        ----------
        divide_by_initial_world_size : bool
            Whether gradients stay the sum over the number of all processes, rather than of those that still have
            batches.
        enable : bool
            Whether anything is done.
        throw_on_early_termination : bool
            Whether, instead, all raise a RuntimeError as soon as one runs out.

        Examples
        --------
        >>> import lucid
        >>> from lucid import nn
        >>> model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
        >>> with model.join():
        ...     for x in lucid.ones(2, 3, 2):
        ...         model(x).sum().backward()
        """
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    @property
    def join_device(self) -> Device:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> ProcessGroup:
        """The processes that train the module."""
        return self.process_group

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook of a process without batches in a `Join` block; it takes `divide_by_initial_world_size`."""
        whole = kwargs.get("divide_by_initial_world_size", True)
        self._divides_by_all = check_bool(whole, "divide_by_initial_world_size")
        return _ModelHook(self, self._begin_batch)

    def _begin_batch(self) -> None:
        """Take the buffers of the first process that has a batch, and set the divisor of gradients."""
        active = range(self.process_group.size()) if self.joining is None else self.joining.active
        share_buffers(self, active[0])
        self.reducer.scale = 1.0 if self._divides_by_all else self.process_group.size() / len(active)


class _ModelHook(JoinHook):
    """The hook of a process without batches: it sends zeros, and takes the state of one of the last in the end."""

    def __init__(self, model: JoinableModel, begin_batch: Callable[[], None]) -> None:
        self.model = model
        self.begin_batch = begin_batch

    def main_hook(self) -> None:
        self.begin_batch()
        self.model.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        model = self.model
        model.reducer.scale = 1.0
        if model.joining is not None:
            tensors = [*model.module.parameters(), *model.module.buffers()]
            share(tensors, model.process_group, model.joining.active[-1], "DistributedDataParallel.join")
