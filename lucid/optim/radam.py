"""RAdam."""

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

    @staticmethod
    def numbers(m: Tracer, settings: Group, step: float) -> dict[str, Any]:
        """Return the settings with the size of the step, and whether the mean square divides, 1 or 0."""
        (beta1, beta2), decay, apart = settings["betas"], settings["weight_decay"], settings["decoupled_weight_decay"]
        decay_power, longest = beta2**step, 2 / (1 - beta2) - 1
        length = longest - 2 * step * decay_power / (1 - decay_power)
        divides = length > 5
        divisor = m.where(divides, (longest - 4) * (longest - 2) * length, 1)
        ratio = m.where(divides, (length - 4) * (length - 2) * longest / divisor * (1 - decay_power), 1)
        return {
            "beta1": beta1,
            "beta2": beta2,
            "size": settings["lr"] / (1 - beta1**step) * m.sqrt(ratio),
            "divides": m.where(divides, 1, 0),
            "shrink": m.where(apart, 1 - settings["lr"] * decay, 1),
            "weight_decay": m.where(apart, 0, decay),
        }

    @staticmethod
    def formula(
        m: Tracer, grad: Symbol, param: Symbol, exp_avg: Symbol, exp_avg_sq: Symbol, *,
        beta1: Symbol, beta2: Symbol, size: Symbol, divides: Symbol, eps: Symbol, shrink: Symbol,
        weight_decay: Symbol, maximize: Symbol,
    ) -> tuple[Node | None, ...]:  # fmt: skip
        """Return parameter, mean and mean square after a step."""
        grad = descent(m, grad, param, weight_decay, maximize)
        exp_avg = moved(m, exp_avg, grad, beta1)
        exp_avg_sq = exp_avg_sq * beta2 + grad * (1 - beta2) * grad
        step = m.where(divides, exp_avg / (m.sqrt(exp_avg_sq) + eps), exp_avg)
        return scaled(m, param, shrink) - step * size, exp_avg, exp_avg_sq
