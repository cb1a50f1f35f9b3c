# Written by `python -m tests.compat.stubs`.
from lucid.base.device import Device as Device
from lucid.compat.helpers import FileLike as FileLike
from lucid.compat.helpers import Number as Number
from lucid.ops.base.storage import UntypedStorage as Storage

__all__ = ['Device', 'FileLike', 'Number', 'Storage']
