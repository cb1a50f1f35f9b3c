"""Adafactor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from lucid.arguments import checked
from lucid.base.limits import finfo
from lucid.errors import DtypeError, SettingError
from lucid.optim.base.declared import DeclaredOptimizer
from lucid.optim.base.settings import rate_of
from lucid.optim.base.slots import STEPS, unlike_parameters
from lucid.settings.optimizers import at_least_zero, checks_of, number, two

if TYPE_CHECKING:
    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor


def _at_most_zero(value: Any, name: str) -> None:
    number(value, name)
    if not value <= 0:
        raise SettingError(f"{name} should be <= 0 but is: {value}")


def _at_least_one(value: Any, name: str) -> None:
    number(value, name)
    if not value >= 1:
        raise SettingError(f"Clipping threshold {name} should be >= 1 but is: {value}")


def _floors(value: object, name: str) -> None:
    first, second = two(value, name)
    if first is not None:
        at_least_zero(first, f"{name}[0]")
    at_least_zero(second, f"{name}[1]")


class Adafactor(DeclaredOptimizer):
    r"""Adafactor: a matrix's mean squared gradient is kept as the product of a column and a row.

    With the means of the squared gradient in each row, :math:`r \leftarrow r + t^{beta2\_decay} (mean(g^2) - r)`, and
    likewise `c` in each column, step `t` is

    .. math:: p \leftarrow p - \max(eps_2, rms(p)) \min(lr, t^{-1/2}) \frac{u}{\max(1, rms(u) / d)},
        \qquad u = g / \sqrt{r c / mean(r)}

    Of more than two dimensions the last two are the matrix; of fewer, the mean is kept for each element. Parameters are
    real. Weight decay is apart from the gradient: first :math:`p \leftarrow (1 - lr \cdot weight\_decay) p`.
    `lucid.optim` says what holds for all optimizers.

    Parameters
    ----------
    beta2_decay : float
        The exponent of `t`, at most 0.
    eps : (float or None, float)
        What keeps the divisor from zero, of which None is the dtype's `finfo.eps`; the smallest size of a parameter.
    d : float
        How large a step's root mean square may be before it is made smaller, at least 1.

    References
    ----------
    Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost",
    https://arxiv.org/abs/1804.04235

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([[1.0, -2.0]], requires_grad=True)
    >>> optimizer = lucid.optim.Adafactor([x], lr=0.1)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x.detach()
    tensor([[ 0.8419, -1.8419]])
    """

    ranges: ClassVar = checks_of(
        "lr beta2_decay eps d weight_decay maximize",
        beta2_decay=_at_most_zero,
        eps=_floors,
        d=_at_least_one,
    )

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, locals())

    def check_group(self, group: Group) -> None:
        """Raise if a setting of `group` is out of its range, or a parameter is complex."""
        super().check_group(group)
        if any(param.is_complex() for param in group["params"]):
            raise DtypeError("Adafactor does not support complex parameters: optimize real and imaginary parts apart")

    def _check_shapes(self, params: list[Tensor], group: Group) -> None:
        super()._check_shapes(params, group)
        for param in params:
            state, shape = self.state.get(param) or {}, param.array.shape
            for name, expected in _state_shapes(shape).items() if state else ():
                kept = state[name].array.shape
                if kept != expected:
                    raise unlike_parameters(
                        f"a parameter of shape {shape} has {name} of shape {kept}, expected {expected}"
                    )

    def update(self, params: list[Tensor], group: Group) -> None:
        """Change the parameters of one group; nothing waits for a device."""
        made = {param: _initial_state(param, group) for param in params if not self.state.get(param)}
        for param, state in made.items():
            self.state[param].update(state)
        lr = rate_of(group)
        for param in params:
            state = self.state[param]
            state["step"] += 1
            self._change(param, state, group, lr)

    def _change(self, param: Tensor, state: dict[str, Tensor], group: Group, lr: float) -> None:
        step, (eps1, eps2) = state["step"].item(), group["eps"]
        eps1 = finfo(param.dtype).eps if eps1 is None else eps1
        fresh = step ** group["beta2_decay"]
        grad = _wide(-param.stored_grad if group["maximize"] else param.stored_grad)
        size = _rms(_wide(param.detach())).clamp(min=eps2) * min(lr, step**-0.5)
        if group["weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        square = grad * grad
        if param.ndim > 1:
            row = _moved(state["row_var"], square.mean(-1, keepdim=True), fresh)
            column = _moved(state["col_var"], square.mean(-2, keepdim=True), fresh)
            mean = row * column / row.mean(-2, keepdim=True).clamp(min=eps1)
        else:
            mean = _moved(state["variance"], square, fresh)
        step_ = grad * mean.clamp(min=eps1 * eps1).rsqrt()
        param.sub_((step_ * (size / (_rms(step_) / group["d"]).clamp(min=1.0))).to(param.dtype))


def _initial_state(param: Tensor, group: Group) -> dict[str, Tensor]:
    """Return the state of a parameter that has made no step."""
    means = {name: param.new_zeros(size) for name, size in _state_shapes(param.array.shape).items()}
    return {"step": STEPS.made(param, group, on_device=False), **means}


def _state_shapes(shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the running means of a parameter of a shape."""
    if len(shape) < 2:
        return {"variance": shape}
    *rest, rows, columns = shape
    return {"row_var": (*rest, rows, 1), "col_var": (*rest, 1, columns)}


def _wide(tensor: Tensor) -> Tensor:
    """Return a tensor wide enough for squares of half types."""
    return tensor.float() if tensor.element_size() < 4 else tensor


def _rms(tensor: Tensor) -> Tensor:
    return tensor.norm() / max(tensor.numel(), 1) ** 0.5


def _moved(mean: Tensor, new: Tensor, share: float) -> Tensor:
    """Return a running mean moved towards a new value, in the state too."""
    moved = _wide(mean).lerp(new, share)
    mean.copy_(moved)
    return moved
