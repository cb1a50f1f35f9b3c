"""What all distributions share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lucid.arguments import unfit
from lucid.autograd.modes.state import no_grad
from lucid.errors import ArgumentError, SettingError
from lucid.ops.base.dims import sizes_in
from lucid.ops.creation.data import tensor
from lucid.ops.reduction.sums import all as all_of
from lucid.ops.shape.broadcasting import broadcast_tensors
from lucid.tensor import Tensor
from lucid.tensor.layout import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Distribution", "broadcast_all"]


def broadcast_all(name: str, **parameters: Any) -> list[Tensor]:
    """Return parameters as tensors of one shape; numbers get dtype and device of the tensors among them."""
    like = next((value for value in parameters.values() if isinstance(value, Tensor)), None)
    found: list[Tensor] = []
    for parameter, value in parameters.items():
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, int | float):
            number = float(value)
            made = tensor(number) if like is None else tensor(number, dtype=like.dtype, device=like.device)
            found.append(made)
        else:
            raise ArgumentError(f"{name}: {parameter}: expected a tensor or a number, got {type(value).__name__}")
    return list(broadcast_tensors(*found))


class Distribution:
    """The base of distributions: what they are over, and how `sample` is made of `rsample`.

    Parameters
    ----------
    batch_shape : tuple of int
        The shape of the parameters.
    validate_args : bool, optional
        Whether parameters and values are looked at: by default on the CPU alone.
    """

    has_rsample = False
    has_enumerate_support = False

    def __init__(self, batch_shape: Sequence[int] = (), validate_args: bool | None = None) -> None:
        if validate_args is not None and type(validate_args) is not bool:
            raise ArgumentError(f"{type(self).__name__}: validate_args: expected a bool, got {validate_args!r}")
        self._batch_shape = Size(batch_shape)
        self._validate_args = validate_args

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw: that of a number."""
        return Size(())

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def variance(self) -> Tensor:
        """The mean of the squared distance from the mean."""
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws of shape ``sample_shape + batch_shape``, which no gradient flows through."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws that are differentiable functions of the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample: its draws are no functions of its parameters")

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability, or of its density, at values that broadcast."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of what is at most the value."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return below what a draw is with these probabilities."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def entropy(self) -> Tensor:
        """Return the entropy, in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values that can be drawn, along a new first dimension."""
        raise NotImplementedError(f"{type(self).__name__} has no finite support")

    def _shape(self, sample_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of draws."""
        return (*sizes_in(tuple(sample_shape)), *self.batch_shape)

    def _check(self, name: str, value: Tensor, met: Tensor, wanted: str) -> None:
        """Raise unless a condition holds everywhere, where values are looked at."""
        looks = value.device.type == "cpu" if self._validate_args is None else self._validate_args
        if looks and not all_of(met).item():
            raise SettingError(f"{type(self).__name__}: expected {name} {wanted}, got {value.detach()!r}")

    def _parameter(self) -> Tensor:
        """Return the parameter that was given, of those that can stand for each other."""
        return next(value for value in vars(self).values() if isinstance(value, Tensor))

    def _check_value(self, value: Tensor, met: Callable[[], Tensor], wanted: str) -> None:
        """Raise unless values are ones that can be drawn, for which ``met()`` holds."""
        if not isinstance(value, Tensor):
            raise unfit(value, "a Tensor", "value")
        self._check("values", value, met(), wanted)

    def __repr__(self) -> str:
        shown = {name.lstrip("_"): value for name, value in vars(self).items() if isinstance(value, Tensor)}
        words = (f"{name}: {value if value.numel() == 1 else value.shape}" for name, value in shown.items())
        return f"{type(self).__name__}({', '.join(words)})"
