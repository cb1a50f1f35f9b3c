"""L-BFGS, and the line search that says how far to go along a direction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from lucid.arguments import checked, unfit
from lucid.autograd.base import TensorBase, with_grads
from lucid.autograd.modes.state import enable_grad, no_grad
from lucid.errors import SettingError
from lucid.ops.elementwise.complex import complex as complex_of
from lucid.ops.shape.joining import cat, stack
from lucid.optim.base.declared import DeclaredOptimizer
from lucid.optim.base.settings import rate_of
from lucid.optim.base.slots import check_devices, unlike_parameters
from lucid.settings.optimizers import InRange, checks_of
from lucid.settings.ranges import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lucid.optim.optimizer import Group, Params
    from lucid.tensor import Tensor

__all__ = ["LBFGS"]

ENOUGH_DECREASE = 1e-4
ENOUGH_FLATNESS = 0.9
# a pair of steps of less curvature says nothing
LEAST_CURVATURE = 1e-10


class LBFGS(DeclaredOptimizer):
    r"""L-BFGS: each direction is the gradient times an inverse Hessian that the last steps and gradients suggest.

    A call of `step` takes up to `max_iter` steps, of length `lr` in the direction, the very first
    :math:`lr \min(1, 1 / |g|_1)`, and calls the closure for each. All parameters are in one group and on one device.
    `lucid.optim` says what holds for all optimizers.

    Parameters
    ----------
    max_iter : int
        Steps for each call, at least 1.
    max_eval : int, optional
        After how many calls of the closure no further step is taken; 5/4 of `max_iter` if left out.
    tolerance_grad : float
        No element of the gradient above it ends the steps.
    tolerance_change : float
        Less change of the loss, or of every parameter, ends them.
    history_size : int
        How many steps and gradients are kept, each of the size of all parameters.
    line_search_fn : str, optional
        ``"strong_wolfe"`` looks for the length of each step, beginning at `lr`.

    References
    ----------
    Nocedal and Wright, "Numerical optimization", algorithm 7.4

    Examples
    --------
    >>> import lucid
    >>> x = lucid.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = lucid.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 3) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    29.0
    >>> x.detach()
    tensor([3.0000, 3.0000])
    """

    ranges: ClassVar = checks_of(
        "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn",
        line_search_fn=InRange(words("strong_wolfe"), or_none=True),
    )

    @checked
    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if max_eval is None:
            max_eval = max(max_iter * 5 // 4, 1)
        super().__init__(params, locals())

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add the group of all parameters; a second one is refused."""
        if self.param_groups:
            raise SettingError("LBFGS doesn't support per-parameter options (parameter groups): put all into one list")
        super().add_param_group(param_group)
        if not self.param_groups[0]["params"]:
            self.param_groups.clear()
            raise SettingError("LBFGS: expected a group with parameters, got an empty one")

    def _check_devices(self, params: list[Tensor], group: Group) -> None:
        """Raise `DeviceError` if parameters and the history of their steps lie on several devices."""
        if not params:
            return
        first = params[0]
        beside = [("another one", param.array) for param in params]
        beside += [(f"its {name}", each.array) for name, each in self._history(first)]
        check_devices(first.array, beside)

    def _history(self, first: Tensor) -> list[tuple[str, Any]]:
        """Return the tensors that are kept of all parameters with the first one, by name."""
        return [
            (name, each)
            for name, value in self.state.get(first, {}).items()
            for each in (cast("list[Any]", value) if isinstance(value, list) else [value])
            if isinstance(each, TensorBase)
        ]

    def _check_shapes(self, params: list[Tensor], group: Group) -> None:
        """Raise `ShapeError` if a gradient, or the history of steps, is not of the size of the parameters."""
        super()._check_shapes(with_grads(params), group)
        # of complex numbers both parts
        size = sum(param.array.size * (1 + param.is_complex()) for param in params)
        for name, each in self._history(params[0]):
            if each.array.ndim and each.array.size != size:
                raise unlike_parameters(f"parameters of {size} elements have {name} of {each.array.size}")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Return the result of the first call of `closure`, after up to `max_iter` steps.

        Parameters
        ----------
        closure : callable
            Called several times, with gradients on: clears the gradients, computes the loss, runs backward and returns
            the loss.
        """
        if not callable(closure):
            raise unfit(closure, "a callable that computes the loss anew", "closure")
        run = enable_grad()(closure)
        group = self.param_groups[0]
        self._check_devices(group["params"], group)
        with no_grad():
            return self._steps(run)

    def _steps(self, run: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        params: list[Tensor] = group["params"]
        lr, tolerance = rate_of(group), group["tolerance_change"]
        first_loss = run()
        for param in with_grads(params):
            check_devices(param.array, [("its gradient", param.stored_grad.array)])
        self._check_shapes(params, group)
        loss, grad = float(first_loss), _flat_gradient(params)
        # as in PyTorch what is kept of all parameters is the state of the first
        state = self.state[params[0]]
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        evaluations = 1
        if _largest(grad) <= group["tolerance_grad"]:
            return first_loss

        def evaluate(at: float, direction: Tensor) -> Point:
            before = [param.clone() for param in params]
            _move(params, at, direction)
            try:
                new, gradient = float(run()), _flat_gradient(params)
            finally:
                for param, value in zip(params, before, strict=True):
                    param.copy_(value)
            return Point(at, new, gradient, gradient.dot(direction).item())

        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = _direction(state, grad, group["history_size"])
            at = min(1.0, 1.0 / grad.abs().sum().item()) * lr if state["n_iter"] == 1 else lr
            slope, previous = grad.dot(direction).item(), loss
            state |= {"d": direction, "t": at, "prev_flat_grad": grad, "prev_loss": loss}
            if slope > -tolerance:
                break
            used = 0
            if group["line_search_fn"] is not None:
                point, used = strong_wolfe(
                    lambda at, direction=direction: evaluate(at, direction),
                    at,
                    Point(0.0, loss, grad, slope),
                    length=_largest(direction),
                    tolerance=tolerance,
                    most=group["max_eval"] - evaluations,
                )
                at, loss, grad = point.at, point.loss, point.grad
                state["t"] = at
                _move(params, at, direction)
            else:
                _move(params, at, direction)
                if iteration < group["max_iter"]:
                    loss, grad, used = float(run()), _flat_gradient(params), 1
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= group["max_eval"]
                or _largest(grad) <= group["tolerance_grad"]
                or _largest(direction) * abs(at) <= tolerance
                or abs(loss - previous) < tolerance
            ):
                break
        return first_loss


def _direction(state: dict[str, Any], grad: Tensor, most: int) -> Tensor:
    """Return the direction of the next step, after adding the last step to the history, `most` in all."""
    if "old_dirs" not in state:
        state |= {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1}
        return -grad
    changes, steps, inverses = (cast("list[Tensor]", state[name]) for name in ("old_dirs", "old_stps", "ro"))
    change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = change.dot(step)
    if curvature.item() > LEAST_CURVATURE:
        for kept, new in ((changes, change), (steps, step), (inverses, 1 / curvature)):
            kept.append(new)
            del kept[:-most]
        state["H_diag"] = curvature / change.dot(change)
    direction = -grad
    shares: list[Tensor] = []
    for change, step, inverse in zip(reversed(changes), reversed(steps), reversed(inverses), strict=True):
        shares.append(step.dot(direction) * inverse)
        direction.sub_(change * shares[-1])
    direction.mul_(state["H_diag"])
    for change, step, inverse, share in zip(changes, steps, inverses, reversed(shares), strict=True):
        direction.add_(step * (share - change.dot(direction) * inverse))
    return direction


def _flat_gradient(params: list[Tensor]) -> Tensor:
    """Return the gradients of all parameters in a row, complex ones as both parts, and zeros for missing ones."""
    return cat([_flat(param.new_zeros(param.shape) if param.grad is None else param.grad) for param in params])


def _flat(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    return (stack([tensor.real, tensor.imag], -1) if tensor.is_complex() else tensor).reshape(-1)


def _move(params: list[Tensor], at: float, direction: Tensor) -> None:
    """Add a multiple of the direction to all parameters."""
    pieces = direction.split([param.numel() * (1 + param.is_complex()) for param in params])
    for param, piece in zip(params, pieces, strict=True):
        if param.is_complex():
            pairs = piece.reshape(*param.shape, 2)
            param.add_(complex_of(pairs[..., 0], pairs[..., 1]), alpha=at)
        else:
            param.add_(piece.reshape(param.shape), alpha=at)


def _largest(tensor: Tensor) -> float:
    return tensor.abs().max().item()


# ---- line search ----


class Point(NamedTuple):
    """A place on a line.

    Attributes
    ----------
    at : float
        How many directions it is away from the start.
    loss : float
    grad : Tensor
        The gradient there.
    slope : float
        The derivative of the loss along the line.
    """

    at: float
    loss: float
    grad: Tensor
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point], at: float, start: Point, *, length: float, tolerance: float, most: int
) -> tuple[Point, int]:
    """Return a point that satisfies the strong Wolfe conditions, or the best one found, and how many were evaluated.

    Parameters
    ----------
    evaluate : callable
        Returns the point at a distance.
    at : float
        The distance that is tried first.
    start : Point
        The point at 0, whose slope is below 0.
    length : float
        The largest element of the direction.
    tolerance : float
        The search ends where no element of two points that enclose a minimum differs by more.
    most : int
        How many points are evaluated after the first.

    References
    ----------
    Nocedal and Wright, "Numerical optimization", section 3.5
    """
    previous, point, tried = start, evaluate(at), 0
    while tried < most:
        if _too_high(point, start) or (tried > 1 and point.loss >= previous.loss):
            break
        if _flat_enough(point, start):
            return point, tried + 1
        if point.slope >= 0:
            break
        further = _minimum(previous, point, (point.at + 0.01 * (point.at - previous.at), 10 * point.at))
        previous, point = point, evaluate(further)
        tried += 1
    else:
        previous = start
    # a minimum lies between the two
    low, high = (previous, point) if previous.loss <= point.loss else (point, previous)
    near_an_end = False
    while tried < most and abs(high.at - low.at) * length >= tolerance:
        left, right = (low, high) if low.at <= high.at else (high, low)
        at = _minimum(left, right, (left.at, right.at))
        margin = 0.1 * (right.at - left.at)
        if min(right.at - at, at - left.at) < margin:
            # twice near an end, or at it: a tenth away from it instead
            if near_an_end or not left.at < at < right.at:
                at = right.at - margin if right.at - at < at - left.at else left.at + margin
                near_an_end = False
            else:
                near_an_end = True
        else:
            near_an_end = False
        point = evaluate(at)
        tried += 1
        if _too_high(point, start) or point.loss >= low.loss:
            low, high = (low, point) if low.loss <= point.loss else (point, low)
            continue
        if _flat_enough(point, start):
            return point, tried + 1
        if point.slope * (high.at - low.at) >= 0:
            high = low
        low = point
    return low, tried + 1


def _too_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + ENOUGH_DECREASE * point.at * start.slope


def _flat_enough(point: Point, start: Point) -> bool:
    return abs(point.slope) <= -ENOUGH_FLATNESS * start.slope


def _minimum(left: Point, right: Point, bounds: tuple[float, float]) -> float:
    """Return the minimum, within bounds, of the cubic through losses and slopes of two points."""
    lowest, highest = bounds
    if left.at == right.at:
        return (lowest + highest) / 2
    bend = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.at - right.at)
    square = bend * bend - left.slope * right.slope
    if not square >= 0:
        return (lowest + highest) / 2
    root = math.sqrt(square)
    dividend, divisor = right.slope + root - bend, right.slope - left.slope + 2 * root
    if divisor == 0:
        # a straight line, which goes down to one of the bounds
        return highest if dividend < 0 else lowest if dividend > 0 else (lowest + highest) / 2
    return min(max(right.at - (right.at - left.at) * (dividend / divisor), lowest), highest)
