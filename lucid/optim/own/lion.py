"""Lion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lucid.arguments import checked
from lucid.optim.base.algebra import descent, scaled
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.slots import Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from lucid.ops.base.formula.trace import Node, Symbol, Tracer
    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor


class Lion(ElementwiseOptimizer):
    r"""Lion: each element's step goes by the sign of a mean of its gradients, and all are of one size.

    With a momentum `m`, which begins at zero, a step is

    .. math:: p \leftarrow (1 - lr \cdot weight\_decay) p - lr \cdot \mathrm{sign}(\beta_1 m + (1 - \beta_1) g), \quad
        m \leftarrow \beta_2 m + (1 - \beta_2) g

    Good learning rates are a tenth to a third of those of `AdamW`, and decays as much larger. `lucid.optim` says what
    holds for all optimizers; PyTorch has no such one.

    Parameters
    ----------
    betas : tuple of float
        The momentum's share in the direction of a step, and its decay, each in [0, 1).
    weight_decay : float
        Share of itself, times `lr`, by which a parameter shrinks in a step; at least 0.

    References
    ----------
    Chen et al., "Symbolic discovery of optimization algorithms", https://arxiv.org/abs/2302.06675, algorithm 2

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.Lion([x], lr=0.25)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.7500, -1.7500])
    """

    ranges: ClassVar = checks_of("lr betas weight_decay maximize")
    slots: ClassVar = {"exp_avg": Slot()}
    kernel = "lion"

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    @staticmethod
    def numbers(m: Tracer, settings: Group, step: float) -> dict[str, Any]:
        """Return the decays, and the factor of weight decay."""
        beta1, beta2 = settings["betas"]
        return {"beta1": beta1, "beta2": beta2, "shrink": 1 - settings["lr"] * settings["weight_decay"]}

    @staticmethod
    def formula(
        m: Tracer, grad: Symbol, param: Symbol, exp_avg: Symbol, *,
        lr: Symbol, beta1: Symbol, beta2: Symbol, shrink: Symbol, maximize: Symbol,
    ) -> tuple[Node | None, ...]:  # fmt: skip
        """Return parameter and mean after a step."""
        further = descent(m, grad, param, 0, maximize) - exp_avg
        sign = m.sign_or_nan(exp_avg + further * (1 - beta1))
        return scaled(m, param, shrink) - sign * lr, exp_avg + further * (1 - beta2)
