# Written by `python -m tests.compat.stubs`.
from lucid.nn.modules import lazy as lazy
from lucid.nn.modules import module as module
from lucid.nn.modules import utils as utils

__all__ = ['lazy', 'module', 'utils']
