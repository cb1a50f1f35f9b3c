"""Tools made of hooks: see, keep, change and scope the values in a model, by the paths of its modules.

`table` lists every hook, where it was registered and by whom, and takes off what a library left behind; `explain` says
which will fire, `leaks` which hold tensors, `counting` how often each is called; `scope` and `HookGroup` take hooks off
together, whoever registered them. `points` and `parameters` say what can be named; `capture` keeps activations and
gradients, `edit` replaces them, `tap` makes any value of a program one of them, `guard` stops at the first number that
is not finite, `trace` takes the time of each module, `step_in_backward` trains without keeping gradients, and a
`FunctionHook` sees each op of a thread. What works by a ``with`` block takes off at its end what it has put on, also
after an error: a model is then as before.

`lucid.nn.hooks` and `lucid.utils.hooks` hold the handles and the `Hook` objects of modules.
"""

from lucid.autograd.hooks.context import HookContext
from lucid.hooks.captured import Captured
from lucid.hooks.capturing import capture
from lucid.hooks.editing import edit
from lucid.hooks.explaining import explain
from lucid.hooks.functions import Call, FlopHook, FunctionHook, MemoryHook, PrintHook, TimerHook
from lucid.hooks.guarding import NotFiniteError, guard
from lucid.hooks.leaking import Leak, leaks
from lucid.hooks.listing import Row, Table, counting, table
from lucid.hooks.points import parameters, points
from lucid.hooks.scoping import HookGroup, scope
from lucid.hooks.stepping import step_in_backward
from lucid.hooks.taps import tap
from lucid.hooks.tracing import trace
from lucid.public import publish as _publish

__all__ = [
    "Call", "Captured", "FlopHook", "FunctionHook", "HookContext", "HookGroup", "Leak", "MemoryHook", "NotFiniteError",
    "PrintHook", "Row", "Table", "TimerHook", "capture", "counting", "edit", "explain", "guard", "leaks", "parameters",
    "points", "scope", "step_in_backward", "table", "tap", "trace",
]  # fmt: skip

_publish(globals())
