"""AdamW."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import checked
from lucid.optim.adam import Adam

if TYPE_CHECKING:
    from lucid.optim.optimizer import Params
    from lucid.tensor import Tensor


class AdamW(Adam):
    r"""Adam with weight decay apart from the gradient: first :math:`p \leftarrow (1 - lr \cdot decay) p`.

    `lucid.optim` says what holds for all optimizers.

    Parameters
    ----------
    weight_decay : float
        Share of itself, times `lr`, by which a parameter shrinks in a step; at least 0.

    References
    ----------
    Loshchilov and Hutter, "Decoupled weight decay regularization", https://arxiv.org/abs/1711.05101

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.AdamW([x], lr=0.1, weight_decay=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([ 0.8500, -1.8000])
    """

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad,
            foreach=foreach, maximize=maximize, capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state_dict` returned; that of an `Adam` fits too and goes on as AdamW."""
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
