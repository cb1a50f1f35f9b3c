"""Distributions made of others: of several dimensions at once, of a function of draws."""

from __future__ import annotations

import math
from numbers import Integral
from typing import TYPE_CHECKING, Any, cast

from lucid.autograd.modes.state import no_grad
from lucid.base.limits import finfo
from lucid.distributions import constraints
from lucid.distributions.constraint_base import all_of
from lucid.distributions.distribution import Distribution, boundless, within
from lucid.distributions.transformations.base import ComposeTransform, Transform, widened
from lucid.distributions.utils import reading, sum_rightmost, value_beside
from lucid.errors import ArgumentError, SettingError, ShapeError
from lucid.ops.elementwise.selection import where
from lucid.tensor import Tensor

# transforms and other distributions have their own parts under an underscore
# pyright: reportPrivateUsage=false

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.distributions.constraints import Constraint

    _Side = Callable[[Tensor], Tensor]


def checked_distribution(value: object, title: str) -> Any:
    """Return a distribution that was given; raise if it is none."""
    if not isinstance(value, Distribution):
        raise ArgumentError(f"{title}: expected a distribution, got {type(value).__name__}")
    return value


class Independent(Distribution):
    """A distribution with the last `reinterpreted_batch_ndims` batch dimensions as part of one draw.

    Its logarithms of densities are sums over them.

    >>> import lucid
    >>> from lucid.distributions import Independent, Normal
    >>> vector = Independent(Normal(lucid.zeros(2, 3), 1.0), 1)
    >>> vector.batch_shape, vector.event_shape
    (lucid.Size([2]), lucid.Size([3]))
    """

    arg_constraints = {}

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        base = checked_distribution(base_distribution, "Independent: base_distribution")
        batch, count = base.batch_shape, reinterpreted_batch_ndims
        if not isinstance(count, Integral) or not 0 <= count <= len(batch):
            raise SettingError(
                f"Independent: reinterpreted_batch_ndims: expected a whole number from 0 to {len(batch)}, the batch "
                f"dimensions of the base, got {count!r}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base, int(count)
        kept = len(batch) - self.reinterpreted_batch_ndims
        super().__init__(batch[:kept], (*batch[kept:], *base.event_shape), validate_args)

    has_rsample = reading("base_dist.has_rsample", "That of the base.")

    @property
    def has_enumerate_support(self) -> bool:
        """That of the base, unless some of its dimensions are part of one draw."""
        return self.base_dist.has_enumerate_support and not self.reinterpreted_batch_ndims

    @constraints.dependent_property
    def support(self) -> Any:
        """That of the base, in all of these dimensions."""
        count, base = self.reinterpreted_batch_ndims, self.base_dist.support
        return constraints.independent(base, count) if count and not constraints.is_dependent(base) else base

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    @property
    def stddev(self) -> Tensor:
        return self.base_dist.stddev

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        if "_validate_args" in vars(self):
            # by default the base looks at them, by its own setting
            value = self._validate_sample(value)
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def _safe(self) -> Any:
        return self.base_dist._safe()  # noqa: SLF001 - a distribution of its own

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: values of several dimensions together are not enumerated")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


def _parts(transforms: list[Transform]) -> list[Transform]:
    """Return transforms in a row, with the parts of those that are several."""
    nested = ([each] if type(each) is not ComposeTransform else _parts(each.parts) for each in transforms)
    return [part for parts in nested for part in parts]


def _rounding(value: Tensor) -> float:
    """Return the relative distance from a bound that is rounding."""
    return max(1e-6, 8 * finfo(value.dtype).eps)


def _nearly(image: Constraint, y: Tensor) -> Tensor:
    """Tell of each event whether it is in a set, up to rounding, or is NaN."""
    return image.check(y) | image.check(y * (1 - _rounding(y))) | ~all_of(~y.isnan(), image.event_dim)


class TransformedDistribution(Distribution):
    """The distribution of a random variable after one or more transforms.

    With ``y = f(x)`` the density of y is that of x over the absolute determinant of the derivative of f.

    >>> import lucid
    >>> from lucid.distributions import AffineTransform, Normal, TransformedDistribution
    >>> TransformedDistribution(Normal(0.0, 1.0), [AffineTransform(1.0, 2.0)]).log_prob(lucid.tensor(1.0))
    tensor(-1.6121)
    """

    arg_constraints = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        title = type(self).__name__
        base = checked_distribution(base_distribution, f"{title}: base_distribution")
        chain: Any = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(chain, list | tuple) or any(not isinstance(each, Transform) for each in cast("Any", chain)):
            raise ArgumentError(f"{title}: transforms: expected a Transform or a list of them, got {transforms!r}")
        self.transforms: list[Transform] = [*cast("Any", chain)]
        transform = ComposeTransform(self.transforms)
        shape = (*base.batch_shape, *base.event_shape)
        taken = transform.domain.event_dim
        if len(shape) < taken:
            raise ShapeError(f"{title}: expected a base of at least {taken} dimensions, got shape {shape}")
        transformed = tuple(transform.forward_shape(shape))
        wide = tuple(transform.inverse_shape(transformed))
        own = len(base.event_shape)
        if wide[len(wide) - own :] != tuple(base.event_shape):
            raise ShapeError(
                f"{title}: expected transforms that keep the shape of a draw of the base, {tuple(base.event_shape)}, "
                f"got some that widen it to {wide[len(wide) - own :]}, of repeated numbers; use a base of that shape"
            )
        if wide != shape:
            base = base.expand(wide[: len(wide) - own])
        if taken > own:
            base = Independent(base, taken - own)
        self.base_dist = base
        kept = len(transformed) - transform.codomain.event_dim - max(own - taken, 0)
        super().__init__(transformed[:kept], transformed[kept:], validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new: Any = self._get_checked_instance(type(self), _instance)
        shape = self._expanded_shape(batch_shape)
        # transforms may change the shape of an event: the base's batch is what the whole's was made of
        back = tuple(ComposeTransform(self.transforms).inverse_shape((*shape, *self.event_shape)))
        base = self.base_dist.expand(back[: len(back) - len(self.base_dist.event_shape)])
        for name, value in {**vars(self), "base_dist": base}.items():
            new.__dict__.setdefault(name, value if name == "base_dist" else self._expanded(name, value, shape))
        vars(new)["_batch_shape"] = shape
        return new

    has_rsample = reading("base_dist.has_rsample")

    def _support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        return widened(self.transforms[-1].codomain, len(self.event_shape))

    support: Any = constraints.dependent_property(_support, is_discrete=False)

    def _through(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._through(self.base_dist.rsample(sample_shape))

    def _points(self) -> list[Tensor]:
        """Return a value that has a density, before the transforms and after each."""
        base = self.base_dist
        with no_grad():
            x = value_beside(type(self).__name__, base._safe(), base._like())  # noqa: SLF001 - a distribution of its own
            points = [x.expand(*base.batch_shape, *base.event_shape)]
            for part in _parts(self.transforms):
                points.append(part(points[-1]))
        return points

    def _safe(self) -> Any:
        return self._points()[-1]

    def _guards(self, chain: list[Transform]) -> list[Constraint | None]:
        """Return the images of transforms in a row that the support does not tell of: it is that of the last one."""
        # that of a family is its own
        if type(self).support is not TransformedDistribution.support:
            return [None for _ in chain]
        images = [part.codomain for part in chain[:-1]]
        return [None if constraints.is_dependent(each) or boundless(each) else each for each in images] + [None]

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._validate_sample(value)
        if any(part._made(value) for part in _parts(self.transforms)[-1:]):  # noqa: SLF001 - of its own
            return self._log_density(value)
        return self._drawn(value, self._log_density)

    def _log_density(self, value: Tensor) -> Tensor:
        y, dims, total = value, len(self.event_shape), 0.0
        support = self.base_dist._known_support()  # noqa: SLF001 - one of its own kind
        counted = support is not None and support.is_discrete
        chain = _parts(self.transforms)
        guards, looks, out, points = self._guards(chain), self._looks(value), None, None
        for place, (transform, image) in reversed([*enumerate(zip(chain, guards, strict=True))]):
            if image is not None and not transform._made(y):  # noqa: SLF001 - of its own
                met = _nearly(image, y)
                if looks and not met.all().item():
                    self._check(f"results of {transform!r}", y, image)
                elif not looks:
                    met = all_of(met, dims - image.event_dim)
                    out = ~met if out is None else out | ~met
                    # not before a draw has been found in the caches, which these go through as well
                    points = points or self._points()
                    y = where(met.reshape(*met.shape, *(1 for _ in range(dims))), y, points[place + 1])
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            if not counted:
                # a probability stays what it is, a density does not
                term = transform.log_abs_det_jacobian(x, y)
                total = total - sum_rightmost(term, dims - transform.domain.event_dim)
            y = x
        logs = total + sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))
        return logs if out is None else where(out, -math.inf, logs)

    def _turned(self, rising: _Side, falling: _Side, value: Tensor, spare: Any) -> Tensor:
        """Return one function of a value if the transforms rise, and another if they fall.

        Of several signs each is asked for `spare` where the other is: it may have no finite slope at the value.
        """
        sign: Any = ComposeTransform(self.transforms).sign
        if not isinstance(sign, Tensor):
            return falling(value) if sign < 0 else rising(value)
        falls = sign < 0
        return where(falls, falling(where(falls, value, spare)), rising(where(falls, spare, value)))

    def _moved(self, value: Tensor, image: Constraint | None) -> Tensor:
        """Return a value moved to the bound that it is beyond; raise if values are looked at, and it is not rounding.

        The bounds have a share, also of those that they do not belong to.
        """
        inside = within(image, value)
        if image is not None and self._looks(value):
            beyond = (value - inside).abs() > _rounding(value) * value.abs()
            if beyond.any().item():
                self._check("values", value, image)
        return inside

    def cdf(self, value: Tensor) -> Tensor:
        base = self.base_dist
        return self._share(base.cdf, base._above, value)  # noqa: SLF001 - one of its own kind

    def _above(self, value: Tensor) -> Tensor:
        base = self.base_dist
        return self._share(base._above, base.cdf, value)  # noqa: SLF001 - one of its own kind

    def _share(self, rising: _Side, falling: _Side, value: Tensor) -> Tensor:
        with no_grad():
            spare = self.base_dist._safe()  # noqa: SLF001 - one of its own kind
        return self._turned(rising, falling, self._untransformed(value), spare)

    def _untransformed(self, value: Tensor) -> Tensor:
        """Return the value before the transforms, in the support of the base."""
        value = self._moved(self._beside(value), self._known_support())
        chain = _parts(self.transforms)
        for transform, image in reversed([*zip(chain, self._guards(chain), strict=True)]):
            value = transform.inv(self._moved(value, image))
        # a base that a family makes for itself looks at nothing
        if not constraints.is_dependent(self.base_dist.support):
            self._check("values before the transforms", value, self.base_dist.support)
        return self.base_dist._validate_sample(value)  # noqa: SLF001 - a distribution of its own

    def icdf(self, value: Tensor) -> Tensor:
        base, value = self.base_dist, self._validate_share(value)
        return self._through(self._turned(base.icdf, base._icdf_above, value, 0.5))  # noqa: SLF001 - its own kind

    def _icdf_above(self, share: Tensor) -> Tensor:
        base = self.base_dist
        return self._through(self._turned(base._icdf_above, base.icdf, share, 0.5))  # noqa: SLF001 - its own kind


class Half(TransformedDistribution):
    """The base of absolute values of numbers with a density symmetric about 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    scale: Tensor = reading("base_dist.scale", "That of the numbers on both sides.")

    @property
    def mode(self) -> Tensor:
        return self.scale * 0

    def log_prob(self, value: Tensor) -> Tensor:
        return self._density(value, lambda value: self.base_dist.log_prob(value) + math.log(2))

    def _above(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist._above(self._bounded(value))  # noqa: SLF001 - one of its own kind

    def _icdf_above(self, share: Tensor) -> Tensor:
        return self.base_dist._icdf_above(0.5 * share)  # noqa: SLF001 - one of its own kind

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
