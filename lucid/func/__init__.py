"""Functions of functions, under PyTorch's address."""

from __future__ import annotations

from lucid.nn.utils.stateless import functional_call

__all__ = ["functional_call"]
