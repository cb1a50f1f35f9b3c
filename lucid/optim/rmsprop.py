"""RMSprop."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lucid.arguments import checked
from lucid.optim.base.algebra import descent, moved
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.slots import STEPS, Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from lucid.ops.base.formula.trace import Node, Symbol, Tracer
    from lucid.optim.optimizer import Params
    from lucid.tensor import Tensor


class RMSprop(ElementwiseOptimizer):
    r"""RMSprop: each element's step is its gradient over the root of its mean squared gradient.

    With :math:`v \leftarrow \alpha v + (1 - \alpha) g^2`, a step is

    .. math:: p \leftarrow p - lr \cdot d, \quad d = \frac{g}{\sqrt{v} + eps}

    With momentum, a buffer :math:`b \leftarrow momentum \cdot b + d`, which begins at zero, stands in for `d`.
    `lucid.optim` says what holds for all optimizers.

    Parameters
    ----------
    alpha : float
        Decay of the running means, at least 0.
    centered : bool
        Whether the variance of the gradient divides: `v` less the square of the running mean of `g`.

    References
    ----------
    Tieleman and Hinton, "Lecture 6.5: rmsprop", https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf;
    centered: Graves, "Generating sequences with recurrent neural networks", https://arxiv.org/abs/1308.0850

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.RMSprop([x], lr=0.1, alpha=0.75)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.8000, -1.8000])
    """

    ranges: ClassVar = checks_of("lr alpha eps weight_decay momentum centered maximize capturable")
    slots: ClassVar = {
        "step": STEPS,
        "square_avg": Slot(),
        "momentum_buffer": Slot(asked_by="momentum"),
        "grad_avg": Slot(asked_by="centered"),
    }
    kernel = "rmsprop"

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, locals())

    @staticmethod
    def formula(
        m: Tracer, grad: Symbol, param: Symbol, square_avg: Symbol, momentum_buffer: Symbol | None,
        grad_avg: Symbol | None, *,
        lr: Symbol, alpha: Symbol, eps: Symbol, weight_decay: Symbol, momentum: Symbol, maximize: Symbol,
    ) -> tuple[Node | None, ...]:  # fmt: skip
        """Return parameter, mean square, buffer and mean after a step."""
        grad = descent(m, grad, param, weight_decay, maximize)
        square = square_avg = square_avg * alpha + grad * (1 - alpha) * grad
        if grad_avg is not None:
            mean = grad_avg = moved(m, grad_avg, grad, alpha)
            square = square_avg - mean * mean
        step = grad / (m.sqrt(square) + eps)
        if momentum_buffer is not None:
            step = momentum_buffer = momentum_buffer * momentum + step
        return param - step * lr, square_avg, momentum_buffer, grad_avg
