# Written by `python -m tests.compat.stubs`.
from lucid.nn.hooks import RemovableHandle as RemovableHandle

__all__ = ['RemovableHandle']
