"""Switches of the libraries below, under PyTorch's names: `lucid.backends.cuda.matmul.allow_tf32`."""

from __future__ import annotations

from lucid.backends import cpu, cuda, cudnn, mps

__all__ = ["cpu", "cuda", "cudnn", "mps"]
