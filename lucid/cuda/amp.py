"""Mixed precision under PyTorch's older names; `lucid.amp` has the newer, for all devices.

It builds on tensors, which build on this package, so that its names are looked up when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lucid.amp.cuda import GradScaler, autocast, custom_bwd, custom_fwd
else:
    _LATER = dict.fromkeys(("GradScaler", "autocast", "custom_bwd", "custom_fwd"), "lucid.amp.cuda")

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module 'lucid.cuda.amp' has no attribute {name!r}")
        return getattr(import_module(_LATER[name]), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
