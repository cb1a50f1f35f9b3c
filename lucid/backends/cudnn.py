"""Switch of cuDNN, `lucid.backends.cudnn.enabled`, and other attributes that scripts ask for."""

from __future__ import annotations

__all__ = ["benchmark", "deterministic", "enabled"]

enabled = True
"""Whether convolutions, and attention of half types, go through cuDNN.

NVIDIA's package ``nvidia-cudnn-frontend`` and the library must be found; lucid's extras for CUDA bring both. That way
has not been run on a GPU yet. False takes lucid's own kernels and matrix products, as where cuDNN is missing.
"""

deterministic = True
"""Whether convolutions that go through cuDNN repeat bit by bit: they do, whatever it is set to."""

benchmark = False
"""Whether cuDNN's algorithms are chosen by their times: they are not, whatever it is set to, but by its heuristics."""
