"""Rprop."""

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


class Rprop(ElementwiseOptimizer):
    r"""Rprop: each element's step goes by the sign of its gradient, and by a size that is the element's own.

    The size `s`, which begins as `lr`, grows by :math:`\eta^+` where the gradient kept its sign, and shrinks by
    :math:`\eta^-` where it changed, within limits. There the element makes no step, and its gradient counts as 0:

    .. math:: p \leftarrow p - s \cdot \mathrm{sign}(g)

    For gradients of all data, as batches change signs by chance. `lucid.optim` says what holds for all optimizers.

    Parameters
    ----------
    lr : float
        The size of the first step, at least 0; at later ones it is not read.
    etas : tuple of float
        :math:`\eta^-`, in (0, 1), and :math:`\eta^+`, above 1.
    step_sizes : tuple of float
        The smallest and the largest size, at least 0.

    References
    ----------
    Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning: the RPROP algorithm",
    https://doi.org/10.1109/ICNN.1993.298623

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.Rprop([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.9000, -1.9000])
    """

    ranges: ClassVar = checks_of("lr etas step_sizes maximize capturable")
    slots: ClassVar = {"step": STEPS, "prev": Slot(), "step_size": Slot(begins="lr")}
    kernel = "rprop"

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    @staticmethod
    def numbers(m: Tracer, settings: Group, step: float) -> dict[str, Any]:
        """Return factors and limits of the size, each alone."""
        (minus, plus), (smallest, largest) = settings["etas"], settings["step_sizes"]
        return {"minus": minus, "plus": plus, "smallest": smallest, "largest": largest}

    @staticmethod
    def formula(
        m: Tracer, grad: Symbol, param: Symbol, prev: Symbol, step_size: Symbol, *,
        minus: Symbol, plus: Symbol, smallest: Symbol, largest: Symbol, maximize: Symbol,
    ) -> tuple[Node | None, ...]:  # fmt: skip
        """Return parameter, gradient and size after a step."""
        grad = descent(m, grad, param, 0, maximize)
        product = grad * prev
        size = step_size * m.where(product < 0, minus, m.where(product > 0, plus, 1))
        size = m.minimum(m.maximum(size, smallest), largest)
        grad = m.where(product < 0, 0, grad)
        # the sign of a NaN is 0, as in PyTorch
        return param - size * m.sgn(grad), grad, size
