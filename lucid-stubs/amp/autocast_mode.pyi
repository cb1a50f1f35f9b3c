# Written by `python -m tests.compat.stubs`.
from lucid.amp import autocast as autocast
from lucid.amp import custom_bwd as custom_bwd
from lucid.amp import custom_fwd as custom_fwd
from lucid.amp import is_autocast_available as is_autocast_available

__all__ = ['autocast', 'custom_bwd', 'custom_fwd', 'is_autocast_available']
