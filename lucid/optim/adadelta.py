"""Adadelta."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lucid.arguments import checked
from lucid.optim.base.blocks import descent
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.slots import STEPS, Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.optim.optimizer import Params
    from lucid.tensor import Tensor


class Adadelta(ElementwiseOptimizer):
    r"""Adadelta: each element's step is its gradient, by the root mean square of its steps over that of its gradients.

    With :math:`v \leftarrow \rho v + (1 - \rho) g^2`, a step is

    .. math:: d = \frac{\sqrt{u + eps}}{\sqrt{v + eps}} g, \quad u \leftarrow \rho u + (1 - \rho) d^2, \quad
        p \leftarrow p - lr \cdot d

    `lucid.optim` says what holds for all optimizers.

    Parameters
    ----------
    rho : float
        Decay of the two running means, in [0, 1].
    eps : float
        Begins the steps and keeps the divisor from zero, at least 0.

    References
    ----------
    Zeiler, "ADADELTA: an adaptive learning rate method", https://arxiv.org/abs/1212.5701

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adadelta([x], rho=0.5, eps=1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([-0.1547, -0.6667])
    """

    ranges: ClassVar = checks_of("lr rho eps weight_decay maximize capturable")
    slots: ClassVar = {"step": STEPS, "square_avg": Slot(), "acc_delta": Slot()}
    kernel = "adadelta"

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    @staticmethod
    def formula(
        xp: ModuleType, direction: Array, temporary: Array,
        grad: Array, param: Array, square_avg: Array, acc_delta: Array, *,
        lr: float, rho: float, eps: float, weight_decay: float, maximize: bool,
    ) -> None:  # fmt: skip
        """Take a step."""
        grad = descent(xp, grad, param, direction, weight_decay=weight_decay, maximize=maximize)
        xp.multiply(xp.multiply(grad, 1 - rho, out=temporary), grad, out=temporary)
        xp.add(xp.multiply(square_avg, rho, out=square_avg), temporary, out=square_avg)
        step = xp.divide(grad, xp.sqrt(xp.add(square_avg, eps, out=temporary), out=temporary), out=direction)
        xp.multiply(step, xp.sqrt(xp.add(acc_delta, eps, out=temporary), out=temporary), out=step)
        xp.multiply(xp.multiply(step, 1 - rho, out=temporary), step, out=temporary)
        xp.add(xp.multiply(acc_delta, rho, out=acc_delta), temporary, out=acc_delta)
        xp.subtract(param, xp.multiply(step, lr, out=temporary), out=param)
