"""RAdam."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from lucid.arguments import checked
from lucid.optim.base.blocks import descent
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.slots import STEPS, Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.optim.optimizer import Params
    from lucid.tensor import Tensor


class RAdam(ElementwiseOptimizer):
    r"""RAdam: Adam that does without the mean squared gradient while this is too uncertain, and trusts it by degrees.

    With :math:`m` and :math:`v` as in `Adam`, :math:`\rho_\infty = 2 / (1 - \beta_2) - 1` and
    :math:`\rho_t = \rho_\infty - 2 t \beta_2^t / (1 - \beta_2^t)`, step `t` is

    .. math:: p \leftarrow p - lr \frac{m}{1 - \beta_1^t} \cdot \begin{cases}
        r_t \sqrt{1 - \beta_2^t} / (\sqrt{v} + eps) & \rho_t > 5 \\ 1 & \text{otherwise} \end{cases}, \quad
        r_t^2 = \frac{(\rho_t - 4) (\rho_t - 2) \rho_\infty}{(\rho_\infty - 4) (\rho_\infty - 2) \rho_t}

    `lucid.optim` says what holds for all optimizers.

    References
    ----------
    Liu et al., "On the variance of the adaptive learning rate and beyond", https://arxiv.org/abs/1908.03265

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.RAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.8000, -1.6000])
    """

    ranges: ClassVar = checks_of("lr betas eps weight_decay maximize decoupled_weight_decay capturable")
    slots: ClassVar = {"step": STEPS, "exp_avg": Slot(), "exp_avg_sq": Slot()}
    kernel = "radam"

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def numbers(self, settings: Mapping[str, Any], step: float) -> dict[str, Any]:
        """Return the settings with the size of the step, and whether the mean square divides, 1 or 0."""
        (beta1, beta2), decay, apart = settings["betas"], settings["weight_decay"], settings["decoupled_weight_decay"]
        size, decay_power = settings["lr"] / (1 - beta1**step), beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * decay_power / (1 - decay_power)
        divides = length > 5
        if divides:
            ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            size *= math.sqrt(ratio * (1 - decay_power))
        return {
            "beta1": beta1,
            "beta2": beta2,
            "size": size,
            "divides": float(divides),
            "shrink": 1 - settings["lr"] * decay if apart else 1,
            "weight_decay": 0 if apart else decay,
        }

    @staticmethod
    def formula(
        xp: ModuleType, direction: Array, temporary: Array,
        grad: Array, param: Array, exp_avg: Array, exp_avg_sq: Array, *,
        beta1: float, beta2: float, size: float, divides: float, eps: float, shrink: float, weight_decay: float,
        maximize: bool,
    ) -> None:  # fmt: skip
        """Take a step."""
        grad = descent(xp, grad, param, direction, weight_decay=weight_decay, maximize=maximize)
        if shrink != 1:
            xp.multiply(param, shrink, out=param)
        xp.multiply(xp.subtract(grad, exp_avg, out=temporary), 1 - beta1, out=temporary)
        step = xp.add(exp_avg, temporary, out=exp_avg)
        xp.multiply(xp.multiply(grad, 1 - beta2, out=temporary), grad, out=temporary)
        xp.add(xp.multiply(exp_avg_sq, beta2, out=exp_avg_sq), temporary, out=exp_avg_sq)
        if divides:
            step = xp.divide(step, xp.add(xp.sqrt(exp_avg_sq, out=temporary), eps, out=temporary), out=temporary)
        xp.subtract(param, xp.multiply(step, size, out=temporary), out=param)
