"""Hooks of functions, called at every op of a thread, and four of them: time, memory, arithmetic, printing."""

from lucid.autograd.hooks.functions import Call, FunctionHook
from lucid.hooks.functions.flops import FlopHook
from lucid.hooks.functions.memory import MemoryHook
from lucid.hooks.functions.printer import PrintHook
from lucid.hooks.functions.timer import TimerHook
from lucid.public import publish as _publish

__all__ = ["Call", "FlopHook", "FunctionHook", "MemoryHook", "PrintHook", "TimerHook"]

_publish(globals())
