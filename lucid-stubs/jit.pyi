# Written by `python -m tests.compat.stubs`.
from lucid.compat.compilers import Final as Final
from lucid.compat.compilers import ScriptModule as ScriptModule
from lucid.compat.compilers import compile as compile
from lucid.compat.compilers import export as export
from lucid.compat.compilers import ignore as ignore
from lucid.compat.compilers import is_scripting as is_scripting
from lucid.compat.compilers import is_tracing as is_tracing
from lucid.compat.compilers import script as script
from lucid.compat.compilers import unused as unused

__all__ = ['Final', 'ScriptModule', 'compile', 'export', 'ignore', 'is_scripting', 'is_tracing', 'script', 'unused']
