"""Embedding, of single rows and of bags of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from lucid.autograd.modes.state import no_grad
from lucid.errors import SettingError, ShapeError
from lucid.nn import functional as F
from lucid.nn import init
from lucid.nn.layers.layer import declared, empty_parameter
from lucid.nn.module.module import Module
from lucid.nn.parameter import Parameter
from lucid.settings.ranges import words

if TYPE_CHECKING:
    from dataclasses import InitVar

    from lucid.base.device import Device
    from lucid.base.dtype import dtype as Dtype
    from lucid.tensor import Tensor


def sizes_of(embeddings: Tensor) -> tuple[int, ...]:
    """Return how many rows there are, and how long they are; a ShapeError if it is no matrix."""
    if embeddings.ndim != 2:
        raise ShapeError(f"embeddings parameter is expected to be 2-dimensional, got shape {tuple(embeddings.shape)}")
    return embeddings.shape


class Table(Module):
    """The base of layers that read rows of a table, `weight`."""

    weight: Parameter
    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def register_table(self, rows: Tensor | None, device: Device, dtype: Dtype | None) -> None:
        """Register the table, of the given rows or of drawn ones."""
        count, shape = self.num_embeddings, (self.num_embeddings, self.embedding_dim)
        if self.padding_idx is not None:
            if not -count <= self.padding_idx < count:
                raise SettingError(
                    f"padding_idx must be within num_embeddings: expected one in [{-count}, {count - 1}], "
                    f"got {self.padding_idx}"
                )
            self.padding_idx %= count
        if rows is None:
            self.weight = empty_parameter(shape, device, dtype)
            self.reset_parameters()
        else:
            if rows.shape != shape:
                raise ShapeError(f"expected weights of shape {shape}, got {tuple(rows.shape)}")
            self.weight = Parameter(rows)

    def reset_parameters(self) -> None:
        """Draw the rows anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight.detach()[self.padding_idx].zero_()


@declared
class Embedding(Table):
    """Returns the rows of `weight` that integers name, shape ``(*input.shape, embedding_dim)``.

    `weight`, a parameter of shape (num_embeddings, embedding_dim), is standard normal at first, and zero in the row
    `padding_idx`, which gets no gradient. The other settings are those of `lucid.nn.functional.embedding`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Embedding(10, 3)(lucid.tensor([[1, 2], [4, 5]])).shape
    lucid.Size([2, 2, 3])
    """

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None = None
    max_norm: float | None = None
    norm_type: float = 2.0
    scale_grad_by_freq: bool = False
    sparse: bool = False
    _weight: InitVar[Tensor | None] = None
    _freeze: InitVar[bool] = False
    device: InitVar[Device] = None
    dtype: InitVar[Dtype | None] = None

    def __post_init__(self, _weight: Tensor | None, _freeze: bool, device: Device, dtype: Dtype | None) -> None:
        self.register_table(_weight, device, dtype)
        self.weight.requires_grad_(not _freeze)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Return an embedding that shares the memory of the given rows; with `freeze` they get no gradient.

        `embeddings` has the shape (num_embeddings, embedding_dim), or a ShapeError is raised.
        """
        count, width = sizes_of(embeddings)
        return cls(
            count, width, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
            _weight=embeddings, _freeze=freeze,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        usual = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "sparse": False}
        for name, default in usual.items():
            if (value := getattr(self, name)) != default:
                parts.append("sparse=True" if name == "sparse" else f"{name}={value}")
        return ", ".join(parts)


@declared
class EmbeddingBag(Table):
    """Returns the sum, mean or maximum of the rows of `weight` that each bag of integers names, (B, embedding_dim).

    `weight`, a parameter of shape (num_embeddings, embedding_dim), is standard normal at first, and zero in the row
    `padding_idx`. The other settings are those of `lucid.nn.functional.embedding_bag`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.EmbeddingBag(10, 3)(lucid.tensor([1, 2, 4, 5]), lucid.tensor([0, 3])).shape
    lucid.Size([2, 3])
    """

    _ranges: ClassVar = {"mode": words("sum", "mean", "max")}
    num_embeddings: int
    embedding_dim: int
    max_norm: float | None = None
    norm_type: float = 2.0
    scale_grad_by_freq: bool = False
    mode: str = "mean"
    sparse: bool = False
    _weight: InitVar[Tensor | None] = None
    include_last_offset: bool = False
    padding_idx: int | None = None
    device: InitVar[Device] = None
    dtype: InitVar[Dtype | None] = None

    def __post_init__(self, _weight: Tensor | None, device: Device, dtype: Dtype | None) -> None:
        self.register_table(_weight, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Return bags that share the memory of the given rows; with `freeze` the rows get no gradient.

        `embeddings` has the shape (num_embeddings, embedding_dim), or a ShapeError is raised.
        """
        count, width = sizes_of(embeddings)
        made = cls(
            count, width, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset,
            padding_idx,
        )  # fmt: skip
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        usual = {"max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "mode": None, "padding_idx": None}
        parts += [f"{name}={value!r}" for name, default in usual.items() if (value := getattr(self, name)) != default]
        return ", ".join(parts)
