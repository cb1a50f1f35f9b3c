"""NAdam."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

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


class NAdam(ElementwiseOptimizer):
    r"""NAdam, Adam with Nesterov's momentum: the mean gradient of a step is that of the next one, looked ahead.

    With :math:`m` and :math:`v` as in `Adam`, and :math:`\mu_t = \beta_1 (1 - 0.96^{t \cdot momentum\_decay} / 2)`,
    step `t` is

    .. math:: p \leftarrow p - lr \left(\frac{(1 - \mu_t) g}{1 - \prod_{i=1}^t \mu_i}
        + \frac{\mu_{t+1} m}{1 - \prod_{i=1}^{t+1} \mu_i}\right) \Big/ \left(\sqrt{v / (1 - \beta_2^t)} + eps\right)

    `lucid.optim` says what holds for all optimizers.

    Parameters
    ----------
    momentum_decay : float
        How fast momentum grows to the first of the betas, at least 0.

    References
    ----------
    Dozat, "Incorporating Nesterov momentum into Adam", https://openreview.net/forum?id=OM0jvwB8jIp57ZJjtNEZ

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.NAdam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.8944, -1.8944])
    """

    ranges: ClassVar = checks_of("lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize capturable")
    slots: ClassVar = {
        "step": STEPS,
        "mu_product": Slot(begins=1.0, scalar=True),
        "exp_avg": Slot(),
        "exp_avg_sq": Slot(),
    }
    kernel = "nadam"

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def numbers(self, settings: Mapping[str, Any], step: float) -> dict[str, Any]:
        """Return the settings with the shares of gradient and mean, and the product of momenta, in float32."""
        (beta1, beta2), decay, apart = settings["betas"], settings["weight_decay"], settings["decoupled_weight_decay"]
        momentum, following = (beta1 * (1 - 0.5 * 0.96 ** (t * settings["momentum_decay"])) for t in (step, step + 1))
        product = float(np.float32(settings["mu_product"]) * np.float32(momentum))
        # the root of the correction of v moves out of the divisor, which spares a pass
        root = math.sqrt(1 - beta2**step)
        return {
            "beta1": beta1,
            "beta2": beta2,
            "of_grad": settings["lr"] * root * (1 - momentum) / (1 - product),
            "of_mean": settings["lr"] * root * following / (1 - product * following),
            "eps": settings["eps"] * root,
            "shrink": 1 - settings["lr"] * decay if apart else 1,
            "weight_decay": 0 if apart else decay,
            "mu_product": product,
        }

    @staticmethod
    def formula(
        xp: ModuleType, direction: Array, temporary: Array,
        grad: Array, param: Array, exp_avg: Array, exp_avg_sq: Array, *,
        beta1: float, beta2: float, of_grad: float, of_mean: float, eps: float, shrink: float, weight_decay: float,
        maximize: bool,
    ) -> None:  # fmt: skip
        """Take a step."""
        grad = descent(xp, grad, param, direction, weight_decay=weight_decay, maximize=maximize)
        if shrink != 1:
            xp.multiply(param, shrink, out=param)
        xp.multiply(xp.subtract(grad, exp_avg, out=temporary), 1 - beta1, out=temporary)
        xp.add(exp_avg, temporary, out=exp_avg)
        xp.multiply(xp.multiply(grad, 1 - beta2, out=temporary), grad, out=temporary)
        xp.add(xp.multiply(exp_avg_sq, beta2, out=exp_avg_sq), temporary, out=exp_avg_sq)
        ahead = xp.multiply(grad, of_grad, out=direction)
        xp.add(ahead, xp.multiply(exp_avg, of_mean, out=temporary), out=ahead)
        xp.add(xp.sqrt(exp_avg_sq, out=temporary), eps, out=temporary)
        xp.subtract(param, xp.divide(ahead, temporary, out=temporary), out=param)
