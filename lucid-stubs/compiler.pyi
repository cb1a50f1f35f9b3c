# Written by `python -m tests.compat.stubs`.
from lucid.compat.compilers import allow_in_graph as allow_in_graph
from lucid.compat.compilers import disable as disable
from lucid.compat.compilers import is_compiling as is_compiling
from lucid.compat.compilers import is_compiling as is_dynamo_compiling
from lucid.compat.compilers import is_compiling as is_exporting
from lucid.compat.compilers import reset as reset

__all__ = ['allow_in_graph', 'disable', 'is_compiling', 'is_dynamo_compiling', 'is_exporting', 'reset']
