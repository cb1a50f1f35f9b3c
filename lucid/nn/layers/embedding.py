"""Embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.arguments import checked
from lucid.autograd.modes.state import no_grad
from lucid.errors import IndexOutOfRangeError, ShapeError
from lucid.nn import functional as F
from lucid.nn import init
from lucid.nn.module.module import Module
from lucid.nn.module.parameters import empty_parameter
from lucid.nn.parameter import Parameter

if TYPE_CHECKING:
    from typing import Self

    from lucid.backend.device import Device
    from lucid.backend.dtype import dtype as Dtype
    from lucid.tensor import Tensor


class Embedding(Module):
    """Returns the rows of `weight` that integers name, shape ``(*input.shape, embedding_dim)``.

    `weight`, a parameter of shape (num_embeddings, embedding_dim), is standard normal at first, and zero in the row
    `padding_idx`, which gets no gradient. The other settings are those of `lucid.nn.functional.embedding`.

    >>> import lucid
    >>> from lucid import nn
    >>> nn.Embedding(10, 3)(lucid.tensor([[1, 2], [4, 5]])).shape
    lucid.Size([2, 2, 3])
    """

    weight: Parameter

    @checked
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Device = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise IndexOutOfRangeError(
                    f"padding_idx must be within num_embeddings: expected one in [{-num_embeddings}, "
                    f"{num_embeddings - 1}], got {padding_idx}"
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            self.weight = empty_parameter((num_embeddings, embedding_dim), device, dtype)
            self.reset_parameters()
        else:
            if _weight.shape != (num_embeddings, embedding_dim):
                raise ShapeError(
                    f"expected weights of shape {(num_embeddings, embedding_dim)}, got {tuple(_weight.shape)}"
                )
            self.weight = Parameter(_weight)
        self.weight.requires_grad_(not _freeze)

    def reset_parameters(self) -> None:
        """Draw the rows anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight.detach()[self.padding_idx].zero_()

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
        """Return an embedding of the given rows, whose memory it shares; they get no gradient if they `freeze`.

        `embeddings` has the shape (num_embeddings, embedding_dim), or a ShapeError is raised.
        """
        if embeddings.ndim != 2:
            raise ShapeError(
                f"embeddings parameter is expected to be 2-dimensional, got shape {tuple(embeddings.shape)}"
            )
        count, width = embeddings.shape
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
