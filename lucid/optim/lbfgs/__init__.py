"""The limited-memory quasi-Newton method, under PyTorch's address."""

from __future__ import annotations

from lucid.optim.lbfgs.minimizer import LBFGS

__all__ = ["LBFGS"]
