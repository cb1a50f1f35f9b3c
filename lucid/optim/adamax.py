"""Adamax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lucid.arguments import checked
from lucid.optim.base.algebra import descent, moved
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.slots import STEPS, Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from lucid.ops.base.formula.trace import Node, Symbol, Tracer
    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor


class Adamax(ElementwiseOptimizer):
    r"""Adamax: each element's step is its mean gradient over the largest size of its gradients, a decaying one.

    With :math:`m \leftarrow \beta_1 m + (1 - \beta_1) g` and :math:`u \leftarrow \max(\beta_2 u, |g| + eps)`, step `t`
    is

    .. math:: p \leftarrow p - \frac{lr}{1 - \beta_1^t} \cdot \frac{m}{u}

    `lucid.optim` says what holds for all optimizers.

    Parameters
    ----------
    betas : tuple of float
        Decay of the running mean and of the largest size, each in [0, 1).

    References
    ----------
    Kingma and Ba, "Adam: a method for stochastic optimization", https://arxiv.org/abs/1412.6980, section 7.1

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adamax([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.9000, -1.9000])
    """

    ranges: ClassVar = checks_of("lr betas eps weight_decay maximize capturable")
    slots: ClassVar = {"step": STEPS, "exp_avg": Slot(), "exp_inf": Slot()}
    kernel = "adamax"

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    @staticmethod
    def numbers(m: Tracer, settings: Group, step: float) -> dict[str, Any]:
        """Return the decays, and the learning rate with the correction for the first steps."""
        beta1, beta2 = settings["betas"]
        return {"beta1": beta1, "beta2": beta2, "size": settings["lr"] / (1 - beta1**step)}

    @staticmethod
    def formula(
        m: Tracer, grad: Symbol, param: Symbol, exp_avg: Symbol, exp_inf: Symbol, *,
        beta1: Symbol, beta2: Symbol, size: Symbol, eps: Symbol, weight_decay: Symbol, maximize: Symbol,
    ) -> tuple[Node | None, ...]:  # fmt: skip
        """Return parameter, mean and largest size after a step."""
        grad = descent(m, grad, param, weight_decay, maximize)
        exp_avg = moved(m, exp_avg, grad, beta1)
        exp_inf = m.maximum(exp_inf * beta2, abs(grad) + eps)
        return param - exp_avg / exp_inf * size, exp_avg, exp_inf
