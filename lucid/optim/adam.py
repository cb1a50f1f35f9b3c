"""Adam."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lucid.arguments import checked
from lucid.autograd.base import version_of, wrap
from lucid.cuda.launch import multi_tensor
from lucid.errors import SettingError
from lucid.optim.blocks import descent, update_all
from lucid.optim.optimizer import Optimizer, zeros_like
from lucid.optim.settings import check_at_least_zero, check_flags, check_implementation, check_rate, rate_of

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor


class Adam(Optimizer):
    r"""Adam: each element's step is its mean gradient over the root of its mean squared gradient.

    With :math:`m \leftarrow \beta_1 m + (1 - \beta_1) g` and :math:`v \leftarrow \beta_2 v + (1 - \beta_2) g^2`, step
    `t` is

    .. math:: p \leftarrow p - lr \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + eps}

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimise; dicts are parameter groups with settings of their own.
    lr : float or Tensor
        Learning rate, at least 0; one in a tensor of one element is read at each step.
    betas : tuple of float
        Decay of the two running means, each in [0, 1).
    eps : float
        Keeps the divisor from zero, at least 0.
    weight_decay : float
        At least 0: the coefficient of an L2 penalty, which the gradient gets.
    amsgrad : bool
        Whether the largest `v` so far divides.
    maximize : bool
        Whether to go uphill.
    foreach, capturable, fused : bool, optional
        Accepted for PyTorch's sake.
    differentiable : bool
        Only False.
    decoupled_weight_decay : bool
        Whether the parameter shrinks by ``lr * weight_decay`` of itself instead, as in `AdamW`.

    Raises
    ------
    ValueError
        If a number is out of its range, or `params` is empty.
    TypeError
        If `params` holds something else than tensors.

    References
    ----------
    Kingma and Ba, "Adam: a method for stochastic optimization", https://arxiv.org/abs/1412.6980

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adam([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.9000, -1.9000])
    """

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_implementation(foreach=foreach, fused=fused, differentiable=differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": tuple(betas),
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )

    def check_group(self, group: Group) -> None:
        """Raise ValueError if a number of `group` is out of its range."""
        check_rate(group["lr"])
        check_flags(group)
        check_at_least_zero(group["eps"], "epsilon value")
        check_at_least_zero(group["weight_decay"], "weight_decay value")
        betas: Any = group["betas"]
        if type(betas) not in {tuple, list} or len(betas) != 2:
            raise SettingError(f"Invalid betas: expected two numbers, got {betas}")
        for index, beta in enumerate(betas):
            if not hasattr(beta, "__float__") or not 0.0 <= float(beta) < 1.0:
                raise SettingError(f"Invalid beta parameter at index {index}: expected a number in [0, 1), got {beta}")

    def state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the state that a parameter of `group` has."""
        names = ("step", "exp_avg", "exp_avg_sq")
        return (*names, "max_exp_avg_sq") if group["amsgrad"] else names

    def update(self, params: list[Tensor], group: Group) -> None:
        """Change the parameters of one group; each has a gradient."""
        beta1, beta2 = group["betas"]
        rate = rate_of(group)
        names = self.state_names(group)[1:]
        by_step: dict[float, list[list[Array]]] = {}
        for param in params:
            state = self.state[param]
            if not state:
                made = [(name, zeros_like(param)) for name in names]
                # On the CPU whatever the parameter's device: reading it back from there would wait for the device.
                state["step"] = wrap(np.zeros((), np.float32))
                state.update(made)
        for param in params:
            state = self.state[param]
            version_of(param)[0] += 1
            state["step"].array += 1
            row = [param.stored_grad.array, param.array, *[state[name].array for name in names]]
            by_step.setdefault(state["step"].array.item(), []).append(row)
        for step, rows in by_step.items():
            # The root of the correction of v moves out of the divisor, which spares a pass.
            root = math.sqrt(1 - beta2**step)
            update_all(
                _adapt,
                multi_tensor.adam,
                rows,
                beta1=beta1,
                beta2=beta2,
                size=rate * root / (1 - beta1**step),
                eps=group["eps"] * root,
                shrink=1 - rate * group["weight_decay"] if group["decoupled_weight_decay"] else 1,
                weight_decay=0 if group["decoupled_weight_decay"] else group["weight_decay"],
                maximize=group["maximize"],
            )


def _adapt(
    xp: Any,
    grad: Array,
    param: Array,
    mean: Array,
    square: Array,
    *rest: Array,
    beta1: float,
    beta2: float,
    size: float,
    eps: float,
    shrink: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    *largest, direction, temporary = rest
    grad = descent(xp, grad, param, direction, weight_decay=weight_decay, maximize=maximize)
    if shrink != 1:
        xp.multiply(param, shrink, out=param)
    xp.multiply(xp.subtract(grad, mean, out=temporary), 1 - beta1, out=temporary)
    xp.add(mean, temporary, out=mean)
    xp.multiply(xp.multiply(grad, 1 - beta2, out=temporary), grad, out=temporary)
    xp.add(xp.multiply(square, beta2, out=square), temporary, out=square)
    for maximum in largest:
        square = xp.maximum(maximum, square, out=maximum)
    xp.add(xp.sqrt(square, out=temporary), eps, out=temporary)
    xp.multiply(xp.divide(mean, temporary, out=temporary), size, out=temporary)
    xp.subtract(param, temporary, out=param)
