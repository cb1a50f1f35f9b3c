"""Adadelta."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lucid.arguments import checked
from lucid.optim.base.algebra import descent
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.slots import STEPS, Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from lucid.ops.base.formula.trace import Node, Symbol, Tracer
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
        m: Tracer, grad: Symbol, param: Symbol, square_avg: Symbol, acc_delta: Symbol, *,
        lr: Symbol, rho: Symbol, eps: Symbol, weight_decay: Symbol, maximize: Symbol,
    ) -> tuple[Node | None, ...]:  # fmt: skip
        """Return parameter and both mean squares after a step."""
        grad = descent(m, grad, param, weight_decay, maximize)
        square_avg = square_avg * rho + grad * (1 - rho) * grad
        step = grad / m.sqrt(square_avg + eps) * m.sqrt(acc_delta + eps)
        return param - step * lr, square_avg, acc_delta * rho + step * (1 - rho) * step
