"""Transforms made of others: for more dimensions of an event, for pieces of one, and of shapes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lucid.distributions import constraints
from lucid.distributions.constraint_base import from_end, of_pieces
from lucid.distributions.transformations.base import Transform
from lucid.distributions.utils import count_of, reading, sum_rightmost
from lucid.errors import ArgumentError, SettingError, ShapeError
from lucid.ops.base.dims import common_shape
from lucid.ops.shape.joining import cat, stack
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lucid.distributions.constraints import Constraint
    from lucid.tensor import Tensor


def _is_transform(value: object, name: str) -> Any:
    if not isinstance(value, Transform):
        raise ArgumentError(f"{name}: expected a Transform, got {type(value).__name__}")
    return value


def _ends(shape: Sequence[int], wanted: Size) -> tuple[int, ...]:
    """Return the dimensions before those of an event."""
    kept = len(shape) - len(wanted)
    if kept < 0 or tuple(shape[kept:]) != tuple(wanted):
        raise ShapeError(f"ReshapeTransform: expected a shape that ends in {tuple(wanted)}, got {tuple(shape)}")
    return tuple(shape[:kept])


class IndependentTransform(Transform):
    """A transform of events of `reinterpreted_batch_ndims` more dimensions, with determinants multiplied over them.

    >>> import lucid
    >>> from lucid.distributions import ExpTransform, IndependentTransform
    >>> x = lucid.tensor([1.0, 2.0])
    >>> IndependentTransform(ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
    tensor(3.)
    """

    _settings = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        base = _is_transform(base_transform, "IndependentTransform: base_transform")
        self.base_transform: Transform = base.with_cache(cache_size)
        name = "IndependentTransform: reinterpreted_batch_ndims"
        self.reinterpreted_batch_ndims = count_of(name, reinterpreted_batch_ndims)

    def _recached(self, cache_size: int) -> Transform:
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = reading("base_transform.bijective")
    sign = reading("base_transform.sign", Transform.sign.__doc__)

    def _call(self, x: Tensor) -> Tensor:
        self._check_dim(x, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check_dim(y, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def _check_dim(self, value: Tensor, least: int) -> None:
        if value.dim() < least:
            raise ShapeError(f"IndependentTransform: expected {least} dimensions or more, got {value.dim()}")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Events of `in_shape` in another shape, `out_shape`, of as many elements.

    >>> import lucid
    >>> lucid.distributions.ReshapeTransform((4,), (2, 2))(lucid.zeros(3, 4)).shape
    lucid.Size([3, 2, 2])
    """

    bijective = True
    _settings = ("in_shape", "out_shape")

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise SettingError(
                f"ReshapeTransform: expected shapes of as many elements, got {tuple(in_shape)} and {tuple(out_shape)}"
            )

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _recached(self, cache_size: int) -> Transform:
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return Size((*_ends(shape, self.in_shape), *self.out_shape))

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return Size((*_ends(shape, self.out_shape), *self.in_shape))


def _with_length(shape: Sequence[int], dim: int, length: int) -> tuple[int, ...]:
    """Return a shape with another size of one dimension."""
    sizes = [*shape]
    if not -len(sizes) <= dim < len(sizes):
        raise ShapeError(f"CatTransform: expected a shape with a dimension {dim}, got {tuple(shape)}")
    sizes[dim] = length
    return tuple(sizes)


def lengths_after(
    parts: Sequence[Transform], lengths: Sequence[int], dim: int, shape: Sequence[int] | None = None
) -> list[int]:
    """Return the lengths of pieces of a dimension, `lengths` long, after their transforms.

    A dimension counted from the start is one of the batch, whose length no transform changes. The other sizes of
    `shape` are looked at by transforms of several dimensions alone.
    """
    after: list[int] = []
    for part, length in zip(parts, lengths, strict=True):
        if dim >= 0 or dim + part.domain.event_dim < 0:
            after.append(length)
            continue
        sizes = shape or (1,) * max(part.domain.event_dim, -dim)
        after.append(part.forward_shape(_with_length(sizes, dim, length))[dim])
    return after


class _Pieces(Transform):
    """The base of transforms of pieces of a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        super().__init__(cache_size)
        each = [_is_transform(part, f"{type(self).__name__}: tseq") for part in tseq]
        if not each:
            raise SettingError(f"{type(self).__name__}: tseq: expected one transform or more, got none")
        self.transforms: list[Transform] = [part.with_cache(cache_size) for part in each] if cache_size else each
        self.dim = dim

    @property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.transforms)

    def _split(self, value: Tensor, back: bool = False) -> Sequence[Tensor]:
        """Return the pieces of x, or of y."""
        raise NotImplementedError

    def _joined(self, pieces: Sequence[Tensor], dim: int) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._split(x), strict=True)
        return self._joined([part(piece) for part, piece in pieces], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._split(y, back=True), strict=True)
        return self._joined([part.inv(piece) for part, piece in pieces], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pieces = zip(self.transforms, self._split(x), self._split(y, back=True), strict=True)
        terms = [part.log_abs_det_jacobian(before, after) for part, before, after in pieces]
        events = [part.domain.event_dim for part in self.transforms]
        dim = from_end(self.dim, x.dim())
        return of_pieces(terms, events, dim, self.domain.event_dim, sum_rightmost, self._joined)


class CatTransform(_Pieces):
    """A transform for each of some pieces, `lengths` long, of a dimension.

    >>> import lucid
    >>> from lucid.distributions import CatTransform, ExpTransform, identity_transform
    >>> CatTransform([identity_transform, ExpTransform()], lengths=[2, 1])(lucid.zeros(3))
    tensor([0., 0., 1.])
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise SettingError(f"CatTransform: expected {len(self.transforms)} lengths, got {len(self.lengths)}")

    @property
    def event_dim(self) -> int:
        return max(part.event_dim for part in self.transforms)

    @property
    def length(self) -> int:
        """How long all pieces are together."""
        return sum(self.lengths)

    def _recached(self, cache_size: int) -> Transform:
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _lengths(self, shape: Sequence[int], back: bool) -> list[int]:
        """Return the lengths of the pieces of an x, or of a y, with parts that may be longer or shorter."""
        if not back:
            return self.lengths
        return lengths_after(self.transforms, self.lengths, from_end(self.dim, len(shape)), shape)

    def _split(self, value: Tensor, back: bool = False) -> Sequence[Tensor]:
        return value.split(self._lengths(value.shape, back), self.dim)

    def _joined(self, pieces: Sequence[Tensor], dim: int) -> Tensor:
        return cat(pieces, dim)

    def _shape(self, shape: Sequence[int], back: bool) -> Size:
        pieces = [_with_length(shape, self.dim, length) for length in self._lengths(shape, back)]
        parts = zip(self.transforms, pieces, strict=True)
        shapes = [part.inverse_shape(piece) if back else part.forward_shape(piece) for part, piece in parts]
        wide = common_shape(*(_with_length(each, self.dim, 1) for each in shapes))
        return Size(_with_length(wide, self.dim, sum(each[self.dim] for each in shapes)))

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self._shape(shape, back=False)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self._shape(shape, back=True)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.cat([part.domain for part in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        lengths = lengths_after(self.transforms, self.lengths, self.dim)
        return constraints.cat([part.codomain for part in self.transforms], self.dim, lengths)


class StackTransform(_Pieces):
    """A transform for each index of a dimension.

    >>> import lucid
    >>> from lucid.distributions import ExpTransform, StackTransform, identity_transform
    >>> StackTransform([identity_transform, ExpTransform()], dim=-1)(lucid.zeros(2))
    tensor([0., 1.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _recached(self, cache_size: int) -> Transform:
        return StackTransform(self.transforms, self.dim, cache_size)

    def _split(self, value: Tensor, back: bool = False) -> Sequence[Tensor]:
        pieces = value.unbind(self.dim)
        if len(pieces) != len(self.transforms):
            raise ShapeError(
                f"StackTransform: expected size {len(self.transforms)} in dimension {self.dim}, got shape "
                f"{tuple(value.shape)}"
            )
        return pieces

    def _joined(self, pieces: Sequence[Tensor], dim: int) -> Tensor:
        return stack(pieces, dim)

    def _shape(self, shapes: Callable[[Transform, tuple[int, ...]], Any], shape: Sequence[int]) -> Size:
        rest = [*shape]
        if not -len(rest) <= self.dim < len(rest):
            raise ShapeError(f"StackTransform: expected a shape with a dimension {self.dim}, got {tuple(shape)}")
        size = rest.pop(self.dim)
        wide = common_shape(*(tuple(shapes(part, tuple(rest))) for part in self.transforms))
        place = self.dim if self.dim >= 0 else len(wide) + 1 + self.dim
        return Size((*wide[:place], size, *wide[place:]))

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return self._shape(lambda part, piece: part.forward_shape(piece), shape)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return self._shape(lambda part, piece: part.inverse_shape(piece), shape)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.stack([part.domain for part in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.stack([part.codomain for part in self.transforms], self.dim)
