"""Mixed precision: ops that choose their dtypes, and losses scaled up so that small float16 gradients do not vanish."""

from __future__ import annotations

from lucid.amp.functions import custom_bwd, custom_fwd
from lucid.amp.grad_scaler import GradScaler
from lucid.autograd.modes.autocast import autocast, is_autocast_available
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_publish(globals())
_document(__all__, globals())
