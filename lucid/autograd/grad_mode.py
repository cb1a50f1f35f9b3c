"""The modes of recording, where PyTorch has them."""

from __future__ import annotations

from lucid.autograd.engine.running import set_multithreading_enabled
from lucid.autograd.modes.state import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]
