"""Modules that several processes train together."""

from __future__ import annotations

from lucid.nn.parallel import distributed
from lucid.nn.parallel.data_parallel import DataParallel
from lucid.nn.parallel.distributed import DistributedDataParallel
from lucid.public import publish as _publish
from lucid.settings.documents import document as _document

__all__ = ["DataParallel", "DistributedDataParallel", "distributed"]

_publish(globals(), DataParallel="lucid.nn")
_document(__all__, globals())
