"""Kullback's and Leibler's divergence of two distributions, and how one is registered for two classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.distributions.distribution import Distribution
from lucid.errors import ArgumentError, ShapeError, warn
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from collections.abc import Callable

    from lucid.tensor import Tensor

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable[[Any, Any], Tensor] | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Register a function of p and q as the divergence of these classes and their subclasses; a decorator.

    Of several that fit, the one whose classes are the nearest to those of p and of q is taken; where one is nearer to
    p, and another to q, the first, with a RuntimeWarning.

    >>> import lucid
    >>> from lucid.distributions import Normal, kl_divergence, register_kl
    >>> class Mine(Normal):
    ...     pass
    >>> @register_kl(Mine, Mine)
    ... def divergence(p, q):
    ...     return lucid.zeros(p.batch_shape)
    >>> kl_divergence(Mine(0.0, 1.0), Mine(1.0, 1.0))
    tensor(0.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type) or not issubclass(kind, Distribution):
            raise ArgumentError(f"register_kl: {name}: expected a class of distributions, got {kind!r}")

    def add(function: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return add


def _registered(kind_p: type, kind_q: type) -> Callable[[Any, Any], Tensor] | None:
    """Return the function for two classes, or None."""
    steps_p, steps_q = ({kind: step for step, kind in enumerate(each.__mro__)} for each in (kind_p, kind_q))
    fits = [(steps_p[p], steps_q[q], p, q) for p, q in _KL_REGISTRY if p in steps_p and q in steps_q]
    if not fits:
        return None
    by_p = min(fits, key=lambda fit: fit[:2])[2:]
    by_q = min(fits, key=lambda fit: fit[1::-1])[2:]
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        names = [f"({', '.join(kind.__name__ for kind in pair)})" for pair in (by_p, by_q)]
        warn(
            f"kl_divergence: {kind_p.__name__} and {kind_q.__name__} fit {names[0]} and {names[1]}, of which the first "
            "is taken; register the two themselves",
            RuntimeWarning,
        )
    return _KL_REGISTRY[by_p]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the mean of ``log(p(x) / q(x))`` over draws x of `p`, in nats; infinite if q cannot draw all values of p.

    Of two classes for which none is registered a NotImplementedError is raised.

    >>> import lucid
    >>> from lucid.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    kinds = type(p), type(q)
    if kinds not in _KL_MEMOIZE:
        _KL_MEMOIZE[kinds] = _registered(*kinds)
    function = _KL_MEMOIZE[kinds]
    if function is None:
        raise NotImplementedError(
            f"kl_divergence: expected two kinds with one, got {kinds[0].__name__} and {kinds[1].__name__}"
        )
    if p.event_shape != q.event_shape and len(p.event_shape) == len(q.event_shape):
        raise ShapeError(
            f"kl_divergence: expected draws of one shape, got {tuple(p.event_shape)} of {kinds[0].__name__} and "
            f"{tuple(q.event_shape)} of {kinds[1].__name__}"
        )
    return function(p, q)


_publish(globals())
