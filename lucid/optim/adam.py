"""Adam."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from lucid.arguments import checked
from lucid.optim.base.blocks import descent
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.settings import check_foreach
from lucid.optim.base.slots import STEPS, Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from lucid.base.arrays import Array
    from lucid.optim.optimizer import Params
    from lucid.tensor import Tensor


class Adam(ElementwiseOptimizer):
    r"""Adam: each element's step is its mean gradient over the root of its mean squared gradient.

    With :math:`m \leftarrow \beta_1 m + (1 - \beta_1) g` and :math:`v \leftarrow \beta_2 v + (1 - \beta_2) g^2`, step
    `t` is

    .. math:: p \leftarrow p - lr \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + eps}

    `lucid.optim` says what holds for all optimizers.

    References
    ----------
    Kingma and Ba, "Adam: a method for stochastic optimization", https://arxiv.org/abs/1412.6980

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.9000, -1.9000])
    """

    ranges: ClassVar = checks_of("lr betas eps weight_decay amsgrad maximize decoupled_weight_decay capturable")
    slots: ClassVar = {
        "step": STEPS,
        "exp_avg": Slot(),
        "exp_avg_sq": Slot(),
        "max_exp_avg_sq": Slot(asked_by="amsgrad"),
    }
    kernel = "adam"

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_foreach(locals())
        super().__init__(params, locals())

    def numbers(self, settings: Mapping[str, Any], step: float) -> dict[str, Any]:
        """Return the settings with the corrections for the first steps, and the two kinds of decay told apart."""
        (beta1, beta2), decay, apart = settings["betas"], settings["weight_decay"], settings["decoupled_weight_decay"]
        # the root of the correction of v moves out of the divisor, which spares a pass
        root = math.sqrt(1 - beta2**step)
        return {
            "beta1": beta1,
            "beta2": beta2,
            "size": settings["lr"] * root / (1 - beta1**step),
            "eps": settings["eps"] * root,
            "shrink": 1 - settings["lr"] * decay if apart else 1,
            "weight_decay": 0 if apart else decay,
        }

    @staticmethod
    def formula(
        xp: ModuleType, direction: Array, temporary: Array,
        grad: Array, param: Array, exp_avg: Array, exp_avg_sq: Array, max_exp_avg_sq: Array | None = None, *,
        beta1: float, beta2: float, size: float, eps: float, shrink: float, weight_decay: float, maximize: bool,
    ) -> None:  # fmt: skip
        """Take a step."""
        grad = descent(xp, grad, param, direction, weight_decay=weight_decay, maximize=maximize)
        if shrink != 1:
            xp.multiply(param, shrink, out=param)
        xp.multiply(xp.subtract(grad, exp_avg, out=temporary), 1 - beta1, out=temporary)
        xp.add(exp_avg, temporary, out=exp_avg)
        xp.multiply(xp.multiply(grad, 1 - beta2, out=temporary), grad, out=temporary)
        square = xp.add(xp.multiply(exp_avg_sq, beta2, out=exp_avg_sq), temporary, out=exp_avg_sq)
        if max_exp_avg_sq is not None:
            square = xp.maximum(max_exp_avg_sq, square, out=max_exp_avg_sq)
        xp.add(xp.sqrt(square, out=temporary), eps, out=temporary)
        xp.multiply(xp.divide(exp_avg, temporary, out=temporary), size, out=temporary)
        xp.subtract(param, temporary, out=param)
