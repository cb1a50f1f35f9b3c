"""Switch of cuDNN: `lucid.backends.cudnn.enabled`."""

from __future__ import annotations

__all__ = ["enabled"]

enabled = True
"""Whether convolutions, and attention of half types, go through cuDNN.

NVIDIA's package ``nvidia-cudnn-frontend`` and the library must be found; lucid's extras for CUDA bring both. That way
has not been run on a GPU yet. False takes lucid's own kernels and matrix products, as where cuDNN is missing.
"""
