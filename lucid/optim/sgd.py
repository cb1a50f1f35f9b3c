"""Stochastic gradient descent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lucid.arguments import checked
from lucid.errors import SettingError
from lucid.optim.base.algebra import descent, scaled
from lucid.optim.base.elementwise import ElementwiseOptimizer
from lucid.optim.base.slots import Slot
from lucid.settings.optimizers import checks_of

if TYPE_CHECKING:
    from lucid.ops.base.formula.trace import Node, Symbol, Tracer
    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor


class SGD(ElementwiseOptimizer):
    r"""Stochastic gradient descent, with momentum as an option: :math:`p \leftarrow p - lr \cdot d`.

    The direction `d` is the gradient plus ``weight_decay * p``. With momentum, a buffer
    :math:`b \leftarrow momentum \cdot b + (1 - dampening) \cdot d`, which begins as the first `d`, stands in for `d`;
    with Nesterov's, :math:`d + momentum \cdot b`. `lucid.optim` says what holds for all optimizers.

    Parameters
    ----------
    dampening : float
        Share of each new direction that momentum leaves out.
    nesterov : bool
        Nesterov momentum; it requires a momentum and no dampening.

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = lucid.optim.SGD([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([0.8000, 1.6000])
    """

    ranges: ClassVar = checks_of("lr momentum dampening weight_decay nesterov maximize")
    slots: ClassVar = {"momentum_buffer": Slot(asked_by="momentum")}
    kernel = "sgd"

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, locals())

    def check_group(self, group: Group) -> None:
        """Raise if a setting of `group` is out of its range, or does not go with another."""
        super().check_group(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise SettingError(
                "Nesterov momentum requires a momentum and zero dampening: got momentum "
                f"{group['momentum']} and dampening {group['dampening']}"
            )

    @staticmethod
    def numbers(m: Tracer, settings: Group, step: float) -> dict[str, Any]:
        """Return how much of a direction momentum takes: the first one whole."""
        return {"fresh": m.where(step > 1, 1 - settings["dampening"], 1)}

    @staticmethod
    def formula(
        m: Tracer, grad: Symbol, param: Symbol, momentum_buffer: Symbol | None, *,
        lr: Symbol, weight_decay: Symbol, momentum: Symbol, fresh: Symbol, nesterov: Symbol, maximize: Symbol,
    ) -> tuple[Node | None, ...]:  # fmt: skip
        """Return parameter and buffer after a step."""
        step = descent(m, grad, param, weight_decay, maximize)
        if momentum_buffer is not None:
            buffer = m.add(momentum_buffer * momentum, scaled(m, step, fresh))
            step, momentum_buffer = m.where(nesterov, step + buffer * momentum, buffer), buffer
        return param - step * lr, momentum_buffer
