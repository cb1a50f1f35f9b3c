"""Muon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lucid.arguments import checked
from lucid.autograd.base import TensorBase
from lucid.base.dtype import bfloat16
from lucid.errors import DtypeError, SettingError, ShapeError
from lucid.optim.base.capturing import followed
from lucid.optim.base.declared import DeclaredOptimizer
from lucid.settings.optimizers import InRange, checks_of, finite, whole
from lucid.settings.ranges import words

if TYPE_CHECKING:
    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor

MOST_STEPS = 99


def _coefficients(value: Any, name: str) -> None:
    if type(value) not in {tuple, list} or len(value) != 3:
        raise SettingError(f"Invalid {name}: expected three finite numbers, got {value}")
    for each in value:
        finite(each, name)


def _steps(value: Any, name: str) -> None:
    whole(value, name)
    if value > MOST_STEPS:
        raise SettingError(f"Invalid {name}: {value}: expected at most {MOST_STEPS}, as each is three products")


class Muon(DeclaredOptimizer):
    r"""Muon: a matrix's step is its mean gradient made nearly orthogonal, with all singular values about 1.

    With :math:`m \leftarrow m + (1 - momentum)(g - m)`, with Nesterov's momentum `g` moved towards it once more, the
    iteration :math:`x \leftarrow a x + (b x x^T + c (x x^T)^2) x` in bfloat16, begun at length 1, makes `o` of it, and

    .. math:: p \leftarrow (1 - lr \cdot weight\_decay) p - lr \sqrt{\max(1, rows / columns)} \cdot o

    Parameters are real matrices: weights of hidden layers; the rest is for another optimizer. `lucid.optim` says what
    holds for all optimizers.

    Parameters
    ----------
    weight_decay : float
        Share of itself, times `lr`, by which a parameter shrinks in a step; at least 0.
    momentum : float
        Decay of the mean gradient, at least 0.
    nesterov : bool
        Whether the gradient is taken nearer to the mean once more.
    ns_coefficients : tuple of float
        `a`, `b` and `c` of the iteration, finite.
    eps : float
        The least length that divides, at least 0.
    ns_steps : int
        How often the iteration runs, from 0 to 99.
    adjust_lr_fn : str, optional
        ``"original"``, as above; ``"match_rms_adamw"`` takes :math:`0.2 \sqrt{\max(rows, columns)}` for the root, with
        which a learning rate of `AdamW` fits.

    References
    ----------
    Jordan, "Muon: an optimizer for hidden layers in neural networks", https://kellerjordan.github.io/posts/muon/

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([[1.0, -2.0], [3.0, 0.5]], requires_grad=True)
    >>> optimizer = lucid.optim.Muon([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> bool((x * x).sum() < 14.25)
    True
    """

    ranges: ClassVar = checks_of(
        "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn",
        ns_coefficients=_coefficients,
        ns_steps=_steps,
        adjust_lr_fn=InRange(words("original", "match_rms_adamw"), or_none=True),
    )

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        super().__init__(params, locals())

    def check_group(self, group: Group) -> None:
        """Raise if a setting of `group` is out of its range, or a parameter is no real matrix."""
        super().check_group(group)
        for param in group["params"]:
            if param.ndim != 2:
                raise ShapeError(
                    f"Muon only supports 2D parameters, got one of shape {tuple(param.shape)}: let AdamW have the rest"
                )
            if param.is_complex():
                raise DtypeError("Muon does not support complex parameters: optimize real and imaginary parts apart")

    def state_names(self, group: Group) -> tuple[str, ...]:
        """Return the names of the state that each parameter has."""
        return ("momentum_buffer",)

    def update(self, params: list[Tensor], group: Group) -> None:
        """Change the parameters of one group; nothing waits for a device."""
        made = {param: param.new_zeros(param.shape) for param in params if not self.state.get(param)}
        for param, buffer in made.items():
            self.state[param]["momentum_buffer"] = buffer
        momentum, live = group["momentum"], followed(self, group, ("lr", "weight_decay"))
        lr, decay = live["lr"], 1 - live["lr"] * live["weight_decay"]
        for param in params:
            grad, buffer = param.stored_grad, self.state[param]["momentum_buffer"]
            buffer.lerp_(grad, 1 - momentum)
            direction = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
            step = orthogonal(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
            rows, columns = param.shape
            if group["adjust_lr_fn"] == "match_rms_adamw":
                size = 0.2 * max(rows, columns) ** 0.5
            else:
                size = max(1.0, rows / max(columns, 1)) ** 0.5
            if isinstance(decay, int | float):
                param.mul_(decay)
            else:  # in a capture
                param.copy_(_times(param, decay))
            param.sub_(_times(step.to(param.dtype), lr * size))


def _times(tensor: Tensor, factor: float | Tensor) -> Tensor:
    """Return the product with a number, or with a scalar of float64, that a half type would round first."""
    if isinstance(factor, TensorBase) and tensor.element_size() < 4:
        return (tensor.float() * factor).to(tensor.dtype)
    return tensor * factor


def orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return a matrix with the singular vectors of another and singular values of about 1, in bfloat16."""
    a, b, c = coefficients
    high = matrix.shape[0] > matrix.shape[1]
    # products of the smaller side with itself are the smaller ones
    x = matrix.to(bfloat16)
    x = x.t() if high else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        square = x @ x.t()
        x = x.addmm(square.addmm(square, square, beta=b, alpha=c), x, beta=a)
    return x.t() if high else x
