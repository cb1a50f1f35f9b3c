"""RMSprop."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lucid.arguments import checked
from lucid.optim.base.blocks import descent
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.slots import STEPS, Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from types import ModuleType

    from lucid.base.arrays import Array
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
        xp: ModuleType, direction: Array, temporary: Array,
        grad: Array, param: Array, square_avg: Array, *asked_for: Array,
        lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool, maximize: bool,
    ) -> None:  # fmt: skip
        """Take a step; asked for are the buffer of the momentum, and the mean."""
        grad = descent(xp, grad, param, direction, weight_decay=weight_decay, maximize=maximize)
        xp.multiply(xp.multiply(grad, 1 - alpha, out=temporary), grad, out=temporary)
        square = xp.add(xp.multiply(square_avg, alpha, out=square_avg), temporary, out=square_avg)
        if centered:
            mean = asked_for[-1]
            xp.multiply(xp.subtract(grad, mean, out=temporary), 1 - alpha, out=temporary)
            xp.add(mean, temporary, out=mean)
            square = xp.subtract(square, xp.multiply(mean, mean, out=temporary), out=temporary)
        xp.add(xp.sqrt(square, out=temporary), eps, out=temporary)
        step = xp.divide(grad, temporary, out=temporary)
        if momentum:
            buffer = xp.multiply(asked_for[0], momentum, out=asked_for[0])
            step = xp.add(buffer, step, out=buffer)
        xp.subtract(param, xp.multiply(step, lr, out=temporary), out=param)
