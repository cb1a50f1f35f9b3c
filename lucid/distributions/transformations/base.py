"""The base of transforms, the inverse of one, and several of them in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from lucid.autograd.modes.state import is_grad_enabled, is_inference_mode_enabled
from lucid.base.dtype import get_default_dtype
from lucid.distributions import constraints
from lucid.distributions.distribution import Distribution
from lucid.distributions.utils import is_whole, reading, sum_rightmost, value_beside, version
from lucid.errors import ArgumentError, SettingError
from lucid.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lucid.distributions.constraints import Constraint


def same(first: object, second: object) -> bool:
    """Tell whether two settings are equal; the host waits for the elements of tensors."""
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        sizes = (tuple(getattr(each, "shape", ()))[::-1] for each in (first, second))
        if any(one != two and 1 not in {one, two} for one, two in zip(*sizes, strict=False)):
            return False
        met: Any = first == second
        return bool(met.all().item()) if isinstance(met, Tensor) else bool(met)
    return bool(first == second)


def tensors_of(value: object) -> list[Tensor]:
    """Return the tensors among the settings of a transform or the parameters of a distribution, and of their parts."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [each for part in cast("Any", value) for each in tensors_of(part)]
    if isinstance(value, _InverseTransform):
        return tensors_of(value.inv)
    if not isinstance(value, Transform | Distribution):
        return []
    parts = (part for name, part in vars(value).items() if name not in {"_kept", "_inv", "_as_kept"})
    return [each for part in parts for each in tensors_of(part)]


class Transform:
    """A function of a random variable, called by its instances, and if `bijective` its inverse, `inv`.

    A subclass has `domain` and `codomain`, constraints of what it takes and gives; `_call` and, or, `_inverse`; and
    where it is bijective `log_abs_det_jacobian`, the logarithm of the absolute determinant of its derivative, of x and
    y both. With a `cache_size` of 1 the last x and y are kept, so that the inverse of that y is that x, as long as
    neither these nor the settings change in place.

    >>> import lucid
    >>> exp = lucid.distributions.ExpTransform()
    >>> exp(lucid.tensor(0.0)), exp.inv(lucid.tensor(1.0)), exp.log_abs_det_jacobian(lucid.tensor(3.0), None)
    (tensor(1.), tensor(0.), tensor(3.))
    """

    bijective: Any = False
    domain: Any
    codomain: Any
    _settings: tuple[str, ...] | None = None
    """By which attributes two of one class are equal; None where each equals itself alone."""
    _takes_whole = True
    """Whether whole numbers stay such: otherwise they have the default dtype."""

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in {0, 1}:
            raise SettingError(f"{type(self).__name__}: expected a cache_size of 0 or 1, got {cache_size!r}")
        self._cache_size = cache_size
        self._inv: Any = None
        self._kept: tuple[Any, Any] = (None, None)
        self._as_kept: tuple[Any, bool] = (None, False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None, "_kept": (None, None)}

    @property
    def event_dim(self) -> int:
        """How many dimensions one event has, before and after."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise SettingError(
                f"{type(self).__name__}: ask domain or codomain: their events have not as many dimensions"
            )
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse; its own inverse is this transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    def _no_sign(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    sign: Any = property(_no_sign, doc="1 where a bijective function of numbers rises, -1 where it falls.")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same transform with a cache of this size."""
        return self if self._cache_size == cache_size else self._recached(cache_size)

    def _recached(self, cache_size: int) -> Transform:
        """Return a new transform of the same settings."""
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self).__name__} has no with_cache")

    def __eq__(self, other: object) -> bool:
        if self is other or self._settings is None or type(self) is not type(other):
            return self is other
        return all(same(getattr(self, name), getattr(other, name)) for name in self._settings)

    def __hash__(self) -> int:
        return hash(type(self)) if self._settings is not None else id(self)

    def __call__(self, x: Tensor) -> Tensor:
        """Return y for x."""
        if self._is_kept(x, 0):
            return self._kept[1]
        x = self._read(x)
        return self._keep(x, self._call(x))[1]

    def _read(self, value: Tensor) -> Tensor:
        value = value_beside(type(self).__name__, value)
        return value if self._takes_whole or not is_whole(value) else value.to(get_default_dtype())

    def _inv_call(self, y: Tensor) -> Tensor:
        """Return x for y."""
        if self._is_kept(y, 1):
            return self._kept[0]
        y = self._read(y)
        return self._keep(self._inverse(y), y)[0]

    def _keep(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if self._cache_size:
            self._kept = x, y
            self._as_kept = self._state(), is_grad_enabled()
        return x, y

    def _made(self, y: Tensor) -> bool:
        """Tell whether y is in the cache, so that it is in the image, however it was rounded."""
        return self._is_kept(y, 1)

    def _state(self) -> list[Any]:
        """Return the identities, versions and needs of gradients of x, y and the tensors of the settings."""
        return [(id(each), version(each), each.requires_grad) for each in (*self._kept, *tensors_of(self))]

    def _is_kept(self, value: Tensor, place: int) -> bool:
        """Tell whether the other one of x and y is in the cache as it would be computed now."""
        if value is not self._kept[place] or value is None:
            return False
        other, (state, was_recorded) = self._kept[1 - place], self._as_kept
        if state != self._state():
            return False
        if other.is_inference() and not (value.is_inference() or is_inference_mode_enabled()):
            return False
        # what was made without a graph serves where there would be none
        return (
            was_recorded or not is_grad_enabled() or not any(each.requires_grad for each in (value, *tensors_of(self)))
        )

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no forward function")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the absolute determinant of dy/dx, of each event."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape of y for that of x."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape of x for that of y."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform, with one cache for both."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)  # noqa: SLF001 - one of its own kind
        self._inv = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        return self._inv.domain

    bijective = reading("_inv.bijective")
    sign = reading("_inv.sign", Transform.sign.__doc__)

    @property
    def inv(self) -> Transform:
        return self._inv

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __hash__(self) -> int:
        return hash((_InverseTransform, self._inv))

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)  # noqa: SLF001 - one of its own kind

    def _made(self, y: Tensor) -> bool:
        return self._inv._is_kept(y, 0)  # noqa: SLF001 - one of its own kind

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"


def _dims_needed(parts: list[Transform], ends: str, starts: str) -> int:
    """Return how many dimensions an event has at the start of a chain that is walked from its end."""
    needed = getattr(parts[-1], ends).event_dim
    for part in reversed(parts):
        start, end = getattr(part, starts).event_dim, getattr(part, ends).event_dim
        needed = max(needed + start - end, start)
    return needed


def widened(constraint: Constraint, dims: int) -> Constraint:
    """Return a constraint on events of so many dimensions, if it is on fewer."""
    return (
        constraints.independent(constraint, dims - constraint.event_dim) if dims > constraint.event_dim else constraint
    )


class ComposeTransform(Transform):
    """Transforms in a row, `parts`, the first one first; of none it is the identity.

    >>> import lucid
    >>> from lucid.distributions import AffineTransform, ComposeTransform, ExpTransform
    >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])(lucid.tensor(0.5))
    tensor(2.7183)
    """

    _settings = ("parts",)

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        if isinstance(parts, Transform):
            raise ArgumentError("ComposeTransform: parts: expected a list of transforms, got one; write [transform]")
        parts = list(parts)
        for part in parts:
            if not isinstance(part, Transform):
                raise ArgumentError(f"ComposeTransform: parts: expected transforms, got {type(part).__name__}")
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        if not self.parts:
            return constraints.real
        return widened(self.parts[0].domain, _dims_needed(self.parts, "codomain", "domain"))

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        if not self.parts:
            return constraints.real
        return widened(self.parts[-1].codomain, _dims_needed(self.parts[::-1], "domain", "codomain"))

    @property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            vars(self._inv)["_inv"] = self
        return self._inv

    def _recached(self, cache_size: int) -> Transform:
        return ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        x = value_beside(type(self).__name__, x)
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return x.new_zeros(x.shape)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        dims: int = self.domain.event_dim
        total: Any = 0.0
        for part, before, after in zip(self.parts, points[:-1], points[1:], strict=True):
            term = part.log_abs_det_jacobian(before, after)
            total = total + sum_rightmost(term, dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Sequence[int]) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part).replace("\n", "\n    ") for part in self.parts)
        return f"ComposeTransform(\n    {parts}\n)"


identity_transform = ComposeTransform([])
