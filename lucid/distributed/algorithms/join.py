"""Processes with different numbers of batches, under PyTorch's address."""

from __future__ import annotations

from lucid.collectives.joining import Join, Joinable, JoinHook
from lucid.public import publish as _publish

__all__ = ["Join", "JoinHook", "Joinable"]

_publish(globals())
