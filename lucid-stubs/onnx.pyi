# Written by `python -m tests.compat.stubs`.
from lucid.compat.refusals import export as export

__all__ = ['export']
