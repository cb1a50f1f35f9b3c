"""Loops in C++ that are loaded beforehand, so that none is compiled within what a test counts."""

from __future__ import annotations

import functools

from lucid.cpu.build import libraries
from lucid.cpu.functions import BUILD, UNITS
from lucid.errors import KernelError


@functools.cache
def load_loops():
    """Load all loops of the CPU, compiled if need be; without a compiler there are none."""
    for library in libraries():
        try:
            library.build()
        except KernelError:
            return
    for unit in UNITS:
        for function in unit.functions:
            for arguments in function.instances:
                function(BUILD, *arguments)
