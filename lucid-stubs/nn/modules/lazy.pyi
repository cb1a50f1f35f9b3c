# Written by `python -m tests.compat.stubs`.
from lucid.nn.lazy import LazyModuleMixin as LazyModuleMixin

__all__ = ['LazyModuleMixin']
