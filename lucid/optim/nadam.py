"""NAdam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lucid.arguments import checked
from lucid.optim.base.algebra import descent, moved, scaled
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.slots import STEPS, Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from lucid.ops.base.formula.trace import Node, Symbol, Tracer
    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor


class NAdam(ElementwiseOptimizer):
    r"""NAdam, Adam with Nesterov's momentum: the mean gradient of a step is that of the next one, looked ahead.

    With :math:`m` and :math:`v` as in `Adam`, and :math:`\mu_t = \beta_1 (1 - 0.96^{t \cdot momentum\_decay} / 2)`,
    step `t` is

    .. math:: p \leftarrow p - \frac{lr}{\sqrt{v / (1 - \beta_2^t)} + eps} \left(
        \frac{(1 - \mu_t) g}{1 - \prod_{i=1}^t \mu_i} + \frac{\mu_{t+1} m}{1 - \prod_{i=1}^{t+1} \mu_i}\right)

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

    @staticmethod
    def numbers(m: Tracer, settings: Group, step: float) -> dict[str, Any]:
        """Return the settings with the shares of gradient and mean, and the product of momenta, in float32."""
        (beta1, beta2), decay, apart = settings["betas"], settings["weight_decay"], settings["decoupled_weight_decay"]
        momentum, following = (beta1 * (1 - 0.5 * 0.96 ** (t * settings["momentum_decay"])) for t in (step, step + 1))
        product = m.float32(settings["mu_product"] * m.float32(momentum))
        # the root of the correction of v moves out of the divisor, which spares a pass
        root = m.sqrt(1 - beta2**step)
        return {
            "beta1": beta1,
            "beta2": beta2,
            "of_grad": settings["lr"] * root * (1 - momentum) / (1 - product),
            "of_mean": settings["lr"] * root * following / (1 - product * following),
            "eps": settings["eps"] * root,
            "shrink": m.where(apart, 1 - settings["lr"] * decay, 1),
            "weight_decay": m.where(apart, 0, decay),
            "mu_product": product,
        }

    @staticmethod
    def formula(
        m: Tracer, grad: Symbol, param: Symbol, exp_avg: Symbol, exp_avg_sq: Symbol, *,
        beta1: Symbol, beta2: Symbol, of_grad: Symbol, of_mean: Symbol, eps: Symbol, shrink: Symbol,
        weight_decay: Symbol, maximize: Symbol,
    ) -> tuple[Node | None, ...]:  # fmt: skip
        """Return parameter, mean and mean square after a step."""
        grad = descent(m, grad, param, weight_decay, maximize)
        exp_avg = moved(m, exp_avg, grad, beta1)
        exp_avg_sq = exp_avg_sq * beta2 + grad * (1 - beta2) * grad
        step = (grad * of_grad + exp_avg * of_mean) / (m.sqrt(exp_avg_sq) + eps)
        return scaled(m, param, shrink) - step, exp_avg, exp_avg_sq
