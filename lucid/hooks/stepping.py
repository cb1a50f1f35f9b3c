"""Optimizers that step inside of backward: no gradient outlives its own step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from lucid.arguments import unfit
from lucid.autograd.base import TensorBase
from lucid.autograd.engine.retain import register_post_accumulate_grad_hook
from lucid.errors import SettingError
from lucid.hooks.scoping import HookGroup
from lucid.nn.module.module import Module
from lucid.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from lucid.tensor import Tensor


class step_in_backward:
    """Steps each parameter as soon as its gradient is there, and frees the gradient, so that never all are in memory.

    Backward is then the whole step: there is no ``optimizer.step()`` after it, and no ``zero_grad``.

    Parameters
    ----------
    parameters : Module or iterable of Tensor
        What is trained: of these, or of a module's parameters, those that require grad.
    make : callable
        ``make([parameter])`` gives the optimizer of one parameter, such as ``lambda p: lucid.optim.AdamW(p, lr=1e-3)``.
    every : int
        The number of passes whose gradients are summed before a step; by default 1. Only then are gradients freed.

    Attributes
    ----------
    optimizers : list of Optimizer
        In the order of the parameters; each has its state and its ``param_groups`` for schedules.

    Raises
    ------
    SettingError
        If there is no parameter, an optimizer has others than its own, or `every` is less than 1.

    Notes
    -----
    What needs all gradients at once, as clipping by their common norm, can not be had; clip by each one's own with
    ``hooks.edit(model, parameters=...)``.

    Examples
    --------
    >>> import lucid
    >>> from lucid import hooks
    >>> weight = lucid.ones(2, requires_grad=True)
    >>> steps = hooks.step_in_backward([weight], lambda p: lucid.optim.SGD(p, lr=0.5))
    >>> (weight * weight).sum().backward()
    >>> weight, weight.grad
    (tensor([0., 0.], requires_grad=True), None)
    >>> steps.remove()
    """

    def __init__(
        self, parameters: Module | Iterable[Tensor], make: Callable[[list[Tensor]], Optimizer], *, every: int = 1
    ) -> None:
        if isinstance(parameters, Module):
            parameters = parameters.parameters()
        elif not isinstance(parameters, Iterable) or isinstance(parameters, TensorBase):
            raise unfit(parameters, "a Module or an iterable of tensors", "parameters")
        # an optimizer says what it thinks of what is no tensor
        trained = [each for each in parameters if getattr(each, "requires_grad", True)]
        if not trained:
            raise SettingError("step_in_backward: expected at least one parameter that requires grad, got none")
        if type(every) is not int or every < 1:
            raise SettingError(f"step_in_backward: every: expected an int of 1 or more, got {every!r}")
        self.optimizers: list[Optimizer] = []
        for parameter in trained:
            optimizer = make([parameter])
            if not isinstance(optimizer, Optimizer):
                raise unfit(optimizer, "a function that returns an Optimizer", "make")
            steps = [each for group in optimizer.param_groups for each in group["params"]]
            if len(steps) != 1 or steps[0] is not parameter:
                raise SettingError(
                    f"step_in_backward: make: expected an optimizer of the one parameter that it is given, got one of "
                    f"{len(steps)}, which would step others before their gradients are there"
                )
            self.optimizers.append(optimizer)
        self._group = HookGroup()
        try:
            with self._group:
                for parameter, optimizer in zip(trained, self.optimizers, strict=True):
                    register_post_accumulate_grad_hook(parameter, _Step(optimizer, every))
        except BaseException:
            self.remove()  # one of them takes no hook
            raise

    def remove(self) -> None:
        """Leave gradients to others from now on; the optimizers and their states stay."""
        self._group.remove()


class _Step:
    """The post-accumulate hook of one parameter."""

    def __init__(self, optimizer: Optimizer, every: int) -> None:
        self.optimizer = optimizer
        self.every = every
        self.passes = 0

    def __call__(self, parameter: Any) -> None:
        self.passes += 1
        if self.passes == self.every:
            self.passes = 0
            self.optimizer.step()
            parameter.grad = None
