"""Adam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lucid.arguments import checked
from lucid.optim.base.algebra import descent, moved, scaled
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.settings import check_foreach
from lucid.optim.base.slots import STEPS, Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from lucid.ops.base.formula.trace import Node, Symbol, Tracer
    from lucid.optim.optimizer import Group, Params
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

    @staticmethod
    def numbers(m: Tracer, settings: Group, step: float) -> dict[str, Any]:
        """Return the settings with the corrections for the first steps, and the two kinds of decay told apart."""
        (beta1, beta2), decay, apart = settings["betas"], settings["weight_decay"], settings["decoupled_weight_decay"]
        # the root of the correction of v moves out of the divisor, which spares a pass
        root = m.sqrt(1 - beta2**step)
        return {
            "beta1": beta1,
            "beta2": beta2,
            "size": settings["lr"] * root / (1 - beta1**step),
            "eps": settings["eps"] * root,
            "shrink": m.where(apart, 1 - settings["lr"] * decay, 1),
            "weight_decay": m.where(apart, 0, decay),
        }

    @staticmethod
    def formula(
        m: Tracer, grad: Symbol, param: Symbol, exp_avg: Symbol, exp_avg_sq: Symbol, max_exp_avg_sq: Symbol | None, *,
        beta1: Symbol, beta2: Symbol, size: Symbol, eps: Symbol, shrink: Symbol, weight_decay: Symbol,
        maximize: Symbol,
    ) -> tuple[Node | None, ...]:  # fmt: skip
        """Return parameter, mean, mean square and its maximum after a step."""
        grad = descent(m, grad, param, weight_decay, maximize)
        exp_avg = moved(m, exp_avg, grad, beta1)
        square = exp_avg_sq = exp_avg_sq * beta2 + grad * (1 - beta2) * grad
        if max_exp_avg_sq is not None:
            square = max_exp_avg_sq = m.maximum(max_exp_avg_sq, square)
        step = exp_avg / (m.sqrt(square) + eps) * size
        return scaled(m, param, shrink) - step, exp_avg, exp_avg_sq, max_exp_avg_sq
