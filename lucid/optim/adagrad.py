"""Adagrad."""

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


class Adagrad(ElementwiseOptimizer):
    r"""Adagrad: each element's step is its gradient over the root of the sum of its squared gradients.

    With :math:`s \leftarrow s + g^2`, step `t` is

    .. math:: p \leftarrow p - \frac{lr}{1 + (t - 1) \cdot lr\_decay} \cdot \frac{g}{\sqrt{s} + eps}

    A parameter has its state from the beginning on. `lucid.optim` says what holds for all optimizers.

    Parameters
    ----------
    lr_decay : float
        How fast the learning rate falls, at least 0.
    initial_accumulator_value : float
        What `s` begins as, at least 0.
    fused : bool, optional
        Whether steps are counted on the parameters' CUDA devices, which others call `capturable`.

    References
    ----------
    Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization",
    https://jmlr.org/papers/v12/duchi11a.html

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adagrad([x], lr=0.5, initial_accumulator_value=12)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.7500, -1.6220])
    """

    ranges: ClassVar = checks_of("lr lr_decay eps weight_decay initial_accumulator_value maximize fused")
    slots: ClassVar = {"step": STEPS, "sum": Slot(begins="initial_accumulator_value")}
    counted_by: ClassVar = "fused"
    kernel = "adagrad"

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())
        for group in self.param_groups:
            for param, state in self.missing_state(group["params"], group, self.state_names(group)).items():
                self.state[param].update(state)

    @staticmethod
    def numbers(m: Tracer, settings: Group, step: float) -> dict[str, Any]:
        """Return the learning rate of the step."""
        return {"size": settings["lr"] / (1 + (step - 1) * settings["lr_decay"])}

    @staticmethod
    def formula(
        m: Tracer, grad: Symbol, param: Symbol, total: Symbol, *,
        size: Symbol, eps: Symbol, weight_decay: Symbol, maximize: Symbol,
    ) -> tuple[Node | None, ...]:  # fmt: skip
        """Return parameter and sum of squares after a step."""
        grad = descent(m, grad, param, weight_decay, maximize)
        total = total + grad * grad
        return param - grad / (m.sqrt(total) + eps) * size, total
