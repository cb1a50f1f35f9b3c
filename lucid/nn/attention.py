"""PyTorch's choice among its ways to compute attention: lucid has one, so that choices are taken and change nothing."""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

from lucid.arguments import shown
from lucid.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """PyTorch's implementations of `scaled_dot_product_attention`; all give the same up to rounding."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False) -> Generator[None]:  # noqa: ARG001
    """Run a block of code; lucid's one implementation of attention stands for each of PyTorch's backends.

    >>> import lucid
    >>> from lucid.nn.attention import SDPBackend, sdpa_kernel
    >>> q = lucid.ones(1, 2, 4)
    >>> with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
    ...     lucid.nn.functional.scaled_dot_product_attention(q, q, q).shape
    lucid.Size([1, 2, 4])
    """
    chosen: list[object] = [*backends] if isinstance(backends, list | tuple) else [backends]
    if not all(isinstance(each, SDPBackend) for each in chosen):
        raise ArgumentError(f"sdpa_kernel: backends: expected an SDPBackend or a list of them, got {shown(backends)}")
    if not chosen:
        raise ArgumentError("sdpa_kernel: backends: expected at least one SDPBackend, got none")
    yield
