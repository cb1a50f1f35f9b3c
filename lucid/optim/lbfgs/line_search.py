"""A line search: how far to go along a direction so that loss and slope have come down enough."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor

ENOUGH_DECREASE = 1e-4
ENOUGH_FLATNESS = 0.9


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
        if _flat(point, start):
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
        if _flat(point, start):
            return point, tried + 1
        if point.slope * (high.at - low.at) >= 0:
            high = low
        low = point
    return low, tried + 1


def _too_high(point: Point, start: Point) -> bool:
    return point.loss > start.loss + ENOUGH_DECREASE * point.at * start.slope


def _flat(point: Point, start: Point) -> bool:
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
