"""Tensor: everything that a user calls on one."""

from __future__ import annotations

from lucid.tensor.tensor import Tensor

__all__ = ["Tensor"]
