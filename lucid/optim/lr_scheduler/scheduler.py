"""LRScheduler: the base of all schedules, with the order of a step."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from lucid.arguments import unfit
from lucid.autograd.modes.state import no_grad
from lucid.base import gpu
from lucid.errors import CaptureError, SettingError, StateDictError, warn
from lucid.ops.creation.data import tensor
from lucid.settings.optimizers import number
from lucid.settings.schedules import scheduled
from lucid.tensor import Tensor

if TYPE_CHECKING:
    from lucid.optim.optimizer import Group, Optimizer

Rate: TypeAlias = float | Tensor
"""A learning rate."""

# what is said of a step that is being taken; dicts of older versions lack it
_TRANSIENT = {"_is_initial", "_get_lr_called_within_step"}


class LRScheduler:
    """The base of all schedules: `step` goes on by an epoch and gives each group the learning rate of `get_lr`.

    A subclass defines `get_lr`, and may define ``_get_closed_form_lr``, which computes the same from `base_lrs` and
    `last_epoch` alone. `lucid.optim.lr_scheduler` says what holds for all schedules.

    Parameters
    ----------
    optimizer : Optimizer
        Whose groups it changes.

    Attributes
    ----------
    optimizer : Optimizer
        As given.
    last_epoch : int
        The epoch that the learning rates are for, from 0.
    base_lrs : list of float or Tensor
        The learning rate with which each group began.

    Raises
    ------
    TypeError
        If an argument is of another type.
    ValueError
        If a setting is out of its range; the message says which that is.
    KeyError
        If `last_epoch` is not -1, and a group has no ``"initial_lr"``.

    Examples
    --------
    >>> import lucid
    >>> class Halving(lucid.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / 2**self.last_epoch for lr in self.base_lrs]
    >>> optimizer = lucid.optim.SGD([lucid.ones(1, requires_grad=True)], lr=0.8)
    >>> scheduler = Halving(optimizer)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.4]
    """

    optimizer: Optimizer
    last_epoch: int
    base_lrs: list[Rate]
    # under PyTorch's names, as those of state dicts
    _last_lr: list[Rate]
    _step_count: int
    _is_initial: bool = False
    _get_lr_called_within_step: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = _undone_if_it_raises(cls.__init__)

    @scheduled
    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        groups = optimizer.param_groups
        if last_epoch == -1:
            for group, rate in zip(groups, read(optimizer, "lr"), strict=True):
                group.setdefault("initial_lr", rate)
        for place, group in enumerate(groups):
            if "initial_lr" not in group:
                raise StateDictError(
                    f"param 'initial_lr' is not specified in param_groups[{place}]: to go on after epoch {last_epoch}, "
                    "load the optimizer's state dict first; a schedule that begins has last_epoch=-1"
                )
        self.optimizer = optimizer
        self.base_lrs = read(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        # from now on the optimizer notes there that it made a step
        vars(optimizer).setdefault("_opt_called", False)
        self._initial_step()

    def _initial_step(self) -> None:
        """Take the step that gives groups the learning rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def step(self, epoch: int | None = None) -> None:
        """Go on by an epoch: give each group its next learning rate. To be called after the optimizer's step.

        Parameters
        ----------
        epoch : int, optional
            Goes to this epoch instead, which warns: by the closed form, where a schedule has one.

        Raises
        ------
        ValueError
            If groups were added for which the schedule has no learning rate.
        CaptureError
            In a capture of a CUDA graph.

        Notes
        -----
        One that raises leaves the schedule as it was.
        """
        refuse_capture(self)
        if self._step_count == 1:
            self._warn_of_order()
        if epoch is not None:
            number(epoch, "epoch")
            warn_of_epoch()
        with all_or_nothing(self):
            self._step_count += 1
            self._update_lr(epoch)

    def _warn_of_order(self) -> None:
        """Warn if the optimizer has made no step since it has a schedule."""
        if getattr(self.optimizer, "_opt_called", False):
            return
        if "step" in vars(self.optimizer):
            what = "Seems like `optimizer.step()` has been overridden: its calls are not seen, and should come"
        else:
            what = "Detected call of `lr_scheduler.step()` before `optimizer.step()`: it should come"
        warn(f"{what} first, or the learning rate of the first epoch is never used", UserWarning)

    def _update_lr(self, epoch: int | None = None) -> None:
        """Go on by an epoch, or to the one given, in its closed form if there is one."""
        if epoch is None:
            self._go_to(self.last_epoch + 1, self.get_lr)
        else:
            self._go_to(epoch, getattr(self, "_get_closed_form_lr", self.get_lr))

    def _go_to(self, epoch: int, rates: Callable[[], list[Rate]]) -> None:
        """Go to an epoch, and give each group its learning rate of `rates` there."""
        groups = self.optimizer.param_groups
        self.last_epoch = epoch
        with no_grad():
            self._get_lr_called_within_step = True
            try:
                values = rates()
            finally:
                self._get_lr_called_within_step = False
            if len(values) != len(groups):
                raise self._other_groups(len(values))
            for group, value in zip(groups, values, strict=True):
                write_rate(group, value)
            self._last_lr = read(self.optimizer, "lr")

    # ---- for schedules that are part of another one ----

    def _undo(self) -> None:
        """Take back the first step, so that another schedule takes it when its turn has come."""
        self.last_epoch -= 1

    def _take_over(self) -> None:
        """Begin at the end of another schedule, and forget the learning rates of that."""
        self._update_lr(0)

    def _parts(self, ago: int) -> Iterator[tuple[int, LRScheduler]]:
        """Yield each schedule in this one that is none of others, after how many steps ago its last turn was.

        A turn may not have come yet: then the schedule's `last_epoch` is below 0.
        """
        yield ago, self

    def _write_momentums(self) -> None:
        """Give groups the momenta of `last_epoch`, in a schedule that has them."""

    def _begin_anew(self) -> None:
        """Begin with the learning rates that are there."""
        self.last_epoch = -1
        self._initial_step()

    def _other_groups(self, known: int) -> SettingError:
        return SettingError(
            f"{type(self).__name__}: expected {known} parameter groups, as when it was made, got "
            f"{len(self.optimizer.param_groups)}: make a new scheduler after add_param_group()"
        )

    def _with_base(self) -> Iterator[tuple[Rate, Group]]:
        """Yield the first learning rate of each group, beside the one of now, and the group."""
        if len(self.base_lrs) != len(self.optimizer.param_groups):
            raise self._other_groups(len(self.base_lrs))
        for base, group in zip(self.base_lrs, self.optimizer.param_groups, strict=True):
            yield beside(base, group["lr"]), group

    def get_last_lr(self) -> list[Rate]:
        """Return the learning rate of each group since the last step; tensors are copies."""
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """Return the learning rates of `last_epoch`, from those of the epoch before; `step` calls it.

        Raises
        ------
        NotImplementedError
            Here: every subclass defines it.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr(self)")

    def _warn_outside_of_step(self) -> None:
        if not self._get_lr_called_within_step:
            warn(
                "get_lr() computes the next learning rates, for step(): to see the last ones use `get_last_lr()`",
                UserWarning,
            )

    # ---- state dicts ----

    def state_dict(self) -> dict[str, Any]:
        """Return all that the schedule knows but its optimizer, in PyTorch's form."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a state that `state_dict` returned, here or in PyTorch.

        Groups get back what the schedule had given them, whether it was made before the optimizer's state was loaded
        or, which writes first learning rates over it, after that.

        Parameters
        ----------
        state_dict : dict
            It is copied; tensors, and arrays, are moved beside the learning rate of their group.

        Raises
        ------
        StateDictError
            If it is that of another kind of schedule. Nothing is changed then.
        """
        self._check_state(state_dict)
        self._adopt(state_dict)
        with no_grad():
            self._write_back()

    def _adopt(self, state_dict: Mapping[str, Any]) -> None:
        vars(self).update(self._adopted(state_dict))

    def _write_back(self) -> None:
        """Give groups the learning rates of the last step; there may be groups that were added after it."""
        for group, rate in zip(self.optimizer.param_groups, self._last_lr, strict=False):
            write_rate(group, rate)

    def _check_state(self, state_dict: Mapping[str, Any]) -> None:
        """Raise unless there is all that a state dict of this schedule has."""
        if not isinstance(state_dict, Mapping):
            raise unfit(state_dict, "a dict as state_dict() returns it", "state_dict")
        missing = sorted(self.state_dict().keys() - state_dict.keys() - _TRANSIENT)
        if missing:
            raise StateDictError(
                f"load_state_dict: the state lacks {missing}: expected that of {type(self).__name__}, got the keys "
                f"{[*state_dict]}"
            )

    def _adopted(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of a state dict, copied, with tensors of lucid's."""
        return {
            name: [self._beside(entry, place) for place, entry in enumerate(cast("list[object]", value))]
            if isinstance(value, list)
            else copy.deepcopy(value)
            for name, value in state_dict.items()
        }

    def _beside(self, value: object, place: int) -> object:
        """Return the entry for a group, an array as a tensor on the device of the group's learning rate."""
        if isinstance(value, Real) or not hasattr(value, "__array__"):
            return copy.deepcopy(value)
        groups = self.optimizer.param_groups
        taken = value if isinstance(value, Tensor) else tensor(value)
        return beside(taken.detach().clone(), groups[place]["lr"] if place < len(groups) else None)


def _undone_if_it_raises(init: Callable[..., None]) -> Callable[..., None]:
    """Return the constructor of a schedule, undone in the optimizer if it raises."""

    @functools.wraps(init)
    def call(self: LRScheduler, *args: Any, **kwargs: Any) -> None:
        optimizer: Any = args[0] if args else kwargs.get("optimizer")
        groups: list[Group] = getattr(optimizer, "param_groups", [])
        before = [dict(group) for group in groups]
        rates = read(optimizer, "lr") if groups else []
        attributes: dict[str, Any] = getattr(optimizer, "__dict__", {})
        noted = "_opt_called" in attributes
        try:
            init(self, *args, **kwargs)
        except BaseException:
            with no_grad():
                for group, settings, rate in zip(groups, before, rates, strict=True):
                    group.clear()
                    group.update(settings)
                    write_rate(group, rate)
            if not noted:
                attributes.pop("_opt_called", None)
            raise

    return call


@contextmanager
def all_or_nothing(scheduler: LRScheduler) -> Generator[None]:
    """Put back the attributes of a scheduler if the block raises."""
    attributes = vars(scheduler)
    before = dict(attributes)
    try:
        yield
    except BaseException:
        attributes.clear()
        attributes.update(before)
        raise


def refuse_capture(scheduler: LRScheduler) -> None:
    """Raise in a capture, as a step would be done once for all replays."""
    if gpu.is_capturing():
        raise CaptureError(
            f"{type(scheduler).__name__}.step() cannot be captured in a CUDA graph, whose replays would all have the "
            "learning rate of the capture: call it after the graphed step, which reads the groups' settings anew"
        )


def warn_of_epoch() -> None:
    """Warn that the epoch of a step need not be given."""
    warn(
        "The epoch parameter in `scheduler.step()` is deprecated, as in PyTorch: call `scheduler.step()` once an "
        "epoch, which counts them itself",
        UserWarning,
    )


# ---- settings of groups ----


def read(optimizer: Optimizer, name: str) -> list[Any]:
    """Return a setting of each group; tensors are copied, so that nobody changes the group's by them."""
    return [copied(group[name]) for group in optimizer.param_groups]


def copied(value: object) -> Any:
    """Return a setting, or a copy of a tensor."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def beside(value: object, rate: object) -> Any:
    """Return a setting; one that a tensor holds on the device of a group's learning rate, if that is a tensor too."""
    return value.to(rate.device) if isinstance(value, Tensor) and isinstance(rate, Tensor) else value


def write_rate(group: Group, value: Rate) -> None:
    """Give a group its learning rate, a copy; one that a tensor holds is written in place, as graphs read it there."""
    rate: object = group["lr"]
    if not isinstance(rate, Tensor):
        group["lr"] = copied(value)
    elif isinstance(value, Tensor):
        rate.copy_(value.reshape(rate.shape))
    else:
        rate.fill_(value)


def write_momentum(group: Group, value: float) -> None:
    """Give a group its momentum, or the first of its betas."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def require(optimizer: Optimizer, names: set[str]) -> None:
    """Raise unless each group has the settings that a schedule put there."""
    for place, group in enumerate(optimizer.param_groups):
        missing = sorted(names - group.keys())
        if missing:
            raise StateDictError(
                f"param_groups[{place}] has no {missing}, which the scheduler gives to groups: make a new scheduler "
                "after add_param_group(), or load the optimizer's state"
            )


def per_group(optimizer: Optimizer, value: object, name: str, check: Callable[[Any, str], None]) -> list[Any]:
    """Return a setting for each group, checked: one for all of them, or a list with one for each."""
    groups = len(optimizer.param_groups)
    values = [*cast("list[object]", value)] if isinstance(value, list | tuple) else [value] * groups
    if len(values) != groups:
        raise SettingError(
            f"{name} must have the same length as optimizer.param_groups: expected {groups} values, got {len(values)}"
        )
    for each in values:
        check(each, name)
    return [beside(copied(each), group["lr"]) for each, group in zip(values, optimizer.param_groups, strict=True)]
