"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lucid.arguments import checked
from lucid.optim.base.algebra import descent
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.slots import STEPS, Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from lucid.ops.base.formula.trace import Node, Symbol, Tracer
    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor


class ASGD(ElementwiseOptimizer):
    r"""Averaged stochastic gradient descent: steps that shrink, and beside the parameter its mean, ``"ax"``.

    The state keeps :math:`\eta`, which begins as `lr`, and :math:`\mu`, which begins as 1. Step `t` is

    .. math:: p \leftarrow (1 - lambd \cdot \eta) p - \eta g, \quad ax \leftarrow ax + \mu (p - ax)

    after which :math:`\eta \leftarrow lr / (1 + lambd \cdot lr \cdot t)^\alpha` and
    :math:`\mu \leftarrow 1 / \max(1, t - t_0)`. `lucid.optim` says what holds for all optimizers.

    Parameters
    ----------
    lambd : float
        Share of itself, times :math:`\eta`, by which a parameter shrinks in a step; at least 0.
    alpha : float
        How fast :math:`\eta` falls, at least 0.
    t0 : float
        The step behind which the mean begins, at least 0; until then it is the parameter.

    References
    ----------
    Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", https://doi.org/10.1137/0330046

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.ASGD([x], lr=0.1, lambd=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.7500, -1.5000])
    """

    ranges: ClassVar = checks_of("lr lambd alpha t0 weight_decay maximize capturable")
    slots: ClassVar = {
        "step": STEPS,
        "eta": Slot(begins="lr", scalar=True),
        "mu": Slot(begins=1.0, scalar=True),
        "ax": Slot(),
    }
    kernel = "asgd"

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    @staticmethod
    def numbers(m: Tracer, settings: Group, step: float) -> dict[str, Any]:
        """Return size and share of this step, as the state has them, and those of the next."""
        lr, lambd, size = settings["lr"], settings["lambd"], settings["eta"]
        return {
            "shrink": 1 - lambd * size,
            "size": size,
            "share": settings["mu"],
            "eta": lr / (1 + lambd * lr * step) ** settings["alpha"],
            "mu": 1 / m.maximum(step - settings["t0"], 1),
        }

    @staticmethod
    def formula(
        m: Tracer, grad: Symbol, param: Symbol, ax: Symbol, *,
        shrink: Symbol, size: Symbol, share: Symbol, weight_decay: Symbol, maximize: Symbol,
    ) -> tuple[Node | None, ...]:  # fmt: skip
        """Return parameter and mean after a step."""
        grad = descent(m, grad, param, weight_decay, maximize)
        param = param * shrink - grad * size
        return param, m.where(m.eq(share, 1), param, ax + (param - ax) * share)
