"""The base of distributions, and that of the exponential family."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

from lucid.arguments import unfit
from lucid.autograd.entry import grad
from lucid.autograd.modes.state import enable_grad, inference_mode, is_grad_enabled, no_grad
from lucid.autograd.products import Level, Running
from lucid.distributions import constraints
from lucid.distributions.constraint_base import all_of
from lucid.distributions.utils import named_tensors, sum_rightmost, value_beside
from lucid.errors import ArgumentError, SettingError, ShapeError
from lucid.ops.base.dims import common_shape, sizes_in
from lucid.ops.creation.random import rand, randn
from lucid.ops.elementwise.selection import where
from lucid.tensor import Tensor
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lucid.distributions.constraints import Constraint


def boundless(support: Constraint) -> bool:
    """Tell whether a set holds all numbers, or all of a shape."""
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    return support is constraints.real


def within(support: Constraint | None, value: Tensor) -> Tensor:
    """Return a value moved to the bound of a set that it is beyond."""
    low, high = (getattr(support, name, None) for name in ("lower_bound", "upper_bound"))
    return value if low is None and high is None else value.clamp(low, high)


class Distribution:
    """The base of distributions: batch and event shapes, parameters, and `sample` by means of `rsample`.

    A subclass names its parameters, with what they can be, in `arg_constraints`, what can be drawn in `support`, and
    calls ``self._set(...)`` with them; each parameter then has the shape ``batch_shape``, and one draw, and the first
    dimensions of what `log_prob` takes, ``batch_shape + event_shape``.

    Parameters
    ----------
    batch_shape : tuple of int
        The shape of the parameters.
    event_shape : tuple of int
        The shape of one draw: () of a number.
    validate_args : bool, optional
        Whether parameters and values are looked at: by default on the CPU, or as `set_default_validate_args` says.

    Examples
    --------
    >>> import lucid
    >>> normal = lucid.distributions.Normal(0.0, lucid.ones(3))
    >>> isinstance(normal, lucid.distributions.Distribution), normal.batch_shape, normal.event_shape
    (True, lucid.Size([3]), lucid.Size([]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    arg_constraints: Any = {}
    support: Any = constraints.dependent
    _validate_args: ClassVar[bool | None] = None

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Let parameters and values be checked, on any device, or never, by default."""
        if type(value) is not bool:
            raise ArgumentError(f"set_default_validate_args: value: expected a bool, got {value!r}")
        Distribution._validate_args = value

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Give a family a copy of an inherited constructor, so that Python's errors about a call name the family."""
        super().__init_subclass__(**kwargs)
        made = cls.__init__
        if "__init__" not in vars(cls) and isinstance(made, FunctionType):
            own = FunctionType(made.__code__, made.__globals__, made.__name__, made.__defaults__, made.__closure__)
            cls.__init__ = functools.update_wrapper(own, made)
            own.__kwdefaults__, own.__qualname__ = made.__kwdefaults__, f"{cls.__qualname__}.__init__"

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        if validate_args is not None:
            if type(validate_args) is not bool:
                raise ArgumentError(f"{type(self).__name__}: validate_args: expected a bool, got {validate_args!r}")
            vars(self)["_validate_args"] = validate_args
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        for name, wanted in self._constraints().items():
            # what is made of another parameter when it is asked for is as good as that
            kept = name in vars(self) or type(getattr(type(self), name, None)) is property
            if kept and not constraints.is_dependent(wanted):
                self._check(name, getattr(self, name), wanted)

    def _set(self, validate_args: bool | None, **parameters: Any) -> None:
        """Keep parameters, of one shape, and begin with it."""
        tensors = named_tensors(type(self).__name__, parameters)
        vars(self).update(zip(parameters, tensors, strict=True))
        Distribution.__init__(self, tensors[0].shape, validate_args=validate_args)

    def _constraints(self) -> Mapping[str, Constraint]:
        try:
            return self.arg_constraints
        except NotImplementedError:
            return {}

    def _looks(self, value: Tensor) -> bool:
        """Tell whether values are looked at: on CUDA that waits for the device."""
        return value.device.type == "cpu" if self._validate_args is None else self._validate_args

    def _check(self, name: str, value: Tensor, wanted: Constraint) -> None:
        """Raise unless all elements of a value are in a set, if values are checked."""
        if self._looks(value) and not wanted.check(value.detach()).all().item():
            words = wanted.words or f"in {wanted!r}"
            raise SettingError(f"{type(self).__name__}: expected {name} {words}, got {value.detach()!r}")

    def _like(self) -> Tensor | None:
        """Return the parameter with the dtype of all, or None."""
        for value in vars(self).values():
            like = value._like() if isinstance(value, Distribution) else value  # noqa: SLF001 - of its own kind
            if isinstance(like, Tensor):
                return like
        return None

    def _beside(self, value: Tensor) -> Tensor:
        """Return a value in the dtype that it has beside the parameters."""
        if not isinstance(value, Tensor):
            raise unfit(value, "a Tensor", "value")
        return value_beside(type(self).__name__, value, self._like())

    def _validate_sample(self, value: Tensor) -> Tensor:
        """Return a value as it is beside the parameters; raise if values are checked, and it is not in the support."""
        value = self._beside(value)
        event, shape = self._event_shape, tuple(value.shape)
        if self._validate_args is False:
            # a number stands for an event of such
            shape = (1,) * (len(event) - len(shape)) + shape
        kept = len(shape) - len(event)
        if kept < 0 or any(size not in {1, own} for size, own in zip(shape[kept:], event, strict=True)):
            raise ShapeError(
                f"{type(self).__name__}: expected values whose last dimensions are {tuple(event)}, got shape {shape}"
            )
        if shape[kept:] != tuple(event):
            # what holds for an event does not for its one element
            value = value.expand(*shape[:kept], *event)
        if self._validate_args is False:
            return value
        common_shape(tuple(value.shape), (*self._batch_shape, *event))
        support = self._known_support()
        if support is not None:
            self._check("values", value, support)
        return value

    def _known_support(self) -> Constraint | None:
        """Return the support, and None if only a subclass knows it."""
        try:
            support = self.support
        except NotImplementedError:
            return None
        return None if constraints.is_dependent(support) else support

    def _validate_share(self, value: object) -> Tensor:
        """Return a probability as a tensor; raise if it is none and values are checked, otherwise put NaN there."""
        value = value_beside(type(self).__name__, value, self._like())
        if self._looks(value):
            self._check("probabilities", value, constraints.unit_interval)
            return value
        return where(constraints.unit_interval.check(value), value, math.nan)

    def _bounded(self, value: Tensor) -> Tensor:
        """Return a value moved to the bound that it is beyond, if values are not looked at; for `cdf`."""
        return value if self._looks(value) else within(self._known_support(), value)

    def _safe(self) -> Any:
        """Return a value with a density that has slopes: of counts none, of others a place that they are around."""
        return vars(self).get("loc", 0)

    def _drawn(self, value: Tensor, logs: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the logarithms of densities, by a function of values; minus infinity out of the support.

        It is called with another value there, as the slopes of a masked formula could be NaN. Values that are looked at
        are in the support; others may be NaN, and then stay so.
        """
        support = None if self._looks(value) else self._known_support()
        if support is None or boundless(support):
            return logs(value)
        dims = support.event_dim
        inside, known = support.check(value), all_of(~value.isnan(), dims)
        with no_grad():
            safe = self._safe()
        densities = logs(where(inside.reshape(*inside.shape, *(1 for _ in range(dims))), value, safe))
        return where(known, where(inside, densities, -math.inf), math.nan)

    def _density(self, value: Tensor, logs: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the logarithms of densities as `_drawn` does, of values that are looked at first."""
        return self._drawn(self._validate_sample(value), logs)

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    def _none(self, what: str, why: str = "") -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} has no {what}{why}")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._none("mean")

    @property
    def mode(self) -> Tensor:
        """The value of the largest probability or density."""
        raise self._none("mode")

    @property
    def variance(self) -> Tensor:
        """The mean of the squared distance from the mean."""
        # a family has one of both by a formula: its deviation, where the square would overflow before that does
        if type(self).stddev is Distribution.stddev:
            raise self._none("variance")
        return self.stddev.square()

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws of shape ``sample_shape + batch_shape + event_shape``, without gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """Return ``sample((n,))``."""
        return self.sample((n,))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws that are differentiable functions of the parameters."""
        raise self._none("rsample", ": its draws are no functions of its parameters")

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability, or of its density, at values that broadcast."""
        raise self._none("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of draws less than or equal to the value."""
        raise self._none("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantiles of these probabilities, the inverse of `cdf`."""
        raise self._none("icdf")

    def _above(self, value: Tensor) -> Tensor:
        """Return the probability of draws above a value."""
        # families with a formula of small ones have their own
        return 1 - self.cdf(value)

    def _icdf_above(self, share: Tensor) -> Tensor:
        """Return the inverse of `_above`."""
        return self.icdf(1 - share)

    def entropy(self) -> Tensor:
        """Return the entropy, in nats."""
        raise self._none("entropy")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values that can be drawn, along a new first dimension; without `expand` once for all the batch."""
        raise self._none("finite support")

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Return the distribution with its parameters expanded to another batch shape, without a copy."""
        new: Any = self._get_checked_instance(type(self), _instance)
        shape = self._expanded_shape(batch_shape)
        for name, value in vars(self).items():
            new.__dict__.setdefault(name, self._expanded(name, value, shape))
        vars(new)["_batch_shape"] = shape
        return new

    def _expanded_shape(self, batch_shape: Sequence[int]) -> Size:
        """Return a batch shape with the sizes of this one in place of -1."""
        shape, own = Size(batch_shape), self._batch_shape
        first = len(shape) - len(own)
        return Size(own[i - first] if size == -1 and i >= first else size for i, size in enumerate(shape))

    def _expanded(self, name: str, value: Any, shape: Size) -> Any:
        """Return the value of an attribute in the expanded distribution."""
        kept = len(self._batch_shape)
        if isinstance(value, Distribution):
            return value.expand((*shape, *value.batch_shape[kept:]))
        if (
            isinstance(value, Tensor)
            and not name.startswith("_unbroadcasted")
            and value.shape[:kept] == self._batch_shape
        ):
            return value.expand(*shape, *value.shape[kept:])
        return value

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return the object that `expand` fills: a new one of this class, or one made by a subclass."""
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        """Return the shape of draws."""
        if isinstance(sample_shape, Iterator):
            # a family may need it twice
            raise unfit(sample_shape, "a sequence of sizes, as tuple(sizes) of an iterator, which is read once")
        shape = tuple(sample_shape) if isinstance(sample_shape, Iterable) else sample_shape
        return Size((*sizes_in((shape,)), *self._batch_shape, *self._event_shape))

    def _normal(self, sample_shape: Sequence[int], like: Tensor) -> Tensor:
        """Return standard normal numbers in the shape of draws."""
        return randn(*self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)

    def _uniform(self, sample_shape: Sequence[int], like: Tensor) -> Tensor:
        """Return numbers of [0, 1) in the shape of draws."""
        return rand(*self._extended_shape(sample_shape), dtype=like.dtype, device=like.device)

    def _exponential(self, sample_shape: Sequence[int], like: Tensor) -> Tensor:
        """Return numbers above 0 of the density ``exp(-x)`` in the shape of draws."""
        return like.new_empty(self._extended_shape(sample_shape)).exponential_()

    def _parameter(self) -> Tensor:
        """Return the parameter that was given, of those that can stand for each other."""
        like: Any = self._like()
        return like

    def _nan(self) -> Tensor:
        """Return NaN for undefined moments, in the shape of a draw."""
        return self._parameter().new_full(self._extended_shape(), math.nan)

    def __repr__(self) -> str:
        parameters = {name: vars(self)[name] for name in self._constraints() if name in vars(self)}
        words = (f"{name}: {value if value.numel() == 1 else value.shape}" for name, value in parameters.items())
        return f"{type(self).__name__}({', '.join(words)})"


class Symmetric(Distribution):
    """The base of families that are symmetric about `loc`, and stretched by a positive `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _above(self, value: Tensor) -> Tensor:
        return self.cdf(2 * self.loc - value)

    def _icdf_above(self, share: Tensor) -> Tensor:
        return 2 * self.loc - self.icdf(share)


class ExponentialFamily(Distribution):
    """The base of distributions with the density ``exp(<t(x), theta> - F(theta) + k(x))``.

    A subclass has theta in `_natural_params`, F in `_log_normalizer`, and the mean of k in `_mean_carrier_measure`;
    from them follow its entropy and its divergence from another of its kind, with the derivatives of F.

    Examples
    --------
    >>> import lucid
    >>> isinstance(lucid.distributions.Exponential(1.0), lucid.distributions.ExponentialFamily)
    True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise self._none("natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise self._none("normaliser of natural parameters")

    def _no_carrier(self) -> Any:
        raise self._none("mean carrier measure")

    _mean_carrier_measure: Any = property(_no_carrier)

    def _mean_statistics(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], Tensor]:
        """Return theta, the means of t(x), equal to the slopes of F, and F, all of them with their gradients."""
        thetas = self._natural_params
        # a level of its own: what comes out is on a graph only if a parameter is, in any grad mode
        level = Level(recording=is_grad_enabled())
        with inference_mode(False), enable_grad():
            entered = tuple(level.enter(theta) for theta in thetas)
            with Running(level):
                value = self._log_normalizer(*entered)
            slopes: Any = grad(value.sum(), entered, create_graph=True)
        return thetas, tuple(level.leave(slope) for slope in slopes), level.leave(value)

    def entropy(self) -> Tensor:
        """Return ``F(theta) - <theta, slope of F> - mean of k(x)``."""
        carried = self._mean_carrier_measure
        thetas, slopes, value = self._mean_statistics()
        total = value - carried
        for theta, slope in zip(thetas, slopes, strict=True):
            inner = theta * slope
            total = total - sum_rightmost(inner, inner.dim() - value.dim())
        return total
