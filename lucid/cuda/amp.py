"""Mixed precision under PyTorch's older names; `lucid.amp` has the newer, for all devices.

It builds on tensors, which build on this package, so that its names are looked up when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lucid.public import later as _later
from lucid.public import publish as _publish

if TYPE_CHECKING:
    from lucid.amp.cuda import GradScaler, autocast, custom_bwd, custom_fwd
else:
    _LATER = {
        "GradScaler": "lucid.amp.cuda", "autocast": "lucid.amp.cuda", "custom_bwd": "lucid.amp.cuda",
        "custom_fwd": "lucid.amp.cuda",
    }  # fmt: skip
    __getattr__, __dir__ = _later(globals(), _LATER)


__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

_publish(globals())
