"""Averages of a model's weights over its training, and the schedule that goes with them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from lucid.arguments import checked, unfit
from lucid.autograd.modes.state import no_grad
from lucid.base.device import Device, as_device
from lucid.errors import SettingError, ShapeError
from lucid.nn.layers.normalisation.batch import BatchNorm
from lucid.nn.module.module import Module
from lucid.ops.base.one_device import check_one_device
from lucid.ops.creation.data import tensor
from lucid.optim.lr_scheduler.scheduler import LRScheduler, Rate, beside, per_group, require
from lucid.settings.documents import document
from lucid.settings.optimizers import rate, share
from lucid.settings.schedules import SCHEDULES, scheduled
from lucid.tensor import Tensor

if TYPE_CHECKING:
    from lucid.base.dtype import dtype
    from lucid.optim.optimizer import Optimizer

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip

Average: TypeAlias = Callable[[Tensor, Tensor, "Tensor | int"], Tensor]
"""From an average, what is new, and the number of models in the average so far, the new average."""

Averages: TypeAlias = Callable[[list[Tensor], list[Tensor], "Tensor | int"], None]
"""The same for lists, of which the first is changed in place."""


@checked
def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return ``f(average, new, count)`` with the value ``decay * average + (1 - decay) * new``.

    Parameters
    ----------
    decay : float
        Share of the old average in the new one, in [0, 1].

    Examples
    --------
    >>> import lucid
    >>> lucid.optim.swa_utils.get_ema_avg_fn(0.75)(lucid.tensor(4.0), lucid.tensor(8.0), 1)
    tensor(5.)
    """
    share(decay, "decay")

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:  # noqa: ARG001
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Average:
    """Return ``f(average, new, count)`` with the value ``average + (new - average) / (count + 1)``: the mean of all.

    Examples
    --------
    >>> import lucid
    >>> lucid.optim.swa_utils.get_swa_avg_fn()(lucid.tensor(4.0), lucid.tensor(7.0), 2)
    tensor(5.)
    """

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


@checked
def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Return ``f(averages, new, count)``, an in-place update of averages by the rule of `get_ema_avg_fn`.

    Parameters
    ----------
    decay : float
        Share of the old average in the new one, in [0, 1].

    Examples
    --------
    >>> import lucid
    >>> averages = [lucid.tensor(4.0)]
    >>> lucid.optim.swa_utils.get_ema_multi_avg_fn(0.75)(averages, [lucid.tensor(8.0)], 1)
    >>> averages
    [tensor(5.)]
    """
    return _in_place(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """Return ``f(averages, new, count)``, an in-place update of averages by the rule of `get_swa_avg_fn`.

    Examples
    --------
    >>> import lucid
    >>> averages = [lucid.tensor(4.0)]
    >>> lucid.optim.swa_utils.get_swa_multi_avg_fn()(averages, [lucid.tensor(7.0)], 2)
    >>> averages
    [tensor(5.)]
    """
    return _in_place(get_swa_avg_fn())


def _in_place(average: Average) -> Averages:
    @no_grad()
    def update(averages: list[Tensor], new: list[Tensor], num_averaged: Tensor | int) -> None:
        pairs = list(zip(averages, new, strict=True))
        for number, pair in enumerate(pairs):
            check_one_device(f"average {number}", *pair)
        for old, current in pairs:
            count = num_averaged.to(old.device) if isinstance(num_averaged, Tensor) else num_averaged
            old.copy_(average(old, current, count))

    return update


class AveragedModel(Module):
    """A copy of a model with the averages of its parameters at each `update_parameters`.

    Parameters
    ----------
    model : Module
        It is copied, and stays as it is.
    device : device, optional
        Where the copy is; None: where the model is.
    avg_fn : callable, optional
        ``avg_fn(average, new, count)`` returns the new average of a parameter, given the number of states in it so far,
        a tensor. None: the mean of all, as `get_swa_avg_fn` has it.
    multi_avg_fn : callable, optional
        Instead, ``multi_avg_fn(averages, new, count)`` changes those of a device and dtype in place.
    use_buffers : bool
        Whether buffers are averaged too, rather than copied.

    Attributes
    ----------
    module : Module
        The copy.
    n_averaged : Tensor of int64
        How many states are in the average; it is read at each update, so that on a device the host waits for it. It is
        on the CPU if no device is given.

    Raises
    ------
    ValueError
        If both functions are given.

    Examples
    --------
    >>> import lucid
    >>> model = lucid.nn.Linear(1, 1, bias=False)
    >>> averaged = lucid.optim.swa_utils.AveragedModel(model)
    >>> for value in [1.0, 2.0, 6.0]:
    ...     lucid.nn.init.constant_(model.weight, value).item()
    ...     averaged.update_parameters(model)
    1.0
    2.0
    6.0
    >>> averaged(lucid.ones(1, 1)).item()
    3.0
    """

    n_averaged: Tensor

    @checked
    def __init__(
        self,
        model: Module,
        device: Device = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        for function, name in ((avg_fn, "avg_fn"), (multi_avg_fn, "multi_avg_fn")):
            if function is not None and not callable(function):
                raise unfit(function, "a callable or None", name)
        if avg_fn is not None and multi_avg_fn is not None:
            raise SettingError("AveragedModel: expected avg_fn or multi_avg_fn, got both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: object, **kwargs: object) -> Any:
        """Return the output of the averaged model."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the state of a model into the average; the first one is copied.

        Raises
        ------
        ShapeError
            If it has other parameters or buffers than the model that was copied. Nothing is changed then.
        """
        if not isinstance(model, Module):
            raise unfit(model, "a Module", "model")
        averages, new = _tensors(self.module, self.use_buffers), _tensors(model, self.use_buffers)
        buffers, new_buffers = list(self.module.buffers()), list(model.buffers())
        for old, theirs, what in ((averages, new, "parameters"), (buffers, new_buffers, "buffers")):
            shapes, others = ([tuple(each.shape) for each in tensors] for tensors in (old, theirs))
            if shapes != others:
                raise ShapeError(f"update_parameters: expected a model with {what} of shapes {shapes}, got {others}")
        new = [current.detach().to(old.device) for old, current in zip(averages, new, strict=True)]
        averages = [old.detach() for old in averages]
        if self.n_averaged.item() == 0:
            _copy(averages, new)
        else:
            self._average(averages, new)
        if not self.use_buffers:
            _copy(buffers, new_buffers)
        self.n_averaged += 1

    def _average(self, averages: list[Tensor], new: list[Tensor]) -> None:
        together: dict[tuple[Device, dtype], tuple[list[Tensor], list[Tensor]]] = {}
        for old, current in zip(averages, new, strict=True):
            column = together.setdefault((old.device, old.dtype), ([], []))
            column[0].append(old)
            column[1].append(current)
        update = self.multi_avg_fn or _in_place(self.avg_fn or get_swa_avg_fn())
        for (device, _), (old, current) in together.items():
            update(old, current, self.n_averaged.to(device))


def _tensors(model: Module, buffers: bool) -> list[Tensor]:
    return [*model.parameters(), *(model.buffers() if buffers else ())]


def _copy(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.detach().copy_(source.detach())


@checked
@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Device = None) -> None:
    """Compute the running statistics of a model's batch normalisation anew: the means over all batches of a loader.

    An average of weights has not seen any data; this is what its statistics are in training.

    Parameters
    ----------
    loader : iterable of Tensor, or of list or tuple
        The inputs of the model; of a list or tuple the first entry.
    model : Module
        It is called with each, in training mode; modes and momenta are put back, also where it raises, and the
        statistics then too.
    device : device, optional
        Where the inputs are moved.

    Examples
    --------
    >>> import lucid
    >>> model = lucid.nn.BatchNorm1d(1)
    >>> lucid.optim.swa_utils.update_bn([lucid.tensor([[1.0], [3.0]]), lucid.tensor([[5.0], [7.0]])], model)
    >>> model.running_mean
    tensor([4.])
    """
    target = None if device is None else as_device(device)
    layers = [module for module in model.modules() if isinstance(module, BatchNorm)]
    if not layers:
        return
    modes = [(module, module.training) for module in model.modules()]
    momenta = [layer.momentum for layer in layers]
    before = [(buffer, buffer.clone()) for layer in layers for buffer in layer.buffers(recurse=False)]
    try:
        model.train()
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None
        for batch in loader:
            inputs = cast("Tensor", batch[0] if isinstance(batch, list | tuple) else batch)
            model(inputs if target is None else inputs.to(target))
    except BaseException:
        for buffer, value in before:
            buffer.copy_(value)
        raise
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        for module, mode in modes:
            module.training = mode


class SWALR(LRScheduler):
    r"""A schedule from the present learning rate to `swa_lr` in `anneal_epochs` epochs, constant after.

    .. math:: lr_t = swa\_lr \cdot a_t + lr_0 (1 - a_t)

    where `a` goes from 0 to 1. `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    swa_lr : float, or list of float
        The learning rate at the end, at least 0, or that of each group.

    Examples
    --------
    >>> import lucid
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = lucid.optim.swa_utils.SWALR(optimizer, swa_lr=0.2, anneal_epochs=2, anneal_strategy="linear")
    >>> for epoch in range(4):
    ...     print(f"{optimizer.param_groups[0]['lr']:.1f}", end=" ")
    ...     optimizer.step()
    ...     scheduler.step()
    1.0 0.6 0.2 0.2
    """

    @scheduled
    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        targets = per_group(optimizer, swa_lr, "swa_lr", rate)
        for group, target in zip(optimizer.param_groups, targets, strict=True):
            group["swa_lr"] = target
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the learning rates of `last_epoch`, from those of the epoch before."""
        self._warn_outside_of_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        require(self.optimizer, {"swa_lr"})
        before, now = self._part(step - 1), self._part(step)
        rates: list[Rate] = []
        for group in self.optimizer.param_groups:
            target = beside(group["swa_lr"], group["lr"])
            # of the rates of the epoch before, the first one is found again
            first = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + first * (1 - now))
        return rates

    def _part(self, step: int) -> float:
        """Return the completed fraction of the annealing."""
        part = max(0, min(1, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2


document(__all__, globals(), SCHEDULES)
