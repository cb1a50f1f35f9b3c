"""An optimizer with its state divided among processes (ZeRO stage 1: Rajbhandari, Rasley, Ruwase and He, 2020)."""

from __future__ import annotations

import io
import zlib
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from lucid.arguments import unfit
from lucid.autograd.modes.state import enable_grad
from lucid.base.device import device_of
from lucid.collectives.group import ProcessGroup
from lucid.collectives.joining import Join, Joinable, JoinHook
from lucid.collectives.numbers import all_gathered, gathered
from lucid.collectives.sharing import share
from lucid.collectives.world import default_group
from lucid.errors import DistributedError, SettingError, StateDictError
from lucid.ops.base.scalars import as_int
from lucid.optim.base.entries import State, as_state
from lucid.optim.lbfgs import LBFGS
from lucid.optim.optimizer import Optimizer
from lucid.serialization import load, save

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lucid.base.device import device
    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor

__all__ = ["ZeroRedundancyOptimizer"]

# What belongs to all parameters of a group, and not to the part of this process.
_WHOLE = {"params", "param_names"}


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer with its state divided: each process keeps and changes its own part of the parameters.

    After a step all processes get all parameters from those that have changed them: the bits are those that
    `optimizer_class` gives without this. Gradients have to be the same in all processes, as `DistributedDataParallel`
    makes them. Parameters are dealt by their size, the largest first, to the process that has least. A process that is
    alone has all of them.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        As for `Optimizer`; the same in all processes.
    optimizer_class : type
        What changes the parameters, each by itself.
    process_group : ProcessGroup, optional
        The processes; all if None.
    parameters_as_bucket_view : bool
        Taken for PyTorch's sake, and changes nothing.
    overlap_with_ddp : bool
        False.
    **defaults
        Settings of `optimizer_class`.

    Attributes
    ----------
    optim : Optimizer
        The `optimizer_class` of this process's parameters. Its groups have the settings of those here.
    state : dict
        By parameter, what this process keeps; what all keep, in the process to which `consolidate_state_dict` has
        brought it.
    rank, world_size : int
        Of this process in the group, and how many there are.

    Raises
    ------
    SettingError
        If `optimizer_class` changes all parameters together, as `LBFGS` does.
    DistributedError
        If the processes have different parameters.
    NotImplementedError
        With ``overlap_with_ddp=True``.

    Notes
    -----
    Step hooks of all optimizers fire for this one, and for `optim` within.

    Examples
    --------
    >>> import lucid
    >>> from lucid.distributed.optim import ZeroRedundancyOptimizer
    >>> x = lucid.ones(2, requires_grad=True)
    >>> optimizer = ZeroRedundancyOptimizer([x], lucid.optim.SGD, lr=0.5)
    >>> x.sum().backward()
    >>> optimizer.step()
    >>> x.tolist()
    [0.5, 0.5]
    """

    def __init__(
        self,
        params: Params,
        optimizer_class: type[Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
            raise unfit(optimizer_class, "a subclass of Optimizer", "optimizer_class")
        if issubclass(optimizer_class, LBFGS | ZeroRedundancyOptimizer):
            raise SettingError(
                f"ZeroRedundancyOptimizer: optimizer_class: {optimizer_class.__name__} changes all parameters "
                "together: expected one that changes each by itself"
            )
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp=True: lucid steps after backward, and not bucket by bucket "
                "during it: expected overlap_with_ddp=False"
            )
        group = default_group("ZeroRedundancyOptimizer") if process_group is None else process_group
        if not isinstance(group, ProcessGroup):
            raise unfit(group, "a ProcessGroup that this process is in", "process_group")
        self.process_group = group
        self.rank = group.rank()
        self.world_size = group.size()
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._owners: dict[Tensor, int] = {}
        self._loads = [0] * group.size()
        super().__init__(params, {})
        _check_forms(self.param_groups, group)
        for each in self.param_groups:
            self._deal(each["params"])
        self.optim = optimizer_class([self._own_part(each) for each in self.param_groups], **defaults)
        # with what its class says of state, and of settings that groups do not name
        vars(self).update(
            {"defaults": self.optim.defaults, "scalars": self.optim.scalars, "counted_by": self.optim.counted_by}
        )
        self._settle()

    # ---- which process has what ----

    def _deal(self, params: Sequence[Tensor]) -> None:
        """Give parameters to processes, alike in all of them."""
        for param in sorted(dict.fromkeys(params), key=lambda param: -param.array.nbytes):
            owner = self._loads.index(min(self._loads))
            self._owners[param] = owner
            self._loads[owner] += param.array.nbytes

    def _own_part(self, group: Group) -> Group:
        own = [param for param in group["params"] if self._owners[param] == self.rank]
        return {**{name: value for name, value in group.items() if name not in _WHOLE}, "params": own}

    def _keeps_state_of(self, param: Tensor) -> bool:
        return self._owners[param] == self.rank

    def _settle(self) -> None:
        """Take over settings and state from `optim`."""
        _hand_over(self.optim.param_groups, self.param_groups)
        # past `__setattr__`, as nothing is lost by it
        vars(self)["state"] = self.optim.state

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add a group of parameters, the same in all processes, as `Optimizer.add_param_group` does."""
        constructed = "optim" in vars(self)  # else the constructor calls this
        if constructed:
            _hand_over(self.param_groups, self.optim.param_groups)
        super().add_param_group(param_group)
        if constructed:
            group = self.param_groups[-1]
            _check_forms([group], self.process_group)
            self._deal(group["params"])
            self.optim.add_param_group(self._own_part(group))
            self._settle()

    def check_group(self, group: Group) -> None:
        """Raise if `optimizer_class` refuses the settings of a group."""
        if "optim" in vars(self):
            self.optim.check_group(group)

    def state_names(self, group: Group) -> tuple[str, ...] | None:
        """Return the names of the state that `optimizer_class` keeps for each parameter of a group."""
        return self.optim.state_names(group)

    # ---- steps ----

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Return the result of `closure`, after changing every parameter with a gradient in all processes.

        Parameters
        ----------
        closure : callable, optional
            As of `Optimizer.step`; all processes have one, or none.
        **kwargs
            Handed to the step of `optimizer_class`.

        Returns
        -------
        object
            The loss, or None without a closure.
        """
        if closure is not None and not callable(closure):
            raise unfit(closure, "a callable or None", "closure")
        Join.notify_join_context(self)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        _hand_over(self.param_groups, self.optim.param_groups)
        self.optim.step(**kwargs)
        self._settle()
        if self.world_size > 1:
            for owner in range(self.world_size):
                parts = [param for param, of in self._owners.items() if of == owner]
                share(parts, self.process_group, owner, "ZeroRedundancyOptimizer.step")
        return loss

    # ---- state dicts ----

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the state of all processes in one, for a call of `state_dict` there; all processes call this.

        The state of others lies in host memory there, until the next step.

        Parameters
        ----------
        to : int
            The number of the process in the group.

        Raises
        ------
        SettingError
            If there is no such process.
        UnsupportedObjectError
            If the state has something that `lucid.save` does not save.

        Examples
        --------
        >>> import lucid
        >>> from lucid.distributed.optim import ZeroRedundancyOptimizer
        >>> optimizer = ZeroRedundancyOptimizer([lucid.ones(2, requires_grad=True)], lucid.optim.Adam)
        >>> optimizer.consolidate_state_dict()
        >>> if optimizer.rank == 0:  # and save it there
        ...     state = optimizer.state_dict()
        """
        root = as_int(to, "to")
        if not 0 <= root < self.world_size:
            raise SettingError(
                f"consolidate_state_dict: to: expected a number of 0 .. {self.world_size - 1} in "
                f"{self.process_group!r}, got {root}"
            )
        vars(self)["state"] = self.optim.state
        if self.world_size == 1:
            return
        params = list(self._owners)
        file = io.BytesIO()
        # not a dict that makes entries where it is asked for them
        own = {number: self.state.get(param) for number, param in enumerate(params) if self._keeps_state_of(param)}
        save({number: dict(entries) for number, entries in own.items() if entries}, file)
        data = np.frombuffer(file.getvalue(), np.uint8)
        sizes = all_gathered(self.process_group, np.array([data.size], np.int64), "sizes of optimizer states")[:, 0]
        padded = np.pad(data, (0, int(sizes.max()) - data.size))
        rows = gathered(self.process_group, padded, root, "optimizer states")
        if self.rank != root:
            return
        everything = State(self.state.default_factory, self.state)
        for rank, (row, size) in enumerate(zip(rows, sizes, strict=True)):
            if rank != root:
                for number, entries in load(io.BytesIO(row[:size].tobytes()), map_location="cpu").items():
                    everything[params[number]] = entries
        vars(self)["state"] = as_state(everything)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all processes and the settings, as `Optimizer.state_dict` does without this class.

        Raises
        ------
        StateDictError
            If not all of the state is here: `consolidate_state_dict` comes first, after the last step.
        """
        if self.world_size > 1 and self.state is self.optim.state:
            raise StateDictError(
                "ZeroRedundancyOptimizer.state_dict: optimizer state has not been consolidated on this rank since the "
                f"last step: call consolidate_state_dict(to={self.rank}) in all processes before"
            )
        return super().state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned, here or of any optimizer of `optimizer_class`.

        All processes load the whole, of which each keeps its part; there may be another number of them.

        Parameters
        ----------
        state_dict : dict
            As for `Optimizer.load_state_dict`.
        """
        super().load_state_dict(state_dict)
        self.optim.__setstate__(
            {"state": self.state, "param_groups": [self._own_part(group) for group in self.param_groups]}
        )
        self._settle()

    # ---- in a Join block ----

    def join_hook(self, **_: Any) -> JoinHook:
        """Return the hook of a process without batches in a `Join` block: it steps with the others.

        The gradients of its part are the mean that `DistributedDataParallel`, in the block before this one, gives it.
        """
        return _StepHook(self)

    @property
    def join_device(self) -> device:
        """The device of the first parameter."""
        return device_of(next(iter(self._owners)).array)

    @property
    def join_process_group(self) -> ProcessGroup:
        """The processes that divide the state."""
        return self.process_group

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise SettingError(
            "ZeroRedundancyOptimizer: it belongs to the processes of this job, and is not copied: save what "
            "consolidate_state_dict() and state_dict() give"
        )


class _StepHook(JoinHook):
    """The hook of a process without batches in a `Join` block: it takes the step of its own part."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        self.optimizer.step()


def _hand_over(groups: Iterable[Group], into: Iterable[Group]) -> None:
    """Give groups the settings of others."""
    for source, target in zip(groups, into, strict=True):
        for name, value in source.items():
            if name not in _WHOLE and (name not in target or target[name] is not value):
                target[name] = value


def _check_forms(groups: Iterable[Group], group: ProcessGroup) -> None:
    """Raise `DistributedError` in all processes if their parameters differ in number, shape or dtype."""
    if group.size() == 1:
        return
    form = [[(tuple(param.array.shape), param.array.dtype.name) for param in each["params"]] for each in groups]
    mine = np.array([sum(map(len, form)), zlib.crc32(repr(form).encode())], np.int64)
    everyone = all_gathered(group, mine, "forms of parameters")
    if not (everyone == everyone[0]).all():
        raise DistributedError(
            "ZeroRedundancyOptimizer: the processes have different parameters, in number, shape, dtype or order: "
            f"expected the same in all, got {everyone[:, 0].tolist()} of them"
        )
