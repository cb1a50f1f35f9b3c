"""Stochastic gradient descent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.autograd.base import version_of
from lucid.cuda.launch import multi_tensor
from lucid.errors import SettingError
from lucid.optim.blocks import descent, update_all
from lucid.optim.optimizer import Optimizer, zeros_like
from lucid.optim.settings import check_at_least_zero, check_flags, check_implementation, check_rate, rate_of

if TYPE_CHECKING:
    from lucid.backend.arrays import Array
    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor


class SGD(Optimizer):
    r"""Stochastic gradient descent, with momentum as an option: :math:`p \leftarrow p - lr \cdot d`.

    The direction `d` is the gradient plus ``weight_decay * p``. With momentum, a buffer
    :math:`b \leftarrow momentum \cdot b + (1 - dampening) \cdot d`, which begins as the first `d`, stands in for `d`;
    with Nesterov's, :math:`d + momentum \cdot b`.

    Parameters
    ----------
    params : iterable of Tensor, of (str, Tensor), or of dict
        What to optimise; dicts are parameter groups with settings of their own.
    lr : float or Tensor
        Learning rate, at least 0; one in a tensor of one element is read at each step.
    momentum : float
        At least 0; 0 keeps no buffer.
    dampening : float
        What momentum leaves out of each new direction.
    weight_decay : float
        Coefficient of the L2 penalty, at least 0.
    nesterov : bool
        Nesterov momentum; it requires a momentum and no dampening.
    maximize : bool
        Whether to go uphill.
    foreach, fused : bool, optional
        Accepted for PyTorch's sake.
    differentiable : bool
        Only False.

    Raises
    ------
    ValueError
        If a number is out of its range, or `params` is empty.
    TypeError
        If `params` holds something else than tensors.

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
        check_implementation(foreach=foreach, fused=fused, differentiable=differentiable)
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def check_group(self, group: Group) -> None:
        """Raise ValueError if a number of `group` is out of its range."""
        check_rate(group["lr"])
        check_flags(group)
        check_at_least_zero(group["momentum"], "momentum value")
        check_at_least_zero(group["weight_decay"], "weight_decay value")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise SettingError(
                "Nesterov momentum requires a momentum and zero dampening: got momentum "
                f"{group['momentum']} and dampening {group['dampening']}"
            )

    def state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the state that a parameter of `group` has."""
        return ("momentum_buffer",) if group["momentum"] else ()

    def update(self, params: list[Tensor], group: Group) -> None:
        """Change the parameters of one group; each has a gradient."""
        momentum, rate = group["momentum"], rate_of(group)
        fresh: list[list[Array]] = []
        rows: list[list[Array]] = []
        # all of them before any is kept, so that a device without room for them leaves the state as it was
        made = {p: zeros_like(p) for p in params if momentum and "momentum_buffer" not in self.state[p]}
        for param in params:
            row = [param.stored_grad.array, param.array]
            first = param in made
            if momentum:
                state = self.state[param]
                if first:
                    state["momentum_buffer"] = made[param]
                row.append(state["momentum_buffer"].array)
            version_of(param)[0] += 1
            (fresh if first else rows).append(row)
        # what momentum leaves out of a direction, it does not leave out of the first
        for some, kept in ((fresh, 0), (rows, group["dampening"])):
            if some:
                update_all(
                    _descend,
                    multi_tensor.sgd,
                    some,
                    lr=rate,
                    momentum=momentum,
                    fresh=1 - kept,
                    weight_decay=group["weight_decay"],
                    nesterov=group["nesterov"],
                    maximize=group["maximize"],
                )


def _descend(
    xp: Any,
    grad: Array,
    param: Array,
    *rest: Array,
    lr: float,
    momentum: float,
    fresh: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    *buffers, direction, temporary = rest
    grad = descent(xp, grad, param, direction, weight_decay=weight_decay, maximize=maximize)
    if momentum:
        (buffer,) = buffers
        xp.multiply(buffer, momentum, out=buffer)
        xp.add(buffer, grad if fresh == 1 else xp.multiply(grad, fresh, out=temporary), out=buffer)
        grad = xp.add(grad, xp.multiply(buffer, momentum, out=temporary), out=temporary) if nesterov else buffer
    xp.subtract(param, xp.multiply(grad, lr, out=temporary), out=param)
